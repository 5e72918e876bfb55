import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Recorded } from '../../../src/core/events/events.ts'
import { LINES_LOOK } from '../../../src/modes/change/execution/fold.ts'
import type { TaskSpec } from '../../../src/modes/change/tasks.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { ReportFold } from '../../../src/tell/report/fold-report.ts'
import {
  answering,
  askIn,
  breakingIn,
  type ChangePlay,
  changeAfter,
  openChangeIn,
  planOf,
  playChange,
  SESSION_FOLDER,
  sessionAfter,
  statesIn,
} from '../../support/change-session.ts'
import { check, task } from '../../support/change-work.ts'
import { endsAs, ofType, type Play, type PlayOptions, type Ran } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'
import { SESSION } from '../../support/session-events.ts'

let folder: string
let tree: number
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-change-'))
  tree = 0
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const TEST = 'node --test'
const FIND = task('T1', { type: 'INFO_GATHERING', description: 'Find the router.', outputs: { place: 'its file' } })
const COUNT = task('T2', {
  description: 'Count the requests.',
  inputs: { router: 'T1.place' },
  outputs: { limit: 'how many a minute' },
  files: ['api.js'],
})
const CHECKED = check('T3', TEST, { description: 'The tests pass.' })
const THREE = [FIND, COUNT, CHECKED]

const file = (name: string) => readFile(join(folder, SESSION_FOLDER, name), 'utf8')
const cut = (tasks: readonly TaskSpec[]) =>
  answering({
    tasks: tasks.map(({ inputs, outputs, ...rest }) => ({
      ...rest,
      inputs: Object.entries(inputs).map(([name, from]) => ({ name, from })),
      outputs: Object.entries(outputs).map(([name, what]) => ({ name, what })),
    })),
  })
const gives = (outputs: Record<string, string> = {}) => answering({ outputs })
/** The same of a round that changes a file. */
const changes = (outputs: Record<string, string> = {}) => answering({ outputs }, async () => void tree++)
const mends = (words: string) => answering(words, async () => void tree++)
const SUMS_UP = answering('Requests are counted now.')
const PLANNED = answering(planOf())
const FOUND = gives({ place: 'src/router.js' })
const COUNTED = changes({ limit: '60' })

/** How commands come out, one run after the other; the last result stays. */
function commands(script: Record<string, readonly string[]>): NonNullable<PlayOptions['command']> {
  const runs = new Map<string, number>()
  return name => {
    const nth = runs.get(name) ?? 0
    runs.set(name, nth + 1)
    const results = script[name] ?? ['passed']
    const status = results[Math.min(nth, results.length - 1)] ?? 'passed'
    if (status === 'passed') return {}
    return { status: 'failed', exitCode: 1, output: `not ok: ${status}` }
  }
}

const LOCAL = {
  name: 'local',
  baseUrl: 'http://127.0.0.1:1',
  model: 'small',
  keyEnv: null,
  contextWindow: null,
  whenAway: 'stop',
} as const

const GATE = {
  name: TEST,
  run: TEST,
  timeoutMs: 60_000,
  required: true,
  network: false,
  protect: [],
  everyRound: false,
}

/** Plays a change whose plan is accepted as it is; a command fails until the work is begun, where nothing else is said. */
async function play(plays: readonly Play[], { change, ...options }: Partial<ChangePlay> = {}): Promise<Ran> {
  return await playChange([PLANNED, ...plays], {
    folder,
    says: [['accept']],
    tree: () => `tree ${tree}`,
    looks: { [LINES_LOOK]: async () => ({ T2: [{ path: 'api.js', added: 12, removed: 3 }] }) },
    begun: { gates: [GATE] },
    ...options,
    change: { ...change },
  })
}

const EXECUTING = 'EXECUTING_TASKS.'
const within = (events: readonly Recorded[]) =>
  statesIn(events).flatMap(state => (state.startsWith(EXECUTING) ? [state.slice(EXECUTING.length)] : []))
const notes = (events: readonly Recorded[]) => ofType(events, 'noted').map(({ name, text }) => [name, text])
const tasks = (events: readonly Recorded[]) => changeAfter(events).execution.tasks
const statuses = (events: readonly Recorded[]) => tasks(events).map(({ spec, status }) => `${spec.id} ${status}`)
const parts = (events: readonly Recorded[]) => ofType(events, 'round-started').map(({ part }) => part)
const ran = (events: readonly Recorded[]) =>
  ofType(events, 'command-ran').map(({ name, status }) => `${name}: ${status}`)

