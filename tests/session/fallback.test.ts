import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { Engine, ThreadSpec } from '../../src/core/engine.ts'
import type { RoundOutcome } from '../../src/core/events/outcome.ts'
import { engineWithRoom, type FallbackTerms } from '../../src/core/rules/fallback.ts'
import { CLAIMED, type Play, type PlayOptions, playSession, UNCLAIMED } from '../support/played-session.ts'
import { eventsOf } from '../support/scene.ts'
import { FIRST_AT, worked } from '../support/session-events.ts'

const folder = await mkdtemp(join(tmpdir(), 'codemachine-fallback-'))
afterAll(() => rm(folder, { recursive: true }))

const HOUR = 3_600_000
/** What is waited beyond a reset, where nothing is random. */
const SLACK = 35_000

/** Says that its window is full, and resets so long after the start, ms. */
const full =
  (resetsMs: number): Play =>
  () =>
    ({ class: 'window', message: 'You have hit your usage limit.', retryAt: FIRST_AT + resetsMs }) as RoundOutcome

/** Works for so long, ms. */
const works =
  (ms = 1_000): Play =>
  async ({ clock }) => {
    await clock.wait(ms, new AbortController().signal)
    return worked
  }

async function play(plays: readonly Play[], options: Partial<PlayOptions> = {}) {
  const threads: ThreadSpec[] = []
  const noted = (engine: Engine, name: string): Engine => ({
    ...engine,
    name,
    prepare(thread) {
      threads.push(thread)
      return engine.prepare(thread)
    },
  })
  const ran = await playSession(plays, {
    folder,
    limits: { rounds: 20 },
    memory: rounds => (rounds >= plays.length ? CLAIMED : UNCLAIMED),
    policy: { fallback: { engines: ['claude', 'gemini'], afterMs: 15 * 60_000, on: ['window'] } },
    engines: played => ({ claude: noted(played, 'claude'), gemini: noted(played, 'gemini') }),
    ...options,
  })
  const changes = eventsOf(ran.events, 'engine-changed').map(({ from, to, until }) => ({ from, to, until }))
  const engines = eventsOf(ran.events, 'round-started').map(({ engine }) => engine)
  return { ...ran, changes, engines, threads, waits: eventsOf(ran.events, 'waiting') }
}

const at = (ms: number) => new Date(FIRST_AT + ms).toISOString()

test('the round begins again on the next engine where the window resets late, and comes back once it has', async () => {
  const { outcome, changes, engines, waits, threads } = await play(
    [full(2 * HOUR), works(), works(3 * HOUR), works(), works()],
    { begun: { model: 'gpt', effort: 'high' } },
  )
  expect(outcome.kind).toBe('done')
  expect(changes).toEqual([
    { from: 'played', to: 'claude', until: at(2 * HOUR + SLACK) },
    { from: 'claude', to: 'played', until: null },
  ])
  expect(engines.slice(0, 4)).toEqual(['played', 'claude', 'claude', 'played'])
  expect(waits).toEqual([])
  expect(threads.every(({ model, effort }) => model === null && effort === null)).toBe(true)
})

test('an engine whose window is full, too, gives way to the one after it; where all are full it waits', async () => {
  const { changes, engines, waits } = await play([full(2 * HOUR), full(3 * HOUR), full(4 * HOUR), works(), works()])
  expect(changes.slice(0, 2).map(({ to }) => to)).toEqual(['claude', 'gemini'])
  // Until the first of them has room.
  expect(waits.map(({ until }) => until)).toEqual([at(2 * HOUR + SLACK)])
  expect(engines.slice(0, 3)).toEqual(['played', 'claude', 'gemini'])
  expect(engines[3]).toBe('played')
})

test('a window that resets soon is waited for', async () => {
  const { changes, waits } = await play([full(10 * 60_000), works(), works()])
  expect([changes, waits.length]).toEqual([[], 1])
})

test.each(['throttle', 'network'] as const)('a round that ends as %s is no reason to go on elsewhere', async end => {
  const { changes } = await play([
    () => ({ class: end, message: '429', retryAt: FIRST_AT + 5 * HOUR }),
    works(),
    works(),
  ])
  expect(changes).toEqual([])
})

test('what may be used of the window of one engine says nothing of the next one', async () => {
  const reports: Play = ({ run }) => {
    const primary = { usedPercent: 90, windowMinutes: 300, resetsAt: FIRST_AT + 2 * HOUR }
    run.onEvent({ type: 'limits', primary, secondary: null })
    return worked
  }
  const { waits, engines, changes, events } = await play([reports, works(), works(), works(3 * HOUR), works()], {
    policy: { maxUsage: 80, fallback: { engines: ['claude'], afterMs: 15 * 60_000, on: ['window'] } },
  })
  expect(waits).toEqual([])
  expect(eventsOf(events, 'limits').map(({ engine }) => engine)).toEqual(['played'])
  expect(engines.slice(0, 3)).toEqual(['played', 'claude', 'claude'])
  expect(changes.map(({ to }) => to)).toEqual(['claude', 'played'])
})

