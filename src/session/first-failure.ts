import type { ToolAnswer } from './engine.ts'

const COULD_NOT: ToolAnswer = { text: 'It could not be done.', success: false }

/**
 * The first thing that failed of what is done beside a turn. What cannot be journaled must not go on: after it nothing
 * more is done.
 */
export class FirstFailure {
  readonly #failed = new AbortController()

  /** Aborted when there is one. */
  get signal(): AbortSignal {
    return this.#failed.signal
  }

  /** Does it, unless something has failed before. */
  safely(action: () => void): void {
    if (this.signal.aborted) return
    try {
      action()
    } catch (error) {
      this.#failed.abort(error)
    }
  }

  /** Answers the call of a tool, also where that fails, or something has failed before. */
  async answer(answering: () => Promise<ToolAnswer> | ToolAnswer): Promise<ToolAnswer> {
    if (this.signal.aborted) return COULD_NOT
    try {
      return await answering()
    } catch (error) {
      this.#failed.abort(error)
      return COULD_NOT
    }
  }

  /** Throws it, if there is one. */
  rethrow(): void {
    this.signal.throwIfAborted()
  }
}
