import { unreachable } from '../../base/errors.ts'
import type { LiveEvent, Recorded } from './events.ts'
import type { Item } from './items.ts'

/** A running item of codex. */
export interface LiveItem {
  readonly item: Item
  /** Unix time, ms. */
  readonly startedAt: number
  /** Streamed text so far: the first 64 Ki characters of a message, the last 16 Ki of an output. */
  readonly text: string
  /** Number of streamed characters that are not in `text`. */
  readonly dropped: number
  /** The agent that it belongs to. Missing: the round's own agent. */
  readonly instance?: string
}

/** Returns a unique key of an item; each agent numbers its own items. */
export function liveKey(id: string, instance: string | undefined): string {
  return instance === undefined ? id : `${instance}/${id}`
}

/**
 * Running items of the turn, newest last, from live and recorded events. Mutable: it handles thousands of deltas a second
 * without copying earlier text.
 */
export class LiveBoard {
  readonly #running = new Map<string, RunningItem>()
  readonly #completed = new Set<string>()
  #items: readonly LiveItem[] | null = null
  #revision = 0

  /** Number of changes so far. */
  get revision(): number {
    return this.#revision
  }

  /** Running items; the same array until an item begins or ends. */
  get items(): readonly LiveItem[] {
    this.#items ??= [...this.#running.values()]
    return this.#items
  }

  /** @param at time of arrival; Unix time, ms */
  live(event: LiveEvent, at: number): void {
    switch (event.type) {
      case 'item-started':
        if (event.item.kind !== 'user-message') this.#start(event, at)
        break
      case 'text-delta':
      case 'output-delta':
        this.#append(event, at)
        break
      case 'still-waiting':
        break
      default:
        unreachable(event)
    }
  }

  event(event: Recorded): void {
    if (event.type === 'item-completed') this.#complete(liveKey(event.item.id, event.instance))
    else if (event.type === 'agent-ended') this.#end(event.instance)
    else if (ENDS_WHAT_RUNS.has(event.type)) this.#clear()
    else this.#abandon(event)
  }

  #start({ item, instance }: Extract<LiveEvent, { type: 'item-started' }>, at: number): void {
    const known = this.#running.get(liveKey(item.id, instance))
    if (known) known.item = item
    else this.#add(item, instance, at)
    this.#revision++
  }

  #add(item: Item, instance: string | undefined, at: number): RunningItem {
    const running = new RunningItem(item, instance, at)
    this.#running.set(liveKey(item.id, instance), running)
    this.#items = null
    return running
  }

  #append(delta: Delta, at: number): void {
    // A late delta would stay here until the end of the round.
    const key = liveKey(delta.item, delta.instance)
    if (delta.text === '' || this.#completed.has(key)) return
    const running = this.#running.get(key) ?? this.#add(placeholderFor(delta), delta.instance, at)
    running.append(delta.text)
    this.#revision++
  }

  #complete(key: string): void {
    this.#completed.add(key)
    const [oldest] = this.#completed
    if (this.#completed.size > MOST_REMEMBERED && oldest !== undefined) this.#completed.delete(oldest)
    if (!this.#running.delete(key)) return
    this.#items = null
    this.#revision++
  }

  /** Codex never completes messages that a broken stream cut off. */
  #abandon(event: Recorded): void {
    for (const [key, { item, instance }] of this.#running) {
      if (!breaksStream(event, instance)) continue
      if (item.kind !== 'agent-message' && item.kind !== 'reasoning' && item.kind !== 'plan') continue
      this.#complete(key)
    }
  }

  /** Codex never completes the running items of an agent that ended. */
  #end(instance: string): void {
    for (const [key, running] of this.#running) if (running.instance === instance) this.#complete(key)
  }

  #clear(): void {
    this.#completed.clear()
    if (this.#running.size === 0) return
    this.#running.clear()
    this.#items = null
    this.#revision++
  }
}

/** Returns true if codex drops a message and asks the model again. `instance`: the agent; undefined: the round's own. */
export function breaksStream(event: Recorded, instance?: string): boolean {
  if (event.type === 'steered') return event.delivered && event.agent === instance
  return event.type === 'error' && event.willRetry && instance === undefined
}

type Delta = Extract<LiveEvent, { type: 'text-delta' | 'output-delta' }>

/** No item keeps running after one of these events. */
export const ENDS_WHAT_RUNS: ReadonlySet<Recorded['type']> = new Set([
  'session-created',
  'session-resumed',
  'round-started',
  'turn-continued',
  'round-ended',
  'review-started',
  'review-ended',
  'contract-turn-started',
  'contract-turn-ended',
  'session-ended',
])

const MOST_REMEMBERED = 500

class RunningItem implements LiveItem {
  item: Item
  readonly startedAt: number
  declare readonly instance?: string
  readonly #streamed: TextStart | TextEnd

  constructor(item: Item, instance: string | undefined, startedAt: number) {
    this.item = item
    this.startedAt = startedAt
    if (instance !== undefined) this.instance = instance
    this.#streamed = item.kind === 'command' ? new TextEnd() : new TextStart()
    this.append(wordsIn(item))
  }

  get text(): string {
    return this.#streamed.text
  }

  get dropped(): number {
    return this.#streamed.dropped
  }

  append(text: string): void {
    this.#streamed.append(text)
  }
}

/** Returns the text that an item already has at its start; nearly always empty. */
function wordsIn(item: Item): string {
  switch (item.kind) {
    case 'agent-message':
    case 'reasoning':
    case 'plan':
      return item.text
    case 'command':
      return item.output
    default:
      return ''
  }
}

/** Replaces an item whose start was missed. */
function placeholderFor(delta: Delta): Item {
  const id = delta.item
  if (delta.type === 'output-delta') {
    return {
      kind: 'command',
      id,
      command: '',
      directory: '',
      status: 'running',
      exitCode: null,
      durationMs: null,
      output: '',
    }
  }
  const { source } = delta
  switch (source) {
    case 'agent-message':
      return { kind: 'agent-message', id, text: '', phase: null }
    case 'reasoning':
    case 'plan':
      return { kind: source, id, text: '' }
    default:
      return unreachable(source)
  }
}

const START_CHARACTERS = 64 * 1024
const END_CHARACTERS = 16 * 1024

/** A growing text that keeps its start. The JS engine joins strings without copying until they are read. */
class TextStart {
  text = ''
  /** Number of characters that are not in `text`. */
  dropped = 0

  append(text: string): void {
    const room = this.dropped > 0 ? 0 : START_CHARACTERS - this.text.length
    const kept = text.length <= room ? text : withoutHalfAtEnd(text.slice(0, room))
    this.text += kept
    this.dropped += text.length - kept.length
  }
}

/** A growing text that keeps its end. Surrogate pairs stay whole. */
class TextEnd {
  #text = ''
  #length = 0

  get text(): string {
    this.#cut()
    return this.#text
  }

  get dropped(): number {
    this.#cut()
    return this.#length - this.#text.length
  }

  append(text: string): void {
    this.#text += text
    this.#length += text.length
    // Cuts are rare, so they cost almost nothing per delta.
    if (this.#text.length > 4 * END_CHARACTERS) this.#cut()
  }

  #cut(): void {
    if (this.#text.length > END_CHARACTERS) this.#text = withoutHalfAtStart(this.#text.slice(-END_CHARACTERS))
  }
}

function withoutHalfAtEnd(text: string): string {
  return text.replace(/[\uD800-\uDBFF]$/, '')
}

function withoutHalfAtStart(text: string): string {
  return text.replace(/^[\uDC00-\uDFFF]/, '')
}
