import {
  chordLabel,
  KEY_ACTIONS,
  type KeyAction,
  type KeyActionId,
  type KeyContext,
  type Keymap,
} from '../../../project/settings/keys.ts'
import { cutLine, padLine, widthOf, wrapLine } from '../../../tell/words/cells.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { SlashCommand } from '../composer/completion.ts'
import type { Key } from '../composer/keys.ts'
import type { Theme } from '../terminal/theme.ts'
import {
  type FullView,
  fittingHints,
  type Pointer,
  rowsMoved,
  type Stage,
  type ViewFrame,
  viewChord,
} from './full-view.ts'

/** The keys of a context with what they do, as they are remapped: rows of `[keys, text]`, each of other keys. */
export function keyRows(keymap: Keymap, is: (action: KeyAction) => boolean, as: 'label' | 'does'): [string, string][] {
  const rows = new Map<string, string>()
  for (const each of KEY_ACTIONS.filter(each => is(each)) as readonly KeyAction[]) {
    const keys = keymap
      .chordsOf(each.id as KeyActionId)
      .slice(0, MOST_CHORDS)
      .map(chordLabel)
      .join(' ')
    if (keys === '') continue
    const { label, does } = keymap.wordsOf(each)
    const text = (as === 'does' || label === '' ? does : label).replaceAll('`', '')
    const before = rows.get(keys)
    rows.set(
      keys,
      before === undefined ? text : `${before}; if the field is empty: ${text.charAt(0).toLowerCase()}${text.slice(1)}`,
    )
  }
  return [...rows]
}

/** As many keys of one action are shown. */
const MOST_CHORDS = 3

interface KeyOverlayOptions {
  keymap: Keymap
  theme: Theme
  commands: readonly SlashCommand[]
  /** The kind of view that it is opened from, whose keys come first; left out: the field. */
  from?: ViewKind
}

type ViewKind = Exclude<KeyContext, 'field' | 'view'>

/** All keys and commands, in two columns where there is room; it scrolls. */
export class KeyOverlay implements FullView {
  readonly #options: KeyOverlayOptions
  #top = 0
  #height = 1
  #lines: readonly string[] = []

  constructor(options: KeyOverlayOptions) {
    this.#options = options
  }

  frame({ columns, rows }: { columns: number; rows: number }): ViewFrame {
    const { theme, keymap } = this.#options
    this.#lines = overlayLines(this.#options, columns)
    this.#height = Math.max(1, rows - 1)
    this.#move(0)
    const shown = this.#lines.slice(this.#top, this.#top + this.#height)
    while (shown.length < this.#height) shown.push('')
    const more = this.#lines.length - this.#top - this.#height
    const wayOut = keymap.label('close')
    const hints = [`${keymap.label('down')} ${keymap.label('up')} scroll`, `${wayOut} back`]
    const line = fittingHints([...(more > 0 ? [`${more} more below`] : []), ...hints], { columns, wayOut }).join(' · ')
    return { lines: [...shown, theme.paint('selected', padLine(cutLine(line, columns), columns))], caret: null }
  }

  press(key: Key, stage: Pick<Stage, 'close'>): void {
    const action = this.#options.keymap.inView('pager', viewChord(key))
    if (action === 'close' || action === 'keys_here') stage.close()
    else if (action === 'start') this.#top = 0
    else if (action === 'end') this.#move(this.#lines.length)
    else if (action !== null) this.#move(rowsMoved(action, this.#height) ?? 0)
  }

  point(pointer: Pointer): void {
    if (pointer.kind === 'wheel') this.#move(pointer.rows)
  }

  #move(rows: number): void {
    this.#top = Math.max(0, Math.min(this.#top + rows, this.#lines.length - this.#height))
  }
}

/** The overlay as a view of some kind opens it, whose keys come first. */
export function keysOfView(from: ViewKind, { keymap, theme }: Pick<KeyOverlayOptions, 'keymap' | 'theme'>): KeyOverlay {
  return new KeyOverlay({ keymap, theme, commands: [], from })
}

/** From this width on there are two columns. */
const TWO_COLUMNS_FROM = 64
/** From this width of a column on it says more than a name. */
const WORDS_FROM = 56

