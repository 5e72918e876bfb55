import { formatDayAndTime } from '../ui/format-time.ts'
import { Html, html } from './escape.ts'
import type { Shortened } from './shortened.ts'

/** A part of the page. `isLong`: may go over the edge of a sheet of paper. */
export function section(title: string, body: Html, isLong = false): Html {
  return html`<section${isLong ? new Html(' class="long"') : null}><h2>${title}</h2>${body}</section>`
}

export function items(list: readonly Html[]): Html {
  return html`<ul>${list.map(each => html`<li>${each}</li>`)}</ul>`
}

/** A list of which what comes after the first ten is shown when it is asked for. */
export function folded(list: readonly Html[]): Html {
  if (list.length <= FOLD_AFTER + 2) return items(list)
  const rest = list.slice(FOLD_AFTER)
  return html`${items(list.slice(0, FOLD_AFTER))}<details><summary>${rest.length} more</summary>${items(rest)}</details>`
}

const FOLD_AFTER = 10

/** A text from outside in which what stands between backticks is code. */
export function prose(text: string): Html[] {
  return text.split(/`([^`\n]+)`/).map((part, at) => (at % 2 === 0 ? html`${part}` : html`<code>${part}</code>`))
}

/** The entries with a note in the place of what was left out. */
export function gapItem<T>(
  { leftOut, leftOutAfter }: Shortened<T>,
  list: readonly Html[],
  note: Html = html`<span class="quiet">${leftOut} more, left out here</span>`,
): Html[] {
  return leftOut === 0 ? [...list] : [...list.slice(0, leftOutAfter), note, ...list.slice(leftOutAfter)]
}

/** A moment (Unix time, ms), as it is shown. */
export function moment(at: number, shown: string): Html {
  return html`<time datetime="${new Date(at).toISOString()}">${shown}</time>`
}

/** A moment in a table: the time of day, and the day too where it is not that of the moment `before`. */
export function timeOfDay(at: number, before: number): Html {
  const [day = '', time = ''] = formatDayAndTime(at).split(' ')
  const isNew = day !== formatDayAndTime(before).slice(0, 10)
  return html`${moment(at, time)}${isNew ? html`<small>${day.slice(5)}</small>` : null}`
}
