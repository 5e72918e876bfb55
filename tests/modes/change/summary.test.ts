import { expect, test } from 'vitest'
import type { SessionOutcome } from '../../../src/core/events/outcome.ts'
import { emptyState, type SessionState } from '../../../src/core/state/state.ts'
import { summaryFacts, summaryText } from '../../../src/modes/change/summary.ts'
import { changeWith, check, record, task } from '../../support/change-work.ts'
import { SESSION } from '../../support/session-events.ts'

const session: SessionState = {
  ...emptyState(SESSION),
  savepoint: { round: 0, commit: 'c', tree: 'a', start: 'a' },
}
const ended = (outcome: SessionOutcome): SessionState => ({
  ...session,
  ended: { outcome, exitCode: 0, durationMs: 1 },
})
const DONE = { status: 'COMPLETED', who: 'qwen from local', rounds: 1 } as const

test('the summary has the facts of codemachine first, and the words of the model below them', () => {
  const own = changeWith(
    { tasks: [record(task('T1'), { ...DONE, lines: [{ path: 'api.js', added: 12, removed: 3 }] })] },
    { words: '## It works\n\nTry it.' },
  )
  const text = summaryText(own, ended({ kind: 'done', verified: true }))
  expect(text).toContain('**Done, and verified:')
  expect(text).toContain('> Add rate limiting to the API.')
  expect(text).toContain(': a person accepted it.')
  expect(text).toContain('| T1 | ACTION | Do T1 | done |  | qwen from local | 0 s |')
  expect(text).toContain('| T1 | api.js | +12 −3 |')
  expect(text).toContain(`\`codemachine rewind ${SESSION}/start\``)
  expect(text.indexOf('## It works')).toBeGreaterThan(text.indexOf('## How to look'))
  expect(summaryText({ ...own, words: null }, session)).toBe(summaryFacts(own, session))
})

