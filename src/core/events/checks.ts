import type { Finding, ReviewAnswer } from '../rules/review.ts'
import type {
  BuildEvent,
  ClaimEvent,
  FileEvent,
  LifecycleEvent,
  RoundEvent,
  RunOverrides,
  SessionEvent,
} from './events.ts'
import type { Item } from './items.ts'
import type { Gate, GateResult, RoundClass, SessionOutcome } from './outcome.ts'

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
  class: oneOf(
    ...Object.keys({
      worked: true,
      interrupted: true,
      'context-full': true,
      refused: true,
      window: true,
      throttle: true,
      network: true,
      quota: true,
      auth: true,
      config: true,
      silent: true,
      crashed: true,
    } satisfies Record<RoundClass, true>),
  ),
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
  'needs-person': { reason: text, hint: nullOr(text) },
  stalled: { rounds: number, why },
  interrupted: { by: text },
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
const part = missingOr(oneOf('team-building', 'orchestration', 'summary', 'last-look'))

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

/** The shapes of the events of a build. */
const BUILD_SHAPES: ShapesOf<BuildEvent> = {
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
  ...BUILD_SHAPES,
  ...CLAIM_SHAPES,
}
