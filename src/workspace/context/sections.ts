import { inlineCode } from '../../base/markdown.ts'
import { truncate } from '../../base/text.ts'

/** A part of the context: a heading and Markdown, shortened where it would be larger than its bound. */
export interface Section {
  title: string
  /** Empty: the part is left out. */
  body: string
  /** The most that it may take with its heading, bytes of UTF-8. */
  most: number
}

/** The most bytes of UTF-8 that the whole context has. */
const MOST_CONTEXT_BYTES = 120 * 1024

/** Puts the parts together. Answers which of them were shortened, by their titles. */
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

/**
 * The first lines of a Markdown text that have at most `most` bytes together, with a note of what was left out; a fence
 * that is cut is closed.
 */
export function clipBytes(text: string, most: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= most) return text
  const room = Math.max(0, most - ROOM_FOR_NOTE)
  const end = bytes.lastIndexOf('\n', room)
  // Where one line is that long, a cut character at its end is dropped.
  const cut = end > room / 2 ? bytes.subarray(0, end) : bytes.subarray(0, room)
  const kept = cut
    .toString('utf8')
    .replace(/\uFFFD$/, '')
    .trimEnd()
  const fence = openFence(kept)
  return `${kept}${fence === null ? '' : `\n${fence}`}\n[… ${bytes.length - Buffer.byteLength(kept)} more bytes left out]`
}

const ROOM_FOR_NOTE = 160

/** The fence that is open at the end of a text; null if none is. */
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