test('a session that is resumed goes on with the engine that it had, and comes back when the window resets', async () => {
  const first = await play([full(2 * HOUR), works()], {
    memory: () => UNCLAIMED,
    onEvent: (event, { asked }) => {
      if (event.type === 'round-ended' && event.outcome.class === 'worked') asked.stopAfterRound()
    },
  })
  expect(first.outcome.kind).toBe('interrupted')
  const second = await play([works(), works(3 * HOUR), works(), works()], { journal: first.events })
  expect(second.engines.slice(0, 1)).toEqual(['claude'])
  expect(second.changes).toContainEqual({ from: 'claude', to: 'played', until: null })
})

const login: Play = () => ({ class: 'auth', message: 'Your login has expired.' })
const quota: Play = () => ({ class: 'quota', message: 'Quota exceeded.' })
const credit: Play = () => ({ class: 'quota', message: 'Your workspace is out of credits.' })
const on = (...causes: FallbackTerms['on']): Partial<PlayOptions> => ({
  policy: { fallback: { engines: ['claude'], afterMs: 15 * 60_000, on: causes } },
})

test.each([
  ['login', login],
  ['quota', quota],
  ['credit', credit],
] as const)(
  'a fault of %s begins the round again on the next engine only if the person has named it',
  async (cause, fault) => {
    const named = await play([fault, works(), works(9 * HOUR), works()], on(cause))
    expect(named.outcome.kind).toBe('done')
    expect(named.changes).toEqual([{ from: 'played', to: 'claude', until: null }])
    expect(eventsOf(named.events, 'engine-changed')[0]?.fault).toBe(cause)
    expect(named.engines).toEqual(['played', ...named.engines.slice(1).fill('claude')])
    const others = (['login', 'quota', 'credit'] as const).filter(each => each !== cause)
    const unnamed = await play([fault, works()], on(...others))
    expect([unnamed.outcome.kind, unnamed.changes]).toEqual(['needs-person', []])
  },
)

test('a session that is killed just before or after the change of engine goes on where it was, and changes once', async () => {
  const { events } = await play([full(2 * HOUR), works(), works()])
  const at = events.findIndex(({ type }) => type === 'engine-changed')
  const before = await play([full(2 * HOUR), works(), works()], { journal: events.slice(0, at) })
  expect(before.engines.slice(0, 2)).toEqual(['played', 'claude'])
  const after = await play([works(), works()], { journal: events.slice(0, at + 1) })
  expect(after.engines[0]).toBe('claude')
  // What the journal has already is not told again.
  const changes = [before, after].map(ran => ran.changes.map(({ to }) => to))
  expect(changes).toEqual([['claude'], []])
})

test('an engine that had no login is tried again once the session is resumed', async () => {
  const first = await play([login, works()], {
    ...on('login'),
    memory: () => UNCLAIMED,
    onEvent: (event, { asked }) => {
      if (event.type === 'round-ended' && event.outcome.class === 'worked') asked.stopAfterRound()
    },
  })
  const second = await play([works(), works()], { ...on('login'), journal: first.events })
  expect([first.engines, second.engines[0]]).toEqual([['played', 'claude'], 'played'])
  expect(eventsOf(second.events, 'engine-changed').at(-1)?.why).toBe('The session tries played again.')
})

test('a window that resets only after the longest wait gives way to another engine, too', async () => {
  const { outcome, changes } = await play([full(100 * HOUR), works(), works()], {
    policy: { maxWaitMs: HOUR, fallback: { engines: ['claude'], afterMs: 15 * 60_000, on: [] } },
  })
  expect([outcome.kind, changes]).toEqual(['done', [{ from: 'played', to: 'claude', until: at(100 * HOUR + SLACK) }]])
})

test('a limit of tokens ends a session whose engine does not say what it used, in a sentence', async () => {
  const hides = (limits: PlayOptions['limits']) =>
    play([works(), works(), works()], {
      ...(limits === undefined ? {} : { limits }),
      engines: played => ({ played: { ...played, mayHideUsage: true } }),
    })
  expect((await hides({ rounds: 20, tokens: 5_000 })).outcome).toEqual({
    kind: 'needs-person',
    reason: 'The engine played does not report the tokens that it uses, so --max-tokens cannot be enforced.',
    hint: { do: 'say', text: 'Use --rounds or --max-time instead of --max-tokens, or another engine.' },
  })
  expect((await hides({ rounds: 20 })).outcome.kind).toBe('done')
})

test('the first engine with room counts, the one of the session before all others', () => {
  const terms = { engines: ['a', 'b'] }
  expect(engineWithRoom('codex', terms, {}, 5)).toBe('codex')
  expect(engineWithRoom('codex', terms, { codex: 6 }, 5)).toBe('a')
  expect(engineWithRoom('codex', terms, { codex: 6, a: 9 }, 5)).toBe('b')
  expect(engineWithRoom('codex', terms, { codex: 6, a: 9, b: 9 }, 5)).toBeNull()
  expect(engineWithRoom('codex', terms, { codex: 5, a: 9, b: 9 }, 5)).toBe('codex')
})
