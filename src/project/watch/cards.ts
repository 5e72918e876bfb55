import { once } from 'node:events'
import { messageOf, systemErrorCode, UserError } from '../../base/errors.ts'
import { type AskedQuestion, questionsOf } from '../../session/records/questions.ts'
import { openQueue } from '../../session/records/queue.ts'
import { askWhoRuns } from '../../session/records/run-lock.ts'
import type { SessionReport } from '../../tell/words/status.ts'
import { redactorOfProject } from '../secrets/redactor.ts'
import type { World } from '../world.ts'
import { type SessionRow, SessionsTable } from './sessions-table.ts'
import { readSession } from './status.ts'

/** A session in the overview of many. */
export interface SessionCard {
  row: SessionRow
  /** Its progress, for open sessions and the newest few ended ones; else null. */
  report: SessionReport | null
  /** When that was read; Unix time, ms. Durations are as of then. */
  reportedAt: number
  /** Its unanswered questions. */
  questions: readonly AskedQuestion[]
  /** Number of queued prompts behind it; 0 unless it is the newest of its directory. */
  queued: number
}

interface CardsOptions {
  world: Pick<World, 'platform' | 'clock' | 'env' | 'home' | 'templates'>
  /** Ends the reading. */
  signal: AbortSignal
  /** Receives all cards once they are read, and after each change. */
  onWhole(cards: readonly SessionCard[]): void
  /** Receives one sentence for each unreadable place. */
  onProblem(problem: string): void
}

/** Number of ended sessions with progress. */
const MOST_ENDED = 20

/** All sessions of a person on this machine, newest first, with their work, waits and questions. */
export class SessionCards {
  readonly #options: CardsOptions
  readonly #table: SessionsTable
  readonly #problems = new Set<string>()
  readonly #read = new Map<string, { row: SessionRow; card: SessionCard; text: string }>()
  #cards: readonly SessionCard[] = []
  #wasWhole = false
  #changed = new AbortController()
  #news = Promise.withResolvers<void>()
  readonly #whole = Promise.withResolvers<void>()

  constructor(options: CardsOptions) {
    this.#options = options
    const { world, signal } = options
    this.#table = new SessionsTable({
      world,
      records: null,
      scope: 'all',
      signal,
      onChange: () => this.#changed.abort(),
      onProblem: problem => this.#problem(problem),
    })
  }

  /** The cards read so far; the same array until one changes or is added. */
  get cards(): readonly SessionCard[] {
    return this.#cards
  }

  /** Whether all were read once. */
  get isWhole(): boolean {
    return this.#table.isWhole
  }

  /** Resolves when all were read once, or reading has ended. */
  get whole(): Promise<void> {
    return this.#whole.promise
  }

  /** Yields the cards now, and after each change. */
  async *changes(over: AbortSignal): AsyncGenerator<readonly SessionCard[]> {
    const ended = once(over, 'abort')
    while (!over.aborted) {
      const { promise } = this.#news
      yield this.#cards
      await Promise.race([promise, ended])
    }
  }

  /** Reads all cards, and repeats until the signal aborts. */
  async follow(): Promise<void> {
    const { signal } = this.#options
    const over = new AbortController()
    const following = this.#table.follow().finally(() => over.abort())
    const ended = AbortSignal.any([signal, over.signal])
    try {
      while (!ended.aborted) {
        await this.#look()
        await this.#options.world.clock.wait(LOOK_MS, AbortSignal.any([ended, this.#changed.signal]))
        this.#changed = new AbortController()
      }
      await following
    } finally {
      this.#whole.resolve()
    }
  }

  async #look(): Promise<void> {
    const { rows, isWhole } = this.#table
    const newest = new Set<string>()
    let ended = 0
    let hasChanged = rows.length !== this.#cards.length || isWhole !== this.#wasWhole
    this.#wasWhole = isWhole
    const there = new Set<string>()
    for (const row of rows) {
      there.add(row.key)
      const isNewest = !newest.has(row.records.key) && row.call === null
      if (isNewest) newest.add(row.records.key)
      const isOver = row.standing === 'ended' || row.standing === 'broken'
      const isRead = !isOver || (ended < MOST_ENDED && row.standing === 'ended')
      if (isOver) ended += 1
      hasChanged = (await this.#card(row, { isNewest, isRead })) || hasChanged
    }
    for (const key of this.#read.keys()) if (!there.has(key)) this.#read.delete(key)
    if (!hasChanged) return
    this.#cards = rows.flatMap(({ key }) => this.#read.get(key)?.card ?? [])
    this.#news.resolve()
    this.#news = Promise.withResolvers<void>()
    if (!isWhole) return
    this.#whole.resolve()
    this.#options.onWhole(this.#cards)
  }

  /** Reads one card; returns true if it changed. */
  async #card(row: SessionRow, { isNewest, isRead }: { isNewest: boolean; isRead: boolean }): Promise<boolean> {
    const before = this.#read.get(row.key)
    // A row object changes with its journal or runner. Answers and the queue are not in the journal.
    const isSame = before !== undefined && before.row === row
    const mayChange = row.standing === 'running' || (before?.card.questions.length ?? 0) > 0 || isNewest
    if (isSame && !(isRead && mayChange)) return false
    const card = isRead ? await this.#readCard(row, isNewest) : this.#empty(row)
    const text = JSON.stringify([card.report && withoutTime(card.report), card.questions, card.queued])
    this.#read.set(row.key, { row, card, text })
    return before === undefined || before.row !== row || before.text !== text
  }

  /** Returns a card with only its row. */
  #empty(row: SessionRow): SessionCard {
    return { row, report: null, reportedAt: this.#options.world.clock.now(), questions: [], queued: 0 }
  }

  async #readCard(row: SessionRow, isNewest: boolean): Promise<SessionCard> {
    const { world } = this.#options
    const { records, id } = row
    try {
      const runner = await askWhoRuns(records.lock, world.platform, () => {})
      const redactor = redactorOfProject(world, records)
      const report = redactor.event(await readSession(records, id, runner, world))
      const asked = await questionsOf(records, id, () => {})
      const questions = asked.flatMap(each => (each.answer === null ? [redactor.event(each)] : []))
      const queued = isNewest ? await openQueue(records.queue).count() : 0
      return { row, report, reportedAt: world.clock.now(), questions, queued }
    } catch (error) {
      if (!(error instanceof UserError) && systemErrorCode(error) === null) throw error
      this.#problem(`${id} cannot be read: ${messageOf(error)}`)
      return this.#empty(row)
    }
  }

  #problem(problem: string): void {
    if (this.#problems.has(problem)) return
    this.#problems.add(problem)
    this.#options.onProblem(problem)
  }
}

/** Time between two looks, in ms. */
const LOOK_MS = 1_000

/** Returns a report without its durations. */
function withoutTime({ elapsedMs: _, round, ...report }: SessionReport): object {
  return { ...report, round: round?.round ?? null }
}
