import type { TreeChanges } from '../../core/events/events.ts'

/** What has changed in one file, for the page of a report. Texts are as they came from outside. */
export interface FileDiff {
  /** Lines of its hunks as `git diff` writes them: each begins with `@@`, a blank, `+`, `-` or `\`. */
  lines: readonly string[]
  /** How many of its changed lines (added and removed ones) are among `lines`, and how many there are. */
  shown: number
  changed: number
  /** Why there are no lines, or what is special about it (`new`, `mode 100644 to 100755`); null: nothing. */
  note: string | null
}

/** A file that a report names, with its counts. */
type NamedFile = TreeChanges['paths'][number]

/** All of the diffs together have at most so many lines, and about as many characters. */
const MOST_LINES = 6_000
const MOST_CHARACTERS = 600_000
/** The same of one file; where there are many, each gets its share. */
const MOST_OF_FILE = 400
const LEAST_OF_FILE = 100
const LINE_CHARACTERS = 500

/**
 * The diffs of these files by path, out of a text that `git diff-tree -p --no-renames` wrote. A file that the text says
 * nothing of is left out. Pure.
 * @param text may have been cut after a whole line
 * @param among how many files share the room; at least the number of `files`
 */
export function fileDiffsOf(text: string, files: readonly NamedFile[], among: number): Map<string, FileDiff> {
  const byHeader = new Map(files.map(file => [headerOf(file.path), file]))
  const diffs = new Map<string, FileDiff>()
  const room = {
    lines: Math.min(MOST_OF_FILE, Math.max(LEAST_OF_FILE, Math.floor(MOST_LINES / Math.max(1, among)))),
    characters: Math.floor(MOST_CHARACTERS / Math.max(1, among)),
  }
  for (const part of partsOf(text)) {
    const file = byHeader.get(part[0] ?? '')
    if (file === undefined) continue
    const known = diffs.get(file.path)
    // What has become a link, or was one, has two parts: it is deleted, and added.
    diffs.set(file.path, known === undefined ? diffOf(part, file, room) : { ...known, note: ANOTHER_KIND })
  }
  return diffs
}

const ANOTHER_KIND = 'it is another kind of file now'

/** The lines of each file's part. Only a newline ends a line here: a name or a content may hold what else a program takes for one. */
function partsOf(text: string): string[][] {
  const parts: string[][] = []
  for (const line of text.replace(/\n$/, '').split('\n')) {
    // A line of a file's content has a sign before it.
    if (line.startsWith('diff --git ')) parts.push([])
    parts.at(-1)?.push(line)
  }
  return parts
}

function diffOf(part: readonly string[], file: NamedFile, room: { lines: number; characters: number }): FileDiff {
  const begin = part.findIndex(line => line.startsWith('@@ '))
  const all = begin === -1 ? [] : part.slice(begin)
  const lines: string[] = []
  let characters = 0
  let shown = 0
  for (const line of all) {
    if (lines.length === room.lines || characters > room.characters) break
    const cut = cutLine(line)
    lines.push(cut)
    characters += cut.length
    if (/^[+-]/.test(line)) shown += 1
  }
  const note = noteOf(begin === -1 ? part : part.slice(0, begin))
  return { lines, shown, changed: (file.added ?? 0) + (file.removed ?? 0), note }
}

/** A long line keeps its beginning, and says how much is left out. */
function cutLine(line: string): string {
  if (line.length <= LINE_CHARACTERS) return line
  const kept = line.slice(0, LINE_CHARACTERS).toWellFormed()
  return `${kept}… ${(line.length - kept.length).toLocaleString('en')} more characters`
}

function noteOf(head: readonly string[]): string | null {
  const after = (words: string) => head.find(line => line.startsWith(words))?.slice(words.length) ?? null
  const [old, now, created] = [after('old mode '), after('new mode '), after('new file mode ')]
  if (after('Binary files ') !== null) return 'not text, or over 4 MiB'
  if (old !== null && now !== null) return `mode ${old} to ${now}`
  if (created !== null) return created === '120000' ? 'a new link' : 'new'
  return after('deleted file mode ') === null ? null : 'deleted'
}

/** The first line of the part of a file, as git writes it with `core.quotePath=false`. */
function headerOf(path: string): string {
  return `diff --git ${quoted(`a/${path}`)} ${quoted(`b/${path}`)}`
}

function quoted(name: string): string {
  const escaped = name.replace(QUOTED, character => ESCAPES[character] ?? octal(character))
  return escaped === name ? name : `"${escaped}"`
}

const QUOTED = /["\\\p{Cc}]/gu

const ESCAPES: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\v': '\\v',
  '\f': '\\f',
  '\r': '\\r',
  '"': '\\"',
  '\\': '\\\\',
}

/** Git quotes bytes below a blank, and 0x7f; what lies above is written as it is. */
function octal(character: string): string {
  const code = character.charCodeAt(0)
  return code > 0x7f ? character : `\\${code.toString(8).padStart(3, '0')}`
}
