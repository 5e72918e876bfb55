import { describe, expect, test } from 'vitest'
import type { SessionState } from '../../../src/core/state/state.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { changeKind } from '../../../src/modes/change/change.ts'
import { changeFollowUp } from '../../../src/modes/change/follow-up.ts'
import { changeReport } from '../../../src/modes/change/report.ts'
import { changeData, shownPlans } from '../../../src/modes/change/status-data.ts'
import type { ChangeWork } from '../../../src/modes/change/work.ts'
import { workReport } from '../../../src/tell/words/work.ts'
import { changeWith, check, PLAN, record, task } from '../../support/change-work.ts'
import { promise } from '../../support/promise.ts'
import { SESSION } from '../../support/session-events.ts'

const TESTS = {
  name: 'tests',
  run: 'npm test',
  required: true,
  timeoutMs: 1,
  network: false,
  protect: [],
  everyRound: false,
}
const passed = { status: 'passed', exitCode: 0, tree: 'last', tail: '' }
const failed = { status: 'failed', exitCode: 1, tree: 'last', tail: 'AssertionError: 429 was expected' }

const READ = record(task('T1', { type: 'INFO_GATHERING', outputs: { where: 'the file' } }), {
  status: 'COMPLETED',
  who: 'qwen from local',
  rounds: 1,
})
const WRITE = record(task('T2', { files: ['src/api.js'] }), {
  status: 'COMPLETED',
  who: 'qwen from local',
  rounds: 2,
  ms: 61_000,
  tokens: 17_245,
  changed: ['src/api.js', 'src/limit.js'],
  lines: [
    { path: 'src/api.js', added: 10, removed: 2 },
    { path: 'src/limit.js', added: 40, removed: 0 },
  ],
})
const LOOK = record(check('T3', 'node -e "look()"'), { status: 'COMPLETED', attempts: 2, results: [failed, passed] })
const BROKEN = record(check('T4', 'npm run lint'), {
  status: 'FAILED',
  why: 'its command failed after 5 attempts at mending it',
  attempts: 5,
  results: [failed],
})

function workWith(more: Partial<ChangeWork> = {}): ChangeWork {
  return changeWith(
    { tasks: [READ, WRITE, LOOK, BROKEN], before: [{ run: 'npm run lint', status: 'failed' }] },
    { state: 'GENERATING_SUMMARY', words: 'The API answers 429.', ...more },
  )
}

function sessionWith(more: Partial<SessionState> = {}): SessionState {
  const result = { gate: 'tests', ...passed, durationMs: 1, output: '', problem: null }
  return {
    ...emptyState(SESSION),
    gates: [TESTS],
    gateRuns: [{ gate: 'tests', status: 'passed', exitCode: 0, durationMs: 1, when: 'claim', round: 4 }],
    claim: { state: 'accepted', by: [], tree: 'last', verified: true, results: [result] },
    savepoint: { round: 4, commit: 'c', tree: 'last', start: 'first' },
    ...more,
  } as unknown as SessionState
}

