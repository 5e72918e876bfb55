import { describe, expect, test } from 'vitest'
import type { EventOf, SessionEvent } from '../../../src/core/events/events.ts'
import type { SessionState } from '../../../src/core/state/state.ts'
import { moreSamples, sampleEvents } from '../../doors/screen/samples.ts'
import {
  created,
  ended,
  FIRST_AT,
  foldAll,
  resumed,
  says,
  started,
  turn,
  worked,
} from '../../support/session-events.ts'

const begun: SessionEvent = { ...created(), template: 'build', asksPlan: true }
const planned = sampleEvents['plan-ready']
const asked = sampleEvents['decision-asked']
const made = sampleEvents['decision-made']
const plan: SessionEvent = { ...asked, id: 'plan' }
const part = (round: number, of: string): SessionEvent => ({ ...started(round), part: of })
const { treeAfter: TREE_AFTER } = ended(1, worked) as EventOf<'round-ended'>
const paused: SessionEvent = { type: 'paused' }
const looking: SessionEvent = { type: 'step-started', step: 3, kind: 'look', name: 'size' }
const ranCommand = sampleEvents['command-ran']
const { output } = sampleEvents['output-kept']
const over: SessionEvent = { ...sampleEvents['session-ended'], outcome: { kind: 'limit', limit: 'time' } }
const holdUntil = sampleEvents['hold-until']
const question = sampleEvents['question-asked']
const usedTo = (usedPercent: number): SessionEvent => ({
  type: 'limits',
  primary: { usedPercent, windowMinutes: 300, resetsAt: FIRST_AT + 9_999_000 },
  secondary: null,
})

test.each<[string, readonly SessionEvent[], Partial<Record<keyof SessionState, unknown>>]>([
  ['keeps who keeps the machine awake', [sampleEvents['keep-awake']], { keptAwake: 'systemd-inhibit' }],
  ['is asked to stop', [sampleEvents['stop-asked']], { stopAsked: true }],
  [
    'goes on when one of its agents is stopped',
    [{ ...sampleEvents['stop-asked'], agent: 'a-1' }],
    { stopAsked: false },
  ],
  ['forgets that when it goes on', [sampleEvents['stop-asked'], resumed()], { stopAsked: false }],
  ['is at a step', [looking], { step: { number: 3, kind: 'look', name: 'size', since: FIRST_AT + 1000 }, steps: 0 }],
  ['has taken a step', [looking, { ...sampleEvents.looked, step: 3 }], { step: null, steps: 3, heldSince: null }],
  ['holds after a step', [looking, paused, { ...sampleEvents.looked, step: 3 }], { heldSince: FIRST_AT + 3000 }],
  ['keeps what a step came to', [{ ...sampleEvents.looked, output }], { outputs: [output] }],
  ['keeps what a command printed', [{ ...ranCommand, kept: output }], { outputs: [output], steps: 1 }],
  [
    'takes a command that was broken off for none',
    [looking, { ...ranCommand, step: 3, status: 'broken-off', kept: output }],
    { step: null, steps: 0, outputs: [] },
  ],
  [
    'has a round without a savepoint until that is made',
    [started(1), ended(1, worked)],
    { unkept: [{ round: 1, tree: TREE_AFTER, files: 1 }] },
  ],
  [
    'has at most the last two of them',
    [1, 2, 3].flatMap(round => [started(round), ended(round, worked)]),
    { unkept: [2, 3].map(round => ({ round, tree: TREE_AFTER, files: 1 })) },
  ],
  [
    'has none for which one was made',
    [started(1), ended(1, worked), { ...sampleEvents.savepoint, round: 1 }],
    { unkept: [] },
  ],
  [
    'has none of before a savepoint that was made',
    [started(1), ended(1, worked), started(2), ended(2, worked), { ...sampleEvents.savepoint, round: 2 }],
    { unkept: [] },
  ],
  [
    'has the round that was tried again while its first end was kept',
    [
      started(1),
      ended(1, worked),
      started(1),
      ended(1, worked, { treeAfter: 'again' }),
      { ...sampleEvents.savepoint, round: 1, tree: TREE_AFTER },
    ],
    { unkept: [{ round: 1, tree: 'again', files: 1 }] },
  ],
  ['keeps an output', [sampleEvents['output-kept']], { outputs: [output] }],
  ['keeps the plan of the agent', [sampleEvents['plan-updated']], { plan: sampleEvents['plan-updated'].steps }],
  ['forgets it with the next round', [sampleEvents['plan-updated'], started(1)], { plan: [] }],
  ['counts questions', [question, question], { questions: 2 }],
  ['knows when a hold ends', [paused, holdUntil], { holdEnd: { at: Date.parse(holdUntil.until), how: 'goes-on' } }],
  ['holds since it first held', [{ type: 'held' }, { type: 'held' }], { heldSince: FIRST_AT + 1000 }],
  ['has what the person said of it', [sampleEvents['session-created']], { maxUsage: 90, run: expect.any(Object) }],
  ['goes on from another', [{ ...created(), follows: '20261119_1' }], { follows: '20261119_1' }],
  [
    'keeps the texts and outputs that it begins with',
    [moreSamples['begins with texts']],
    { kept: [expect.objectContaining({ name: 'plan.json' })], outputs: [output] },
  ],
  ['only replays', [moreSamples['only replays']], { replays: true, replayed: true }],
  ['has no limits that were not said', [], { maxUsage: null, prices: [], run: null, follows: null }],
  ['has other limits when it goes on', [sampleEvents['session-resumed']], { maxUsage: 90, run: expect.any(Object) }],
  [
    'keeps its run',
    [sampleEvents['session-created'], resumed()],
    { run: expect.any(Object), maxUsage: null, prices: [] },
  ],
  ['has no agents after the end', [sampleEvents['agent-started'], over], { agents: [] }],
  ['has none when it goes on', [sampleEvents['agent-started'], resumed()], { agents: [] }],
  ['has none in a new round', [sampleEvents['agent-started'], started(1)], { agents: [] }],
  ['has none after a round', [started(1), sampleEvents['agent-started'], ended(1, worked)], { agents: [] }],
  ['knows no claim of an earlier round', [sampleEvents['done-nominated'], started(2)], { claim: { state: 'none' } }],
  [
    'keeps a claim that was not accepted',
    [sampleEvents['done-nominated'], sampleEvents.wrote],
    { claim: { state: 'nominated' } },
  ],
  [
    'takes back what was accepted once files are written',
    [sampleEvents['done-accepted'], sampleEvents.wrote],
    { claim: { state: 'none' } },
  ],
  [
    'does not where nothing was',
    [sampleEvents['done-accepted'], { ...sampleEvents.wrote, files: [] }],
    { claim: { state: 'accepted' } },
  ],
])('a session %s', (_, events, state) => {
  expect(foldAll([created(), ...events])).toMatchObject(state)
})

