import { afterEach, expect, test } from 'vitest'
import type { ServerNotification } from '../../../protocol/codex.ts'
import { Activity, watchForSilence } from '../../../src/engines/codex/round-feed.ts'
import { TestClock } from '../../support/test-clock.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const running: { stop(): void }[] = []
afterEach(() => {
  for (const watch of running.splice(0)) watch.stop()
})

function watched(silenceMs = 6 * MINUTE) {
  const clock = new TestClock()
  const activity = new Activity(clock.monotonic())
  const slept: number[] = []
  const silent: string[] = []
  const watch = watchForSilence({
    activity,
    clock,
    silenceMs,
    commandMs: HOUR,
    onSlept: ms => slept.push(Math.round(ms / MINUTE)),
    onSilent: message => silent.push(message),
  })
  running.push(watch)
  return { clock, activity, slept, silent, watch }
}

test('silence is told once, after its time', async () => {
  const { clock, silent } = watched()
  await clock.advance(6 * MINUTE - 5_000)
  expect(silent).toEqual([])
  await clock.advance(10_000)
  expect(silent).toEqual(['Nothing came from codex for 6 minutes.'])
  await clock.advance(HOUR)
  expect(silent).toHaveLength(1)
})

test('a sign of life now and then keeps a round alive for a night', async () => {
  const { clock, activity, silent } = watched()
  for (let n = 0; n < 100; n++) {
    await clock.advance(5 * MINUTE)
    activity.heard(clock.monotonic())
  }
  expect(silent).toEqual([])
})

test('what is stopped tells nothing more', async () => {
  const { clock, silent, watch } = watched()
  watch.stop()
  await clock.advance(HOUR)
  expect(silent).toEqual([])
})

test('a machine that slept is told once, and starts the clocks anew: a command of 59 minutes is not ended by it', async () => {
  const { clock, activity, slept, silent } = watched()
  const item = { id: 'c', type: 'commandExecution', command: 'make' }
  activity.note({ method: 'item/started', params: { item } } as unknown as ServerNotification, clock.monotonic())
  await clock.advance(59 * MINUTE)
  clock.sleepMachine(8 * HOUR)
  await clock.advance(MINUTE)
  expect(slept).toEqual([480])
  await clock.advance(58 * MINUTE)
  expect([slept, silent]).toEqual([[480], []])
  await clock.advance(3 * MINUTE)
  expect(silent).toEqual([expect.stringMatching(/^`make` was still running after 1\d\d minutes\.$/)])
})

test('each sleep is told; a clock that is set a little, or back, is no sleep', async () => {
  const { clock, slept } = watched(10 * HOUR)
  clock.sleepMachine(20_000)
  await clock.advance(MINUTE)
  clock.sleepMachine(-HOUR)
  await clock.advance(MINUTE)
  expect(slept).toEqual([])
  for (let n = 0; n < 2; n++) {
    clock.sleepMachine(30 * MINUTE)
    await clock.advance(2 * MINUTE)
  }
  expect(slept).toEqual([30, 30])
})

test('where monotonic time goes on in a sleeping machine, a look that comes far too late shows it', async () => {
  let [now, released] = [0, () => {}]
  const clock = {
    // Set back meanwhile, as a clock may be that is put right after a sleep.
    now: () => 0,
    monotonic: () => now,
    wait: () => new Promise<void>(resolve => (released = resolve)),
  }
  const [slept, silent]: [number[], string[]] = [[], []]
  running.push(
    watchForSilence({
      activity: new Activity(0),
      clock,
      silenceMs: 6 * MINUTE,
      commandMs: HOUR,
      onSlept: ms => slept.push(ms),
      onSilent: message => silent.push(message),
    }),
  )
  now = 8 * HOUR
  released()
  await new Promise(setImmediate)
  expect([slept, silent]).toEqual([[8 * HOUR - 30_000], []])
})
