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
