import { type EditedText, editText, suspendSelf, type TerminalEnd } from '../../../platform/terminal.ts'
import type { Records } from '../../../session/records/records.ts'
import { editFileInside } from '../../../workspace/files/inside-directory.ts'
import { writableIn } from '../../../workspace/git/find-git.ts'
import type { CliContext } from '../cli-context.ts'
import type { Screen } from '../screen/screen.tsx'

/** What draws on the terminal, and can give it away for a while. */
interface Lender {
  /** Gives the terminal to an action, and takes it back. */
  lend(action: () => Promise<void>): Promise<void>
  /** Says what went wrong, a sentence. */
  warn(problem: string): void
}

/** The screen as a lender. */
export function lenderOf(screen: Screen): Lender {
  return { lend: action => screen.lend(action), warn: problem => screen.notice(problem, 'warning') }
}

/** Opens a text in the person's editor; a failure has been said. */
export async function lendToEditor(
  lender: Lender,
  context: CliContext,
  { directory, folder }: Records,
  text: string,
): Promise<EditedText> {
  const { env, platform, host } = context
  const lent = async (edit: () => Promise<TerminalEnd>): Promise<TerminalEnd> => {
    let end: TerminalEnd = { error: 'another program uses the terminal' }
    await lender.lend(async () => {
      await letGoOfKeys(context)
      end = await host.withoutInterrupt(edit)
    })
    return end
  }
  const where = await writableIn(directory, env)
  const edited = await editText({ text, env, platform, temporary: folder, where, run: lent })
  if (edited.kind === 'failed') lender.warn(edited.message)
  return edited
}

/** Opens a file of the work directory in the person's editor; false if that failed, which has been said. */
export async function editWorkFile(
  lender: Lender,
  context: CliContext,
  records: Records,
  file: string,
): Promise<boolean> {
  let isEdited = true
  const problem = await editFileInside(records.directory, file, async text => {
    const edited = await lendToEditor(lender, context, records, text)
    isEdited = edited.kind !== 'failed'
    return edited.kind === 'edited' ? edited.text : null
  })
  if (problem !== null) lender.warn(problem)
  return isEdited && problem === null
}

/** Stops the program, as Ctrl+Z does; resolves when it goes on. */
export async function lendToShell(screen: Screen, { platform, clock, host }: CliContext): Promise<void> {
  let isDone = false
  await screen.lend(async () => {
    isDone = await suspendSelf({ platform, clock, signals: host.signals })
  })
  if (!isDone) screen.notice('codemachine was started without a shell, so it cannot be suspended', 'warning')
}

/** Reads no more, until Ink does again; Ink only stops to listen, and what is typed elsewhere would be lost in part. */
export async function letGoOfKeys({ stdin, clock }: Pick<CliContext, 'stdin' | 'clock'>): Promise<void> {
  await clock.wait(0)
  stdin.pause()
  await clock.wait(0)
}
