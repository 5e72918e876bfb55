import { holdsEvents } from '../../session/journal.ts'
import type { Records } from '../../session/records.ts'

/** The sessions that come to be while one is followed. */
export class SessionsAhead {
  readonly #records: Records
  #known: ReadonlySet<string> = new Set()

  constructor(records: Records) {
    this.#records = records
  }

  /** What is there now is no session to come. */
  async remember(): Promise<void> {
    const ids = await this.#records.sessions()
    const newest = ids.at(-1)
    const known = new Set(ids)
    if (newest !== undefined && !(await this.#hasBegun(newest))) known.delete(newest)
    this.#known = known
  }

  /** The first one that has begun since; null if there is none yet. */
  async next(): Promise<string | null> {
    for (const id of await this.#records.sessions()) {
      if (this.#known.has(id) || !(await this.#hasBegun(id))) continue
      this.#known = new Set([...this.#known, id])
      return id
    }
    return null
  }

  /** One that cannot be read is nobody's. */
  #hasBegun(id: string): Promise<boolean> {
    return holdsEvents(this.#records.journal(id)).catch(() => false)
  }
}
