import type { ResumableSession, StartFacts } from '../app/login.ts'
import { unreachable } from '../base/errors.ts'
import { cutLine, oneLine, safeText, widthOf, wrapLine } from '../words/cells.ts'
import type { LoginState } from '../words/login.ts'
import { formatCount, formatSpan } from '../words/numbers.ts'
import { firstRows } from './blocks/frame.ts'
import { type SlashCommandInfo, slashCommands } from './composer/completion.ts'
import type { Role, Theme } from './terminal/cells.ts'

export interface StartPlace {
  columns: number
  /** The most lines that there may be. */
  rows: number
  theme: Theme
  /** Unix time, ms. */
  now: number
}

/** A line of the start screen; where there is no room for all, those of the lowest rank are left out first. */
interface Fact {
  label: string
  /** Safe to be shown. Null: not known yet. */
  text: string | null
  role: Role
  rank: number
  /** The rows that it takes where there is room; 1 if left out. */
  most?: number
}

/** The start screen: the logo and what is known, on at most `rows` lines of at most `columns` cells. */
export function startLines(facts: StartFacts, { columns, rows, theme, now }: StartPlace): string[] {
  const all = factsOf(facts, now)
  const logo = logoLines({ columns, rows, theme })
  const isTight = rows < 8
  const head = isTight ? logo : [...logo, '']
  const shown = chosen(all, Math.min(rows - head.length, isTight ? 4 : all.length))
  let spare = rows - head.length - shown.length
  const lines = shown.flatMap(fact => {
    const drawn = factLines(fact, Math.min(fact.most ?? 1, 1 + spare), { columns, theme })
    spare -= drawn.length - 1
    return drawn
  })
  return [...head, ...lines].slice(0, Math.max(0, rows)).map(line => cutLine(line, columns))
}

function factLines(
  { label, text, role }: Fact,
  most: number,
  { columns, theme }: Pick<StartPlace, 'columns' | 'theme'>,
): string[] {
  const inner = columns - LABEL_CELLS - 1
  const unknown = theme.symbols ? '…' : 'not known yet'
  const rows =
    most <= 1 || inner < LEAST_CELLS ? [text ?? unknown] : firstRows(wrapLine(text ?? unknown, inner), most, inner)
  return rows.map((row, i) => {
    const shown = i === 0 ? label : ''
    return `${theme.paint('dim', shown.padEnd(LABEL_CELLS))} ${theme.paint(text === null ? 'dim' : role, row)}`
  })
}

const LABEL_CELLS = 'Directory'.length
// Narrower than this, nothing is wrapped.
const LEAST_CELLS = 12
const ROWS_OF_MISSING = 3
const TEXT_CHARS = 500
const GOAL_CHARS = 60

function chosen(facts: readonly Fact[], count: number): readonly Fact[] {
  const kept = new Set([...facts].sort((a, b) => b.rank - a.rank).slice(0, Math.max(0, count)))
  return facts.filter(fact => kept.has(fact))
}

function factsOf(facts: StartFacts, now: number): Fact[] {
  const { mode, directory, codex, login, model, queue, resumable, missing } = facts
  const plain = (label: string, text: string | null, rank: number): Fact => ({ label, text, role: 'plain', rank })
  return [
    ...missing.map((text, index): Fact => {
      const [label, hint, rank] = index === 0 ? ['Missing', '/doctor: ', 100] : ['', '', 55 - index]
      return { label, text: hint + oneLine(text, TEXT_CHARS), role: 'warning', rank, most: ROWS_OF_MISSING }
    }),
    plain('Mode', mode && safe(mode), 70),
    plain('Directory', directory && safe(directory), 90),
    plain('Branch', branchOf(facts), 65),
    plain('Model', model && modelInWords(model), 80),
    ...(codex?.kind === 'missing' ? [] : [plain('Codex', codex && safe(codex.version), 60)]),
    ...(codex?.kind === 'missing' ? [] : [loginFact(login)]),
    ...(queue?.length === 0 ? [] : [plain('Queue', queue && queueInWords(queue), 50)]),
    ...(resumable ?? []).map((session, index) => {
      const text = sessionInWords(session, now) + (index === 0 ? ' · /resume' : '')
      return plain(index === 0 ? 'Resume' : '', text, index === 0 ? 75 : 40 - index)
    }),
  ]
}

