import { cutLine, widthOf } from '../../tell/words/cells.ts'
import type { StatusReport } from '../../tell/words/status.ts'
import { roleOfStanding } from '../screen/blocks/layout.ts'
import type { CliContext } from '../screen/cli-context.ts'
import { openTheme, type Role, type Theme } from '../screen/terminal/theme.ts'
import { columnsOf } from './decision-prompt.ts'

// Loaded only for a terminal with colours: what is written into a file or a pipe stays as it is without them.

/** A column of a table: its head, and whether its cells stand to the right. */
export interface Column {
  head: string
  isNumber?: true
  /** Whether it is left out, the last such column first, where the last one has no room else. */
  isSpare?: true
}

/** A cell: a safe text on one line, and how it is painted. */
export type Cell = readonly [text: string, role: Role]

/**
 * Rows as a table for a terminal, with a head; each line ends with a newline. Columns are as wide as their widest cell; the last one
 * has what is left of the terminal, and its texts are cut at words.
 * @param indent stands before each line
 */
export function tableLines(
  context: Pick<CliContext, 'env' | 'stdout'>,
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  indent = '',
): string {
  const theme = themeOf(context)
  const widths = columns.map(({ head }, at) => Math.max(widthOf(head), ...rows.map(row => widthOf(row[at]?.[0] ?? ''))))
  const before = widths.slice(0, -1).reduce((sum, width) => sum + width + GAP.length, indent.length)
  const spare = columns.findLastIndex(({ isSpare }) => isSpare)
  if (columnsOf(context) - before < LEAST_LAST && spare !== -1) {
    return tableLines(
      context,
      columns.toSpliced(spare, 1),
      rows.map(row => row.toSpliced(spare, 1)),
      indent,
    )
  }
  const last = Math.max(LEAST_LAST, columnsOf(context) - before)
  const line = (cells: readonly Cell[]) => {
    const painted = cells.map(([text, role], at) => {
      if (at === columns.length - 1) return theme.paint(role, cutLine(text, last))
      const space = ' '.repeat(Math.max(0, (widths[at] ?? 0) - widthOf(text)))
      const shown = theme.paint(role, text)
      return columns[at]?.isNumber ? space + shown : shown + space
    })
    return `${indent}${painted.join(GAP).trimEnd()}\n`
  }
  return [columns.map(({ head }) => [head, 'dim'] as const), ...rows].map(line).join('')
}

const GAP = '  '
/** A narrower last column would say nothing; on such a terminal its lines are broken. */
const LEAST_LAST = 20

/** The lines of `status` for a terminal: what runs in bold, labels dim, and the state in the colour of how it stands. */
export function paintedStatus(
  context: Pick<CliContext, 'env' | 'stdout'>,
  lines: readonly string[],
  { runner, session }: Pick<StatusReport, 'runner' | 'session'>,
): string[] {
  const theme = themeOf(context)
  return lines.map(line => {
    const [, label = '', text = ''] = /^( {2}[a-z]+(?: [a-z]+)* +)(.*)$/.exec(line) ?? []
    if (label === '') return theme.paint(runner === null ? 'dim' : 'strong', line)
    return `${theme.paint('dim', label)}${paintFact(label.trim(), text, session, theme)}`
  })
}

function paintFact(label: string, text: string, session: StatusReport['session'], theme: Theme): string {
  switch (label) {
    case 'session': {
      const [, id = '', goal = ''] = /^(\S+)( .*)?$/.exec(text) ?? []
      return `${theme.paint('accent', id)}${goal}`
    }
    case 'state':
      return theme.paint(session === null ? 'plain' : roleOfStanding(session), text)
    case 'stuck':
    case 'waits':
    case 'claim':
    case 'asked':
    case 'warned':
      return theme.paint('warning', text)
    default:
      return text
  }
}

/** A heading, cut to the width of the terminal. */
export function headed(context: Pick<CliContext, 'env' | 'stdout'>, text: string, role: Role): string {
  return themeOf(context).paint(role, cutLine(text, columnsOf(context)))
}

function themeOf({ env }: Pick<CliContext, 'env'>): Theme {
  return openTheme({ theme: 'auto', env, reader: false })
}