promise('C30', 'What one task finds the next is given, and each is done in its order, as often as it takes and no more')
test('a plan is cut into tasks, each is done and checked, and the whole is claimed, proved and summed up', async () => {
  const { outcome, events, inputs } = await play([cut(THREE), FOUND, COUNTED, SUMS_UP])
  expect(outcome).toEqual({ kind: 'done', verified: true })
  expect(parts(events)).toEqual(['plan', 'decompose', 'gather', 'act', 'summary'])
  expect(within(events)).toEqual([
    'decomposition',
    ...['queue', 'info-gathering', 'result'],
    ...['queue', 'action', 'result'],
    ...['queue', 'verification', 'result'],
    // The claim.
    ...['queue', 'verification', 'result', 'queue'],
  ])
  expect(statesIn(events).slice(-2)).toEqual(['GENERATING_SUMMARY', 'WAITING_FOR_INPUT'])
  expect(statuses(events)).toEqual(['T1 COMPLETED', 'T2 COMPLETED', 'T3 COMPLETED'])
  expect(inputs[2]).toContain('Find the router.')
  expect(inputs[2]).toContain('- place: its file')
  expect(inputs[3]).toContain('Material to work with: "what T1 gives: place"')
  expect(inputs[3]).toContain('src/router.js')
  expect(inputs[3]).toContain('A web server.')
  expect(inputs[3]).toContain(`This is run after it: \`${TEST}\``)
  const written = JSON.parse(await file('tasks.json'))
  expect(written.tasks.map(({ id, done, status }: Record<string, unknown>) => [id, done, status])).toEqual([
    ['T1', true, 'COMPLETED'],
    ['T2', true, 'COMPLETED'],
    ['T3', true, 'COMPLETED'],
  ])
  const summary = await file('summary.md')
  expect(summary).toContain('Done, and verified')
  expect(summary).toContain('| T2 | api.js | +12 −3 |')
  expect(summary).toContain('Requests are counted now.')
})

test('the executor is told the remark of the person, and what the plan is in short', async () => {
  const { inputs } = await play([cut(THREE), FOUND, COUNTED, SUMS_UP], { says: [['accept', 'Mind the proxy.']] })
  for (const input of [inputs[1], inputs[3]]) {
    expect(input).toContain('this remark. It counts like the plan:\n\nMind the proxy.')
  }
  expect(inputs[3]).toContain('Count the requests of each client.')
})

test('a verification that fails twice and passes is mended twice, and each attempt knows the one before it', async () => {
  const run = 'grep -q limit api.js'
  const list = [FIND, COUNT, check('T3', run)]
  // Before anything is changed, then each time twice: a failure is run once more.
  const script = commands({ [run]: ['before', 'one', 'one', 'two', 'two', 'passed'] })
  const { outcome, events, inputs } = await play(
    [cut(list), FOUND, COUNTED, mends('I looked.'), mends('I added it.'), SUMS_UP],
    { command: script },
  )
  expect(outcome).toMatchObject({ kind: 'done' })
  expect(within(events).filter(state => state === 'fixing')).toHaveLength(2)
  expect(tasks(events)[2]).toMatchObject({ status: 'COMPLETED', attempts: 2, rounds: 2 })
  expect(inputs[4]).toContain('attempt 1 of 5')
  expect(inputs[4]).toContain('not ok: one')
  expect(inputs[4]).toContain('It failed before anything was changed, too.')
  expect(inputs[4]).toContain('Files that were changed since the work began:\n- a')
  expect(inputs[5]).toContain('attempt 2 of 5')
  expect(inputs[5]).toContain('not ok: two')
  expect(inputs[5]).toContain('Attempt 1 changed a. It said: I looked.')
})

test('a failure that is gone when the command runs again is flaky, and nothing is mended', async () => {
  const run = 'make check'
  const list = [task('T1'), check('T2', run)]
  const { outcome, events } = await play([cut(list), changes(), SUMS_UP], {
    command: commands({ [run]: ['before', 'one', 'passed'] }),
  })
  expect(outcome).toMatchObject({ kind: 'done' })
  expect(tasks(events)[1]).toMatchObject({ attempts: 0, results: [{ status: 'flaky' }] })
  expect(await file('summary.md')).toContain('failed, then passed on the same files')
})

