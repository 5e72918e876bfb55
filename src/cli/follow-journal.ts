import { dirname } from 'node:path'
import type { Clock } from '../base/clock.ts'
import type { Recorded } from '../session/events.ts'
import { FolderChanges } from './folder-changes.ts'
import { GrowingJournal } from './growing-journal.ts'

export interface FollowOptions {
  clock: Clock
  /** Ends the following. */
  signal: AbortSignal
  /** Asked whenever all that is written has been yielded: whether nothing more will come. */
  isOver(): Promise<boolean>
}

/**
 * The events of a journal that is still being written, from its first on. An event is yielded when its line is whole,
 * so a torn last line counts once it is completed. Ends after `isOver` or with `signal`.
 */
export async function* followJournal(path: string, options: FollowOptions): AsyncGenerator<Recorded> {
  const { signal, isOver } = options
  await using journal = new GrowingJournal(path)
  using changes = new FolderChanges([dirname(path)], options)
  while (!signal.aborted) {
    yield* journal.readOn(signal)
    if (await isOver()) {
      yield* journal.readOn(signal)
      return
    }
    await changes.next(POLL_MS)
  }
}

/** A network drive tells nothing of what changes on it. */
const POLL_MS = 1000
