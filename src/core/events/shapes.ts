import {
  about,
  addedLater,
  checkedAs,
  fields,
  flag,
  listOf,
  literal,
  moment,
  nullOr,
  number,
  oneOf,
  optional,
  text,
  unchecked,
  variant,
} from './schema.ts'

// Shapes that several events share, or large ones. Their types are in `outcome.ts` and `items.ts`, which load no schema.

/** Token counts of one thread as codex reports them: absolute, cumulative over the thread. */
export const tokenCounts = fields({
  input: number,
  cachedInput: number,
  output: number,
  reasoning: number,
  total: number,
})

export const roundClass = oneOf(
  'worked',
  'interrupted',
  'context-full',
  'refused',
  'window',
  'throttle',
  'network',
  'quota',
  'auth',
  'config',
  'silent',
  'crashed',
)

/** Outcome of a round. */
export const roundOutcome = fields({
  class: about(
    roundClass,
    '`worked`, `interrupted`, `context-full`, `refused`, `window`, `throttle`, `network`, `quota`, `auth`, `config`, `silent` or `crashed`',
  ),
  message: about(nullOr(text), "codex's words, or `null`"),
  retryAt: about(
    optional(number),
    'when codex said that it may be tried again: Unix time in **ms**; left out if it did not say',
  ),
  status: about(
    optional(number),
    'for the class `network`: 403 if the server refused access, which may be permanent; left out otherwise',
  ),
})

/** A model or a reasoning effort. */
export const asAskedFor = about(nullOr(text), "as asked for; `null`: codex's own choice")

export const waitReason = oneOf('round-failed', 'usage-limit', 'max-usage', 'provider-away')

export const stallReason = oneOf('nothing-changed', 'same-refusal')

export const endedBy = oneOf('SIGINT', 'SIGTERM', 'SIGHUP', 'stop', 'skip')

/** Hint for a person whom a session needs. */
export const outcomeHint = variant('do', {
  'reword-goal': {},
  'choose-model': {},
  'check-codex': {},
  'add-credit': {},
  'log-in': {},
  'mend-access': {},
  'mend-codex-configuration': {},
  /** `mend`: a sentence for a person. */
  'mend-sandbox': { mend: text },
  'mend-provider': { provider: text },
  'mend-cause': { since: moment },
  resume: { session: text, at: moment },
  'read-reviews': { gatesPass: flag },
  'mend-plan': { files: listOf(text), more: flag },
  'add-tasks': { file: text },
  'mend-parked-tasks': { file: text },
  'free-disk-space': {},
  /** `outOfTime`: the session's time is used up, too. */
  decide: { session: text, title: text, outOfTime: optional(literal(true)) },
  /** Secrets of the project in this directory, an absolute path. */
  secret: { keys: listOf(text), directory: text },
  network: { directory: text },
  /** `network`: resume it with the network, which it needs and did not have. */
  say: { text, network: optional(literal(true)) },
})

/** Outcome of a session. */
export const sessionOutcome = variant('kind', {
  /** `proof`: `proved` (each contract sentence), `gates` (they pass), or `none`; left out: no contract, see `verified`. */
  done: { verified: flag, proof: optional(oneOf('proved', 'gates', 'none')) },
  /** A call has its answer. Nothing was claimed, and nothing was proved. */
  answered: {},
  /** A round was replayed from a recording, so the session cannot be done. */
  replayed: {},
  /** A plan was accepted, but not carried out yet. `what`: it is the session's contract. */
  planned: { what: optional(literal('contract')) },
  limit: { limit: oneOf('rounds', 'time', 'tokens', 'cost') },
  'needs-person': {
    reason: text,
    // `upgradeEvent` checks it: it replaces an unknown hint, and keeps the event.
    hint: unchecked(nullOr(outcomeHint)),
    /** Only the goal needs a fix; other sessions can continue. */
    goalOnly: optional(unchecked(literal(true))),
  },
  stalled: { rounds: number, why: stallReason },
  interrupted: { by: checkedAs(text, endedBy) },
})

export const sessionLimits = fields({
  rounds: about(addedLater(nullOr(number)), 'the most rounds it may take; `null`: as many as it needs'),
  timeMs: about(addedLater(nullOr(number)), 'how long it may be worked on; `null`: without end'),
  tokens: about(
    addedLater(nullOr(number)),
    'the most tokens that all its threads may use; `null`: as many as it needs',
  ),
  cost: about(optional(number), 'limit of its cost, in the currency of the prices; left out: none'),
})

/** Price of a model per million tokens. */
export const modelPrice = fields({ model: text, in: number, cached: number, out: number })

export const runAllowance = fields({
  limits: about(sessionLimits, 'limit for all sessions of the run together; `null`: none'),
  used: about(
    fields({ rounds: number, timeMs: number, tokens: number, cost: optional(number) }),
    'the part that its earlier sessions used',
  ),
  keepsUsual: about(
    optional(flag),
    "true if each session keeps the default number of rounds although another limit is set: a project's file set that limit while the run was under way",
  ),
})

