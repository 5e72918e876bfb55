import { claimEvent } from './claim.ts'
import { contractEvent } from './contract.ts'
import type { EventOf, Recorded } from './events.ts'
import { fileEvent } from './files.ts'
import { lifecycleEvent } from './lifecycle.ts'
import type { OutcomeHint, RoundOutcome, SessionLimits, WaitReason } from './outcome.ts'
import { planEvent } from './plan.ts'
import { roundEvent } from './round.ts'
import { anyOf, checkOf, moment } from './schema.ts'
import { outcomeHint } from './shapes.ts'
import { shellEvent, stepEvent } from './step.ts'

/** All journaled events of a session. */
export const sessionEvent = anyOf(
  'type',
  lifecycleEvent,
  roundEvent,
  stepEvent,
  shellEvent,
  fileEvent,
  planEvent,
  claimEvent,
  contractEvent,
)

const isMoment = checkOf(moment)
const isSessionEvent = checkOf(sessionEvent)
const isHint = checkOf(outcomeHint)

/**
 * Returns true if a journal object has the shape that readers depend on. A damaged or hand-written line is not an event, and
 * must not look like a bug of its reader. Fields that only some versions write (`upgradeEvent`) may be missing. False for an
 * unknown type.
 */
export function isEvent(value: Readonly<Record<string, unknown>>): boolean {
  return isMoment(value.at) && isSessionEvent(value)
}

/**
 * Converts an event of any version to this version's form. Missing fields of earlier versions get neutral values, and their
 * sentences become data. Pure.
 */
export function upgradeEvent(event: Recorded): Recorded {
  switch (event.type) {
    case 'session-created':
    case 'session-resumed':
      return { ...event, limits: { ...NO_LIMITS, ...event.limits }, said: event.said ?? {}, host: event.host ?? '' }
    case 'round-ended':
      // A unique value, for nothing is known of this round's memory.
      return event.memory === undefined ? { ...event, memory: event.at } : event
    case 'waiting':
      return { ...event, reason: (event.reason as WaitReason | undefined) ?? reasonOfWait(event.cause) }
    case 'warning': {
      const { message, ...rest } = event
      const round = roundOfSettingsChange(event)
      return round === null ? event : { ...rest, type: 'settings-changed', round }
    }
    case 'session-ended':
      return event.outcome.kind === 'needs-person'
        ? { ...event, outcome: { ...event.outcome, hint: hintOf(event.outcome.hint) } }
        : event
    default:
      return event
  }
}

const NO_LIMITS: SessionLimits = { rounds: null, timeMs: null, tokens: null }

/** Returns why a session waited, from an earlier version's sentence. */
function reasonOfWait({ class: end, message }: RoundOutcome): WaitReason {
  if (end !== 'window' || message === null) return 'round-failed'
  if (/^\d.* % of it are used, and --max-usage is \d.* %\.$/.test(message)) return 'max-usage'
  return message === 'The usage limit is reached.' ? 'usage-limit' : 'round-failed'
}

/** Returns the hint as data: an earlier version's sentence as `say`; null: unknown hint. */
function hintOf(hint: unknown): OutcomeHint | null {
  if (typeof hint === 'string') return { do: 'say', text: hint }
  return isHint(hint) ? (hint as OutcomeHint) : null
}

/** Returns the round that changed the project's settings by an earlier version's warning; null: another warning. */
function roundOfSettingsChange({ round, message }: EventOf<'warning'>): number | null {
  const changed = /^Round (\d{1,9}) changed codemachine\.toml; what it says now counts from the next run on\.$/.exec(
    message,
  )
  return round !== null || changed === null ? null : Number(changed[1])
}
