import { unreachable } from '../base/errors.ts'
import type { Recorded, RefusalReason, SessionEvent, TokenCounts, UsageWindow } from './events.ts'
import type { RoundOutcome, SessionOutcome } from './outcome.ts'

/** A round that has ended. */
export interface EndedRound {
  round: number
  outcome: RoundOutcome
  durationMs: number
  tokens: TokenCounts | null
  treeBefore: string
  treeAfter: string
  changed: readonly string[]
  changedCount: number
}

/** A round at work. */
interface RunningRound {
  round: number
  /** Unix time, ms. */
  startedAt: number
  thread: string | null
  turn: string | null
  /** How many of the notices it was told with its input. */
  told: number
  /** What reached it while it worked, to be told again if the round does not count. */
  steered: readonly string[]
}

/** What became of the last done claim. */
export type Claim =
  | { state: 'none' }
  | { state: 'nominated'; by: readonly string[] }
  | { state: 'refused'; reason: RefusalReason; detail: string }
  | { state: 'accepted'; tree: string }

export interface PlanStep {
  step: string
  status: 'pending' | 'in-progress' | 'completed'
}

/** What a session has come to: the pure fold of its journal. Its size does not grow with the number of events. */
export interface SessionState {
  id: string
  goal: string
  template: string
  directory: string
  queued: string | null
  maxRounds: number
  sandbox: string
  network: boolean
  model: string | null
  effort: string | null
  overrides: readonly string[]
  /** Unix time, ms. */
  createdAt: number
  /** When it began or was last resumed; Unix time, ms. */
  beganAt: number
  /** How long it had been worked on before it was last resumed, ms. */
  workedMs: number
  /** Rounds that counted (docs/design.md, "What ends a round"). */
  roundsUsed: number
  running: RunningRound | null
  last: EndedRound | null
  /** Rounds in a row that failed in a way that uses up no round. */
  failuresInARow: number
  claim: Claim
  /** What the next round has to be told; what a round was told goes when that round has counted. */
  notices: readonly string[]
  plan: readonly PlanStep[]
  /** Tokens of the rounds that have ended. */
  tokensBefore: number
  /** Tokens of the running round's threads, its own and those of its sub-agents, as codex last reported them. */
  threadTokens: Readonly<Record<string, TokenCounts>>
  contextWindow: number | null
  contextTokens: number | null
  primaryWindow: UsageWindow | null
  secondaryWindow: UsageWindow | null
  waitingUntil: number | null
  ended: { outcome: SessionOutcome; exitCode: number; durationMs: number } | null
  /** Events folded. */
  events: number
  /** Unix time of the last event, ms. */
  updatedAt: number
}

const CUT_OFF = 'The work was cut off before it came to a stop. Look at its state before you go on.'

/** Tokens of the whole session so far, all threads. */
export function sessionTokens(state: SessionState): number {
  return state.tokensBefore + (roundTokens(state)?.total ?? 0)
}

/** Tokens of the running round, its sub-agents included; null if none were reported. */
export function roundTokens(state: SessionState): TokenCounts | null {
  const threads = Object.values(state.threadTokens)
  return threads.length === 0 ? null : threads.reduce(add)
}

function add(a: TokenCounts, b: TokenCounts): TokenCounts {
  return {
    input: a.input + b.input,
    cachedInput: a.cachedInput + b.cachedInput,
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
    total: a.total + b.total,
  }
}

/** A session before its first event. */
export function emptyState(id: string): SessionState {
  return {
    id,
    goal: '',
    template: '',
    directory: '',
    queued: null,
    maxRounds: 0,
    sandbox: '',
    network: false,
    model: null,
    effort: null,
    overrides: [],
    createdAt: 0,
    beganAt: 0,
    workedMs: 0,
    roundsUsed: 0,
    running: null,
    last: null,
    failuresInARow: 0,
    claim: { state: 'none' },
    notices: [],
    plan: [],
    tokensBefore: 0,
    threadTokens: {},
    contextWindow: null,
    contextTokens: null,
    primaryWindow: null,
    secondaryWindow: null,
    waitingUntil: null,
    ended: null,
    events: 0,
    updatedAt: 0,
  }
}

/** The state after one more event. Pure: no clock, file or process. */
export function fold(state: SessionState, event: Recorded): SessionState {
  const at = Date.parse(event.at)
  const next = apply(state, event, at)
  return next === state
    ? { ...state, events: state.events + 1, updatedAt: at }
    : { ...next, events: state.events + 1, updatedAt: at }
}

