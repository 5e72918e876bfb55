import { createHash } from 'node:crypto'

/** Numbers that follow from a text alone. */
export class Random {
  #a: number
  #b: number
  #c: number
  #d: number

  constructor(seed: string) {
    const bytes = createHash('sha256').update(seed).digest()
    this.#a = bytes.readInt32LE(0)
    this.#b = bytes.readInt32LE(4)
    this.#c = bytes.readInt32LE(8)
    this.#d = bytes.readInt32LE(12)
  }

  /** From 0 to 1 (sfc32). */
  next(): number {
    const sum = (this.#a + this.#b + this.#d) | 0
    this.#d = (this.#d + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum
    return (sum >>> 0) / 2 ** 32
  }

  /** A whole number from 0 on, less than `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end)
  }

  chance(part: number): boolean {
    return this.next() < part
  }

  one<T>(list: readonly T[]): T {
    const chosen = list[this.below(list.length)]
    if (chosen === undefined) throw new Error('Nothing to choose from.')
    return chosen
  }

  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => this.below(256)))
  }

  fill(into: Uint8Array): Uint8Array {
    into.set(this.bytes(into.length))
    return into
  }

  uuid(): string {
    const hex = this.bytes(16).toString('hex')
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`
  }
}

/** Thrown where a process that is dead would go on. */
export class Killed extends Error {
  override readonly name = 'Killed'
}

/** A process of the machine. A pid is given once. */
export interface Process {
  readonly pid: number
  readonly parent: number
  readonly command: readonly string[]
  readonly env: Readonly<NodeJS.ProcessEnv>
  readonly startTicks: number
  isAlive: boolean
  /** It looks at what is there, and nothing is done to its calls. */
  readonly isExaminer?: boolean
  /** Told of signals other than SIGKILL; left out: it ends of them. */
  onSignal?: (signal: string) => void
  /** Told once that it has ended. */
  onEnd?: (code: number | null, signal: string | null) => void
}

interface Task {
  due: number
  order: number
  owner: Process
  run(): void
}

/**
 * What is done to a night: the first call, from that number on, that it fits. `kind`: `kill`, or `kill@lock` for a call that is about
 * a path with this in it.
 */
export interface Disturbance {
  at: number
  kind: string
}

const MOST_STEPS = 400_000
const BOOT = Date.UTC(2026, 10, 20, 22)

/**
 * One machine: a clock that goes on to the next timer once nothing else can run, processes, and calls that fail. All that may happen
 * in any order happens in the order of the seed.
 */
export class Kernel {
  readonly #order: Random
  readonly ids: Random
  readonly #ready: Task[] = []
  #timers: Task[] = []
  #count = 0
  #steps = 0
  #monotonic = 0
  #slept = 0
  #boots = 0
  #nextPid = 100
  readonly processes = new Map<number, Process>()
  /** Calls of the shipped program so far that change something. */
  calls = 0
  #plan: Disturbance[]
  /** What was done, and to which call. */
  readonly done: string[] = []
  readonly #hash = createHash('sha256')
  #noted = ''
  /** Told of a disturbance that is none of the call itself. */
  onDisturbance: (kind: string, process: Process) => void = () => {}
  /** Whose call is carried out; null: nobody's of the shipped program. */
  acting: Process | null = null
  onPowerLoss: () => void = () => {}
  /** Told each line of the trace. */
  onTrace: ((line: string) => void) | null = null

  constructor(seed: string, plan: readonly Disturbance[]) {
    this.#order = new Random(`${seed} order`)
    this.ids = new Random(`${seed} ids`)
    this.#plan = plan.toSorted((a, b) => a.at - b.at)
  }

  now(): number {
    return BOOT + Math.floor(this.#monotonic) + this.#slept
  }

  monotonic(): number {
    return this.#monotonic
  }

  /** Names this start of the machine. */
  get bootId(): string {
    return `boot-${this.#boots}`
  }

  note(line: string): void {
    const noted = `${Math.floor(this.#monotonic)} ${line}`
    this.#noted += `${noted}\n`
    if (this.#noted.length > 65_536) this.#hashNoted()
    this.onTrace?.(noted)
  }

  /** Of every call and event: two nights with the same trace are the same. */
  trace(): string {
    this.#hashNoted()
    return this.#hash.copy().digest('hex')
  }

  #hashNoted(): void {
    this.#hash.update(this.#noted)
    this.#noted = ''
  }

  /** The wall clock jumps; timers and the other clock have stood still. */
  sleep(ms: number): void {
    this.#slept += ms
  }

  start(options: Pick<Process, 'command' | 'env' | 'parent' | 'isExaminer'>): Process {
    const pid = this.#nextPid++
    const process: Process = { ...options, pid, startTicks: 1000 + this.#count++, isAlive: true }
    this.processes.set(pid, process)
    this.note(`start ${pid} ${options.command.slice(0, 3).join(' ')}`)
    return process
  }

  end(process: Process, code: number | null, signal: string | null = null): void {
    if (!process.isAlive) return
    process.isAlive = false
    this.processes.delete(process.pid)
    this.note(`end ${process.pid} ${code ?? signal}`)
    process.onEnd?.(code, signal)
  }

  /** A group is named by a negative pid; each process leads its own. */
  signal(pid: number, signal: string | number): boolean {
    const process = this.processes.get(Math.abs(pid))
    if (process === undefined) throw errnoError('ESRCH', 'kill')
    if (signal === 0) return true
    if (signal === 'SIGKILL' || process.onSignal === undefined) this.end(process, null, String(signal))
    else process.onSignal(String(signal))
    return true
  }

  powerLoss(): void {
    const all = [...this.processes.values()]
    for (const process of all) process.isAlive = false
    this.processes.clear()
    for (const process of all) process.onEnd?.(null, 'power')
    this.#boots++
    this.onPowerLoss()
    this.#monotonic += 60_000
  }

  /** Calls when its turn comes among all that can run. */
  soon(owner: Process, run: () => void): void {
    this.#ready.push({ due: 0, order: this.#count++, owner, run })
  }

  timer(owner: Process, ms: number, run: () => void): Task {
    const task = { due: this.#monotonic + Math.max(0, ms), order: this.#count++, owner, run }
    let at = this.#timers.length
    while (at > 0 && (this.#timers[at - 1]?.due ?? 0) > task.due) at--
    this.#timers.splice(at, 0, task)
    return task
  }

  cancel(task: Task): void {
    const at = this.#timers.indexOf(task)
    if (at !== -1) this.#timers.splice(at, 1)
  }

  wait(owner: Process, ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      if (signal?.aborted) return resolve()
      const end = () => {
        this.cancel(task)
        signal?.removeEventListener('abort', end)
        resolve()
      }
      const task = this.timer(owner, ms, end)
      signal?.addEventListener('abort', end, { once: true })
    })
  }

  /** The disturbance that is due for a call of this kind, if any: `fits` says which kinds can be done to it. */
  takeDisturbance(fits: (kind: string) => boolean): string | null {
    for (const [index, { at, kind }] of this.#plan.entries()) {
      if (at > this.calls) return null
      if (!fits(kind)) continue
      this.#plan.splice(index, 1)
      this.done.push(`${this.calls}:${kind}`)
      this.note(`disturbed ${kind}`)
      return kind.split('@')[0] ?? kind
    }
    return null
  }

  /** Drops what has not been done yet. */
  calm(): void {
    this.#plan = []
  }

  /** Runs until `isOver`; rejects where nothing can happen any more, or it takes too long. */
  async run(isOver: () => boolean): Promise<void> {
    for (;;) {
      await settled()
      if (isOver()) return
      if (++this.#steps > MOST_STEPS)
        throw new Error(`It goes on for ever: ${MOST_STEPS} steps, at ${this.#monotonic} ms.`)
      const task = this.#next()
      if (task === null) throw new Error('It hangs: nothing runs, and nothing waits for a time.')
      if (task.owner.isAlive) task.run()
    }
  }

  #next(): Task | null {
    if (this.#ready.length > 0) {
      const at = this.#order.below(Math.min(8, this.#ready.length))
      return this.#ready.splice(at, 1)[0] ?? null
    }
    const task = this.#timers.shift() ?? null
    if (task !== null) this.#monotonic = Math.max(this.#monotonic, task.due)
    return task
  }
}

/** Resolves once every promise that can has gone on. */
function settled(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EEXIST: 'file already exists',
  ENOSPC: 'no space left on device',
  EIO: 'i/o error',
  ESRCH: 'no such process',
  EMFILE: 'too many open files',
  EAGAIN: 'resource temporarily unavailable',
  ENOTDIR: 'not a directory',
  EISDIR: 'illegal operation on a directory',
  ENOTEMPTY: 'directory not empty',
}

/** As Node throws it. */
export function errnoError(code: string, syscall: string, path?: string): Error {
  const limit = Error.stackTraceLimit
  // The system's own errors have no stack, and to look for one takes a twentieth of a night.
  Error.stackTraceLimit = 0
  const error = new Error(`${code}: ${WORDS[code] ?? code}, ${syscall}${path === undefined ? '' : ` '${path}'`}`)
  Error.stackTraceLimit = limit
  return Object.assign(error, { code, errno: -1, syscall, ...(path === undefined ? {} : { path }) })
}
