import { UserError } from '../../base/errors.ts'
import { foldJournal } from '../../session/fold-journal.ts'
import type { Records } from '../../session/records.ts'
import { readRunner } from '../../session/run-lock.ts'
import { standingOf } from '../../session/standing.ts'
import type { SessionState } from '../../session/state.ts'
import { describeOutcome } from '../../ui/describe-outcome.ts'
import type { ResumableSession } from '../../ui/start/start-facts.ts'

/** The sessions that can be gone on with, the newest first: at most 5 of the last 50; those that cannot be read, and builds before the newest one, are passed over. */
export async function resumableSessions(records: Records, platform: NodeJS.Platform): Promise<ResumableSession[]> {
  // Before the journals: a session that ends while they are read must not look cut off.
  const runner = await readRunner(records.lock, platform)
  const found: ResumableSession[] = []
  let hasBuild = false
  for (const id of (await records.sessions()).slice(-MOST_READ).reverse()) {
    const state = await readState(records, id)
    if (state === null) continue
    const isBuild = state.template === 'build'
    const isOldBuild = hasBuild && isBuild
    hasBuild ||= isBuild
    if (isOldBuild || state.ended?.outcome.kind === 'done' || standingOf(state, runner) === 'running') continue
    const stopped = state.ended === null ? 'cut off' : describeOutcome(state.ended.outcome).short
    found.push({ id, goal: state.goal, rounds: state.roundsUsed, stopped, at: state.updatedAt })
    if (found.length === MOST_SHOWN) break
  }
  return found
}

const MOST_READ = 50
const MOST_SHOWN = 5

async function readState(records: Records, id: string): Promise<SessionState | null> {
  try {
    return await foldJournal(records.journal(id), id)
  } catch (error) {
    if (error instanceof UserError) return null
    throw error
  }
}