describe('the report of a change', () => {
  const section = changeReport(workWith(), sessionWith())

  test('says which plan was carried out and who accepted it, and how to look and to undo', () => {
    expect(section?.title).toBe('The change')
    expect(section?.text).toContain('Plan: version 1 of 1; a person accepted it\n')
    expect(section?.text).toContain(
      `How to look: \`codemachine diff ${SESSION}/start\`; how to undo: \`codemachine rewind ${SESSION}/start\``,
    )
  })

  promise(
    'C74',
    "What a task's own command says is never called proof: the report sets gates that passed on the final files apart from it",
  )
  test("sets what is proof apart from what an agent's own command says", () => {
    expect(section?.text).toContain('Commands that count as proof:\n- `npm test` passed on the final files\n')
    expect(section?.text).toMatch(
      /Checked by the agent's own commands, which are no proof:\n- T3: `node -e "look\(\)"` passed\n- T4: `npm run lint` ended with exit code 1; it failed before anything was changed\n/,
    )
  })

  test('says of a gate that ran only before anything was changed that it has not run since', () => {
    const ran = { gate: 'tests', status: 'failed', exitCode: 2, durationMs: 1, when: 'before', round: 0 } as const
    const text = changeReport(workWith(), sessionWith({ gateRuns: [ran], claim: { state: 'none' } }))?.text
    expect(text).toContain('Commands that count as proof:\n- `npm test` did not run after the changes\n')
  })

  test('says what is open, and the words of the planner as such', () => {
    expect(section?.text).toMatch(/Open:\n- T4 failed: Check with npm run lint\. its command failed after 5 attempts/)
    expect(section?.text).toMatch(/\(a claim, not a proof\):\nThe API answers 429\.$/)
  })

  test('has each task with its attempts, who did it, and the lines that it changed', () => {
    expect(section?.table?.head).toEqual([
      'task',
      'kind',
      'what',
      'state',
      'attempts',
      'who',
      'time',
      'tokens',
      'files',
    ])
    expect(section?.table?.rows.map(row => [row[0], row[3], row[4], row[5], row[7], row[8]])).toEqual([
      ['T1', 'done', '', 'qwen from local', '', ''],
      ['T2', 'done', '2 rounds', 'qwen from local', '17,245', 'src/api.js +10 −2, src/limit.js +40 −0'],
      ['T3', 'done', 'fixed 2 times', 'codemachine', '', ''],
      ['T4', 'failed', 'fixed 5 times', 'codemachine', '', ''],
    ])
  })

  test('of one that has no plan yet has no section, and of one that was not accepted says so', () => {
    const none = workWith()
    const { planning } = none
    expect(changeReport({ ...none, planning: { ...planning, versions: [], accepted: null } }, sessionWith())).toBeNull()
    const open = { ...workWith(), planning: { ...planning, accepted: null } }
    expect(changeReport(open, sessionWith())?.text).toContain('Plan: version 1, which is not accepted yet.')
    const ended = { outcome: { kind: 'interrupted', by: 'stop' }, exitCode: 130, durationMs: 1 } as const
    expect(changeReport(open, sessionWith({ ended }))?.text).toContain('Plan: version 1, which was not accepted.')
  })
})

describe('what programs are told of a change', () => {
  promise(
    'C75',
    '`work` of `status --json` has the state, the request, the context, the plan, its tasks, changed files and attempts of a change',
  )
  test('has the fields that are promised, and those of the state within', () => {
    const fixing = { attempt: 2, by: 'executor', earlier: [], sameFailures: 0, failure: '', hasChanged: false } as const
    const own = workWith({ state: 'EXECUTING_TASKS.fixing' })
    const data = changeData({ ...own, execution: { ...own.execution, fixing } })
    expect(Object.keys(data)).toEqual([
      'state',
      'within',
      'userInput',
      'projectContext',
      'currentPlan',
      'tasks',
      'changedFiles',
      'retryCount',
    ])
    expect(data).toMatchObject({
      state: 'EXECUTING_TASKS',
      within: 'fixing',
      userInput: 'Add rate limiting to the API.',
      projectContext: null,
      currentPlan: { description: PLAN.description, version: 1, userFeedback: null, tasks: [{ id: 'T1' }, {}, {}, {}] },
      tasks: [{ id: 'T1', done: true, status: 'COMPLETED' }, {}, {}, { id: 'T4', done: false, attempts: 5 }],
      changedFiles: ['src/api.js', 'src/limit.js'],
      retryCount: 2,
    })
  })

  test('before there is a plan has none, and nothing within', () => {
    const own = workWith({ state: 'GATHERING_CONTEXT' })
    const data = changeData({ ...own, planning: { ...own.planning, versions: [], accepted: null } })
    expect(data).toMatchObject({ state: 'GATHERING_CONTEXT', within: null, currentPlan: null, retryCount: 0 })
  })

  test('is told of a long request and many files, too, in bounds', () => {
    const changed = Array.from({ length: 200 }, (_, at) => `${'folder/'.repeat(20)}${at}.ts`)
    const tasks = Array.from({ length: 50 }, (_, at) => record(task(`T${at}`), { status: 'COMPLETED', changed }))
    const own = changeWith({ tasks }, { request: 'long '.repeat(200_000) })
    const session: SessionState = { ...emptyState(SESSION), template: 'change', kind: changeKind, work: own }
    expect(workReport(session, null, true)).toMatchObject({ state: 'WAITING_FOR_INPUT', tasks: { length: 50 } })
  })

  test('has every version of the plan, with what is different in it and which of them was accepted', () => {
    const own = workWith()
    const [first] = own.planning.versions
    if (first === undefined) throw new Error('There is no version.')
    const second = { ...first, version: 2, feedback: 'Keep the old API.', plan: { ...PLAN, risks: ['It is slower.'] } }
    const accepted = { version: 2, sha256: second.sha256, by: 'person', remark: 'gladly', hasGates: true } as const
    const plans = shownPlans({ ...own, planning: { ...own.planning, versions: [first, second], accepted } })
    expect(plans).toMatchObject([
      { version: 1, author: 'planner', feedback: null, diff: null, accepted: null },
      { version: 2, feedback: 'Keep the old API.', accepted: { by: 'person', remark: 'gladly' } },
    ])
    expect(plans[1]?.diff).toMatch(/^\+.*It is slower\./m)
    expect(plans[1]?.text).not.toContain('sha256')
  })
})

