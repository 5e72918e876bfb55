import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import type {
  Engine,
  EngineEvent,
  EngineInfo,
  EngineKind,
  EngineSetup,
  PreparedRound,
  RoundRun,
  ThreadSpec,
  ToolAnswer,
  ToolCall,
} from '../../src/core/engine.ts'
import type { LiveEvent } from '../../src/core/events/events.ts'
import type { RoundClass, RoundOutcome } from '../../src/core/events/outcome.ts'
import { functionCall, message, type Reply, reply, roundsScript, shell } from '../../src/demo/model/reply.ts'
import { OWN_ENGINES } from '../../src/engines/registry.ts'
import { startTimeOf } from '../../src/platform/processes.ts'
import { findRealCodex } from '../support/find-real-codex.ts'
import { makePlace, type TestPlace } from '../support/place.ts'
import { processesOf } from '../support/processes.ts'
import { IMPATIENT } from '../support/real-scene.ts'
import {
  cutStream,
  failsWith,
  type ScriptedModel,
  startScriptedModel,
  status,
  usageLimitReached,
} from '../support/scripted-model.ts'
import { endAfterEach } from './codex/end-after-each.ts'

/** What the agent of a round does: it works to its end, runs a command without an end, calls the tool `weigh`, or fails. */
export type Act = 'works' | 'hangs' | 'calls a tool' | Fault

type Fault = 'loses the network' | 'is over the limit' | 'is not logged in' | 'is full' | 'has no such model'

/** As which each failure ends a round, and what a model says to bring it about. */
const FAULTS: Record<Fault, { class: RoundClass; says: Reply }> = {
  'loses the network': { class: 'network', says: cutStream },
  'is over the limit': { class: 'window', says: usageLimitReached() },
  'is not logged in': { class: 'auth', says: status(401, 'who are you') },
  'is full': { class: 'context-full', says: failsWith('context_length_exceeded', 'too long') },
  'has no such model': {
    class: 'config',
    says: status(404, { error: { code: 'model_not_found', message: 'The model `x` does not exist' } }),
  },
}

/** An engine whose next round does an act, and where its processes would be. */
export interface EngineOfAct {
  engine: Engine
  place: TestPlace
  /** What its thread has beside the usual. */
  thread?: Partial<ThreadSpec>
}

export const WEIGH = {
  name: 'weigh',
  description: 'Weighs a thing.',
  inputSchema: { type: 'object', properties: { thing: { type: 'string' } }, required: ['thing'] },
}

export const THREAD: ThreadSpec = { agent: 'a', developerInstructions: 'Do it.', model: null, effort: null }

/**
 * What every engine promises to the runner. What one cannot do it declares, and then does not pretend to.
 * @param open opens it for one round that does this; what it takes is ended by the resource that it is given
 */
