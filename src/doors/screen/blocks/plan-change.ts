import { codeBlock } from '../../../base/markdown.ts'
import type { RecordedOf } from '../../../core/events/events.ts'
import { wrapLine } from '../../../tell/words/cells.ts'
import type { Description } from '../../../tell/words/names.ts'
import { formatCount } from '../../../tell/words/numbers.ts'
import { type PlanChangeInWords, planChangeInWords } from '../../../tell/words/plan.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import { diffLines, readDiff } from './file-changes.ts'
import { type BlockOptions, describedLines, roleOf, underPrefix } from './layout.ts'
import { markdownLines } from './markdown.ts'

/** The most rows of a plan change, or of one file of it, in the scrollback. */
const PLAN_ROWS = 60

/** What a plan change did, by tasks, below the first line of its description; in full, and of an older version, its diffs. */
export function replanLines(
  event: RecordedOf<'replanned'>,
  description: Description | null,
  options: BlockOptions,
): string[] {
  const heading = description && { ...description, more: [] }
  const change = planChangeInWords(event)
  return [
    ...describedLines(heading, options),
    ...(change === null ? [] : planChangeLines(change, options)),
    ...(change === null || options.full ? diffsOfPlan(event.files, options) : []),
  ]
}

/** A row for each task, with its sign; a screen reader reads a word in its place. */
function planChangeLines({ tasks, left, main }: PlanChangeInWords, { columns, theme, full }: BlockOptions): string[] {
  const most = full ? tasks.length : PLAN_ROWS
  const rest = left + Math.max(0, tasks.length - most)
  return [
    ...tasks.slice(0, most).flatMap(({ sign, text, tone }) => {
      const role = roleOf(tone)
      const first = theme.paint(role, theme.symbols ? `  ${sign} ` : `  ${SIGN_WORDS[sign] ?? sign} `)
      return underPrefix({ first, columns }, inner => wrapLine(theme.paint(role, oneLine(text, LINE_CHARS)), inner))
    }),
    ...(rest > 0 ? wrapLine(theme.paint('dim', `  … and ${formatCount(rest, 'more task')}`), columns) : []),
    ...(main === null ? [] : wrapLine(theme.paint('dim', `  ${main}`), columns)),
  ]
}

/** What a change did to the files of a plan, and what stands in them now; for the pager. */
export function planFileLines(
  { files, now }: { files: RecordedOf<'replanned'>['files']; now: readonly { file: string; text: string }[] },
  options: BlockOptions,
): string[] {
  const text = now.map(({ file, text: content }) =>
    file.endsWith('.json')
      ? `# ${file}\n\n${codeBlock(content, 'json')}`
      : `# ${file}\n\n${codeBlock(content, 'markdown')}`,
  )
  return [
    ...diffsOfPlan(files, { ...options, full: true }),
    '',
    ...markdownLines(text.join('\n\n'), { ...options, first: true }),
  ]
}

const SIGN_WORDS: Readonly<Record<string, string>> = { '+': 'new:', '-': 'gone:', '~': 'changed:', '=': '' }
const LINE_CHARS = 1_000

/** The diffs of the files of a plan. */
function diffsOfPlan(files: RecordedOf<'replanned'>['files'], options: BlockOptions): string[] {
  return [
    ...files.flatMap(({ file, diff }) => {
      const rows = readDiff(diff, 'same')
      return [
        ...wrapLine(options.theme.paint('accent', file), options.columns),
        ...diffLines(rows, options.full ? rows.length : PLAN_ROWS, options),
      ]
    }),
  ]
}
