import { formatDayAndTime } from '../../words/numbers.ts'
import { safeText } from '../../words/safe-text.ts'
import type { Shortened } from '../report-data.ts'
import { codeIn } from '../words.ts'

/** A piece of HTML: what it holds of texts from outside is escaped. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Piece = Html | string | number | null | readonly Piece[]

/** A template of HTML: what is put in is escaped, but for what is HTML already; lists are joined, null is nothing. */
export function html(parts: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return new Html(parts.map((part, index) => part + textOf(pieces[index] ?? null)).join(''))
}

function textOf(piece: Piece): string {
  if (piece === null) return ''
  if (piece instanceof Html) return piece.text
  if (typeof piece === 'object') return piece.map(textOf).join('')
  return escapeHtml(String(piece))
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** A text as it is shown in HTML; what would reorder a line is made visible. */
function escapeHtml(text: string): string {
  return safeText(text).replace(/[&<>"']/g, character => ENTITIES[character] ?? '')
}

/**
 * A table with a row of column names.
 * @param name its class in the page's style
 * @param numbers the first column that holds numbers; left out: none
 */
export function table(name: string, names: readonly string[], rows: readonly Html[], numbers = names.length): Html {
  const head = names.map((name, i) => html`<th scope="col"${i < numbers ? null : new Html(' class="n"')}>${name}</th>`)
  return html`<table class="${name}"><thead><tr>${head}</tr></thead><tbody>${rows}</tbody></table>`
}

/** A part of the page with a heading. `isLong`: on paper it may be broken across sheets. */
export function section(title: string, body: Html, isLong = false): Html {
  return html`<section${isLong ? new Html(' class="long"') : null}><h2>${title}</h2>${body}</section>`
}

/** A list. */
export function items(list: readonly Html[]): Html {
  return html`<ul>${list.map(each => html`<li>${each}</li>`)}</ul>`
}

/** A text from outside, in which what stands between backticks is shown as code. */
export function prose(text: string): Html[] {
  return codeIn(text).map(({ text, isCode }) => (isCode ? html`<code>${text}</code>` : html`${text}`))
}

/** A moment (Unix time, ms) with the text that shows it. */
export function moment(at: number, shown: string): Html {
  return html`<time datetime="${new Date(at).toISOString()}">${shown}</time>`
}

/** A list of which the entries after the first ten are folded away. */
export function folded(list: readonly Html[]): Html {
  if (list.length <= FOLD_AFTER + 2) return items(list)
  const rest = list.slice(FOLD_AFTER)
  return html`${items(list.slice(0, FOLD_AFTER))}<details><summary>${rest.length} more</summary>${items(rest)}</details>`
}

const FOLD_AFTER = 10

/** The entries with a note in the place of what was left out. */
export function withGap<T>(
  { leftOut, leftOutAfter }: Shortened<T>,
  list: readonly Html[],
  note: Html = html`<span class="quiet">${leftOut} more, left out here</span>`,
): Html[] {
  return leftOut === 0 ? [...list] : [...list.slice(0, leftOutAfter), note, ...list.slice(leftOutAfter)]
}

/** A moment in a table: the time of day, and the day too where it is not that of the moment `before`. */
export function timeOfDay(at: number, before: number): Html {
  const [day = '', time = ''] = formatDayAndTime(at).split(' ')
  const isNew = day !== formatDayAndTime(before).slice(0, 10)
  return html`${moment(at, time)}${isNew ? html`<small>${day.slice(5)}</small>` : null}`
}
