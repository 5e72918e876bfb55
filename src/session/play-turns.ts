import type { Clock } from '../base/clock.ts'
import type { PreparedRound, RoundRun } from './engine.ts'
import { CARRY_ON } from './notices.ts'
import type { RoundOutcome } from './outcome.ts'

export interface PlayTurnsOptions {
  clock: Clock
  /** Aborted when the round has to end now. */
  ending: AbortSignal
  /** Whether it has to come to a safe stop, so that no turn is begun any more. */
  isWindingDown(): boolean
  /** Called with how the first turn ended before another one begins. */
  onCarryOn?(cause: RoundOutcome): void
}

/** From a turn that lost the network to the next one in its thread, ms. */
const CARRY_ON_MS = 2_000

/** Plays the turn of a round, and another one in its thread if the network broke it off; then the thread is given up. */
export async function playTurns(
  prepared: PreparedRound,
  run: RoundRun,
  { clock, ending, isWindingDown, onCarryOn }: PlayTurnsOptions,
): Promise<RoundOutcome> {
  const interrupt = () => void prepared.interrupt()
  ending.addEventListener('abort', interrupt)
  try {
    if (ending.aborted) prepared.discard()
    const cause = await prepared.run(run)
    const mayGoOn = () => !ending.aborted && !isWindingDown()
    if (cause.class !== 'network' || !mayGoOn()) return cause
    await clock.wait(CARRY_ON_MS, ending)
    if (!mayGoOn()) return cause
    onCarryOn?.(cause)
    return (await prepared.carryOn(CARRY_ON)) ?? cause
  } finally {
    ending.removeEventListener('abort', interrupt)
    prepared.discard()
  }
}
