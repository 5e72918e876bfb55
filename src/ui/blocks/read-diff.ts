/** A line of a diff. `gap`: lines that did not change are left out before the next one. `note`: not of the file. */
export interface DiffRow {
  kind: 'added' | 'removed' | 'same' | 'gap' | 'note'
  /** Its number in the file, of a removed line in the file before. */
  number: number | null
  text: string
}

const HUNK = /^@@ -(\d{1,9})(?:,\d+)? \+(\d{1,9})(?:,\d+)? @@/
const MORE = /^\[… \d+ more (?:characters|files?)\]$/

/** The rows of a unified diff; of one without hunks each line as `all`, which is how whole files come. */
export function readDiff(diff: string, all: 'added' | 'removed' | 'same'): DiffRow[] {
  const lines = diff.replace(/\n$/, '').split('\n')
  const start = lines.findIndex(line => HUNK.test(line))
  if (start === -1) return diff === '' ? [] : lines.map((text, i) => wholeRow(text, all, i + 1))
  const place = { before: 1, after: 1 }
  return lines.slice(start).flatMap((line, i) => {
    const row = rowOf(line, place)
    return row.kind === 'gap' && i === 0 ? [] : [row]
  })
}

function wholeRow(text: string, kind: DiffRow['kind'], number: number): DiffRow {
  return MORE.test(text) ? { kind: 'note', number: null, text } : { kind, number, text }
}

/** Where a diff has come to in the file before and after; moved on by each row. */
interface Place {
  before: number
  after: number
}

function rowOf(line: string, place: Place): DiffRow {
  const hunk = HUNK.exec(line)
  if (hunk) {
    place.before = Number(hunk[1])
    place.after = Number(hunk[2])
    return { kind: 'gap', number: null, text: '' }
  }
  const text = line.slice(1)
  if (line.startsWith('+')) return { kind: 'added', number: place.after++, text }
  if (line.startsWith('-')) return { kind: 'removed', number: place.before++, text }
  if (line.startsWith('\\') || MORE.test(line)) return { kind: 'note', number: null, text: line }
  place.before++
  return { kind: 'same', number: place.after++, text }
}
