import type { Stats } from 'node:fs'
import { constants, type FileHandle, lstat, open } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { messageOf, systemErrorCode } from '../../base/errors.ts'
import { LineSplitter } from '../../base/text.ts'
import type { Engine, PreparedRound, Recording, RoundRun, ThreadSpec } from '../../core/engine.ts'
import type { RoundOutcome } from '../../core/events/outcome.ts'
import { type RecordedLine, RecordedRound } from '../codex/recorded-round.ts'

interface ReplayOptions {
  /** Absolute work directory, the base of a recording's path. */
  directory: string
  clock: Clock
  codemachineVersion: string
  log(message: string): void
}

/** Plays recordings of rounds. Asks no model, starts no process, and executes or writes nothing. */
export class ReplayEngine implements Engine {
  readonly name = 'replay'
  /** Codemachine's version; the recorded codex's version is not looked for. */
  readonly version: string
  readonly replays = true
  /** True: there are no agents. */
  readonly hidesFiles = true
  readonly #options: ReplayOptions
  readonly #rounds = new Set<ReplayedRound>()

  constructor(options: ReplayOptions) {
    this.#options = options
    this.version = options.codemachineVersion
  }

  prepare(thread: ThreadSpec): PreparedRound {
    const round = new ReplayedRound(thread, this.#options, () => this.#rounds.delete(round))
    this.#rounds.add(round)
    return round
  }

  /** Does nothing: an ended round leaves no process. */
  async settle(): Promise<void> {}

  async close(): Promise<void> {
    await Promise.all([...this.#rounds].map(round => round.interrupt()))
  }
}

/** Largest recording, in bytes: a night's longest rounds have some ten MiB. */
const MOST_BYTES = 512 * 1024 * 1024
/** Longest line that is played, in bytes. */
const MOST_LINE_BYTES = 16 * 1024 * 1024
const SECOND_MS = 1_000
/** Longest wait for a line at the recorded pace, ms: its time is not checked. */
const LONGEST_GAP_MS = 60 * 60_000

const INTERRUPTED: RoundOutcome = { class: 'interrupted', message: null }

/**
 * One recording, and its turn.
 *
 *     waiting ──run()──▶ playing ──end of the file──▶ over
 *        └──discard(), interrupt()────────────────────▲
 */
class ReplayedRound implements PreparedRound {
  readonly thread: ThreadSpec
  /** True: a recording ends with its last turn. */
  readonly isOver = true
  readonly #options: ReplayOptions
  readonly #onOver: () => void
  readonly #ending = new AbortController()
  readonly #over = Promise.withResolvers<void>()
  #isPlaying = false

  constructor(thread: ThreadSpec, options: ReplayOptions, onOver: () => void) {
    this.thread = thread
    this.#options = options
    this.#onOver = onOver
  }

  async limits(): Promise<null> {
    return null
  }

  async run(run: RoundRun): Promise<RoundOutcome> {
    if (this.#ending.signal.aborted) return INTERRUPTED
    this.#isPlaying = true
    try {
      const { recording } = this.thread
      if (recording === undefined) return refused('Nothing is to be replayed: the thread names no recording.')
      return await this.#playFile(recording, run)
    } finally {
      this.#leave()
    }
  }

  async carryOn(): Promise<null> {
    return null
  }

  async steer(): Promise<false> {
    return false
  }

  async interrupt(): Promise<void> {
    this.#ending.abort()
    if (!this.#isPlaying) this.#leave()
    await this.#over.promise
  }

  discard(): void {
    void this.interrupt()
  }

  async #playFile({ path: place, name: path = place, pace }: Recording, run: RoundRun): Promise<RoundOutcome> {
    const opened = await openRecording(resolve(this.#options.directory, place))
    if ('problem' in opened) return refused(`The recording ${path} ${opened.problem}.`)
    await using file = opened.file
    const round = new RecordedRound(this.#options)
    round.open(run)
    try {
      const passedOver = await this.#playLines(file, round, pace)
      if (this.#ending.signal.aborted) return INTERRUPTED
      const message = passedOverWords(path, passedOver)
      if (message !== null) run.onEvent({ type: 'warning', round: run.round, message })
      if (!round.hasTurn)
        return refused(
          `The recording ${path} contains no turn of codex; name one that does, such as rounds/001.ndjson.`,
        )
      return round.outcome ?? { class: 'crashed', message: `The recording ${path} ends before its turn does.` }
    } catch (error) {
      if (systemErrorCode(error) === null) throw error
      return refused(`The recording ${path} cannot be read: ${messageOf(error)}.`)
    } finally {
      round.close()
    }
  }

  async #playLines(file: FileHandle, round: RecordedRound, pace: Recording['pace']): Promise<PassedOver> {
    const { signal } = this.#ending
    const passedOver: PassedOver = { broken: 0, unknown: 0 }
    const pacing = new Pacing(pace, this.#options.clock, signal)
    let lines: string[] = []
    const splitter = new LineSplitter(
      line => lines.push(line),
      MOST_LINE_BYTES,
      () => passedOver.broken++,
    )
    const play = async () => {
      for (const line of lines) {
        if (signal.aborted) return
        if (line.trim() === '') continue
        const read = round.read(line)
        if (read === null) {
          passedOver.broken++
          continue
        }
        await pacing.until(read)
        if (signal.aborted) return
        if (!round.play(read)) passedOver.unknown++
      }
      lines = []
    }
    // Play a growing file up to its size at the start.
    const { size } = await file.stat()
    for await (const chunk of file.createReadStream({ autoClose: false, end: Math.max(0, size - 1) })) {
      splitter.push(chunk)
      await play()
      if (signal.aborted) return passedOver
    }
    splitter.end()
    await play()
    return passedOver
  }

  #leave(): void {
    this.#onOver()
    this.#over.resolve()
  }
}

/** Numbers of skipped lines. `broken`: no JSON object, or too long; `unknown`: no known codex sends such. */
interface PassedOver {
  broken: number
  unknown: number
}

function passedOverWords(path: string, { broken, unknown }: PassedOver): string | null {
  const parts = [
    ...(broken === 0 ? [] : [`${broken} torn, or not from codex`]),
    ...(unknown === 0 ? [] : [`${unknown} of an unknown kind`]),
  ]
  const count = broken + unknown
  if (count === 0) return null
  return `${count} ${count === 1 ? 'line' : 'lines'} of the recording ${path} ${count === 1 ? 'was' : 'were'} passed over: ${parts.join(', ')}.`
}

/** Waits for the time of each line. */
class Pacing {
  readonly #pace: Recording['pace']
  readonly #clock: Clock
  readonly #signal: AbortSignal
  #last: number | null = null

  constructor(pace: Recording['pace'], clock: Clock, signal: AbortSignal) {
    this.#pace = pace
    this.#clock = clock
    this.#signal = signal
  }

  /** Resolves when the line is due or the replay must end. */
  async until({ at, isEvent }: RecordedLine): Promise<void> {
    if (this.#pace === 'at-once') return
    if (this.#pace !== 'recorded') {
      const seconds = this.#pace === 'second' ? 1 : this.#pace.seconds
      if (isEvent && seconds > 0) await this.#clock.wait(seconds * SECOND_MS, this.#signal)
      return
    }
    if (at === null) return
    const gap = this.#last === null ? 0 : Math.min(LONGEST_GAP_MS, at - this.#last)
    this.#last = Math.max(this.#last ?? at, at)
    if (gap > 0) await this.#clock.wait(gap, this.#signal)
  }
}

function refused(message: string): RoundOutcome {
  return { class: 'config', message }
}

/** Opens the file of a recording; `problem`: what it is instead, as the end of a sentence. */
async function openRecording(path: string): Promise<{ file: FileHandle } | { problem: string }> {
  try {
    if ((await lstat(path)).isSymbolicLink()) return { problem: 'is a link; name the file itself' }
    // Without O_NONBLOCK, the open of a named pipe waits for its other end; Windows has neither flag.
    const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0)
    const file = await open(path, flags)
    const problem = problemOf(await file.stat())
    if (problem === null) return { file }
    await file.close()
    return { problem }
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null) throw error
    if (code === 'ENOENT' || code === 'ENOTDIR') return { problem: 'does not exist; name an existing file' }
    return { problem: `cannot be opened (${code}); name a file that can be read` }
  }
}

function problemOf(found: Stats): string | null {
  if (found.isDirectory()) return 'is a folder; name a file in it, such as rounds/001.ndjson'
  if (!found.isFile()) return 'is not a file; name one with lines of codex'
  if (found.size === 0) return 'is empty; name one with lines of codex'
  if (found.size <= MOST_BYTES) return null
  const mib = (bytes: number) => Math.ceil(bytes / 1024 / 1024)
  return `has ${mib(found.size)} MiB, and may have ${mib(MOST_BYTES)}; name a shorter one`
}
