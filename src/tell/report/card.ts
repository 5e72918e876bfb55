import { isAbsolute } from 'node:path'
import { refusalForPerson } from '../../core/rules/refusals.ts'
import type { BoardMark, CardFact } from '../../core/view.ts'
import { wordsForAdopted } from '../words/adopted.ts'
import { cutLine, padLine, widthOf, wrapLine } from '../words/cells.ts'
import type { Tone } from '../words/names.ts'
import { formatCount, formatDuration } from '../words/numbers.ts'
import { wordsForIssue, wordsForPublished } from '../words/published.ts'
import { oneLine, titleLine } from '../words/safe-text.ts'
import type { ReportCommand } from './commands.ts'
import { lookAtFirst } from './look-first.ts'
import type { ReportData } from './report-data.ts'
import {
  agentsInWords,
  effortInWords,
  enginesInWords,
  forecastInWords,
  gateInWords,
  headlineOf,
  noGateInWords,
  notesOnProof,
  reviewInWords,
  shortName,
  tasksInWords,
  toneOfGate,
  wasFlakyEarlier,
} from './words.ts'
import { changesInWords } from './words-of-changes.ts'

/** One line of the card, safe to write to a terminal. */
export interface CardLine {
  text: string
  tone: Tone
  /** The file that it names; absolute. Left out: none. */
  file?: string
}

export interface CardOptions {
  /** What to type next, what matters most first: the first three are shown. */
  commands: readonly ReportCommand[]
  /** At least 40. */
  columns: number
  /** Whether outcome, goal and effort stand just above it, and are not said again. */
  isEndShown?: boolean
  /** Where the whole report lies, or how it is had; null: not said. */
  full: string | null
  /** Whether the savepoints of the session are no longer kept. */
  areSavepointsGone?: boolean
}

const TEXT_CHARS = 1000
const MOST_LINES = 20
const MOST_COMMANDS = 3
const LABEL = 9

/**
 * The report in short: at most 20 lines of at most `columns` cells. Only a command or a path that does not fit is longer, so
 * that it can be copied; it counts as the lines that the terminal makes of it.
 */
export function cardOf(data: ReportData, place: CardOptions): CardLine[] {
  const { text, tone } = headlineOf(data)
  const { columns, isEndShown = false } = place
  const end = [...commandLines(place), ...fullLine(place)]
  const title = [
    ...wrapped(`${data.session}  ${oneLine(text, TEXT_CHARS)}`, columns, 2).map(line => ({ text: line, tone })),
    ...labelled('goal', [plain(titleLine(data.goal, TEXT_CHARS))], columns, 2),
    ...(data.adopted === null
      ? []
      : labelled('from', [plain(wordsForAdopted(data.adopted, Date.parse(data.createdAt)))], columns, 2)),
    ...labelled('issue', listed(data.issue === undefined ? null : wordsForIssue(data.issue)), columns, 1),
  ]
  const head = isEndShown ? [] : title
  const room = MOST_LINES - rowsOf([...head, ...end], columns)
  const bodies = DETAILS.map(detail => bodyOf(data, place, detail))
  const body = bodies.find(lines => rowsOf(lines, columns) <= room) ?? firstRows(bodies.at(-1) ?? [], room, columns)
  return [...head, ...body, ...end]
}

/** How much is said: rows of one fact, entries of what has several, and of the rows of the template's own. The first that fits is taken. */
interface Detail {
  rows: number
  entries: number
  own: number
}

const DETAILS: readonly Detail[] = [
  { rows: 2, entries: 6, own: 10 },
  { rows: 2, entries: 3, own: 8 },
  { rows: 1, entries: 3, own: 6 },
  { rows: 1, entries: 2, own: 5 },
  { rows: 1, entries: 1, own: 4 },
  { rows: 1, entries: 1, own: 3 },
]

function bodyOf(data: ReportData, place: CardOptions, { rows, entries, own }: Detail): CardLine[] {
  const { columns, isEndShown } = place
  const lines = (label: string, list: readonly CardLine[]) => labelled(label, list, columns, rows)
  return [
    ...lines('look at', shortened(lookAtFirst(data), entries, 'more in the whole report')),
    ...lines('proof', shortened(proofOf(data), entries, 'more')),
    ...lines('note', shortened(notesOf(data), entries, 'more')),
    ...data.work.card.flatMap(fact => factLines(fact, columns, { rows, own })),
    ...lines('work', listed(data.work.status)),
    ...lines('changes', [plain(changesInWords(data, place))]),
    ...lines('refused', listed(refusalsInWords(data))),
    ...lines('asked', listed(questionsInWords(data))),
    ...(isEndShown ? [] : lines('took', [plain(effortInWords(data))])),
    ...lines('engines', listed(enginesInWords(data))),
    ...lines('ahead', listed(forecastInWords(data))),
    ...lines('tasks', listed(tasksInWords(data))),
    ...lines('agents', listed(data.build && agentsInWords(data.build))),
    ...lines('public', listed(data.published === undefined ? null : wordsForPublished(data.published))),
  ]
}

/** What the template says of one thing: its text, and its rows below. */
function factLines(
  { label, text, rows = [], isToCopy }: CardFact,
  columns: number,
  detail: Pick<Detail, 'rows' | 'own'>,
): CardLine[] {
  const name = cutLine(oneLine(label, LABEL - 1), LABEL - 1)
  if (isToCopy) return [plain(`${padLine(name, LABEL)}${oneLine(text, TEXT_CHARS)}`)]
  const marked = rows.map(({ text: row, mark }): CardLine => {
    if (mark === undefined) return plain(row)
    const { word, tone } = MARKS[mark]
    return { text: `${word.padEnd(MARK)}${row}`, tone }
  })
  return labelled(
    name,
    [...(text === '' ? [] : [plain(text)]), ...shortened(marked, detail.own, 'more in the whole report')],
    columns,
    rows.length === 0 ? detail.rows : 1,
  )
}

