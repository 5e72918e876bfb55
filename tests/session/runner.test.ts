import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { UserError } from '../../src/base/errors.ts'
import type { Engine, PreparedRound, RoundRun } from '../../src/session/engine.ts'
import type { Recorded } from '../../src/session/events.ts'
import type { RoundOutcome, SessionOutcome } from '../../src/session/outcome.ts'
import { SessionRunner } from '../../src/session/runner.ts'
import { SessionLog } from '../../src/session/session-log.ts'
import { emptyState } from '../../src/session/state.ts'
import type { ThreadSpec } from '../../src/session/template.ts'
import { goalTemplate } from '../../src/templates/goal.ts'
import type { MemorySnapshot } from '../../src/workspace/memory.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-runner-'))
})
afterAll(() => rm(folder, { recursive: true }))

const thread: ThreadSpec = { agent: 'a', developerInstructions: 'Do it.', model: null, effort: null }
const worked: RoundOutcome = { class: 'worked', message: null }

/** What a round does, in place of codex: says what it says, and ends so. */
type Play = (run: RoundRun) => Promise<RoundOutcome> | RoundOutcome

interface Ran {
  outcome: SessionOutcome
  events: Recorded[]
  /** How many threads were started, and how many of them were thrown away. */
  prepared: number
  discarded: number
  inputs: string[]
  waits: number[]
}

/** Runs a session whose rounds are played by these functions, the last of them again and again. */
async function runSession(
  plays: readonly Play[],
  options: {
    rounds?: number
    tree?: () => string
    memory?: (rounds: number) => MemorySnapshot
    append?: (event: Recorded) => void
  } = {},
): Promise<Ran> {
  const ran: Omit<Ran, 'outcome'> = { events: [], prepared: 0, discarded: 0, inputs: [], waits: [] }
  let now = 1_795_000_000_000
  const clock: Clock = {
    now: () => now++,
    monotonic: () => now,
    wait: async ms => {
      ran.waits.push(ms)
      now += ms
    },
  }
  const engine: Engine = {
    name: 'played',
    version: '1',
    prepare(spec) {
      ran.prepared++
      const round: PreparedRound = {
        thread: spec,
        async run(run) {
          ran.inputs.push(run.input)
          run.onEvent({ type: 'turn-started', round: run.round, thread: 't', turn: 'u' })
          const play = plays[Math.min(ran.inputs.length, plays.length) - 1]
          return play ? await play(run) : worked
        },
        steer: async () => false,
        interrupt: async () => {},
        discard: () => {
          ran.discarded++
        },
      }
      return round
    },
    settle: async () => {},
    close: async () => {},
  }
  const log = new SessionLog(
    emptyState('20261120_1'),
    {
      append: event => {
        options.append?.(event)
        ran.events.push(event)
      },
      sync: async () => {},
      [Symbol.asyncDispose]: async () => {},
    },
    [],
    clock,
  )
  log.emit({
    type: 'session-created',
    goal: 'build X',
    template: 'goal',
    directory: folder,
    limits: { rounds: options.rounds ?? 3 },
    sandbox: 'workspace-write',
    network: false,
    overrides: [],
    model: null,
    effort: null,
    queued: null,
    codemachine: '0',
  })
  const memory: MemorySnapshot = {
    main: { status: 'in-progress', finiteIncantatem: false, shortTitle: null, open: [] },
    tasks: [],
    problems: [],
  }
  const runner = new SessionRunner({
    log,
    template: goalTemplate(thread),
    engine,
    memory: { read: async () => options.memory?.(ran.inputs.length) ?? memory, withdrawClaim: async () => {} },
    workTree: {
      take: async () => options.tree?.() ?? 'same',
      changed: async () => ({ paths: ['a'], count: 1 }),
    },
    guard: { check: async () => null },
    roundsDirectory: folder,
    clock,
    takeRemarks: () => [],
    signal: new AbortController().signal,
  })
  return { outcome: await runner.run(), ...ran }
}

