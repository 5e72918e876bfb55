import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import type { SandboxChoice } from '../../../src/core/shapes/sandbox.ts'
import type { Shell, ShellCommand, ShellEnd } from '../../../src/core/shapes/shell.ts'
import { openShell } from '../../../src/engines/codex/shell/open-shell.ts'
import { findMarked, MARK_VARIABLE, parseMark } from '../../../src/platform/end-processes.ts'
import type { TestPlace } from '../../support/place.ts'
import { setupIn } from '../contract.ts'

/** The time that commands have; nothing else waits as long. */
const TIMEOUT_MS = 59_999

export interface OpenedShell extends AsyncDisposable {
  shell: Shell
  logged: string[]
  run(line: string, more?: Partial<ShellCommand>): Promise<ShellEnd>
  /** The process ids of its app-servers, which carry its key in their mark. */
  servers(): Promise<number[]>
  /** Lets the time of the commands that run be up. */
  timeIsUp(): void
}

/** A shell in a place, on the codex at `path` or on the real one. */
export async function openShellIn(
  place: TestPlace,
  options: Partial<SandboxChoice> & { path?: string; env?: Record<string, string>; requestMs?: number } = {},
): Promise<OpenedShell> {
  const { mode = 'workspace-write', network = false, writable = [], path } = options
  const logged: string[] = []
  const key = `test-${randomUUID()}`
  const time = Promise.withResolvers<void>()
  const clock: Clock = {
    ...systemClock,
    wait: (ms, signal) => {
      const wait = systemClock.wait(ms, signal)
      return ms === TIMEOUT_MS ? Promise.race([wait, time.promise]) : wait
    },
  }
  const setup = await setupIn(place, {
    ...(path !== undefined && { binary: { path, version: '0.169.0' } }),
    env: { ...place.env, ...options.env },
    sandbox: { mode, network, writable },
    key,
    clock,
    requestMs: options.requestMs ?? 30_000,
    endMs: 1_000,
    log: message => logged.push(message),
  })
  const shell = openShell({ ...setup, temporary: join(place.root, 'temporary') })
  return {
    shell,
    logged,
    run: (line, more = {}) =>
      shell.run({
        run: line,
        env: {},
        unreadable: [],
        timeoutMs: TIMEOUT_MS,
        signal: new AbortController().signal,
        mostCharacters: 16_000,
        ...more,
      }),
    servers: async () => {
      const found = await findMarked(MARK_VARIABLE, value => parseMark(value)?.key === key, process.platform)
      // Of a long line of arguments the end is cut off.
      const isServer = (command: string) => command.includes('app-server') || /^\S+ -c permissions=/.test(command)
      return found.filter(({ command }) => isServer(command)).map(({ pid }) => pid)
    },
    timeIsUp: time.resolve,
    [Symbol.asyncDispose]: () => shell[Symbol.asyncDispose](),
  }
}
