import type { SessionEvent } from '../../../../src/core/events/events.ts'
import type { KillPoint } from '../../../support/kill-points.ts'

type AtEvent = Extract<KillPoint, { event: unknown }>
type Event = AtEvent['event']

/** Points of one session, struck one after the other. */
export type Chain = readonly KillPoint[]

function after(event: Event, n = 1, victim: KillPoint['victim'] = 'codemachine'): AtEvent {
  return { victim, event, when: 'after', n }
}

function before(event: Event, n = 1, victim: KillPoint['victim'] = 'codemachine'): AtEvent {
  return { victim, event, when: 'before', n }
}

function torn(event: Event, n = 1, victim: KillPoint['victim'] = 'codemachine'): AtEvent {
  return { victim, event, when: 'torn', n }
}

/** Three times in a row the first of its kind: after the line, in it, and before it. */
function threeTimes(event: Event): AtEvent[] {
  return [after(event), torn(event, 1, 'both'), before(event)]
}

/** Of items that the model makes. */
export const ITEMS = [
  'user-message',
  'reasoning',
  'agent-message',
  'web-search',
  'file-change',
  'command',
] as const satisfies readonly AtEvent['item'][]

/** After the line, in it, and before it, of items in turn: what is lost with one does not depend on its kind. */
const itemChains: readonly Chain[] = [0, 3].map(from =>
  [after('item-completed'), torn('item-completed'), before('item-completed')].flatMap((point, at) => {
    const item = ITEMS[from + at]
    return item === undefined ? [] : [{ ...point, item }]
  }),
)

const inTheSecondRound: Chain = [after('round-started', 2), after('turn-started', 1, 'both'), before('session-resumed')]
const whenDoneIsJudged: Chain = [torn('done-refused'), torn('done-accepted')]
const beforeItsName: Chain = ['MAIN.md', 'tasks.json', 'guard.json', 'traces.json'].map(file => ({
  victim: 'codemachine',
  file,
  n: 1,
}))
const codexInItsTurns: Chain = [after('usage', 1, 'codex'), after('usage', 3, 'codex')]

/** A few of all below: between two things, in a line, and codex alone. */
export const fewChains: readonly Chain[] = [inTheSecondRound, whenDoneIsJudged, codexInItsTurns.slice(0, 1)]

/** codemachine dies, alone or with its codex, in a session in which nothing else happens. */
export const quietChains: readonly Chain[] = [
  [before('session-created'), torn('session-created')],
  [after('session-created'), after('session-resumed'), torn('session-resumed')],
  [after('warning'), torn('warning'), before('warning')],
  threeTimes('round-started'),
  threeTimes('turn-started'),
  ...itemChains,
  threeTimes('plan-updated'),
  threeTimes('limits'),
  threeTimes('usage'),
  [after('usage', 2), after('usage', 3, 'both'), after('usage', 4)],
  threeTimes('round-ended'),
  threeTimes('savepoint'),
  inTheSecondRound,
  [after('done-nominated'), torn('done-nominated'), before('done-nominated')],
  [before('done-refused'), before('session-ended')],
  whenDoneIsJudged,
  [after('done-refused'), before('done-accepted'), after('done-accepted'), torn('session-ended')],
  [after('session-ended')],
]

/** It dies while something is on the disk only in part: while a git command runs, or before a file has its name. */
export const writingChains: readonly Chain[] = [
  ['ls-files', 'status', 'update-index', 'write-tree'].map(git => ({ victim: 'codemachine', git, n: 1 })),
  [
    { victim: 'both', git: 'diff-tree', n: 1 },
    { victim: 'both', git: 'status', n: 2 },
  ],
  // The names of savepoints.
  ['/000', '/001', '/001'].map((file, at) => ({ victim: at === 1 ? 'both' : 'codemachine', file, n: 1 })),
  beforeItsName,
]

/** It dies where more happens in a session; the name says what. */
export const eventfulChains = {
  busy: [after('waiting'), torn('wait-ended'), after('wait-ended', 1)],
  retrying: [after('error')],
  continued: [after('turn-continued', 1, 'both')],
  forceful: [after('request-answered'), torn('request-answered', 1, 'both')],
  meddling: [after('repository-restored')],
  unsettling: [after('settings-changed')],
  breaking: [after('memory-broken', 1, 'both')],
  narrowing: [after('goal-restored')],
  lingering: [{ ...after('item-completed', 2), item: 'agent-message' }],
  idle: [before('stuck'), after('stuck')],
  steered: [after('steered')],
  paused: [after('paused')],
  held: [after('held')],
  counted: [after('hold-until')],
  configured: [after('gate-configuration'), before('counter-proof'), after('counter-proof')],
  unpaused: [after('unpaused')],
  stopped: [after('stop-asked')],
  interrupted: [after('interrupt-asked')],
  skipped: [after('skip-asked')],
  replanned: [after('replan-asked'), before('replanned'), after('replanned', 1, 'both')],
  changed: [before('engine-changed'), torn('engine-changed'), after('engine-changed')],
  windingDown: [after('winding-down', 1, 'both')],
  keptAwake: [after('keep-awake')],
  asking: [torn('question-asked', 1, 'both'), after('question-asked')],
  gated: [
    after('gate-started'),
    torn('gate-ended'),
    after('gate-ended', 1),
    before('gate-started', 1),
    after('hook-started'),
    torn('hook-ended'),
    after('hook-ended'),
  ],
  reviewed: [
    after('protected-changed'),
    after('review-started'),
    { victim: 'codemachine', file: '1-review.json', n: 1 },
    after('answer-given'),
    torn('review-ended'),
    after('review-ended', 1),
  ],
  contracted: [
    after('contract-turn-started'),
    torn('contract-turn-ended', 1, 'both'),
    before('contract-drafted'),
    after('contract-drafted'),
    after('check-started'),
    torn('check-ended'),
    before('contract-frozen'),
    after('contract-frozen'),
  ],
  proved: [
    // The third is the first that runs after a round.
    after('check-started', 3),
    torn('check-ended'),
    after('contract-turn-started'),
    torn('contract-turn-ended'),
    before('controls-written'),
    after('controls-written'),
    torn('control-tried'),
    after('control-tried'),
  ],
} satisfies Record<string, Chain>

