import { unreachable } from '../base/errors.ts'
import type { GateResult, GateStatus, GateTime } from '../session/gate.ts'
import { formatCount } from './format-count.ts'
import { oneLine } from './safe-text.ts'

const NAME_CHARS = 120
const PATH_CHARS = 300
const MOST_FILES = 10

/**
 * The name of a gate, which may be a whole command, as it is shown: on one line, at most 120 characters, and between
 * backticks if it could not be told from the words around it.
 */
export function gateName(name: string): string {
  const line = oneLine(name, NAME_CHARS)
  return MIXES_WITH_WORDS.test(line) ? `\`${line}\`` : line
}

const MIXES_WITH_WORDS = /[,;:()]/

/** How a gate came out: `passed`, `failed (exit code 1)`. */
export function wordsForGate({ status, exitCode }: Pick<GateResult, 'status' | 'exitCode'>): string {
  switch (status) {
    case 'passed':
      return 'passed'
    case 'flaky':
      return 'flaky'
    case 'failed':
      return `failed${exitCode === null ? '' : ` (exit code ${exitCode})`}`
    case 'timed-out':
      return 'timed out'
    case 'not-started':
      return 'could not be run'
    case 'broken-off':
      return 'broken off'
    default:
      return unreachable(status)
  }
}

/** Of a flaky gate, why it is called so. */
export function wordsForFlaky({ exitCode }: Pick<GateResult, 'exitCode'>): string {
  const code = exitCode === null ? '' : ` (exit code ${exitCode})`
  return `it failed${code}, and passed when it was run again on the same files`
}

/** How a gate that did not pass had come out before round 1; null if that tells nothing. */
export function wordsForBefore(first: GateStatus, now: GateStatus): string | null {
  if (first === 'flaky') return 'it was flaky before round 1'
  if (first === 'passed' || first === 'broken-off') return null
  return first === 'failed' && now === 'failed'
    ? 'it failed before round 1, too'
    : 'it did not pass before round 1 either'
}

/** What a gate did to the files that it checks: `it changed 2 files itself, which is not …: a, b`; null if nothing. */
export function wordsForChangedByGate({ changed, changedCount }: ChangedByGate): string | null {
  if (changedCount === 0) return null
  const shown = changed.slice(0, MOST_FILES).map(path => oneLine(path, PATH_CHARS))
  const left = changedCount - shown.length
  const list = [...shown, ...(left > 0 ? [`… and ${left} more`] : [])].join(', ')
  return `it changed ${formatCount(changedCount, 'file')} itself, which is not taken for the agent's work: ${list}`
}

type ChangedByGate = Pick<GateResult, 'changed' | 'changedCount'>

/** When a gate ran, if that is not because done was claimed: `before round 1`. */
export function wordsForGateTime(when: GateTime, round: number): string | null {
  switch (when) {
    case 'before':
      return 'before round 1'
    case 'after-round':
      return `after round ${round}`
    case 'tasks':
      return `for the tasks of round ${round}`
    case 'claim':
      return null
    default:
      return unreachable(when)
  }
}
