import { messageOf } from '../../base/errors.ts'
import type { LiveEvent, Recorded } from '../../core/events/events.ts'
import { LiveBoard, type LiveItem } from '../../core/events/live-board.ts'
import type { SessionState, SessionStatus } from '../../core/state/state.ts'
import type { WatchUpdate } from '../../project/library.ts'
import { redactorOfProject } from '../../project/secrets/redactor.ts'
import { followSession } from '../../project/watch/feed.ts'
import type { World } from '../../project/world.ts'
import type { Redactor } from '../../secrets/redactor.ts'
import type { Records } from '../../session/records/records.ts'
import { describeEvent } from '../../tell/words/event.ts'
import type { Description } from '../../tell/words/names.ts'

/** What has happened in a session, as the page draws it. */
export interface StreamRow {
  /** Which of the session's events it is, from 1 on. */
  n: number
  /** ISO 8601 in UTC. */
  at: string
  type: Recorded['type']
  /** The round that it belongs to; null: none. */
  round: number | null
  /** The instance of the agent whose it is; left out: the round's own. */
  instance?: string
  /** What a person is told of it. */
  said: Description
  /** Of an item: the item itself, for what is drawn in full. */
  item?: RecordedItem
}

/** What codex does just now. `startedAt`: Unix time, ms. */
type NowItem = Pick<LiveItem, 'item' | 'startedAt' | 'instance'>

type RecordedItem = Extract<Recorded, { type: 'item-completed' }>['item']

/** What comes to whoever watches, in order. `n`: how many of the session's events have been told with it. */
export type StreamPart =
  /** What came before is to be dropped: these are the last rows, and the stream goes on from there. */
  | { kind: 'begin'; n: number; rows: readonly StreamRow[]; standing: SessionStatus | null }
  | { kind: 'row'; n: number; row: StreamRow }
  | { kind: 'live'; n: number; event: LiveEvent; at: number }
  /** All that goes on just now, each with what was streamed of it so far: whoever comes, or comes again, has missed that. */
  | { kind: 'now'; n: number; items: readonly NowItem[] }
  | { kind: 'ended' | 'gone' | 'cut-off'; n: number }
  | { kind: 'next-session'; n: number; id: string }
  | { kind: 'problem'; n: number; problem: string }

/** So many of the last rows are kept for those that come, or come again. */
const MOST_ROWS = 500
/** Whoever is so many parts behind begins anew. */
const MOST_BEHIND = 5_000
/** How long a session is followed on when nobody watches it any more, ms: a connection that was cut comes again. */
const LINGER_MS = 30_000

type HubWorld = Pick<World, 'platform' | 'clock' | 'env' | 'pid'>

/** The sessions that somebody watches on the page: each is followed once, however many watch it. */
export class SessionHub implements AsyncDisposable {
  readonly #world: HubWorld
  readonly #followed = new Map<string, Followed>()
  readonly #closing = new AbortController()

  constructor(world: HubWorld) {
    this.#world = world
  }

