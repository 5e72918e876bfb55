import { batch, computed, signal } from '@preact/signals'
import type { Recorded } from '../../../../core/events/events.ts'
import { LiveBoard, type LiveItem } from '../../../../core/events/live-board.ts'
import type { StreamPart, StreamRow } from '../../session-stream.ts'
import { follow, get, type Told } from '../client.ts'

/** So many rows are kept; those before are on the page of the rounds. */
const MOST_ROWS = 3_000
/** Drawn at most so often, ms. */
const DRAW_MS = 34

/** One session as it happens: its rows, and what is written and run just now. */
export class SessionStream {
  readonly rows = signal<readonly StreamRow[]>([])
  readonly live = signal<readonly LiveItem[]>([])
  /** Who works beside the agent of the round, by instance. */
  readonly agents = computed(() => [...new Set(this.live.value.flatMap(({ instance }) => instance ?? []))].join('\n'))
  readonly problem = signal('')
  /** The session that the queue went on with; empty: none. */
  readonly next = signal('')
  /** Whether it has been read as it was. */
  readonly isRead = signal(false)
  /** Whether there are rows before the first. */
  readonly hasEarlier = signal(false)
  readonly #key: string
  #board = new LiveBoard()
  #drawn = -1
  #n: number | null = null
  /** Rows that have come since it was drawn last. */
  #due: StreamRow[] = []
  #drawing: ReturnType<typeof setTimeout> | null = null
  #isReadingEarlier = false
  #over = new AbortController()

  constructor(key: string) {
    this.#key = key
  }

  /** Follows it until the signal aborts, or nobody runs it any more. */
  async follow(signal: AbortSignal): Promise<void> {
    const over = AbortSignal.any([signal, this.#over.signal])
    const path = () => `sessions/${this.#key}/stream${this.#n === null ? '' : `?after=${this.#n}`}`
    await follow<StreamPart>(path, told => this.#told(told), over)
  }

  /** Reads the rows before the first that is kept. */
  async readEarlier(signal: AbortSignal): Promise<void> {
    const [first] = this.rows.value
    if (first === undefined || this.#isReadingEarlier || this.rows.value.length >= MOST_ROWS) return
    this.#isReadingEarlier = true
    try {
      const { rows } = await get<{ rows: readonly StreamRow[] }>(`sessions/${this.#key}/rows?before=${first.n}`, signal)
      const all = [...rows, ...this.rows.value]
      this.rows.value = all
      this.hasEarlier.value = rows.length > 0 && all.length < MOST_ROWS
    } finally {
      this.#isReadingEarlier = false
    }
  }

  /** However much comes, it is drawn thirty times a second, and what is not drawn while the page is hidden does not pile up. */
  #told({ data }: Told<StreamPart>): void {
    this.#take(data)
    if (this.#due.length > MOST_ROWS) this.#due = this.#due.slice(-MOST_ROWS)
    this.#drawing ??= setTimeout(() => this.#draw(), DRAW_MS)
  }

  #draw(): void {
    this.#drawing = null
    const due = this.#due
    this.#due = []
    batch(() => {
      if (due.length > 0) this.#add(due)
      if (this.#board.revision !== this.#drawn) this.live.value = this.#board.items.slice()
      this.#drawn = this.#board.revision
    })
  }

  #add(rows: readonly StreamRow[]): void {
    const all = [...this.rows.value, ...rows]
    if (all.length > MOST_ROWS) this.hasEarlier.value = true
    this.rows.value = all.slice(-MOST_ROWS)
  }

  #take(part: StreamPart): void {
    const known = this.#n ?? 0
    // A session that is gone is said without a number.
    if (typeof part.n === 'number') this.#n = Math.max(known, part.n)
    switch (part.kind) {
      case 'begin':
        this.#due = []
        this.rows.value = part.rows
        this.isRead.value = true
        this.hasEarlier.value = (part.rows[0]?.n ?? 1) > 1
        this.problem.value = ''
        this.#forgetLive()
        break
      case 'row':
        // After a cut the same may be told once more.
        if (part.row.n <= ((this.#due.at(-1) ?? this.rows.value.at(-1))?.n ?? 0)) break
        this.#due.push(part.row)
        // What it needs of an event a row has: its type, item and instance.
        this.#board.event(part.row as unknown as Recorded)
        break
      case 'live':
        this.#board.live(part.event, part.at)
        break
      case 'goes-on':
        this.#forgetLive()
        break
      case 'problem':
        this.problem.value = part.problem
        this.isRead.value = true
        break
      case 'next-session':
        this.next.value = this.#key.replace(/[^/]+$/, part.id)
        this.#end()
        break
      default:
        this.#end()
    }
  }

  #end(): void {
    this.#forgetLive()
    this.#over.abort()
    this.#over = new AbortController()
  }

  #forgetLive(): void {
    this.#board = new LiveBoard()
    this.#drawn = -1
  }
}
