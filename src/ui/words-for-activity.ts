import { unreachable } from '../base/errors.ts'
import type { Activity } from './activity.ts'
import { formatSpan } from './format-span.ts'
import { formatMoment } from './format-time.ts'
import { SHELL_HINTS } from './hints.ts'
import type { SessionReport } from './status-report.ts'
import { gateName } from './words-for-gate.ts'
import { wordsForWait } from './words-for-wait.ts'
import { wordsForWindDown } from './words-for-wind-down.ts'

type RunningReport = SessionReport & { activity: Activity }

/** What a session that runs does at the time `now` (Unix time, ms), and what it was asked to do next. */
export function wordsForActivity(session: RunningReport, now: number): string {
  const work = session.round === null ? session.checking?.kind : 'round'
  const next = work === undefined ? '' : ` after this ${work}`
  return [
    wordsFor(session, now),
    ...(session.replanAsked ? ['the plan is being changed'] : []),
    ...(session.pausedAt !== null && session.activity !== 'paused' ? [`pausing${next}`] : []),
    ...(session.stopAsked ? [`stopping${next}`] : []),
  ]
    .filter(words => words !== '')
    .join('; ')
}

function wordsFor(session: RunningReport, now: number): string {
  const { activity, waiting, pausedAt, offlineSince, windingDown } = session
  switch (activity) {
    case 'running':
      return session.checking === null ? 'running' : wordsForCheck(session.checking, now)
    case 'waiting': {
      const wait = waiting && wordsForWait({ until: Date.parse(waiting.until), cause: waiting.cause }, now)
      return `waiting ${wait ?? ''}; ${SHELL_HINTS.endWait}`
    }
    case 'paused':
      return session.build?.waitsForPerson
        ? `the plan waits for you${since(pausedAt, now)}; ${SHELL_HINTS.startBuild}`
        : `paused${since(pausedAt, now)}; ${SHELL_HINTS.goOn}`
    case 'waiting-for-network':
      return `waiting for the network${since(offlineSince, now)}; codex keeps trying`
    case 'winding-down':
      return `winding down${windingDown === null ? '' : `: ${wordsForWindDown(windingDown, session)}`}`
    // What it was asked for is said of every activity.
    case 'stopping':
      return session.checking === null ? '' : wordsForCheck(session.checking, now)
    default:
      return unreachable(activity)
  }
}

function wordsForCheck(check: NonNullable<SessionReport['checking']>, now: number): string {
  const what = check.kind === 'gate' ? `running gate ${gateName(check.gate)}` : `review ${check.review} is made`
  return `${what}, for ${formatSpan(now - Date.parse(check.since))} now`
}

function since(at: string | null, now: number): string {
  return at === null ? '' : ` since ${formatMoment(Date.parse(at), now)}`
}
