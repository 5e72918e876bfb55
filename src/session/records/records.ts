import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { access, constants, mkdir, readdir, realpath, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { messageOf, systemErrorCode, UserError } from '../../base/errors.ts'
import type { TemplateKinds } from '../../core/template.ts'
import { keepPrivate, pathExists, realWorkDirectory } from '../../platform/files.ts'

/** Places that determine the records of a work directory. */
export interface RecordsPlaces {
  /** The work directory. */
  directory: string
  env: NodeJS.ProcessEnv
  /** The person's home directory. */
  home: string
  platform: NodeJS.Platform
  /** Templates of all possible sessions. */
  templates: TemplateKinds
}

/** The trusted records of one work directory (docs/inside/design.md, "On disk"). All paths are absolute. */
export interface Records {
  /** As `anyRootOf`. */
  root: string
  /** Folder of this work directory in the root, and the folder's name, which marks processes. */
  folder: string
  key: string
  /** Real path of the work directory. */
  directory: string
  templates: TemplateKinds
  /** File with the work directory's path; absent in records of an earlier version. */
  directoryFile: string
  lock: string
  queue: string
  /** Folder of the prompts that are queued again and again; created with the first one. */
  schedules: string
  control: string
  /** Output of the newest runner without a terminal. */
  runLog: string
  /** Text in the composer of the screen. */
  draft: string
  /** Current work of the running session, while somebody watches. */
  live: string
  git: string
  /** The set of files that is being written in the work directory, all or none. */
  writing: string
  /** The rewind that is in progress. */
  rewinding: string
  /** The repository's config and hooks from before the running session. */
  guard: string
  /** The folders of codex's sandbox that did not exist before the running session. */
  traces: string
  /** Folder of temporary files of commands with secrets. It exists from the start, so that each thread is denied it. */
  temporary: string
  /** Folder of the project's secrets (`secrets.ts`); created with the first one. */
  secrets: string
  /** Returns the folder of one session. */
  sessionFolder(id: string): string
  /** Returns the journal of one session. */
  journal(id: string): string
  /** Returns the file of the ignore rules at the start of one session. */
  ignoreRules(id: string): string
  /** Returns the lock of a session that is a call: it does not take the work directory's lock. */
  callLock(id: string): string
  /** Returns the file of a person's answer to a question of a session. */
  answer(session: string, question: string): string
  /** Returns the ids of all sessions, the oldest first. */
  sessions(): Promise<string[]>
  /**
   * Creates the folder of a new session and returns its id: the local day of `now` and a counter, as in `20261120_1`. Skips
   * numbers in use by a session or in the work directory's `.codemachine/projects`.
   */
  nextSessionId(now: Date): Promise<string>
  /** Creates the folder of a new session with this id. Throws a `UserError` if it exists. */
  takeSessionId(id: string): Promise<string>
}

/** Opens the records and creates their folders, for this user only. Throws a `UserError` if they cannot be written. */
export async function openRecords(places: RecordsPlaces): Promise<Records> {
  const directory = await realWorkDirectory(places.directory)
  const root = await openRecordsRoot(places)
  const records = recordsIn(root, directory, places.templates)
  const isNew = !(await isDirectory(records.folder))
  const folders = ['queue', 'control', 'git', 'sessions', 'answers', 'tmp'].map(name => join(records.folder, name))
  for (const each of [join(root, 'state'), records.folder, ...folders]) await makePrivate(each, places.platform)
  // Without this file, the lock and the journals name the directory.
  if (isNew) await writeFile(records.directoryFile, `${directory}\n`, { mode: 0o600 }).catch(() => {})
  return records
}

/**
 * Returns the existing or possible records of a directory and of each parent, the nearest first; none for a missing
 * directory. Creates nothing.
 */
export async function recordsAround(places: RecordsPlaces): Promise<Records[]> {
  const root = rootOf(places)
  const directory = await realpath(places.directory).catch(() => null)
  return directory === null ? [] : upwards(directory).map(each => recordsIn(root, each, places.templates))
}

/**
 * Returns the records of all work directories of this person, unordered. Only lock and journals name the directory, not the
 * key. Creates nothing.
 */
export async function allRecords(places: Omit<RecordsPlaces, 'directory'>): Promise<Omit<Records, 'directory'>[]> {
  const root = rootOf(places)
  const keys = await namesIn(join(root, 'state'))
  return keys.map(key => recordsIn(root, '', places.templates, key))
}

/** Returns the records of another directory with the same root, by its real path. Creates nothing. */
export function recordsOf({ root, templates }: Pick<Records, 'root' | 'templates'>, directory: string): Records {
  return recordsIn(root, directory, templates)
}

/** Returns the records of a removed directory; null: there are none. Creates nothing. */
export async function recordsOfGone(places: RecordsPlaces): Promise<Records | null> {
  const records = recordsIn(rootOf(places), await realPathOfGone(places.directory), places.templates)
  return (await pathExists(records.folder)) ? records : null
}

/** Returns the real path of a removed directory by its nearest existing parent. */
function realPathOfGone(path: string): Promise<string> {
  return realpath(path).catch(async () => join(await realPathOfGone(dirname(path)), basename(path)))
}

function upwards(directory: string): string[] {
  const above = dirname(directory)
  return above === directory ? [directory] : [directory, ...upwards(above)]
}

function recordsIn(root: string, directory: string, templates: TemplateKinds, key = keyOf(directory)): Records {
  const folder = join(root, 'state', key)
  const inFolder = (name: string) => join(folder, name)
  return {
    root,
    folder,
    key,
    directory,
    templates,
    directoryFile: inFolder('directory'),
    lock: inFolder('lock'),
    queue: inFolder('queue'),
    schedules: inFolder('schedules'),
    control: inFolder('control'),
    runLog: inFolder('run.log'),
    draft: inFolder('draft.json'),
    live: inFolder('live.json'),
    git: inFolder('git'),
    writing: inFolder('writing.json'),
    rewinding: inFolder('rewinding.json'),
    guard: inFolder('guard.json'),
    traces: inFolder('traces.json'),
    temporary: inFolder('tmp'),
    secrets: inFolder('secrets'),
    sessionFolder: id => join(folder, 'sessions', id),
    journal: id => join(folder, 'sessions', id, 'journal.ndjson'),
    ignoreRules: id => join(folder, 'sessions', id, 'ignore-rules'),
    callLock: id => join(folder, 'sessions', id, 'lock'),
    answer: (session, question) => join(folder, 'answers', `${session}-${question}.json`),
    sessions: () => listSessions(inFolder('sessions')),
    takeSessionId: id => takeSessionId(inFolder('sessions'), id),
    nextSessionId: now => makeSession(inFolder('sessions'), join(directory, '.codemachine', 'projects'), now),
  }
}

/**
 * Returns the folder of copies of sessions that run on other machines. Each has an empty work directory, `<id>/<name of its
 * repository>`, whose records have its journal. Nothing runs there.
 */
export function copiesIn(root: string): string {
  return join(root, 'fleet', 'view')
}

/** Returns the repository's name for the copy of a session; null: these records are not of a copy. */
export function repositoryOfCopy({ directory }: Pick<Records, 'directory'>): string | null {
  return /[\\/]fleet[\\/]view[\\/]\d{8}_\d+[\\/]([^\\/]+)$/.exec(directory)?.[1] ?? null
}

/** Returns the fleet session of these records, and if they are a copy or a worker's clone; null: none. */
export function fleetSessionOf({ directory }: Pick<Records, 'directory'>): { id: string; isCopy: boolean } | null {
  const place = /[\\/]fleet[\\/](view|workers[\\/][^\\/]+[\\/]sessions)[\\/](\d{8}_\d+)(?:[\\/]|$)/.exec(directory)
  const [, folder, id] = place ?? []
  return id === undefined ? null : { id, isCopy: folder === 'view' }
}

/** Throws a `UserError` if these are the records of a copy: nothing runs there. */
export function refuseCopy(records: Pick<Records, 'directory'>): void {
  if (repositoryOfCopy(records) === null) return
  throw new UserError(
    'CM0612',
    `${records.directory} is only a copy of a session of a fleet, so codemachine runs and changes nothing there.`,
    {
      hint: 'To have a worker resume it: codemachine fleet retry <id>',
    },
  )
}

/** Codemachine's own entries in the root. */
const OWN_ENTRIES = new Set(['state', 'codex', 'engines', 'demo', 'fleet'])

function isOwn(name: string): boolean {
  return OWN_ENTRIES.has(name) || /^(history\.jsonl|service\.)/.test(name)
}

/** As `anyRootOf`; a `UserError` for a relative `$CODEMACHINE_HOME`. */
export function rootOf(places: Pick<RecordsPlaces, 'env' | 'home'>): string {
  const root = anyRootOf(places)
  if (!isAbsolute(root)) throw new UserError('CM0609', `CODEMACHINE_HOME is "${root}"; use an absolute path.`)
  return root
}

/**
 * Returns the root of the records: `$CODEMACHINE_HOME`, or `~/.codemachine`, or for a new install `$XDG_STATE_HOME/codemachine`.
 * Ignores a relative `$XDG_STATE_HOME`, as its specification demands. Creates nothing.
 */
export function anyRootOf({ env, home }: Pick<RecordsPlaces, 'env' | 'home'>): string {
  if (env.CODEMACHINE_HOME) return env.CODEMACHINE_HOME
  const usual = join(home, '.codemachine')
  const state = env.XDG_STATE_HOME ?? ''
  if (!isAbsolute(state)) return usual
  const root = join(state, 'codemachine')
  return existsSync(root) || !existsSync(usual) ? root : usual
}

/** Creates the root of the records, private, and returns its real path; a `UserError` if it is not writable. */
export async function openRecordsRoot(places: RecordsPlaces): Promise<string> {
  const { env, platform } = places
  const root = rootOf(places)
  await makeFolder(root)
  // Keep the mode of a directory with other uses (/tmp, a home). Its `state` is always private.
  if (!env.CODEMACHINE_HOME || (await readdir(root)).every(isOwn)) await makePrivate(root, platform)
  return realpath(root)
}

async function makePrivate(folder: string, platform: NodeJS.Platform): Promise<void> {
  await makeFolder(folder)
  await keepPrivate(folder, platform).catch(error => {
    throw unwritable(folder, error)
  })
}

async function makeFolder(folder: string): Promise<void> {
  try {
    // Check first: most folders exist, and a failed `mkdir` is slower.
    if (!(await isDirectory(folder))) await makeWithParents(folder)
    await access(folder, constants.W_OK)
  } catch (error) {
    throw unwritable(folder, error)
  }
}

/** Creates a folder and its parents. Node's `recursive` loops in `/proc`, where an existing folder reads as missing. */
async function makeWithParents(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 })
  } catch (error) {
    if (await isDirectory(folder)) return
    const above = dirname(folder)
    if (systemErrorCode(error) !== 'ENOENT' || above === folder || (await pathExists(above))) throw error
    await makeWithParents(above)
    await mkdir(folder, { mode: 0o700 }).catch(async again => {
      // Another codemachine may have created it meanwhile.
      if (!(await isDirectory(folder))) throw again
    })
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return await stat(path).then(
    found => found.isDirectory(),
    () => false,
  )
}

