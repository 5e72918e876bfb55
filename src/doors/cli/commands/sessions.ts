import { settingsOf } from '../../../project/open-run.ts'
import { placesOf } from '../../../project/world.ts'
import { openRecords } from '../../../session/records/records.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { directoryOf, type LookFlags, wantsScreen } from '../flags.ts'
import { list } from './look.ts'

/**
 * `codemachine sessions`: the sessions in a table, and what a person chooses there: to watch one, or to go on with it. Where no
 * terminal can show that, and for a screen reader, it is `codemachine list`.
 */
export async function sessions(context: CliContext, flags: LookFlags & { all?: true }): Promise<number> {
  if (!wantsScreen(context, { ...(flags.json ? { json: true } : {}) })) return await list(context, flags)
  const records = await openRecords(placesOf(context, directoryOf(context, flags)))
  const loaded = await settingsOf(context, records.directory, {})
  if (loaded.settings.screen.reader || context.env.INK_SCREEN_READER === 'true') return await list(context, flags)
  const { showSessions } = await import('../../screen/host/sessions-screen.ts')
  const chosen = await showSessions(context, records, loaded, flags.all ? 'all' : 'here')
  if (chosen === null) return 0
  const { action, row } = chosen
  if (action === 'watch') {
    const { openWatchScreen } = await import('../../screen/host/watch-screen.ts')
    return await openWatchScreen(context, row.records, row.id)
  }
  const { resume } = await import('./run.ts')
  return await resume(context, row.id, { cd: row.records.directory })
}
