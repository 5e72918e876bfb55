import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

// Started by end-with-run.ts with the mark as it stands in an environment. Its stdin ends with the run of the tests.

const [, , mark = ''] = process.argv
/** What is being started in the moment of the end has its mark only a little later. */
const LOOKS = 10
const LOOK_MS = 200

if (!/^\w+=[\w-]{36}$/.test(mark)) throw new Error(`"${mark}" is no mark of a run`)
for await (const _ of process.stdin);
for (let look = 0; look < LOOKS; look++) {
  for (const pid of marked()) kill(pid)
  await delay(LOOK_MS)
}

function marked(): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => pid !== process.pid && environmentOf(pid).includes(mark))
}

/** The variables that a process was started with; none of one that has gone, or is another's. */
function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
  } catch {
    return []
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended meanwhile.
  }
}