/** codex dies, and codemachine goes on by itself. */
export const codexChains: readonly Chain[] = [
  [after('round-started', 1, 'codex'), after('turn-started', 1, 'codex')],
  // Each in a session of its own: what a killed codex had said before is heard after its end.
  ...ITEMS.map(item => [{ ...after('item-completed', 1, 'codex'), item }]),
  [after('plan-updated', 1, 'codex'), after('limits', 2, 'codex')],
  codexInItsTurns,
  [after('usage', 4, 'codex')],
  [after('round-ended', 1, 'codex')],
  [after('done-nominated', 1, 'codex')],
  [after('done-refused', 1, 'codex')],
  [after('waiting', 1, 'codex')],
]

/**
 * Events that a session of this kind cannot be made to have: the machine would have to sleep, a person to change settings, the provider to reroute, a
 * team to build or to decide something, or the template to take steps. A contract is written and proved, but never dropped or
 * left (tests/session/contract.test.ts).
 */
const NOT_MADE: ReadonlySet<string> = new Set<SessionEvent['type']>([
  'machine-slept',
  'published',
  'session-moved',
  'settings-taken',
  'model-rerouted',
  'decision-asked',
  'decision-made',
  'step-started',
  'looked',
  'command-ran',
  'wrote',
  'noted',
  'state-entered',
  'kept',
  'gates-added',
  'scope-entered',
  'scope-left',
  'shell-ran',
  'secret-asked',
  'secret-set',
  'secret-confirmed',
  'answer-refused',
  'output-kept',
  'plan-refused',
  'plan-ready',
  'agent-started',
  'agent-ended',
  'task-judged',
  'tasks-judged',
  'contract-dropped',
  'contract-left',
])

/** Every type of event that can be made to happen; closed by the compiler. */
export const MADE: readonly string[] = Object.keys({
  'session-created': true,
  'session-resumed': true,
  'session-moved': true,
  'settings-taken': true,
  'keep-awake': true,
  'round-started': true,
  'turn-started': true,
  'item-completed': true,
  'plan-updated': true,
  usage: true,
  limits: true,
  'model-rerouted': true,
  'request-answered': true,
  'answer-given': true,
  'answer-refused': true,
  'output-kept': true,
  steered: true,
  warning: true,
  error: true,
  'turn-continued': true,
  'winding-down': true,
  'machine-slept': true,
  'round-ended': true,
  waiting: true,
  'wait-ended': true,
  'engine-changed': true,
  'stop-asked': true,
  paused: true,
  held: true,
  'hold-until': true,
  unpaused: true,
  'interrupt-asked': true,
  'skip-asked': true,
  'replan-asked': true,
  replanned: true,
  'decision-asked': true,
  'decision-made': true,
  stuck: true,
  'memory-broken': true,
  'goal-restored': true,
  'repository-restored': true,
  savepoint: true,
  'settings-changed': true,
  'protected-changed': true,
  'gate-configuration': true,
  'counter-proof': true,
  'step-started': true,
  looked: true,
  'command-ran': true,
  wrote: true,
  noted: true,
  'state-entered': true,
  kept: true,
  'gates-added': true,
  'scope-entered': true,
  'scope-left': true,
  'hook-started': true,
  'hook-ended': true,
  'shell-ran': true,
  'secret-asked': true,
  'secret-set': true,
  'secret-confirmed': true,
  'gate-started': true,
  'gate-ended': true,
  'question-asked': true,
  'plan-refused': true,
  'plan-ready': true,
  'agent-started': true,
  'agent-ended': true,
  'task-judged': true,
  'tasks-judged': true,
  'review-started': true,
  'review-ended': true,
  'done-nominated': true,
  'done-refused': true,
  'contract-turn-started': true,
  'contract-turn-ended': true,
  'contract-drafted': true,
  'contract-dropped': true,
  'contract-frozen': true,
  'contract-left': true,
  'check-started': true,
  'check-ended': true,
  'controls-written': true,
  'control-tried': true,
  'done-accepted': true,
  'session-ended': true,
  published: true,
} satisfies Record<SessionEvent['type'], true>).filter(type => !NOT_MADE.has(type))
