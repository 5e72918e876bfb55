import type { PlanStep } from '../../../core/state/state.ts'
import { widthOf, wrapLine } from '../../../tell/words/cells.ts'
import { changedSteps, planProgress, type StepChange } from '../../../tell/words/item.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { Role, Theme } from '../terminal/theme.ts'
import { type BlockOptions, type LineOptions, underPrefix } from './layout.ts'

/**
 * The agent's plan as a checklist (`✔ read`, `▸ write`, `○ test`) where it is new, and in full; else what has changed in it:
 * `✔ read · 1 of 3 · now: write`.
 */
export function checklistLines(
  { explanation, steps }: { explanation: string | null; steps: readonly PlanStep[] },
  options: BlockOptions,
): string[] {
  const { columns, theme, full, planBefore = [] } = options
  const changed = full ? null : changedSteps(planBefore, steps)
  if (changed !== null) return changedStepLines(changed, steps, options)
  const shown = full ? steps : steps.slice(0, MOST_STEPS)
  const left = steps.length - shown.length
  const reason = oneLine(explanation ?? '', EXPLANATION_CHARS)
  return [
    ...wrapLine(theme.paint('strong', 'plan') + (reason === '' ? '' : theme.paint('dim', `  ${reason}`)), columns),
    ...shown.flatMap(step => stepLines(step, columns, theme)),
    ...(left > 0 ? wrapLine(theme.paint('dim', `… and ${left} more`), columns) : []),
  ]
}

const MOST_STEPS = 20
const STEP_CHARS = 500
const EXPLANATION_CHARS = 2000

const STEP_MARKS: Readonly<Record<PlanStep['status'], { symbol: string; word: string; mark: Role; text: Role }>> = {
  completed: { symbol: '✔ ', word: 'done: ', mark: 'good', text: 'dim' },
  'in-progress': { symbol: '▸ ', word: 'now: ', mark: 'accent', text: 'strong' },
  pending: { symbol: '○ ', word: 'to do: ', mark: 'dim', text: 'plain' },
}

function changedStepLines(
  changed: readonly StepChange[],
  steps: readonly PlanStep[],
  { columns, theme }: BlockOptions,
): string[] {
  const done = changed.filter(({ status, isNew }) => status === 'completed' && !isNew)
  const begun = changed.filter(({ status, isNew }) => status === 'in-progress' && !isNew)
  // What has come to its end says what is next, as far as there is room for it.
  const next = done.length === 1 && begun.length === 1 ? begun[0] : undefined
  const told = changed.filter(change => change !== next)
  const last = told.findLast(({ status }) => status === 'completed') ?? told.findLast(({ status }) => status !== 'gone')
  const lines = told.slice(0, MOST_STEPS).flatMap(change => {
    const progress = change === last ? planProgress(steps) : null
    return changedStepLine(change, progress, next?.step ?? null, { columns, theme })
  })
  const left = told.length - MOST_STEPS
  return left > 0 ? [...lines, ...wrapLine(theme.paint('dim', `… and ${left} more`), columns)] : lines
}

function changedStepLine(
  { status, step, isNew }: StepChange,
  progress: string | null,
  next: string | null,
  { columns, theme }: LineOptions,
): string[] {
  const { symbol, word, mark, text } = status === 'gone' ? GONE : STEP_MARKS[status]
  const separator = theme.symbols ? ' · ' : ', '
  const name = oneLine(step, STEP_CHARS)
  const words = `${isNew ? 'new: ' : ''}${name}${progress === null ? '' : `${separator}${progress}`}`
  const prefix = { first: theme.paint(mark, theme.symbols ? symbol : word), columns }
  return underPrefix(prefix, inner => {
    const then = progress === null || next === null ? '' : `${separator}now: ${oneLine(next, STEP_CHARS)}`
    const shown = widthOf(words + then) <= inner ? then : ''
    return wrapLine(theme.paint(status === 'completed' ? 'plain' : text, words) + theme.paint('dim', shown), inner)
  })
}

const GONE = { symbol: '– ', word: 'left out: ', mark: 'dim', text: 'dim' } as const

function stepLines({ step, status }: PlanStep, columns: number, theme: Theme): string[] {
  const { symbol, word, mark, text } = STEP_MARKS[status]
  const sign = theme.symbols ? symbol : word
  const prefix = { first: theme.paint(mark, sign), columns }
  return underPrefix(prefix, inner => wrapLine(theme.paint(text, oneLine(step, STEP_CHARS)), inner))
}
