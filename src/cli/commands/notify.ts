import { hostname } from 'node:os'
import { UserError } from '../../base/errors.ts'
import { sendTest } from '../../notify/send-test.ts'
import { writableByAgents } from '../../platform/writable-by-agents.ts'
import { openRecords } from '../../session/records.ts'
import { findRepository } from '../../workspace/person-repository.ts'
import type { CliContext } from '../context.ts'
import { settingsOf } from '../open-run.ts'

/** `codemachine notify`: sends a sample through every way that the settings name, and says what became of it. */
export async function notify(context: CliContext, options: { directory: string }): Promise<number> {
  const { directory } = await openRecords({ ...context, directory: options.directory })
  const { settings } = await settingsOf(context, directory, {})
  const repository = await findRepository(directory)
  const where = writableByAgents(directory, context.env, repository ? [repository.gitDir, repository.commonDir] : [])
  const results = await sendTest(settings.notify, { ...context, where, host: hostname(), directory })
  if (results.length === 0) {
    throw new UserError('The settings name no way to notify you; set notify.command, notify.webhook or notify.bell.', {
      hint: 'In your own config.toml: docs/notifications.md shows how.',
    })
  }
  for (const { door, problem } of results) context.stdout.write(`${door}: ${problem ?? 'sent'}\n`)
  return results.every(({ problem }) => problem === null) ? 0 : 4
}
