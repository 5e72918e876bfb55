import type { Clock } from '../../../src/base/clock.ts'
import type { EngineEvent, PreparedRound } from '../../../src/core/engine.ts'
import type { RoundOutcome } from '../../../src/core/events/outcome.ts'
import type { ProvidersByName } from '../../../src/core/shapes/provider.ts'
import type { SandboxChoice } from '../../../src/core/shapes/sandbox.ts'
import { CodexEngine } from '../../../src/engines/codex/engine.ts'
import { setupIn } from '../contract.ts'

export const MINUTE = 60_000

export interface OpenedEngine {
  engine: CodexEngine
  logged: string[]
  play(prepared?: PreparedRound): PlayedRound
}

/** A round that runs. */
interface PlayedRound {
  prepared: PreparedRound
  outcome: Promise<RoundOutcome>
  events: EngineEvent[]
  /** Resolves with the first event of the type, or the nth; one that came before this call too. */
  event<T extends EngineEvent['type']>(type: T, nth?: number): Promise<Extract<EngineEvent, { type: T }>>
  /** Resolves with the first line of codex's that matches. */
  record(matches: (line: string) => boolean): Promise<string>
  /** Resolves when a command has begun. */
  command: Promise<unknown>
}

export const THREAD = { agent: 'a', developerInstructions: 'Do it.', model: null, effort: null }

/** An engine on the codex at `path`, or on the real one. */
export async function openEngine(options: {
  path?: string
  directory: string
  env?: NodeJS.ProcessEnv
  clock?: Clock
  requestMs?: number
  endMs?: number
  sandbox?: SandboxChoice['mode']
  writable?: readonly string[]
  providers?: ProvidersByName
  networkMs?: number
}): Promise<OpenedEngine> {
  const logged: string[] = []
  const { path, directory, env = { ...process.env }, sandbox, writable = [], ...more } = options
  const engine = new CodexEngine(
    await setupIn(
      { env, directory },
      {
        ...(path !== undefined && { binary: { path, version: '0.169.0' } }),
        sandbox: { mode: sandbox ?? 'workspace-write', network: sandbox !== undefined, writable },
        log: message => logged.push(message),
        ...more,
      },
    ),
  )
  return { engine, logged, play: prepared => playRound(prepared ?? engine.prepare(THREAD)) }
}

function playRound(prepared: PreparedRound): PlayedRound {
  const events: EngineEvent[] = []
  const records: string[] = []
  const waiters = new Set<() => void>()
  const wake = () => {
    for (const look of [...waiters]) look()
  }
  /** Resolves as soon as there is one. */
  const first = <T>(find: () => T | undefined) =>
    new Promise<T>(resolve => {
      const look = () => {
        const found = find()
        if (found === undefined) return
        waiters.delete(look)
        resolve(found)
      }
      waiters.add(look)
      look()
    })
  const command = Promise.withResolvers<void>()
  const outcome = prepared.run({
    round: 1,
    input: 'Go on.',
    onEvent: event => {
      events.push(event)
      wake()
    },
    onLive: event => {
      if (event.type === 'item-started' && event.item.kind === 'command') command.resolve()
    },
    onRecord: line => {
      records.push(line)
      wake()
    },
  })
  return {
    prepared,
    outcome,
    events,
    command: command.promise,
    record: matches => first(() => records.find(matches)),
    event: <T extends EngineEvent['type']>(type: T, nth = 1) =>
      first(() => events.filter((each): each is Extract<EngineEvent, { type: T }> => each.type === type)[nth - 1]),
  }
}