function safe(text: string): string {
  return oneLine(text, TEXT_CHARS)
}

function branchOf({ git }: StartFacts): string | null {
  if (git === null) return null
  if (git.kind === 'none') return 'no git'
  return git.branch === null ? 'none is checked out' : safe(git.branch)
}

function modelInWords({ model, effort }: { model: string | null; effort: string | null }): string {
  if (model === null && effort === null) return "codex's own choice"
  const name = model === null ? "codex's own choice" : safe(model)
  return effort === null ? name : `${name}, effort ${safe(effort)}`
}

function loginFact(login: LoginState | null): Fact {
  const fact = { label: 'Login', rank: 78 }
  if (login === null) return { ...fact, text: null, role: 'plain' }
  switch (login.kind) {
    case 'in':
      return { ...fact, text: `logged in with ${safe(login.by)}`, role: 'plain' }
    case 'out':
      return { ...fact, text: 'not logged in: /login', role: 'warning' }
    case 'not-needed':
      return { ...fact, text: 'not needed by this provider', role: 'plain' }
    case 'unknown':
      return { ...fact, text: `not known: ${safe(login.why)}`, role: 'warning' }
    default:
      return unreachable(login)
  }
}

function queueInWords(queue: readonly string[]): string {
  return `${formatCount(queue.length, 'prompt')}, next: "${oneLine(queue[0] ?? '', GOAL_CHARS)}"`
}

function sessionInWords({ id, goal, rounds, stopped, at }: ResumableSession, now: number): string {
  const [length = '', unit = ''] = formatSpan(now - at).split(' ')
  const ago = now - at < 60_000 ? 'just now' : `${length} ${unit} ago`
  return `${safe(id)} "${oneLine(goal, GOAL_CHARS)}" · ${formatCount(rounds, 'round')}, ${safe(stopped)} ${ago}`
}

/** The logo: block letters from 70 columns and 18 rows on, then a smaller figure, then one line; for a screen reader words. */
function logoLines({ columns, rows, theme }: { columns: number; rows: number; theme: Theme }): string[] {
  if (theme.symbols && columns >= 70 && rows >= 18) return theme.gradient(LARGE)
  if (theme.symbols && columns >= 40 && rows >= 13) return theme.gradient(MEDIUM)
  return theme.gradient(['CODE MACHINE'])
}

const LETTERS = {
  C: [' ████', '█    ', '█    ', '█    ', ' ████'],
  O: [' ███ ', '█   █', '█   █', '█   █', ' ███ '],
  D: ['████ ', '█   █', '█   █', '█   █', '████ '],
  E: ['█████', '█    ', '████ ', '█    ', '█████'],
  M: ['█   █', '██ ██', '█ █ █', '█   █', '█   █'],
  A: [' ███ ', '█   █', '█████', '█   █', '█   █'],
  H: ['█   █', '█   █', '█████', '█   █', '█   █'],
  I: ['███', ' █ ', ' █ ', ' █ ', '███'],
  N: ['█   █', '██  █', '█ █ █', '█  ██', '█   █'],
  ' ': [' ', ' ', ' ', ' ', ' '],
} as const

const LARGE = [0, 1, 2, 3, 4].map(row =>
  (['C', 'O', 'D', 'E', ' ', 'M', 'A', 'C', 'H', 'I', 'N', 'E'] as const).map(letter => LETTERS[letter][row]).join(' '),
)

const MEDIUM = [
  '╔═╗╔═╗╔╦╗╔═╗  ╔╦╗╔═╗╔═╗╦ ╦╦╔╗╔╔═╗',
  '║  ║ ║ ║║║╣   ║║║╠═╣║  ╠═╣║║║║║╣ ',
  '╚═╝╚═╝═╩╝╚═╝  ╩ ╩╩ ╩╚═╝╩ ╩╩╝╚╝╚═╝',
]

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
