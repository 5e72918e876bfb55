import { cutLine, widthOf } from '../cells.ts'
import type { Role, Theme } from '../theme.ts'

/** One of the things that a line says. */
export interface LinePart {
  /** The ways to say it, the longest first. */
  forms: readonly [string, ...string[]]
  /** What does not fit in its shortest form is left out, the least important first; what is left over goes to the most important. */
  importance: number
  /** To how many cells a form may be cut; none may if this is left out. */
  least?: number
  /** More cells than this it takes only when every other part has all it can use. */
  enough?: number
  /** Follows each form, and is not cut with it: `0:42`. */
  tail?: string | null
  role: Role
}

/** As many of the parts as fit into `columns` cells, in their order, on one line. */
export function fitParts(parts: readonly LinePart[], { columns, theme }: { columns: number; theme: Theme }): string {
  const separator = theme.symbols ? ' · ' : ', '
  const kept = parts.map(inShort)
  let room = columns - widthOfAll(kept, separator)
  while (room < 0 && kept.length > 1) {
    kept.splice(leastImportant(kept), 1)
    room = columns - widthOfAll(kept, separator)
  }
  const byImportance = kept.toSorted((a, b) => b.part.importance - a.part.importance)
  for (const fitted of byImportance) room -= sayMore(fitted, room)
  for (const fitted of byImportance) room -= cutLess(fitted, room, fitted.part.enough)
  for (const fitted of byImportance) room -= cutLess(fitted, room)
  const texts = kept.map(fitted => theme.paint(fitted.part.role, textOf(fitted)))
  return cutLine(texts.join(theme.paint('dim', separator)), columns)
}

/** A part in one of its forms, which takes `width` cells. */
interface Fitted {
  part: LinePart
  text: string
  width: number
}

function inShort(part: LinePart): Fitted {
  const form = part.forms.length - 1
  return { part, text: part.forms[form] ?? '', width: leastWidth(part, form) }
}

function leastWidth({ forms, least }: LinePart, form: number): number {
  const width = widthOf(forms[form] ?? '')
  return Math.min(width, least ?? width)
}

function widthOfAll(all: readonly Fitted[], separator: string): number {
  return all.reduce((sum, { part, width }) => sum + width + tailWidth(part), (all.length - 1) * separator.length)
}

function tailWidth({ tail }: LinePart): number {
  return tail ? widthOf(tail) + 1 : 0
}

function leastImportant(all: readonly Fitted[]): number {
  const importances = all.map(({ part }) => part.importance)
  return importances.lastIndexOf(Math.min(...importances))
}

/** Takes the longest form for which there is room; answers how much of that it takes. */
function sayMore(fitted: Fitted, room: number): number {
  const { part, width } = fitted
  for (const [form, text] of part.forms.entries()) {
    const more = leastWidth(part, form) - width
    if (more > room || more < 0) continue
    fitted.text = text
    fitted.width += more
    return more
  }
  return 0
}

/** Gives a form that is cut as much of the room as it can use, at most `enough`, or takes what is missing; answers how much. */
function cutLess(fitted: Fitted, room: number, enough = Number.POSITIVE_INFINITY): number {
  const most = Math.min(widthOf(fitted.text), Math.max(enough, fitted.width))
  const more = Math.max(-fitted.width, Math.min(most - fitted.width, room))
  fitted.width += more
  return more
}

function textOf({ part, text, width }: Fitted): string {
  const cut = cutLine(text, width)
  return part.tail ? `${cut} ${part.tail}` : cut
}