export function testEngine(
  { name, can }: Pick<EngineInfo, 'name' | 'can'>,
  open: (act: Act, atEnd: ReturnType<typeof endAfterEach>) => Promise<EngineOfAct>,
): void {
  const atEnd = endAfterEach()
  const start = async (act: Act, more: Partial<ThreadSpec> = {}) => {
    const { engine, place, thread } = await open(act, atEnd)
    atEnd.defer(() => engine.close())
    return { engine, place, ...play(engine.prepare({ ...THREAD, ...thread, ...more })) }
  }

  test(`${name}: a round that works shows what was done, in order, and what it took`, async () => {
    const { engine, place, outcome, events } = await start('works')
    expect(await outcome).toEqual({ class: 'worked', message: null })
    const shown = events.filter(({ type }) => type === 'turn-started' || type === 'item-completed' || type === 'usage')
    const kinds = shown.map(event => (event.type === 'item-completed' ? event.item.kind : event.type))
    const about = ['turn-started', 'command', 'agent-message', 'usage']
    expect(kinds.filter((kind, at) => about.includes(kind) && kinds.lastIndexOf(kind) === at)).toEqual(about)
    const items = shown.flatMap(event => (event.type === 'item-completed' ? [event.item] : []))
    expect(items).toContainEqual(
      expect.objectContaining({ kind: 'command', status: 'completed', exitCode: 0, output: 'hi\n' }),
    )
    expect(items).toContainEqual(expect.objectContaining({ kind: 'agent-message', text: 'Done.' }))
    const usage = shown.filter(event => event.type === 'usage').at(-1)
    expect(usage?.total.total).toBeGreaterThan(0)
    expect(new Set(shown.flatMap(event => ('thread' in event ? [event.thread] : []))).size).toBe(1)
    await engine.settle()
    expect(processesOf(place)).toEqual([])
  })

  test(`${name}: a running turn ${can.steer ? 'takes text' : 'takes no text, and says so'}; when it is over it takes none`, async () => {
    const { prepared, outcome, commandBegun } = await start('hangs')
    expect(await prepared.steer('Before it runs.')).toBe(false)
    await commandBegun
    expect(await prepared.steer('Look here.')).toBe(can.steer)
    await prepared.interrupt()
    await outcome
    expect(await prepared.steer('After it ran.')).toBe(false)
  })

  test(`${name}: a turn that is interrupted ends as that, with all that it has started`, async () => {
    const { engine, place, prepared, outcome, commandBegun } = await start('hangs')
    await commandBegun
    await prepared.interrupt()
    expect(await outcome).toEqual({ class: 'interrupted', message: null })
    prepared.discard()
    await prepared.interrupt()
    await engine.settle()
    expect(processesOf(place)).toEqual([])
  })

  test(`${name}: closing ends a turn that runs, and leaves no process`, async () => {
    const { engine, place, outcome, commandBegun } = await start('hangs')
    await commandBegun
    await engine.close()
    expect((await outcome).class).not.toBe('worked')
    expect(processesOf(place)).toEqual([])
  })

  test(`${name}: what is prepared and thrown away runs nothing`, async () => {
    const { engine, place, thread } = await open('works', atEnd)
    atEnd.defer(() => engine.close())
    const prepared = engine.prepare({ ...THREAD, ...thread })
    prepared.discard()
    prepared.discard()
    const { outcome, events } = play(prepared)
    expect((await outcome).class).toBe('interrupted')
    expect(events).toEqual([])
    await engine.close()
    expect(processesOf(place)).toEqual([])
  })

  test(`${name}: a tool of codemachine is ${can.tools ? 'called, and what it answers is told' : 'never called'}`, async () => {
    const { calls, outcome } = await start('calls a tool', { tools: [WEIGH] })
    expect(await outcome).toEqual({ class: 'worked', message: null })
    expect(calls).toEqual(can.tools ? [{ tool: 'weigh', arguments: { thing: 'a stone' } }] : [])
  })

  for (const [fault, { class: expected }] of Object.entries(FAULTS)) {
    test(`${name}: a round of an agent that ${fault} ends as "${expected}", in codex's own words`, async () => {
      const { outcome, prepared } = await start(fault as Fault)
      const { class: end, message: words } = await outcome
      expect([end, typeof words]).toEqual([expected, 'string'])
      if (expected !== 'network') expect(await prepared.carryOn('Go on.')).toBeNull()
    })
  }

  test(`${name}: a turn that the network broke off is ${can.carryOn ? 'carried on in its thread' : 'not carried on'}`, async () => {
    const { prepared, outcome } = await start('loses the network')
    await outcome
    const carried: RoundOutcome | null = await prepared.carryOn('Go on.')
    expect(carried === null).toBe(!can.carryOn)
  })

  test(`${name}: a thread that is to be kept after a turn that worked ${can.carryOn ? 'plays another one' : 'is not kept'}`, async () => {
    const { engine, place, thread } = await open('works', atEnd)
    atEnd.defer(() => engine.close())
    const { prepared, outcome, events } = play(engine.prepare({ ...THREAD, ...thread }), undefined, {
      keepsThread: true,
    })
    expect((await outcome).class).toBe('worked')
    const again = await prepared.carryOn('And now this.')
    expect(again).toEqual(can.carryOn ? { class: 'worked', message: null } : null)
    expect(events.filter(({ type }) => type === 'turn-started')).toHaveLength(can.carryOn ? 2 : 1)
    prepared.discard()
    expect(await prepared.carryOn('And this.')).toBe(null)
    await engine.settle()
    expect(processesOf(place)).toEqual([])
  })
}

