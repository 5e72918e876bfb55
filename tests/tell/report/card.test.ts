import { describe, expect, test } from 'vitest'
import type { SessionOutcome } from '../../../src/core/events/outcome.ts'
import { cardOf } from '../../../src/tell/report/card.ts'
import { type CommandContext, commandsOf } from '../../../src/tell/report/commands.ts'
import { markdownOf } from '../../../src/tell/report/markdown.ts'
import { htmlOf } from '../../../src/tell/report/page/page.ts'
import type { ReportData } from '../../../src/tell/report/report-data.ts'
import { widthOf } from '../../../src/tell/words/cells.ts'
import { badNight, eventfulNight, GATES, goodNight, HERE, ID, MadeUpNight } from './made-up-night.ts'

const FULL = '/home/person/project/.codemachine/projects/20261120_1/report.html'
const LONG = 'Something long happened, and it has to be told at length. '.repeat(40)

const OUTCOMES: readonly SessionOutcome[] = [
  { kind: 'done', verified: true },
  { kind: 'done', verified: false },
  { kind: 'limit', limit: 'rounds' },
  { kind: 'limit', limit: 'time' },
  { kind: 'limit', limit: 'tokens' },
  { kind: 'needs-person', reason: LONG, hint: { do: 'say', text: LONG } },
  { kind: 'stalled', rounds: 3, why: 'nothing-changed' },
  { kind: 'interrupted', by: 'SIGHUP' },
  { kind: 'interrupted', by: 'skip' },
]

const reports: readonly (readonly [string, ReportData])[] = [
  ...OUTCOMES.map(
    outcome => [JSON.stringify(outcome).slice(0, 50), eventfulNight(LONG).end(outcome).report()] as const,
  ),
  ['findings that are left', badNight(LONG).report()],
  ['running', eventfulNight(LONG).report('running')],
  ['cut off', eventfulNight(LONG).report('cut-off')],
  ['nothing yet', new MadeUpNight(LONG).report('running')],
]

function card(data: ReportData, columns: number, place: CommandContext = HERE): string[] {
  return cardOf(data, { commands: commandsOf(data, place), columns, full: FULL }).map(({ text }) => text)
}

describe.each([40, 80, 120])('on a terminal of %i columns', columns => {
  test.each(reports)('the card takes at most 20 lines: %s', (_, data) => {
    const lines = card(data, columns)
    const rows = lines.map(line => Math.max(1, Math.ceil(widthOf(line) / columns)))
    expect(rows.reduce((sum, each) => sum + each)).toBeLessThanOrEqual(20)
    const isLong = (line: string) =>
      widthOf(line) > columns && !line.startsWith('  codemachine ') && !line.startsWith('report ')
    expect(lines.filter(isLong)).toEqual([])
    expect(lines.join('\n')).toContain(FULL)
  })
})

test('where only parts of a session have gates, the card says which checked them', () => {
  const data = goodNight().report()
  const ofParts = { ...data, proof: { ...data.proof, gates: [] } }
  const text = card(ofParts, 100).join(' ').replaceAll(/\s+/g, ' ')
  expect(text).toContain('no gates check the whole result; its steps were checked by tests, build')
  const none = { ...ofParts, gateRuns: { ...data.gateRuns, entries: [] } }
  expect(card(none, 100).join(' ')).toContain('no command was run that proves it')
})

test('the card of a good night says how it ended, what to look at first, with what proof, what changed, what it took, and what to type', () => {
  expect(card(goodNight().report(), 100)).toEqual([
    `${ID}  done, gates pass: verified by 2 gates, reviewed; flaky: tests; your request itself was`,
    'not checked',
    'goal     Add a dark mode, with tests.',
    'look at  Assumed: Yes: it follows the system until a person chooses. (Q1: Should the switch follow',
    '         the system by default?)',
    '         Protected: `tests/old.test.ts` deleted in round 2',
    'proof    tests: flaky, 41.2 s; it failed (exit code 1), and passed when it was run again on the same',
    '         files',
    '         build: passed, 41.2 s',
    '         review 1: agreed',
    'changes  12 files, +336 −36 lines, 4 commits',
    'refused  2 claims, the last one in round 3: The check `tests` fails (exit code 1).',
    'took     4 rounds (and 2 that did not count), 5h12m, 1h58m of it waiting, 382.2k tokens',
    'tasks    5 of 5 done',
    `  codemachine diff ${ID}/start ${ID}/4`,
    `  codemachine verify ${ID}`,
    `  codemachine rewind ${ID}/start`,
    `report   ${FULL}`,
  ])
})

test('gates that all passed take one line', () => {
  const night = new MadeUpNight('x', { gates: [] })
    .round()
    .gate('tests', 'claim', 'passed')
    .gate('build', 'claim', 'passed')
  expect(card(night.report(), 80)).toContain('proof    2 gates passed: tests (41.2 s), build (41.2 s)')
})

