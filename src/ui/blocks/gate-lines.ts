import type { RecordedOf } from '../../session/events.ts'
import type { SessionState } from '../../session/state.ts'
import { wrapLine } from '../cells.ts'
import { gateInWords } from '../describe-gate.ts'
import { safeText } from '../safe-text.ts'
import type { Theme } from '../theme.ts'
import type { BlockOptions } from './block-options.ts'
import { outputTail } from './command-lines.ts'
import { roleOf } from './described-lines.ts'
import { underPrefix } from './under-prefix.ts'

type GateEnded = RecordedOf<'gate-ended'>

const OUTPUT_LINES = 12

const SIGNS: Readonly<Record<GateEnded['status'], string>> = {
  passed: '✔ ',
  flaky: '! ',
  failed: '✘ ',
  'timed-out': '✘ ',
  'not-started': '✘ ',
  'broken-off': '– ',
}

/**
 * A gate that has run, on a line; below it what is to be said of how it ended, and the last lines that it printed if
 * that is not good; in full all that is kept of them.
 */
export function gateLines(event: GateEnded, state: SessionState, options: BlockOptions): string[] {
  const { columns, theme, full } = options
  const { name, end, time, remarks, notes, isOutputShown, tone } = gateInWords(event, state)
  const paint = (text: string) => theme.paint(roleOf(tone), text)
  const ending = [...(theme.symbols ? besideSign(event, end) : [end]), time].join(', ')
  const line = [ending, ...remarks].join('; ')
  const head = `${signOf(event, theme, paint)}${theme.paint('strong', safeText(name))}${paint(`  ${safeText(line)}`)}`
  return [
    ...wrapLine(head, columns),
    ...underPrefix({ first: '  ', columns }, inner => notes.flatMap(note => wrapLine(paint(safeText(note)), inner))),
    ...(isOutputShown || full ? outputTail(event.output, OUTPUT_LINES, options) : []),
  ]
}

/** How it ended, as far as its sign does not say it. */
function besideSign({ status, exitCode }: GateEnded, end: string): string[] {
  if (status === 'passed') return []
  return [status === 'failed' && exitCode !== null ? `exit ${exitCode}` : end]
}

function signOf({ status }: GateEnded, theme: Theme, paint: (text: string) => string): string {
  return theme.symbols ? paint(SIGNS[status]) : ''
}
