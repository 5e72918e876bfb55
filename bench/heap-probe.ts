import { writeFileSync } from 'node:fs'

/** Loaded into a process with `--import`: writes how many bytes of its heap are used, again and again, to $HEAP_PROBE. */
const path = process.env.HEAP_PROBE
const EVERY_MS = 250
/** The lowest of so many readings is what is left after garbage was collected. */
const READINGS = 40

if (path !== undefined) {
  const last: number[] = []
  setInterval(() => {
    last.push(process.memoryUsage().heapUsed)
    if (last.length > READINGS) last.shift()
    writeFileSync(path, String(Math.min(...last)))
  }, EVERY_MS).unref()
}
