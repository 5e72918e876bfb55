import type { Recorded, RecordedOf } from '../../src/core/events/events.ts'
import type { InProcess } from './in-process.ts'
import { eventsOf, type Scene } from './scene.ts'
import { TestClock } from './test-clock.ts'

/** A run whose waits a test can let pass. */
export interface Night {
  clock: TestClock
  run: InProcess
  /** Lets the nth wait of the run pass, counted from 1; resolves with its event. */
  passWait(n?: number): Promise<Waiting>
  /** Lets time pass many times as fast until the promise is settled, and answers what it does. */
  hurryUntil<T>(promise: Promise<T>): Promise<T>
  /**
   * Resolves once nothing is asked of codex that the passing of hours would answer with a time-out. Requests are known
   * by how long they may take, about an hour: a test has no other wait of that length.
   */
  nothingAsked(): Promise<void>
  /** Another command, from another terminal at the same moment; without `--json`. */
  meanwhile(...args: string[]): InProcess
}

type Waiting = RecordedOf<'waiting'>

export interface NightOptions {
  /** Of a run that goes on in the same night. */
  clock?: TestClock
  env?: Record<string, string>
}

/** Starts `codemachine --json …`, or `codemachine resume --json …`, in this process. */
export function startNight(scene: Scene, args: readonly string[], options: NightOptions = {}): Night {
  const clock = options.clock ?? new TestClock()
  const env = { CODEMACHINE_REQUEST_SECONDS: String(REQUEST_SECONDS), ...options.env }
  const run = scene.startInProcess([...args, '--json'], { clock, env })
  const nothingAsked = async () => {
    while (clock.waits().some(isOfARequest)) await new Promise(resolve => setTimeout(resolve, 5))
  }
  return {
    clock,
    run,
    nothingAsked,
    hurryUntil: promise => hurryUntil(clock, promise),
    async passWait(n = 1) {
      const waiting = await run.event('waiting', event => eventsOf(run.events, 'waiting').indexOf(event) === n - 1)
      await nothingAsked()
      await clock.advance(Math.max(0, Date.parse(waiting.until) - clock.now()))
      return waiting
    },
    meanwhile: (...rest) => scene.startInProcess(rest, { clock }),
  }
}

/** Lets the time of this clock pass many times as fast until the promise is settled, and answers what it does. */
export async function hurryUntil<T>(clock: TestClock, promise: Promise<T>): Promise<T> {
  let settled = false
  const over = promise.finally(() => {
    settled = true
  })
  over.catch(() => {})
  while (!settled) {
    await clock.advance(HURRY_MS)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  return await over
}

/** Round, class and whether it counts, of every round that ended. */
export function roundsOf(events: readonly Recorded[]): [round: number, end: string, counts: boolean][] {
  return eventsOf(events, 'round-ended').map(({ round, outcome, counts }) => [round, outcome.class, counts])
}

/** A step of time that is no long wait of anything. */
const HURRY_MS = 200
/** The longest that codex may be told to take, which tells its deadline from every other wait. */
const REQUEST_SECONDS = 3600
const isOfARequest = (leftMs: number) => leftMs <= REQUEST_SECONDS * 1000 && leftMs > REQUEST_SECONDS * 1000 - 300_000