/** Begins the turn of a prepared round, and keeps what comes of it. */
export function play(
  prepared: PreparedRound,
  answer: (call: ToolCall) => Promise<ToolAnswer> = async () => ({ text: 'Three pounds.', success: true }),
  more: Pick<RoundRun, 'keepsThread'> = {},
): {
  prepared: PreparedRound
  outcome: Promise<RoundOutcome>
  events: EngineEvent[]
  live: LiveEvent[]
  calls: ToolCall[]
  records: string[]
  /** Resolves when a command of it has begun. */
  commandBegun: Promise<void>
} {
  const events: EngineEvent[] = []
  const live: LiveEvent[] = []
  const calls: ToolCall[] = []
  const records: string[] = []
  const begun = Promise.withResolvers<void>()
  const outcome = prepared.run({
    round: 1,
    input: 'Go on.',
    onEvent: event => void events.push(event),
    onLive: event => {
      live.push(event)
      if (event.type === 'item-started' && event.item.kind === 'command') begun.resolve()
    },
    onRecord: line => void records.push(line),
    onToolCall: async call => {
      calls.push(call)
      return await answer(call)
    },
    ...more,
  })
  return { prepared, outcome, events, live, calls, records, commandBegun: begun.promise }
}

/** What the model says for an act; after a fault it says that all is well again. */
export function saysFor(act: Act): readonly Reply[] {
  const done = reply(message('Done.'))
  switch (act) {
    case 'works':
      return [reply(shell('echo hi')), done]
    case 'hangs':
      return [reply(shell('sleep 1000', { yieldMs: 30_000 })), done]
    case 'calls a tool':
      return [reply(functionCall('weigh', { thing: 'a stone' })), done]
    default:
      return [FAULTS[act].says, done]
  }
}

/** A scripted model that plays an act for the real codex, and the machine where that runs. */
export async function realCodex(
  act: Act,
  atEnd: ReturnType<typeof endAfterEach>,
): Promise<{ setup: EngineSetup; place: TestPlace; model: ScriptedModel }> {
  const [first, ...others] = saysFor(act)
  // A step that codex has not got to its end is due again: the fault is one of its first attempt.
  const steps = [
    (request: { attempt: number }) => (request.attempt === 0 || others.length > 1 ? first : others[0]) ?? reply(),
    ...others,
  ]
  const model = atEnd.use(await startScriptedModel({ script: roundsScript([steps]) }))
  const place = atEnd.use(await makePlace(model.codexConfig('scripted', IMPATIENT)))
  return { setup: await setupIn(place), place, model }
}

/** One of codemachine's own engines. */
export function engineNamed(name: string): EngineKind {
  const kind = OWN_ENGINES.get(name)
  if (kind === undefined) throw new Error(`There is no engine ${name}.`)
  return kind
}

/** With what an engine is opened in a place. */
export async function setupIn(
  { env, directory }: Pick<EngineSetup, 'env' | 'directory'>,
  more: Partial<EngineSetup> = {},
): Promise<EngineSetup> {
  const { platform, pid } = process
  return {
    binary: more.binary ?? (await findRealCodex()),
    overrides: [],
    env,
    directory,
    sandbox: { mode: 'workspace-write', network: false, writable: [] },
    // Of several engines in this process none may take another's for what it has left running.
    key: `test-${randomUUID()}`,
    owner: { pid, startTime: await startTimeOf(pid, platform) },
    platform,
    clock: systemClock,
    codemachineVersion: '0.0.0',
    requestMs: 60_000,
    endMs: 5_000,
    silenceMs: 360_000,
    commandMs: 3_600_000,
    log: () => {},
    ...more,
  }
}