promise(
  'C31',
  "A verification is mended exactly as often as is said, by the planner's model where it does not get on; one that never passes does not stop the others",
)
test('one that never passes is mended exactly as often as is said; then it has failed, and the other tasks continue', async () => {
  const run = 'make check'
  const list = [task('T1'), check('T2', run), task('T3'), check('T4', 'make t3')]
  const fixes = Array.from({ length: 3 }, (_, n) => mends(`Attempt ${n}.`))
  const { outcome, events, inputs } = await play([cut(list), changes(), ...fixes, changes(), SUMS_UP], {
    change: { fixAttempts: 3 },
    command: commands({ [run]: ['no'], 'make t3': ['before', 'passed'] }),
  })
  expect(parts(events).filter(part => part === 'fix')).toHaveLength(3)
  expect(statuses(events)).toEqual(['T1 COMPLETED', 'T2 FAILED', 'T3 COMPLETED', 'T4 COMPLETED'])
  expect(tasks(events)[1]?.why).toBe('`make check` ended with exit code 1, after 3 attempts to fix it.')
  expect(notes(events)).toContainEqual([
    'failed',
    'T2 (Check with make check) failed. `make check` ended with exit code 1, after 3 attempts to fix it.',
  ])
  expect(outcome).toMatchObject({ kind: 'needs-person', reason: expect.stringContaining('T2 failed.') })
  expect(ofType(events, 'done-nominated')).toEqual([])
  expect(inputs.at(-1)).toContain('T2 failed: ')
})

promise('C31')
test('two attempts with the same failure go to the model of the planner, and the journal says so', async () => {
  const run = 'make check'
  const list = [task('T1'), check('T2', run)]
  const { events } = await play([cut(list), changes(), mends('a'), mends('b'), mends('c'), SUMS_UP], {
    change: { executor: { provider: 'local', model: 'small', contextWindow: null } },
    command: commands({ [run]: ['before', ...Array(6).fill('same'), 'passed'] }),
    providers: [LOCAL],
  })
  const models = ofType(events, 'round-started').map(({ part, provider }) => [part, provider ?? null])
  expect(models.filter(([part]) => part === 'act' || part === 'fix')).toEqual([
    ['act', 'local'],
    ['fix', 'local'],
    ['fix', 'local'],
    ['fix', null],
  ])
  expect(notes(events)).toContainEqual([
    'planner',
    expect.stringContaining('2 attempts changed nothing, or left the same failure'),
  ])
})

test('a verification that failed is said to have failed twice in a row', async () => {
  const list = [task('T1'), check('T2', 'make check')]
  const { inputs } = await play([cut(list), changes(), mends('a'), SUMS_UP], {
    command: commands({ 'make check': ['before', 'one', 'two', 'passed'] }),
  })
  expect(inputs[3]).toContain('It ended with exit code 1, twice in a row.')
})

