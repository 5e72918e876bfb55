import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { openQueue, type Queue, type QueuedPrompt } from '../../session/queue.ts'
import type { Screen } from '../../ui/screen/screen.tsx'
import type { DraftFile } from './draft-file.ts'

export interface WaitingPromptsOptions {
  /** Where the queue lies. */
  path: string
  screen: Screen
  clock: Clock
  /** Where what is taken back is kept; null if it is not. */
  draft: DraftFile | null
}

/** How often the queue is looked at for what other terminals do with it, ms. */
const LOOK_MS = 2_000

/** The queue of a work directory, as the screen shows it. */
export class WaitingPrompts {
  readonly #options: WaitingPromptsOptions
  readonly #queue: Queue
  #problem: string | null = null

  constructor(options: WaitingPromptsOptions) {
    this.#options = options
    this.#queue = openQueue(options.path)
  }

  async list(): Promise<readonly QueuedPrompt[]> {
    return (await this.#queue.list()).prompts
  }

  /** Adds a prompt; resolves with a sentence. */
  async add(prompt: string): Promise<string> {
    await this.#queue.add(prompt, new Date(this.#options.clock.now()))
    return `It waits as the next session (${await this.#count()} in the queue); Alt+↑ takes it back`
  }

  /** Takes the prompt out of the queue, once `keep` has put it where it is kept; false if its session has begun. */
  async takeBack({ id, prompt }: QueuedPrompt, keep: (prompt: string) => void): Promise<boolean> {
    if (!(await this.#queue.claim(id))) return false
    keep(prompt)
    await this.#options.draft?.written()
    await this.#queue.removeIfWaiting(id)
    await this.#count()
    return true
  }

  /** The same with the last one; false if there is none. */
  async takeBackLast(keep: (prompt: string) => void): Promise<boolean> {
    const last = (await this.list()).at(-1)
    return last !== undefined && (await this.takeBack(last, keep))
  }

  /** Has the screen show how many wait; what goes wrong with that is said once. */
  async show(): Promise<void> {
    try {
      await this.#count()
    } catch (error) {
      const problem = messageOf(error)
      if (problem !== this.#problem) this.#options.screen.notice(`The queue cannot be read: ${problem}`, 'warning')
      this.#problem = problem
    }
  }

  /** Does so again and again, until `signal`. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.show()
      await this.#options.clock.wait(LOOK_MS, signal)
    }
  }

  async #count(): Promise<number> {
    const { screen } = this.#options
    const { model } = screen
    const waiting = await this.#queue.count()
    if (waiting === model.queued && waiting === (model.facts?.queue?.length ?? waiting)) return waiting
    model.queued = waiting
    const prompts = await this.list()
    if (model.facts !== null) model.facts = { ...model.facts, queue: prompts.map(({ prompt }) => prompt) }
    screen.changed()
    return waiting
  }
}