test('what programs gates run through were like is kept where it is not said again', () => {
  const seen = sampleEvents['gate-configuration']
  const { programs: _, ...later } = seen
  const programs = (...events: SessionEvent[]) => foldAll([created(), ...events]).gateConfiguration?.programs
  expect([programs(seen), programs(later), programs(seen, later)]).toEqual([seen.programs, null, seen.programs])
  expect(programs(seen, { ...seen, programs: 'new' })).toBe('new')
})

test('a review that is asked for stays so when a session goes on, unless another is said', () => {
  const review = { model: 'm', effort: null } as unknown as NonNullable<SessionState['review']>
  const begunSo: SessionEvent = { ...created(), review }
  expect(foldAll([begunSo, resumed()]).review).toEqual(review)
  expect(foldAll([begunSo, { ...resumed(), review: null }]).review).toBeNull()
})

describe('work that is seen', () => {
  const fails = ended(1, { class: 'crashed', message: null })
  const idleCrashes = (...events: SessionEvent[]) =>
    foldAll([created(), started(1), ...events, fails]).failures.idleCrashes
  test('keeps a crash from being one of those without any', () => {
    const item = { kind: 'user-message', id: 'i', text: 'Go on.' } as const
    const input: SessionEvent = { type: 'item-completed', round: 1, item }
    const ofAgent: SessionEvent = { ...(says(1, 'Done.') as EventOf<'item-completed'>), instance: 'a-1' }
    expect([idleCrashes(), idleCrashes(input), idleCrashes(says(1, 'x')), idleCrashes(ofAgent)]).toEqual([1, 1, 0, 0])
    expect([idleCrashes(sampleEvents['agent-started']), idleCrashes(ofAgent, input)]).toEqual([0, 0])
    expect(foldAll([created(), started(1), says(1, 'own'), ofAgent]).running?.lastWords).toBe('own')
  })
})

