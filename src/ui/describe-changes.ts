import { unreachable } from '../base/errors.ts'
import type { Item, ItemFileChange } from '../session/items.ts'
import { type Description, describe } from './description.ts'
import { shownPath } from './shown-path.ts'

const MOST_FILES = 20

/** The files of a file change, one a line: `✎ src/a.ts (+12 −3)`. Paths are shown relative to `directory`. */
export function describeChanges(item: Extract<Item, { kind: 'file-change' }>, directory: string): Description {
  const applied = item.status === 'completed'
  const lines = item.changes
    .slice(0, MOST_FILES)
    .map(change => `✎ ${describeChange(change, directory)}${applied ? '' : `  → ${item.status}`}`)
  const left = item.changes.length - lines.length
  if (left > 0) lines.push(`✎ … and ${left} more`)
  return describe(lines.join('\n') || '✎ no file', applied ? 'plain' : 'warning')
}

function describeChange(change: ItemFileChange, directory: string): string {
  const path = shownPath(change.path, directory)
  const { added, removed, cut } = countLines(change)
  const more = cut ? ', and more' : ''
  switch (change.change) {
    case 'add':
      return `new ${path} (+${added}${more})`
    case 'delete':
      return `deleted ${path}`
    case 'update':
      return `${path} (+${added} −${removed}${more})`
    case 'move':
      return `${path} → ${shownPath(change.movedTo ?? '?', directory)} (+${added} −${removed}${more})`
    default:
      return unreachable(change.change)
  }
}

/** Lines of a change; `cut` if its diff is longer than what was kept. */
function countLines({ change, diff }: ItemFileChange): { added: number; removed: number; cut: boolean } {
  const kept = diff.replace(/\n\[… \d+ more characters\]$/, '')
  const cut = kept !== diff
  const lines = kept.replace(/\n$/, '').split('\n')
  if (change === 'add') return { added: kept === '' ? 0 : lines.length, removed: 0, cut }
  // Before the first hunk a diff may name its files, in lines that begin with `---` and `+++`.
  const hunks = lines.slice(lines.findIndex(line => line.startsWith('@@')) + 1)
  const starting = (sign: string) => hunks.filter(line => line.startsWith(sign)).length
  return { added: starting('+'), removed: starting('-'), cut }
}