describe('a session that follows a change', () => {
  test('is told its plan, what became of its tasks, and what still fails with what was printed', () => {
    const text = changeFollowUp(workWith())
    expect(text).toMatch(/^## Its plan, version 1, which a person accepted\n\n### Plan\n\nLimit the rate of the API\./)
    expect(text).toContain('- T2 ACTION: Do T2: done; changed 2 files\n')
    expect(text).toContain('- T4 VERIFICATION: Check with npm run lint: failed; fixed 5 times; its command failed')
    expect(text).toContain('## What failed: T4\n\nits command failed after 5 attempts')
    expect(text).toContain('    AssertionError: 429 was expected')
    expect(text).toMatch(/at the end \(a claim, and no proof\)\n\nThe API answers 429\.$/)
  })

  test('is told how the plan was accepted, and with what remark, or that it was not', () => {
    const own = workWith()
    const { planning } = own
    const told = (accepted: Partial<NonNullable<typeof planning.accepted>> | null) =>
      changeFollowUp({
        ...own,
        planning: {
          ...planning,
          accepted: accepted && ({ ...planning.accepted, ...accepted } as typeof planning.accepted),
        },
      })
    expect(told({ by: 'go' })).toContain(
      'version 1, which a person had changed, and which was then accepted automatically\n',
    )
    expect(told({ by: 'auto' })).toContain('version 1, which was accepted automatically\n')
    expect(told({ remark: 'No new packages.' })).toContain('With the remark: No new packages.')
    expect(told(null)).toContain('## Its plan, version 1, which was not accepted\n')
    expect(changeFollowUp({ ...own, planning: { ...planning, accepted: null, versions: [] } })).toContain(
      '## Its plan\n\nThere was none.',
    )
  })

  test('is told of the limit, of up to six failures, and why it was not taken for done', () => {
    const tasks = Array.from({ length: 8 }, (_, at) => record(check(`T${at}`, 'x'), { status: 'FAILED', why: 'no' }))
    const { work } = changeWith({}).execution.claim
    const claim = { attempts: 5, refused: 'npm test failed', work }
    const text = changeFollowUp(changeWith({ tasks, limit: 'rounds', claim }))
    expect(text.match(/## What failed: T\d/g)).toHaveLength(6)
    expect(text).toContain('The limit of rounds ended the work on the tasks.')
    expect(text).toContain('## Why it was not taken for done\n\nnpm test failed')
  })

  test('is told of 50 tasks and a plan of any length in what fits into 64 KiB', () => {
    const long = 'x'.repeat(50_000)
    const tasks = Array.from({ length: 50 }, (_, at) =>
      record(check(`T${at}`, long, { description: long }), { ...BROKEN, spec: check(`T${at}`, long), why: long }),
    )
    const own = workWith({ words: long })
    const text = changeFollowUp({ ...own, execution: { ...own.execution, tasks } })
    expect(text.length).toBeLessThan(64 * 1024)
    expect(text).toContain('- T49 VERIFICATION')
  })
})
