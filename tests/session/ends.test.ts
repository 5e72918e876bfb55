import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Recorded } from '../../src/core/events/events.ts'
import { exitCodeOf, type RoundClass, type RoundOutcome } from '../../src/core/events/outcome.ts'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { foldJournal, openJournal, readJournal } from '../../src/session/records/journal.ts'
import { CLAIMED, type Play, playSession, type Ran, UNCLAIMED } from '../support/played-session.ts'
import { promise } from '../support/promise.ts'
import { SESSION } from '../support/session-events.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-ends-'))
})
afterAll(() => rm(folder, { recursive: true }))

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const GRACE_MS = 5 * MINUTE
const MAX_WAIT_MS = 24 * HOUR
const LONGEST_ROUND_MS = 2 * HOUR

/** A round of a night that goes wrong. */
interface Night {
  end: RoundClass
  minutes: number
  tokens: number
  /** Whether the agent does something before the end. */
  works: boolean
  changes: boolean
  claims: boolean
  /** Of the usage window, and in how many minutes it is renewed. */
  usedPercent: number
  renewedIn: number
}

const CLASSES: readonly RoundClass[] = [
  'worked',
  'interrupted',
  'context-full',
  'refused',
  'window',
  'throttle',
  'network',
  'quota',
  'auth',
  'config',
  'silent',
  'crashed',
]

const anyRound: fc.Arbitrary<Night> = fc.record({
  end: fc.oneof(fc.constant<RoundClass>('worked'), fc.constantFrom(...CLASSES)),
  minutes: fc.nat(120),
  tokens: fc.nat(100_000),
  works: fc.boolean(),
  changes: fc.boolean(),
  claims: fc.boolean(),
  usedPercent: fc.integer({ min: 0, max: 100 }),
  renewedIn: fc.integer({ min: -60, max: 3000 }),
})

const anyNight = fc.record({
  rounds: fc.array(anyRound, { minLength: 1, maxLength: 12 }),
  limits: fc.record({
    rounds: fc.option(fc.integer({ min: 1, max: 12 })),
    timeMs: fc.option(fc.integer({ min: MINUTE, max: 60 * HOUR })),
    tokens: fc.option(fc.integer({ min: 1, max: 1_000_000 })),
  }),
  maxUsage: fc.option(fc.integer({ min: 1, max: 100 })),
})

type AnyNight = typeof anyNight extends fc.Arbitrary<infer N> ? N : never

function playOf(round: Night): Play {
  return async ({ run, clock, interrupted }) => {
    const counts = { input: round.tokens, cachedInput: 0, output: 0, reasoning: 0, total: round.tokens }
    const primary = {
      usedPercent: round.usedPercent,
      windowMinutes: 300,
      resetsAt: clock.now() + round.renewedIn * MINUTE,
    }
    run.onEvent({ type: 'usage', round: run.round, thread: 't', total: counts, last: counts, contextWindow: null })
    run.onEvent({ type: 'limits', primary, secondary: null })
    if (round.works) {
      const item = { kind: 'agent-message', id: 'm', text: 'Some words.', phase: null } as const
      run.onEvent({ type: 'item-completed', round: run.round, item })
    }
    await clock.wait(round.minutes * MINUTE, interrupted)
    const outcome: RoundOutcome = { class: round.end, message: round.end === 'worked' ? null : 'words of codex' }
    return outcome
  }
}

async function playNight({ rounds, limits, maxUsage }: AnyNight, journal?: readonly Recorded[]): Promise<Ran> {
  let trees = 0
  const changes = (n: number) => rounds[Math.min(n, rounds.length) - 1]?.changes ?? false
  let taken = 0
  return await playSession(rounds.map(playOf), {
    folder,
    limits,
    policy: { stallRounds: 3, maxUsage, graceMs: GRACE_MS, maxWaitMs: MAX_WAIT_MS },
    tree: () => String(changes(taken++) ? ++trees : trees),
    memory: n => (rounds[Math.min(n, rounds.length) - 1]?.claims ? CLAIMED : UNCLAIMED),
    ...(journal ? { journal } : {}),
  })
}

