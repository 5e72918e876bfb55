import { expect, test } from 'vitest'
import { TestClock } from './test-clock.ts'

const HOUR = 3_600_000

test('a wait is over in its own time, and leaves no timer behind when it is cut short', async () => {
  const clock = new TestClock()
  const before = clock.monotonic()
  await clock.wait(20)
  expect(clock.monotonic() - before).toBeGreaterThanOrEqual(19)
  const cut = new AbortController()
  const waiting = clock.wait(HOUR, cut.signal)
  expect(clock.waits()).toHaveLength(1)
  cut.abort()
  await waiting
  expect(clock.waits()).toEqual([])
})

test('a night passes in a moment, in the order in which waits fall due, on both clocks', async () => {
  const clock = new TestClock()
  const order: string[] = []
  void clock.wait(3 * HOUR).then(() => order.push('3 h'))
  void clock.wait(HOUR).then(() => order.push('1 h'))
  void clock.wait(9 * HOUR).then(() => order.push('9 h'))
  void clock.wait(900).then(() => order.push('900 ms'))
  void clock.wait(800).then(() => order.push('800 ms'))
  const [wall, monotonic] = [clock.now(), clock.monotonic()]
  await clock.advance(8 * HOUR)
  expect(order).toEqual(['800 ms', '900 ms', '1 h', '3 h'])
  // The machine's own wall clock may be set meanwhile, by a moment.
  expect(clock.now() - wall).toBeGreaterThan(8 * HOUR - 1000)
  expect(clock.now() - wall).toBeLessThan(8 * HOUR + 5000)
  expect(clock.monotonic() - monotonic).toBeGreaterThanOrEqual(8 * HOUR)
  expect(clock.waits()[0]).toBeLessThanOrEqual(HOUR)
  expect(clock.waits()[0]).toBeGreaterThan(HOUR - 5000)
})

test('what a night has not used up of a wait passes in real time', async () => {
  const clock = new TestClock()
  const waiting = clock.wait(HOUR + 100)
  await clock.advance(HOUR)
  await waiting
  expect(clock.waits()).toEqual([])
})

test('who looks every 15 s sees no tick that is late, whatever time passes, even while something else polls', async () => {
  const clock = new TestClock()
  const over = new AbortController()
  let late = 0
  let ticks = 0
  let polls = 0
  const tick = async () => {
    while (!over.signal.aborted) {
      const due = clock.monotonic() + 15_000
      await clock.wait(15_000, over.signal)
      await Promise.resolve()
      ticks += 1
      late = Math.max(late, clock.monotonic() - due)
    }
  }
  const poll = async () => {
    while (!over.signal.aborted) {
      await clock.wait(500, over.signal)
      polls += 1
    }
  }
  const looping = [tick(), poll()]
  await clock.advance(HOUR)
  expect(ticks).toBeGreaterThanOrEqual(239)
  expect(polls).toBeGreaterThan(200)
  // A night of these would take minutes.
  expect(polls).toBeLessThan(1000)
  expect(late).toBeLessThan(1000)
  over.abort()
  await Promise.all(looping)
})

test('a wait that somebody looks for is found, whether it began before or begins later', async () => {
  const clock = new TestClock()
  const cut = new AbortController()
  const later = clock.nextWait(HOUR)
  void clock.wait(10, cut.signal)
  void clock.wait(2 * HOUR, cut.signal)
  expect(await later).toBeGreaterThan(HOUR)
  expect(await clock.nextWait(2 * HOUR)).toBeGreaterThan(2 * HOUR - 1000)
  cut.abort()
})

test('a machine that slept: wall time alone has moved on', async () => {
  const clock = new TestClock()
  const parted = clock.now() - clock.monotonic()
  clock.sleepMachine(HOUR)
  expect(clock.now() - clock.monotonic() - parted).toBeGreaterThan(HOUR - 10)
  expect(clock.now() - clock.monotonic() - parted).toBeLessThan(HOUR + 10)
})
