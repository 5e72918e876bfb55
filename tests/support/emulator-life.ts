import { setTimeout as delay } from 'node:timers/promises'
import type { IPty } from '@lydell/node-pty'
import type { Terminal } from '@xterm/headless'
import { isAlive } from '../../src/platform/processes.ts'
import { visibleRows } from './emulator-screen.ts'
import { type EndInShell, SHELL_OSC, type Shell } from './emulator-shell.ts'

const LIFE_MS = 280_000
const WAIT_MS = 60_000
const POLL_MS = 20

/** The life of a program in the terminal. */
export interface Life {
  ended: Promise<EndInShell>
  stopped(): Promise<void>
  isOver(): boolean
  dispose(): Promise<void>
}

/** The program runs, may stop and go on, and ends; then the shell waits until all is disposed of. */
export function followLife(pty: IPty, shell: Shell, terminal: Terminal, lifeMs = LIFE_MS): Life {
  const { promise: ended, resolve, reject } = Promise.withResolvers<EndInShell>()
  const { promise: shellEnded, resolve: shellHasEnded } = Promise.withResolvers<void>()
  let stopped = Promise.withResolvers<void>()
  let isOver = false
  const over = () => {
    if (isOver) return
    isOver = true
    resolve(shell.end() ?? { exitCode: null })
  }
  terminal.parser.registerOscHandler(SHELL_OSC, data => {
    if (data === `${shell.mark};ended`) over()
    if (data === `${shell.mark};stopped`) {
      stopped.resolve()
      stopped = Promise.withResolvers<void>()
    }
    return true
  })
  pty.onExit(() => {
    shellHasEnded()
    void pollUntil(async () => !(await isRunning(shell))).then(over)
  })
  const dispose = async () => {
    clearTimeout(bound)
    const pid = shell.pid()
    if (pid !== null && shell.end() === null) endProcess(pid)
    endProcess(pty.pid)
    await shellEnded
  }
  const bound = setTimeout(() => {
    isOver = true
    reject(new Error(`The program did not end within ${lifeMs} ms.\n${visibleRows(terminal).join('\n')}`))
    void dispose()
  }, lifeMs)
  ended.finally(() => clearTimeout(bound)).catch(() => {})
  return {
    ended,
    stopped: () => stopped.promise,
    isOver: () => isOver,
    dispose,
  }
}

/** Its own `kill` would send the signal only; its type leaves out that it can be closed. */
export function closeTerminal(pty: IPty & { destroy?(): void }): void {
  pty.destroy?.()
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

async function isRunning(shell: Shell): Promise<boolean> {
  const pid = shell.pid()
  return pid !== null && shell.end() === null && (await isAlive(pid, process.platform))
}

async function pollUntil(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let left = WAIT_MS; left > 0 && !(await isSo()); left -= POLL_MS) await delay(POLL_MS)
}

/** Of the program, as soon as it has been started. */
export async function pidOf(shell: Shell): Promise<number> {
  await pollUntil(() => shell.pid() !== null)
  const pid = shell.pid()
  if (pid === null) throw new Error('The program was not started.')
  return pid
}