const UNWRITABLE: Readonly<Record<string, string>> = {
  EEXIST: 'a file is in the way',
  ENOTDIR: 'a file is in the way',
  ENOENT: 'nothing can be created there',
}

function unwritable(folder: string, cause: unknown): UserError {
  const code = systemErrorCode(cause)
  return new UserError(
    'CM0609',
    `codemachine cannot store its records in ${folder}: ${UNWRITABLE[code ?? ''] ?? messageOf(cause)}.`,
    {
      hint: 'Set CODEMACHINE_HOME to a directory that you can write to.',
      cause,
    },
  )
}

function keyOf(directory: string): string {
  const name = basename(directory)
    .replace(/[^\w.-]+/g, '-')
    .replace(/^[.-]+/, '')
    .slice(0, 40)
  const hash = createHash('sha256').update(directory).digest('hex').slice(0, 12)
  return `${name || 'root'}-${hash}`
}

async function listSessions(folder: string): Promise<string[]> {
  const ids = (await namesIn(folder)).filter(isSessionId)
  return ids.sort(bySessionId)
}

/** Compares session ids by day and number, the oldest first. */
export function bySessionId(a: string, b: string): number {
  return Number(dayOf(a)) - Number(dayOf(b)) || counterOf(a) - counterOf(b)
}

