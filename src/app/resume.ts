import { UserError, unreachable } from '../base/errors.ts'
import type { RunOverrides } from '../core/events/events.ts'
import { type Gate, limitReached, type SessionLimits } from '../core/events/outcome.ts'
import type { ReviewTerms } from '../core/rules/review.ts'
import { elapsedMs, type SessionState, sessionTokens } from '../core/state/state.ts'
import { foldJournal } from '../records/journal.ts'
import type { Records } from '../records/records.ts'
import { readRunner } from '../records/run-lock.ts'
import { reachesNetwork, withVerified } from '../settings/gates.ts'
import type { SettingSources } from '../settings/load.ts'
import type { Settings } from '../settings/schema.ts'
import { oneLine } from '../words/cells.ts'
import { countAsTyped, durationAsTyped } from '../words/commands.ts'
import { formatCount, formatSpan, formatTokens } from '../words/numbers.ts'
import { describeOutcome } from '../words/outcome.ts'
import { latestSession } from './find.ts'
import type { RunFlags } from './run-flags.ts'
import type { CliContext } from './world.ts'

/**
 * What was said on the command line or in the environment. What stands in a file is read anew when the session goes on,
 * so that it can be mended there, but for gates and the review (`gatesAtResume`, `reviewAtResume`).
 * @param verify the commands that `--verify` names
 */
export function runOverridesOf(
  settings: Settings,
  sources: SettingSources,
  verify: readonly string[] = [],
): RunOverrides {
  const isSaid = (key: keyof SettingSources) => ['flag', 'environment'].includes(sources[key].layer)
  const { sandbox, network, model, effort, maxUsage, maxWait, keepAwake, review } = settings
  return {
    ...(isSaid('sandbox') ? { sandbox } : {}),
    ...(isSaid('network') ? { network } : {}),
    ...(isSaid('model') && model !== null ? { model } : {}),
    ...(isSaid('effort') && effort !== null ? { effort } : {}),
    ...(isSaid('maxUsage') && maxUsage !== null ? { maxUsage } : {}),
    ...(isSaid('maxWait') ? { maxWaitMs: maxWait } : {}),
    ...(isSaid('keepAwake') ? { keepAwake } : {}),
    ...(isSaid('review') ? { review } : {}),
    ...(verify.length === 0 ? {} : { verify: [...new Set(verify)] }),
  }
}

/** The flags of a session that goes on: those of now, and before them what was said when it began. */
export function flagsAtResume(said: RunOverrides, overrides: readonly string[], now: RunFlags): RunFlags {
  const { maxUsage, maxWaitMs, network, keepAwake, verify = [], ...same } = said
  // Another sandbox than before is meant as it is by itself, not with what the old one allowed.
  const keepsSandbox = now.sandbox === undefined && now.yolo === undefined
  return {
    ...same,
    ...(network === undefined || !keepsSandbox ? {} : { network }),
    ...(maxUsage === undefined ? {} : { maxUsage: String(maxUsage) }),
    ...(maxWaitMs === undefined ? {} : { maxWait: durationAsTyped(maxWaitMs) }),
    config: [...overrides],
    ...now,
    ...(verify.length === 0 ? {} : { verify: [...new Set([...verify, ...(now.verify ?? [])])] }),
    // Commander says true where nobody said anything.
    keepAwake: now.keepAwake !== false && keepAwake !== false,
  }
}

/**
 * What a session that nobody runs may take from now on, for the whole of it: what a flag says, else what its journal
 * does. `settings` are those of the flags. A `UserError` if that is used up.
 */
