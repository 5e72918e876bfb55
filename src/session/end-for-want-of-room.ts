import type { Clock } from '../base/clock.ts'
import { isDiskFull } from '../base/disk-full.ts'
import { messageOf, UserError } from '../base/errors.ts'
import { exitCodeOf, type SessionOutcome } from './outcome.ts'
import type { Reserve } from './reserve.ts'
import type { SessionLog } from './session-log.ts'
import { sessionTokens } from './session-tokens.ts'
import { elapsedMs } from './standing.ts'

/**
 * If it was a full disk that broke a session off: journals that the session ended so, in the room that was kept for it.
 * Where there is none even for that, the session is left as one that was cut off.
 */
export async function endForWantOfRoom(error: unknown, log: SessionLog, reserve: Reserve, clock: Clock): Promise<void> {
  const { state } = log
  if (!isDiskFull(error) || state.createdAt === 0 || state.ended !== null) return
  const hint = error instanceof UserError ? error.hint : null
  const outcome: SessionOutcome = { kind: 'needs-person', reason: messageOf(error), hint }
  try {
    await reserve.release()
    log.emit({
      type: 'session-ended',
      outcome,
      exitCode: exitCodeOf(outcome),
      rounds: state.roundsUsed,
      tokens: sessionTokens(state),
      durationMs: elapsedMs(state, 'running', clock.now()),
    })
    await log.sync()
  } catch (second) {
    if (!isDiskFull(second)) throw second
  }
}
