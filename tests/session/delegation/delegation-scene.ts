import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../../../src/base/clock.ts'
import type { ThreadSpec } from '../../../src/core/engine.ts'
import { type Engine, Engines, type PreparedRound, type RoundRun } from '../../../src/core/engine.ts'
import type { LiveEvent, Recorded, SessionEvent } from '../../../src/core/events/events.ts'
import type { RoundOutcome } from '../../../src/core/events/outcome.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { nothingSecret, type Redactor } from '../../../src/secrets/redactor.ts'
import type { AgentRequest } from '../../../src/session/delegation/agent-request.ts'
import { Delegation } from '../../../src/session/delegation/delegation.ts'
import { SessionLog } from '../../../src/session/session-log.ts'
import { created, FIRST_AT, SESSION, started, turn, worked } from '../../support/session-events.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

/** What an agent does in place of codex: says what it says, and ends so. */
type Play = (played: {
  run: RoundRun
  thread: string
  clock: Clock
  /** Resolves with the first text that the turn is steered with. */
  steered: Promise<string>
}) => Promise<RoundOutcome> | RoundOutcome

interface SceneOptions {
  /** What each agent does; those that are not named end at once. */
  plays?: Record<string, Play>
  /** What a second turn in the same thread does; without it, the thread has gone. */
  carryOn?: Play
  threads?: Record<string, Partial<ThreadSpec>>
  redactor?: Redactor
  /** What happened in the session before. */
  before?: readonly SessionEvent[]
  atOnce?: number
  platform?: NodeJS.Platform
  /** What is in the way of keeping a result. */
  forgets?: string
  append?: (event: Recorded) => void
}

const TASKS = ['T1', 'T2', 'T31'].map(id => ({ id, name: `Do ${id}`, phase: 'Building' }))

const build: SessionEvent[] = [
  { ...created(), template: 'build' },
  { type: 'plan-ready', round: 1, tasks: TASKS, agents: [] },
]

const orchestration: SessionEvent[] = [{ ...started(1), part: 'orchestration' } as SessionEvent, turn(1, 'main')]

/** A session in whose round agents are given work. */
export async function openScene(options: SceneOptions = {}) {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'codemachine-delegation-')))
  await Promise.all(['rounds', 'work/.codemachine'].map(each => mkdir(join(directory, each), { recursive: true })))
  const clock = new VirtualClock(FIRST_AT)
  const events: Recorded[] = []
  const live: LiveEvent[] = []
  const prepared: ThreadSpec[] = []
  const inputs: string[] = []
  const remembered: { agent: string; result: string; instance: string; request: string }[] = []
  const journal = {
    append: (event: Recorded) => {
      options.append?.(event)
      events.push(event)
      for (const look of [...waiters]) look()
    },
    sync: async () => {},
    [Symbol.asyncDispose]: async () => {},
  }
  const waiters = new Set<() => void>()
  const view = { event() {}, live: (event: LiveEvent) => void live.push(event) }
  const log = new SessionLog(emptyState(SESSION), {
    journal,
    views: [view],
    templates: OWN_TEMPLATES,
    clock,
    redactor: options.redactor ?? nothingSecret,
  })
  for (const event of [...build, ...(options.before ?? orchestration)]) log.emit(event)
  let threads = 0
  let settles = 0
  const engine: Engine = {
    name: 'played',
    version: '1',
    hidesFiles: true,
    prepare(thread) {
      prepared.push(thread)
      return playedRound(thread, `thread-${++threads}`, options, clock, inputs)
    },
    settle: async () => void settles++,
    close: async () => {},
  }
  const delegation = new Delegation({
    log,
    engines: new Engines({ played: engine }, 'played'),
    clock,
    directory: join(directory, 'work'),
    roundsDirectory: join(directory, 'rounds'),
    platform: options.platform ?? 'linux',
    redactor: options.redactor ?? nothingSecret,
    atOnce: options.atOnce ?? 3,
    policy: { graceMs: 60_000 },
    onRoundEvent: event => log.emit(event),
    book: {
      thread: async agent =>
        agent === 'nobody'
          ? { problem: 'There is no agent "nobody".' }
          : {
              thread: { agent, developerInstructions: agent, model: null, effort: 'low', ...options.threads?.[agent] },
            },
      remember: async (agent, { instance, request, result }) => {
        remembered.push({ agent, instance, request, result })
        return options.forgets ?? null
      },
      clean: text => text.replace(/^codex: /, ''),
    },
  })
  const first = build.length + (options.before ?? orchestration).length
  return {
    delegation,
    log,
    clock,
    live,
    prepared,
    inputs,
    remembered,
    directory: join(directory, 'work'),
    rounds: join(directory, 'rounds'),
    /** What was journaled since the round began. */
    events: () => events.slice(first),
    settles: () => settles,
    ask: (agent: string, task: string, rest: Partial<AgentRequest> = {}, over = new AbortController().signal) =>
      delegation.run({ agent, task, paths: null, door: 'tool', thread: 'main', ...rest }, over),
    /** Resolves once so many events of the type have been journaled. */
    journaled: (type: SessionEvent['type'], count = 1) =>
      new Promise<void>(resolve => {
        const look = () => {
          if (events.slice(first).filter(event => event.type === type).length < count) return
          waiters.delete(look)
          resolve()
        }
        waiters.add(look)
        look()
      }),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true }),
  }
}

function playedRound(
  thread: ThreadSpec,
  id: string,
  { plays = {}, carryOn }: SceneOptions,
  clock: Clock,
  inputs: string[],
): PreparedRound {
  const interrupted = Promise.withResolvers<RoundOutcome>()
  const steered = Promise.withResolvers<string>()
  const interrupt = () => interrupted.resolve({ class: 'interrupted', message: null })
  let run: RoundRun | null = null
  const play = async (action: Play, of: RoundRun) => {
    of.onEvent({ type: 'turn-started', round: of.round, thread: id, turn: 'u' })
    return await Promise.race([
      (async () => action({ run: of, thread: id, clock, steered: steered.promise }))(),
      interrupted.promise,
    ])
  }
  return {
    thread,
    limits: async () => null,
    async run(of) {
      run = of
      inputs.push(of.input)
      return await play(plays[thread.agent] ?? (() => worked), of)
    },
    carryOn: async () => (carryOn && run ? await play(carryOn, run) : null),
    steer: async text => {
      steered.resolve(text)
      return run !== null
    },
    interrupt: async () => interrupt(),
    discard: interrupt,
  }
}

/** A play that says this and has done its work. */
export function says(text: string): Play {
  return ({ run }) => {
    const item = { kind: 'agent-message', id: 'm', text, phase: 'final-answer' } as const
    run.onEvent({ type: 'item-completed', round: run.round, item })
    return worked
  }
}

/** A play that goes on until it is let go, or ended. */
export function until(promise: Promise<unknown>): Play {
  return async () => {
    await promise
    return worked
  }
}

export const forever = new Promise<never>(() => {})