test('what agents wrote stays in its cell and its line', () => {
  const hostile = task('T1', { description: 'x | done |\n# Verified\n<script>alert(1)</script> [a](http://b)' })
  const own = changeWith({
    tasks: [
      record(hostile, { status: 'FAILED', why: 'no\n\n# Done\n| a | b |', changed: ['a|b\n# c.js'] }),
      record(check('T2', 'echo `x`\n# Verified'), { status: 'COMPLETED', results: [] }),
    ],
  })
  const text = summaryFacts({ ...own, request: 'Do it\n# Verified\n```' }, session)
  expect(text.split('\n').filter(line => /^(#|\|\s*a|<)/.test(line))).toEqual([
    '# Do it',
    '## Request',
    '## Plan',
    '## Tasks',
    '## Checks',
    '## Files',
    '## What is open',
    '## How to look, and how to undo',
  ])
  expect(text).not.toContain('<script>')
  expect(text).not.toContain('[a](')
})

test('nothing in the summary steers a terminal that shows it, or reorders its lines', () => {
  const steering = '\u001b[31m\u0007\u0000\u009b\u202e\u2028'
  const own = changeWith(
    { tasks: [record(task('T1'), { status: 'FAILED', why: `no${steering}`, changed: [`a${steering}.js`] })] },
    { words: `It works.\r\n\tTry${steering} it.` },
  )
  const text = summaryText({ ...own, request: `Do${steering} it\r\nnow` }, session)
  expect(text.match(/[^\t\n\P{Cc}]|[\u2028\u2029\p{Bidi_Control}]/gu)).toBe(null)
  expect(text).toContain('> Do[31m it\n> now\n')
  expect(text).toContain('It works.\n\tTry[31m it.\n')
})

test('what is open is said: what failed, what waits for it, the limit, and the claim that was refused', () => {
  const failed = record(task('T1', { outputs: { it: 'it' } }), { status: 'FAILED', why: 'It gave no answer.' })
  const waits = record(task('T2', { inputs: { it: 'T1.it' } }), { why: 'It needs T1.it, and T1 failed.' })
  const own = changeWith({ tasks: [failed, waits], limit: 'rounds' })
  const text = summaryFacts(own, ended({ kind: 'limit', limit: 'rounds' }))
  expect(text).toContain('**Not done: the limit of rounds is reached.**')
  expect(text).toContain('- T1 failed: Do T1. It gave no answer.')
  expect(text).toContain('- T2 is not begun: Do T2. It needs T1.it, and T1 failed.')
  expect(text).toContain('- The work on the tasks reached the limit of rounds.')
  const { work } = changeWith({}).execution.claim
  const refused = changeWith({ claim: { attempts: 5, refused: 'npm test failed', work } })
  const { planning } = refused
  const versions = planning.versions.map(each => ({ ...each, plan: { ...each.plan, questions: ['Which limit?'] } }))
  const open = summaryFacts({ ...refused, planning: { ...planning, versions } }, { ...session, questions: 2 })
  expect(open).toContain(
    [
      '## What is open',
      '',
      '- codemachine refused the claim that everything is done: npm test failed',
      '- 2 questions were asked: see the report.',
      '- A question of the plan: Which limit?',
    ].join('\n'),
  )
  expect(summaryFacts(refused, { ...session, questions: 1 })).toContain('- One question was asked: see the report.')
})

test('the plan is told with the remark of the person, or that nobody has accepted it', () => {
  const own = changeWith({})
  const { planning } = own
  const accepted = { ...planning.accepted, remark: 'No new\npackages.' } as typeof planning.accepted
  expect(summaryFacts({ ...own, planning: { ...planning, accepted } }, session)).toContain(
    ': a person accepted it, with the remark:\n\n> No new\n> packages.\n',
  )
  const none = { ...own, planning: { ...planning, accepted: null } }
  expect(summaryFacts(none, session)).toContain('## Plan\n\nVersion 1 was not accepted.\n')
})

test('files are those of the tasks and of what mended the claim, at most 200, and how to undo only where that can be', () => {
  const { claim } = changeWith({}).execution
  const lines = [{ path: 'logo.png', added: null, removed: null }]
  const own = changeWith({
    tasks: [record(task('T1'), { ...DONE, changed: Array.from({ length: 205 }, (_, n) => `f${n}`) })],
    claim: { ...claim, work: { ...claim.work, lines } },
  })
  const text = summaryFacts(own, { ...session, savepoint: null })
  expect(text).toContain('| T1 | f199 |')
  expect(text).not.toContain('| T1 | f200 |')
  expect(text).toContain('And 6 more.')
  expect(text).not.toContain('codemachine rewind')
  expect(summaryFacts(changeWith({ claim: own.execution.claim }), session)).toContain(
    '| the claim | logo.png | no text |',
  )
})

test("a task's own command is listed as no proof, and what was changed after it passed is said", () => {
  const results = [{ status: 'passed', exitCode: 0, tree: 'old', tail: '' }]
  const own = changeWith({
    tasks: [record(check('T1', 'grep -q x a'), { status: 'COMPLETED', results })],
    before: [{ run: 'grep -q x a', status: 'failed' }],
  })
  const claim = { state: 'accepted', by: [], tree: 'new', verified: false, results: [] } as const
  const text = summaryFacts(own, { ...session, claim })
  expect(text).toContain('Nothing proved it: no command of the project ran, and none that a person accepted as proof.')
  expect(text).toContain(
    "Checked by the agent's own commands, which are no proof:\n- T1: `grep -q x a` passed, and files were changed after that; it failed before anything was changed\n",
  )
  const ticks = changeWith({ tasks: [record(check('T1', 'grep -q "`x`" a'), { status: 'COMPLETED', results })] })
  expect(summaryFacts(ticks, session)).toContain('- T1: `` grep -q "`x`" a `` passed\n')
})

test('a gate is proof only where a claim was accepted with it', () => {
  const gate = { name: 'tests', run: 'npm test', timeoutMs: 1, required: true, network: false, protect: [] }
  const gates = [{ ...gate, everyRound: false }]
  const ran = {
    gate: 'tests',
    status: 'passed',
    exitCode: 0,
    durationMs: 1,
    output: '',
    problem: null,
    tree: 'a',
  } as const
  const result = { ...ran, changed: [], changedCount: 0 }
  const now = { ...session, gates, gateRuns: [{ ...result, when: 'claim' as const, round: 3 }] } as SessionState
  expect(summaryFacts(changeWith({}), now)).toContain('- `npm test` passed\n')
  const claim = { state: 'accepted', by: [], tree: 'a', verified: true, results: [result] } as const
  expect(summaryFacts(changeWith({}), { ...now, claim })).toContain(
    'Commands that count as proof:\n- `npm test` passed on the final files\n',
  )
})