test('what gates and rounds did that a person has to know is on the card, however long a gate is', () => {
  const run = `npm test -- ${'--reporter=dot '.repeat(8)}--run`
  const gate = { name: run, run, timeoutMs: 1, required: true, network: false, protect: [], everyRound: false }
  const night = new MadeUpNight('x', { gates: [gate] }).round()
  night.add({ type: 'settings-changed', round: 1 })
  night.gate(run, 'claim', 'failed', '', ['a.txt', 'dist/b.js'])
  night.add({ type: 'done-refused', round: 1, reason: 'gate-failed', detail: 'The check fails.' })
  expect(card(night.end({ kind: 'limit', limit: 'rounds' }).report(), 100).slice(2, 10)).toEqual([
    'look at  gate npm test -- --reporter=dot…er=dot --run: failed (exit code 1)',
    'proof    npm test -- --reporter=dot…er=dot --run: failed (exit code 1), 41.2 s',
    'note     gate npm test -- --reporter=dot…er=dot --run: it changed 2 files itself, which does not',
    "         count as the agent's work: a.txt, dist/b.js",
    '         round 1 changed codemachine.toml; its new content applies from the next run',
    '         no gate protects its files, so nothing checks whether tests were weakened',
    'changes  1 file',
    'refused  1 claim of done',
  ])
})

test('what to look at comes before what was done, and a command is never cut', () => {
  const here = ` -C ${'a-very-long-folder-name/'.repeat(4)}`
  const lines = card(badNight().report(), 40, { here, resume: `codemachine resume ${ID}${here}` })
  const at = (label: string) => lines.findIndex(line => line.startsWith(label))
  expect(at('look at')).toBeLessThan(at('proof'))
  expect(lines.filter(line => line.endsWith(here))).toHaveLength(3)
})

test('of a template that is told what came before, the command that continues from it is there, once it has ended', () => {
  const follow = `codemachine change --follow-up ${ID} "…"`
  const done = eventfulNight().end({ kind: 'done', verified: true }).report()
  const lines = card({ ...done, work: { ...done.work, follow } }, 80)
  expect(lines.filter(line => line.startsWith('  codemachine '))).toHaveLength(4)
  expect(lines).toContain(`  ${follow}`)
  const limited = eventfulNight().end({ kind: 'limit', limit: 'rounds' }).report()
  expect(card({ ...limited, work: { ...limited.work, follow } }, 80)).toContain(`  ${follow}`)
  const running = eventfulNight().report('running')
  expect(card({ ...running, work: { ...running.work, follow } }, 80)).not.toContain(`  ${follow}`)
})

test('nothing from outside steers the terminal', () => {
  const goal = 'a\u001b[2J\u202eb\r\u009b31m'
  const night = eventfulNight(goal)
  night.add({ type: 'done-refused', round: 4, reason: 'tasks-left', detail: 'x\u001b]0;y\u0007\u2066z' })
  const text = card(night.report('running'), 80).join('')
  expect(text).toContain('␛[2J<U+202E>b')
  expect(text).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
})

describe('a gate that was flaky earlier', () => {
  const night = new MadeUpNight('x', { gates: GATES }).round()
  night.gate('tests', 'claim', 'flaky', '1 failed').gate('build', 'claim', 'failed')
  night.add({ type: 'done-refused', round: 1, reason: 'gate-failed', detail: 'The check `build` fails.' })
  night.round().gate('tests', 'claim', 'passed').gate('build', 'claim', 'passed')
  const data = night.end({ kind: 'done', verified: true }).report()

  test('is called so though it passed the last time, and stands out', () => {
    const lines = cardOf(data, { commands: [], columns: 100, full: null })
    expect(lines).toContainEqual({
      text: 'proof    tests: passed, 41.2 s; it was flaky earlier in the session',
      tone: 'warning',
    })
    expect(lines).toContainEqual({ text: '         build: passed, 41.2 s', tone: 'good' })
  })

  test('is called so in Markdown and on the page', () => {
    expect(markdownOf(data, HERE)).toContain('- `tests` passed, 41.2 s; it was flaky earlier in the session')
    expect(htmlOf(data, HERE)).toContain(
      '<span class="warning">passed, 41.2 s; it was flaky earlier in the session</span>',
    )
  })
})

test('what only a gate changed is not said to be the work of the rounds', () => {
  const night = new MadeUpNight('x', { gates: GATES }).savepoint(0, 0)
  night
    .round({ changed: ['src/app.ts'] })
    .gate('tests', 'claim', 'passed', '', ['src/app.ts', 'report.xml', 'gone.txt'])
  night.savepoint(1, 2, ['src/app.ts', 'report.xml'])
  const data = night.end({ kind: 'done', verified: true }).report()
  expect(data.changes.byGates).toEqual(['report.xml'])
  const words = '2 files, +56 −6 lines, 1 commit (report.xml by a gate)'
  expect(card(data, 100)).toContain(`changes  ${words}`)
  expect(markdownOf(data, HERE)).toContain(`\n\n${words}.\n`)
  const page = htmlOf(data, HERE)
  expect(page).toContain('report.xml by a gate')
  expect(page).toContain('<span class="path">report.xml <small>by a gate</small></span>')
  expect(page).toContain('<span class="path">src/app.ts</span>')
})