test('attempts that change nothing go to the planner, too; and so does the last one', async () => {
  const run = 'make check'
  const list = [task('T1'), check('T2', run)]
  const nothing = answering('I found nothing.')
  const { events } = await play([cut(list), changes(), nothing, nothing, nothing, SUMS_UP], {
    change: { fixAttempts: 3 },
    command: commands({ [run]: ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10'] }),
  })
  expect(notes(events).filter(([name]) => name === 'planner')).toEqual([
    ['planner', expect.stringContaining('2 attempts changed nothing, or left the same failure')],
  ])
  const other = await play([cut(list), changes(), mends('a'), mends('b'), SUMS_UP], {
    change: { fixAttempts: 2 },
    command: commands({ [run]: ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10'] }),
  })
  expect(notes(other.events).filter(([name]) => name === 'planner')).toEqual([
    ['planner', expect.stringContaining('This is the last attempt')],
  ])
})

test('a task whose answer is missing three times has failed, with the reason', async () => {
  const bad = answering('I have done it.')
  const uses = task('T4', { inputs: { limit: 'T2.limit' } })
  const list = [...THREE, uses, check('T5', 'npm test')]
  const { events, outcome } = await play([cut(list), FOUND, bad, bad, bad, SUMS_UP])
  expect(statuses(events)).toEqual(['T1 COMPLETED', 'T2 FAILED', 'T3 PENDING', 'T4 PENDING', 'T5 PENDING'])
  expect(parts(events).filter(part => part === 'act')).toHaveLength(3)
  expect(tasks(events).map(({ why }) => why)).toEqual([
    null,
    expect.stringContaining('Its answer could not be used, 3 times in a row.'),
    'It checks T2, and T2 failed.',
    'It needs T2.limit, and T2 failed.',
    'It checks T4, and T4 waits.',
  ])
  expect(await file('tasks.json')).toContain('"why": "It needs T2.limit, and T2 failed."')
  expect(outcome).toMatchObject({ kind: 'needs-person' })
})

test('an answer without an output that was promised is asked for again', async () => {
  const { events, inputs } = await play([cut(THREE), gives({ where: 'x' }), FOUND, COUNTED, SUMS_UP])
  expect(statuses(events)).toEqual(['T1 COMPLETED', 'T2 COMPLETED', 'T3 COMPLETED'])
  expect(inputs[3]).toContain('could not use the last one')
  expect(inputs[3]).toContain('place')
  expect(tasks(events)[0]).toMatchObject({ why: null, refusals: 1 })
})

const resumes = async (plays: readonly Play[], journal: readonly Recorded[]) =>
  await playChange(plays, {
    folder,
    journal,
    tree: () => `tree ${tree}`,
    looks: { [LINES_LOOK]: async () => ({}) },
  })

test.each(['action', 'result', 'failure'])(
  'a task that is stopped between its third answer and its failure (%s) is tried anew when that goes on, and each number is the true one',
  async state => {
    const bad = answering('I have done it.')
    const stopped = await play([cut(THREE), FOUND, bad, bad, bad], {
      onEvent(_, { asked, events }) {
        const isThird = tasks(events)[1]?.refusals === 3
        if (isThird && within(events).at(-1) === state) asked.endNow('stop')
      },
    })
    expect(stopped.outcome).toMatchObject({ kind: 'interrupted' })
    const again = await resumes([bad, bad, bad, SUMS_UP], stopped.events)
    const failed = notes([...stopped.events, ...again.events]).filter(([name]) => name === 'failed')
    expect(failed).toHaveLength(1)
    expect(failed[0]?.[1]).toContain('Its answer could not be used, 3 times in a row.')
    expect(parts(again.events)).toEqual(['act', 'act', 'act', 'summary'])
    tree = 0
    const done = await resumes([COUNTED, SUMS_UP], stopped.events)
    expect(done.outcome).toMatchObject({ kind: 'done' })
    expect(notes(done.events)).toEqual([])
  },
)

test('a task that a server has refused three times has failed, also where the session ends for that, and is tried again', async () => {
  const refused = endsAs({ class: 'refused', message: 'There is no model "qwen".' })
  const ended = await play([cut(THREE), FOUND, refused, refused, refused])
  expect(ended.outcome).toMatchObject({ kind: 'needs-person' })
  expect(parts(ended.events)).toEqual(['plan', 'decompose', 'gather', 'act', 'act', 'act'])
  const why = 'Its answer could not be used, 3 times in a row. There is no model "qwen".'
  expect(tasks(ended.events)[1]).toMatchObject({ status: 'FAILED', why })
  expect(statuses(ended.events)).toEqual(['T1 COMPLETED', 'T2 FAILED', 'T3 PENDING'])
  const { beforeEnd } = await openChangeIn(folder)
  expect(await beforeEnd?.(sessionAfter(ended.events))).toBe(null)
  expect(JSON.parse(await file('tasks.json')).tasks[1]).toMatchObject({ id: 'T2', status: 'FAILED', why })
  expect(await file('summary.md')).toContain('T2 failed: ')
  const again = await resumes([COUNTED, SUMS_UP], ended.events)
  expect(again.outcome).toMatchObject({ kind: 'done' })
  expect(statuses([...ended.events, ...again.events])).toEqual(['T1 COMPLETED', 'T2 COMPLETED', 'T3 COMPLETED'])
  const once = await resumes([refused, refused, refused], ended.events)
  expect(tasks([...ended.events, ...once.events])[1]).toMatchObject({ status: 'FAILED', why })
})

test.each([
  ['once all is accepted', 'EXECUTING_TASKS.result', 'accepted'],
  ['while it is summed up', 'GENERATING_SUMMARY', 'accepted'],
  ['while a failure is summed up', 'GENERATING_SUMMARY', 'none'],
])('what a person says %s reaches no round, and that is what they are told', async (_, state, claim) => {
  const replies: Promise<{ code: string; message: string }>[] = []
  const bad = answering('I have done it.')
  const does = claim === 'none' ? [bad, bad, bad] : [COUNTED]
  await play([cut(THREE), FOUND, ...does, SUMS_UP], {
    onEvent(event, playing) {
      const isNow = statesIn(playing.events).at(-1) === state && playing.runner.state.claim.state === claim
      if (!isNow || replies.length > 0 || event.type === 'round-started') return
      replies.push(askIn(playing, { type: 'steer', text: 'Mind the proxies.' }))
    },
  })
  const last = `Only the summary of ${SESSION} follows, so no agent would read this`
  const message =
    claim === 'none'
      ? `${last}; when it is resumed, the agent of its next round reads it first.`
      : `${last}. To continue from it: codemachine change --follow-up ${SESSION} "…"`
  expect(await replies[0]).toEqual({ code: claim === 'none' ? 'kept' : 'ending', message })
})

test('tasks that cannot be carried out go back three times, each time with what is wrong, and then need a person', async () => {
  const wrong = cut([task('T1', { inputs: { it: 'T9.nothing' } }), CHECKED])
  const { outcome, inputs, events } = await play([wrong, wrong, wrong, SUMS_UP])
  expect(parts(events)).toEqual(['plan', 'decompose', 'decompose', 'decompose'])
  expect(inputs[2]).toContain('A program reads your answer, and could not use the last one')
  expect(inputs[2]).toContain('T9.nothing')
  expect(ofType(events, 'answer-refused')).toHaveLength(3)
  expect(outcome).toMatchObject({
    kind: 'needs-person',
    reason: expect.stringContaining('3 times in a row. `tasks[0].inputs.it` is "T9.nothing"'),
  })
})

promise('C32', 'What passes before anything is changed verifies no task')
test('a command that passes before anything is changed shows nothing, and goes back; one of the project may', async () => {
  const list = [task('T1'), check('T2', 'grep -q x api.js'), check('T3', 'npm test')]
  const better = [task('T1'), check('T2', 'grep -q limit api.js'), check('T3', 'npm test')]
  const { outcome, events, inputs } = await play([cut(list), cut(better), changes(), SUMS_UP], {
    command: commands({ 'grep -q limit api.js': ['before', 'passed'] }),
  })
  expect(outcome).toMatchObject({ kind: 'done' })
  expect(inputs[2]).toContain('T2: `grep -q x api.js` passes already')
  expect(inputs[2]).not.toContain('T3: `npm test`')
  expect(changeAfter(events).execution.made).toBe(3)
  // Each once before anything is changed, and then as the check that it is.
  expect(ran(events)).toEqual([
    'grep -q x api.js: passed',
    'npm test: passed',
    'grep -q limit api.js: failed',
    'grep -q limit api.js: passed',
    'npm test: passed',
  ])
})

test('without a command that proves anything the person is told before it starts, and it ends unverified', async () => {
  const run = 'grep -q limit api.js'
  const { outcome, events } = await play([cut([task('T1'), check('T2', run)]), changes(), SUMS_UP], {
    change: { review: 'auto' },
    facts: { commands: [] },
    begun: {},
    command: commands({ [run]: ['before', 'passed'], 'node --test': ['no'] }),
  })
  expect(outcome).toEqual({ kind: 'done', verified: false })
  expect(notes(events)[0]).toEqual(['no-proof', expect.stringContaining('end as not verified')])
  const summary = await file('summary.md')
  expect(summary).toContain('Done, not verified')
  expect(summary).toContain("Checked by the agent's own commands, which are no proof")
})

promise(
  'C33',
  'A claim that is refused is mended within the same limit, and claimed again; it never ends as done without being accepted',
)
test('a claim that is refused is mended as a verification is, and claimed again', async () => {
  let gates = 0
  const { outcome, events, inputs } = await play([cut(THREE), FOUND, COUNTED, mends('I mended it.'), SUMS_UP], {
    gate: () => (++gates === 2 ? { status: 'failed', exitCode: 1, output: 'not ok: rate' } : {}),
  })
  expect(outcome).toEqual({ kind: 'done', verified: true })
  expect(ofType(events, 'done-refused')).toHaveLength(1)
  expect(parts(events)).toEqual(['plan', 'decompose', 'gather', 'act', 'fix', 'summary'])
  expect(inputs[4]).toContain('codemachine did not accept the claim that everything is done')
  expect(inputs[4]).toContain('not ok: rate')
  expect(changeAfter(events).execution.claim).toMatchObject({ attempts: 1, refused: null })
})

promise('C33')
test('a claim that is refused each time is mended as often as is said, and the session needs a person', async () => {
  let gates = 0
  const fixes = Array.from({ length: 5 }, (_, n) => mends(`Attempt ${n}.`))
  const { outcome, events } = await play([cut(THREE), FOUND, COUNTED, ...fixes, SUMS_UP], {
    gate: () => (++gates === 1 ? {} : { status: 'failed', exitCode: 1, output: 'not ok' }),
  })
  expect(ofType(events, 'done-refused')).toHaveLength(6)
  expect(parts(events).filter(part => part === 'fix')).toHaveLength(5)
  expect(outcome).toMatchObject({ kind: 'needs-person', reason: expect.stringContaining('All tasks are done, but') })
  expect(statesIn(events).at(-1)).toBe('WAITING_FOR_INPUT')
  expect(await file('summary.md')).toContain('In the words of the model that planned it')
})

promise('C34', 'Where a limit ends the tasks, the rest is not begun, and the summary names the limit')
test('where the rounds are used up the rest is not begun, and the summary says which limit it was', async () => {
  const list = [task('T1'), check('T2', 'make t1'), task('T3'), check('T4', 'make t3')]
  const { outcome, events } = await play([cut(list), changes(), SUMS_UP], {
    limits: { rounds: 3 },
    command: commands({ 'make t1': ['before', 'passed'], 'make t3': ['before', 'passed'] }),
  })
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
  // A check takes no round.
  expect(statuses(events)).toEqual(['T1 COMPLETED', 'T2 COMPLETED', 'T3 PENDING', 'T4 PENDING'])
  expect(parts(events)).toEqual(['plan', 'decompose', 'act', 'summary'])
  expect(await file('summary.md')).toContain('The work on the tasks reached the limit of rounds.')
})

test('a verification that could not be mended for want of rounds waits, and says so', async () => {
  const { outcome, events } = await play([cut([task('T1'), check('T2', 'make t1')]), changes(), SUMS_UP], {
    limits: { rounds: 3 },
    command: commands({ 'make t1': ['no'] }),
  })
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
  expect(tasks(events)[1]).toMatchObject({ status: 'PENDING', why: 'No rounds were left to fix it.' })
})

test('the report counts a task that was finished after the last round had ended', async () => {
  const { events } = await play([cut([task('T1'), check('T2', 'make t1')]), changes(), SUMS_UP], {
    command: commands({ 'make t1': ['before', 'passed'] }),
  })
  const tasksOf = (until: Recorded['type']) => {
    const report = new ReportFold(SESSION, OWN_TEMPLATES)
    for (const event of events.slice(
      0,
      events.findLastIndex(({ type }) => type === until),
    ))
      report.add(event)
    return report.data(() => 'running')?.tasks
  }
  expect(tasksOf('done-nominated')).toEqual({ done: 2, total: 2, left: [] })
  expect(tasksOf('command-ran')).toMatchObject({ done: 1, total: 2 })
})

test('a session that failed and is resumed tries again what failed, and nothing else', async () => {
  const list = [task('T1'), check('T2', 'make t1')]
  const script = commands({ 'make t1': ['no', 'no', 'no', 'no', 'no', 'passed'] })
  const first = await play([cut(list), changes(), mends('a'), SUMS_UP], {
    change: { fixAttempts: 1 },
    command: script,
  })
  expect(first.outcome).toMatchObject({ kind: 'needs-person' })
  const again = await play([], { journal: first.events, command: script, change: { fixAttempts: 1 } })
  expect(parts(again.events)).toEqual(['summary'])
  expect(within(again.events)[0]).toBe('queue')
  expect(again.outcome).toMatchObject({ kind: 'done' })
})

test('a session that a person broke off while it mended goes on with the attempts that it has had', async () => {
  const list = [task('T1'), check('T2', 'make t1')]
  const script = commands({ 'make t1': ['before', 'no', 'no', 'no', 'no', 'no', 'no', 'passed'] })
  const first = await play([cut(list), changes(), mends('a'), mends('b')], {
    change: { fixAttempts: 3 },
    command: script,
    onEvent(event, { asked, events }) {
      const isSecond = within(events).filter(state => state === 'fixing').length === 2
      if (isSecond && event.type === 'turn-started') asked.endNow('stop')
    },
  })
  expect(first.outcome).toMatchObject({ kind: 'interrupted' })
  const again = await play([mends('b'), mends('c'), SUMS_UP], { journal: first.events, command: script })
  const whys = ofType(again.events, 'state-entered').flatMap(({ state, why }) =>
    state.endsWith('fixing') ? [why] : [],
  )
  expect(whys).toEqual(['T2 fails: attempt 3 of 3 to fix it'])
  expect(tasks([...first.events, ...again.events])[1]).toMatchObject({ status: 'COMPLETED', attempts: 3 })
})

test('what a person broke off is done again, and is no attempt', async () => {
  const list = [task('T1'), check('T2', 'make t1')]
  const broken: Play = endsAs({ class: 'interrupted', message: null })
  const { outcome, events } = await play([cut(list), broken, changes(), broken, mends('a'), SUMS_UP], {
    change: { fixAttempts: 2 },
    command: commands({ 'make t1': ['before', 'no', 'no', 'passed'] }),
  })
  expect(outcome).toMatchObject({ kind: 'done' })
  expect(tasks(events)[1]).toMatchObject({ attempts: 1, rounds: 2 })
})

const SMALL = (contextWindow: number) => ({ executor: { provider: 'local', model: 'small', contextWindow } })

promise(
  'C36',
  "A task that does not fit into the context of the executor is told what it builds on in short, or done by the planner's model, and that is said",
)
test('what does not fit into the context of the executor goes to the model of the planner, and that is said', async () => {
  const { events } = await play([cut(THREE), FOUND, COUNTED, SUMS_UP], {
    change: SMALL(4096),
    providers: [LOCAL],
  })
  expect(ofType(events, 'round-started').map(({ provider }) => provider ?? null)).toEqual(Array(5).fill(null))
  expect(notes(events).filter(([name]) => name === 'model')).toEqual([
    ['model', "T1 goes to the planner's model: its input does not fit into the context of 4096 tokens."],
    ['model', "T2 goes to the planner's model: its input does not fit into the context of 4096 tokens."],
  ])
})

promise('C36')
test('a context that has room for a part of what a task builds on gets that in short', async () => {
  const { events, inputs } = await play([cut(THREE), gives({ place: 'x'.repeat(40_000) }), COUNTED, SUMS_UP], {
    change: SMALL(18_000),
    providers: [LOCAL],
  })
  expect(ofType(events, 'round-started').map(({ provider }) => provider ?? null)[3]).toBe('local')
  expect(notes(events)).toContainEqual([
    'model',
    'T2 gets the results of earlier tasks shortened: its input does not fit into the context of 18000 tokens.',
  ])
  expect(inputs[3]).toMatch(/x{2000}/)
  expect(inputs[3]).toMatch(/\[… \d+ more characters\]/)
  expect(inputs[3]?.length).toBeLessThan(14_000)
})

test('a task whose context was full is done by the model of the planner', async () => {
  const full: Play = endsAs({ class: 'context-full', message: 'Ran out of room in the context window.' })
  const { events } = await play([cut(THREE), FOUND, full, COUNTED, SUMS_UP], {
    change: SMALL(64_000),
    providers: [LOCAL],
  })
  expect(ofType(events, 'round-started').map(({ part, provider }) => [part, provider ?? null])).toEqual([
    ['plan', null],
    ['decompose', null],
    ['gather', 'local'],
    ['act', 'local'],
    ['act', null],
    ['summary', null],
  ])
  expect(notes(events)).toContainEqual([
    'model',
    "T2 goes to the planner's model: its context was full before it answered.",
  ])
})

/** A person who asks for another plan in the first round of an action. */
const replanning = (text: string) =>
  breakingIn('EXECUTING_TASKS.action', text, { on: type => type === 'round-started' })

const SLOW: Play = async ({ clock, interrupted }) => {
  await clock.wait(60_000, interrupted)
  return { class: 'interrupted', message: null }
}

promise('C35', 'A plan that is changed in the middle leaves what is done as it is, and cuts the rest anew')
test('a plan that is changed in the middle is shown again; what is done stays, and the rest is cut anew', async () => {
  const redis = planOf({ description: 'Count in Redis.' })
  const anew = task('T4', { description: 'Count in Redis.', inputs: { router: 'T1.place' } })
  const { outcome, events, inputs } = await play(
    [cut(THREE), FOUND, SLOW, answering(redis), cut([anew, check('T5', TEST)]), changes(), SUMS_UP],
    { says: [['accept'], ['accept']], onEvent: replanning('Use Redis.') },
  )
  expect(outcome).toMatchObject({ kind: 'done' })
  expect(parts(events)).toEqual(['plan', 'decompose', 'gather', 'act', 'plan', 'decompose', 'act', 'summary'])
  expect(statuses(events)).toEqual(['T1 COMPLETED', 'T4 COMPLETED', 'T5 COMPLETED'])
  expect(inputs[5]).toContain('These tasks are done, and stay.')
  expect(inputs[5]).toContain('T1 INFO_GATHERING: Find the router.')
  expect(inputs[5]).toContain('src/router.js')
  expect(inputs[6]).toContain('what T1 gives: place')
  expect(changeAfter(events).execution).toMatchObject({ version: 2, made: 5 })
})

promise('C34')
test('after 50 tasks a changed plan is not carried out, and the summary says so', async () => {
  const list = Array.from({ length: 49 }, (_, n) => task(`T${n + 1}`, { files: [`f${n}`] }))
  const { outcome, events } = await play(
    [cut([...list, check('T50', TEST)]), SLOW, answering(planOf({ description: 'Another.' })), SUMS_UP],
    { says: [['accept'], ['accept']], onEvent: replanning('Something else.') },
  )
  expect(outcome).toMatchObject({
    kind: 'needs-person',
    reason: expect.stringContaining('The session has made 50 tasks'),
  })
  expect(await file('summary.md')).toContain('The work on the tasks reached the limit of tasks.')
  expect(statuses(events)).toEqual([])
})

test('a changed plan that needs more tasks than may still be made is not carried out, and that is what is said', async () => {
  const list = Array.from({ length: 47 }, (_, n) => task(`T${n + 1}`, { files: [`f${n}`] }))
  const five = cut([1, 2, 3, 4].map(n => task(`N${n}`)).concat(check('N5', TEST)))
  const another = answering(planOf({ description: 'Another.' }))
  const ended = await play([cut([...list, check('T48', TEST)]), SLOW, another, five, five, five, SUMS_UP], {
    says: [['accept'], ['accept']],
    onEvent: replanning('Something else.'),
  })
  const reason = 'The session has made 48 of at most 50 tasks, and the changed plan needs more than are left.'
  expect(ofType(ended.events, 'answer-refused').map(({ kind }) => kind)).toEqual(Array(3).fill('no-tasks-left'))
  expect(ended.outcome).toMatchObject({ kind: 'needs-person', reason })
  expect(await file('summary.md')).toContain('The work on the tasks reached the limit of tasks.')
})

promise(
  'C37',
  'Killed after any event of its execution, a change comes to the same end, and does nothing again that is done',
)
test('killed after any event, and gone on with, it comes to the same end, and what is done is not done again', async () => {
  const run = 'make check'
  const list = [FIND, COUNT, check('T3', run)]
  const results = () => commands({ [run]: ['before', 'one', 'one', 'passed'] })
  const byPart: Record<string, Play> = {
    decompose: cut(list),
    gather: FOUND,
    act: COUNTED,
    fix: mends('I mended it.'),
    summary: SUMS_UP,
  }
  // What a round is for is not known before it runs, and neither is which one is repeated after a kill.
  const playing = () => {
    let part = 'plan'
    const onEvent: NonNullable<PlayOptions['onEvent']> = event => {
      if (event.type === 'round-started') part = event.part ?? ''
    }
    const play: Play = played => (part === 'plan' ? PLANNED : (byPart[part] ?? SUMS_UP))(played)
    return { plays: [play], onEvent }
  }
  const playAll = async (more: Partial<ChangePlay>) => {
    const { plays, onEvent } = playing()
    tree = ofType(more.journal ?? [], 'round-ended').filter(each => each.treeBefore !== each.treeAfter).length
    return await playChange(plays, {
      folder,
      says: [['accept']],
      tree: () => `tree ${tree}`,
      looks: { [LINES_LOOK]: async () => ({}) },
      command: results(),
      onEvent,
      ...more,
    })
  }
  const whole = await playAll({})
  expect(whole.outcome).toMatchObject({ kind: 'done' })
  const from = whole.events.findIndex(event => event.type === 'state-entered' && event.state.endsWith('decomposition'))
  for (let kept = from; kept < whole.events.length; kept += 2) {
    const journal = whole.events.slice(0, kept)
    const ranBefore = ran(journal).filter(each => each.startsWith(run)).length
    const left = ['before', 'one', 'one', 'passed'].slice(ranBefore)
    const again = await playAll({ journal, command: commands({ [run]: left.length === 0 ? ['passed'] : left }) })
    const where = `after ${kept}, ${whole.events[kept - 1]?.type}`
    expect(again.outcome, where).toEqual(whole.outcome)
    const events = [...journal, ...again.events]
    expect(statuses(events), where).toEqual(statuses(whole.events))
    expect(parts(again.events).length, where).toBeLessThanOrEqual(
      parts(whole.events).length - parts(journal).length + 1,
    )
    expect(tasks(events)[2], where).toMatchObject({ attempts: 1 })
  }
})

test('what a verification changes itself is told with the files that tasks changed', async () => {
  const run = 'make check'
  const script: NonNullable<PlayOptions['command']> = name => {
    if (name !== run || tree === 0) return { status: 'failed', exitCode: 1 }
    return { treeAfter: 'tree 9', changed: ['snapshot.txt'], changedCount: 1 }
  }
  const { events } = await play([cut([task('T1'), check('T2', run)]), changes(), SUMS_UP], {
    command: script,
    looks: { [LINES_LOOK]: async () => ({}) },
  })
  expect(tasks(events)[1]).toMatchObject({ status: 'COMPLETED', changed: ['snapshot.txt'], treeAfter: 'tree 9' })
  expect(await file('summary.md')).toContain('| T2 | snapshot.txt |')
})

test('a verification that takes too long is not run a second time, and is mended', async () => {
  const run = 'make check'
  let runs = 0
  const script: NonNullable<PlayOptions['command']> = name => {
    if (name !== run) return {}
    runs++
    return runs <= 2 ? { status: 'timed-out', exitCode: null, output: 'waiting', durationMs: 600_000 } : {}
  }
  const { outcome, events, inputs } = await play(
    [cut([task('T1'), check('T2', run)]), changes(), mends('a'), SUMS_UP],
    {
      command: script,
    },
  )
  expect(outcome).toMatchObject({ kind: 'done' })
  expect(runs).toBe(3)
  expect(inputs[3]).toContain('It ran into its timeout.\n')
  expect(inputs[3]).toContain('waiting\ncodemachine ended it after 600 s.')
  expect(tasks(events)[1]).toMatchObject({ attempts: 1 })
})
