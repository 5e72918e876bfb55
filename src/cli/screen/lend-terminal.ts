import { type EditorEnd, editText } from '../../platform/edit-text.ts'
import { suspendSelf } from '../../platform/suspend-self.ts'
import { writableByAgents } from '../../platform/writable-by-agents.ts'
import type { Records } from '../../session/records.ts'
import type { Screen } from '../../ui/screen/screen.tsx'
import type { CliContext } from '../context.ts'
import { letGoOfKeys } from './let-go-of-keys.ts'

/** Opens a text in the person's editor; null: it stays as it was, which has been said if it is for a failure. */
export async function lendToEditor(
  screen: Screen,
  context: CliContext,
  { directory, folder }: Records,
  text: string,
): Promise<string | null> {
  const { env, platform, host } = context
  const lent = async (edit: () => Promise<EditorEnd>): Promise<EditorEnd> => {
    let end: EditorEnd = { error: 'the terminal is in use' }
    await screen.lend(async () => {
      await letGoOfKeys(context)
      end = await host.withoutInterrupt(edit)
    })
    return end
  }
  const where = writableByAgents(directory, env, [])
  const edited = await editText({ text, env, platform, temporary: folder, where, run: lent })
  if (edited.kind === 'failed') screen.notice(edited.message, 'warning')
  return edited.kind === 'edited' ? edited.text : null
}

/** Stops the program, as Ctrl+Z does; resolves when it goes on. */
export async function lendToShell(screen: Screen, { platform, clock, host }: CliContext): Promise<void> {
  let isDone = false
  await screen.lend(async () => {
    isDone = await suspendSelf({ platform, clock, signals: host.signals })
  })
  if (!isDone) screen.notice('There is no shell here that could bring it back', 'warning')
}
