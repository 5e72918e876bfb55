import type { ErrorCode } from '../../base/error-codes.ts'
import { formatCount } from './numbers.ts'
import { oneLine } from './safe-text.ts'

/** Checks of doctor in display order, and those of a fleet's doctor. */
export type Check =
  | 'node'
  | 'directory'
  | 'settings'
  | 'records'
  | 'disk'
  | 'leftovers'
  | 'git'
  | 'codex'
  | 'codex-home'
  | 'codex-config'
  | 'model'
  | 'login'
  | 'sandbox'
  | 'provider'
  | 'engine'
  | 'packages'
  | 'database'
  | 'clock'
  | 'rights'
  | 'schema'
  | 'size'
  | 'workers'
  | 'queue'
  | 'remote'

/** Result of a check. `problem`: codemachine cannot work; `warning`: it can, but a person should know. */
export interface Finding {
  check: Check
  status: 'ok' | 'warning' | 'problem'
  message: string
  /** Its error code; null: nothing to do. */
  code: ErrorCode | null
  /** How to fix it, in one sentence; null: nothing to do. */
  mend: string | null
}

const TEXT_CHARS = 1000
const STATUS_WIDTH = 'problem'.length
const CHECK_WIDTH = 'codex-config'.length
const INDENT = ' '.repeat(STATUS_WIDTH + CHECK_WIDTH + 4)

/**
 * Formats a finding for a person: a line, and another with its fix if it has one.
 * @param paint gives the word of a status, padded, its colour
 */
export function linesOfFinding(
  { check, status, message, code, mend }: Finding,
  paint: (word: string, status: Finding['status']) => string = word => word,
): string[] {
  const word = paint(status.padEnd(STATUS_WIDTH), status)
  const line = `${word}  ${check.padEnd(CHECK_WIDTH)}  ${oneLine(message, TEXT_CHARS)}${code === null ? '' : ` (${code})`}`
  return mend === null ? [line] : [line, `${INDENT}→ ${oneLine(mend, TEXT_CHARS)}`]
}

/** Says that a check has no answer yet after `ms`. */
export function lineOfWaiting(check: Check, ms: number): string {
  return `${check}: no answer yet after ${Math.round(ms / 1000)} s; still waiting.`
}

/**
 * Sums up all findings in a sentence.
 * @param what the subject of the sentence, and where it works
 */
export function conclusionOf(
  findings: readonly Finding[],
  { who, where }: { who: string; where: string } = { who: 'codemachine', where: ' here' },
): string {
  const count = (status: Finding['status']) => findings.filter(finding => finding.status === status).length
  const [problems, warnings] = [count('problem'), count('warning')]
  const noted = warnings === 0 ? '' : ` (${formatCount(warnings, 'warning')})`
  if (problems === 0) return `${who} can work${where}${noted}.`
  return `${who} cannot work${where} until ${formatCount(problems, 'problem')} ${problems === 1 ? 'is' : 'are'} fixed${noted}.`
}
