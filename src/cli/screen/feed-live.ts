import { isDeepStrictEqual } from 'node:util'
import type { Recorded } from '../../session/events.ts'
import type { LiveEvent } from '../../session/live-events.ts'
import { ENDS_WHAT_RUNS, liveKey } from '../../ui/live/live-board.ts'
import type { LiveSnapshot, SharedItem } from './live-snapshot.ts'

/** Something that passes by, and when it did; Unix time, ms. */
export interface Passing {
  event: LiveEvent
  at: number
}

/** What one snapshot of a run says that the one before did not, as the events by which it came about. */
export class LiveChanges {
  readonly #told = new Map<string, { item: SharedItem['item']; end: number }>()
  /** By key, which of the session's events completed it, for a snapshot may be older than that. */
  readonly #completed = new Map<string, number>()
  /** By instance of an agent, which of the events ended it. */
  readonly #ended = new Map<string, number>()
  #clearedAt = 0

  /** @param index which of the session's events it is, from 1 on */
  event(event: Recorded, index: number): void {
    if (event.type === 'item-completed') this.#complete(liveKey(event.item.id, event.instance), index)
    else if (event.type === 'agent-ended') this.#ended.set(event.instance, index)
    else if (ENDS_WHAT_RUNS.has(event.type)) this.#clear(index)
  }

  *in(snapshot: LiveSnapshot, now: number): Generator<Passing> {
    if (snapshot.events < this.#clearedAt) return
    for (const shared of snapshot.items) {
      if (snapshot.events >= this.#endOf(shared)) yield* this.#changesOf(shared, now)
    }
    for (const [key, index] of this.#completed) if (index <= snapshot.events) this.#completed.delete(key)
  }

  /** Which of the events ended it; 0: none did. */
  #endOf({ item, instance }: SharedItem): number {
    const ended = instance === undefined ? 0 : (this.#ended.get(instance) ?? 0)
    return Math.max(ended, this.#completed.get(liveKey(item.id, instance)) ?? 0)
  }

  *#changesOf(shared: SharedItem, now: number): Generator<Passing> {
    const { item, round, text, dropped, startedAt, instance } = shared
    const key = liveKey(item.id, instance)
    const of = instance === undefined ? {} : { instance }
    const told = this.#told.get(key) ?? { item: null, end: 0 }
    const end = dropped + text.length
    this.#told.set(key, { item, end: Math.max(end, told.end) })
    if (!isDeepStrictEqual(item, told.item))
      yield { event: { type: 'item-started', round, item, ...of }, at: startedAt }
    if (end <= told.end) return
    const event = deltaOf(shared, text.slice(Math.max(0, told.end - dropped)))
    if (event !== null) yield { event: { ...event, ...of }, at: now }
  }

  #complete(key: string, index: number): void {
    this.#told.delete(key)
    this.#completed.set(key, index)
    const [oldest] = this.#completed.keys()
    if (this.#completed.size > MOST_REMEMBERED && oldest !== undefined) this.#completed.delete(oldest)
  }

  #clear(index: number): void {
    this.#told.clear()
    this.#completed.clear()
    this.#ended.clear()
    this.#clearedAt = index
  }
}

const MOST_REMEMBERED = 1000

type Delta = Extract<LiveEvent, { type: 'text-delta' | 'output-delta' }>

function deltaOf({ item, round }: SharedItem, text: string): Delta | null {
  switch (item.kind) {
    case 'agent-message':
    case 'reasoning':
    case 'plan':
      return { type: 'text-delta', round, item: item.id, source: item.kind, text }
    case 'command':
      return { type: 'output-delta', round, item: item.id, text }
    default:
      return null
  }
}
