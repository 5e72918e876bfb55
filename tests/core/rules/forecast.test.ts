import { describe, expect, test } from 'vitest'
import type { SessionOutcome } from '../../../src/core/events/outcome.ts'
import {
  forecastFor,
  forecastOf,
  NO_TRENDS,
  trendsAfterLimits,
  trendsAfterRound,
  type UsageTrends,
} from '../../../src/core/rules/forecast.ts'
import { emptyState, type SessionState } from '../../../src/core/state/state.ts'
import { promise } from '../../support/promise.ts'

const HOUR = 3_600_000
const RESET = 5 * HOUR

type Happening = number | 'round' | { percent: number; resetsAt: number; week?: number }

/** Per cent that codex reports, in the middle of a round if `round` follows; `round`: one has ended. */
function trendsOf(...happenings: Happening[]): UsageTrends {
  return happenings.reduce<UsageTrends>((trends, each, i) => {
    if (each === 'round') return trendsAfterRound(trends)
    const { percent, resetsAt, week = null } = typeof each === 'number' ? { percent: each, resetsAt: RESET } : each
    const window = (usedPercent: number, at: number) => ({ usedPercent, windowMinutes: 300, resetsAt: at })
    const secondary = week === null ? null : window(week, 100 * HOUR)
    return trendsAfterLimits(trends, { primary: window(percent, resetsAt), secondary }, i > 0)
  }, NO_TRENDS)
}

promise('M12')
describe('the forecast of a usage window', () => {
  test('says how many more rounds fit into it, by what those in it have used, and when it is renewed', () => {
    const trends = trendsOf(10, 25, 'round', 25, 40, 'round')
    expect(forecastOf(trends, 100, HOUR)).toEqual({ rounds: 4, until: RESET })
    expect(forecastOf(trends, 90, HOUR)).toEqual({ rounds: 3, until: RESET })
    expect(forecastOf(trends, 50, HOUR)).toEqual({ rounds: 0, until: RESET })
    expect(forecastOf(trends, 30, HOUR)).toEqual({ rounds: 0, until: RESET })
  })

  test('is none after one round, and of a window of which nobody knows when it ends', () => {
    expect(forecastOf(trendsOf(10, 25, 'round'), 100, HOUR)).toBeNull()
    expect(forecastOf(NO_TRENDS, 100, HOUR)).toBeNull()
    const endless = { usedPercent: 10, windowMinutes: 300, resetsAt: null }
    expect(trendsAfterLimits(NO_TRENDS, { primary: endless, secondary: null }, false)).toEqual(NO_TRENDS)
  })

  test('is none where nothing rises, and none of a window that is over', () => {
    expect(forecastOf(trendsOf(10, 'round', 10, 'round', 10, 'round'), 100, HOUR)).toBeNull()
    expect(forecastOf(trendsOf(10, 25, 'round', 40, 'round'), 100, RESET)).toBeNull()
  })

  test('begins anew when the window was renewed in between, with the first round that is whole in it', () => {
    const renewed = { percent: 3, resetsAt: 2 * RESET }
    const begun = [10, 25, 'round', 40, 'round', renewed, { ...renewed, percent: 5 }, 'round'] as const
    expect(forecastOf(trendsOf(...begun), 100, HOUR)).toBeNull()
    const next = { percent: 15, resetsAt: 2 * RESET }
    expect(forecastOf(trendsOf(...begun, next, 'round'), 100, HOUR)).toBeNull()
    const last = { percent: 25, resetsAt: 2 * RESET }
    expect(forecastOf(trendsOf(...begun, next, 'round', last, 'round'), 100, HOUR)).toEqual({
      rounds: 7,
      until: 2 * RESET,
    })
  })

  test('takes a window that is fuller than the last one was for a new one by its end, and one that falls by that', () => {
    const fuller = { percent: 50, resetsAt: 2 * RESET }
    expect(forecastOf(trendsOf(10, 25, 'round', 40, 'round', fuller, 'round'), 100, HOUR)).toBeNull()
    expect(forecastOf(trendsOf(10, 25, 'round', 40, 'round', 12, 'round'), 100, HOUR)).toBeNull()
    const soon = { percent: 55, resetsAt: RESET + 10 * 60_000 }
    expect(forecastOf(trendsOf(10, 25, 'round', 40, 'round', soon, 'round'), 100, HOUR)?.rounds).toBe(3)
  })

  test('is of the window that is full sooner', () => {
    const at = (percent: number, week: number) => ({ percent, week, resetsAt: RESET })
    const forecast = (from: number, weekFrom: number) =>
      forecastOf(
        trendsOf(at(from, weekFrom), at(from + 10, weekFrom + 8), 'round', at(from + 20, weekFrom + 16), 'round'),
        100,
        HOUR,
      )
    expect(forecast(10, 80)).toEqual({ rounds: 0, until: 100 * HOUR })
    expect(forecast(75, 10)).toEqual({ rounds: 0, until: RESET })
    expect(forecast(75, 80)).toEqual({ rounds: 0, until: 100 * HOUR })
  })

  test('of a session is up to what may be used, and none where it waits, has ended for good or goes on with credits', () => {
    const state: SessionState = { ...emptyState('s'), usageTrends: trendsOf(10, 25, 'round', 40, 'round') }
    const roundsOf = (change: Partial<SessionState>) => forecastFor({ ...state, ...change }, HOUR)?.rounds
    const ended = (outcome: SessionOutcome) => ({ ended: { outcome, exitCode: 0, durationMs: 1 } })
    const waiting = {
      until: RESET,
      since: HOUR,
      reason: 'usage-limit',
      cause: { class: 'window', message: null },
    } as const
    const some: Partial<SessionState>[] = [{}, { maxUsage: 70 }, { maxUsage: 70, hasCredits: true }]
    expect([...some, ended({ kind: 'limit', limit: 'rounds' })].map(roundsOf)).toEqual([4, 2, 2, 4])
    const none: Partial<SessionState>[] = [{ hasCredits: true }, { waiting }, ended({ kind: 'done', verified: true })]
    expect(none.map(roundsOf)).toEqual([undefined, undefined, undefined])
  })
})
