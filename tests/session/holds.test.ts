import { describe, expect, test } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import type { EventOf } from '../../src/core/events/events.ts'
import { endOfHold } from '../../src/core/rules/decision.ts'
import type { Audience } from '../../src/session/options.ts'
import { PersonAsked } from '../../src/session/person.ts'
import { type Cue, forEver, HOUR, never, roundsOf, runSession, works } from '../support/breaking-in.ts'
import { ofType, type PlayOptions, type Ran } from '../support/played-session.ts'
import { promise } from '../support/promise.ts'
import { foldAll } from '../support/session-events.ts'

const MINUTE = 60_000
const policy = { decideAfterMs: 30 * MINUTE }
const interrupted: Cue = { on: 'turn-started', nth: 1, say: ['interrupt'] }

async function hold(cues: readonly Cue[], options: Omit<PlayOptions, 'folder'> = {}) {
  return await runSession([forEver, works], cues, {
    limits: { rounds: 2 },
    ...options,
    policy: { ...policy, ...options.policy },
  })
}

/** How long after the first hold its end was due, and how; of each time that this was journaled. */
function due({ events }: Pick<Ran, 'events'>) {
  const heldAt = Date.parse(ofType(events, 'held')[0]?.at ?? '')
  return ofType(events, 'hold-until').map(({ until, how }) => [Math.round((Date.parse(until) - heldAt) / MINUTE), how])
}

/** Somebody who watches from and until times after it was first looked whether anybody does. */
function watching(...spans: readonly (readonly [from: number, until: number])[]) {
  let clock: Clock | null = null
  let start: number | null = null
  let changed = new AbortController()
  const come = async (after: number) => {
    await clock?.wait(after)
    const before = changed
    changed = new AbortController()
    before.abort()
  }
  const audience: Audience = {
    isForGood: false,
    get changed() {
      return changed.signal
    },
    async isAttached() {
      const now = clock?.monotonic() ?? 0
      if (start === null) for (const [from] of spans) void come(from + 1)
      const passed = now - (start ?? now)
      start ??= now
      return spans.some(([from, until]) => passed >= from && passed < until)
    },
  }
  const onBegin: PlayOptions['onBegin'] = playing => {
    clock = playing.clock
  }
  return { audience, onBegin }
}

describe('an interrupted session', () => {
  promise(
    'W30',
    'A session that holds after an interruption or a changed plan goes on by itself after `decide_after`, which is journaled and counted down',
  )
  test('goes on by itself after decide_after, which is journaled, counted down, and used up of its time', async () => {
    const ran = await hold([interrupted])
    expect(due(ran)).toEqual([[30, 'goes-on']])
    expect(ofType(ran.events, 'unpaused')).toMatchObject([{ by: 'default' }])
    expect(ran.live.filter(({ type }) => type === 'still-waiting')).toHaveLength(30)
    expect(roundsOf(ran.events)).toEqual([
      [1, 'interrupted', true],
      [2, 'worked', true],
    ])
    expect(ofType(ran.events, 'session-ended')[0]?.durationMs).toBeGreaterThan(30 * MINUTE)
  })

  test('says while it holds when that is, and nothing of it once it goes on', async () => {
    const { events } = await hold([interrupted])
    const at = events.findIndex(({ type }) => type === 'hold-until')
    expect(foldAll(events.slice(0, at + 1)).holdEnd).toMatchObject({ how: 'goes-on' })
    const after = foldAll(events.slice(0, events.findIndex(({ type }) => type === 'unpaused') + 1))
    expect(after).toMatchObject({ holdEnd: null, heldSince: null, pausedAt: null })
  })

  promise('W30')
  test('so does one whose plan was changed, by that plan', async () => {
    const ran = await hold([{ on: 'turn-started', nth: 1, say: ['replan the docs first'] }])
    expect(ofType(ran.events, 'unpaused')).toMatchObject([{ by: 'default' }])
    expect(roundsOf(ran.events)).toEqual([
      [1, 'interrupted', true],
      [2, 'worked', false],
      [2, 'worked', true],
    ])
  })

  test('goes on when a person says so before, which is no default', async () => {
    const { events } = await hold([interrupted, { on: 'held', afterMs: MINUTE, say: ['unpause'] }])
    expect(ofType(events, 'unpaused').map(({ by }) => by)).toEqual([undefined])
  })

  promise(
    'W32',
    'What waits for a person counts against `--max-time`, which ends it; in the same moment the limit comes first',
  )
  test.each([
    ['before', 20 * MINUTE],
    ['in the moment in which it would go on', 30 * MINUTE + 1],
  ])('ends by --max-time that is used up %s', async (_, timeMs) => {
    const { outcome, events } = await hold([interrupted], { limits: { rounds: 9, timeMs } })
    expect(outcome).toEqual({ kind: 'limit', limit: 'time' })
    expect(ofType(events, 'unpaused')).toEqual([])
    expect(events.at(-1)).toMatchObject({ exitCode: 3, durationMs: timeMs })
    expect(due({ events }).at(-1)?.[1]).toBe('limit')
  })

  promise(
    'W31',
    'While a screen or a living `watch` on a terminal shows it, nothing that waits for a person goes on by itself before `--max-wait`',
  )
  test('does not go on by itself while somebody watches, and again from when they have gone', async () => {
    const ran = await hold([interrupted], watching([0, 2 * HOUR]))
    expect(due(ran)).toEqual([
      [24 * 60, 'goes-on'],
      [150, 'goes-on'],
    ])
    expect(ran.tookMs).toBeGreaterThan(2.5 * HOUR)
  })

  test('is not taken out of the hands of somebody who comes meanwhile', async () => {
    const ran = await hold([interrupted], watching([20 * MINUTE, HOUR]))
    expect(due(ran)).toEqual([
      [30, 'goes-on'],
      [24 * 60, 'goes-on'],
      [90, 'goes-on'],
    ])
  })

  promise('W31')
  test('waits from the first key in its question on, until that is answered', async () => {
    const stopped: boolean[] = []
    const ran = await hold([interrupted], {
      policy: { maxWaitMs: 5 * HOUR },
      onEvent: ({ type }, { clock, runner }) => {
        if (type === 'hold-until') void clock.wait(MINUTE).then(() => stopped.push(runner.attend(true)))
        if (type === 'unpaused') stopped.push(runner.attend(true))
      },
    })
    expect(due(ran)).toEqual([
      [30, 'goes-on'],
      [300, 'goes-on'],
    ])
    expect(stopped).toEqual([true, false, false])
  })

  test('counts again once whoever was at its question has left', async () => {
    const ran = await hold([interrupted], {
      onEvent: ({ type }, { clock, runner }) => {
        if (type !== 'held') return
        void clock.wait(MINUTE).then(() => runner.attend(true))
        void clock.wait(HOUR).then(() => runner.attend(false))
      },
    })
    expect(due(ran).at(-1)).toEqual([90, 'goes-on'])
  })

  promise('W31')
  test('that a screen shows all the time goes on after --max-wait at the latest', async () => {
    const audience: Audience = { isForGood: true, isAttached: async () => true, changed: new AbortController().signal }
    const ran = await hold([interrupted], { audience, policy: { maxWaitMs: 5 * HOUR } })
    expect(due(ran)).toEqual([[300, 'goes-on']])
    expect(ofType(ran.events, 'unpaused')).toMatchObject([{ by: 'default' }])
  })
})

