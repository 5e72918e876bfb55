import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { TestPlace } from './place.ts'

/** The command lines of living processes that work in the place, or carry it in their environment; not this one. */
export function processesOf(place: TestPlace): string[] {
  return pidsOf(place)
    .map(pid =>
      attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
        .replaceAll('\0', ' ')
        .trim(),
    )
    .filter(line => line !== '')
}

/** The command lines of living processes that name the place: sandboxes too, which work elsewhere and have an environment of their own. */
export function sandboxesOf(place: TestPlace): string[] {
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name) && Number(name) !== process.pid)
  const lines = pids.map(pid => attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' '))
  return lines.filter(line => line.includes(place.root))
}

/** Resolves once one runs whose command line begins so. Nothing tells of it, so it is looked for, for at most 30 s. */
export async function untilRuns(place: TestPlace, command: string): Promise<void> {
  for (const end = performance.now() + WAIT_MS; !processesOf(place).some(line => line.startsWith(command)); ) {
    if (performance.now() > end) throw new Error(`Not within ${WAIT_MS} ms: ${command}. Only: ${processesOf(place)}`)
    await delay(LOOK_MS)
  }
}

const WAIT_MS = 60_000
const LOOK_MS = 20

/** Ends them, should the test have failed that looks for them. */
export function endProcessesOf(place: TestPlace): void {
  for (const pid of pidsOf(place)) attempt(() => String(process.kill(pid, 'SIGKILL')))
}

function pidsOf(place: TestPlace): number[] {
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  return pids.map(Number).filter(pid => pid !== process.pid && belongs(pid, place.root))
}

function belongs(pid: number, root: string): boolean {
  const directory = attempt(() => readlinkSync(`/proc/${pid}/cwd`))
  return directory.startsWith(root) || attempt(() => readFileSync(`/proc/${pid}/environ`, 'utf8')).includes(root)
}

/** Another's process, or one that has just ended, reads as nothing. */
function attempt(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
