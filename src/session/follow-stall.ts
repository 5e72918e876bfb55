import type { SessionOutcome } from './outcome.ts'
import type { SessionLog } from './session-log.ts'
import { stallStep } from './stall.ts'

/** Journals what is done about rounds that do not get on; an outcome if nothing has helped. */
export function followStall(log: SessionLog, stallRounds: number): SessionOutcome | null {
  const { claim, last, stall } = log.state
  // What is claimed is looked at first.
  if (claim.state === 'accepted' || claim.state === 'nominated' || last === null) return null
  const step = stallStep(stall, stallRounds)
  if (step === null) return null
  if (step.kind === 'end') return { kind: 'stalled', rounds: step.rounds, why: step.why }
  const { remedy, why, rounds } = step
  log.emit({ type: 'stuck', round: last.round, rounds, why, remedy })
  return null
}
