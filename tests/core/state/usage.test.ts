import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { forecastFor } from '../../../src/core/rules/forecast.ts'
import { usageOf } from '../../../src/core/state/usage.ts'
import { usedWindow } from '../../../src/tell/words/doing.ts'
import { created, ended, FIRST_AT, foldAll, started, worked } from '../../support/session-events.ts'

const RESETS_AT = FIRST_AT + 3_600_000

function limits(usedPercent: number, engine?: string): SessionEvent {
  const primary = { usedPercent, windowMinutes: 300, resetsAt: RESETS_AT }
  return { type: 'limits', primary, secondary: null, ...(engine === undefined ? {} : { engine }) }
}

/** A round on an engine that leaves so many per cent of a window used. */
function round(number: number, engine: string, percent: number | null): SessionEvent[] {
  const told = percent === null ? [] : [limits(percent, engine)]
  return [{ ...started(number), engine }, ...told, ended(number, worked)]
}

function changed(from: string, to: string, isUsual: boolean): SessionEvent {
  const until = isUsual ? null : new Date(RESETS_AT).toISOString()
  return { type: 'engine-changed', round: 1, from, to, isUsual, until, why: 'Full.' }
}

const onCodex = [created(), limits(10), ...round(1, 'codex', 30), ...round(2, 'codex', 50)]

test('the window of codex is neither shown nor forecast while another engine works, and both are back with codex', () => {
  expect(forecastFor(foldAll(onCodex), FIRST_AT)).toMatchObject({ rounds: 2 })
  const away = [...onCodex, changed('codex', 'claude', false), ...round(3, 'claude', null), ...round(4, 'claude', null)]
  const other = foldAll(away)
  expect([usedWindow(other, FIRST_AT), forecastFor(other, FIRST_AT)]).toEqual([null, null])
  const back = foldAll([...away, changed('claude', 'codex', true)])
  expect(usedWindow(back, FIRST_AT)).toMatchObject({ usedPercent: 50 })
  expect(forecastFor(back, FIRST_AT)).toMatchObject({ rounds: 2 })
})

test('what another engine tells beside the rounds is known as its own, and changes nothing of theirs', () => {
  const state = foldAll([...onCodex, limits(97, 'other')])
  expect(usedWindow(state, FIRST_AT)).toMatchObject({ usedPercent: 50 })
  expect(usageOf(state, 'other').primaryWindow).toMatchObject({ usedPercent: 97 })
  expect(usageOf(state, 'third').primaryWindow).toBeNull()
})

test('codex exec has the login of codex, and a window that names no engine is that of codex', () => {
  const state = foldAll([created(), limits(10), ...round(1, 'exec', null), limits(40)])
  expect(usedWindow(state, FIRST_AT)).toMatchObject({ usedPercent: 40 })
  expect(usageOf(state, 'codex')).toMatchObject({ primaryWindow: { usedPercent: 40 } })
})
