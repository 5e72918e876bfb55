import { constants, type Dirent } from 'node:fs'
import { type FileHandle, lstat, open, readdir, realpath, rename, rmdir, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isNoRoom, messageOf, systemErrorCode, UserError } from '../../../base/errors.ts'
import { withLineEnd } from '../../../base/text.ts'
import { succeeds } from '../../../platform/files.ts'
import { makeFolderInside, whatIsThere, writeFileInside } from '../../../workspace/files/inside-directory.ts'
import { writeIfMissing } from '../../../workspace/memory/memory-folder.ts'
import { type FlowStep, memoryFileOf, recordingFilesOf } from '../file/plan.ts'
import { type RecordingHeader, readOwnLine } from '../file/recording.ts'

/** Folder of a run's files for people, relative to the work directory; only the records count. */
const RUNTIME = '.codex-flow/runtime'
const DEBUG = join(RUNTIME, 'debug')
const LOGS = join(RUNTIME, 'logs')
const EARLIER = join(DEBUG, 'earlier')

/** Number of sessions whose recordings are kept. */
const MOST_EARLIER = 10
/** A longer recording could not be replayed, bytes. */
const MOST_RECORDING = 64 * 1024 * 1024
/** A longer log is replaced by a new one, bytes. */
const MOST_LOG = 8 * 1024 * 1024

type StepNames = Pick<FlowStep, 'index' | 'stem' | 'description' | 'work'>

/**
 * A file of the runtime folder, written line by line. Agents can write there, so it is opened without following links, and
 * only its handle is used. A failure is reported once, as a sentence, and ends the writing.
 */
export class RuntimeFile implements AsyncDisposable {
  /** Relative to the work directory. */
  readonly path: string
  /** Whether it already has lines of this run, which was resumed. */
  readonly goesOn: boolean
  readonly #file: FileHandle | null
  readonly #most: number
  readonly #onProblem: (sentence: string) => void
  #bytes: number
  #isOver: boolean

  private constructor(
    path: string,
    opened: { file: FileHandle; bytes: number; goesOn: boolean } | null,
    most: number,
    onProblem: (sentence: string) => void,
  ) {
    this.path = path
    this.#file = opened?.file ?? null
    this.goesOn = opened?.goesOn ?? false
    this.#bytes = opened?.bytes ?? 0
    this.#most = most
    this.#onProblem = onProblem
    this.#isOver = opened === null
  }

  /**
   * Begins the recording of a step in a new file, or continues that of the same session.
   * @param onProblem receives a sentence that names the file
   */
  static async recording(
    root: string,
    step: StepNames,
    session: string,
    onProblem: (sentence: string) => void,
  ): Promise<RuntimeFile> {
    const path = recordingPath(step)
    const make = async () => {
      await makeRuntimeFolder(root, DEBUG)
      const before = await headerOf(root, path)
      if (before !== null && before.session === session) return { ...(await openToAppend(root, path)), goesOn: true }
      if (before !== null) await setAside(root, path, before, session)
      return { file: await openNew(root, path), bytes: 0, goesOn: false }
    }
    return new RuntimeFile(path, await attempt(path, make, onProblem), MOST_RECORDING, onProblem)
  }

  /** Returns a file that ignores all writes. */
  static none(onProblem: (sentence: string) => void): RuntimeFile {
    return new RuntimeFile('', null, 0, onProblem)
  }

  /** Continues the log of a step. */
  static async log(root: string, step: StepNames, onProblem: (sentence: string) => void): Promise<RuntimeFile> {
    const path = join(LOGS, `${step.index}-${step.stem}.log`)
    const make = async () => {
      await makeRuntimeFolder(root, LOGS)
      const opened = await openToAppend(root, path)
      if (opened.bytes < MOST_LOG) return { ...opened, goesOn: false }
      await opened.file.close()
      await rename(join(root, path), join(root, `${path}.1`))
      return { ...(await openToAppend(root, path)), goesOn: false }
    }
    return new RuntimeFile(path, await attempt(path, make, onProblem), 2 * MOST_LOG, onProblem)
  }

