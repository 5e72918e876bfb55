import type { Finding, ReviewAnswer } from '../rules/review.ts'
import type {
  ClaimEvent,
  EventOf,
  FileEvent,
  LifecycleEvent,
  PlanEvent,
  Recorded,
  RoundEvent,
  RunOverrides,
  SessionEvent,
} from './events.ts'
import type { Item } from './items.ts'
import {
  type Gate,
  type GateResult,
  type OutcomeHint,
  type RoundOutcome,
  type SessionLimits,
  type SessionOutcome,
  USES_UP_A_ROUND,
  type WaitReason,
} from './outcome.ts'

/** Whether a value from a journal is what is expected. */
type Check = (value: unknown) => boolean
/** What is expected of the fields of an object. */
type Fields = Readonly<Record<string, Check>>
/** Checks of the fields of `T`; those that nothing depends on are left out. */
type FieldsOf<T> = { readonly [K in keyof T]?: Check }
/** A shape for each event of a union. */
type ShapesOf<E extends { type: string }> = { readonly [T in E['type']]: FieldsOf<Extract<E, { type: T }>> }

const text: Check = value => typeof value === 'string'
const number: Check = value => typeof value === 'number'
const flag: Check = value => typeof value === 'boolean'
const moment: Check = value => typeof value === 'string' && !Number.isNaN(Date.parse(value))
const nullOr =
  (check: Check): Check =>
  value =>
    value === null || check(value)
const missingOr =
  (check: Check): Check =>
  value =>
    value === undefined || check(value)
const listOf =
  (check: Check): Check =>
  value =>
    Array.isArray(value) && value.every(check)
const oneOf =
  (...values: string[]): Check =>
  value =>
    typeof value === 'string' && values.includes(value)
const fields =
  (shape: Fields): Check =>
  value =>
    isObject(value) && hasFields(value, shape)
/** An object whose `key` says which of the shapes it has. */
const variant =
  (key: string, shapes: Readonly<Record<string, Fields>>): Check =>
  value => {
    const kind = isObject(value) ? value[key] : null
    if (!isObject(value) || typeof kind !== 'string' || !Object.hasOwn(shapes, kind)) return false
    return hasFields(value, shapes[kind] ?? {})
  }

