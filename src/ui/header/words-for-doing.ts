import { unreachable } from '../../base/errors.ts'
import type { Checking, SessionState } from '../../session/state.ts'
import { activityOf } from '../activity.ts'
import { describeOutcome } from '../describe-outcome.ts'
import { workOf } from '../describe-pause.ts'
import { formatCount } from '../format-count.ts'
import type { LiveItem } from '../live/live-board.ts'
import { waitEndOf } from '../wait-end.ts'
import { agentOf, isDelegation, isPlanShown } from '../words-for-build.ts'
import { gateName } from '../words-for-gate.ts'
import { formatClock } from './format-clock.ts'
import { shortMoment } from './short-moment.ts'
import { wordsForItem } from './words-for-item.ts'

/** What a session does just now. */
export interface Doing {
  kind: 'at-work' | 'waiting' | 'held' | 'done' | 'ended'
  /** `running npm test`. */
  words: string
  /** The same where there is little room: `npm test`. */
  short: string
  /** For how long, or how long still: `0:42`, `(4:10 left)`. */
  time: string | null
  /** What it was asked to do when that is over: `stopping after this round`. */
  next: string | null
}

/**
 * What a session does at the time `now` (Unix time, ms); one that has not ended is taken to run.
 * @param live what goes on in its turn; null if that cannot be seen
 */
export function doing(state: SessionState, live: readonly LiveItem[] | null, now: number): Doing {
  return state.ended === null
    ? { ...running(state, live, now), next: nextOf(state) }
    : { ...ended(state.ended), next: null }
}

type DoingNow = Omit<Doing, 'next'>

function ended({ outcome }: NonNullable<SessionState['ended']>): DoingNow {
  const { short } = describeOutcome(outcome)
  return { kind: outcome.kind === 'done' ? 'done' : 'ended', words: short, short, time: null }
}

function running(state: SessionState, live: readonly LiveItem[] | null, now: number): DoingNow {
  const activity = activityOf(state)
  switch (activity) {
    case 'running':
    case 'stopping':
      return state.replan === null || state.checking !== null || isInterrupted(state)
        ? atWork(state, live, now)
        : within('changing the plan', atWork(state, live, now))
    case 'waiting':
      return waiting(state, now)
    case 'paused': {
      if (state.replan !== null) return plainly('changing the plan')
      if (isPlanShown(state)) return { kind: 'held', words: 'the plan waits for you', short: 'plan waits', time: null }
      return { kind: 'held', words: 'paused', short: 'paused', time: null }
    }
    case 'waiting-for-network':
      return {
        kind: 'waiting',
        words: 'waiting for the network',
        short: 'network away',
        time: state.offlineSince === null ? null : formatClock(now - state.offlineSince),
      }
    case 'winding-down':
      return within('winding down', atWork(state, live, now))
    default:
      return unreachable(activity)
  }
}

function waiting(state: SessionState, now: number): DoingNow {
  const until = waitEndOf(state) ?? now
  const moment = `until ${shortMoment(until, now)}`
  // As much as is begun of the last second is left.
  const left = formatClock(Math.ceil((until - now) / 1000) * 1000)
  return { kind: 'waiting', words: `waiting ${moment}`, short: moment, time: `(${left} left)` }
}

function atWork(state: SessionState, live: readonly LiveItem[] | null, now: number): DoingNow {
  const { running } = state
  if (running === null) return state.checking === null ? plainly(betweenRounds(state)) : checking(state.checking, now)
  if (running.isInterrupted) return plainly('interrupting the round')
  if (running.turn === null) return plainly('starting codex')
  const latest = live?.findLast(({ instance }) => instance === undefined)
  const isIdle = latest === undefined || isDelegation(latest.item)
  if (state.agents.length > 0 && isIdle) return delegating(state, now)
  // A task that was handed on lasts until its result has been read.
  if (isIdle) return plainly(live === null ? 'working' : 'thinking')
  const { words, short, isTimed } = wordsForItem(latest.item)
  return { kind: 'at-work', words, short, time: isTimed ? formatClock(now - latest.startedAt) : null }
}

function delegating({ agents }: SessionState, now: number): DoingNow {
  const words =
    agents.length === 1 ? `${agentOf(agents[0]?.instance ?? '')} at work` : `${agents.length} agents at work`
  const since = Math.min(...agents.map(({ since }) => since))
  return { kind: 'at-work', words, short: formatCount(agents.length, 'agent'), time: formatClock(now - since) }
}

/** What codemachine does by itself between two rounds. */
function checking(check: Checking, now: number): DoingNow {
  const short = check.kind === 'gate' ? `gate ${gateName(check.gate)}` : `review ${check.review}`
  const words = check.kind === 'gate' ? `running ${short}` : short
  return { kind: 'at-work', words, short, time: formatClock(now - check.since) }
}

/** What the work is for, before what it is. */
function within(purpose: string, work: DoingNow): DoingNow {
  return { ...work, words: `${purpose}: ${work.words}`, short: purpose }
}

function isInterrupted({ running }: SessionState): boolean {
  return running?.isInterrupted ?? false
}

function plainly(words: string): DoingNow {
  return { kind: 'at-work', words, short: words, time: null }
}

function betweenRounds({ last, claim, build }: SessionState): string {
  if (claim.state === 'nominated') return 'judging the claim'
  if (build !== null && last !== null && !build.judged) {
    return build.plan === 'ready' ? 'judging the tasks' : 'looking at the plan'
  }
  return last === null ? 'starting' : 'between two rounds'
}

function nextOf(state: SessionState): string | null {
  const work = workOf(state)
  const after = state.waiting !== null ? ' after the wait' : work === null ? '' : ` after this ${work}`
  if (state.stopAsked) return `stopping${after}`
  if (state.pausedAt === null || activityOf(state) === 'paused') return null
  const isPlanned = state.running !== null && !isInterrupted(state)
  return state.replan === null || isPlanned ? `pausing${after}` : `changing the plan${after}`
}
