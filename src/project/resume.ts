import { hostname } from 'node:os'
import { join } from 'node:path'
import { UserError } from '../base/errors.ts'
import { isFinished } from '../core/events/outcome.ts'
import { gatesOfPerson, withoutScope } from '../core/state/scope.ts'
import { isCall, isKnown, type SessionState, sharesPlan } from '../core/state/state.ts'
import { pathExists } from '../platform/files.ts'
import {
  foldAndCount,
  foldJournal,
  isReplayedSession,
  problemOfJournal,
  problemOfSession,
} from '../session/records/journal.ts'
import { openQueue } from '../session/records/queue.ts'
import { type Records, refuseCopy } from '../session/records/records.ts'
import { readRunner } from '../session/records/run-lock.ts'
import { removeSnapshot, type SnapshotCheck } from '../session/records/snapshot.ts'
import { resumeCommand } from '../tell/words/commands.ts'
import { formatCount, formatSpan } from '../tell/words/numbers.ts'
import { describeOutcome } from '../tell/words/outcome.ts'
import { oneLine, titleLine } from '../tell/words/safe-text.ts'
import { findSession, latestSession, newestBuild, whereElse } from './find.ts'
import type { RunOptions } from './library.ts'
import { openRun, type RunListeners, refuseHiddenGates, settingsOf } from './open-run.ts'
import { nextToStart, type QueueResult, runQueue, type Start } from './run-queue.ts'
import {
  gatesAtResume,
  limitsAtResume,
  optionsAtResume,
  proveAtResume,
  reviewAtResume,
  runAtResume,
} from './session-terms.ts'
import type { RunObserver } from './sessions.ts'
import type { World } from './world.ts'

/** Session to resume, and how. */
export interface Resume {
  /** As typed; null: the newest one that is not done. */
  session: string | null
  /** Options given now: they win over those from its beginning. */
  options: RunOptions
  /** Whether to take gates and review from the files now, instead of those from its beginning. */
  rereadsGates: boolean
  /** Whether to run only this session, and not the queue. */
  alone: boolean
}

/**
 * Resumes an unfinished session, then runs the queue. Throws a `UserError` if there is none, if it cannot be resumed, or
 * while a codemachine runs here (exit code 6).
 */
export async function resumeSession(
  world: World,
  records: Records,
  resume: Resume,
  observer: RunObserver,
  listeners: RunListeners = {},
): Promise<QueueResult> {
  const { session, options } = resume
  const before =
    session === null
      ? sessionHere(records, await newestUnfinished(records))
      : (await readSession(records, await findSession(records, session), 'ends')).state
  refuseCall(before)
  refuseReplay(before)
  refuseUnknown(before)
  if (options.config === undefined) refuseHiddenOverrides(before)
  const own = await resumeAlone(world, records, before, resume, observer, listeners)
  if (resume.alone || !own.goesOn || (await nextToStart(openQueue(records.queue), records.templates)) === null)
    return own
  // Queued prompts never had the rights of this session.
  await using opened = await openRun(world, options, listeners)
  const named = options.directory ?? null
  const of = own.allowance === null ? {} : { allowance: own.allowance }
  const rest = await runQueue(world, opened, { first: null, named, resumable: true, ...of }, observer)
  if (rest === null) return own
  const sessions = [...own.sessions, ...rest.sessions]
  return { ...rest, sessions, exitCode: rest.isBrokenOff ? rest.exitCode : own.exitCode || rest.exitCode }
}

