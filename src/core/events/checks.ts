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

/** Everything that can happen in a session and is kept. */
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
 * Whether an object from a journal has what its type promises, as far as something depends on it. A line that was damaged
 * or written by hand is no event, and must not look like a bug of its reader.
 * Fields that only some versions
 * write (`upgradeEvent`) may be missing. False for a type that this version does not know.
 */
export function isEvent(value: Readonly<Record<string, unknown>>): boolean {
  return isMoment(value.at) && isSessionEvent(value)
}

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
    case 'session-ended':
      return event.outcome.kind === 'needs-person'
        ? { ...event, outcome: { ...event.outcome, hint: hintOf(event.outcome.hint) } }
        : event
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

/** The hint as data: a sentence of an earlier version as `say`; null for one that this version does not know. */
function hintOf(hint: unknown): OutcomeHint | null {
  if (typeof hint === 'string') return { do: 'say', text: hint }
  return isHint(hint) ? (hint as OutcomeHint) : null
}

/** The round of which an earlier version said in a warning that it changed the project's settings; null if it did not. */
function roundOfSettingsChange({ round, message }: EventOf<'warning'>): number | null {
  const changed = /^Round (\d{1,9}) changed codemachine\.toml; what it says now counts from the next run on\.$/.exec(
    message,
  )
  return round !== null || changed === null ? null : Number(changed[1])
}
