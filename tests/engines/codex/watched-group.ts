import type { StrayFinder } from '../../../src/core/engine.ts'

/** A control group in which nothing is found, and that remembers what it was told. */
export class WatchedGroup implements StrayFinder {
  /** How many have said that they work, and are not over. */
  working = 0
  /** How many worked, each time that something was looked for. */
  readonly looks: number[] = []

  works(): () => void {
    this.working++
    return () => void this.working--
  }

  async endStrays(): ReturnType<StrayFinder['endStrays']> {
    this.looks.push(this.working)
    return { ended: [], left: [] }
  }
}