export function limitsAtResume(
  state: SessionState,
  flags: Pick<RunFlags, 'rounds' | 'maxTime' | 'maxTokens'>,
  settings: Pick<Settings, 'rounds' | 'maxTime' | 'maxTokens'>,
): SessionLimits {
  const limits: SessionLimits = {
    rounds: flags.rounds === undefined ? state.limits.rounds : settings.rounds,
    timeMs: flags.maxTime === undefined ? state.limits.timeMs : settings.maxTime,
    tokens: flags.maxTokens === undefined ? state.limits.tokens : settings.maxTokens,
  }
  // All that it lacks is its end.
  if (state.claim.state === 'accepted' && state.ended === null) return limits
  const used = { rounds: state.roundsUsed, timeMs: elapsedMs(state, 'cut-off', 0), tokens: sessionTokens(state) }
  const reached = limitReached(limits, used)
  switch (reached) {
    case null:
      return limits
    case 'rounds':
      throw new UserError(
        `${state.id} has used ${used.rounds} of its ${limits.rounds} rounds; give it more with --rounds.`,
      )
    case 'time':
      throw new UserError(
        `${state.id} has worked for ${formatSpan(used.timeMs)}, which is all of its --max-time ${durationAsTyped(limits.timeMs ?? 0)}; give it more with --max-time.`,
      )
    case 'tokens':
      throw new UserError(
        `${state.id} has used ${formatTokens(used.tokens)}, which is all of its --max-tokens ${countAsTyped(limits.tokens ?? 0)}; give it more with --max-tokens.`,
      )
    default:
      return unreachable(reached)
  }
}

/** What may have to pass before done in a session that goes on. */
interface AtResume {
  /** What the session had to pass until now. */
  journaled: readonly Gate[]
  /** What the files and `--verify` say now. */
  loaded: readonly Gate[]
  /** What `--verify` says now. */
  verify: readonly string[]
  /** Whether the files are to count anew (`--reread-gates`). */
  reread: boolean
}

/**
 * What has to pass from now on: what it was, for the rounds could write the files since, and what `--verify` adds. None
 * reaches the network where the rounds no longer do.
 */
export function gatesAtResume(
  { journaled, loaded, verify, reread }: AtResume,
  settings: Pick<Settings, 'sandbox' | 'network'>,
): readonly Gate[] {
  const gates = reread ? loaded : withVerified(journaled, verify, settings)
  return reachesNetwork(settings) ? gates : gates.map(gate => ({ ...gate, network: false }))
}

/** What is known of the review in a session that goes on. */
interface AtResumeOfReviewAtResume {
  /** With what every claim was reviewed until now; null: only one that touched what gates protect. */
  journaled: ReviewTerms | null
  /** What is said now, and where. */
  settings: Pick<Settings, 'review' | 'reviewer'>
  sources: Pick<SettingSources, 'review' | 'reviewer.model' | 'reviewer.effort'>
  /** Whether the files are to count anew (`--reread-gates`). */
  reread: boolean
}

/** With what every claim is reviewed by these settings; null: only one that touches what gates protect. */
export function reviewIn({ review, reviewer }: AtResumeOfReviewAtResume['settings']): ReviewTerms | null {
  return review ? reviewer : null
}

/**
 * With what every claim is reviewed from now on. A flag and the environment say it; else a file may add a review, and
 * never take it off, for the rounds could write the project's since. Nor does that file say then who reviews.
 */
export function reviewAtResume({ journaled, settings, sources, reread }: AtResumeOfReviewAtResume): ReviewTerms | null {
  const isSaid = ['flag', 'environment'].includes(sources.review.layer)
  const now = reviewIn(settings)
  if (reread || journaled === null || (isSaid && now === null)) return now
  const isFromPerson = (key: 'reviewer.model' | 'reviewer.effort') =>
    ['person', 'environment'].includes(sources[key].layer)
  return {
    model: isFromPerson('reviewer.model') ? settings.reviewer.model : journaled.model,
    effort: isFromPerson('reviewer.effort') ? settings.reviewer.effort : journaled.effort,
  }
}

/**
 * The newest build that began after this session, if this is a build: the plan in the work directory is that one's now.
 * Null: it has its own. Journals that cannot be read are passed over.
 */
export async function newerBuild(
  records: Pick<Records, 'sessions' | 'journal'>,
  { id, template }: Pick<SessionState, 'id' | 'template'>,
): Promise<string | null> {
  if (template !== 'build') return null
  const ids = await records.sessions()
  for (const later of ids.slice(ids.indexOf(id) + 1).reverse()) {
    if (await isBuild(records.journal(later), later)) return later
  }
  return null
}

async function isBuild(path: string, id: string): Promise<boolean> {
  try {
    return (await foldJournal(path, id))?.template === 'build'
  } catch (error) {
    if (error instanceof UserError) return false
    throw error
  }
}

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