/** Returns the names in a folder; none if it is missing: removed records may leave secrets behind. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return []
    throw error
  }
}

/** True if a text is a session id as of `nextSessionId`. */
export function isSessionId(text: string): boolean {
  return /^\d{8}_[1-9]\d{0,9}$/.test(text)
}

async function takeSessionId(folder: string, id: string): Promise<string> {
  try {
    await mkdir(join(folder, id), { mode: 0o700 })
    return id
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST')
      throw new UserError('CM0601', `The session ${id} already exists; continue it with codemachine resume ${id}.`)
    throw unwritable(join(folder, id), error)
  }
}

async function makeSession(folder: string, projects: string, now: Date): Promise<string> {
  const day = localDay(now)
  const today = (await listSessions(folder)).filter(id => dayOf(id) === day)
  for (let counter = Math.max(0, ...today.map(counterOf)) + 1; ; counter++) {
    const id = `${day}_${counter}`
    if (await pathExists(join(projects, id))) continue
    try {
      await mkdir(join(folder, id), { mode: 0o700 })
      return id
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw unwritable(join(folder, id), error)
    }
  }
}

/** Returns the local day at the start of session ids: `20261120`. */
export function localDay(now: Date): string {
  const [month, day] = [now.getMonth() + 1, now.getDate()].map(part => String(part).padStart(2, '0'))
  return `${now.getFullYear()}${month}${day}`
}

function dayOf(id: string): string {
  return id.slice(0, 8)
}

function counterOf(id: string): number {
  return Number(id.slice(9))
}
