import { type Clock, systemClock } from '../../../src/base/clock.ts'
import type { StrayFinder } from '../../../src/core/engine.ts'
import type { SandboxChoice } from '../../../src/core/shapes/sandbox.ts'
import {
  type CommandEnd,
  openSandboxCommands,
  type SandboxCommands,
} from '../../../src/engines/codex/sandbox-commands.ts'
import type { TestPlace } from '../../support/place.ts'
import { setupIn } from '../contract.ts'

/** The time that commands have; nothing else waits as long. */
export const TIMEOUT_MS = 59_999

export interface OpenedCommands extends AsyncDisposable {
  commands: SandboxCommands
  logged: string[]
  /** Runs a line, without the network unless told. */
  run(line: string, more?: { network?: boolean; readOnly?: true; signal?: AbortSignal }): Promise<CommandEnd>
  /** Lets the time of the command that runs be up. */
  timeIsUp(): void
}

/** Commands in a place, on the codex at `path` or on the real one. */
export async function openCommands(
  place: TestPlace,
  options: Partial<SandboxChoice> & {
    path?: string
    env?: Record<string, string>
    requestMs?: number
    controlGroup?: StrayFinder
  } = {},
): Promise<OpenedCommands> {
  const { path, mode = 'workspace-write', network = false, writable = [] } = options
  const logged: string[] = []
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
    controlGroup: options.controlGroup ?? null,
    clock,
    requestMs: options.requestMs ?? 30_000,
    endMs: 1_000,
    log: message => logged.push(message),
  })
  const commands = openSandboxCommands(setup)
  return {
    commands,
    logged,
    run: (line, { network = false, readOnly, signal = new AbortController().signal } = {}) =>
      commands.run({ run: line, network, readOnly, timeoutMs: TIMEOUT_MS, signal }),
    timeIsUp: time.resolve,
    [Symbol.asyncDispose]: () => commands[Symbol.asyncDispose](),
  }
}
