import { type ComparedStates, type Comparison, OpenComparison } from '../../app/diff/comparison.ts'
import { Cleanup, Interrupted } from '../../base/errors.ts'
import type { Records } from '../../records/records.ts'
import { Keymap } from '../../settings/keys.ts'
import type { LoadedSettings } from '../../settings/load.ts'
import { loadGrammars } from '../blocks/markdown.ts'
import type { CliContext } from '../cli-context.ts'
import { narrowingOf, TerminalOutput, TerminalRestorer } from '../terminal/output.ts'
import { openTheme, type Theme } from '../terminal/theme.ts'
import type { FullView, Stage } from '../view/full-view.ts'
import { reviewOf } from '../view/review.ts'
import { openView } from '../view/stage.tsx'
import { editWorkFile } from './lent-terminal.ts'

/** What a view of changes is opened with. */
interface DiffViewOptions {
  theme: Theme
  keymap: Keymap
  states: ComparedStates
  onWarning(warning: string): void
}

/** The view of what changed between two states of the work directory; it lets go of them when it is closed. */
export function diffView(
  context: CliContext,
  records: Records,
  { theme, keymap, states, onWarning }: DiffViewOptions,
): FullView {
  const source = new OpenComparison(context, records, states, onWarning)
  return reviewOf({ source, theme, keymap, edit: (file, stage) => editOn(stage, context, records, file) })
}

/** Opens a file in the editor on the terminal of a stage; resolves with why it could not, else null. */
async function editOn(stage: Stage, context: CliContext, records: Records, file: string): Promise<string | null> {
  let problem: string | null = null
  const warn = (said: string) => {
    problem = said
  }
  await editWorkFile({ lend: action => stage.lend(action), warn }, context, records, file)
  return problem
}

/**
 * Shows what changed on the terminal of a command that draws nothing else, until the person leaves. Throws `Interrupted` if
 * the program is asked to end.
 * @param source whose states have been looked at: `read` has what that came to
 */
export async function openDiffScreen(
  context: CliContext,
  records: Records,
  { settings, keys }: Pick<LoadedSettings, 'settings' | 'keys'>,
  { source, read }: { source: OpenComparison; read: Comparison },
): Promise<void> {
  const { stdin, stdout, env, clock, host, signal } = context
  const gone = new AbortController()
  await using opened = new Cleanup()
  const output = new TerminalOutput({ stream: stdout, narrowing: narrowingOf(env), onGone: () => gone.abort() })
  const { writeNow, rawModeOff } = host
  const restorer = new TerminalRestorer({ output, term: env.TERM, writeNow, rawModeOff })
  opened.defer(() => restorer.leave())
  opened.defer(host.beforeCrash(() => restorer.leave()))
  const failed = Promise.withResolvers<never>()
  const view = reviewOf({
    source,
    read,
    theme: openTheme({ theme: settings.screen.theme, env, reader: false }),
    keymap: new Keymap(keys),
    edit: (file, stage) => editOn(stage, context, records, file),
  })
  await loadGrammars()
  const over = AbortSignal.any([signal, gone.signal])
  const shown = openView(view, {
    stdin,
    output,
    clock,
    mouse: settings.screen.mouse,
    signal: over,
    onFailure: error => failed.reject(error),
  })
  try {
    await Promise.race([shown, failed.promise])
  } finally {
    gone.abort()
    await shown
  }
  if (signal.aborted) throw new Interrupted(signal.reason)
}
