import { FREE_SPACE, unreachable } from '../../base/errors.ts'
import type { RecordedOf, StallRemedy } from '../../core/events/events.ts'
import type {
  EndedBy,
  OutcomeHint,
  RoundOutcome,
  SessionLimits,
  SessionOutcome,
  StallReason,
  UsageWindow,
  WaitReason,
  WindDownLimit,
} from '../../core/events/outcome.ts'
import type { Cost } from '../../core/rules/cost.ts'
import type { HoldEnd } from '../../core/rules/decision.ts'
import type { Forecast } from '../../core/rules/forecast.ts'
import type { SessionState } from '../../core/state/state.ts'
import { here } from './commands.ts'
import { isAccessRefused, type Tone, wordsForCause } from './names.ts'
import {
  formatCost,
  formatCount,
  formatCountdown,
  formatDuration,
  formatMoment,
  formatSpan,
  formatTokens,
  shortNumber,
} from './numbers.ts'
import { hintForDone, type ProvedState, wordsForDone } from './proof.ts'
import { oneLine } from './safe-text.ts'

const REASON_CHARS = 2000

const LIMIT_REACHED = {
  rounds: 'all rounds are used up',
  time: 'the time is used up',
  tokens: 'the tokens are used up',
  cost: 'the cost limit is reached',
}

/** A session's outcome in words. `hint`: a person's possible action; null: none. */
export interface OutcomeInWords {
  short: string
  text: string
  hint: string | null
  tone: Tone
}

/**
 * Describes a session's outcome for a person.
 * @param state the ended session, which says how it was verified; left out: not known
 */
export function describeOutcome(outcome: SessionOutcome, state?: ProvedState): OutcomeInWords {
  switch (outcome.kind) {
    case 'done': {
      const proof = outcome.proof ?? (outcome.verified ? 'gates' : 'none')
      const short = DONE[proof]
      const why = wordsForDone(proof, state)
      const text = why === '' ? short : `${short}: ${why}`
      return { short, text, hint: hintForDone(proof, state), tone: proof === 'none' ? 'warning' : 'good' }
    }
    case 'answered':
      return {
        short: 'answered',
        text: 'answered; the agent claimed nothing, and nothing was proved',
        hint: null,
        tone: 'good',
      }
    case 'replayed':
      return {
        short: 'replayed',
        text: 'replayed: a replay never counts as done',
        hint: null,
        tone: 'warning',
      }
    case 'planned':
      return {
        short: 'planned',
        text: `planned: the ${outcome.what ?? 'plan'} is accepted, but not carried out yet`,
        hint: null,
        tone: 'good',
      }
    case 'limit':
      return {
        short: 'limit reached',
        text: `limit reached: ${LIMIT_REACHED[outcome.limit]}`,
        hint: null,
        tone: 'warning',
      }
    case 'needs-person': {
      const hint = outcome.hint === null ? null : oneLine(wordsForHint(outcome.hint), REASON_CHARS)
      return {
        short: 'needs a person',
        text: `needs a person: ${oneLine(outcome.reason, REASON_CHARS)}`,
        hint,
        tone: 'bad',
      }
    }
    case 'stalled':
      return {
        short: 'stalled',
        text: `stalled: ${wordsForStall(outcome.why, outcome.rounds)}, and nothing that codemachine tried helped`,
        hint: 'Find the cause with codemachine logs. Remove it, or write in MAIN.md what the agent should try; then codemachine resume.',
        tone: 'bad',
      }
    case 'interrupted':
      return describeInterruption(outcome.by)
    default:
      return unreachable(outcome)
  }
}

const DONE = { proved: 'done and proved', gates: 'done, gates pass', none: 'done, not verified' } as const

