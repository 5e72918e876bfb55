import { join } from 'node:path'
import { readJournal } from '../../session/journal.ts'
import { openRecords } from '../../session/records.ts'
import { readRunner } from '../../session/run-lock.ts'
import { emptyState, fold } from '../../session/state.ts'
import { jsonView } from '../../ui/json-view.ts'
import { plainView } from '../../ui/plain-view.ts'
import type { CliContext } from '../context.ts'
import { findSession } from '../find-session.ts'
import { followJournal } from '../follow-journal.ts'
import { PacedOutput } from '../paced-output.ts'
import { wantsColour } from '../wants-colour.ts'

export interface LogsOptions {
  directory: string
  /** As typed; null for the latest. */
  session: string | null
  /** Go on until the session ends, or nobody runs it any more. */
  follow: boolean
  json: boolean
}

/** `codemachine logs`: what happened in a session, through the same views as while it runs. */
export async function logs(context: CliContext, options: LogsOptions): Promise<number> {
  const { clock, platform, stdout } = context
  const records = await openRecords({ ...context, directory: options.directory })
  const id = await findSession(records, options.session)
  const path = join(records.sessionFolder(id), 'journal.ndjson')

  using output = new PacedOutput(stdout, context.signal)
  const write = (text: string) => output.write(text)
  const view = options.json ? jsonView(write) : plainView(write, { colour: wantsColour(context) })
  let state = emptyState(id)
  const isOver = async () => state.ended !== null || (await readRunner(records.lock, platform)) === null
  const events = options.follow ? followJournal(path, { clock, signal: output.ended, isOver }) : readJournal(path)
  for await (const event of events) {
    state = fold(state, event)
    view.event(event, state)
    await output.ready()
    if (output.ended.aborted) break
  }
  return 0
}
