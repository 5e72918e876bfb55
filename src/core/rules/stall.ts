import type { EventOf, StallRemedy } from '../events/events.ts'
import type { StallReason } from '../events/outcome.ts'
import type { Notice } from './notices.ts'

/**
 * Lack of progress of a session (docs/inside/design.md, "No progress"). A round makes none if work tree and memory end as
 * after a recent round, or if the same refusal repeats.
 */
export interface Stall {
  /** Consecutive rounds with the same result, including the first. */
  idleRounds: number
  sameRefusals: number
  /** Key of the last refusal, and its round. */
  refusal: { of: string; round: number } | null
  /** The remedy used so far; null: none. */
  remedy: StallRemedy | null
  /** Results of the last rounds: work tree and memory. */
  seen: readonly string[]
  /** Last words of the rounds with the same result. */
  tried: readonly string[]
}

export const NO_STALL: Stall = { idleRounds: 0, sameRefusals: 0, refusal: null, remedy: null, seen: [], tried: [] }

/** Number of stored results, to detect undoing and redoing, too. */
const MOST_SEEN = 6
const MOST_TRIED = 3
/** A round whose commands and tools ran this long, and for half of its time, had a real wait. */
const REAL_WAIT_MS = 5 * 60_000

type RoundEnded = EventOf<'round-ended'>

/** Facts from a round's run for this rule. */
interface WhileRunning {
  commandMs: number
  lastWords: string | null
  steered: readonly Notice[]
  part: string | null
  /** From `PartKind`. */
  countsForStall: boolean
}

/** Returns the stall after one more round; exempt rounds do not change it. Pure. */
export function stallAfterRound(before: Stall, event: RoundEnded, running: WhileRunning): Stall {
  // With several kinds of rounds, other rounds come between two that may claim.
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

/** Exempt: planning (it has its own limit), uncounted, silent, interrupted or steered rounds, long waits on a command. */
function isExempt(
  { counts, outcome, durationMs }: RoundEnded,
  { commandMs, steered, countsForStall }: WhileRunning,
): boolean {
  if (!countsForStall && outcome.class === 'worked') return true
  if (!counts || outcome.class === 'interrupted' || outcome.class === 'silent' || steered.length > 0) return true
  return commandMs >= REAL_WAIT_MS && commandMs >= durationMs / 2
}

/**
 * Returns the stall after a round's claim was refused. Pure.
 * @param of key of equal refusals
 */
export function stallAfterRefusal(stall: Stall, round: number, of: string): Stall {
  const again = stall.refusal?.of === of
  return { ...stall, refusal: { of, round }, sameRefusals: again ? stall.sameRefusals + 1 : 1 }
}

/** The next action; `end`: nothing helps. */
type StallStep = { kind: 'remedy'; remedy: StallRemedy; why: StallReason; rounds: number } | StallEnd

interface StallEnd {
  kind: 'end'
  why: StallReason
  rounds: number
}

/** Returns the action after `stallRounds` idle rounds: another way, then more effort, then the end; null: none. Pure. */
export function stallStep({ idleRounds, sameRefusals, remedy }: Stall, stallRounds: number): StallStep | null {
  const why: StallReason = sameRefusals > idleRounds ? 'same-refusal' : 'nothing-changed'
  const rounds = Math.max(idleRounds, sameRefusals)
  if (remedy === null) return rounds >= stallRounds ? { kind: 'remedy', remedy: 'another-way', why, rounds } : null
  if (remedy === 'another-way')
    return rounds > stallRounds ? { kind: 'remedy', remedy: 'more-effort', why, rounds } : null
  return rounds > stallRounds + 1 ? { kind: 'end', why, rounds } : null
}

const HIGHER: Readonly<Record<string, string>> = { minimal: 'high', low: 'high', medium: 'high', high: 'xhigh' }

/** Returns a higher reasoning effort; the same if no higher one is known. Codex's own choice is below `high`. */
export function higherEffort(effort: string | null): string | null {
  return effort === null ? 'high' : (HIGHER[effort] ?? effort)
}
