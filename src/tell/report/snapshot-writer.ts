import { stat } from 'node:fs/promises'
import type { Recorded } from '../../core/events/events.ts'
import type { SessionState, View } from '../../core/state/state.ts'
import type { Records } from '../../session/records/records.ts'
import { removeSnapshot } from '../../session/records/snapshot.ts'

/** A journal that has grown by so much is worth a new snapshot: it takes some 20 ms to read. */
const STEP_BYTES = 2 * 1024 * 1024
/** The same of a session that has ended, and will be read as often as the sessions of its directory are listed. */
const END_BYTES = 64 * 1024
/** The events after which its size is asked for, where no round ends meanwhile. */
const EVENTS = 1000

/**
 * Has the snapshot of a session follow its journal while it runs, and once more when this is disposed: in the background, and
 * read from the journal itself. Where that fails there is none until the next time: without a snapshot only time is lost.
 */
export class SnapshotWriter implements View, AsyncDisposable {
  readonly #records: Pick<Records, 'journal' | 'templates'>
  readonly #id: string
  #events = 0
  /** Whether its template has snapshots: without that all of its journal would be read each time to find out. */
  #isKept = false
  #renewing: Promise<void> | null = null

  /** @param id the session; its journal may have nothing yet */
  constructor(records: Pick<Records, 'journal' | 'templates'>, id: string) {
    this.#records = records
    this.#id = id
  }

  event({ type }: Recorded, { kind }: Pick<SessionState, 'kind'>): void {
    this.#events += 1
    this.#isKept = kind?.hasPlainState === true
    if (!this.#isKept || (type !== 'round-ended' && this.#events < EVENTS) || this.#renewing !== null) return
    this.#events = 0
    this.#renewing = this.#renew(STEP_BYTES).finally(() => {
      this.#renewing = null
    })
  }

  live(): void {}

  /** Resolves when the last one is written. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#renewing
    if (this.#isKept) await this.#renew(END_BYTES)
  }

  async #renew(leastBytes: number): Promise<void> {
    const path = this.#records.journal(this.#id)
    try {
      // Loaded only for a long journal: at the end of a session its report wants it, too.
      if (!(await isLongerThan(path, leastBytes))) return
      const { renewSnapshot } = await import('./write.ts')
      await renewSnapshot(this.#records, this.#id, leastBytes)
    } catch {
      await removeSnapshot(path).catch(() => {})
    }
  }
}

async function isLongerThan(path: string, bytes: number): Promise<boolean> {
  return (await stat(path)).size > bytes
}