export const usageWindow = fields({
  usedPercent: number,
  windowMinutes: nullOr(number),
  resetsAt: about(nullOr(number), 'Unix time, ms'),
})

/** Output of a step, stored whole in a file of the records. */
export const output = fields({
  n: about(number, 'its number in the session, from 1'),
  name: about(text, 'its kind, a word or two of the template'),
  file: about(text, 'its file in `outputs/`, beside the journal'),
  bytes: about(number, 'size of that file'),
  sha256: about(text, 'hash of that file, hex'),
  head: about(text, 'its first 400 characters'),
})

export const windDownLimit = oneOf('time', 'tokens', 'cost', 'usage', 'round')

/** A gate at the start of the session. */
export const gate = fields({
  name: about(text, 'its name; the command itself if nobody named it'),
  run: about(text, 'a line for a shell, run in the work directory'),
  timeoutMs: about(number, 'how long it may take'),
  required: about(flag, 'whether done waits for it; one that is not required is only reported'),
  network: about(flag, 'whether it may use the network; never more than the rounds may'),
  protect: about(listOf(text), 'globs, relative to the work directory, of the files that it is made of'),
  everyRound: about(flag, 'whether it runs after every round that worked, and not only when done is claimed'),
})

/** The part of the session that a gate, review or claim belongs to. */
export const ofScope = about(text, 'the [scope](#scope-entered) that it is of; left out: it is of the session itself')

export const gateTime = oneOf('before', 'after-round', 'tasks', 'claim', 'counter-proof', 'limit')

export const gateStatus = oneOf('passed', 'flaky', 'failed', 'timed-out', 'not-started', 'broken-off')

/** Fields of a gate's result. */
export const gateResult = {
  gate: about(text, 'its name'),
  status: about(
    gateStatus,
    '`passed`; `flaky`: it failed, then passed on the same files, in a second run or at a later claim; `failed`; `timed-out`; `not-started`: its program could not be started; `broken-off`: a person or the end of the session ended it, so its result is unknown',
  ),
  exitCode: about(nullOr(number), '`null` if it did not end by itself; of a flaky gate, the code of the failed run'),
  durationMs: number,
  output: about(text, 'its last lines of output, stdout and stderr, at most 4,000 characters'),
  problem: about(nullOr(text), 'why it could not run, a sentence; `null`: it ran'),
  tree: about(text, 'fingerprint of the work tree that it ran on'),
  changed: about(listOf(text), "what it changed in that tree itself, at most 50 paths; not taken for the agent's work"),
  changedCount: about(number, 'how many'),
  tests: about(optional(number), 'how many tests it says it ran, without skipped ones; left out: it does not say'),
}

export const gateResultSchema = fields(gateResult)

/** A fault that a reviewer wants fixed. */
export const finding = fields({
  severity: oneOf('critical', 'major', 'minor'),
  file: about(nullOr(text), 'relative to the work directory; `null` if it is about no file'),
  line: about(nullOr(number), 'from 1; `null` if it is about no line'),
  problem: text,
  mend: text,
})

const itemStatus = oneOf('running', 'completed', 'failed', 'declined')

/** A file that codex changed. */
const fileChange = fields({
  path: about(text, 'absolute path'),
  change: oneOf('add', 'update', 'delete', 'move'),
  movedTo: nullOr(text),
  diff: about(text, 'unified diff; for an added file its whole content. Bounded to 64 KiB'),
  lines: about(
    optional(fields({ added: number, removed: number })),
    'how many lines the whole diff adds and removes; left out: it is whole, or was kept before this was',
  ),
})

const id = unchecked(text)
/** Null: codex did not report it. */
const durationMs = nullOr(number)

/** One item of a turn of codex. */
export const item = variant('kind', {
  'user-message': { id, text: unchecked(text) },
  'agent-message': { id, text, phase: unchecked(nullOr(oneOf('commentary', 'final-answer'))) },
  reasoning: { id, text },
  command: {
    id,
    command: text,
    directory: unchecked(text),
    status: itemStatus,
    exitCode: nullOr(number),
    durationMs,
    output: about(text, 'stdout and stderr merged, the last 16 KiB'),
    /** Run time when the end of its round killed it; its status is `running`. Left out: it ended by itself. */
    cutOffMs: optional(number),
  },
  'file-change': {
    id,
    status: itemStatus,
    changes: about(
      listOf(fileChange),
      'at most 200 files and 256 Ki characters of diffs; then the last diff ends with how many more files there are',
    ),
  },
  plan: { id, text },
  'web-search': { id, query: text },
  'mcp-tool-call': { id, server: text, tool: text, status: itemStatus, durationMs, error: nullOr(text) },
  'tool-call': {
    id,
    tool: text,
    status: itemStatus,
    durationMs,
    command: about(optional(text), 'the line for a shell that it is to run, at most 2,000 characters; left out: none'),
  },
  'sub-agent': { id, action: text, status: itemStatus, prompt: nullOr(text), threads: listOf(text) },
  image: { id, path: nullOr(text) },
  compaction: { id },
  unknown: { id, codexType: text },
})
