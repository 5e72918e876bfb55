import type { StallRemedy } from '../session/lifecycle-events.ts'
import type { UsageWindow } from '../session/limits.ts'
import { buildStatusLines } from './build-status-lines.ts'
import { describeOutcome } from './describe-outcome.ts'
import { describePlan } from './describe-plan.ts'
import { wordsForReview } from './describe-review.ts'
import { formatCount } from './format-count.ts'
import { formatCountdown, formatSpan } from './format-span.ts'
import { formatMoment } from './format-time.ts'
import { oneLine } from './safe-text.ts'
import type { SessionReport, StatusReport } from './status-report.ts'
import { wordsForActivity } from './words-for-activity.ts'
import { gateName, wordsForGate, wordsForGateTime } from './words-for-gate.ts'
import { wordsForTimeUsed, wordsForTokensUsed } from './words-for-limits.ts'
import { wordsForQuestions } from './words-for-proof.ts'
import { wordsForRemedy, wordsForStall } from './words-for-stall.ts'
import { wordsForWait } from './words-for-wait.ts'

const GOAL_CHARS = 200
const TEXT_CHARS = 500
const NAME_CHARS = 120
const MOST_GATES = 10

/** A report for a person, line by line. `now` is Unix time, ms. Pure. */
export function statusLines(report: StatusReport, now: number): string[] {
  const { session, sessions, queued } = report
  const none = sessions === 0 ? 'There are no sessions yet.' : 'There is no session that can be read.'
  return [
    whoRuns(report, now),
    ...(session === null ? [none] : sessionLines(session, now)),
    labelled('queue', queued === 0 ? 'nothing waits' : `${formatCount(queued, 'prompt')} waiting`),
  ]
}

function whoRuns({ directory, runner }: StatusReport, now: number): string {
  const where = oneLine(directory, TEXT_CHARS)
  if (runner === 'unknown') return `It is not known whether codemachine runs in ${where}.`
  if (runner === null) return `Nothing runs in ${where}.`
  const since = formatMoment(Date.parse(runner.since), now)
  return `codemachine runs in ${where} (pid ${runner.pid} on ${oneLine(runner.host, 80)}, since ${since}).`
}

function sessionLines(session: SessionReport, now: number): string[] {
  const { activity, claim, tasks, last, plan, limits, stall, keptAwake, waiting, build } = session
  // That it began to wait is what its state says.
  const isWait = activity === 'waiting' && last?.at === waiting?.since
  const facts = [
    howFar(session),
    wordsForTimeUsed(session.elapsedMs, limits),
    wordsForTokensUsed(session.tokens, limits),
  ]
  return [
    labelled('session', `${session.id}  ${oneLine(session.goal, GOAL_CHARS)}`),
    labelled('state', stateInWords(session, now)),
    ...waitLines(session, now),
    labelled('so far', facts.join(', ')),
    ...modelLines(session),
    ...(last && !isWait
      ? [labelled('last', `${formatMoment(Date.parse(last.at), now)}  ${oneLine(last.text, TEXT_CHARS)}`)]
      : []),
    ...(stall.remedy === null ? [] : [labelled('stuck', stallInWords(stall, stall.remedy))]),
    ...(plan.length === 0 ? [] : [labelled('plan', describePlan(plan))]),
    ...(tasks === null ? [] : [labelled('tasks', tasksInWords(tasks))]),
    ...(build === null ? [] : buildStatusLines(build, now).map(([label, text]) => labelled(label, text))),
    ...(claim.state === 'refused'
      ? [labelled('claim', `refused (${claim.reason}): ${oneLine(claim.detail, TEXT_CHARS)}`)]
      : []),
    ...proofLines(session),
    ...windowLines([session.primaryWindow, session.secondaryWindow], now),
    ...(keptAwake === null ? [] : [labelled('awake', `kept so by ${oneLine(keptAwake, TEXT_CHARS)}`)]),
  ]
}

function tasksInWords({ done, total, current }: NonNullable<SessionReport['tasks']>): string {
  const counted = `${done} of ${total} done`
  if (current === null) return counted
  const [id, name, phase] = [current.id, current.name, current.phase ?? ''].map(text => oneLine(text, NAME_CHARS))
  return `${counted}; ${id} ${name}${phase === '' ? '' : `, ${phase}`}`
}

