import type { PlanStep } from '../session/state.ts'
import { oneLine } from './safe-text.ts'

const MOST_STEPS = 20
const STEP_CHARS = 80
const MARKS = { completed: '[x]', 'in-progress': '[>]', pending: '[ ]' }

/** The steps of a plan on one line: `[x] read  [>] write  [ ] test`. */
export function describePlan(steps: readonly PlanStep[]): string {
  const shown = steps.slice(0, MOST_STEPS).map(({ step, status }) => `${MARKS[status]} ${oneLine(step, STEP_CHARS)}`)
  const left = steps.length - shown.length
  return [...shown, ...(left > 0 ? [`… and ${left} more`] : [])].join('  ')
}
