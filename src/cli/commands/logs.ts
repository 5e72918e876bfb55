import { UserError } from '../../base/errors.ts'
import { fold } from '../../session/fold.ts'
import { holdsEvents, readJournal } from '../../session/journal.ts'
import { openRecords, type Records } from '../../session/records.ts'
import { askWhoRuns } from '../../session/run-lock.ts'
import { emptyState } from '../../session/state.ts'
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
  const { clock, stdout } = context
  const records = await openRecords({ ...context, directory: options.directory })
  const id = await findSession(records, options.session, problem => context.stderr.write(`codemachine: ${problem}\n`))
  const path = records.journal(id)
  const isOver = lookout(context, records)
  if (!(await holdsEvents(path)) && (!options.follow || (await isOver()))) {
    throw new UserError(`${path} holds no session.`)
  }
  using output = new PacedOutput(stdout, context.signal)
  const write = (text: string) => output.write(text)
  const view = options.json ? jsonView(write) : plainView(write, { colour: wantsColour(context) })
  let state = emptyState(id)
  const following = { clock, signal: output.ended, isOver: async () => state.ended !== null || (await isOver()) }
  const events = options.follow ? followJournal(path, following) : readJournal(path)
  for await (const event of events) {
    state = fold(state, event)
    view.event(event, state)
    await output.ready()
    if (output.ended.aborted) break
  }
  return 0
}

/** Tells whether nobody runs any more. Where that cannot be known it is said, once, and somebody may. */
function lookout({ platform, stderr }: CliContext, { lock }: Records): () => Promise<boolean> {
  let isSaid = false
  const say = (problem: string) => {
    if (!isSaid) stderr.write(`codemachine: ${problem}\n`)
    isSaid = true
  }
  return async () => (await askWhoRuns(lock, platform, say)) === null
}