/** Returns sentences on what a person can do in a shell. Their texts may be foreign: show them through `oneLine`. */
export function wordsForHint(hint: OutcomeHint): string {
  switch (hint.do) {
    case 'reword-goal':
      return `The model refused three rounds in a row. Reword the goal, or correct the files that it refers to; ${THEN_RESUME}`
    case 'choose-model':
      return `The model did not answer in the required form. Choose another model (--model), or reword the goal; ${THEN_RESUME}`
    case 'check-codex':
    case 'add-credit':
    case 'mend-access':
    case 'mend-codex-configuration':
      return `${MENDS[hint.do]}; ${THEN_RESUME}`
    case 'mend-sandbox':
      return `${hint.mend.replace(/\.$/, '')}; ${THEN_RESUME}`
    case 'log-in':
      return `Log in with codemachine login; ${THEN_RESUME}`
    case 'mend-provider':
      return `${mendProvider(hint)}; then codemachine resume continues. To continue without ${hint.provider}: codemachine resume --provider codex`
    case 'mend-cause':
      return `${failedSince(hint)}. Fix the cause; then codemachine resume continues.`
    case 'resume':
      return `${tooLongWait(hint)}; then codemachine resume continues.`
    case 'read-reviews':
      return `${hint.gatesPass ? 'Every required gate passes. ' : ''}Read the review (codemachine report). codemachine resume continues, with new reviews.`
    case 'mend-plan':
      return `Make the specification clearer, or correct ${hint.files.join(', ')}${hint.more ? ' and others' : ''} by hand; ${THEN_RESUME}`
    case 'add-tasks':
      return `Add tasks to ${hint.file}, then codemachine resume; or start again with codemachine start.`
    case 'mend-parked-tasks':
      return `Remove the obstacle, or remove the task from ${hint.file}; codemachine resume tries it again.`
    case 'free-disk-space':
      return FREE_SPACE
    case 'decide':
      return hint.outOfTime
        ? `The time was used up before anybody decided. To be asked again: codemachine resume ${hint.session}, with a longer --max-time.`
        : `Nobody decided in time. To be asked again: codemachine resume ${hint.session}.`
    case 'secret':
      return `To continue: ${hint.keys.map(key => `codemachine secret set ${key}${here(hint.directory)}`).join('; ')}; codemachine resume${here(hint.directory)}`
    case 'network':
      return `codemachine resume --network${here(hint.directory)} continues with the network.`
    case 'say':
      return hint.text
    default:
      return unreachable(hint)
  }
}

const THEN_RESUME = 'then codemachine resume continues.'

const SEE_ACCESS = 'Check if the account, its rights, and a proxy or VPN let codex in'

/** What to fix before a session is resumed, or an agent called again; without a full stop. */
const MENDS = {
  'check-codex': 'Codex crashed three times in a row before it did anything. codemachine doctor checks codex',
  'add-credit': 'Add credit, or use another account',
  'mend-access': `The server refused access three times in a row (HTTP 403). ${SEE_ACCESS}`,
  'mend-codex-configuration': 'Fix the codex configuration (codemachine doctor checks it)',
} satisfies Partial<Record<OutcomeHint['do'], string>>

function mendProvider({ provider }: { provider: string }): string {
  return `Fix that (to test ${provider}: codemachine doctor)`
}

/**
 * Returns sentences for the caller of an agent whose call needed a person: like `wordsForHint`, but nobody resumes a call.
 * Null: its reason says everything. `cause`: how its last round ended; `waits`: whether it may wait.
 */
export function wordsForCallHint(
  hint: OutcomeHint,
  { cause, waits }: { cause: RoundOutcome | null; waits: boolean },
): string | null {
  const remedy = remedyOfCall(hint)
  if (remedy !== null) return `${remedy}.`
  const isRefused = cause !== null && isAccessRefused(cause)
  const why = waits ? whyNoLonger(hint) : null
  const sentences = [why, isRefused ? `The server refused access (HTTP 403). ${SEE_ACCESS}.` : null]
  return sentences.filter(sentence => sentence !== null).join(' ') || null
}

function remedyOfCall(hint: OutcomeHint): string | null {
  switch (hint.do) {
    case 'check-codex':
    case 'add-credit':
    case 'mend-access':
    case 'mend-codex-configuration':
      return MENDS[hint.do]
    case 'mend-sandbox':
      return hint.mend.replace(/\.$/, '')
    case 'mend-provider':
      return mendProvider(hint)
    default:
      return null
  }
}

/** Returns a sentence why it waits no longer; null: that is not the reason. */
function whyNoLonger(hint: OutcomeHint): string | null {
  if (hint.do === 'mend-cause') return `${failedSince(hint)}.`
  return hint.do === 'resume' ? `${tooLongWait(hint)}.` : null
}

