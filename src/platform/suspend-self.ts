import { kill, pid } from 'node:process'
import type { Clock } from '../base/clock.ts'

export interface SuspendOptions {
  platform: NodeJS.Platform
  clock: Clock
  /** Where this process hears of signals: `process`. */
  signals: Pick<NodeJS.EventEmitter, 'once' | 'off'>
}

/** A shell that has stopped its job says so at once; after this long nothing has stopped it, ms. */
const STOP_MS = 500
/** How long the new size of the terminal may take, ms. */
const SIZE_MS = 100

/**
 * Stops this process and its whole group, as Ctrl-Z does in a terminal, so that the shell goes on; resolves with true
 * once it has been continued (`fg`), by which time the size of the terminal is known anew. False where there is no job
 * control: on Windows, and where no shell waits for this process (the kernel then does not stop it).
 */
export async function suspendSelf({ platform, clock, signals }: SuspendOptions): Promise<boolean> {
  if (platform === 'win32') return false
  const before = clock.monotonic()
  const continued = await heard('SIGCONT', STOP_MS, () => kill(0, 'SIGTSTP'))
  // When all stood still for long, the bound may be over before the signal that woke it has been heard.
  if (!continued && clock.monotonic() - before < 2 * STOP_MS) return false
  // A terminal tells only the job in its foreground that its size has changed.
  await heard('SIGWINCH', SIZE_MS, () => kill(pid, 'SIGWINCH'))
  return true

  async function heard(signal: NodeJS.Signals, boundMs: number, cause: () => void): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const listener = () => resolve(true)
    const over = new AbortController()
    signals.once(signal, listener)
    cause()
    void clock.wait(boundMs, over.signal).then(() => resolve(false))
    const isHeard = await promise
    over.abort()
    signals.off(signal, listener)
    return isHeard
  }
}
