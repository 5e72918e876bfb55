import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { type LoginEnd, type LoginPlace, type LoginWay, logIn } from '../app/login.ts'
import { runInTerminal } from '../platform/terminal.ts'
import { WITHOUT_BROWSER } from '../words/login.ts'
import type { CliContext } from './cli-context.ts'

/**
 * Has codex log somebody in on the terminal, which the caller has; before it opens a browser a person is told how else.
 * @param key for `api-key`; null: codex reads it from standard input
 */
export async function logInOnTerminal(
  { stderr }: Pick<CliContext, 'stderr'>,
  place: LoginPlace,
  way: LoginWay,
  key: string | null,
): Promise<LoginEnd> {
  return await logIn(place, {
    way,
    key,
    inTerminal: async (...program) => {
      if (way === 'browser') stderr.write(WITHOUT_BROWSER)
      return await runInTerminal(...program)
    },
  })
}

/** An API key as typed; `left`: by Ctrl+C, or by the end of the input. */
export type TypedKey = { kind: 'key'; key: string } | { kind: 'left'; interrupted: boolean }

/** Asks for an API key on the terminal, which does not show it. Whoever calls has the terminal. */
export async function askKey({
  stdin,
  stdout,
  signal,
}: Pick<CliContext, 'stdin' | 'stdout' | 'signal'>): Promise<TypedKey> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: stdin, output: silent, terminal: true, historySize: 0, signal })
  // Not before the terminal's own echo is off.
  stdout.write('API key (what you type is not shown): ')
  const { promise, resolve } = Promise.withResolvers<TypedKey>()
  let typed: TypedKey = { kind: 'left', interrupted: false }
  const close = (end: TypedKey) => {
    typed = end
    lines.close()
  }
  lines.once('line', line => close({ kind: 'key', key: line.trim() }))
  lines.once('SIGINT', () => close({ kind: 'left', interrupted: true }))
  lines.once('close', () => resolve(typed))
  const end = await promise
  stdout.write('\n')
  return signal.aborted ? { kind: 'left', interrupted: true } : end
}
