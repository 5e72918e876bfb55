import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { lookingNoLongerThan } from '../../src/run/claim.ts'

describe('a look at the files that hangs', () => {
  const hanging = {
    take: (signal?: AbortSignal) =>
      new Promise<string>((_, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('ended')))
      }),
    changed: async () => ({ paths: [], count: 0 }),
  }

  test('is ended when the time of the session is over', async () => {
    const ending = new AbortController()
    const looking = { clock: systemClock, ending: () => ending.signal, mostMs: () => 10 }
    await expect(lookingNoLongerThan(hanging, looking).take()).rejects.toThrow('ended')
  })

  test('is ended 20 s after a person has ended the session, and one that comes to an end is not', async () => {
    const waits: number[] = []
    const clock = { ...systemClock, wait: async (ms: number) => void waits.push(ms) }
    const ending = new AbortController()
    const looking = { clock, ending: () => ending.signal, mostMs: () => Number.POSITIVE_INFINITY }
    const look = lookingNoLongerThan(hanging, looking).take()
    ending.abort()
    await expect(look).rejects.toThrow('ended')
    expect(waits).toEqual([20_000])
    const whole = { ...hanging, take: async () => 'tree' }
    expect(await lookingNoLongerThan(whole, looking).take()).toBe('tree')
  })
})
