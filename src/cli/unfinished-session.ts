import { foldJournal } from '../session/fold-journal.ts'
import type { Records } from '../session/records.ts'
import { readRunner } from '../session/run-lock.ts'
import type { SessionState } from '../session/state.ts'
import { describeOutcome } from '../ui/describe-outcome.ts'
import { formatCount } from '../ui/format-count.ts'
import { formatSpan } from '../ui/format-span.ts'
import { oneLine } from '../ui/safe-text.ts'
import type { CliContext } from './context.ts'
import { latestSession } from './find-session.ts'
import { newerBuild } from './newer-build.ts'

/** A session that was left in the middle, in words. */
interface Unfinished {
  id: string
  /** Id of the queued prompt that it came from; null if it was typed. */
  queued: string | null
  /** `20261121_1 was cut off 2 h ago`. */
  what: string
  /** `"build X" (3 rounds)`. */
  about: string
}

/** The latest session if it was cut off or interrupted; null if it came to an end, or somebody runs here. */
export async function findUnfinished(context: CliContext, records: Records): Promise<Unfinished | null> {
  if ((await readRunner(records.lock, context.platform)) !== null) return null
  const id = await latestSession(records, problem => context.stderr.write(`codemachine: ${problem}\n`))
  const state = id === null ? null : await foldJournal(records.journal(id), id)
  const how = state && howItStopped(state)
  if (!state || !how || (await newerBuild(records, state)) !== null) return null
  const rounds = formatCount(state.roundsUsed, 'round')
  return {
    id: state.id,
    queued: state.queued,
    what: `${state.id} was ${how} ${ago(context.clock.now() - state.updatedAt)}`,
    about: `"${oneLine(state.goal.trim(), GOAL_CHARS)}" (${rounds})`,
  }
}

const GOAL_CHARS = 60

function howItStopped({ ended }: SessionState): string | null {
  if (ended === null) return 'cut off'
  if (ended.outcome.kind !== 'interrupted') return null
  return describeOutcome(ended.outcome).short
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A length of time since, in its largest unit: `2 h ago`. */
function ago(ms: number): string {
  const unit = [DAY, HOUR, MINUTE].find(each => ms >= each)
  return unit === undefined ? 'just now' : `${formatSpan(Math.floor(ms / unit) * unit)} ago`
}