  /**
   * What happens in a session from now on, behind what is known of it. Ends with `signal`, or when the session is over.
   * @param after how many of its events the reader knows; null: none
   */
  async *watch(records: Records, id: string, after: number | null, signal: AbortSignal): AsyncGenerator<StreamPart> {
    const key = `${records.key}/${id}`
    const followed = this.#followed.get(key) ?? this.#begin(key, records, id)
    yield* followed.watch(after, AbortSignal.any([signal, this.#closing.signal]))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await Promise.all([...this.#followed.values()].map(each => each.over))
  }

  #begin(key: string, records: Records, id: string): Followed {
    const followed = new Followed(this.#world, records, id, this.#closing.signal)
    this.#followed.set(key, followed)
    void followed.over.finally(() => {
      if (this.#followed.get(key) === followed) this.#followed.delete(key)
    })
    return followed
  }
}

/** One session that is followed for all who watch it. */
class Followed {
  /** Settles when it is followed no more. */
  readonly over: Promise<void>
  readonly #world: HubWorld
  readonly #ending = new AbortController()
  readonly #readers = new Set<Reader>()
  readonly #board = new LiveBoard()
  #rows: StreamRow[] = []
  #n = 0
  #standing: SessionStatus | null = null
  #isAttached = false
  #last: StreamPart | null = null
  #lingering = new AbortController()

  constructor(world: HubWorld, records: Records, id: string, signal: AbortSignal) {
    this.#world = world
    this.over = this.#follow(records, id, AbortSignal.any([signal, this.#ending.signal]))
  }

  async *watch(after: number | null, signal: AbortSignal): AsyncGenerator<StreamPart> {
    const reader = new Reader()
    this.#readers.add(reader)
    this.#lingering.abort()
    if (this.#isAttached) reader.put(...this.#known(after))
    const leave = () => reader.end()
    signal.addEventListener('abort', leave)
    try {
      while (!signal.aborted) {
        const part = await reader.next()
        if (part === 'behind') reader.put(...this.#known(null))
        else if (part === null) return
        else yield part
      }
    } finally {
      signal.removeEventListener('abort', leave)
      this.#readers.delete(reader)
      if (this.#readers.size === 0) void this.#linger()
    }
  }

  async #linger(): Promise<void> {
    this.#lingering = new AbortController()
    await this.#world.clock.wait(LINGER_MS, AbortSignal.any([this.#lingering.signal, this.#ending.signal]))
    if (this.#readers.size === 0) this.#ending.abort()
  }

  /** What a reader that knows `after` events is told first. */
  #known(after: number | null): StreamPart[] {
    const [first] = this.#rows
    const isKnown = after !== null && after <= this.#n && (first === undefined || after >= first.n - 1)
    const parts: StreamPart[] = isKnown
      ? this.#rows.filter(({ n }) => n > after).map(row => ({ kind: 'row', n: row.n, row }))
      : [{ kind: 'begin', n: this.#n, rows: [...this.#rows], standing: this.#standing }]
    parts.push({ kind: 'now', n: this.#n, items: this.#board.items.map(nowItem) })
    return this.#last === null ? parts : [...parts, this.#last]
  }

  async #follow(records: Records, id: string, signal: AbortSignal): Promise<void> {
    const { clock, platform, pid } = this.#world
    const redactor = redactorOfProject(this.#world, records)
    try {
      const onProblem = (problem: string) => this.#tell({ kind: 'problem', n: this.#n, problem })
      for await (const update of followSession({ records, id, clock, platform, pid, signal, onProblem })) {
        this.#update(update, redactor)
        if (update.kind === 'next-session') return
      }
    } catch (error) {
      // Whatever it is, it is this session that cannot be followed: who watches asks again.
      this.#tell({ kind: 'problem', n: this.#n, problem: messageOf(error) })
    } finally {
      for (const reader of this.#readers) reader.end()
    }
  }

  #update(update: WatchUpdate, redactor: Redactor): void {
    switch (update.kind) {
      case 'event':
        this.#event(update.event, update.state, redactor)
        break
      case 'live': {
        const event = redactor.event(update.event)
        this.#board.live(event, update.at)
        this.#tell({ kind: 'live', n: this.#n, event, at: update.at })
        break
      }
      case 'attached':
        this.#standing = update.standing
        this.#n = update.state.events
        this.#isAttached = true
        for (const reader of this.#readers) reader.put(...this.#known(null))
        break
      case 'next-session':
        this.#end({ kind: 'next-session', n: this.#n, id: update.id })
        break
      default:
        this.#end({ kind: update.kind, n: this.#n })
    }
  }

  #event(event: Recorded, state: SessionState, redactor: Redactor): void {
    this.#n = state.events
    this.#board.event(event)
    const row = rowOf(event, state, redactor)
    if (row === null) return
    this.#last = null
    this.#rows.push(row)
    if (this.#rows.length > 2 * MOST_ROWS) this.#rows = this.#rows.slice(-MOST_ROWS)
    if (this.#isAttached) this.#tell({ kind: 'row', n: row.n, row })
  }

  #end(part: StreamPart): void {
    this.#last = part
    this.#tell(part)
  }

  #tell(part: StreamPart): void {
    if (!this.#isAttached && part.kind !== 'problem') return
    for (const reader of this.#readers) reader.put(part)
  }
}

/** With what was streamed of it in the item itself. */
function nowItem({ item, text, startedAt, instance }: LiveItem): NowItem {
  const of = instance === undefined ? { startedAt } : { startedAt, instance }
  if (item.kind === 'command') return { ...of, item: { ...item, output: text } }
  const hasText = item.kind === 'agent-message' || item.kind === 'reasoning' || item.kind === 'plan'
  return { ...of, item: hasText ? { ...item, text } : item }
}

/** Parts that wait for one who reads, who may be slow. */
class Reader {
  #parts: StreamPart[] = []
  #isBehind = false
  #isOver = false
  #come = Promise.withResolvers<void>()

  put(...parts: readonly StreamPart[]): void {
    if (this.#isOver || this.#isBehind) return
    this.#parts.push(...parts)
    if (this.#parts.length > MOST_BEHIND) {
      this.#parts = []
      this.#isBehind = true
    }
    this.#come.resolve()
  }

  end(): void {
    this.#isOver = true
    this.#come.resolve()
  }

  /** The next part; null: there is none any more; `behind`: so many have come that they were let go. */
  async next(): Promise<StreamPart | 'behind' | null> {
    for (;;) {
      if (this.#isBehind) {
        this.#isBehind = false
        return 'behind'
      }
      const part = this.#parts.shift()
      if (part !== undefined) return part
      if (this.#isOver) return null
      this.#come = Promise.withResolvers<void>()
      await this.#come.promise
    }
  }
}

/** An event as a row; null: nothing is told of it. `state`: the session after it. */
export function rowOf(event: Recorded, state: SessionState, redactor: Redactor): StreamRow | null {
  const said = describeEvent(event, state)
  if (said === null) return null
  const round = 'round' in event && typeof event.round === 'number' ? event.round : (state.running?.round ?? null)
  const instance = 'instance' in event && typeof event.instance === 'string' ? event.instance : undefined
  return redactor.event({
    n: state.events,
    at: event.at,
    type: event.type,
    round,
    ...(instance === undefined ? {} : { instance }),
    said,
    ...(event.type === 'item-completed' ? { item: event.item } : {}),
  })
}
