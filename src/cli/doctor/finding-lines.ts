import { styleText } from 'node:util'
import { formatCount } from '../../ui/format-count.ts'
import { oneLine } from '../../ui/safe-text.ts'
import type { Finding } from './finding.ts'

const TEXT_CHARS = 1000
const STATUS_WIDTH = 'problem'.length
const CHECK_WIDTH = 'codex-config'.length
const INDENT = ' '.repeat(STATUS_WIDTH + CHECK_WIDTH + 4)
const COLOURS = { ok: 'green', warning: 'yellow', problem: 'red' } as const

/** A finding for a person: a line, and one with its mend if it has one. */
export function findingLines({ check, status, message, mend }: Finding, colour: boolean): string[] {
  const word = status.padEnd(STATUS_WIDTH)
  const shown = colour ? styleText(COLOURS[status], word, { validateStream: false }) : word
  const line = `${shown}  ${check.padEnd(CHECK_WIDTH)}  ${oneLine(message, TEXT_CHARS)}`
  return mend === null ? [line] : [line, `${INDENT}→ ${oneLine(mend, TEXT_CHARS)}`]
}

/** What all findings come to, in a sentence. */
export function conclusion(findings: readonly Finding[]): string {
  const count = (status: Finding['status']) => findings.filter(finding => finding.status === status).length
  const [problems, warnings] = [count('problem'), count('warning')]
  const noted = warnings === 0 ? '' : ` (${formatCount(warnings, 'warning')})`
  if (problems === 0) return `codemachine can work here${noted}.`
  return `codemachine cannot work here until ${formatCount(problems, 'problem')} ${problems === 1 ? 'is' : 'are'} mended${noted}.`
}