test('what a round uses of a window counts from its beginning, and not what another provider does', () => {
  const rounds = (...events: SessionEvent[]) => foldAll([created(), ...events]).usageTrends.primary?.rounds
  expect([rounds(usedTo(1)), rounds(started(1), usedTo(1))]).toEqual([0, -1])
  const end = ended(1, worked)
  expect(rounds(usedTo(1), started(1), end)).toBe(1)
  expect(rounds(usedTo(1), { ...started(1), provider: 'local' }, end)).toBe(0)
  expect(rounds(usedTo(1), started(1), ended(1, { class: 'crashed', message: null }))).toBe(0)
})

test('a round for what its template does not know makes the session unknown, and one of a template that is unknown does not', () => {
  const unknown = (first: SessionEvent, ...events: SessionEvent[]) => foldAll([first, ...events]).unknownPart
  expect([unknown(begun, part(1, 'summary')), unknown(begun, started(1)), unknown(begun, part(1, 'carving'))]).toEqual([
    null,
    null,
    'carving',
  ])
  expect(unknown({ ...created(), template: 'none such' }, part(1, 'carving'))).toBeNull()
})

describe('a decision', () => {
  test('is kept with its file, and for as long as its end is put off', () => {
    expect(foldAll([created(), asked]).decision).toMatchObject({ id: 'database', file: 'docs/database.md' })
    const { file: _, ...without } = asked
    expect(Object.hasOwn(foldAll([created(), without]).decision ?? {}, 'file')).toBe(false)
    const later = foldAll([created(), asked, holdUntil])
    expect(later).toMatchObject({ holdEnd: null, decision: { id: 'database', until: Date.parse(holdUntil.until) } })
  })

  test('that is made is kept by the label of its choice, with what the person said', () => {
    expect(foldAll([created(), asked, made])).toMatchObject({
      decision: null,
      decided: { id: 'database', choice: 'other', label: 'Another one' },
      personSaid: ['PostgreSQL.\nThe newest.'],
      heldSince: null,
      replan: null,
    })
    expect(foldAll([created(), asked, { ...made, text: null }]).personSaid).toEqual([])
    expect(foldAll([created(), made]).decided?.label).toBe('other')
  })

  test('on the plan lets it go, or has it changed; any other leaves it as it is', () => {
    const decidedBy = (change: Partial<EventOf<'decision-made'>>) => {
      const { taskPlan, replan } = foldAll([begun, planned, plan, { ...made, id: 'plan', text: null, ...change }])
      return [taskPlan?.isLetGo, replan]
    }
    expect(decidedBy({ choice: 'accept' })).toEqual([true, null])
    expect(decidedBy({ choice: 'change', text: 'The docs first.' })).toEqual([false, 'The docs first.'])
    expect(decidedBy({ choice: 'change' })).toEqual([false, null])
    expect(decidedBy({ choice: 'stop', text: 'No.' })).toEqual([false, null])
    expect(decidedBy({ id: 'way', choice: 'accept' })).toEqual([false, null])
    expect(foldAll([created(), plan, { ...made, id: 'plan', choice: 'accept' }]).taskPlan).toBeNull()
  })

  test('on the plan is made by a change of it that goes on by itself', () => {
    const replan: SessionEvent = { type: 'replan-asked', text: 'The docs first.', goesOn: true }
    const letGo = (...events: SessionEvent[]) => foldAll([begun, planned, ...events]).taskPlan?.isLetGo
    expect([letGo(plan, replan), letGo(replan), letGo({ ...asked, id: 'way' }, replan)]).toEqual([true, false, false])
    expect(foldAll([created(), plan, replan])).toMatchObject({
      taskPlan: null,
      replan: 'The docs first.',
      decision: null,
    })
    expect(foldAll([begun, part(1, 'orchestration'), replan])).toMatchObject({
      running: { isInterrupted: true },
      pausedAt: null,
    })
  })
})

