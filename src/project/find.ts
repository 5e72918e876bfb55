import { lstat, readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { systemErrorCode, UserError, unreachable } from '../base/errors.ts'
import { type SessionState, sharesPlan } from '../core/state/state.ts'
import { MARK_VARIABLE, type Mark, parseMark } from '../platform/end-processes.ts'
import { isFolder, pathExists } from '../platform/files.ts'
import { foldJournal, isCallSession, isReplayedSession, problemOfSession } from '../session/records/journal.ts'
import { type AskedQuestion, questionId, questionsOf } from '../session/records/questions.ts'
import { type Records, type RecordsPlaces, recordsAround } from '../session/records/records.ts'
import { askWhoRuns, readRunLock, unreadableLock } from '../session/records/run-lock.ts'
import type { SnapshotCheck } from '../session/records/snapshot.ts'
import { oneLine } from '../tell/words/safe-text.ts'
import type { World } from './world.ts'

/** A place of sessions: a directory, or the same folder in a worktree that codemachine made next to its checkout. */
export interface SessionsPlace {
  /** Name of the worktree; null: the directory itself. */
  worktree: string | null
  records: Records
}

/** Returns the top folder of the checkout around a directory if `<checkout>.worktrees` is next to it; else null. */
export async function checkoutWithWorktrees(directory: string): Promise<string | null> {
  if (await pathExists(join(directory, '.git'))) {
    const beside = await lstat(`${directory}.worktrees`).catch(() => null)
    return beside?.isDirectory() ? directory : null
  }
  const above = dirname(directory)
  return above === directory ? null : await checkoutWithWorktrees(above)
}

/**
 * Returns the session that a person means: by its id, its counter (`1` for `20261120_1`), or a unique beginning or end.
 * Without a word, the latest. Throws a `UserError` that names similar ones if there is none, or several.
 * @param onProblem as of `latestSession`
 * @param replays as of `latestSession`
 */
export async function findSession(
  records: Records,
  wanted: string | null,
  onProblem: (problem: string) => void = () => {},
  replays: Replays = 'passed over',
): Promise<string> {
  const ids = await records.sessions()
  if (ids.length === 0) {
    throw new UserError('CM0603', `No sessions in ${records.directory} yet.`, {
      hint: await whereElse(records),
    })
  }
  if (wanted === null) return await latestOrRefuse(records, onProblem, replays)
  const matches = matching(
    ids.map(id => ({ id })),
    wanted,
  ).map(({ id }) => id)
  const [match] = matches
  if (match !== undefined && matches.length === 1) return match
  const shown = oneLine(wanted, 60)
  if (match === undefined) {
    throw new UserError('CM0603', `There is no session "${shown}" in ${records.directory}.`, {
      hint: `${ids.length > MOST_SHOWN ? 'The newest are' : 'There are'}: ${some(ids)}`,
    })
  }
  throw new UserError('CM0604', `"${shown}" may mean ${matches.length} sessions; give more of the id.`, {
    hint: some(matches),
  })
}

/** Returns a hint for a person who asks for a session where there is none. */
export async function whereElse({ directory }: Pick<Records, 'directory'>): Promise<string> {
  return (await checkoutWithWorktrees(directory)) === null
    ? 'Start one: codemachine "…"'
    : 'Its worktrees have sessions of their own: codemachine list shows them, and -C names the directory of one.'
}

async function latestOrRefuse(
  records: Records,
  onProblem: (problem: string) => void,
  replays: Replays,
): Promise<string> {
  const problems: string[] = []
  const latest = await latestSession(records, problem => problems.push(problem), replays)
  const last = latest === null ? problems.pop() : undefined
  for (const problem of problems) onProblem(problem)
  if (latest !== null) return latest
  throw new UserError(
    last === undefined ? 'CM0603' : 'CM0607',
    last ?? `${records.directory} has only calls of agents; name a session that codemachine list shows.`,
  )
}

/** Whether sessions that only replay recordings count like any other, or only if there is no other. */
export type Replays = 'counted' | 'passed over'

/**
 * Returns the session with the newest write, which is the running one if one runs; null: none. Skips calls.
 * @param onProblem receives one sentence for each newer session that is unreadable; if none is found, also for each empty
 * one
 */
export async function latestSession(
  records: Records,
  onProblem: (problem: string) => void,
  replays: Replays = 'counted',
): Promise<string | null> {
  const written: { path: string; id: string; at: number }[] = []
  for (const id of await records.sessions()) {
    const path = records.journal(id)
    const at = await writtenAt(path)
    if (at !== null) written.push({ path, id, at })
  }
  // If two have the same time, take the one created last.
  const empty: string[] = []
  let replay: string | null = null
  for (const { path, id } of written.reverse().sort((a, b) => b.at - a.at)) {
    try {
      const isCall = await isCallSession(records, id)
      const isShown = isCall === false && replays === 'passed over' && (await isReplayedSession(records, id))
      if (isShown) replay ??= id
      else if (isCall === false) return id
      else if (isCall === null) empty.push(path)
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      onProblem(error.message)
    }
  }
  if (replay !== null) return replay
  for (const path of empty) onProblem(`${path} has no session.`)
  return null
}

/** Returns the newest sessions that are no calls, oldest first, at most `most`; unreadable ones included. */
export async function newestSessions(
  records: Pick<Records, 'sessions' | 'journal' | 'templates'>,
  most: number,
): Promise<string[]> {
  const found: string[] = []
  for (const id of (await records.sessions()).reverse()) {
    if (found.length === most) break
    if (!(await isCallSession(records, id).catch(passOver))) found.unshift(id)
  }
  return found
}

/** Returns the newest session that is no call and not only a replay; null: none. It may be unreadable. */
export async function newestAtWork(
  records: Pick<Records, 'sessions' | 'journal' | 'templates'>,
): Promise<string | null> {
  for (const id of (await records.sessions()).reverse()) {
    if (await isCallSession(records, id).catch(passOver)) continue
    if (!(await isReplayedSession(records, id).catch(passOver))) return id
  }
  return null
}

function passOver(error: unknown): false {
  if (error instanceof UserError) return false
  throw error
}

const MOST_SHOWN = 8

/** Returns the matches of a typed word: by the complete id, else the counter, else a part. */
export function matching<T extends { id: string }>(all: readonly T[], wanted: string): readonly T[] {
  const exact = all.filter(({ id }) => id === wanted)
  if (exact.length > 0) return exact
  const byCounter = all.filter(({ id }) => id.endsWith(`_${wanted.replace(/^_/, '')}`))
  if (byCounter.length > 0) return byCounter
  return all.filter(({ id }) => id.startsWith(wanted) || (wanted.includes('_') && id.endsWith(wanted)))
}

/** Returns the last of these ids, for a hint. */
export function some(ids: readonly string[]): string {
  return `${ids.length > MOST_SHOWN ? '…, ' : ''}${ids.slice(-MOST_SHOWN).join(', ')}`
}

/** Returns when a file or a link last changed, as Unix time in ms; null: missing. */
export async function writtenAt(path: string): Promise<number | null> {
  try {
    return (await lstat(path)).mtimeMs
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return null
    throw error
  }
}

/** Returns the project of a directory. Throws a `UserError` if there is none, or no such directory. */
export async function projectAround(places: RecordsPlaces): Promise<string> {
  const [here] = await recordsAround(places)
  if (here === undefined) throw new UserError('CM0106', `${places.directory} is not a directory; name an existing one.`)
  const found = await findProject(here.directory, here.root)
  if (found !== null) return found
  throw new UserError(
    'CM0608',
    `${places.directory} is in no project: neither it nor a directory above it has a .codemachine folder.`,
    { hint: 'Start codemachine in the project first, or name its directory with -C.' },
  )
}

/**
 * Returns the nearest directory at or above this one with a `.codemachine` folder; null: none. Records in a home directory
 * have the same folder name, but alone make no project: neither this person's (in `root`), nor another's.
 */
async function findProject(directory: string, root: string): Promise<string | null> {
  const folder = join(directory, '.codemachine')
  const areRecords = (await isFolder(join(folder, 'state'))) || (await isSame(folder, root))
  if ((await isFolder(folder)) && (!areRecords || (await isFolder(join(folder, 'inputs'))))) return directory
  const above = dirname(directory)
  return above === directory ? null : await findProject(above, root)
}

async function isSame(a: string, b: string): Promise<boolean> {
  const [one, other] = await Promise.all([a, b].map(path => stat(path).catch(() => null)))
  return one?.ino === other?.ino && one?.dev === other?.dev
}

/**
 * Returns the question that a person means: `20261120_1/Q1`, its session named as elsewhere, or `Q1` of the newest session
 * that has one. Throws a `UserError` that lists the questions if there is no match.
 * @param onProblem receives one sentence for each unreadable journal and answer
 */
export async function findQuestion(
  records: Records,
  typed: string,
  onProblem: (problem: string) => void,
): Promise<AskedQuestion> {
  const slash = typed.lastIndexOf('/')
  const name = typed
    .slice(slash + 1)
    .toUpperCase()
    .replace(/^(?=\d+$)/, 'Q')
  const ids = slash === -1 ? (await records.sessions()).reverse() : [await findSession(records, typed.slice(0, slash))]
  const others: string[] = []
  for (const id of ids) {
    const asked = await questionsOrNone(records, id, onProblem)
    const found = asked.find(({ question }) => question === name)
    if (found !== undefined) return found
    others.unshift(...asked.map(questionId))
  }
  throw new UserError('CM0615', `There is no question "${oneLine(typed, 60)}" in ${records.directory}.`, {
    hint: hint(others),
  })
}

/**
 * Returns the questions of a session; none if its journal is unreadable.
 * @param onProblem receives the reason, and a sentence for each unreadable answer
 */
export async function questionsOrNone(
  records: Records,
  id: string,
  onProblem: (problem: string) => void,
): Promise<AskedQuestion[]> {
  try {
    return await questionsOf(records, id, onProblem)
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    onProblem(error.message)
    return []
  }
}

/** Returns the state of a session as `foldJournal` does; also null if its journal is unreadable, or its template throws. */
export async function readableState(
  records: Pick<Records, 'journal' | 'templates'>,
  id: string,
  check: SnapshotCheck = 'whole',
): Promise<SessionState | null> {
  try {
    return await foldJournal(records, id, check)
  } catch (error) {
    problemOfSession(id, error)
    return null
  }
}

function hint(ids: readonly string[]): string {
  if (ids.length === 0) return 'No agent has asked anything there; see: codemachine questions --all'
  return `${ids.length > MOST_SHOWN ? 'The newest are: …, ' : 'There are: '}${ids.slice(-MOST_SHOWN).join(', ')}`
}

/** A session that can receive requests. */
export interface SessionAround {
  /** Real path of its work directory. */
  directory: string
  /** Folder of its records, possibly invisible to this process. */
  records: string
  /** False if only a lock says so, and its process may be dead or invisible. */
  isSure: boolean
  /** Returns whether it is known to have ended; null: its process is invisible to this one. */
  isGone: (() => Promise<boolean>) | null
}

/**
 * Returns the session that can receive requests in a folder: the one that started this process, else the one that runs in
 * the project around it. Null if none runs. Writes nothing: in an agent's sandbox the records are read-only, or even
 * invisible.
 */
export async function sessionAround(
  world: Pick<World, 'env' | 'home' | 'platform' | 'templates'>,
  folder: string,
): Promise<SessionAround | null> {
  const around = await recordsAround({ ...world, directory: folder })
  const mark = parseMark(world.env[MARK_VARIABLE] ?? '')
  const own = around.find(({ key }) => key === mark?.key)
  const [here] = around
  const project = own?.directory ?? (here === undefined ? null : await findProject(here.directory, here.root))
  const records = around.find(({ directory }) => directory === project)
  if (records === undefined) return null
  const isRunning = await (own && mark ? ofMark(records, mark, world) : ofLock(records, world))
  if (isRunning === false) return null
  const isGone = await goneWithLock(records, world)
  return { directory: records.directory, records: records.folder, isSure: isRunning === true, isGone }
}

/** Returns a check whether the process that holds the lock now has released it, or died. */
async function goneWithLock(
  { lock }: Records,
  { platform }: Pick<World, 'platform'>,
): Promise<SessionAround['isGone']> {
  const before = await readRunLock(lock, platform)
  if (before.state !== 'held') return null
  return async () => {
    const now = await readRunLock(lock, platform)
    if (now.state === 'free' || now.state === 'stale') return true
    return now.state === 'held' && now.holder.nonce !== before.holder.nonce
  }
}

/**
 * Returns whether a session started this process. An agent that works alone has a mark too, of a process that does not hold
 * the lock. In codex's sandbox the process that holds it may be invisible.
 */
async function ofMark(records: Records, { owner }: Mark, { platform }: Pick<World, 'platform'>): Promise<boolean> {
  const lock = await readRunLock(records.lock, platform)
  switch (lock.state) {
    case 'held':
    case 'elsewhere':
    case 'unreadable':
      return true
    case 'stale':
      return lock.holder.pid === owner.pid
    case 'free':
      // It is hidden if not even their folder is there.
      return !(await pathExists(records.folder))
    default:
      return unreachable(lock)
  }
}

async function ofLock(
  records: Records,
  { env, platform }: Pick<World, 'env' | 'platform'>,
): Promise<boolean | 'perhaps'> {
  const lock = await readRunLock(records.lock, platform)
  switch (lock.state) {
    case 'held':
    case 'elsewhere':
      return true
    case 'stale':
      // The person may configure codex to pass on no variables, so the mark may be missing.
      return env.CODEX_THREAD_ID === undefined ? false : 'perhaps'
    case 'free':
      return false
    case 'unreadable':
      throw unreadableLock(lock)
    default:
      return unreachable(lock)
  }
}

/**
 * Throws a `UserError` with exit code 6 if a codemachine runs in one of these directories.
 * @param directories called only if one runs anywhere
 */
export async function refuseRunning(
  world: World,
  top: string,
  directories: () => Promise<readonly string[]>,
): Promise<void> {
  const [records] = await recordsAround({ ...world, directory: top })
  if (records === undefined) return
  const held = await heldLocks(world, records)
  if (held.size === 0) return
  for (const directory of [top, ...(await directories())]) {
    const [{ key } = records] = await recordsAround({ ...world, directory })
    const pid = held.get(key)
    if (pid === undefined) continue
    throw new UserError('CM0601', `codemachine (pid ${pid}) runs in ${directory}, and its files must not change now.`, {
      hint: 'Wait for its end or stop it with codemachine stop, then land again.',
      exitCode: 6,
    })
  }
}

/** Returns the pid of each running codemachine, by the key of its records. */
async function heldLocks({ platform }: World, { root, key: own }: Records): Promise<Map<string, number>> {
  const state = join(root, 'state')
  const held = new Map<string, number>()
  for (const key of await readdir(state).catch(() => [])) {
    const runner = await askWhoRuns(join(state, key, 'lock'), platform, problem => {
      if (key === own) throw new UserError('CM0602', problem, { exitCode: 6 })
    })
    if (runner !== null && runner !== 'unknown') held.set(key, runner.pid)
  }
  return held
}

/**
 * Returns the newest session that shares the project's plan, of those after `after` (null: of all). It owns the plan in the
 * work directory. Null: none. Skips unreadable journals.
 */
export async function newestBuild(
  records: Pick<Records, 'sessions' | 'journal' | 'templates'>,
  after: string | null,
): Promise<string | null> {
  const ids = await records.sessions()
  for (const id of ids.slice(after === null ? 0 : ids.indexOf(after) + 1).reverse()) {
    const state = await readableState(records, id, 'ends')
    if (state !== null && sharesPlan(state)) return id
  }
  return null
}