describe('a paused session', () => {
  const paused: Cue = { on: 'turn-started', nth: 1, say: ['pause'] }

  promise(
    'W33',
    'A pause, and a decision without a default, never go on by themselves: they need a person after `--max-wait` or `--max-time` (exit code 4)',
  )
  test.each([
    ['--max-wait', {}, { maxWaitMs: 2 * HOUR }, 120],
    ['--max-time', { timeMs: HOUR }, {}, 60],
  ] as const)('never goes on by itself, and needs a person after %s', async (_, limits, of, minutes) => {
    const ran = await runSession([works, never], [paused], {
      limits: { rounds: 9, ...limits },
      policy: { ...policy, ...of },
    })
    expect(ran.outcome).toEqual({
      kind: 'needs-person',
      reason: 'It was paused, and nobody resumed it.',
      hint: null,
    })
    expect(ran.events.at(-1)).toMatchObject({ exitCode: 4 })
    expect(due(ran)).toEqual([[minutes, 'needs-person']])
  })

  test('that is interrupted first has no default any more, and nothing is counted down', async () => {
    const { outcome, events, live } = await hold([interrupted, { on: 'held', afterMs: 10 * MINUTE, say: ['pause'] }])
    expect(outcome.kind).toBe('needs-person')
    expect(due({ events })).toEqual([
      [30, 'goes-on'],
      [24 * 60, 'needs-person'],
    ])
    expect(live.filter(({ type }) => type === 'still-waiting')).toHaveLength(10)
  })
})

describe('a change of plan with --go', () => {
  promise('W34', '`replan --go` does not hold')
  test('does not hold: the work goes on by the changed plan', async () => {
    const asked = new PersonAsked(new AbortController().signal)
    const { events, replies, tookMs } = await hold(
      [{ on: 'turn-started', nth: 1, say: ['replan --go the docs first'] }],
      {
        asked,
      },
    )
    expect(ofType(events, 'replan-asked')).toMatchObject([{ text: 'the docs first', goesOn: true }])
    expect([ofType(events, 'held'), ofType(events, 'unpaused')]).toEqual([[], []])
    expect(replies[0]).toContain('Then it continues without a person.')
    expect(roundsOf(events)).toEqual([
      [1, 'interrupted', true],
      [2, 'worked', false],
      [2, 'worked', true],
    ])
    expect(tookMs).toBeLessThan(MINUTE)
  })

  test('takes back a hold, too', async () => {
    const { events, inputs } = await hold([interrupted, { on: 'held', say: ['replan --go the docs first'] }])
    expect(ofType(events, 'held')).toHaveLength(1)
    expect(ofType(events, 'unpaused').map(({ by }) => by)).toEqual([undefined])
    expect(inputs[1]).toBe('Change the plan:\n\nthe docs first')
    expect(roundsOf(events).at(-1)).toEqual([2, 'worked', true])
  })
})

const terms = { now: 0, hasDefault: true, aloneSince: 0, decideAfterMs: 30, maxWaitMs: 100, limitAt: 1000 }

test.each([
  [{}, 30, 'goes-on'],
  [{ aloneSince: 20 }, 50, 'goes-on'],
  [{ aloneSince: 90 }, 100, 'goes-on'],
  [{ aloneSince: null }, 100, 'goes-on'],
  [{ hasDefault: false }, 100, 'needs-person'],
  [{ limitAt: 30 }, 30, 'limit'],
  [{ limitAt: 30.5 }, 30.5, 'limit'],
  [{ limitAt: 31 }, 30, 'goes-on'],
  [{ limitAt: 100, hasDefault: false }, 100, 'needs-person'],
  [{ limitAt: 40, now: 50 }, 40, 'limit'],
] satisfies [Partial<typeof terms> | { aloneSince: null }, number, EventOf<'hold-until'>['how']][])(
  'of what may end a hold first, the first counts, and the limit where two come at once: %j',
  (of, at, how) => {
    expect(endOfHold({ ...terms, ...of })).toEqual({ at, how })
  },
)
