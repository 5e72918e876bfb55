import type { RecordedOf } from '../../session/events.ts'
import { wrapLine } from '../cells.ts'
import { planInWords } from '../describe-build.ts'
import { taskLines } from '../header/task-lines.ts'
import type { BlockOptions } from './block-options.ts'

const MOST_ROWS = 60

/** A plan that is ready, as a checklist by its phases. */
export function planLines(event: RecordedOf<'plan-ready'>, options: BlockOptions): string[] {
  const { columns, theme, full } = options
  const tasks = event.tasks.map(task => ({ ...task, done: false }))
  const rows = full ? 2 * tasks.length : MOST_ROWS
  const board = { title: null, tasks, current: null }
  return [
    ...wrapLine(theme.paint('strong', planInWords(event)), columns),
    ...taskLines({ board, plan: [] }, { columns, rows, theme }),
  ]
}
