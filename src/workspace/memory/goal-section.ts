/*
 * The section `# Goal` of a `MAIN.md`: the person's words in a file that agents write. It is unchanged while all its lines
 * are there in order, with nothing between, before or after them. `comparedLines` names the exceptions.
 */

/** The state of a goal in a text: the words in its place (`found`, null: none), and the text with the restored goal. */
interface GoalPutBack {
  how: 'changed' | 'removed'
  found: string | null
  text: string
}

/**
 * Restores a goal in a `MAIN.md`; null if it is unchanged. Keeps all other text.
 * @param text with a front matter that ends at `bodyAt`
 */
export function putGoalBack(text: string, bodyAt: number, goal: string): GoalPutBack | null {
  const lines = linesOf(text, bodyAt)
  const wanted = comparedLines(goal)
  const sections = goalSections(lines, wanted)
  const counted = sections.filter(({ counts }) => counts)
  const wrong = counted.filter(({ isWanted }) => !isWanted)
  if (wrong.length === 0 && sections.some(({ isWanted }) => isWanted)) return null
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const block = fenced(goal).split('\n').join(eol)
  // The first section gets the goal, unless another one has it; removes the others.
  const first = counted.some(({ isWanted }) => isWanted) ? undefined : wrong[0]
  if (wrong.length === 0) {
    // Insert before the first heading: text before it would seem part of the goal.
    const place = lines[headingsIn(lines)[0]?.at ?? lines.length]?.start ?? text.length
    const before = text.slice(0, place).trimEnd()
    return {
      how: 'removed',
      found: null,
      text: `${before}${eol}${eol}# Goal${eol}${eol}${block}${eol}${eol}${text.slice(place)}`,
    }
  }
  let [kept, at] = ['', 0]
  for (const section of wrong) {
    kept += text.slice(at, section.start)
    if (section === first) kept += `${section.heading}${eol}${eol}${block}${eol}${eol}`
    at = section.end
  }
  const found = wrong.map(({ start, end, heading }) => text.slice(start + heading.length, end).trim()).join('\n\n')
  return { how: 'changed', found: found === '' ? null : found, text: kept + text.slice(at) }
}

/** Returns the original text of the first section `# Goal`, without its fence; null: there is none. */
export function goalIn(text: string, bodyAt: number): string | null {
  const lines = linesOf(text, bodyAt)
  const headings = headingsIn(lines)
  const nth = headings.findIndex(({ isGoal }) => isGoal)
  const goal = headings[nth]
  if (goal === undefined) return null
  const inside = lines.slice(goal.at + 1, headings[nth + 1]?.at)
  const open = inside.findIndex(({ shown }) => shown !== '')
  const fence = open === -1 ? null : fenceOf(inside[open]?.text ?? '')
  const close = fence === null ? -1 : inside.findIndex((line, at) => at > open && closes(line.text, fence))
  const [from, to] = close === -1 ? [0, inside.length] : [open + 1, close]
  const [first, last] = [inside[from], inside[to - 1]]
  return first === undefined || last === undefined || to <= from
    ? ''
    : text.slice(first.start, last.start + last.text.length)
}

/**
 * True if two texts of a person say the same. Ignores blank lines, trailing white space, line ends, and the Unicode form of
 * a character.
 * @param hidden what stands for parts of `wanted` that are not known, each of them for any text
 */
export function isSameText(text: string, wanted: string, hidden?: RegExp): boolean {
  const [is, should] = [comparedLines(text).join('\n'), comparedLines(wanted).join('\n')]
  if (is === should || hidden === undefined) return is === should
  const parts = should.split(hidden)
  let at = 0
  for (const [nth, part] of parts.entries()) {
    const found = nth === parts.length - 1 && nth > 0 ? is.lastIndexOf(part) : is.indexOf(part, at)
    if (found < at || (nth === 0 && found !== 0)) return false
    at = found + part.length
  }
  return at === is.length && parts.length > 1
}

