import { unreachable } from '../../base/errors.ts'
import type { ResumableSession, StartFacts } from '../../project/login.ts'
import type { Keymap } from '../../project/settings/keys.ts'
import { cutLine, widthOf, wrapLine } from '../../tell/words/cells.ts'
import type { LoginState } from '../../tell/words/login.ts'
import { formatCount, formatSpan } from '../../tell/words/numbers.ts'
import { oneLine, safeText, titleLine } from '../../tell/words/safe-text.ts'
import { firstRows, type LineOptions, type LiveOptions } from './blocks/layout.ts'
import type { SlashCommand } from './composer/completion.ts'
import type { Role, Theme } from './terminal/theme.ts'
import { keyRows } from './view/key-overlay.ts'

/** The start screen: the logo (unless `hasLogo` is false) and the known facts, on at most `rows` lines of at most `columns` cells. `now`: Unix ms. */
export function startLines(
  facts: StartFacts,
  { columns, rows, theme, now, hasLogo = true }: LiveOptions & { hasLogo?: boolean },
): string[] {
  const all = factsOf(facts, now)
  const logo = hasLogo ? logoLines({ columns, rows, theme }) : []
  const isTight = rows < 8
  const head = isTight || !hasLogo ? logo : [...logo, '']
  const shown = mostImportant(all, Math.min(rows - head.length, isTight ? 4 : all.length))
  let spare = rows - head.length - shown.length
  const lines = shown.flatMap(fact => {
    const drawn = factLines(fact, Math.min(fact.most ?? 1, 1 + spare), { columns, theme })
    spare -= drawn.length - 1
    return drawn
  })
  return [...head, ...lines].slice(0, Math.max(0, rows)).map(line => cutLine(line, columns))
}

/** A line of the start screen; without room for all of them, those of the lowest rank are left out. */
interface Fact {
  label: string
  /** A safe text; null if it is not known yet. */
  text: string | null
  role: Role
  rank: number
  /** The most rows that it takes; default 1. */
  most?: number
}

/** A fact on at most `most` rows, its label before the first. */
function factLines({ label, text, role }: Fact, most: number, { columns, theme }: LineOptions): string[] {
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
// Narrower than this, texts are not wrapped.
const LEAST_CELLS = 12
const MISSING_ROWS = 3
const TEXT_CHARS = 500
const GOAL_CHARS = 60

function mostImportant(facts: readonly Fact[], count: number): readonly Fact[] {
  const kept = new Set([...facts].sort((a, b) => b.rank - a.rank).slice(0, Math.max(0, count)))
  return facts.filter(fact => kept.has(fact))
}

function factsOf(facts: StartFacts, now: number): Fact[] {
  const { mode, directory, codex, login, model, usualModel, wouldProve, queue, resumable, missing } = facts
  const plain = (label: string, text: string | null, rank: number): Fact => ({ label, text, role: 'plain', rank })
  return [
    ...missing.map((text, index): Fact => {
      const [label, hint, rank] = index === 0 ? ['Missing', '/doctor: ', 100] : ['', '', 55 - index]
      return { label, text: hint + oneLine(text, TEXT_CHARS), role: 'warning', rank, most: MISSING_ROWS }
    }),
    plain('Enter', 'type a goal; codemachine works until it is done', 76),
    plain('/start', mode && `starts a ${safe(mode)}, from the specification (/templates changes it)`, 70),
    plain('Directory', directory && safe(directory), 90),
    plain('Branch', branchOf(facts), 65),
    plain('Model', model && modelInWords(model, usualModel), 80),
    ...(codex?.kind === 'missing' ? [] : [plain('Codex', codex && safe(codex.version), 60)]),
    ...(codex?.kind === 'missing' ? [] : [loginFact(login)]),
    ...(wouldProve ? [plain('Proof', `nothing checks your goal. ${safe(wouldProve)}`, 45)] : []),
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
  if (git.kind === 'none') return 'not a git repository'
  return git.branch === null ? 'none is checked out' : safe(git.branch)
}

/** `gpt-5.5, codex's default, effort high`. */
function modelInWords({ model, effort, provider }: NonNullable<StartFacts['model']>, usual: string | null): string {
  const ofCodex = usual === null ? "codex's default" : `${safe(usual)}, codex's default`
  const named = provider === null || provider === CODEX ? ofCodex : `the model of ${safe(provider)}`
  const name = model === null ? named : safe(model)
  return effort === null ? name : `${name}, effort ${safe(effort)}`
}

/** The provider that is what codex itself is configured with. */
const CODEX = 'codex'

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
  return `${formatCount(queue.length, 'prompt')}, next: "${titleLine(queue[0] ?? '', GOAL_CHARS)}"`
}

function sessionInWords({ id, goal, rounds, stopped, at }: ResumableSession, now: number): string {
  const [length = '', unit = ''] = formatSpan(now - at).split(' ')
  const ago = now - at < 60_000 ? 'just now' : `${length} ${unit} ago`
  return `${safe(id)} "${titleLine(goal, GOAL_CHARS)}" · ${formatCount(rounds, 'round')}, ${safe(stopped)} ${ago}`
}

/** The logo: block letters from 70 columns and 18 rows on, a smaller figure from 40 and 13 on, else one line of words. */
function logoLines({ columns, rows, theme }: Omit<LiveOptions, 'now'>): string[] {
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

/** The keys and commands for a screen reader, on lines of at most `columns` cells; others see `KeyOverlay`. */
export function helpLines({
  columns,
  theme,
  commands,
  keymap,
}: LineOptions & { commands: readonly SlashCommand[]; keymap: Keymap }): string[] {
  const described = commands.map(({ name, description, note }) => {
    return [`/${name}`, note === null ? description : `${description} (${note})`] as const
  })
  return [
    theme.paint('heading', 'Keys'),
    ...table(
      keyRows(keymap, ({ context }) => context === 'field', 'does'),
      columns,
      theme,
    ),
    '',
    theme.paint('heading', 'Commands'),
    ...table(described, columns, theme),
  ]
}

/** A table of two columns, the second one wrapped; on a narrow terminal it stands below the first. */
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
