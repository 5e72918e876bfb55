import { unreachable } from '../../base/errors.ts'
import type { Item, ItemFileChange } from '../../session/items.ts'
import { wrapLine } from '../cells.ts'
import { formatCount } from '../format-count.ts'
import { shownPath } from '../shown-path.ts'
import type { Theme } from '../theme.ts'
import type { BlockOptions } from './block-options.ts'
import { diffLines } from './diff-lines.ts'
import { type DiffRow, readDiff } from './read-diff.ts'

const MOST_FILES = 20
const MOST_ROWS_OF_A_FILE = 40
const MOST_ROWS = 120

/** What was done to files: each with its name, how many lines came and went, and its diff. */
export function changeLines(
  item: Extract<Item, { kind: 'file-change' }>,
  directory: string,
  options: BlockOptions,
): string[] {
  const { columns, theme, full } = options
  const changes = full ? item.changes : item.changes.slice(0, MOST_FILES)
  const lines: string[] = []
  let room = full ? Number.POSITIVE_INFINITY : MOST_ROWS
  for (const change of changes) {
    const rows = rowsOf(change, full)
    const most = full ? rows.length : Math.min(room, MOST_ROWS_OF_A_FILE)
    const fate = item.status === 'completed' ? '' : theme.paint('warning', `  → ${item.status}`)
    lines.push(...wrapLine(nameOf(change, directory, theme) + counted(change, theme) + fate, columns))
    for (const line of diffLines(rows, most, options)) lines.push(line)
    room -= Math.min(rows.length, most)
  }
  const left = item.changes.length - changes.length
  if (left > 0) lines.push(...wrapLine(theme.paint('dim', `… and ${formatCount(left, 'more file')}`), columns))
  return lines.length === 0 ? wrapLine('no file changed', columns) : lines
}

/** What was in a file that is gone is of interest only where all is shown. */
function rowsOf({ change, diff }: ItemFileChange, full: boolean): DiffRow[] {
  if (change === 'delete') return full ? readDiff(diff, 'removed') : []
  return readDiff(diff, change === 'add' ? 'added' : 'same')
}

function nameOf({ change, path, movedTo }: ItemFileChange, directory: string, theme: Theme): string {
  const name = theme.paint('strong', shownPath(path, directory))
  const sign = theme.symbols ? theme.paint('accent', '✎ ') : ''
  switch (change) {
    case 'add':
      return `${sign}new ${name}`
    case 'delete':
      return `${sign}deleted ${name}`
    case 'update':
      return `${sign}${theme.symbols ? '' : 'changed '}${name}`
    case 'move':
      return `${sign}moved ${name} to ${theme.paint('strong', shownPath(movedTo ?? '?', directory))}`
    default:
      return unreachable(change)
  }
}

function counted(change: ItemFileChange, theme: Theme): string {
  if (change.change === 'delete') return ''
  const rows = rowsOf(change, true)
  const count = (kind: DiffRow['kind']) => rows.filter(row => row.kind === kind).length
  const [added, removed] = [count('added'), count('removed')]
  const cut = rows.some(row => row.kind === 'note' && row.text.startsWith('[')) ? ' and more' : ''
  const counts = [
    ...(added > 0 ? [theme.paint('added', `+${added}`)] : []),
    ...(removed > 0 ? [theme.paint('removed', `−${removed}`)] : []),
  ]
  return counts.length === 0 ? '' : `  ${counts.join(' ')}${cut}`
}