async function resumeAlone(
  world: World,
  records: Records,
  before: SessionState,
  { options, rereadsGates: reread }: Resume,
  observer: RunObserver,
  listeners: RunListeners,
): Promise<QueueResult> {
  const { id, said, overrides } = before
  const all = optionsAtResume(said, overrides, options)
  if (before.ended === null || !isFinished(before.ended.outcome)) {
    // Check before anything is created or started.
    await refuseOldPlan(records, before)
    limitsAtResume(before, options, (await settingsOf(world, records.directory, all)).settings)
  }
  await using opened = await openRun(world, all, listeners)
  // Read it again under the lock: another codemachine may have worked on it before.
  const { state, rubbish, hasSnapshot } = await readSession(records, id, 'whole')
  // Do not resume from an unused snapshot.
  if (!hasSnapshot) await removeSnapshot(records.journal(id))
  if (state.ended !== null && isFinished(state.ended.outcome)) {
    const how = state.ended.outcome.kind === 'replayed' ? 'was replayed' : 'is done'
    throw new UserError('CM0605', `${id} ${how}, so there is nothing to resume.`)
  }
  await refuseOldPlan(records, state)
  const limits = limitsAtResume(state, options, opened.settings)
  opened.remarks.push(
    ...remarksOnHost(state),
    ...remarksOnJournal(records.journal(id), rubbish),
    ...(await remarksOnKept(world, records, state)),
  )
  const own = withoutScope(state)
  const gates = gatesAtResume(
    { journaled: gatesOfPerson(own), loaded: opened.gates, verify: opened.said.verify ?? [], reread },
    opened.settings,
  )
  refuseHiddenGates(id, gates)
  const review = reviewAtResume({ ...opened, journaled: own.review, reread })
  const prove = proveAtResume(state, opened)
  const first: Start = sessions => sessions.resume(state, { limits, gates, review, prove })
  const named = options.directory ?? null
  const allowance = runAtResume(state, options, limits)
  const worked = await runQueue(world, opened, { first, alone: true, named, resumable: true, allowance }, observer)
  if (worked === null) throw new Error(`${id} was not resumed.`)
  return worked
}

async function newestUnfinished(records: Records): Promise<SessionState> {
  const ids = await records.sessions()
  let hasPlan = false
  for (const id of [...ids].reverse()) {
    const problem = await problemOfJournal(records.journal(id))
    if (problem !== null) {
      const hint = 'To resume another session, name it; codemachine list shows them.'
      throw new UserError('CM0607', problem, ids.length > 1 ? { hint } : {})
    }
    const state = await foldJournal(records, id, 'ends')
    if (state === null || isCall(state)) continue
    const isOld = hasPlan && sharesPlan(state)
    const isOpen = (state.ended === null || !isFinished(state.ended.outcome)) && !isOld
    if (isOpen && !(await isReplayedSession(records, id))) return state
    hasPlan ||= sharesPlan(state)
  }
  throw new UserError('CM0605', `No session in ${records.directory} can be resumed.`, {
    hint: (await pathExists(join(records.directory, 'projects', '.gitignore')))
      ? 'To list the projects of teams: codemachine team list'
      : await whereElse(records),
  })
}

/** A new build sets the plan of the old one aside. */
async function refuseOldPlan(records: Records, state: SessionState): Promise<void> {
  const newer = sharesPlan(state) ? await newestBuild(records, state.id) : null
  if (newer === null) return
  throw new UserError(
    'CM0605',
    `${state.id} cannot be resumed, because the newer build ${newer} has made its own plan. codemachine start plans what is missing.`,
  )
}

/**
 * Returns a session's state, and the number of lost journal lines. Throws a `UserError` if it is unreadable, or belongs to
 * another work directory.
 */
async function readSession(
  records: Records,
  id: string,
  check: SnapshotCheck,
): Promise<{ state: SessionState; rubbish: number; hasSnapshot: boolean }> {
  const { state, ...read } = await foldAndCount(records, id, check)
  if (state === null)
    throw new UserError('CM0607', `${records.journal(id)} does not name the goal of ${id}, so it cannot be resumed.`)
  return { state: sessionHere(records, state), ...read }
}

function sessionHere(records: Records, state: SessionState): SessionState {
  refuseCopy(records)
  const { directory } = records
  if (state.directory === directory) return state
  throw new UserError('CM0608', `${state.id} belongs to ${state.directory}, but you are in ${directory}.`, {
    hint: `To resume it there: ${resumeCommand(state.id, state.directory)}`,
  })
}

/** Another version of codemachine may have written something that this one cannot continue. */
function refuseUnknown({ id, kind, template, unknownPart }: SessionState): void {
  const name = JSON.stringify(oneLine(template, NAME_CHARS))
  if (kind === null) {
    throw new UserError(
      'CM0606',
      `${id} uses the template ${name}, which this codemachine does not have. Resume it with the codemachine that started it, or a newer one.`,
    )
  }
  if (unknownPart === null) return
  const part = JSON.stringify(oneLine(unknownPart, NAME_CHARS))
  throw new UserError(
    'CM0606',
    `${id} has a round for ${part}, which this codemachine does not know in the template ${name}. Resume it with the codemachine that ran it last, or a newer one.`,
  )
}

