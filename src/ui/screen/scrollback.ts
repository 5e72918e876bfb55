import { formatCount } from '../format-count.ts'

/** Lines that wait while the terminal belongs to somebody else (a pager, an editor); more are in the logs. */
const MOST_WAITING = 5_000

/** What is finished, on its way into the terminal's own scrollback: written once, and forgotten. */
export class Scrollback {
  #waiting: string[] = []
  #dropped = 0
  #hasLines = false

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  /** Whether anything has been printed. */
  get hasLines(): boolean {
    return this.#hasLines
  }

  /** Lines that wait. */
  get count(): number {
    return this.#waiting.length
  }

  /** @param lines each at most as wide as the terminal */
  add(lines: readonly string[]): void {
    this.#hasLines ||= lines.length > 0
    for (const line of lines) this.#waiting.push(line)
    const surplus = this.#waiting.length - MOST_WAITING
    if (surplus <= 0) return
    this.#waiting.splice(0, surplus)
    this.#dropped += surplus
  }

  /** All that waits, as the text to be written; empty if nothing does. */
  take(): string {
    const lines = this.#waiting
    if (this.#dropped > 0) lines.unshift(`[… ${formatCount(this.#dropped, 'line')} more; Ctrl+E shows them]`)
    this.#waiting = []
    this.#dropped = 0
    return lines.length === 0 ? '' : `${lines.join('\n')}\n`
  }
}
