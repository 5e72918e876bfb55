import type { PlanStep } from '../../session/state.ts'
import { wrapLine } from '../cells.ts'
import { oneLine } from '../safe-text.ts'
import type { Role, Theme } from '../theme.ts'
import type { BlockOptions } from './block-options.ts'
import { underPrefix } from './under-prefix.ts'

const MOST_STEPS = 20
const STEP_CHARS = 500
const EXPLANATION_CHARS = 2000

const MARKS: Readonly<Record<PlanStep['status'], { symbol: string; word: string; mark: Role; text: Role }>> = {
  completed: { symbol: '✔ ', word: 'done: ', mark: 'good', text: 'dim' },
  'in-progress': { symbol: '▸ ', word: 'now: ', mark: 'accent', text: 'strong' },
  pending: { symbol: '○ ', word: 'to do: ', mark: 'dim', text: 'plain' },
}

/** The agent's plan as a list to tick off: `✔ read`, `▸ write`, `○ test`. */
export function checklistLines(
  { explanation, steps }: { explanation: string | null; steps: readonly PlanStep[] },
  { columns, theme, full }: BlockOptions,
): string[] {
  const shown = full ? steps : steps.slice(0, MOST_STEPS)
  const left = steps.length - shown.length
  const why = oneLine(explanation ?? '', EXPLANATION_CHARS)
  return [
    ...wrapLine(theme.paint('strong', 'plan') + (why === '' ? '' : theme.paint('dim', `  ${why}`)), columns),
    ...shown.flatMap(step => stepLines(step, columns, theme)),
    ...(left > 0 ? wrapLine(theme.paint('dim', `… and ${left} more`), columns) : []),
  ]
}

function stepLines({ step, status }: PlanStep, columns: number, theme: Theme): string[] {
  const { symbol, word, mark, text } = MARKS[status]
  const sign = theme.symbols ? symbol : word
  const prefix = { first: theme.paint(mark, sign), columns }
  return underPrefix(prefix, inner => wrapLine(theme.paint(text, oneLine(step, STEP_CHARS)), inner))
}