/** Returns a text in a code fence, so that no part is read as a heading or an entry. */
export function fenced(text: string): string {
  const fences = text.match(/^[ \t]*`{3,}/gm) ?? []
  const longest = fences.reduce((length, fence) => Math.max(length, fence.trim().length), 2)
  const fence = '`'.repeat(longest + 1)
  return `${fence}text\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}`
}

/** Returns a goal for a file: NUL and lone surrogates become U+FFFD. */
export function writableGoal(goal: string): string {
  return goal.replaceAll('\0', '\uFFFD').toWellFormed()
}

/** A line of a text; `shown`: its compared form. */
interface Line {
  text: string
  shown: string
  /** Offset of its first character in the text. */
  start: number
}

const LINE_END = /\r\n|\r|\n/g

function linesOf(text: string, from: number): Line[] {
  const lines: Line[] = []
  let start = from
  const body = text.slice(from)
  for (const end of body.matchAll(LINE_END)) {
    const line = text.slice(start, from + end.index)
    lines.push({ text: line, shown: compared(line), start })
    start = from + end.index + end[0].length
  }
  return [...lines, { text: text.slice(start), shown: compared(text.slice(start)), start }]
}

/** Returns the compared lines of a text in their compared form. */
function comparedLines(text: string): string[] {
  return writableGoal(text)
    .split(LINE_END)
    .map(compared)
    .filter(line => line !== '')
}

function compared(line: string): string {
  return line.normalize('NFC').trimEnd()
}

/** A section whose heading is "Goal". */
interface GoalSection {
  /** Its unchanged heading. */
  heading: string
  isWanted: boolean
  /** True if it is the goal of the file; a deeper one may be a note. */
  counts: boolean
  /** Offsets in the text: from its heading to the next one. */
  start: number
  end: number
}

function goalSections(lines: readonly Line[], wanted: readonly string[]): GoalSection[] {
  const found: GoalSection[] = []
  const [after] = lines.slice(-1).map(({ start, text }) => start + text.length)
  // Headings inside of the goal are not headings of the file.
  let passed = 0
  const headings = headingsIn(lines)
  for (const [nth, { at, level, isGoal, isFirst }] of headings.entries()) {
    const line = lines[at]
    if (!isGoal || at < passed || line === undefined) continue
    const { end: whole, past } = wantedAt(lines, at + 1, wanted)
    // Headings inside of an intact goal end no section.
    let next = nth + 1
    while ((headings[next]?.at ?? past) < past) next += 1
    const end = whole ?? headings[next]?.at ?? lines.length
    passed = end
    const place = { start: line.start, end: lines[end]?.start ?? after ?? line.start }
    found.push({ heading: line.text, isWanted: whole !== null, counts: level <= 2 || isFirst, ...place })
  }
  return found
}

/**
 * Finds these lines at the start of a section, with or without a fence. `end`: the line after the section; null if they are
 * missing or not alone. `past`: the line after their last match.
 */
function wantedAt(
  lines: readonly Line[],
  from: number,
  wanted: readonly string[],
): { end: number | null; past: number } {
  const begin = pastBlank(lines, from)
  const fence = fenceOf(lines[begin]?.text ?? '')
  const inFence = fence === null ? null : endOfLines(lines, begin + 1, wanted)
  if (fence !== null && inFence !== null && closes(lines[inFence]?.text ?? '', fence)) {
    const end = pastRules(lines, inFence + 1)
    return { end: isEnd(lines, end) ? end : null, past: end }
  }
  const plain = endOfLines(lines, begin, wanted)
  if (plain === null) return { end: null, past: from }
  const end = pastRules(lines, plain)
  return { end: isEnd(lines, end) ? end : null, past: end }
}

/** Returns the first non-blank line after the wanted ones; null if these are missing. */
function endOfLines(lines: readonly Line[], from: number, wanted: readonly string[]): number | null {
  let at = from
  for (const line of wanted) {
    at = pastBlank(lines, at)
    if (lines[at]?.shown !== line) return null
    at += 1
  }
  return pastBlank(lines, at)
}

function pastBlank(lines: readonly Line[], from: number): number {
  let at = from
  while (at < lines.length && lines[at]?.shown === '') at += 1
  return at
}

/** Returns the line after blank lines and rules (`---`) between two sections. */
function pastRules(lines: readonly Line[], from: number): number {
  let at = from
  while (at < lines.length && /^(?: {0,3}([-*_])(?:[ \t]*\1){2,})?$/.test(lines[at]?.shown ?? '')) at += 1
  return at
}

function isEnd(lines: readonly Line[], at: number): boolean {
  return at >= lines.length || headingOf(lines[at]?.text ?? '') !== null
}

interface Heading {
  at: number
  level: number
  isGoal: boolean
  /** True for the first heading. */
  isFirst: boolean
}

/** Returns the visible headings: none in a code fence or a closed comment. */
function headingsIn(lines: readonly Line[]): Heading[] {
  const found: Heading[] = []
  const hidden = new Hidden(lines)
  for (let at = 0; at < lines.length; at = hidden.past(at)) {
    const heading = headingOf(lines[at]?.text ?? '')
    if (heading !== null) found.push({ ...heading, at, isFirst: found.length === 0 })
  }
  return found
}

/** Skips code fences and comments. Searches in vain for an end only once, not from each of a million starts. */
class Hidden {
  readonly #lines: readonly Line[]
  /** By fence character, the shortest length that no later line closes. */
  readonly #open = new Map<string, number>()
  #isCommentOpen = false

  constructor(lines: readonly Line[]) {
    this.#lines = lines
  }

  /** Returns the next line; at the start of a closed code fence or comment, the line after it. */
  past(at: number): number {
    const text = this.#lines[at]?.text ?? ''
    const fence = fenceOf(text, { anyInfo: true })
    if (fence !== null) return this.#pastFence(at, fence)
    if (this.#isCommentOpen || !/^[ \t]*<!--/.test(text) || text.includes('-->')) return at + 1
    const end = this.#find(at, line => line.includes('-->'))
    this.#isCommentOpen = end === null
    return end === null ? at + 1 : end + 1
  }

  #pastFence(at: number, fence: string): number {
    const [sign = ''] = fence
    if (fence.length >= (this.#open.get(sign) ?? Number.POSITIVE_INFINITY)) return at + 1
    const end = this.#find(at, line => closes(line, fence))
    if (end === null) this.#open.set(sign, fence.length)
    return end === null ? at + 1 : end + 1
  }

  #find(after: number, is: (line: string) => boolean): number | null {
    for (let at = after + 1; at < this.#lines.length; at++) if (is(this.#lines[at]?.text ?? '')) return at
    return null
  }
}

function headingOf(line: string): Pick<Heading, 'level' | 'isGoal'> | null {
  const heading = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/s.exec(line)
  if (heading === null) return null
  const [, marks = '', title = ''] = heading
  return { level: marks.length, isGoal: /^goal$/i.test(title.replace(/[^\p{L}\p{N}]/gu, '')) }
}

/** Returns the fence that a line opens; null: none. Only a language may follow it, unless `anyInfo`. */
export function fenceOf(line: string, { anyInfo = false } = {}): string | null {
  const opened = /^[ \t]*(`{3,}(?=[^`]*$)|~{3,})[ \t]*(.*)$/s.exec(line)
  if (opened === null) return null
  const [, fence = '', info = ''] = opened
  return anyInfo || /^[\w-]{0,20}\s*$/.test(info) ? fence : null
}

/** True if a line closes a fence. */
export function closes(line: string, fence: string): boolean {
  const text = line.trim()
  return text.startsWith(fence) && text === (fence[0] ?? '').repeat(text.length)
}
