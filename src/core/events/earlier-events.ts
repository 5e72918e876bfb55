import type { EventOf, Recorded } from './events.ts'
import type { RoundOutcome, SessionLimits, WaitReason } from './outcome.ts'

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

/** The round of which an earlier version said in a warning that it changed the project's settings; null if it did not. */
function roundOfSettingsChange({ round, message }: EventOf<'warning'>): number | null {
  const changed = /^Round (\d{1,9}) changed codemachine\.toml; what it says now counts from the next run on\.$/.exec(
    message,
  )
  return round !== null || changed === null ? null : Number(changed[1])
}