const MARKS: Readonly<Record<BoardMark, { word: string; tone: Tone }>> = {
  done: { word: 'done', tone: 'good' },
  claimed: { word: 'claimed', tone: 'plain' },
  now: { word: 'now', tone: 'plain' },
  parked: { word: 'parked', tone: 'warning' },
  failed: { word: 'failed', tone: 'bad' },
  'to-do': { word: 'to do', tone: 'plain' },
}
const MARK = 8

function proofOf(data: ReportData): CardLine[] {
  const { proof } = data
  const review = proof.reviews.entries.at(-1)
  const none = noGateInWords(data, 'it')
  return [
    ...(data.contract === undefined ? [] : [{ text: data.contract.words, tone: toneOfContract(data.contract) }]),
    ...(none === null ? gatesOf(proof) : [{ text: none, tone: 'quiet' } as const]),
    ...(review === undefined ? [] : [reviewInWords(review)]),
  ]
}

function toneOfContract({ proved, checkable }: NonNullable<ReportData['contract']>): CardLine['tone'] {
  return checkable > 0 && proved === checkable ? 'good' : 'warning'
}

/** Gates that all passed take one line. */
function gatesOf({ gates }: ReportData['proof']): CardLine[] {
  if (gates.length === 1 || gates.some(gate => gate.last?.status !== 'passed' || wasFlakyEarlier(gate))) {
    return gates.map(gate => ({
      text: `${shortName(gate.name)}: ${gateInWords(gate)}`,
      tone: toneOfGate(gate),
    }))
  }
  const names = gates.map(({ name, last }) => `${shortName(name)} (${formatDuration(last?.durationMs ?? 0)})`)
  return [{ text: `${formatCount(gates.length, 'gate')} passed: ${names.join(', ')}`, tone: 'good' }]
}

/** How many lines a terminal makes of these. */
function rowsOf(lines: readonly CardLine[], columns: number): number {
  return lines.reduce((rows, { text }) => rows + Math.max(1, Math.ceil(widthOf(text) / columns)), 0)
}

/** The first lines of which a terminal makes at most so many. */
function firstRows(lines: readonly CardLine[], most: number, columns: number): CardLine[] {
  const over = lines.findIndex((_, at) => rowsOf(lines.slice(0, at + 1), columns) > most)
  return over === -1 ? [...lines] : lines.slice(0, over)
}

function labelled(label: string, entries: readonly CardLine[], columns: number, most: number): CardLine[] {
  return entries.flatMap(({ text, tone }, index) => {
    const rows = wrapped(oneLine(text, TEXT_CHARS), columns - LABEL, most)
    const name = index === 0 ? label : ''
    return rows.map((row, at) => ({ text: `${padLine(at === 0 ? name : '', LABEL)}${row}`, tone }))
  })
}

/** At most so many rows of a text; the last one is cut. */
function wrapped(text: string, columns: number, most: number): string[] {
  if (most === 1) return [cutLine(text, columns)]
  const rows = wrapLine(text, columns)
  if (rows.length <= most) return rows
  return [...rows.slice(0, most - 1), cutLine(rows.slice(most - 1).join(' '), columns)]
}

function shortened(entries: readonly CardLine[], most: number, more: string): CardLine[] {
  const [first] = entries
  if (entries.length <= most) return [...entries]
  if (most === 1 && first !== undefined) return [{ ...first, text: `${first.text}; and ${entries.length - 1} ${more}` }]
  return [...entries.slice(0, most - 1), { text: `and ${entries.length - most + 1} ${more}`, tone: 'quiet' }]
}

/** Protected files that stayed changed are told above. */
function notesOf({ proof }: ReportData): CardLine[] {
  const isTold = proof.protectedFiles.some(({ putBack }) => !putBack)
  return notesOnProof({ proof: isTold ? { ...proof, protectedCount: 0 } : proof })
}

function refusalsInWords({ refusals, proof, outcome }: ReportData): string | null {
  const last = refusals.entries.at(-1)
  if (last === undefined) return null
  const count = formatCount(refusals.count, 'claim')
  // Else it is told as what is left.
  const isOver = outcome?.kind === 'done' || proof.claim !== 'refused'
  return isOver ? `${count}, the last one in round ${last.round}: ${refusalForPerson(last).fact}` : `${count} of done`
}

function questionsInWords({ questions }: ReportData): string | null {
  const [first] = questions.entries
  // What was assumed is told above.
  if (first === undefined || questions.entries.some(({ answered }) => !answered)) return null
  return `${formatCount(questions.count, 'question')}, answered: ${first.text}`
}

function commandLines({ commands }: CardOptions): CardLine[] {
  return commands
    .filter(({ isOnCard }, at) => isOnCard || at < MOST_COMMANDS)
    .map(({ command }) => ({ text: `  ${oneLine(command, TEXT_CHARS)}`, tone: 'plain' }))
}

function fullLine({ full }: CardOptions): CardLine[] {
  if (full === null) return []
  const line: CardLine = { text: `${'report'.padEnd(LABEL)}${oneLine(full, TEXT_CHARS)}`, tone: 'quiet' }
  return [isAbsolute(full) ? { ...line, file: full } : line]
}

function plain(text: string): CardLine {
  return { text, tone: 'plain' }
}

function listed(text: string | null): CardLine[] {
  return text === null ? [] : [plain(text)]
}
