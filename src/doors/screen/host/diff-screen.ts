import { type ComparedStates, type Comparison, OpenComparison } from '../../../project/diff/comparison.ts'
import { Keymap } from '../../../project/settings/keys.ts'
import type { LoadedSettings } from '../../../project/settings/load.ts'
import type { Records } from '../../../session/records/records.ts'
import type { CliContext } from '../cli-context.ts'
import { openTheme, type Theme } from '../terminal/theme.ts'
import type { FullView, Stage } from '../view/full-view.ts'
import { reviewOf } from '../view/review.ts'
import { editWorkFile } from './lent-terminal.ts'
import { showAlone } from './view-alone.ts'

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
  loaded: Pick<LoadedSettings, 'settings' | 'keys'>,
  { source, read }: { source: OpenComparison; read: Comparison },
): Promise<void> {
  const view = reviewOf({
    source,
    read,
    theme: openTheme({ theme: loaded.settings.screen.theme, env: context.env, reader: false }),
    keymap: new Keymap(loaded.keys, loaded.settings.screen.enter),
    edit: (file, stage) => editOn(stage, context, records, file),
  })
  await showAlone(context, view, loaded)
}
