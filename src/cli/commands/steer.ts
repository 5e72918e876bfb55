import { UserError } from '../../base/errors.ts'
import { sendCommand } from '../../session/control.ts'
import { openRecords } from '../../session/records.ts'
import { readRunner } from '../../session/run-lock.ts'
import type { CliContext } from '../context.ts'
import { readText } from '../read-text.ts'

const REPLY_MS = 10_000

/** `steer`: hands the text to the codemachine that runs in the directory, and says what became of it. */
export async function steer(context: CliContext, directory: string, typed: string): Promise<number> {
  const text = await readText(context, typed)
  const records = await openRecords({ ...context, directory })
  if ((await readRunner(records.lock, context.platform)) === null) {
    throw new UserError(`No codemachine runs in ${records.directory}, so there is nothing to steer.`, {
      hint: 'To have it done as a session of its own: codemachine queue add "…"',
    })
  }
  const { clock } = context
  const at = new Date(clock.now()).toISOString()
  const reply = await sendCommand(records.control, { type: 'steer', text, at }, { clock, timeoutMs: REPLY_MS })
  if (!reply.delivered && !reply.kept) {
    throw new UserError(reply.message, {
      hint: 'If the session goes on, say it again; else: codemachine queue add "…"',
    })
  }
  context.stdout.write(`${reply.message}\n`)
  return 0
}
