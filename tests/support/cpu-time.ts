import { readFileSync } from 'node:fs'

// Time that was computed, ms, in the place of time that has passed: a busy machine makes it no longer.

/** Of this process. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** Of another process, to 10 ms; only where there is `/proc`. */
export function cpuMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // What follows the name, which may hold anything: the state is the third field, the times are the 14th and the 15th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK
}

const MS_PER_TICK = 10

/**
 * How many times longer this machine computes now than the one on which the bounds of tests were taken, 1 at least: a
 * processor that is shared with others, or clocked low, computes the same thing in up to four times the time. Takes as
 * much as 0.2 s there.
 */
export function timesSlower(): number {
  const start = cpuMs()
  let length = 0
  for (let round = 0; round < 100_000; round += 1) {
    const line = JSON.stringify({ type: 'item.completed', item: { id: `item_${round}`, text: `${round}\n`.repeat(8) } })
    length += JSON.parse(line).item.text.split('\n').length + line.replace(/\d+/g, 'n').length
  }
  if (length === 0) throw new Error('Nothing was computed.')
  return Math.max(1, (cpuMs() - start) / MS_WHEN_TAKEN)
}

const MS_WHEN_TAKEN = 180