describe('the plan of a build', () => {
  const judged = (verdict: EventOf<'task-judged'>['verdict'], more: object = {}): SessionEvent => ({
    ...sampleEvents['task-judged'],
    verdict,
    detail: null,
    ...more,
  })
  const taskAfter = (...events: SessionEvent[]) => foldAll([begun, planned, ...events]).taskPlan?.tasks[1]
  const given = sampleEvents['agent-started']
  const done = sampleEvents['agent-ended']

  test.each<[string, readonly SessionEvent[], object]>([
    ['reopened', [judged('done'), judged('reopened')], { done: false }],
    ['done', [judged('parked'), judged('done')], { done: true, parked: null }],
    ['failed', [judged('failed')], { failures: 1, failedIn: 2 }],
    ['refused', [judged('refused')], { failures: 1, failedIn: 2 }],
    ['parked', [judged('parked')], { failures: 1, parked: 'It failed too often.' }],
    ['put back', [judged('put-back', { name: 'x' })], { name: 'Create homepage component', failures: 0 }],
    ['moved out of tests', [judged('changed', { phase: 'Testing' }), judged('changed')], { wasMovedFromGates: true }],
    ['moved on', [judged('changed', { phase: 'Planning' })], { wasMovedFromGates: false, phase: 'Planning' }],
    ['moved into tests', [judged('changed', { phase: 'Testing' })], { wasMovedFromGates: false }],
    [
      'edited by a person',
      [judged('changed', { phase: 'Testing' }), judged('changed'), judged('edited')],
      { wasMovedFromGates: false },
    ],
    ['new', [], { wasMovedFromGates: false, workedIn: 0, givenTo: {} }],
    ['worked on', [given, done], { workedIn: 2, givenTo: { 'frontend-dev': 1 }, failures: 0 }],
    ['worked on twice', [given, done, given, done], { givenTo: { 'frontend-dev': 2 }, failures: 1 }],
    ['worked on in part', [{ ...given, tasks: ['T2.1'] }, done], { workedIn: 2, givenTo: {} }],
    ['another', [{ ...given, tasks: ['T9'] }, done], { workedIn: 0 }],
    ['broken off', [given, { ...done, status: 'error' }], { workedIn: 0 }],
    ['of another instance', [given, { ...done, instance: 'other' }], { workedIn: 0 }],
    ['tried again', [judged('parked'), over, resumed()], { failures: 0, parked: null }],
  ])('has a task that is %s', (_, events, task) => {
    expect(taskAfter(...events)).toMatchObject(task)
  })

  test('knows the agents at work, and what they were asked for in a line', () => {
    const other: SessionEvent = { ...given, instance: 'other', request: '  T1:\n\n go  on ' }
    const { agents } = foldAll([begun, planned, given, other, done])
    expect(agents).toMatchObject([{ instance: 'other', request: 'T1: go on' }])
  })

  test('is judged until a round may have changed it', () => {
    const isJudged = (...events: SessionEvent[]) => foldAll([begun, planned, ...events]).taskPlan?.judged
    expect([isJudged(), isJudged(part(2, 'orchestration'), ended(2, worked))]).toEqual([true, false])
    expect([isJudged(part(2, 'summary'), ended(2, worked)), isJudged(started(2), ended(2, worked))]).toEqual([
      true,
      false,
    ])
    expect([
      isJudged(over, resumed()),
      foldAll([begun, sampleEvents['plan-refused'], over, resumed()]).taskPlan?.judged,
    ]).toEqual([true, false])
    expect(isJudged(part(2, 'orchestration'), ended(2, worked), over, resumed())).toBe(false)
  })

  test('knows which gates have passed, and what broke its file', () => {
    const gate = (change: object): SessionEvent => ({ ...sampleEvents['gate-ended'], ...change })
    const passed = (...events: SessionEvent[]) => foldAll([begun, ...events]).taskPlan?.passedGates
    const good = gate({ status: 'passed' })
    expect(passed(gate({}), good, good, gate({ gate: 'lint', status: 'flaky' }))).toEqual(['tests', 'lint'])
    const broken = sampleEvents['memory-broken']
    const problem = { ...broken.problem, file: 'MAIN.md' as const }
    const why = (event: SessionEvent) => foldAll([begun, planned, event]).taskPlan?.broken
    expect([why(broken), why({ ...broken, problem })]).toEqual(['line 3 is not JSON.', null])
  })

  test('is let go by who lets a session go on that holds for it, and by nothing else', () => {
    const held: SessionEvent = { type: 'held' }
    const isLetGo = (...events: SessionEvent[]) => foldAll([begun, planned, paused, ...events]).taskPlan?.isLetGo
    const goesOn: SessionEvent = { type: 'unpaused' }
    expect([isLetGo(held, goesOn), isLetGo(held, { type: 'unpaused', by: 'default' } as SessionEvent)]).toEqual([
      true,
      false,
    ])
    expect([isLetGo(part(2, 'summary'), goesOn), isLetGo(held, sampleEvents['replan-asked'], goesOn)]).toEqual([
      false,
      false,
    ])
  })

  test('is none where its template has none, whatever is said of one', () => {
    const events = [
      planned,
      given,
      done,
      judged('done'),
      sampleEvents['memory-broken'],
      started(1),
      ended(1, worked),
      turn(1, 'A'),
      over,
      resumed(),
    ]
    expect(foldAll([created(), ...events]).taskPlan).toBeNull()
  })
})
