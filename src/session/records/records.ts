import { createHash } from 'node:crypto'
import { access, chmod, constants, mkdir, readdir, realpath, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { messageOf, systemErrorCode, UserError } from '../../base/errors.ts'
import type { TemplateKinds } from '../../core/template.ts'
import { pathExists, realWorkDirectory } from '../../platform/files.ts'

/** Where the records of a work directory are looked for. */
export interface RecordsPlaces {
  /** The work directory. */
  directory: string
  env: NodeJS.ProcessEnv
  /** The person's home directory. */
  home: string
  platform: NodeJS.Platform
  /** The templates of the sessions there may be. */
  templates: TemplateKinds
}

/** What codemachine writes and believes about one work directory (docs/inside/design.md, "On disk"). All paths are absolute. */
export interface Records {
  /** `$CODEMACHINE_HOME` or `~/.codemachine`. */
  root: string
  /** The folder of this work directory in it, and that folder's name, by which processes are marked. */
  folder: string
  key: string
  /** The work directory's real path. */
  directory: string
  templates: TemplateKinds
  /** The file that says which work directory these records are of; not there in those of an earlier version. */
  directoryFile: string
  lock: string
  queue: string
  control: string
  /** The output of the newest runner that works without a terminal. */
  runLog: string
  /** What stands in the composer of the screen. */
  draft: string
  /** What the running session does just now, while somebody watches. */
  live: string
  git: string
  /** Which set of files is being written in the work directory just now, all or none. */
  writing: string
  /** The rewind that is being carried out just now. */
  rewinding: string
  /** What the repository's config and hooks were like before the running session. */
  guard: string
  /** Which folders that codex's sandbox leaves were not there before the running session. */
  traces: string
  /** The folder of the temporary files of commands with secrets. There from the beginning, so that each thread is denied it. */
  temporary: string
  /** The folder of the project's secrets (`secrets.ts`); made when there is a first one. */
  secrets: string
  /** The folder of one session. */
  sessionFolder(id: string): string
  /** The journal of one session. */
  journal(id: string): string
  /** The ignore rules of the beginning of one session. */
  ignoreRules(id: string): string
  /** The lock of a session that is a call, which does not hold that of the work directory. */
  callLock(id: string): string
  /** What a person has answered to a question of a session. */
  answer(session: string, question: string): string
  /** The ids of all sessions, the oldest first. */
  sessions(): Promise<string[]>
  /**
   * Makes the folder of a new session and returns its id: the local day of `now` and a counter, as in `20261120_1`. A
   * number that a session has, or that something has in the work directory's `.codemachine/projects`, is not used.
   */
  nextSessionId(now: Date): Promise<string>
  /** Makes the folder of a new session of this id; a `UserError` if there is one. */
  takeSessionId(id: string): Promise<string>
}

/** Opens the records, and makes their folders, for this user only; a `UserError` if they cannot be written. */
export async function openRecords(places: RecordsPlaces): Promise<Records> {
  const directory = await realWorkDirectory(places.directory)
  const root = await openRecordsRoot(places)
  const records = recordsIn(root, directory, places.templates)
  const isNew = !(await isDirectory(records.folder))
  const folders = ['queue', 'control', 'git', 'sessions', 'answers', 'tmp'].map(name => join(records.folder, name))
  for (const each of [join(root, 'state'), records.folder, ...folders]) await makePrivate(each, places.platform)
  // Without it the lock and the journals say so.
  if (isNew) await writeFile(records.directoryFile, `${directory}\n`, { mode: 0o600 }).catch(() => {})
  return records
}

/**
 * Where the records of a directory, and of each above it, are or would be, the nearest first; none of a directory that
 * is not there. Makes nothing.
 */
export async function recordsAround(places: RecordsPlaces): Promise<Records[]> {
  const root = rootOf(places)
  const directory = await realpath(places.directory).catch(() => null)
  return directory === null ? [] : upwards(directory).map(each => recordsIn(root, each, places.templates))
}

/**
 * The records of all work directories of this person, in no order; which directory each is of its key does not say, only its lock
 * and journals. Makes nothing.
 */
export async function allRecords(places: Omit<RecordsPlaces, 'directory'>): Promise<Omit<Records, 'directory'>[]> {
  const root = rootOf(places)
  const keys = await namesIn(join(root, 'state'))
  return keys.map(key => recordsIn(root, '', places.templates, key))
}

/** Those of another directory, by its real path, beside these. Makes nothing. */
export function recordsOf({ root, templates }: Pick<Records, 'root' | 'templates'>, directory: string): Records {
  return recordsIn(root, directory, templates)
}

/** The records of a directory that is gone, as they were found when it was there; null: there are none. Makes nothing. */
export async function recordsOfGone(places: RecordsPlaces): Promise<Records | null> {
  const records = recordsIn(rootOf(places), await realPathOfGone(places.directory), places.templates)
  return (await pathExists(records.folder)) ? records : null
}

/** By the nearest directory above it that is there. */
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
 * The folder of the copies of sessions that other machines run: below it each has an empty work directory, `<id>/<name of its
 * repository>`, whose records hold its journal. Nothing is run there.
 */
export function copiesIn(root: string): string {
  return join(root, 'fleet', 'view')
}

/** What a session works on of which this is the copy: the name of its repository; null: these are no records of a copy. */
export function repositoryOfCopy({ directory }: Pick<Records, 'directory'>): string | null {
  return /[\\/]fleet[\\/]view[\\/]\d{8}_\d+[\\/]([^\\/]+)$/.exec(directory)?.[1] ?? null
}

/** The session of a fleet that these records are of, and whether they are those of a copy, or of the clone of a worker; null: of none. */
export function fleetSessionOf({ directory }: Pick<Records, 'directory'>): { id: string; isCopy: boolean } | null {
  const place = /[\\/]fleet[\\/](view|workers[\\/][^\\/]+[\\/]sessions)[\\/](\d{8}_\d+)(?:[\\/]|$)/.exec(directory)
  const [, folder, id] = place ?? []
  return id === undefined ? null : { id, isCopy: folder === 'view' }
}

/** Throws a `UserError` where these are the records of a copy: nothing is run there. */
export function refuseCopy(records: Pick<Records, 'directory'>): void {
  if (repositoryOfCopy(records) === null) return
  throw new UserError(
    'CM0612',
    `${records.directory} is the copy of a session of a fleet, so nothing is run or changed there.`,
    {
      hint: 'To have a worker resume it: codemachine fleet retry <id>',
    },
  )
}

/** What codemachine itself keeps in the root. */
const OWN_ENTRIES = new Set(['state', 'codex', 'engines', 'demo'])

function isOwn(name: string): boolean {
  return OWN_ENTRIES.has(name) || /^(history\.jsonl|service\.)/.test(name)
}

/** `$CODEMACHINE_HOME` or `~/.codemachine`. Makes nothing; a `UserError` if that is no absolute path. */
export function rootOf({ env, home }: Pick<RecordsPlaces, 'env' | 'home'>): string {
  const given = env.CODEMACHINE_HOME || null
  if (given !== null && !isAbsolute(given))
    throw new UserError('CM0609', `CODEMACHINE_HOME is "${given}"; use an absolute path.`)
  return given ?? join(home, '.codemachine')
}

/** Makes the root of the records, for this user only, and returns its real path; a `UserError` if it cannot be written. */
export async function openRecordsRoot(places: RecordsPlaces): Promise<string> {
  const { env, platform } = places
  const root = rootOf(places)
  await makeFolder(root)
  // A directory that someone shares for other things too (/tmp, a home) is not closed; `state` in it is, always.
  if (!env.CODEMACHINE_HOME || (await readdir(root)).every(isOwn)) await makePrivate(root, platform)
  return realpath(root)
}

async function makePrivate(folder: string, platform: NodeJS.Platform): Promise<void> {
  await makeFolder(folder)
  if (platform === 'win32') return
  const { mode } = await stat(folder)
  if ((mode & 0o077) === 0) return
  await chmod(folder, 0o700).catch(error => {
    throw unwritable(folder, error)
  })
}

async function makeFolder(folder: string): Promise<void> {
  try {
    // Most are there, and to be told so by a failed `mkdir` takes longer.
    if (!(await isDirectory(folder))) await makeWithParents(folder)
    await access(folder, constants.W_OK)
  } catch (error) {
    throw unwritable(folder, error)
  }
}

/** Node's own `recursive` never ends where the system says of a new folder in one that exists that it is not there, as in `/proc`. */
async function makeWithParents(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 })
  } catch (error) {
    if (await isDirectory(folder)) return
    const above = dirname(folder)
    if (systemErrorCode(error) !== 'ENOENT' || above === folder || (await pathExists(above))) throw error
    await makeWithParents(above)
    await mkdir(folder, { mode: 0o700 }).catch(async again => {
      // Another codemachine may have made it meanwhile.
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

/** For sorting ids of sessions: by day and number, the oldest first. */
export function bySessionId(a: string, b: string): number {
  return Number(dayOf(a)) - Number(dayOf(b)) || counterOf(a) - counterOf(b)
}

/** Nothing of a folder that is gone: of records that were removed secrets may be left. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return []
    throw error
  }
}

/** Whether a text is an id of a session, as `nextSessionId` makes them. */
export function isSessionId(text: string): boolean {
  return /^\d{8}_[1-9]\d{0,9}$/.test(text)
}

async function takeSessionId(folder: string, id: string): Promise<string> {
  try {
    await mkdir(join(folder, id), { mode: 0o700 })
    return id
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST')
      throw new UserError('CM0601', `The session ${id} exists already; continue it with codemachine resume ${id}.`)
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

/** The local day, as ids begin with it: `20261120`. */
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
