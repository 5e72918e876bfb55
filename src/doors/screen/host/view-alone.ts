import { Cleanup, Interrupted } from '../../../base/errors.ts'
import type { LoadedSettings } from '../../../project/settings/load.ts'
import { loadGrammars } from '../blocks/markdown.ts'
import type { CliContext } from '../cli-context.ts'
import { narrowingOf, TerminalOutput, TerminalRestorer } from '../terminal/output.ts'
import type { FullView } from '../view/full-view.ts'
import { openView, SharedKeys } from '../view/stage.tsx'

/**
 * Shows a view on the terminal of a command that draws nothing else, until the person leaves it or the terminal is gone; the
 * terminal is as before then. It is closed, too, once one of `broken` rejects. Rejects with what an action of the view has failed with, and with `Interrupted` if the program
 * is asked to end.
 */
export async function showAlone(
  context: CliContext,
  view: FullView,
  { settings }: Pick<LoadedSettings, 'settings'>,
  broken: readonly Promise<never>[] = [],
): Promise<void> {
  const { stdin, stdout, env, clock, host, signal } = context
  const gone = new AbortController()
  await using opened = new Cleanup()
  const output = new TerminalOutput({ stream: stdout, narrowing: narrowingOf(env), onGone: () => gone.abort() })
  const { writeNow, rawModeOff } = host
  const restorer = new TerminalRestorer({ output, term: env.TERM, writeNow, rawModeOff })
  opened.defer(() => restorer.leave())
  opened.defer(host.beforeCrash(() => restorer.leave()))
  await loadGrammars()
  const failed = Promise.withResolvers<never>()
  const shown = openView(view, {
    keys: new SharedKeys(stdin),
    output,
    clock,
    mouse: settings.screen.mouse,
    signal: AbortSignal.any([signal, gone.signal]),
    onFailure: error => failed.reject(error),
  })
  try {
    await Promise.race([shown, failed.promise, ...broken])
  } finally {
    gone.abort()
    ;(await shown)()
  }
  if (signal.aborted) throw new Interrupted(signal.reason)
}