  /** Appends whole lines, each with its line end. */
  async add(text: string): Promise<void> {
    if (this.#file === null || this.#isOver) return
    const bytes = Buffer.from(text)
    if (this.#bytes + bytes.length > this.#most) {
      this.#isOver = true
      this.#onProblem(
        `${this.path} has ${this.#most / 1024 / 1024} MiB, the most that it may have; later lines are left out.`,
      )
      return
    }
    const file = this.#file
    const written = await attempt(this.path, () => file.appendFile(bytes).then(() => true), this.#onProblem)
    this.#bytes += bytes.length
    this.#isOver = written === null
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file?.close().catch(() => undefined)
  }
}

/**
 * Moves earlier recordings of these steps into a folder of their session, and keeps the last ten of these folders.
 * @param session id of the one that begins
 */
export async function keepEarlier(
  root: string,
  steps: readonly StepNames[],
  session: string,
  onProblem: (sentence: string) => void,
): Promise<void> {
  for (const step of steps) {
    const path = recordingPath(step)
    const keep = async () => {
      const before = await headerOf(root, path)
      if (before !== null && before.session !== session) await setAside(root, path, before, session)
    }
    await attempt(path, keep, onProblem)
  }
  await attempt(EARLIER, () => dropOldest(root), onProblem)
}

/** Writes the last message of a step into `memory/`, below the real path of the work directory. */
export async function writeMemory(
  root: string,
  step: Pick<FlowStep, 'index' | 'stem' | 'description' | 'work'>,
  text: string,
  onProblem: (sentence: string) => void,
): Promise<void> {
  const path = join(RUNTIME, 'memory', memoryFileOf(step))
  const write = async () => {
    await makeRuntimeFolder(root, dirname(path))
    await writeFileInside(root, path, withLineEnd(text))
  }
  await attempt(path, write, onProblem)
}

function recordingPath(step: StepNames): string {
  const [usual = ''] = recordingFilesOf(step)
  return join(DEBUG, usual)
}

/** Creates a folder below `RUNTIME`, which git ignores. Throws a `UserError` if its place is taken. */
async function makeRuntimeFolder(root: string, folder: string): Promise<void> {
  const obstacle = await makeFolderInside(root, folder, { mode: 0o755 })
  if (obstacle !== null) throw new UserError('CM0210', `${obstacle.path} ${whatIsThere(obstacle)}; move it away.`)
  await writeIfMissing(root, join(RUNTIME, '.gitignore'), '*\n')
}

const NO_FOLLOW = constants.O_NOFOLLOW ?? 0
const NON_BLOCK = constants.O_NONBLOCK ?? 0
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | NO_FOLLOW

async function openNew(root: string, path: string): Promise<FileHandle> {
  return await checked(root, path, await open(join(root, path), APPEND | constants.O_EXCL, 0o600))
}

async function openToAppend(root: string, path: string): Promise<{ file: FileHandle; bytes: number }> {
  // A pipe without a reader must fail, not block.
  const file = await checked(root, path, await open(join(root, path), APPEND | NON_BLOCK, 0o600))
  const { size } = await file.stat()
  return { file, bytes: size }
}

/** Returns the file if it is at its real path and has no other hard link. */
async function checked(root: string, path: string, file: FileHandle): Promise<FileHandle> {
  const found = await file.stat()
  const isOurs = found.isFile() && found.nlink === 1 && (await realpath(join(root, path))) === join(root, path)
  if (isOurs) return file
  await file.close()
  throw new UserError('CM0210', 'it is a link, or no regular file; remove it.')
}

const MOST_HEADER = 64 * 1024

/** Returns the first line of an existing recording, or of anything in its place; null: nothing there. */
async function headerOf(root: string, path: string): Promise<RecordingHeader | null> {
  const whole = join(root, path)
  const found = await lstat(whole).catch((error: unknown) => {
    const code = systemErrorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw error
  })
  if (found === null) return null
  if (!found.isFile()) return {}
  await using file = await open(whole, constants.O_RDONLY | NO_FOLLOW | NON_BLOCK)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(MOST_HEADER), 0, MOST_HEADER, 0)
  const start = buffer.subarray(0, bytesRead).toString('utf8')
  const end = start.indexOf('\n')
  if (end !== -1) return headerIn(start.slice(0, end))
  // Recorded values may make it longer; the session's id comes before them.
  const session = /"session":"(\d{8}_\d{1,10})"/.exec(start)?.[1]
  return session === undefined ? {} : { session }
}

function headerIn(line: string): RecordingHeader {
  const own = readOwnLine(line)
  return own !== null && own !== 'broken' && 'header' in own ? own.header : {}
}

/** Returns the folder of a session; recordings of an unknown session go to `before-` and the new id. */
const SESSION = /^\d{8}_\d{1,10}$/
const KEPT = /^(?:before-)?(\d{8})_(\d{1,10})$/

async function setAside(root: string, path: string, { session }: RecordingHeader, now: string): Promise<void> {
  const folder = join(EARLIER, session !== undefined && SESSION.test(session) ? session : `before-${now}`)
  await makeRuntimeFolder(root, folder)
  await rename(join(root, path), join(root, folder, path.slice(DEBUG.length + 1)))
}

/** Removes the oldest sessions' folders; only files in them, and no other folder. */
async function dropOldest(root: string): Promise<void> {
  const entries: Dirent[] = await readdir(join(root, EARLIER), { withFileTypes: true }).catch(() => [])
  const kept = entries.filter(each => each.isDirectory() && KEPT.test(each.name)).map(({ name }) => name)
  if (kept.length <= MOST_EARLIER || (await realpath(join(root, EARLIER))) !== join(root, EARLIER)) return
  const ordered = kept.sort((a, b) => ageOf(a).localeCompare(ageOf(b), 'en', { numeric: true }))
  for (const name of ordered.slice(0, -MOST_EARLIER)) {
    const folder = join(root, EARLIER, name)
    for (const each of await readdir(folder, { withFileTypes: true }))
      if (!each.isDirectory()) await unlink(join(folder, each.name))
    // Keep files of others.
    await succeeds(rmdir(folder))
  }
}

function ageOf(name: string): string {
  const [, day, count] = KEPT.exec(name) ?? []
  return `${day}_${count}`
}

/** Returns the result; null after a failure, reported with the file's name: a run does not end for that. */
async function attempt<T>(
  path: string,
  act: () => Promise<T>,
  onProblem: (sentence: string) => void,
): Promise<T | null> {
  try {
    return await act()
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null && !(error instanceof UserError)) throw error
    const why = isNoRoom(error) ? 'no room is left on the disk.' : code === null ? messageOf(error) : `${code}.`
    onProblem(`${path} could not be written: ${why}`)
    return null
  }
}
