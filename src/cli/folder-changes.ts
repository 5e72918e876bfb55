import { type FSWatcher, watch } from 'node:fs'
import type { Clock } from '../base/clock.ts'

/** Whether something in some folders may have changed. */
export class FolderChanges implements Disposable {
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #watchers: (FSWatcher | null)[]
  #changed = new AbortController()
  readonly #awaken = () => this.#changed.abort()

  constructor(folders: readonly string[], { clock, signal }: { clock: Clock; signal: AbortSignal }) {
    this.#clock = clock
    this.#signal = signal
    this.#watchers = folders.map(folder => watchFolder(folder, this.#awaken))
    signal.addEventListener('abort', this.#awaken)
  }

  /** Resolves at the next change, or at once if there was one since the last call, or after `ms`, or with the signal. */
  async next(ms: number): Promise<void> {
    if (this.#signal.aborted) return
    await this.#clock.wait(ms, this.#changed.signal)
    this.#changed = new AbortController()
  }

  [Symbol.dispose](): void {
    this.#signal.removeEventListener('abort', this.#awaken)
    for (const watcher of this.#watchers) watcher?.close()
  }
}

/** Null where it cannot be watched (no inotify watches left, for one): then polling has to do. */
function watchFolder(folder: string, onChange: () => void): FSWatcher | null {
  try {
    return watch(folder, onChange).on('error', () => {})
  } catch {
    return null
  }
}
