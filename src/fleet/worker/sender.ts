import { open, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { systemErrorCode } from '../../base/errors.ts'
import { LineSplitter } from '../../base/text.ts'
import { isEvent, upgradeEvent } from '../../core/events/checks.ts'
import type { EventOf, Recorded } from '../../core/events/events.ts'
import { isFinished } from '../../core/events/outcome.ts'
import { fold } from '../../core/state/fold.ts'
import { emptyState, type SessionState, sessionTokens } from '../../core/state/state.ts'
import type { TemplateKinds } from '../../core/template.ts'
import { FolderChanges, pathExists } from '../../platform/files.ts'

/** Options of a sender. */
interface SenderOptions {
  session: string
  journal: string
  /** Number of events in the database. */
  known: number
  templates: TemplateKinds
  clock: Clock
  /** Appends lines, numbered from `first`; a failure is retried unless `isFinal` is true for it. */
  append(first: number, lines: readonly string[], state: SessionState): Promise<void>
  /** Pushes the files of a savepoint for other workers; retried in the same way. */
  carry(standing: { round: number; events: number }): Promise<void>
  isFinal(error: unknown): boolean
  /** Called once with each event and the state after it. */
  onEvent(event: Recorded, state: SessionState): void
  /** Called when a send fails, once until it succeeds. */
  onProblem(error: unknown): void
}

/** Limits of one send. */
const MOST_LINES = 500
const MOST_BYTES = 4 * 1024 * 1024
/** Wait for more lines, ms. */
const BATCH_MS = 100
const LOOK_MS = 1_000
/** Check interval after the end of the session, ms. */
const END_LOOK_MS = 20
const RETRY_MS = 2_000
const LONGEST_RETRY_MS = 60_000
/** Round number that means the newest savepoint. */
const MOST_ROUND = Number.MAX_SAFE_INTEGER
const MAX_LINE_BYTES = 16 * 1024 * 1024

/**
 * Sends a growing journal of a session to the database. The file is the queue: an outage blocks nothing and costs no memory.
 * The database is never ahead of the files on the remote: after the end of a round, events wait until its savepoint is
 * carried. So a next worker finds the files of the last ended round.
 */
export class Sender {
  readonly #options: SenderOptions
  /** Read position in the journal in bytes, and its unsent lines. */
  #read = 0
  #lines: string[] = []
  /** Number of the last read, and the last sent event. */
  #last = 0
  #sent: number
  /** Last carried event, and the newest savepoint to carry. */
  #carried = 0
  #toCarry: { round: number; events: number } | null = null
  /** Numbers of events that must wait until more is carried. */
  #barriers: number[] = []
  #state: SessionState
  #isHead = true
  #carrying: Promise<void> = Promise.resolve()
  readonly #splitter: LineSplitter
  /** Aborted when there may be a savepoint to carry. */
  #woken = new AbortController()

  constructor(options: SenderOptions) {
    this.#options = options
    this.#sent = options.known
    this.#state = emptyState(options.session)
    this.#splitter = new LineSplitter(line => this.#take(line), MAX_LINE_BYTES)
    if (options.known === 0) this.#barriers.push(1)
    else this.#carried = options.known
  }

  get state(): SessionState {
    return this.#state
  }

  /** Sends until `over` is aborted and nothing is left, or `signal` is aborted. Throws errors with `isFinal`. */
  async run(over: AbortSignal, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    using changes = new JournalChanges(this.#options, AbortSignal.any([over, signal]))
    const carrying = this.#carryAll(over, signal, changes)
    this.#carrying = carrying
    carrying.catch(() => changes.wake())
    for (;;) {
      const isOver = over.aborted
      await this.#readOn()
      this.#woken.abort()
      await this.#sendAll(signal)
      signal.throwIfAborted()
      if (isOver && this.#sent === this.#last) break
      await changes.next()
      // Send lines that are written together in one batch.
      if (!over.aborted) await clock.wait(BATCH_MS, AbortSignal.any([over, signal]))
      await Promise.race([carrying, null])
    }
    this.#woken.abort()
    await carrying
  }

  /** Resolves when it carries nothing more: after `run`, or soon after its signal. Never rejects. */
  async settled(): Promise<void> {
    await this.#carrying.catch(() => {})
  }

  /** Reads appended lines. */
  async #readOn(): Promise<void> {
    try {
      await using file = await open(this.#options.journal)
      for (;;) {
        const { bytesRead, buffer } = await file.read({ buffer: Buffer.allocUnsafe(65_536), position: this.#read })
        if (bytesRead === 0) return
        this.#read += bytesRead
        this.#splitter.push(buffer.subarray(0, bytesRead))
      }
    } catch (error) {
      if (systemErrorCode(error) !== 'ENOENT') throw error
    }
  }

  #take(text: string): void {
    if (this.#isHead || text.trim() === '') {
      this.#isHead = false
      return
    }
    const event = parsed(text)
    // An event of a newer version counts too, so that every version uses the same numbers.
    if (typeof event?.type !== 'string') return
    this.#last += 1
    const isKnown = isEvent(event)
    if (isKnown) this.#state = fold(this.#state, upgradeEvent(event as unknown as Recorded), this.#options.templates)
    if (this.#last <= this.#options.known) return
    this.#lines.push(text)
    if (isKnown) this.#see(event as unknown as Recorded)
  }

  #see(event: Recorded): void {
    const isEnd = event.type === 'session-ended'
    // A round's savepoint comes during the next one, before its end; without one, carry what exists.
    if (event.type === 'round-ended' && this.#isHeldUp) this.#toCarry = { round: MOST_ROUND, events: this.#last - 1 }
    if (event.type === 'round-ended' || isEnd) this.#barriers.push(this.#last)
    if (event.type === 'savepoint') this.#toCarry = { round: event.round, events: this.#last }
    if (isEnd) this.#toCarry = { round: MOST_ROUND, events: this.#last }
    this.#options.onEvent(event, this.#state)
  }

  /** True if events wait for a missing savepoint. */
  get #isHeldUp(): boolean {
    const [barrier] = this.#barriers
    return barrier !== undefined && (this.#toCarry?.events ?? 0) < barrier
  }

  /** Number of the last event that may be sent. */
  get #sendable(): number {
    const barrier = this.#barriers.find(each => each > this.#carried)
    return barrier === undefined ? this.#last : barrier - 1
  }

  async #sendAll(signal: AbortSignal): Promise<void> {
    while (this.#sent < this.#sendable) {
      const lines: string[] = []
      let bytes = 0
      for (const text of this.#lines.slice(0, Math.min(MOST_LINES, this.#sendable - this.#sent))) {
        bytes += text.length
        if (lines.length > 0 && bytes > MOST_BYTES) break
        lines.push(text)
      }
      await this.#again(() => this.#options.append(this.#sent + 1, lines, this.#state), signal)
      this.#sent += lines.length
      this.#lines.splice(0, lines.length)
    }
  }

  /** Carries each newest savepoint, in parallel to the sends. */
  async #carryAll(over: AbortSignal, signal: AbortSignal, changes: JournalChanges): Promise<void> {
    for (;;) {
      const woken = new AbortController()
      this.#woken = woken
      const wanted = this.#toCarry
      if (wanted !== null && wanted.events > this.#carried) {
        await this.#again(() => this.#options.carry(wanted), signal)
        this.#carried = wanted.events
        this.#barriers = this.#barriers.filter(each => each > this.#carried)
        changes.wake()
        continue
      }
      signal.throwIfAborted()
      if (over.aborted && this.#sent === this.#last) return
      await this.#options.clock.wait(LOOK_MS, AbortSignal.any([signal, woken.signal]))
    }
  }

  /** Repeats an action until it succeeds, with doubled delays. */
  async #again(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
    for (let wait = RETRY_MS; ; wait = Math.min(2 * wait, LONGEST_RETRY_MS)) {
      try {
        return await work()
      } catch (error) {
        signal.throwIfAborted()
        if (this.#options.isFinal(error)) throw error
        this.#options.onProblem(error)
        await this.#options.clock.wait(wait, signal)
        signal.throwIfAborted()
      }
    }
  }
}

/** Watches for growth of the journal. Waits first for its folder, which the session creates. */
class JournalChanges implements Disposable {
  readonly #options: Pick<SenderOptions, 'journal' | 'clock'>
  readonly #over: AbortSignal
  #isThere = false
  #changes: FolderChanges

  constructor(options: Pick<SenderOptions, 'journal' | 'clock'>, over: AbortSignal) {
    this.#options = options
    this.#over = over
    this.#changes = this.#watch(dirname(dirname(options.journal)))
  }

  /** Resolves at the next change or after a short time; sooner once all is over. */
  async next(): Promise<void> {
    const { journal, clock } = this.#options
    if (!this.#isThere && (await pathExists(dirname(journal)))) {
      this[Symbol.dispose]()
      this.#isThere = true
      this.#changes = this.#watch(dirname(journal))
      return
    }
    await (this.#over.aborted ? clock.wait(END_LOOK_MS) : this.#changes.next(LOOK_MS))
  }

  wake(): void {
    this.#changes.wake()
  }

  [Symbol.dispose](): void {
    this.#changes[Symbol.dispose]()
  }

  #watch(folder: string): FolderChanges {
    return new FolderChanges([folder], { clock: this.#options.clock, signal: this.#over })
  }
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : null
  } catch {
    return null
  }
}

/** Returns the state after a journal's events, a line each. */
export function stateOf(session: string, lines: readonly string[], templates: TemplateKinds): SessionState {
  return lines.reduce((state, line) => {
    const event = parsed(line)
    return event !== null && typeof event.type === 'string' && isEvent(event as { type: string })
      ? fold(state, upgradeEvent(event as unknown as Recorded), templates)
      : state
  }, emptyState(session))
}

/** Resolves with true if the session of a journal has ended; false without a journal. */
export async function hasEnded(journal: string, session: string, templates: TemplateKinds): Promise<boolean> {
  const [, ...lines] = (await readFile(journal, 'utf8').catch(() => '')).split('\n')
  const { ended } = stateOf(session, lines, templates)
  return ended !== null && isFinished(ended.outcome)
}

/** Returns the progress of a session, for lists. */
export function progressOf(session: SessionState): object {
  const { roundsUsed, limits, running, waiting, cost } = session
  return {
    round: running?.round ?? roundsUsed,
    rounds: limits.rounds,
    waiting: waiting === null ? null : { until: waiting.until, reason: waiting.reason },
    tokens: sessionTokens(session),
    cost: cost.amount,
  }
}

/** True if a session waits for a full usage window of its login. */
export function waitsForLogin({ cause }: Pick<EventOf<'waiting'>, 'cause'>): boolean {
  return cause.class === 'window'
}