test.each([
  ['The list is not sorted when it is empty', 'Fix it', 'The list is not sorted when it is empty. Fix: Fix it'],
  ['Is it kept?', 'Keep it.', 'Is it kept? Fix: Keep it.'],
])('what is wrong and how it is mended do not run together: %s', (problem, mend, words) => {
  const data = badNight().report()
  const findings = data.proof.findings.map(each => ({ ...each, problem, mend, repeated: false }))
  const lines = card({ ...data, proof: { ...data.proof, findings } }, 120)
  expect(lines.join('\n')).toContain(`major: src/theme.ts:41: ${words}`)
})

describe('what a template says on the card', () => {
  const steps = Array.from({ length: 9 }, (_, n) => ({
    text: `${n + 1}  Step ${n + 1} \x1b[31m`,
    mark: 'done' as const,
  }))
  const withCard = (card: ReportData['work']['card'], night = goodNight().report()): ReportData => ({
    ...night,
    work: { ...night.work, card },
  })
  const shown = (data: ReportData, columns = 100) => cardOf(data, { commands: [], columns, full: FULL })

  test('has rows with how far each is, as many as there is room for, and how many more there are', () => {
    const rows = [
      { text: '1  Begin', mark: 'done' as const },
      { text: '2  Go on', mark: 'failed' as const },
    ]
    const lines = shown(withCard([{ label: 'steps', text: '', rows }]))
    const at = lines.findIndex(({ text }) => text.startsWith('steps'))
    expect(lines.slice(at, at + 2)).toEqual([
      { text: 'steps    done    1  Begin', tone: 'good' },
      { text: '         failed  2  Go on', tone: 'bad' },
    ])
    const many = shown(withCard([{ label: 'steps', text: '9 of 9', rows: steps }])).map(({ text }) => text)
    expect(many.join('\n')).toMatch(/^steps {4}9 of 9\n {9}done {4}1 {2}Step 1/m)
    expect(many.join('\n')).toMatch(/and \d more in the whole report/)
    expect(many.join('\n')).not.toContain('\x1b')
    expect(many.length).toBeLessThanOrEqual(20)
  })

  test('does not cut a path that is to be copied, and keeps to 20 lines of the terminal with it', () => {
    const path = `/home/person/${'projects/'.repeat(20)}hello`
    const facts = [
      { label: 'steps', text: '', rows: steps },
      { label: 'issues', text: LONG },
      { label: 'project', text: path, isToCopy: true as const },
      { label: 'to test', text: '', rows: steps },
      { label: 'missing', text: LONG },
    ]
    for (const columns of [40, 80]) {
      const lines = shown(withCard(facts, badNight(LONG).report()), columns).map(({ text }) => text)
      expect(lines).toContain(`project  ${path}`)
      const rows = lines.map(line => Math.max(1, Math.ceil(widthOf(line) / columns)))
      expect(rows.reduce((sum, each) => sum + each)).toBeLessThanOrEqual(20)
    }
  })
})

test('a question that a person has answered did not go on with an assumption of the agent, and is said to be answered', () => {
  const open = eventfulNight().report('running')
  expect(markdownOf(open, HERE)).toContain('- Assumed: Yes')
  const night = eventfulNight()
  night.add({ type: 'steered', round: 1, text: 'Yes, it does.', delivered: true, answers: 'Q1' })
  const data = night.report('running')
  expect(data.questions.entries).toMatchObject([{ id: 'Q1', answered: true }])
  expect(card(data, 120).join('\n')).toMatch(/^asked {4}1 question, answered: Should the switch/m)
  for (const page of [markdownOf(data, HERE), htmlOf(data, HERE)]) {
    expect(page).not.toContain('Assumed: Yes')
    expect(page).toContain('ssumed until you answered')
  }
})

describe('the engines that worked', () => {
  const row = /codex 1 round, claude 2 rounds; claude could reach api.anthropic.com/
  const night = () => new MadeUpNight().round()
  const withAnother = (): ReportData => {
    const made = night()
    for (const round of [2, 3])
      made.add({
        type: 'round-started',
        round,
        agent: 'goal-worker',
        engine: 'claude',
        codex: '0.101.0',
        model: null,
        input: 'Continue with the goal.',
        reaches: ['api.anthropic.com'],
      })
    return made.report()
  }
  const inText = (data: ReportData) => cardOf(data, { commands: [], columns: 200, full: FULL })
  const all = (data: ReportData) => ({
    text: JSON.stringify(inText(data)),
    markdown: markdownOf(data, HERE),
    page: htmlOf(data, HERE),
  })

  test('stand with their rounds and the hosts that they could reach in text, Markdown and page', () => {
    for (const text of Object.values(all(withAnother()))) expect(text.replaceAll('\\', '')).toMatch(row)
  })

  test('are not named where codex alone worked', () => {
    for (const text of Object.values(all(night().report()))) expect(text).not.toMatch(/engines/i)
  })
})