function overlayLines({ keymap, theme, commands, from }: KeyOverlayOptions, columns: number): string[] {
  const count = columns >= TWO_COLUMNS_FROM ? 2 : 1
  const width = Math.floor((columns - (count - 1) * 2) / count)
  const as = width >= WORDS_FROM ? 'does' : 'label'
  const ofView = (kind: KeyContext): [string, string][] => keyRows(keymap, ({ context }) => context === kind, as)
  const inField: Section[] = [
    ['In the field', keyRows(keymap, ({ context, isEdit }) => context === 'field' && isEdit !== true, 'label')],
    ['In its text', keyRows(keymap, ({ isEdit }) => isEdit === true, as)],
  ]
  const inViews: Section = ['In the log, lists and changes', ofView('view')]
  const own = VIEW_KINDS.map(([kind, head]): [ViewKind, Section] => [kind, [head, ofView(kind)]])
  const sections = [
    ...own.filter(([kind]) => kind === from).map(([, section]) => section),
    ...(from === undefined ? [...inField, inViews] : [inViews]),
    ...own.filter(([kind]) => kind !== from).map(([, section]) => section),
    ...(from === undefined ? [] : inField),
  ].filter(([, rows]) => rows.length > 0)
  const ofKeys = sections.flatMap(([head, rows]) => [
    theme.paint('heading', cutLine(head, columns)),
    ...inColumns(rows, { count, width, theme }),
    '',
  ])
  return commands.length === 0
    ? ofKeys.slice(0, -1)
    : [...ofKeys, ...commandLines({ keymap, theme, commands }, columns)]
}

/** The names of the commands; the palette and the popup of `/` say what each does. */
function commandLines(
  { keymap, theme, commands }: Pick<KeyOverlayOptions, 'keymap' | 'theme' | 'commands'>,
  columns: number,
): string[] {
  const key = keymap.label('palette')
  const width = Math.max(...commands.map(({ name }) => widthOf(name))) + 1
  const names = commands.map(({ name }) => padLine(`/${name}`, width)).join(' ')
  const head = key === '' ? 'Commands' : `Commands (${key} says what each does)`
  return [
    theme.paint('heading', cutLine(head, columns)),
    ...wrapLine(names, Math.max(1, columns - 2)).map(line => theme.paint('accent', `  ${line}`.trimEnd())),
  ]
}

/** A heading, and its rows of keys and text. */
type Section = [string, [string, string][]]

const VIEW_KINDS: readonly [ViewKind, string][] = [
  ['pager', 'In the log'],
  ['list', 'In lists'],
  ['review', 'In changes'],
  ['question', 'In a question'],
]

/** Rows one below the other, in columns that are read from top to bottom; what is too wide for its column is wrapped. */
function inColumns(
  rows: readonly [string, string][],
  { count, width, theme }: { count: number; width: number; theme: Theme },
): string[] {
  const most = Math.max(1, Math.floor(width * MOST_OF_KEYS))
  const keys = Math.min(most, Math.max(...rows.map(([key]) => widthOf(key)), 1))
  const cells = rows.map(row => cellLines(row, { keys, width, theme }))
  const height = Math.ceil(cells.flat().length / count)
  const columns: string[][] = [[]]
  for (const cell of cells) {
    // A row that reaches beyond the middle still belongs to the first column.
    if ((columns.at(-1)?.length ?? 0) >= height && columns.length < count) columns.push([])
    columns.at(-1)?.push(...cell)
  }
  return Array.from({ length: Math.max(...columns.map(each => each.length)) }, (_, at) => {
    const line = columns
      .map((each, column) => (column === columns.length - 1 ? (each[at] ?? '') : padLine(each[at] ?? '', width)))
      .join('  ')
      .trimEnd()
    return cutLine(line, count * width + (count - 1) * 2)
  })
}

/** The share of a column that its keys take at most. */
const MOST_OF_KEYS = 0.45

function cellLines(
  [chords, words]: [string, string],
  { keys, width, theme }: { keys: number; width: number; theme: Theme },
): string[] {
  const left = wrapLine(chords, keys)
  const right = wrapLine(oneLine(words, 300), Math.max(1, width - keys - 4))
  return Array.from({ length: Math.max(left.length, right.length) }, (_, at) =>
    `  ${theme.paint('accent', padLine(left[at] ?? '', keys))}  ${right[at] ?? ''}`.trimEnd(),
  )
}