function failedSince({ since }: { since: string }): string {
  return `It has failed since ${localTime(since)}, and the next try would come later than --max-wait allows`
}

function tooLongWait({ at }: { at: string }): string {
  return `It would have to wait until ${localTime(at)}, longer than --max-wait allows`
}

/** This locale writes `2026-11-20 23:00:00`. */
function localTime(at: string): string {
  return new Date(at).toLocaleString('sv-SE').slice(0, 16)
}

function describeInterruption(by: EndedBy): OutcomeInWords {
  if (by === 'stop') return { short: 'stopped', text: 'stopped by a person', hint: null, tone: 'warning' }
  if (by === 'skip') return { short: 'skipped', text: 'skipped by a person', hint: null, tone: 'warning' }
  return { short: 'interrupted', text: `interrupted (${SIGNALS[by]})`, hint: null, tone: 'warning' }
}

const SIGNALS: Readonly<Record<Exclude<EndedBy, 'stop' | 'skip'>, string>> = {
  SIGINT: 'Ctrl+C',
  SIGTERM: 'SIGTERM',
  SIGHUP: 'its terminal was closed',
}

/** Says why a session counts as stalled: `no progress in 3 rounds`. */
export function wordsForStall(why: StallReason, rounds: number): string {
  switch (why) {
    case 'nothing-changed':
      return `no progress in ${formatCount(rounds, 'round')}`
    case 'same-refusal':
      return `the same claim was refused ${formatCount(rounds, 'time')}`
    default:
      return unreachable(why)
  }
}

const REMEDIES: Readonly<Record<StallRemedy, string>> = {
  'another-way': 'told to try another approach',
  'more-effort': 'given more reasoning effort',
}

/** Describes a remedy for the next round: `told to try another approach`. */
export function wordsForRemedy(remedy: StallRemedy): string {
  return REMEDIES[remedy]
}

/** Lists the limits of a session: `at most 20 rounds, 8 h, 5M tokens`. */
export function wordsForLimits({ rounds, timeMs, tokens, cost }: SessionLimits): string {
  const limits = [
    ...(rounds === null ? [] : [formatCount(rounds, 'round')]),
    ...(timeMs === null ? [] : [formatSpan(timeMs)]),
    ...(tokens === null ? [] : [formatTokens(tokens)]),
    ...(cost === undefined ? [] : [`a cost of ${formatCost(cost)}`]),
  ]
  return limits.length === 0 ? 'without a limit' : `at most ${limits.join(', ')}`
}

/**
 * Describes the cost, in the currency of the prices: `cost 3.20 of 10.00`, `cost 3.20, without 900 tokens that have no
 * price`.
 */
export function wordsForCost({ amount, unpriced }: Cost, { cost: most }: Pick<SessionLimits, 'cost'>): string {
  const of = most === undefined ? '' : ` of ${formatCost(most)}`
  return `cost ${formatCost(amount)}${of}${unpriced === 0 ? '' : `, without ${formatTokens(unpriced)} that have no price`}`
}

/** Describes what a session used: `3 rounds, 2h05m, 45.2k tokens`. */
export function wordsForSpent({ rounds, durationMs, tokens }: RecordedOf<'session-ended'>): string {
  return `${formatCount(rounds, 'round')}, ${formatDuration(durationMs)}, ${formatTokens(tokens)}`
}

/** Says `about 3 more rounds in this usage window, then a wait until 05:02`, as seen at the time `now`; both Unix time, ms. */
export function wordsForForecast({ rounds, until }: Forecast, now: number): string {
  const wait = `a wait until ${formatMoment(until, now)}`
  if (rounds === 0) return `no more rounds in this usage window: ${wait} comes next`
  return `about ${rounds} more round${rounds === 1 ? '' : 's'} in this usage window, then ${wait}`
}

/** Says how much time is used: `1 h 2 min of 8 h`. */
export function wordsForTimeUsed(ms: number, { timeMs }: SessionLimits): string {
  return timeMs === null ? formatSpan(ms) : `${formatSpan(ms)} of ${formatSpan(timeMs)}`
}

