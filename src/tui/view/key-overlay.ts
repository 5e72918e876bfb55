import { chordLabel, KEY_ACTIONS, type KeyAction, type KeyActionId, type Keymap } from '../../settings/keys.ts'
import { cutLine, padLine, widthOf } from '../../words/cells.ts'
import { oneLine } from '../../words/safe-text.ts'
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

/** The keys of a context with what they do, as they are remapped: rows of `[keys, text]`. */
export function keyRows(keymap: Keymap, is: (action: KeyAction) => boolean, as: 'label' | 'does'): [string, string][] {
  return KEY_ACTIONS.filter(each => is(each)).flatMap((each: KeyAction) => {
    const chords = keymap.chordsOf(each.id as KeyActionId).slice(0, MOST_CHORDS)
    if (chords.length === 0) return []
    const text = as === 'does' || each.label === '' ? each.does : each.label
    return [[chords.map(chordLabel).join(' '), text.replaceAll('`', '')] as [string, string]]
  })
}

/** As many keys of one action are shown. */
const MOST_CHORDS = 3

interface KeyOverlayOptions {
  keymap: Keymap
  theme: Theme
  commands: readonly SlashCommand[]
}

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
    if (action === 'close' || action === 'keys_here' || action === 'find_back') stage.close()
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

/** From this width on there are two columns. */
const TWO_COLUMNS_FROM = 64
/** From this width of a column on it says more than a name. */
const WORDS_FROM = 56

function overlayLines({ keymap, theme, commands }: KeyOverlayOptions, columns: number): string[] {
  const count = columns >= TWO_COLUMNS_FROM ? 2 : 1
  const width = Math.floor((columns - (count - 1) * 2) / count)
  const as = width >= WORDS_FROM ? 'does' : 'label'
  const described = commands.map(({ name, description }): [string, string] => [`/${name}`, description])
  const sections: [string, [string, string][]][] = [
    ['In the field', keyRows(keymap, ({ context, isEdit }) => context === 'field' && isEdit !== true, as)],
    ['In its text', keyRows(keymap, ({ isEdit }) => isEdit === true, as)],
    ['In the log, lists and changes', keyRows(keymap, ({ context }) => context === 'view', as)],
    ['In the log', keyRows(keymap, ({ context }) => context === 'pager', as)],
    ['In lists', keyRows(keymap, ({ context }) => context === 'list', as)],
    ['In changes', keyRows(keymap, ({ context }) => context === 'review', as)],
    ['Commands', described],
  ]
  return sections.flatMap(([head, rows], at) => [
    ...(at === 0 ? [] : ['']),
    theme.paint('heading', cutLine(head, columns)),
    ...inColumns(rows, { count, width, theme }),
  ])
}

/** Rows one below the other, in columns that are read from top to bottom. */
function inColumns(
  rows: readonly [string, string][],
  { count, width, theme }: { count: number; width: number; theme: Theme },
): string[] {
  const height = Math.ceil(rows.length / count)
  const keys = Math.min(Math.floor(width / 2), Math.max(...rows.map(([key]) => widthOf(key)), 1))
  const cell = (row: [string, string] | undefined) => {
    if (row === undefined) return ''
    const text = cutLine(oneLine(row[1], 300), Math.max(1, width - keys - 4))
    return `  ${theme.paint('accent', padLine(cutLine(row[0], keys), keys))}  ${text}`
  }
  return Array.from({ length: height }, (_, at) => {
    const cells = Array.from({ length: count }, (_, column) => cell(rows[column * height + at]))
    const line = cells
      .map((each, column) => (column === count - 1 ? each : padLine(each, width)))
      .join('  ')
      .trimEnd()
    return cutLine(line, count * width + (count - 1) * 2)
  })
}
