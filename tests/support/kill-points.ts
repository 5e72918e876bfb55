import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SessionEvent } from '../../src/core/events/events.ts'
import type { Item } from '../../src/core/events/items.ts'
import { type RunningCodemachine, startCodemachine } from './codemachine.ts'
import type { TestPlace } from './place.ts'

/** Who gets the SIGKILL: codemachine itself, every app-server that it runs, or first these and then codemachine. */
type Victim = 'codemachine' | 'codex' | 'both'

/**
 * Where a SIGKILL strikes: at the nth line of a kind in the journal, before it is written, with half of it written, or
 * right after it (`state`: only one that enters this state of a template); while the nth git command of a name runs; when the nth file that ends so has all of its content, but
 * not its name yet; or some time after the nth of all these things, whichever it is.
 */
export type KillPoint = { victim: Victim; n: number } & (
  | { event: SessionEvent['type']; item?: Item['kind']; state?: string; when: 'before' | 'torn' | 'after' }
  | { git: string }
  | { file: string }
  | { any: 'moment'; delayMs: number }
)

const SWITCH = fileURLToPath(new URL('../doors/cli/kill-matrix/kill-switch.ts', import.meta.url))

/**
 * Starts codemachine so that the SIGKILL strikes at the first of these points that has not been struck in this place,
 * and then, if codemachine itself lives on, at the next. `n` counts from the start of the process, or from the point before.
 */
export function startWithKills(
  place: TestPlace,
  args: readonly string[],
  points: readonly KillPoint[],
): RunningCodemachine {
  const env = {
    NODE_OPTIONS: `--import=${SWITCH}`,
    KILL_POINTS: JSON.stringify(points),
    KILL_REPORT: reportOf(place),
  }
  return startCodemachine(place, args, { env })
}

/** How many app-servers were killed at each point that was struck, in the order of the points. */
export function killsIn(place: TestPlace): number[] {
  const report = reportOf(place)
  return existsSync(report) ? readFileSync(report, 'utf8').trim().split('\n').map(Number) : []
}

function reportOf(place: TestPlace): string {
  return join(place.root, 'kills')
}

/** A point in words. */
export function describePoint(point: KillPoint): string {
  if ('any' in point) return `${point.victim} ${point.delayMs} ms after moment ${point.n}`
  if ('git' in point) return `${point.victim} at git ${point.git} ${point.n}`
  if ('file' in point) return `${point.victim} before ${point.file} ${point.n} has its name`
  const what = [point.event, point.item, point.state].filter(each => each !== undefined).join(' ')
  return `${point.victim} ${point.when === 'torn' ? 'in' : point.when} ${what} ${point.n}`
}