/** Says how many tokens are used: `1.2M of 5M tokens`. */
export function wordsForTokensUsed(used: number, { tokens }: SessionLimits): string {
  return tokens === null ? formatTokens(used) : `${shortNumber(used)} of ${formatTokens(tokens)}`
}

/** Describes a wait as seen at the time `now` (both Unix time, ms): `until 05:02, 3 h 10 min from now (usage limit: …)`. */
export function wordsForWait(
  { until, cause, reason }: { until: number; cause: RoundOutcome; reason?: WaitReason | undefined },
  now: number,
): string {
  const left = until > now ? `${formatCountdown(until - now)} from now` : 'which is over'
  const most = reason === 'provider-away' ? 'at most ' : ''
  return `${most}until ${formatMoment(until, now)}, ${left} (${wordsForCause(cause)})`
}

/** Says when a hold ends by itself, and how: `continues by itself in 30 min, at 23:40`. Times are Unix time, ms. */
export function wordsForHoldEnd({ at, how }: HoldEnd, now: number): string {
  const when = `in ${formatCountdown(Math.max(0, at - now))}, at ${formatMoment(at, now)}`
  if (how === 'goes-on') return `continues by itself ${when}`
  return how === 'limit' ? `ends ${when}: its time is used up then` : `ends ${when}, and needs a person then`
}

/** Values of a session that limits measure. */
interface Used {
  limits: SessionLimits
  primaryWindow: UsageWindow | null
  secondaryWindow: UsageWindow | null
}

/** Says which limit was reached in the middle of a round: `8 h of time are used up`. */
export function wordsForWindDown(limit: WindDownLimit, { limits, primaryWindow, secondaryWindow }: Used): string {
  switch (limit) {
    case 'time':
      return limits.timeMs === null ? 'the time is used up' : `${formatSpan(limits.timeMs)} of time are used up`
    case 'tokens':
      return limits.tokens === null ? 'the tokens are used up' : `${formatTokens(limits.tokens)} are used up`
    case 'cost':
      return limits.cost === undefined ? 'the cost limit is reached' : `it has cost ${formatCost(limits.cost)}`
    case 'usage': {
      const percent = Math.max(primaryWindow?.usedPercent ?? 0, secondaryWindow?.usedPercent ?? 0)
      return percent === 0
        ? 'the usage limit reached your --max-usage'
        : `${Math.round(percent)} % of the usage limit is used, as much as --max-usage allows`
    }
    case 'round':
      return 'the time of this round is used up'
    default:
      return unreachable(limit)
  }
}

/** Returns the end of a session's wait: Unix time, ms; earlier if its time is used up before. Null: no wait. */
export function waitEndOf({
  waiting,
  limits,
  beganAt,
  workedMs,
}: Pick<SessionState, 'waiting' | 'limits' | 'beganAt' | 'workedMs'>): number | null {
  if (waiting === null) return null
  return limits.timeMs === null ? waiting.until : Math.min(waiting.until, beganAt + limits.timeMs - workedMs)
}

/** Activity of a running session. Asked to stop, it continues another one until its round has ended. */
export type Activity =
  | 'running'
  | 'waiting'
  | 'deciding'
  | 'paused'
  | 'waiting-for-network'
  | 'winding-down'
  | 'stopping'

/** Signs of the activity, as in SessionState. */
type Signs = Pick<
  SessionState,
  'running' | 'checking' | 'step' | 'waiting' | 'decision' | 'pausedAt' | 'offlineSince' | 'windingDown' | 'stopAsked'
>

/** Returns the activity of a running session: the first of these that applies. Pure. */
export function activityOf({
  running,
  checking,
  step,
  waiting,
  decision,
  pausedAt,
  offlineSince,
  windingDown,
  stopAsked,
}: Signs): Activity {
  if (waiting !== null) return 'waiting'
  if (decision !== null && running === null) return 'deciding'
  if (pausedAt !== null && running === null && checking === null && step === null) return 'paused'
  if (windingDown !== null) return 'winding-down'
  if (offlineSince !== null) return 'waiting-for-network'
  return stopAsked ? 'stopping' : 'running'
}
