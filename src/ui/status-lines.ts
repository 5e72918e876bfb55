import type { UsageWindow } from '../session/events.ts'
import type { SessionOutcome } from '../session/outcome.ts'
import type { Standing } from '../session/standing.ts'
import type { Claim, PlanStep } from '../session/state.ts'
import { describeOutcome } from './describe-outcome.ts'
import { describePlan } from './describe-plan.ts'
import { formatCount } from './format-count.ts'
import { formatDuration } from './format-duration.ts'
import { formatMoment } from './format-time.ts'
import { formatTokens } from './format-tokens.ts'
import { oneLine } from './safe-text.ts'

const GOAL_CHARS = 200
const TEXT_CHARS = 500

/** What goes on in a work directory. Times are ISO 8601 in UTC. */
export interface StatusReport {
  directory: string
  runner: { pid: number; host: string; since: string } | null
  /** The session that runs, or the last that did. */
  session: SessionReport | null
  /** Prompts that wait. */
  queued: number
}

/** How far a session is. */
export interface SessionReport {
  id: string
  goal: string
  standing: Standing
  outcome: SessionOutcome | null
  /** The round that runs; null between rounds. */
  round: { round: number; elapsedMs: number } | null
  roundsUsed: number
  maxRounds: number
  elapsedMs: number
  tokens: number
  /** The last thing that happened, as the log tells it. */
  last: { at: string; text: string } | null
  waitingUntil: string | null
  plan: readonly PlanStep[]
  claim: Claim
  tasks: { done: number; total: number } | null
  primaryWindow: UsageWindow | null
  secondaryWindow: UsageWindow | null
}

/** A report for a person, line by line. `now` is Unix time, ms. Pure. */
export function statusLines({ directory, runner, session, queued }: StatusReport, now: number): string[] {
  const moment = (at: string) => formatMoment(Date.parse(at), now)
  const who =
    runner === null
      ? `Nothing runs in ${oneLine(directory, TEXT_CHARS)}.`
      : `codemachine runs in ${oneLine(directory, TEXT_CHARS)} (pid ${runner.pid} on ${oneLine(runner.host, 80)}, since ${moment(runner.since)}).`
  return [
    who,
    ...(session === null ? ['There are no sessions yet.'] : sessionLines(session, now)),
    labelled('queue', queued === 0 ? 'nothing waits' : `${formatCount(queued, 'prompt')} waiting`),
  ]
}

function sessionLines(session: SessionReport, now: number): string[] {
  const facts = [howFar(session), formatDuration(session.elapsedMs), formatTokens(session.tokens)]
  const until = session.waitingUntil
  const { claim, tasks, last, plan } = session
  return [
    labelled('session', `${session.id}  ${oneLine(session.goal, GOAL_CHARS)}`),
    labelled('state', stateInWords(session)),
    labelled('so far', facts.join(', ')),
    ...(last ? [labelled('last', `${formatMoment(Date.parse(last.at), now)}  ${oneLine(last.text, TEXT_CHARS)}`)] : []),
    ...(until === null ? [] : [labelled('waits', `until ${formatMoment(Date.parse(until), now)}`)]),
    ...(plan.length === 0 ? [] : [labelled('plan', describePlan(plan))]),
    ...(tasks === null ? [] : [labelled('tasks', `${tasks.done} of ${tasks.total} done`)]),
    ...(claim.state === 'refused'
      ? [labelled('claim', `refused (${claim.reason}): ${oneLine(claim.detail, TEXT_CHARS)}`)]
      : []),
    ...windowLines([session.primaryWindow, session.secondaryWindow], now),
  ]
}

function stateInWords({ standing, outcome }: SessionReport): string {
  if (outcome === null) return standing === 'cut-off' ? 'cut off; codemachine resume goes on' : standing
  const { text, hint } = describeOutcome(outcome)
  return hint === null ? text : `${text}  ${hint}`
}

function howFar({ round, roundsUsed, maxRounds }: SessionReport): string {
  if (round === null) return `${roundsUsed} of ${formatCount(maxRounds, 'round')}`
  return `round ${round.round} of ${maxRounds} for ${formatDuration(round.elapsedMs)}`
}

function windowLines(windows: readonly (UsageWindow | null)[], now: number): string[] {
  return windows.flatMap(window => {
    if (window === null) return []
    const span = window.windowMinutes === null ? '' : ` of ${formatDuration(window.windowMinutes * 60_000)}`
    const reset = window.resetsAt === null ? '' : `, resets ${formatMoment(window.resetsAt, now)}`
    return [labelled('usage', `${Math.round(window.usedPercent)} % of the window${span}${reset}`)]
  })
}

function labelled(label: string, text: string): string {
  return `  ${label.padEnd(7)}  ${text}`
}
