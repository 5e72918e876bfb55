import type { EventOf, StallRemedy } from '../events/events.ts'
import type { StallReason } from '../events/outcome.ts'
import type { Notice } from './notices.ts'

/**
 * How far a session has got stuck (docs/inside/design.md, "No progress"). Rounds get nowhere if their work tree and memory
 * files come out as one of the last ones left them, or if the same claim is refused for the same reason.
 */
export interface Stall {
  /** Rounds in a row that came out the same, the first of them included. */
  idleRounds: number
  sameRefusals: number
  /** By what the last refusal is known, and the round that it was of. */
  refusal: { of: string; round: number } | null
  /** What has been done about it. */
  remedy: StallRemedy | null
  /** What the last rounds left: work tree and memory. */
  seen: readonly string[]
  /** What those that came out the same said at their ends. */
  tried: readonly string[]
}

export const NO_STALL: Stall = { idleRounds: 0, sameRefusals: 0, refusal: null, remedy: null, seen: [], tried: [] }

/** How many results are remembered, so that undoing and redoing the same is seen too. */
const MOST_SEEN = 6
const MOST_TRIED = 3
/** A round whose commands and tools ran that long, and for half of its time, has waited on something real. */
const REAL_WAIT_MS = 5 * 60_000

type RoundEnded = EventOf<'round-ended'>

/** What the rule wants to know of a round while it ran. */
interface WhileRunning {
  commandMs: number
  lastWords: string | null
  steered: readonly Notice[]
  part: string | null
  /** Of its part. */
  countsForStall: boolean
}

/** The stall after one more round. A round that the rule does not judge leaves it as it was. Pure. */
export function stallAfterRound(before: Stall, event: RoundEnded, running: WhileRunning): Stall {
  // Where a template has several kinds of rounds, others lie between two that may claim.
  const claimedJustNow = before.refusal !== null && (running.part !== null || event.round - before.refusal.round <= 1)
  const stall: Stall = claimedJustNow ? before : { ...before, refusal: null, sameRefusals: 0 }
  if (isExempt(event, running)) return stall
  const result = `${event.treeAfter} ${event.memory}`
  const tried = running.lastWords === null ? stall.tried : [...stall.tried, running.lastWords].slice(-MOST_TRIED)
  if (stall.seen.includes(result)) return { ...stall, idleRounds: stall.idleRounds + 1, tried }
  return {
    ...stall,
    idleRounds: 1,
    seen: [...stall.seen, result].slice(-MOST_SEEN),
    remedy: stall.sameRefusals > 1 ? stall.remedy : null,
    tried,
  }
}

/** Not judged: what only makes a plan, which has a bound of its own, what did not count, what fell silent, what a person broke off or talked to, and what waited on a command that takes long. */
function isExempt(
  { counts, outcome, durationMs }: RoundEnded,
  { commandMs, steered, countsForStall }: WhileRunning,
): boolean {
  if (!countsForStall && outcome.class === 'worked') return true
  if (!counts || outcome.class === 'interrupted' || outcome.class === 'silent' || steered.length > 0) return true
  return commandMs >= REAL_WAIT_MS && commandMs >= durationMs / 2
}

/**
 * The stall after the claim of a round was refused. Pure.
 * @param of by what the same refusal is known
 */
export function stallAfterRefusal(stall: Stall, round: number, of: string): Stall {
  const again = stall.refusal?.of === of
  return { ...stall, refusal: { of, round }, sameRefusals: again ? stall.sameRefusals + 1 : 1 }
}

/** What is to be done now; `end`: nothing helps. */
type StallStep = { kind: 'remedy'; remedy: StallRemedy; why: StallReason; rounds: number } | StallEnd

interface StallEnd {
  kind: 'end'
  why: StallReason
  rounds: number
}

/** What a stall calls for after `stallRounds` rounds without progress: another way, then more effort, then the end. Pure. */
export function stallStep({ idleRounds, sameRefusals, remedy }: Stall, stallRounds: number): StallStep | null {
  const why: StallReason = sameRefusals > idleRounds ? 'same-refusal' : 'nothing-changed'
  const rounds = Math.max(idleRounds, sameRefusals)
  if (remedy === null) return rounds >= stallRounds ? { kind: 'remedy', remedy: 'another-way', why, rounds } : null
  if (remedy === 'another-way')
    return rounds > stallRounds ? { kind: 'remedy', remedy: 'more-effort', why, rounds } : null
  return rounds > stallRounds + 1 ? { kind: 'end', why, rounds } : null
}

const HIGHER: Readonly<Record<string, string>> = { minimal: 'high', low: 'high', medium: 'high', high: 'xhigh' }

/** A reasoning effort above this one; the same if none is known to be. Codex's own choice is below `high`. */
export function higherEffort(effort: string | null): string | null {
  return effort === null ? 'high' : (HIGHER[effort] ?? effort)
}
