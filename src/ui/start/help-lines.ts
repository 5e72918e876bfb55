import { cutLine, widthOf, wrapLine } from '../cells.ts'
import { safeText } from '../safe-text.ts'
import type { Theme } from '../theme.ts'
import { type SlashCommandInfo, slashCommands } from './slash-commands.ts'

export interface HelpPlace {
  columns: number
  theme: Theme
  /** The commands as they are now; as they are before anything is known, if left out. */
  commands?: readonly SlashCommandInfo[]
}

/** Keys and commands, for `/help` and `?`: lines of at most `columns` cells. */
export function helpLines({ columns, theme, commands = slashCommands({ login: null }) }: HelpPlace): string[] {
  const told = commands.map(({ name, description, note }) => {
    return [`/${name}`, note === null ? description : `${description} (${note})`] as const
  })
  return [
    theme.paint('heading', 'Keys'),
    ...table(KEYS, columns, theme),
    '',
    theme.paint('heading', 'Commands'),
    ...table(told, columns, theme),
  ]
}

const KEYS = [
  ['Enter', 'starts a session; while one runs, queues the prompt as the next'],
  ['Tab', 'sends it to the running turn'],
  ['Alt+Up', 'takes the last queued prompt back'],
  ['Esc', 'interrupts the turn: go on, tell it something, skip, or stop'],
  ['Ctrl+C', 'changes the plan; twice: leaves, and the session can be resumed'],
  ['Ctrl+D', 'leaves, if nothing is typed'],
  ['Shift+Enter', 'a new line; so do Alt+Enter, Ctrl+J, and \\ before Enter'],
  ['Up, Down', 'what was typed before'],
  ['Ctrl+R', 'searches what was typed before'],
  ['/', 'commands'],
  ['@', 'files'],
  ['Ctrl+G', 'edits the prompt in $VISUAL or $EDITOR'],
  ['Ctrl+E', 'all logs of the session'],
  ['Ctrl+O', 'the whole output of the last command'],
  ['Ctrl+T', 'tasks'],
  ['Ctrl+_', 'undoes typing'],
  ['Ctrl+L', 'draws the screen anew'],
  ['Ctrl+Z', 'suspends; fg comes back'],
  ['?', 'this, if nothing is typed'],
] as const

/** Two columns; what is too long goes on below itself. On a narrow terminal the second stands under the first. */
function table(rows: readonly (readonly [string, string])[], columns: number, theme: Theme): string[] {
  const first = Math.max(...rows.map(([name]) => widthOf(name))) + 4
  const isNarrow = columns < first + 20
  const indent = isNarrow ? 4 : first
  return rows.flatMap(([name, text]) => {
    const wrapped = wrapLine(safeText(text).replaceAll('\n', ' '), Math.max(2, columns - indent))
    const below = wrapped.map(line => ' '.repeat(indent) + line)
    const label = `  ${theme.paint('accent', name)}`
    if (isNarrow) return [label, ...below].map(line => cutLine(line, columns))
    const gap = ' '.repeat(first - 2 - widthOf(name))
    return [`${label}${gap}${wrapped[0] ?? ''}`, ...below.slice(1)].map(line => cutLine(line, columns))
  })
}