/** Whether an object has in each field of the shape what is expected there. */
function hasFields(value: Readonly<Record<string, unknown>>, shape: Fields): boolean {
  for (const name in shape) if (shape[name]?.(value[name]) === false) return false
  return true
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Of `TokenCounts`. */
const counts = fields({ input: number, cachedInput: number, output: number, reasoning: number, total: number })

/** Of `RoundOutcome`. */
const outcomeOfRound = fields({
  class: oneOf(...Object.keys(USES_UP_A_ROUND)),
  message: nullOr(text),
  retryAt: missingOr(number),
})

const limits = fields({
  rounds: missingOr(nullOr(number)),
  timeMs: missingOr(nullOr(number)),
  tokens: missingOr(nullOr(number)),
})
const said = missingOr(
  fields({
    sandbox: missingOr(text),
    network: missingOr(flag),
    model: missingOr(text),
    effort: missingOr(text),
    maxUsage: missingOr(number),
    maxWaitMs: missingOr(number),
    keepAwake: missingOr(flag),
    verify: missingOr(listOf(text)),
    review: missingOr(flag),
  } satisfies FieldsOf<RunOverrides>),
)
const gates = missingOr(
  listOf(
    fields({
      name: text,
      run: text,
      timeoutMs: number,
      required: flag,
      network: flag,
      protect: listOf(text),
      everyRound: flag,
    } satisfies FieldsOf<Gate>),
  ),
)
const review = missingOr(nullOr(fields({ model: nullOr(text), effort: nullOr(text) })))
const why = oneOf('nothing-changed', 'same-refusal')

const OUTCOMES: { readonly [K in SessionOutcome['kind']]: FieldsOf<Extract<SessionOutcome, { kind: K }>> } = {
  done: { verified: flag },
  limit: { limit: oneOf('rounds', 'time', 'tokens') },
  // `upgradeEvent` checks the hint: one of another version is replaced, and the event stays.
  'needs-person': { reason: text },
  stalled: { rounds: number, why },
  interrupted: { by: text },
}

const HINTS: { readonly [K in OutcomeHint['do']]: FieldsOf<Extract<OutcomeHint, { do: K }>> } = {
  'reword-goal': {},
  'check-codex': {},
  'add-credit': {},
  'log-in': {},
  'mend-codex-configuration': {},
  'mend-cause': { since: moment },
  resume: { session: text, at: moment },
  'read-reviews': { gatesPass: flag },
  'mend-plan': { files: listOf(text), more: flag },
  'add-tasks': { file: text },
  'mend-parked-tasks': { file: text },
  'free-disk-space': {},
  say: { text },
}

/** Whether a value from a journal is a hint that this version knows. */
function isOutcomeHint(value: unknown): value is OutcomeHint {
  return variant('do', HINTS)(value)
}

/** The shapes of the events of a session as a whole. */
const LIFECYCLE_SHAPES: ShapesOf<LifecycleEvent> = {
  'session-created': {
    goal: text,
    template: text,
    directory: text,
    limits,
    sandbox: text,
    network: flag,
    model: nullOr(text),
    effort: nullOr(text),
    overrides: listOf(text),
    queued: nullOr(text),
    said,
    host: missingOr(text),
    gates,
    review,
    protectFrom: missingOr(text),
    asksPlan: missingOr(flag),
  },
  'session-resumed': { limits, said, gates, review, host: missingOr(text) },
  'keep-awake': { by: nullOr(text), problem: nullOr(text) },
  waiting: { cause: outcomeOfRound, until: moment },
  'wait-ended': { reason: oneOf('over', 'retry', 'stopped') },
  'stop-asked': { now: flag },
  paused: {},
  held: {},
  unpaused: {},
  'interrupt-asked': {},
  'skip-asked': {},
  'replan-asked': { text },
  replanned: { round: number, files: listOf(fields({ file: text, diff: text })) },
  stuck: { rounds: number, why, remedy: oneOf('another-way', 'more-effort') },
  'session-ended': {
    outcome: variant('kind', OUTCOMES),
    exitCode: number,
    rounds: number,
    tokens: number,
    durationMs: number,
  },
}

const status = oneOf('running', 'completed', 'failed', 'declined')
const durationMs = nullOr(number)

/** The shapes of what codex did, by kind. */
const ITEM_SHAPES: { readonly [K in Item['kind']]: FieldsOf<Extract<Item, { kind: K }>> } = {
  'user-message': {},
  'agent-message': { text },
  reasoning: { text },
  command: { command: text, status, exitCode: nullOr(number), durationMs, output: text },
  'file-change': {
    status,
    changes: listOf(
      fields({ path: text, change: oneOf('add', 'update', 'delete', 'move'), movedTo: nullOr(text), diff: text }),
    ),
  },
  plan: { text },
  'web-search': { query: text },
  'mcp-tool-call': { server: text, tool: text, status, durationMs, error: nullOr(text) },
  'tool-call': { tool: text, status, durationMs },
  'sub-agent': { action: text, status, prompt: nullOr(text), threads: listOf(text) },
  image: { path: nullOr(text) },
  compaction: {},
  unknown: { codexType: text },
}

const window = fields({ usedPercent: number, windowMinutes: nullOr(number), resetsAt: nullOr(number) })
const part = missingOr(text)

/** The shapes of the events of a round. */
const ROUND_SHAPES: ShapesOf<RoundEvent> = {
  'round-started': { round: number, agent: text, engine: text, codex: text, model: nullOr(text), part },
  'turn-started': { thread: text, turn: text, model: missingOr(text), effort: missingOr(nullOr(text)) },
  'item-completed': { item: variant('kind', ITEM_SHAPES), instance: missingOr(text) },
  'plan-updated': { steps: listOf(fields({ step: text, status: oneOf('pending', 'in-progress', 'completed') })) },
  usage: { thread: text, total: counts, last: counts, contextWindow: nullOr(number) },
  limits: { primary: nullOr(window), secondary: nullOr(window), credits: missingOr(flag) },
  'model-rerouted': { from: text, to: text, reason: text },
  'request-answered': { method: text, subject: text, answer: text },
  'question-asked': { round: number, question: text, text, options: listOf(text), assumption: text },
  steered: { text, delivered: flag },
  warning: { message: text },
  error: { message: text, details: nullOr(text), willRetry: flag, waitsForNetwork: missingOr(flag) },
  'turn-continued': { cause: outcomeOfRound },
  'winding-down': { limit: oneOf('time', 'tokens', 'usage'), graceMs: number },
  'machine-slept': { ms: number },
  'round-ended': {
    round: number,
    outcome: outcomeOfRound,
    counts: flag,
    durationMs: number,
    tokens: nullOr(counts),
    treeBefore: text,
    treeAfter: text,
    changed: listOf(text),
    changedCount: number,
    memory: missingOr(text),
    tasks: missingOr(fields({ done: number, total: number, left: missingOr(listOf(text)) })),
  },
}

const when = oneOf('before', 'after-round', 'tasks', 'claim')
const gateResult = {
  gate: text,
  status: oneOf('passed', 'flaky', 'failed', 'timed-out', 'not-started', 'broken-off'),
  exitCode: nullOr(number),
  durationMs: number,
  output: text,
  problem: nullOr(text),
  tree: text,
  changed: listOf(text),
  changedCount: number,
} satisfies FieldsOf<GateResult>
const findings = listOf(
  fields({
    severity: oneOf('critical', 'major', 'minor'),
    file: nullOr(text),
    line: nullOr(number),
    problem: text,
    mend: text,
  } satisfies FieldsOf<Finding>),
)

/** The shapes of the events of a done claim. */
const CLAIM_SHAPES: ShapesOf<ClaimEvent> = {
  'gate-started': { round: number, when, gate: text },
  'gate-ended': { round: number, when, treeAfter: missingOr(text), ...gateResult },
  'done-nominated': { by: listOf(text), tree: missingOr(text) },
  'review-started': { review: number, causes: listOf(text), model: nullOr(text), effort: nullOr(text) },
  'review-ended': {
    review: number,
    outcome: outcomeOfRound,
    answer: nullOr(
      fields({ verdict: oneOf('agreed', 'findings'), summary: text, findings } satisfies FieldsOf<ReviewAnswer>),
    ),
    repeated: findings,
    tree: text,
    durationMs: number,
    tokens: nullOr(counts),
  },
  'done-refused': { reason: text, detail: text },
  'done-accepted': { tree: text, verified: missingOr(flag) },
}

/** The shapes of the events of the files. */
const FILE_SHAPES: ShapesOf<FileEvent> = {
  'memory-broken': {
    problem: fields({ file: text, problem: text, setAside: nullOr(text), restored: flag }),
  },
  'repository-restored': { paths: listOf(text), setAside: nullOr(text) },
  savepoint: {
    round: number,
    commit: text,
    tree: text,
    changes: fields({
      files: number,
      added: number,
      removed: number,
      paths: listOf(fields({ path: text, added: nullOr(number), removed: nullOr(number) })),
    }),
    head: nullOr(text),
    commits: listOf(fields({ commit: text, subject: text })),
  },
  'settings-changed': { round: number },
  'protected-changed': {
    round: number,
    files: listOf(fields({ path: text, how: oneOf('changed', 'deleted', 'skipped'), gates: listOf(text) })),
    count: number,
  },
}

/** The shapes of the events of a plan. */
const PLAN_SHAPES: ShapesOf<PlanEvent> = {
  'plan-refused': { round: number, problem: text },
  'plan-ready': { round: number, tasks: listOf(fields({ id: text, name: text, phase: text })), agents: listOf(text) },
  'agent-started': {
    round: number,
    instance: text,
    agent: text,
    tasks: listOf(text),
    request: text,
    door: oneOf('tool', 'command-line'),
    parent: nullOr(text),
    model: nullOr(text),
    effort: nullOr(text),
    paths: nullOr(listOf(text)),
  },
  'agent-ended': {
    round: number,
    instance: text,
    status: oneOf('completed', 'error', 'terminated'),
    result: text,
    durationMs: number,
    tokens: nullOr(counts),
  },
  'task-judged': {
    round: number,
    task: text,
    name: text,
    phase: nullOr(text),
    verdict: oneOf(
      'done',
      'refused',
      'failed',
      'reopened',
      'parked',
      'added',
      'removed',
      'put-back',
      'changed',
      'edited',
    ),
    detail: nullOr(text),
  },
  'tasks-judged': { round: number },
}

/**
 * Whether an object from a journal has what its type promises, as far as something depends on it: a line that was
 * damaged or written by hand is no event, and must not look like a bug of who reads it. Fields that only some versions
 * write (`upgradeEvent`) may be missing. False for a type that this version does not know.
 */
export function isEvent(value: Readonly<Record<string, unknown>>): boolean {
  const { type, at } = value
  if (typeof type !== 'string' || !moment(at)) return false
  return Object.hasOwn(SHAPES, type) && hasFields(value, SHAPES[type as SessionEvent['type']])
}

const SHAPES: ShapesOf<SessionEvent> = {
  ...LIFECYCLE_SHAPES,
  ...ROUND_SHAPES,
  ...FILE_SHAPES,
  ...PLAN_SHAPES,
  ...CLAIM_SHAPES,
}

/**
 * An event of any version as this one writes it: fields that an earlier version did not write get a value that says
 * nothing, and what it said in a sentence becomes data. Pure.
 */
export function upgradeEvent(event: Recorded): Recorded {
  switch (event.type) {
    case 'session-created':
    case 'session-resumed':
      return { ...event, limits: { ...NO_LIMITS, ...event.limits }, said: event.said ?? {}, host: event.host ?? '' }
    case 'round-ended':
      // Unlike that of any other round: nothing is known of the two.
      return event.memory === undefined ? { ...event, memory: event.at } : event
    case 'waiting':
      return { ...event, reason: (event.reason as WaitReason | undefined) ?? reasonOfWait(event.cause) }
    case 'warning': {
      const { message, ...rest } = event
      const round = roundOfSettingsChange(event)
      return round === null ? event : { ...rest, type: 'settings-changed', round }
    }
    case 'session-ended':
      return event.outcome.kind === 'needs-person'
        ? { ...event, outcome: { ...event.outcome, hint: hintOf(event.outcome.hint) } }
        : event
    default:
      return event
  }
}

const NO_LIMITS: SessionLimits = { rounds: null, timeMs: null, tokens: null }

/** Why a session waited, by the sentence that an earlier version gave as the cause. */
function reasonOfWait({ class: end, message }: RoundOutcome): WaitReason {
  if (end !== 'window' || message === null) return 'round-failed'
  if (/^\d.* % of it are used, and --max-usage is \d.* %\.$/.test(message)) return 'max-usage'
  return message === 'The usage limit is reached.' ? 'usage-limit' : 'round-failed'
}

/** The hint as data: a sentence of an earlier version as `say`; null for one that this version does not know. */
function hintOf(hint: unknown): OutcomeHint | null {
  if (typeof hint === 'string') return { do: 'say', text: hint }
  return isOutcomeHint(hint) ? hint : null
}

/** The round of which an earlier version said in a warning that it changed the project's settings; null if it did not. */
function roundOfSettingsChange({ round, message }: EventOf<'warning'>): number | null {
  const changed = /^Round (\d{1,9}) changed codemachine\.toml; what it says now counts from the next run on\.$/.exec(
    message,
  )
  return round !== null || changed === null ? null : Number(changed[1])
}
