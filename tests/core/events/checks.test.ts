import * as v from 'valibot'
import { expect, test } from 'vitest'
import { isEvent, sessionEvent } from '../../../src/core/events/checks.ts'
import { moreSamples, sampleEvents } from '../../doors/screen/samples.ts'

const HEAD = { v: 1, at: '2026-11-22T11:45:21.043Z', session: '20261122_1' } as const
const EVENTS = [...Object.values(sampleEvents), ...Object.values(moreSamples)].map(event => ({ ...HEAD, ...event }))

/** Each object that differs from `value` in one place: a field of it, at any depth, is missing or something else. */
function* oneWrong(value: unknown): Generator<unknown> {
  if (Array.isArray(value)) {
    for (const wrong of oneWrong(value[0])) yield [wrong, ...value.slice(1)]
    return
  }
  if (typeof value !== 'object' || value === null) return
  for (const [name, field] of Object.entries(value)) {
    const { [name]: _, ...others } = value as Record<string, unknown>
    yield others
    for (const wrong of [null, 'nothing', ['a']]) yield { ...others, [name]: wrong }
    for (const wrong of oneWrong(field)) yield { ...others, [name]: wrong }
  }
}

/** Whether lists stand where objects are expected: those are no objects for us, and are for valibot. */
const hasListForObject = (event: object) =>
  /"(limits|said|review|outcome|cause|problem|changes|answer|tasks|total|last|primary|secondary|item|tokens|hint)":\["a"\]/.test(
    JSON.stringify(event),
  )

test('an event is what its schema says, and nothing else', () => {
  let refused = 0
  for (const event of EVENTS) {
    expect(v.is(sessionEvent, event)).toBe(true)
    for (const wrong of oneWrong(event) as Iterable<Record<string, unknown>>) {
      if (hasListForObject(wrong) || wrong.at !== HEAD.at) continue
      const is = isEvent(wrong)
      if (is !== v.is(sessionEvent, wrong)) expect.fail(`isEvent says ${is} of ${JSON.stringify(wrong)}`)
      if (!is) refused++
    }
  }
  expect(refused).toBeGreaterThan(500)
})

test('what a later version adds to an event is no reason to drop it', () => {
  for (const event of EVENTS) expect(isEvent({ ...event, addedLater: { deep: [1] } })).toBe(true)
})

test('a list is no object, and a moment is one that can be read', () => {
  expect(isEvent({ ...HEAD, ...sampleEvents['session-created'], limits: [] })).toBe(false)
  expect(isEvent({ ...HEAD, ...sampleEvents.waiting, until: 'soon' })).toBe(false)
  expect(isEvent({ ...HEAD, ...sampleEvents.paused, at: 'soon' })).toBe(false)
  expect(isEvent({ ...HEAD, type: 'constructor' })).toBe(false)
})
