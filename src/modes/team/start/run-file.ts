import { randomUUID } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises'
import { dirname, isAbsolute, join } from 'node:path'
import { systemErrorCode } from '../../../base/errors.ts'
import { replaceFile } from '../../../platform/files.ts'
import { checkFolder } from './places.ts'

/** A step's command in a run's file; `returncode`: null if it did not end by itself. */
export interface HistoryEntry {
  command: string
  stdout: string
  stderr: string
  returncode: number | null
}

/** A step in a run's file, without its commands. */
interface StepOfRun {
  step_id: number
  description: string
  status: string
  thoughts: string | null
  missing: string | null
}

/** Content of a run's file, without the commands. */
export interface RunOfTeam {
  goal: string
  steps: readonly StepOfRun[]
  review: unknown
  /** Further facts: fields of the whole. */
  more: Readonly<Record<string, unknown>>
}

/** Most stored bytes of a run's commands: later ones have no output. */
const MOST_KEPT = 256 * 1024 * 1024

/**
 * The commands of a run's steps, in files of the records, a line each: thousands of them need no memory. The journal can
 * always restore them.
 */
export class RunHistory implements AsyncDisposable {
  readonly #folder: string
  #open: { step: number; file: FileHandle } | null = null
  #bytes = 0

  /** @param folder in the records; created on the first command */
  constructor(folder: string) {
    this.#folder = folder
  }

  /** Removes all of it. */
  async clear(): Promise<void> {
    await this[Symbol.asyncDispose]()
    this.#bytes = 0
    await rm(this.#folder, { recursive: true, force: true })
  }

  async add(step: number, entry: HistoryEntry): Promise<void> {
    const file = await this.#fileOf(step)
    const line = `${JSON.stringify(this.#bytes < MOST_KEPT ? entry : { ...entry, stdout: '', stderr: '' })}\n`
    this.#bytes += Buffer.byteLength(line)
    await file.appendFile(line)
  }

  /** Closes its files. */
  async [Symbol.asyncDispose](): Promise<void> {
    const opened = this.#open
    this.#open = null
    await opened?.file.close()
  }

  /**
   * Writes the run's file completely or not at all: the old one stays until the new one is on the disk. Replaces a link in
   * its place. Rejects if the write fails.
   * @param path relative to the workspace, with `/`
   */
  async write(workspace: string, path: string, run: RunOfTeam): Promise<void> {
    const folder = dirname(path)
    await checkFolder(workspace, folder)
    const temporary = join(workspace, folder, `.${randomUUID()}.tmp`)
    try {
      await this.#writeInto(temporary, run)
      await replaceFile(temporary, join(workspace, path))
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => undefined)
      throw error
    }
  }

  async #writeInto(path: string, { goal, steps, review, more }: RunOfTeam): Promise<void> {
    await using file = await open(path, 'wx', 0o600)
    await file.appendFile(`{\n"goal": ${JSON.stringify(goal)},\n"steps_executed": ${steps.length},\n"results": [`)
    for (const [index, { step_id, description, ...rest }] of steps.entries()) {
      const head = `${index === 0 ? '' : ','}\n{"step_id": ${step_id}, "description": ${JSON.stringify(description)}, "worker_history": [`
      await file.appendFile(head)
      await this.#copyInto(file, step_id)
      await file.appendFile(`], ${fieldsOf(rest)}}`)
    }
    await file.appendFile(`\n],\n"review": ${JSON.stringify(review ?? null)},\n${fieldsOf(more, ',\n')}\n}\n`)
    await file.sync()
  }

  /** Copies its lines, with commas in between. */
  async #copyInto(file: FileHandle, step: number): Promise<void> {
    if (this.#open?.step === step) await this[Symbol.asyncDispose]()
    // Write a line end only once the next line is known.
    let before = '\n'
    try {
      for await (const piece of createReadStream(this.#pathOf(step), 'latin1')) {
        const isEnd = piece.endsWith('\n')
        const lines = (isEnd ? piece.slice(0, -1) : piece).replaceAll('\n', ',\n')
        await file.appendFile(Buffer.from(`${before}${lines}`, 'latin1'))
        before = isEnd ? ',\n' : ''
      }
    } catch (error) {
      if (systemErrorCode(error) !== 'ENOENT') throw error
    }
  }

  async #fileOf(step: number): Promise<FileHandle> {
    if (this.#open?.step === step) return this.#open.file
    await this[Symbol.asyncDispose]()
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    const file = await open(this.#pathOf(step), 'a', 0o600)
    this.#open = { step, file }
    return file
  }

  #pathOf(step: number): string {
    return join(this.#folder, `step-${step}.ndjson`)
  }
}

/** Place of its fields that are no list, in bytes from the end. */
const LAST_BYTES = 64 * 1024

/** Returns the absolute project directory in a run's file; null: it is no such file. */
export async function projectOfRun(path: string): Promise<string | null> {
  try {
    // Do not block on anything else in its place, and follow no link.
    await using file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0))
    const stat = await file.stat()
    if (!stat.isFile()) return null
    const { buffer, bytesRead } = await file.read({
      buffer: Buffer.alloc(LAST_BYTES),
      position: Math.max(0, stat.size - LAST_BYTES),
    })
    const [, quoted] = buffer.toString('utf8', 0, bytesRead).match(/\n"project_dir": ("(?:[^"\\\n]|\\.)*"),?\n/) ?? []
    const directory: unknown = quoted === undefined ? null : JSON.parse(quoted)
    return typeof directory === 'string' && isAbsolute(directory) ? directory : null
  } catch (error) {
    if (error instanceof SyntaxError || systemErrorCode(error) !== null) return null
    throw error
  }
}

function fieldsOf(fields: object, between = ', '): string {
  return Object.entries(fields)
    .map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value ?? null)}`)
    .join(between)
}
