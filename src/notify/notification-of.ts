import { basename } from 'node:path'
import { clipEnd } from '../base/clip.ts'
import { unreachable } from '../base/errors.ts'
import type { Recorded } from '../session/events.ts'
import type { RoundOutcome, SessionOutcome } from '../session/outcome.ts'
import type { SessionState } from '../session/state.ts'
import { isPlanShown } from '../ui/words-for-build.ts'
import type { Notification, NotificationFacts } from './notification.ts'
import { plainLine } from './plain-line.ts'
import { inWords } from './words.ts'

/**
 * What a person may be told of an event; null if nothing. Pure.
 * @param state the session after the event
 */
export function notificationOf(event: Recorded, state: SessionState): Notification | null {
  const facts = factsOf(event, state)
  return facts === null ? null : withWords(facts, event.at, state)
}

/** A notification by which a person sees that notifications arrive. */
export function sampleNotification(at: string, host: string, directory: string): Notification {
  return withWords({ event: 'test' }, at, { id: 'test', host, directory, goal: 'See whether notifications arrive.' })
}

/** A wait has to take longer than this to be told of, ms. */
const LONG_WAIT_MS = 30 * 60_000
const GOAL_CHARS = 500
const TITLE_CHARS = 120
const MESSAGE_CHARS = 1000
const PLACE_CHARS = 40
const GOAL_IN_MESSAGE_CHARS = 160
const TEXT_CHARS = 2000

function withWords(
  facts: NotificationFacts,
  at: string,
  { id, host, directory, goal }: Pick<SessionState, 'id' | 'host' | 'directory' | 'goal'>,
): Notification {
  const { title, message } = inWords(facts, at)
  const place = plainLine(basename(directory) || directory, PLACE_CHARS)
  return {
    v: 1,
    at,
    session: id,
    host,
    directory,
    goal: plainLine(goal, GOAL_CHARS),
    title: plainLine(`codemachine in ${place}: ${title}`, TITLE_CHARS),
    message: plainLine(`${message} Goal: ${plainLine(goal, GOAL_IN_MESSAGE_CHARS)}`, MESSAGE_CHARS),
    ...facts,
  }
}

function factsOf(event: Recorded, state: SessionState): NotificationFacts | null {
  switch (event.type) {
    case 'session-ended': {
      const { exitCode, rounds, tokens, durationMs } = event
      const kind = event.outcome.kind === 'needs-person' ? 'needs-person' : 'ended'
      const { questions } = state
      return { event: kind, outcome: clipped(event.outcome), exitCode, rounds, tokens, durationMs, questions }
    }
    case 'waiting': {
      const { round, until, cause } = event
      const isLong = Date.parse(until) - Date.parse(event.at) > LONG_WAIT_MS
      return isLong ? { event: 'waiting', round, until, cause: clippedRound(cause) } : null
    }
    case 'stuck': {
      const { round, rounds, why, remedy } = event
      return { event: 'stuck', round, rounds, why, remedy }
    }
    case 'round-ended': {
      const { round, outcome, counts, durationMs, changedCount } = event
      const tokens = event.tokens?.total ?? null
      const roundOutcome = clippedRound(outcome)
      return { event: 'round-ended', round, roundOutcome, counts, durationMs, tokens, changedCount }
    }
    case 'held':
      return planThatWaits(state) ?? { event: 'paused' }
    case 'task-judged': {
      const { round, task, name, detail } = event
      if (event.verdict !== 'parked') return null
      return {
        event: 'needs-person',
        about: 'task',
        task: clip(task),
        name: clip(name),
        reason: clip(detail ?? ''),
        round,
      }
    }
    // Told, if at all, when the session ends or waits.
    case 'session-created':
    case 'session-resumed':
    case 'keep-awake':
    case 'round-started':
    case 'turn-started':
    case 'item-completed':
    case 'plan-updated':
    case 'usage':
    case 'limits':
    case 'model-rerouted':
    case 'request-answered':
    case 'steered':
    case 'warning':
    case 'error':
    case 'turn-continued':
    case 'winding-down':
    case 'machine-slept':
    case 'wait-ended':
    case 'stop-asked':
    case 'paused':
    case 'unpaused':
    case 'interrupt-asked':
    case 'skip-asked':
    case 'replan-asked':
    case 'replanned':
    case 'memory-broken':
    case 'repository-restored':
    case 'savepoint':
    case 'protected-changed':
    case 'gate-started':
    case 'gate-ended':
    case 'question-asked':
    case 'plan-refused':
    case 'plan-ready':
    case 'agent-started':
    case 'agent-ended':
    case 'tasks-judged':
    case 'review-started':
    case 'review-ended':
    case 'done-nominated':
    case 'done-refused':
    case 'done-accepted':
      return null
    default:
      return unreachable(event)
  }
}

/** A plan that was made while the person may have been away; whoever has it changed is there. */
function planThatWaits(state: SessionState): NotificationFacts | null {
  if (!isPlanShown(state) || state.last?.part !== 'team-building') return null
  return { event: 'needs-person', about: 'plan', tasks: state.build?.tasks.length ?? 0 }
}

function clip(text: string): string {
  return clipEnd(text, TEXT_CHARS)
}

function clipped(outcome: SessionOutcome): SessionOutcome {
  if (outcome.kind !== 'needs-person') return outcome
  const { reason, hint } = outcome
  return { ...outcome, reason: clipEnd(reason, TEXT_CHARS), hint: hint === null ? null : clipEnd(hint, TEXT_CHARS) }
}

function clippedRound(outcome: RoundOutcome): RoundOutcome {
  return outcome.message === null ? outcome : { ...outcome, message: clipEnd(outcome.message, TEXT_CHARS) }
}