const NAME_CHARS = 60

/** The caller that waited for the answer is gone. */
function refuseCall(state: SessionState): void {
  if (!isCall(state)) return
  throw new UserError(
    'CM0605',
    `${state.id} is an agent call, which cannot be resumed; call it again: ${state.kind?.command}`,
  )
}

/** A resume would run it for real, not just replay it. */
function refuseReplay({ id, replays, ended }: SessionState): void {
  if (!replays || (ended !== null && isFinished(ended.outcome))) return
  throw new UserError('CM0605', `${id} only replayed recordings, so it cannot be resumed; run the workflow again.`)
}

/** Secrets are not stored: if one was passed to codex, a person must type it again. */
function refuseHiddenOverrides({ id, overrides }: SessionState): void {
  const hidden = overrides.find(pair => pair.includes('[secret '))
  if (hidden === undefined) return
  throw new UserError(
    'CM0904',
    `${id} began with -c ${hidden}, and codemachine does not store its secrets; give each -c again.`,
  )
}

function remarksOnJournal(path: string, rubbish: number): string[] {
  if (rubbish === 0) return []
  return [`${formatCount(rubbish, 'line')} of ${path} cannot be read and were skipped; all others count.`]
}

/** Returns sentences on kept texts of the session that differ now. */
async function remarksOnKept({ modes }: World, records: Records, state: SessionState): Promise<string[]> {
  if (state.kept.length === 0) return []
  return (await (await modes.partsOf(state.template))?.remarksOnResume?.(records, state)) ?? []
}

function remarksOnHost({ host }: SessionState): string[] {
  const here = hostname()
  return host === '' || host === here
    ? []
    : [`This session ran on another machine (${host}); it continues here, on ${here}.`]
}

/** An interrupted session, in words. */
interface Unfinished {
  id: string
  /** Id of its queued prompt; null: typed. */
  queued: string | null
  /** `20261121_1 was cut off 2 h ago`. */
  what: string
  /** `"build X" (3 rounds)`. */
  about: string
}

/**
 * Returns the latest session if it was cut off or interrupted. Null if it ended, this version cannot resume it, or a
 * codemachine runs here.
 * @param onProblem receives one sentence for each unreadable journal, and if that session's template throws
 */
export async function findUnfinished(
  world: Pick<World, 'platform' | 'clock'>,
  records: Records,
  onProblem: (problem: string) => void,
): Promise<Unfinished | null> {
  const state = await stateLeft(world, records, onProblem)
  const how = state && howItStopped(state)
  if (!state || !how) return null
  return {
    id: state.id,
    queued: state.queued,
    what: `${state.id} was ${how} ${ago(world.clock.now() - state.updatedAt)}`,
    about: `"${titleLine(state.goal, GOAL_CHARS)}" (${formatCount(state.roundsUsed, 'round')})`,
  }
}

/** Returns the state of that session. */
export async function stateLeft(
  world: Pick<World, 'platform'>,
  records: Records,
  onProblem: (problem: string) => void,
): Promise<SessionState | null> {
  if ((await readRunner(records.lock, world.platform)) !== null) return null
  const id = await latestSession(records, onProblem, 'passed over')
  const passOver = (error: unknown) => {
    onProblem(problemOfSession(id ?? '', error))
    return null
  }
  const state = id === null ? null : await foldJournal(records, id, 'ends').catch(passOver)
  if (!state || !isKnown(state) || howItStopped(state) === null) return null
  if (sharesPlan(state) && (await newestBuild(records, state.id)) !== null) return null
  return (await isReplayedSession(records, state.id)) ? null : state
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

/** Formats a duration in its largest unit: `2 h ago`. */
function ago(ms: number): string {
  const unit = [DAY, HOUR, MINUTE].find(each => ms >= each)
  return unit === undefined ? 'just now' : `${formatSpan(Math.floor(ms / unit) * unit)} ago`
}
