import { rm, stat } from 'node:fs/promises'
import type { Recorded, View } from '../core/events/events.ts'
import type { Records } from '../records/records.ts'
import { type SnapshotCheck, snapshotPath } from '../records/snapshot.ts'

/** A journal that has grown by so much is worth a new snapshot: it takes some 20 ms to read. */
const STEP_BYTES = 2 * 1024 * 1024
/** The same of a session that has ended, and will be read as often as the sessions of its directory are listed. */
const END_BYTES = 64 * 1024
/** The events after which its size is asked for, where no round ends meanwhile. */
const EVENTS = 1000

/**
 * Has the snapshot of a session follow its journal while it runs, and once more when this is disposed: in the background, and
 * read from the journal itself. What fails is tried again the next time: without a snapshot only time is lost.
 */
export class SnapshotWriter implements View, AsyncDisposable {
  readonly #records: Pick<Records, 'journal' | 'templates'>
  readonly #id: string
  #events = 0
  #renewing: Promise<void> | null = null
  /** Of the first one another process may have written what it goes on from. */
  #check: SnapshotCheck = 'whole'

  constructor(records: Pick<Records, 'journal' | 'templates'>, id: string) {
    this.#records = records
    this.#id = id
  }

  event({ type }: Recorded): void {
    this.#events += 1
    if ((type !== 'round-ended' && this.#events < EVENTS) || this.#renewing !== null) return
    this.#events = 0
    this.#renewing = this.#renew(STEP_BYTES).finally(() => {
      this.#renewing = null
    })
  }

  live(): void {}

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#renewing
    await this.#renew(END_BYTES)
  }

  async #renew(leastBytes: number): Promise<void> {
    const path = this.#records.journal(this.#id)
    try {
      // Loaded only for a long journal: at the end of a session its report wants it, too.
      if (!(await isLongerThan(path, leastBytes))) return
      const { renewSnapshot } = await import('./write.ts')
      const isRenewed = await renewSnapshot(this.#records, this.#id, { leastBytes, check: this.#check })
      if (isRenewed) this.#check = 'ends'
    } catch {
      this.#check = 'whole'
      await rm(`${snapshotPath(path)}.tmp`, { force: true }).catch(() => {})
    }
  }
}

async function isLongerThan(path: string, bytes: number): Promise<boolean> {
  return (await stat(path)).size > bytes
}
