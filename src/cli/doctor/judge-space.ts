import { type Finding, ok, problem, warning } from './finding.ts'

const MIB = 1024 ** 2
const GIB = 1024 ** 3
/** Less than this a night of builds may well use up. */
const LITTLE_BYTES = GIB
/** With less than this journals and savepoints cannot be relied on. */
const TOO_LITTLE_BYTES = 100 * MIB

/** Whether `freeBytes` where `path` lies are enough for a long run. */
export function judgeSpace(path: string, freeBytes: number): Finding {
  const message = `${formatBytes(freeBytes)} free at ${path}`
  if (freeBytes >= LITTLE_BYTES) return ok('disk', message)
  const finding = freeBytes < TOO_LITTLE_BYTES ? problem : warning
  return finding('disk', `only ${message}`, 'Make room there: at least 1 GiB for a long run.')
}

function formatBytes(bytes: number): string {
  return bytes >= GIB ? `${(bytes / GIB).toFixed(1)} GiB` : `${Math.floor(bytes / MIB)} MiB`
}
