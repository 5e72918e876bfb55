import { type inboxFiles, readInboxName } from './inbox.ts'
import type { InboxFolder } from './inbox-folder.ts'

/** Which file of a request a file in the inbox is; `half-written`: one that was never finished. */
type SweptFile = keyof typeof inboxFiles | 'half-written'

export interface Sweep {
  /** Wall time, ms since the epoch. */
  now: number
  /** How old each file may become, ms. */
  mostAge(file: SweptFile): number
  /** Whether the files of a request stay, however old. */
  stays(id: string): boolean
}

/** Removes what requests that nobody waits for any more have left. What is no file of a request stays. */
export async function sweepInbox(folder: InboxFolder, { now, mostAge, stays }: Sweep): Promise<void> {
  for (const name of await folder.names()) {
    const read = readInboxName(name)
    const file = read?.file ?? (HALF_WRITTEN.test(name) ? 'half-written' : null)
    if (file === null || (read !== null && stays(read.id))) continue
    const state = await folder.stateOf(name)
    if (state === null || now - state.changedAt >= mostAge(file)) await folder.remove(name)
  }
}

/** What `writeFileInside` leaves where it was cut off. */
const HALF_WRITTEN = /^\.[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\.tmp$/
