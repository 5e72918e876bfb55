import { type Clock, systemClock } from '../../src/base/clock.ts'

const HOUR = 3_600_000

/**
 * The clock of a model that stops in the middle of what it says in pieces (a reply with `deltaMs`): after so many of them
 * it goes on when the promise resolves. Its other pauses take no time.
 */
export function stopsMidway(pieces: number, until: Promise<unknown>): Clock {
  let said = 0
  return {
    ...systemClock,
    async wait(_ms, signal) {
      said += 1
      if (said === pieces) await Promise.race([until, systemClock.wait(HOUR, signal)])
    },
  }
}
