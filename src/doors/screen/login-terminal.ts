import { runInTerminal } from '../../platform/terminal.ts'
import { type LoginEnd, type LoginPlace, type LoginWay, logIn } from '../../project/login.ts'
import { WITHOUT_BROWSER } from '../../tell/words/login.ts'
import type { CliContext } from './cli-context.ts'
import { askHidden } from './terminal/hidden-field.ts'

/**
 * Has codex log somebody in on the terminal, which the caller has; before it opens a browser a person is told how else.
 * @param key for `api-key`; null: codex reads it from standard input
 * @param onStderr whether codex writes to stderr alone
 */
export async function logInOnTerminal(
  { stderr }: Pick<CliContext, 'stderr'>,
  place: LoginPlace,
  way: LoginWay,
  key: string | null,
  onStderr = false,
): Promise<LoginEnd> {
  return await logIn(place, {
    way,
    key,
    inTerminal: async (program, args, how) => {
      if (way === 'browser') stderr.write(WITHOUT_BROWSER)
      return await runInTerminal(program, args, { ...how, onStderr })
    },
  })
}

/** An API key as typed; `left`: by Ctrl+C, or by the end of the input. */
type TypedKey = { kind: 'key'; key: string } | { kind: 'left'; interrupted: boolean }

/** Asks for an API key on the terminal, which does not show it. Whoever calls has the terminal. */
export async function askKey(
  context: Pick<CliContext, 'stdin' | 'stdout' | 'signal' | 'host' | 'env'>,
): Promise<TypedKey> {
  const typed = await askHidden(context, {
    prompt: 'API key (your typing is hidden): ',
    mostBytes: MOST_KEY_BYTES,
    problemOf: text => (text.trim() === '' ? 'The key is empty. Ctrl+C cancels.' : null),
  })
  if (typed.kind === 'typed') return { kind: 'key', key: typed.text.trim() }
  return { kind: 'left', interrupted: typed.by !== 'ctrl-d' }
}

const MOST_KEY_BYTES = 64 * 1024
