import { inlineCode } from '../../base/markdown.ts'
import { truncate } from '../../base/text.ts'

/** A part of the context: a heading and Markdown, cut at its limit. */
export interface Section {
  title: string
  /** Markdown text; empty: the part is omitted. */
  body: string
  /** Longest part with its heading, bytes of UTF-8. */
  most: number
}

/** Longest whole context, bytes of UTF-8. */
const MOST_CONTEXT_BYTES = 120 * 1024

/** Joins the parts. Returns the text and the titles of the shortened parts. */
export function joinSections(beginning: string, sections: readonly Section[]): { text: string; shortened: string[] } {
  const shortened: string[] = []
  const parts = sections.flatMap(({ title, body, most }) => {
    if (body.trim() === '') return []
    const heading = `## ${title}\n\n`
    const clipped = clipBytes(body.trim(), most - Buffer.byteLength(heading) - 2)
    if (clipped !== body.trim()) shortened.push(title)
    return [`${heading}${clipped}\n`]
  })
  return { text: clipBytes([`${beginning.trim()}\n`, ...parts].join('\n'), MOST_CONTEXT_BYTES), shortened }
}

/** Returns the first lines of a Markdown text, at most `most` bytes together, with a note on the cut; closes a cut fence. */
export function clipBytes(text: string, most: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= most) return text
  const room = Math.max(0, most - ROOM_FOR_NOTE)
  const end = bytes.lastIndexOf('\n', room)
  // In one long line, drop the cut character at the end.
  const cut = end > room / 2 ? bytes.subarray(0, end) : bytes.subarray(0, room)
  const kept = cut
    .toString('utf8')
    .replace(/\uFFFD$/, '')
    .trimEnd()
  const fence = openFence(kept)
  return `${kept}${fence === null ? '' : `\n${fence}`}\n[… ${bytes.length - Buffer.byteLength(kept)} more bytes left out]`
}

const ROOM_FOR_NOTE = 160

/** Returns the open fence at the end of a text; null: none. */
function openFence(text: string): string | null {
  let open: string | null = null
  for (const [, fence = '', info = ''] of text.matchAll(/^(`{3,})(.*)$/gm)) {
    if (open === null) open = fence
    else if (fence.length >= open.length && info.trim() === '') open = null
  }
  return open
}

/** A name or value that others wrote, on one line of at most `limit` characters, in backticks. */
export function quoted(text: string, limit = 300): string {
  return inlineCode(oneLine(text, limit))
}

/** A text that others wrote on one line: what breaks lines or steers a terminal is written as an escape. */
export function oneLine(text: string, limit: number): string {
  return truncate(text.slice(0, 4 * limit).replace(UNPRINTABLE, escaped), limit).toWellFormed()
}

const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]/gu

function escaped(character: string): string {
  if (character === '\n') return '\\n'
  return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`
}
