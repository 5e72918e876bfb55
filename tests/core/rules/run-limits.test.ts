import { describe, expect, test } from 'vitest'
import type { RunAllowance, Used } from '../../../src/core/events/outcome.ts'
import {
  allowanceAtResume,
  beyondRun,
  limitsInRun,
  NOTHING_USED,
  usedBy,
  usedUp,
  withUsed,
} from '../../../src/core/rules/run-limits.ts'
import { promise } from '../../support/promise.ts'
import { created, ended, foldAll, started, worked } from '../../support/session-events.ts'

const HOUR = 3_600_000
const PRICE = { model: 'm', in: 1, cached: 1, out: 1 }
const NONE = { rounds: null, timeMs: null, tokens: null }
const night: RunAllowance = { limits: { ...NONE, timeMs: 8 * HOUR, tokens: 5_000_000 }, used: NOTHING_USED }
const having = (...sessions: Partial<Used>[]) =>
  sessions.reduce((run, used) => withUsed(run, { ...NOTHING_USED, ...used }), night)

promise('M9')
describe('the limits of a run', () => {
  test('are for all of its sessions: each begins with what those before it have left', () => {
    const run = having({ tokens: 2_000_000, timeMs: 3 * HOUR }, { tokens: 500_000, timeMs: HOUR })
    expect(limitsInRun(run, {}, 10)).toEqual({ ...NONE, timeMs: 4 * HOUR, tokens: 2_500_000 })
    expect(limitsInRun(having({ tokens: 9_000_000 }), {}, 10)).toMatchObject({ tokens: 0 })
  })

  test('may be narrower for one session, which gets no more than is left', () => {
    expect(limitsInRun(night, { tokens: 1_000_000, rounds: 3 }, 10)).toEqual({
      rounds: 3,
      timeMs: 8 * HOUR,
      tokens: 1_000_000,
    })
    expect(limitsInRun(having({ tokens: 4_500_000 }), { tokens: 1_000_000 }, 10)).toMatchObject({ tokens: 500_000 })
  })

  test('of cost are shared as the others are', () => {
    const run = { limits: { ...NONE, cost: 10 }, used: { ...NOTHING_USED, cost: 4 } }
    expect(limitsInRun(run, {}, 10)).toEqual({ ...NONE, cost: 6 })
    expect(limitsInRun(run, { cost: 2, rounds: 3 }, 10)).toEqual({ ...NONE, rounds: 3, cost: 2 })
    expect(limitsInRun(night, { cost: 2 }, 10)).toMatchObject({ cost: 2 })
  })

  test('are used by a session as far as it got, its cost only where there are prices', () => {
    const cutOff = foldAll([created(), started(1), ended(1, worked)])
    expect(usedBy(cutOff)).toEqual({ rounds: 1, timeMs: expect.any(Number), tokens: 0 })
    expect(usedBy({ ...cutOff, prices: [PRICE], cost: { ...cutOff.cost, amount: 3 } })).toMatchObject({ cost: 3 })
  })

  test('leave the usual number of rounds to each session where nothing is limited', () => {
    const free = { limits: NONE, used: { rounds: 40, timeMs: HOUR, tokens: 9 } }
    expect(limitsInRun(free, {}, 10)).toEqual({ ...NONE, rounds: 10 })
    expect(limitsInRun(free, { tokens: 5 }, 10)).toEqual({ ...NONE, tokens: 5 })
  })

  test('are used up when nothing is left of one, exactly used ones too', () => {
    expect([usedUp(night), usedUp(having({ tokens: 4_999_999 }))]).toEqual([null, null])
    expect([usedUp(having({ tokens: 5_000_000 })), usedUp(having({ timeMs: 9 * HOUR }))]).toEqual(['tokens', 'timeMs'])
  })

  test('are exceeded by who wants more than they are, and not by who wants more than is left', () => {
    const run = having({ tokens: 4_900_000 })
    expect(beyondRun(run, { tokens: 5_000_001 })).toBe('tokens')
    expect(beyondRun(run, { tokens: 5_000_000, rounds: 99_999 })).toBeNull()
  })

  test('that a person names at resume are for that session and what waits behind it', () => {
    const run = having({ rounds: 4, tokens: 4_900_000, timeMs: HOUR, cost: 3 })
    expect(allowanceAtResume(run, {})).toEqual(run)
    const said = { rounds: 9, timeMs: HOUR, cost: 7 }
    expect(allowanceAtResume(run, said)).toEqual({
      limits: { ...said, tokens: 5_000_000 },
      used: { ...NOTHING_USED, tokens: 4_900_000 },
    })
    const more = allowanceAtResume(run, { tokens: 6_000_000 })
    expect(more).toEqual({
      limits: { ...NONE, timeMs: 8 * HOUR, tokens: 6_000_000 },
      used: { rounds: 4, timeMs: HOUR, tokens: 0, cost: 3 },
    })
  })
})
