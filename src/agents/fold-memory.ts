import { clipEnd } from '../base/clip.ts'

/** What an agent was asked for once, and what came of it. */
export interface MemoryEntry {
  /** `frontend-dev-20261122T004530123`. */
  instance: string
  /** ISO 8601 in UTC. */
  at: string
  request: string
  result: string
}

/** The most of the whole file, of one entry, of what was folded, and of notes that are no entry; in bytes of UTF-8. */
const MOST_BYTES = 64 * 1024
const MOST_ENTRY_BYTES = 16 * 1024
const MOST_EARLIER_BYTES = 8 * 1024
const MOST_NOTES_BYTES = 8 * 1024
/** Title, headings, and the notes of what was cut. */
const MOST_TITLE_BYTES = 1024

/** The most characters of a request in an entry, and of a folded entry. */
const MOST_REQUEST = 2000
const MOST_LINE = 300

/** Begins an entry. What is written into one never looks like it. */
const HEADING = /^## [a-z][a-z0-9-]*-\d{8}T\d{9}$/
const EARLIER = '## Earlier'

interface Parts {
  /** What stands before the first section, without the title. */
  notes: string
  /** Folded entries, one a line, the oldest first. */
  earlier: readonly string[]
  /** The oldest first, each with its heading. */
  entries: readonly string[]
}

/**
 * The text of an agent's memory file with one entry more. Above 64 KiB the oldest entries become a line each under
 * `## Earlier`, which has 8 KiB and lets its oldest lines go; no entry is cut, but one of more than 16 KiB as it comes.
 */
export function addEntry(text: string, name: string, entry: MemoryEntry): string {
  const { notes, earlier, entries } = partsOf(text)
  const all = [...entries, entryText(entry)]
  const whole = fileText(name, { notes, earlier, entries: all })
  if (bytesOf(whole) <= MOST_BYTES && bytesOf(earlier.join('\n')) < MOST_EARLIER_BYTES) return whole
  const kept = newest(all, MOST_BYTES - MOST_EARLIER_BYTES - MOST_NOTES_BYTES - MOST_TITLE_BYTES)
  const folded = all.slice(0, all.length - kept.length).map(lineOf)
  return fileText(name, { notes, earlier: newest([...earlier, ...folded], MOST_EARLIER_BYTES), entries: kept })
}

function entryText({ instance, at, request, result }: MemoryEntry): string {
  const asked = clipEnd(request.trim(), MOST_REQUEST)
  const quoted = asked.split('\n').map(line => `> ${line}`.trimEnd())
  const lines = [...quoted, '', ...(result.trim() || 'It said nothing.').split('\n').map(notAHeading)]
  return `## ${instance}\n\n${at}\n${clipToBytes(lines.join('\n').toWellFormed(), MOST_ENTRY_BYTES)}`
}

/** A line that would begin another entry is set in. */
function notAHeading(line: string): string {
  return HEADING.test(line.trimEnd()) || line.trimEnd() === EARLIER ? ` ${line}` : line
}

function partsOf(text: string): Parts {
  const sections = text.split(/\r?\n/).reduce<string[][]>(
    (all, line) => {
      const begins = HEADING.test(line) || line === EARLIER
      if (begins) all.push([line])
      else all.at(-1)?.push(line)
      return all
    },
    [[]],
  )
  const [first = [], ...rest] = sections
  const notes = first.filter(line => !line.startsWith('# Memory of ')).join('\n')
  const isEarlier = (section: readonly string[]) => section[0] === EARLIER
  return {
    notes: clipToBytes(notes.trim(), MOST_NOTES_BYTES),
    earlier: rest.filter(isEarlier).flatMap(section => section.filter(line => line.startsWith('- '))),
    entries: rest.filter(section => !isEarlier(section)).map(section => section.join('\n').trim()),
  }
}

function fileText(name: string, { notes, earlier, entries }: Parts): string {
  const folded = earlier.length === 0 ? [] : [`${EARLIER}\n\n${earlier.join('\n')}`]
  const sections = [`# Memory of ${name}`, ...(notes === '' ? [] : [notes]), ...folded, ...entries]
  return `${sections.join('\n\n')}\n`
}

/** An entry in a line: whose it is, what it was asked for, and the first that it said. */
function lineOf(entry: string): string {
  const [heading = '', ...lines] = entry.split('\n').map(line => line.trim())
  const said = lines.filter(line => line !== '' && !/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(line))
  const asked = said.find(line => line.startsWith('> '))?.slice(2) ?? ''
  const result = said.find(line => !line.startsWith('>')) ?? ''
  return `- ${heading.slice(3)}: ${short(asked)} → ${short(result)}`
}

function short(text: string): string {
  return text.length <= MOST_LINE / 2 ? text : `${text.slice(0, MOST_LINE / 2 - 1).toWellFormed()}…`
}

/** The last texts that fit, with what stands between two. */
function newest(texts: readonly string[], most: number): readonly string[] {
  let bytes = 0
  const first = texts.findLastIndex(text => {
    bytes += bytesOf(text) + 2
    return bytes > most
  })
  return texts.slice(first + 1)
}

function clipToBytes(text: string, most: number): string {
  if (bytesOf(text) <= most) return text
  const start = new TextDecoder().decode(Buffer.from(text).subarray(0, most)).replace(/\uFFFD+$/, '')
  return `${start}\n[… more was said than is kept here]`
}

function bytesOf(text: string): number {
  return Buffer.byteLength(text)
}
