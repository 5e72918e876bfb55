import type { Cleanup } from '../base/cleanup.ts'
import { type Notifier, openNotifier } from '../notify/notifier.ts'
import { MARK_VARIABLE, makeMark } from '../platform/marks.ts'
import type { ProcessIdentity } from '../platform/processes.ts'
import type { WritableByAgents } from '../platform/writable-by-agents.ts'
import type { Settings } from '../settings/schema.ts'
import type { CliContext } from './context.ts'
import type { RunFlags } from './flags.ts'

/** Where and for whom a command runs that tells a person. */
export interface NoticesPlace {
  where: WritableByAgents
  /** Key of the records, and this process: what the command's mark says. */
  key: string
  owner: ProcessIdentity
}

/**
 * Opens the ways to a person who is not looking. What cannot be told of in the session any more, because it has ended,
 * is said when the run is closed. A command that outlives this process is ended by the next one that starts there.
 */
export function openNotices(
  context: CliContext,
  { notify }: Settings,
  { json }: RunFlags,
  { where, key, owner }: NoticesPlace,
  remarks: string[],
  opened: Cleanup,
): Notifier {
  const mark = makeMark({ key, owner, n: NO_APP_SERVER })
  const problems = new Set<string>()
  // A bell has no place among lines of JSON.
  const notifier = openNotifier(
    { ...notify, bell: notify.bell && !json },
    {
      ...context,
      stdout: context.display?.terminal ?? context.stdout,
      env: { ...context.env, [MARK_VARIABLE]: mark },
      where,
      onProblem: sentence => {
        problems.add(sentence)
        remarks.push(sentence)
      },
    },
  )
  opened.defer(async () => {
    await notifier.close()
    for (const sentence of remarks) if (problems.has(sentence)) context.stderr.write(`codemachine: ${sentence}\n`)
  })
  return notifier
}

/** App-servers are counted from 0, and what is looked for when one has ended is not to be this. */
const NO_APP_SERVER = 999_999_999
