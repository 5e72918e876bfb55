import { spawn } from '@lydell/node-pty'
import { BIN } from './codemachine.ts'
import type { TestPlace } from './place.ts'

const BOUND_MS = 60_000

/** The built command line in a real terminal. Disposing of it kills it if it still runs. */
export interface InTerminal extends AsyncDisposable {
  /** Resolves once the terminal has been given this text; rejects if it ends without. */
  until(text: string): Promise<void>
  /** What a person types; `\x03` is Ctrl-C, `\x04` Ctrl-D. */
  type(text: string): void
  ended: Promise<{ exitCode: number; shown: string }>
}

/** Starts it, 120 columns wide. `shown`, in the end, is all that the terminal was given, with plain newlines. */
export function startInTerminal(place: TestPlace, args: readonly string[]): InTerminal {
  const { directory: cwd, env } = place
  const terminal = spawn(process.execPath, [BIN, ...args], { cwd, env, cols: 120, rows: 40 })
  let shown = ''
  let isOver = false
  const watchers = new Set<() => void>()
  const tell = () => {
    for (const look of [...watchers]) look()
  }
  terminal.onData(text => {
    shown += text.replaceAll('\r\n', '\n')
    tell()
  })
  const ended = new Promise<{ exitCode: number; shown: string }>((resolve, reject) => {
    const bound = setTimeout(() => {
      terminal.kill('SIGKILL')
      reject(new Error(`codemachine ${args.join(' ')} did not end within ${BOUND_MS} ms.\n${shown}`))
    }, BOUND_MS)
    terminal.onExit(({ exitCode }) => {
      clearTimeout(bound)
      isOver = true
      tell()
      resolve({ exitCode, shown })
    })
  })
  ended.catch(() => {})
  return {
    ended,
    type: text => terminal.write(text),
    until: text =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (!shown.includes(text) && !isOver) return
          watchers.delete(look)
          if (shown.includes(text)) resolve()
          else reject(new Error(`It has ended without "${text}".\n${shown}`))
        }
        watchers.add(look)
        look()
      }),
    async [Symbol.asyncDispose]() {
      if (!isOver) terminal.kill('SIGKILL')
      await ended.catch(() => {})
    },
  }
}
