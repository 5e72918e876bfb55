import type { ModelRequest, WireRequest } from './model-request.ts'

/** Where a reply belongs. Its items carry this in their ids, and codex sends the ids back with every later request. */
export interface ReplyPlace {
  thread: string
  step: number
  attempt: number
}

/** Keeps apart which reply is due in which codex thread, whatever codex retries, compacts or runs side by side. */
export class Conversations {
  readonly #indexes = new Map<string, number>()
  readonly #threads = new Map<string, ThreadMemory>()

  /** The request with its place among those that were seen before. */
  place(wire: WireRequest): ModelRequest {
    const { session, compactions, itemIds, ...request } = wire
    const thread = this.#thread(request.thread)
    const step = request.kind === 'turn' ? stepOf(thread, request.thread, compactions, itemIds) : thread.given
    const attemptKey = request.kind === 'turn' ? String(step) : `${request.kind} ${step}`
    const attempt = thread.attempts.get(attemptKey) ?? 0
    thread.attempts.set(attemptKey, attempt + 1)
    return { ...request, conversation: this.#index(session), step, attempt }
  }

  /** Notes that codex has had a whole reply; `traced`: it has items that codex will send back with their ids. */
  given(place: ReplyPlace, traced: boolean): void {
    const thread = this.#thread(place.thread)
    thread.given = Math.max(thread.given, place.step + 1)
    if (!traced) thread.untraced.add(place.step)
  }

  /** Notes that a reply did not reach its end, so that its step is due again. */
  broken(place: ReplyPlace): void {
    this.#thread(place.thread).broken.add(`${place.step} ${place.attempt}`)
  }

  #index(session: string): number {
    const index = this.#indexes.get(session) ?? this.#indexes.size
    this.#indexes.set(session, index)
    return index
  }

  #thread(id: string): ThreadMemory {
    const known = this.#threads.get(id)
    if (known !== undefined) return known
    const fresh: ThreadMemory = { given: 0, attempts: new Map(), broken: new Set(), untraced: new Set() }
    this.#threads.set(id, fresh)
    return fresh
  }
}

/** The id of the nth thing in a reply; unique over all threads and attempts. */
export function itemId(prefix: string, place: ReplyPlace, n: number): string {
  return `${prefix}_${place.thread.replaceAll('-', '')}_${place.step}_${place.attempt}_${n}`
}

interface ThreadMemory {
  given: number
  attempts: Map<string, number>
  broken: Set<string>
  untraced: Set<number>
}

/**
 * The request's own history counts, as it is what codex believes: a reply that a killed codex never read is due again,
 * and a thread that is resumed against a new server goes on. Memory stands in where the history has no traces.
 */
function stepOf(memory: ThreadMemory, thread: string, compactions: number, itemIds: readonly string[]): number {
  let step = compactions > 0 ? memory.given : 0
  const own = new RegExp(`_${thread.replaceAll('-', '')}_(\\d+)_(\\d+)_\\d+$`)
  for (const id of itemIds) {
    const match = own.exec(id)
    if (match === null || memory.broken.has(`${match[1]} ${match[2]}`)) continue
    step = Math.max(step, Number(match[1]) + 1)
  }
  while (memory.untraced.has(step)) step++
  return step
}
