import { openRecords } from '../../session/records.ts'
import type { CliContext } from '../context.ts'
import { findSession } from '../find-session.ts'
import { wantsScreen } from '../wants-screen.ts'
import { logs } from './logs.ts'

/** `codemachine watch`: a session that another process runs, as it happens. Without a terminal: in plain lines. */
export async function watch(
  context: CliContext,
  options: { directory: string; session: string | null },
): Promise<number> {
  if (!wantsScreen(context, {})) return await logs(context, { ...options, follow: true, json: false })
  const records = await openRecords({ ...context, directory: options.directory })
  const id = await findSession(records, options.session, problem => context.stderr.write(`codemachine: ${problem}\n`))
  const { openWatchScreen } = await import('../screen/watch-screen.ts')
  return await openWatchScreen(context, records, id)
}
