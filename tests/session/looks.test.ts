import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { lookNoLongerThan } from '../../src/session/budget.ts'
import { GitStopped } from '../../src/workspace/git/git.ts'
import { ofType, type PlayOptions, playSession } from '../support/played-session.ts'
import { incident, promise } from '../support/promise.ts'
import { worked } from '../support/session-events.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'codemachine-test-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Where it is not ended it hangs for ever. */
const SECONDS = 20_000

promise(
  'W24',
  "A look at the files that hangs ends with the session's time, or 20 s after a person has ended the session",
)
describe('a look at the files that hangs', { timeout: SECONDS }, () => {
  const hanging = (signal: AbortSignal) =>
    new Promise<string>((_, reject) => {
      signal.addEventListener('abort', () => reject(new Error('ended')))
    })

  incident('lost night', "A look at the files that hung went on after the session's time was over", {
    since: '2026-11-21',
    fixed: '2026-11-23',
    foundBy: 'a trial',
  })
  test('is ended when the time of the session is over', async () => {
    const ending = new AbortController()
    const looking = { clock: systemClock, ending: ending.signal, mostMs: 10 }
    await expect(lookNoLongerThan(hanging, looking)).rejects.toThrow('ended')
  })

  test('is ended 20 s after a person has ended the session, and one that comes to an end is not', async () => {
    const waits: number[] = []
    const clock = { ...systemClock, wait: async (ms: number) => void waits.push(ms) }
    const ending = new AbortController()
    const looking = { clock, ending: ending.signal, mostMs: Number.POSITIVE_INFINITY }
    const look = lookNoLongerThan(hanging, looking)
    ending.abort()
    await expect(look).rejects.toThrow('ended')
    expect(waits).toEqual([20_000])
    expect(await lookNoLongerThan(async () => 'tree', looking)).toBe('tree')
  })
})

const never = (signal: AbortSignal | undefined) =>
  new Promise<never>((_, reject) => {
    signal?.addEventListener('abort', () => reject(new GitStopped('ended')))
  })

promise('W26')
describe('before the first round has begun', () => {
  const limits = { rounds: 2, timeMs: 60_000 }

  let failed = 0
  test.each([
    ['a look at the files', { tree: (_, signal) => never(signal) }],
    ['what keeps them', { savepoint: ({ signal }) => never(signal) }],
    ['what keeps them once more', { savepoint: ({ signal }) => failed++ > 0 && never(signal) }],
  ] satisfies [string, Partial<PlayOptions>][])('%s takes no longer than --max-time', async (_, options) => {
    const { outcome, tookMs, prepared, events } = await playSession([() => worked], { folder, limits, ...options })
    expect([outcome, tookMs]).toEqual([{ kind: 'limit', limit: 'time' }, 60_000])
    expect(prepared).toBeLessThan(2)
    expect(ofType(events, 'warning').map(({ message }) => message)).toEqual([
      expect.stringMatching(/^git could not read all files in .* --max-time/),
    ])
  })
})

test('the savepoint that a round was cut off before takes no longer than the time of the session, and is made when it goes on again', {
  timeout: SECONDS,
}, async () => {
  const limits = { rounds: 2, timeMs: 400_000 }
  const first = await playSession([() => worked], { folder, limits })
  const cut = first.events.slice(0, first.events.findIndex(({ type }) => type === 'round-ended') + 1)
  const hanging = { folder, limits, savepoint: ({ signal }: { signal?: AbortSignal }) => never(signal) }
  const { outcome, tookMs, events } = await playSession([() => worked], {
    ...hanging,
    journal: cut,
    resumed: { limits: { ...limits, tokens: null } },
  })
  expect([outcome, tookMs]).toEqual([{ kind: 'limit', limit: 'time' }, 400_000])
  const again = await playSession([() => worked], { folder, journal: [...cut, ...events] })
  expect(ofType(again.events, 'savepoint')[0]).toMatchObject({ round: 1 })
})