test('a crash uses up no round, is tried again after a growing wait, and three in a row need a person', async () => {
  const crashed: RoundOutcome = { class: 'crashed', message: 'killed' }
  const { outcome, waits, events } = await runSession([() => crashed])
  expect(outcome).toMatchObject({ kind: 'needs-person', reason: 'killed' })
  expect(waits).toEqual([2000, 4000])
  expect(events.filter(event => event.type === 'round-started').map(event => event.round)).toEqual([1, 1, 1])
  expect(events.at(-1)).toMatchObject({ type: 'session-ended', exitCode: 4, rounds: 0 })
})

test('a failure between rounds that work is forgotten', async () => {
  const failed: RoundOutcome = { class: 'network', message: 'gone' }
  const { outcome, waits } = await runSession([() => failed, () => worked, () => failed, () => failed, () => worked])
  expect(outcome).toEqual({ kind: 'limit', limit: 'rounds' })
  expect(waits).toEqual([2000, 2000, 4000])
})

test('the next thread is started while a round works, and none for a round that will not be', async () => {
  const { prepared, discarded, inputs } = await runSession([() => worked], { rounds: 3 })
  expect({ prepared, discarded, rounds: inputs.length }).toEqual({ prepared: 3, discarded: 0, rounds: 3 })
})

test('the same warning of codex is shown once', async () => {
  const warn: Play = run => {
    run.onEvent({ type: 'warning', round: run.round, message: 'no bubblewrap' })
    return worked
  }
  const { events } = await runSession([warn])
  expect(events.filter(event => event.type === 'warning')).toHaveLength(1)
})

test('a journal that cannot be written ends the run with what is wrong', async () => {
  const full = new UserError('The disk is full.', { exitCode: 4 })
  const append = (event: Recorded) => {
    if (event.type === 'warning') throw full
  }
  const warn: Play = run => {
    run.onEvent({ type: 'warning', round: run.round, message: 'x' })
    return worked
  }
  await expect(runSession([warn], { append })).rejects.toBe(full)
})

const claimed: MemorySnapshot = {
  main: { status: 'in-progress', finiteIncantatem: true, shortTitle: null, open: [] },
  tasks: [],
  problems: [],
}
const unclaimed: MemorySnapshot = { ...claimed, main: { ...claimed.main, finiteIncantatem: false } }

test('a claim of a round that failed is refused then and there, and the next round is told', async () => {
  const failed: RoundOutcome = { class: 'network', message: 'cut' }
  const { events, inputs } = await runSession([() => failed, () => worked], {
    memory: rounds => (rounds === 1 ? claimed : unclaimed),
  })
  expect(events.filter(event => event.type === 'done-refused')).toMatchObject([
    { round: 1, reason: 'round-not-completed' },
  ])
  expect(inputs[1]).toContain('claim was refused')
})

test('what a round was told is told again if that round did not count', async () => {
  const failed: RoundOutcome = { class: 'throttle', message: 'slow down' }
  let trees = 0
  const { inputs } = await runSession([() => worked, () => failed, () => worked], {
    rounds: 3,
    tree: () => String(Math.min(trees++, 1)),
    memory: rounds => (rounds === 1 ? claimed : unclaimed),
  })
  expect(inputs).toHaveLength(4)
  expect(inputs[1]).toContain('claim was refused')
  expect(inputs[2]).toContain('claim was refused')
  expect(inputs[3]).not.toContain('claim was refused')
})

test('a claim is not believed if the tree changes once more when all that the round left has ended', async () => {
  const trees = ['a', 'a', 'b', 'b', 'b']
  const { outcome, events } = await runSession([() => worked], {
    rounds: 2,
    tree: () => trees.shift() ?? 'b',
    memory: () => claimed,
  })
  expect(events.filter(event => event.type === 'done-refused')).toMatchObject([{ round: 1, reason: 'tree-changed' }])
  expect(outcome).toEqual({ kind: 'done', verified: false })
})