function apply(state: SessionState, event: SessionEvent, at: number): SessionState {
  switch (event.type) {
    case 'session-created':
      return {
        ...state,
        goal: event.goal,
        template: event.template,
        directory: event.directory,
        queued: event.queued,
        maxRounds: event.limits.rounds,
        sandbox: event.sandbox,
        network: event.network,
        model: event.model,
        effort: event.effort,
        overrides: event.overrides,
        createdAt: at,
        beganAt: at,
      }
    case 'session-resumed':
      return {
        ...state,
        maxRounds: event.limits.rounds,
        beganAt: at,
        workedMs: state.ended?.durationMs ?? state.workedMs + Math.max(0, state.updatedAt - state.beganAt),
        running: null,
        ended: null,
        waitingUntil: null,
        tokensBefore: sessionTokens(state),
        threadTokens: {},
        failuresInARow: 0,
        claim: { state: 'none' },
        notices: state.running === null ? state.notices : [...state.notices, ...state.running.steered, CUT_OFF],
      }
    case 'round-started':
      return {
        ...state,
        running: {
          round: event.round,
          startedAt: at,
          thread: null,
          turn: null,
          told: state.notices.length,
          steered: [],
        },
        claim: { state: 'none' },
        plan: [],
        waitingUntil: null,
      }
    case 'turn-started':
      return state.running
        ? {
            ...state,
            running: { ...state.running, thread: event.thread, turn: event.turn },
          }
        : state
    case 'usage':
      return {
        ...state,
        threadTokens: { ...state.threadTokens, [event.thread]: event.total },
        ...(event.thread === state.running?.thread
          ? { contextWindow: event.contextWindow, contextTokens: event.last.total }
          : {}),
      }
    case 'limits':
      return { ...state, primaryWindow: event.primary, secondaryWindow: event.secondary }
    case 'plan-updated':
      return { ...state, plan: event.steps }
    case 'round-ended':
      return endRound(state, event)
    case 'waiting':
      return { ...state, waitingUntil: Date.parse(event.until) }
    case 'steered':
      return steered(state, event)
    case 'memory-broken':
      return { ...state, notices: [...state.notices, memoryNotice(event.problem)] }
    case 'repository-restored':
      return {
        ...state,
        notices: [
          ...state.notices,
          `These files of the repository's own settings were changed and have been put back: ${event.paths.join(', ')}. Leave them as they are.`,
        ],
      }
    case 'done-nominated':
      return { ...state, claim: { state: 'nominated', by: event.by } }
    case 'done-refused':
      return {
        ...state,
        claim: { state: 'refused', reason: event.reason, detail: event.detail },
        notices: [...state.notices, `The work was claimed done and the claim was refused: ${event.detail}`],
      }
    case 'done-accepted':
      return { ...state, claim: { state: 'accepted', tree: event.tree } }
    case 'session-ended':
      return {
        ...state,
        running: null,
        waitingUntil: null,
        ended: { outcome: event.outcome, exitCode: event.exitCode, durationMs: event.durationMs },
      }
    case 'item-completed':
    case 'model-rerouted':
    case 'request-answered':
    case 'warning':
    case 'error':
      return state
    default:
      return unreachable(event)
  }
}

function endRound(state: SessionState, event: Extract<SessionEvent, { type: 'round-ended' }>): SessionState {
  const { told = 0, steered = [] } = state.running ?? {}
  return {
    ...state,
    running: null,
    last: event,
    roundsUsed: event.counts ? state.roundsUsed + 1 : state.roundsUsed,
    failuresInARow: event.counts ? 0 : state.failuresInARow + 1,
    notices: event.counts ? state.notices.slice(told) : [...state.notices, ...steered],
    tokensBefore: sessionTokens(state),
    threadTokens: {},
  }
}

function steered(state: SessionState, event: Extract<SessionEvent, { type: 'steered' }>): SessionState {
  const notice = `A person says: ${event.text}`
  if (!event.delivered) return { ...state, notices: [...state.notices, notice] }
  const { running } = state
  return running ? { ...state, running: { ...running, steered: [...running.steered, notice] } } : state
}

function memoryNotice(problem: Extract<SessionEvent, { type: 'memory-broken' }>['problem']): string {
  const kept = problem.setAside === null ? '' : ` What it held was kept as ${problem.setAside}.`
  const restored = problem.restored ? ' The last good version has been put back.' : ''
  return `${problem.file} could not be used: ${problem.problem}${kept}${restored} Bring it up to date first.`
}