/** Whether it comes to its end within some hundred rounds: its last one, which is played again and again, gets nowhere or to a limit. */
function isShort({ rounds, limits, maxUsage }: AnyNight): boolean {
  const last = rounds.at(-1)
  if (last === undefined || limits.rounds !== null) return true
  // A window that is as full after its renewal as before is waited for again and again; what a person breaks off, and what
  // falls silent after some work, is no stall.
  const isCutEachTime =
    ['interrupted', 'silent'].includes(last.end) || (maxUsage !== null && last.usedPercent >= maxUsage)
  if (!last.changes && !isCutEachTime) return true
  const enough = (limit: number | null, each: number) => limit !== null && each * MOST_ROUNDS >= limit
  return enough(limits.timeMs, last.minutes * MINUTE) || enough(limits.tokens, last.tokens)
}

const MOST_ROUNDS = 200

/** What must hold of every session, however it went. */
function expectBounds({ outcome, events, tookMs, inputs }: Ran, { limits }: AnyNight): void {
  const last = events.at(-1)
  expect(last).toMatchObject({ type: 'session-ended', outcome, exitCode: exitCodeOf(outcome) })
  expect([0, 3, 4, 5]).toContain(exitCodeOf(outcome))
  const { rounds, timeMs, tokens } = limits
  if (rounds !== null) expect(last?.type === 'session-ended' && last.rounds).toBeLessThanOrEqual(rounds)
  if (timeMs !== null) expect(tookMs).toBeLessThanOrEqual(timeMs + GRACE_MS + 1)
  // No round starts after its limits are reached.
  if (tokens !== null) {
    const spent = events.filter(event => event.type === 'round-ended').map(event => event.tokens?.total ?? 0)
    expect(spent.slice(0, -1).reduce((a, b) => a + b, 0)).toBeLessThan(Math.max(tokens, 1))
  }
  for (const event of events) {
    if (event.type !== 'waiting') continue
    expect(Date.parse(event.until) - Date.parse(event.at)).toBeLessThanOrEqual(MAX_WAIT_MS)
  }
  expect(tookMs).toBeLessThanOrEqual((inputs.length + 1) * (LONGEST_ROUND_MS + MAX_WAIT_MS))
  const counted = events.filter(event => event.type === 'round-ended' && event.counts)
  expect(last).toMatchObject({ rounds: counted.length })
}

describe('any night comes to an end', () => {
  promise('L4', 'Whatever fails, in whatever order, a session ends as one of the outcomes, within its limits')
  test('that is one of the outcomes, within the limits, whatever fails and in whatever order', async () => {
    await fc.assert(
      fc.asyncProperty(anyNight, async night => {
        fc.pre(isShort(night))
        expectBounds(await playNight(night), night)
      }),
    )
  })

  promise('R5', 'Any beginning of a journal, cut at any byte, can be gone on with')
  test('and any beginning of its journal, cut at any byte, can be gone on with', async () => {
    await fc.assert(
      fc.asyncProperty(anyNight, fc.double({ min: 0, max: 1, noNaN: true }), async (night, share) => {
        const limits = { rounds: 5, timeMs: null, tokens: null }
        const { events } = await playNight({ ...night, limits })
        const whole = await bytesOf(events)
        const path = join(folder, 'cut.ndjson')
        await writeFile(path, whole.subarray(0, Math.floor(whole.length * share)))
        const before = await foldJournal({ journal: () => path, templates: OWN_TEMPLATES }, SESSION)
        if (before === null) return
        // What is appended after a torn line stands on a line of its own.
        await openJournal(path)[Symbol.asyncDispose]()
        const kept: Recorded[] = []
        for await (const event of readJournal(path)) kept.push(event)
        expect(events.slice(0, kept.length)).toEqual(kept)
        const resumed = await playNight({ ...night, limits: { ...limits, rounds: 5 } }, kept)
        expect(resumed.events.at(-1)).toMatchObject({ type: 'session-ended' })
        expect([0, 3, 4, 5]).toContain(exitCodeOf(resumed.outcome))
      }),
    )
  })
})

async function bytesOf(events: readonly Recorded[]): Promise<Buffer> {
  const header = JSON.stringify({ format: 'codemachine-journal', v: 1 })
  return Buffer.from(`${[header, ...events.map(event => JSON.stringify(event))].join('\n')}\n`)
}