function modelLines({ model, effort }: SessionReport): string[] {
  const words = [model, effort].filter(word => word !== null).map(word => oneLine(word, NAME_CHARS))
  return words.length === 0 ? [] : [labelled('model', words.join(' '))]
}

/** What its proof stands on: the gates and how they came out last, reviews, what is kept, and what is asked. */
function proofLines({ gates, reviews, savepoint, questions }: SessionReport): string[] {
  const asked = wordsForQuestions(questions)
  return [
    ...(gates.length === 0 ? [] : [labelled('gates', wordsForResults(gates))]),
    ...(reviews.answered === 0 ? [] : [labelled('review', wordsForReviews(reviews))]),
    ...(savepoint === null ? [] : [labelled('kept', wordsForSavepoint(savepoint))]),
    ...(asked === null ? [] : [labelled('asked', asked)]),
  ]
}

function wordsForResults(gates: SessionReport['gates']): string {
  const shown = gates.slice(0, MOST_GATES).map(({ name, required, last }) => {
    const time = last === null ? null : wordsForGateTime(last.when, last.round)
    const how = last === null ? 'not run yet' : `${wordsForGate(last)}${time === null ? '' : ` ${time}`}`
    return `${gateName(name)} ${how}${required ? '' : ' (not required)'}`
  })
  const left = gates.length - shown.length
  return [...shown, ...(left > 0 ? [`… and ${left} more`] : [])].join(', ')
}

function wordsForReviews({ answered, agreedTo, findings, repeated }: SessionReport['reviews']): string {
  const verdict = agreedTo === null ? 'findings' : 'agreed'
  return wordsForReview({ review: answered, verdict, findings, repeated })
}

function wordsForSavepoint({ round, commit }: NonNullable<SessionReport['savepoint']>): string {
  const when = round === 0 ? 'as it was before round 1' : `as it was after round ${round}`
  return `the work ${when} (savepoint ${oneLine(commit.slice(0, 12), NAME_CHARS)}); codemachine savepoints`
}

/** A wait that it does not keep now, but will. */
function waitLines({ activity, waiting }: SessionReport, now: number): string[] {
  if (waiting === null || activity === 'waiting') return []
  const wait = { until: Date.parse(waiting.until), cause: waiting.cause }
  if (wait.until <= now) return []
  return [labelled('waits', `${wordsForWait(wait, now)}, once it goes on`)]
}

function stateInWords(session: SessionReport, now: number): string {
  const { activity, outcome } = session
  if (activity !== null) return wordsForActivity({ ...session, activity }, now)
  if (outcome === null && session.standing === 'unknown') return 'not ended; it is not known whether it runs'
  if (outcome === null) return 'cut off; codemachine resume goes on'
  const { text, hint } = describeOutcome(outcome, session)
  return hint === null ? text : `${text}  ${hint}`
}

function howFar({ round, roundsUsed, limits }: SessionReport): string {
  if (round !== null) {
    const most = limits.rounds === null ? '' : ` of ${limits.rounds}`
    return `round ${round.round}${most} for ${formatSpan(round.elapsedMs)}`
  }
  return limits.rounds === null
    ? formatCount(roundsUsed, 'round')
    : `${roundsUsed} of ${formatCount(limits.rounds, 'round')}`
}

function stallInWords({ idleRounds, sameRefusals }: SessionReport['stall'], remedy: StallRemedy): string {
  const why = sameRefusals > idleRounds ? 'same-refusal' : 'nothing-changed'
  return `${wordsForStall(why, Math.max(idleRounds, sameRefusals))}: ${wordsForRemedy(remedy)}`
}

function windowLines(windows: readonly (UsageWindow | null)[], now: number): string[] {
  return windows.flatMap(window => {
    if (window === null) return []
    const span = window.windowMinutes === null ? '' : ` of ${formatSpan(window.windowMinutes * 60_000)}`
    return [
      labelled(
        'usage',
        `${Math.round(window.usedPercent)} % of the window${span}${resetInWords(window.resetsAt, now)}`,
      ),
    ]
  })
}

function resetInWords(resetsAt: number | null, now: number): string {
  if (resetsAt === null) return ''
  const moment = formatMoment(resetsAt, now)
  return resetsAt > now ? `, resets ${moment}, ${formatCountdown(resetsAt - now)} from now` : ` until ${moment}`
}

function labelled(label: string, text: string): string {
  return `  ${label.padEnd(7)}  ${text}`
}
