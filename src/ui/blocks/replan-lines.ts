import type { RecordedOf } from '../../session/events.ts'
import { wrapLine } from '../cells.ts'
import type { Description } from '../description.ts'
import type { BlockOptions } from './block-options.ts'
import { describedLines } from './described-lines.ts'
import { diffLines } from './diff-lines.ts'
import { readDiff } from './read-diff.ts'

const MOST_ROWS = 60

/** What a change of plan did to its files, as diffs, below the first line of its description. */
export function replanLines(
  { files }: RecordedOf<'replanned'>,
  description: Description | null,
  options: BlockOptions,
): string[] {
  const heading = description && { ...description, more: [] }
  return [
    ...describedLines(heading, options),
    ...files.flatMap(({ file, diff }) => {
      const rows = readDiff(diff, 'same')
      return [
        ...wrapLine(options.theme.paint('accent', file), options.columns),
        ...diffLines(rows, options.full ? rows.length : MOST_ROWS, options),
      ]
    }),
  ]
}
