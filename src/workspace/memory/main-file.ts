import { isDeepStrictEqual } from 'node:util'
import { loadAll } from 'js-yaml'
import { messageOf } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import { clipEnd, fillPlaceholders } from '../../base/text.ts'
import { claimsDone, type MainFile, type Parsed } from '../../core/shapes/memory.ts'
import { closes, fenced, fenceOf, goalIn, isSameText, putGoalBack, writableGoal } from './goal-section.ts'
import { MOST_CHARACTERS } from './tasks-file.ts'

/** Parses a `MAIN.md`. A done claim that `withoutClaim` could not remove is a problem, not a claim. */
export function parseMainFile(text: string): Parsed<MainFile> {
  const front = readFrontMatter(text)
  if (!front.ok) return front
  const keys = readKeys(front.value.data)
  if (!keys.ok) return keys
  if (claimsDone(keys.value)) {
    const withdrawn = withoutClaim(text)
    if (!withdrawn.ok) return withdrawn
  }
  const whyNothing = textUnder(front.value.body, 'whynothingisneeded')
  const why = whyNothing === '' ? {} : { whyNothing }
  return { ok: true, value: { ...keys.value, open: listOpenEntries(front.value.body), ...why } }
}

/** The fields of a `MAIN.md` that the task board shows. */
export interface BoardMain {
  /** Its `short_title`. */
  title: string | null
  /** Open entries under "In progress", in order. */
  inProgress: readonly string[]
}

/**
 * Parses a `MAIN.md` for the board; `null` if it is invalid, for example during a write.
 * @param redact takes the secrets out of a text, before it is cut
 */
export function parseBoardMain(text: string, redact: (text: string) => string): BoardMain | null {
  const main = parseMainFile(text)
  const front = readFrontMatter(text)
  if (!main.ok || !front.ok) return null
  const { shortTitle } = main.value
  return {
    title: shortTitle === null ? null : clipEnd(redact(shortTitle), MOST_CHARACTERS),
    inProgress: listOpenEntries(front.value.body, ['inprogress']).map(redact),
  }
}

/** Returns the text with `finite_incantatem: false`, and `status: in-progress` in place of `done`; otherwise unchanged. */
export function withoutClaim(text: string): Parsed<string> {
  const before = readFrontMatter(text)
  if (!before.ok) return before
  const { start, end, data } = before.value
  const front = text.slice(start, end).replace(claimingFlag, '$1false').replace(claimingStatus, '$1in-progress')
  const edited = text.slice(0, start) + front + text.slice(end)
  const after = readFrontMatter(edited)
  const keys = after.ok ? readKeys(after.value.data) : after
  if (
    after.ok &&
    keys.ok &&
    !claimsDone(keys.value) &&
    isDeepStrictEqual(otherKeys(data), otherKeys(after.value.data))
  ) {
    return { ok: true, value: edited }
  }
  return { ok: false, problem: 'its done claim is not plain; write finite_incantatem: true on a line of its own.' }
}

/** Returns the text with `status: done`; unchanged if it has that. */
export function withDone(text: string): Parsed<string> {
  const before = readFrontMatter(text)
  if (!before.ok) return before
  const { start, end, data } = before.value
  if (ownValue(data, 'status') === 'done') return { ok: true, value: text }
  const edited = text.slice(0, start) + text.slice(start, end).replace(anyStatus, '$1done') + text.slice(end)
  const after = readFrontMatter(edited)
  if (after.ok && isDeepStrictEqual(after.value.data, { ...data, status: 'done' })) return { ok: true, value: edited }
  return { ok: false, problem: 'its status is not plain; write status: in-progress on a line of its own.' }
}

/** Returns the text of an agents' `MAIN.md` with the restored goal; null if the goal is unchanged. */
export function withGoal(text: string, goal: string): ReturnType<typeof putGoalBack> {
  const front = readFrontMatter(text)
  return front.ok ? putGoalBack(text, text.length - front.value.body.length, goal) : null
}

/**
 * Returns the goal as a person typed it, from a trusted copy of `MAIN.md`; otherwise as in the journal.
 * @param journaled the goal with `[secret NAME]` in the place of each secret
 */
export function typedGoal(copy: string, journaled: string): string {
  const front = readFrontMatter(copy)
  const typed = front.ok ? goalIn(copy, copy.length - front.value.body.length) : null
  return typed !== null && isSameText(typed, journaled, SECRET) ? typed : writableGoal(journaled)
}

/** Matches the redactor's replacement of a secret. */
const SECRET = /\[secret [^\]\n]{1,200}\]/

const anyStatus =
  /^((?:status|"status"|'status')[ \t]*:[ \t]+)(?:"[^"\r\n]*"|'[^'\r\n]*'|[^\s"'#][^\r\n#]*?)(?=[ \t]*(?:#|\r?$))/m
const claimingFlag =
  /^((?:finite_incantatem|"finite_incantatem"|'finite_incantatem')[ \t]*:[ \t]+)true(?=[ \t]*(?:#|\r?$))/im
const claimingStatus = /^((?:status|"status"|'status')[ \t]*:[ \t]+["']?)done(?=["']?[ \t]*(?:#|\r?$))/im

function readKeys(data: Readonly<Record<string, unknown>>): Parsed<Omit<MainFile, 'open' | 'whyNothing'>> {
  const status = ownValue(data, 'status')
  if (typeof status !== 'string') {
    return { ok: false, problem: `status ${describeValue(status)}; use a word such as in-progress or done.` }
  }
  const flag = ownValue(data, 'finite_incantatem')
  if (typeof flag !== 'boolean') {
    return { ok: false, problem: `finite_incantatem ${describeValue(flag)}; use true or false, without quotes.` }
  }
  const title = ownValue(data, 'short_title')
  const shortTitle = typeof title === 'string' || typeof title === 'number' ? String(title) : null
  return { ok: true, value: { status, finiteIncantatem: flag, shortTitle } }
}

function ownValue(data: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(data, key) ? data[key] : undefined
}

function describeValue(value: unknown): string {
  if (value === undefined || value === null) return 'is missing'
  return typeof value === 'object' ? 'is not a single value' : `is ${JSON.stringify(value).slice(0, 60)}`
}

function otherKeys(data: Readonly<Record<string, unknown>>): [string, unknown][] {
  return Object.entries(data).filter(([key]) => key !== 'finite_incantatem' && key !== 'status')
}

/** The YAML block at the top of a Markdown file. */
interface FrontMatter {
  data: Readonly<Record<string, unknown>>
  /** Offsets in the text of the lines between the two `---`. */
  start: number
  end: number
  body: string
}

const MOST_FRONT_MATTER_CHARS = 16 * 1024

/** Parses the front matter of an untrusted text: YAML only, at most 16 KiB, without aliases, never evaluated. */
export function readFrontMatter(text: string): Parsed<FrontMatter> {
  const opening = /^\uFEFF?---[ \t]*\r?\n/.exec(text)
  if (opening === null) return { ok: false, problem: missingOpening(text) }
  const start = opening[0].length
  const close = text.slice(0, start + MOST_FRONT_MATTER_CHARS + 4).indexOf('\n---', start - 1)
  if (close === -1) return { ok: false, problem: missingClose(text.length - start) }
  const closing = /^\n---[ \t]*(?:\r?\n|$)/.exec(text.slice(close, close + 200))
  if (closing === null) {
    const problem = `line ${lineOf(text, close + 1)} has more than ---; close the front matter with --- alone.`
    return { ok: false, problem }
  }
  const end = Math.max(start, close + 1)
  const data = parseYaml(text.slice(start, end))
  return data.ok
    ? { ok: true, value: { data: data.value, start, end, body: text.slice(close + closing[0].length) } }
    : data
}

function missingOpening(text: string): string {
  if (text.trim() === '') return 'it is empty; begin with a front matter between two lines of ---.'
  const language = /^\uFEFF?---([^\r\n]{1,20})/.exec(text)?.[1]
  if (language === undefined) return 'it has no front matter; begin with a line ---, the keys, and a line ---.'
  return `line 1 is ${JSON.stringify(`---${language}`)}; begin with --- alone, as the front matter is read as YAML only.`
}

function missingClose(length: number): string {
  if (length > MOST_FRONT_MATTER_CHARS)
    return 'its front matter is longer than 16 KiB; keep it to a few keys and close it with ---.'
  return 'its front matter is not closed; put a line --- after the keys.'
}

function parseYaml(yaml: string): Parsed<Record<string, unknown>> {
  try {
    const [data = {}, ...others]: unknown[] = loadAll(yaml)
    if (!isJsonObject(data) || others.length > 0)
      return { ok: false, problem: 'its front matter is not a list of keys; write lines such as status: in-progress.' }
    if (hasSharedParts(data))
      return { ok: false, problem: 'its front matter uses YAML aliases; write every value out.' }
    return { ok: true, value: data }
  } catch (error) {
    return { ok: false, problem: `${yamlProblem(error)}; write the front matter as lines of key: value.` }
  }
}

/** True if a value occurs twice, as YAML aliases do. Nested aliases can expand a small text to a huge tree. */
function hasSharedParts(root: object): boolean {
  const seen = new Set<unknown>([root])
  for (const part of seen) {
    if (part === null || typeof part !== 'object') continue
    for (const child of Object.values(part)) {
      if (child === null || typeof child !== 'object') continue
      if (seen.has(child)) return true
      seen.add(child)
    }
  }
  return false
}

/** Its line is one of the file, whose first line is `---`. */
function yamlProblem(error: unknown): string {
  if (!(error instanceof Error) || !('reason' in error) || !('mark' in error)) return messageOf(error)
  const { reason, mark } = error
  if (!isJsonObject(mark)) return messageOf(error)
  return `line ${Number(mark.line) + 2}, column ${Number(mark.column) + 1}: ${String(reason).slice(0, 120)}`
}

function lineOf(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}

interface Section {
  level: number
  isOpenWork: boolean
  /** Indent of the section's first entry: deeper plain entries are notes to another entry. */
  indent: number | null
}

const OPEN_WORK: readonly Heading[] = ['inprogress', 'todo']

type Heading = 'inprogress' | 'todo'

/**
 * Returns the unfinished entries of a Markdown text under the headings "In progress" and "Todo": each unchecked `- [ ]`, and
 * each top-level bullet without a box. Ignores code fences and HTML comments.
 * @param under the headings to search; both if left out
 */
function listOpenEntries(markdown: string, under: readonly Heading[] = OPEN_WORK): string[] {
  const open: string[] = []
  let section: Section = { level: 0, isOpenWork: false, indent: null }
  for (const line of visibleLines(markdown)) {
    const heading = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/s.exec(line)
    if (heading !== null) {
      section = sectionAfter(section, under, heading[1]?.length ?? 1, heading[2] ?? '')
      continue
    }
    if (!section.isOpenWork) continue
    const entry = /^([ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[([ xX])\](?:[ \t]+|$))?(.*)$/s.exec(line)
    if (entry === null) continue
    const [, margin = '', box, text = ''] = entry
    const indent = margin.replaceAll('\t', '    ').length
    section.indent ??= indent
    const counts = box === ' ' || (box === undefined && indent <= section.indent + 1)
    if (counts && !meansNothing(text)) open.push(text.trim())
  }
  return open
}

/** Returns the visible text under a heading, on one line and cut; empty if there is none. */
function textUnder(markdown: string, title: string): string {
  const found: string[] = []
  let isUnder = false
  for (const line of visibleLines(markdown)) {
    const heading = /^ {0,3}#{1,6}(?:[ \t]+(.*))?$/s.exec(line)
    if (heading !== null) isUnder = (heading[1] ?? '').toLowerCase().replace(/[^a-z]/g, '') === title
    else if (isUnder) found.push(line)
  }
  const text = found.join(' ').slice(0, MOST_WHY_CHARACTERS).toWellFormed().replace(/\s+/g, ' ').trim()
  return meansNothing(text) ? '' : text
}

const MOST_WHY_CHARACTERS = 1000

function sectionAfter(section: Section, under: readonly Heading[], level: number, heading: string): Section {
  const title = heading.toLowerCase().replace(/[^a-z]/g, '')
  if (title === 'inprogress' || title === 'todo') {
    return { level, isOpenWork: under.includes(title), indent: null }
  }
  const isPart = section.isOpenWork && level > section.level && title !== 'done'
  return isPart ? { ...section, indent: null } : { level, isOpenWork: false, indent: null }
}

function meansNothing(text: string): boolean {
  const words = text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')
  return words === '' || words === 'none' || words === 'nothing'
}

function* visibleLines(markdown: string): Generator<string> {
  let fence: string | null = null
  let inComment = false
  for (const raw of markdown.split(/\r?\n/)) {
    if (inComment) {
      inComment = !raw.includes('-->')
      continue
    }
    if (fence !== null) {
      if (closes(raw, fence)) fence = null
      continue
    }
    fence = fenceOf(raw, { anyInfo: true })
    if (fence !== null) continue
    const line = withoutComments(raw)
    inComment = startsComment(line)
    if (!inComment) yield line
  }
}

/** Returns a text with each closed HTML comment replaced by `between`; in linear time. */
export function withoutComments(text: string, between = ''): string {
  let visible = ''
  let at = 0
  for (;;) {
    // Use indexOf: a pattern would search the end again from each of a million starts.
    const start = text.indexOf('<!--', at)
    const end = start === -1 ? -1 : text.indexOf('-->', start + 4)
    if (end === -1) return visible + text.slice(at)
    visible += text.slice(at, start) + between
    at = end + 3
  }
}

/** True if a comment starts here; an unclosed `<!--` inside of a line is only text. */
function startsComment(line: string): boolean {
  return /^[ \t]*(?:[-*+][ \t]+(?:\[[ xX]\][ \t]+)?)?<!--/.test(line)
}

/**
 * Returns the first `MAIN.md` of a session from `template` (`prompts/MAIN.template.md`). The goal is verbatim in a code
 * fence, so that no part is read as a heading, an entry or front matter. Replaces only NUL and lone surrogates, by U+FFFD.
 * The title for lists comes from the goal without its secrets.
 * @param redact takes the secrets out of a text
 */
export function newMainFile(
  template: string,
  session: { goal: string; git: { commit: string | null; branch: string | null } },
  redact: (text: string) => string,
): string {
  const goal = writableGoal(session.goal)
  return fillPlaceholders(template, {
    goal: fenced(goal),
    short_title: yamlString(shortTitle(redact(goal))),
    git_commit: yamlString(session.git.commit),
    git_branch: yamlString(session.git.branch),
  })
}

/** Returns the first non-empty line, at most 60 characters, cut at a word, or between two visible characters. */
function shortTitle(goal: string): string {
  const line = /\S[^\r\n]*/.exec(goal)?.[0] ?? ''
  const title = line.slice(0, 1000).toWellFormed().replace(unprintable, ' ').replace(/\s+/g, ' ').trim()
  // Count plain letters directly: the segmenter takes 5 ms to start.
  const isPlain = /^[\x20-\x7e]*$/.test(title)
  const characters = isPlain ? [...title] : Array.from(new Intl.Segmenter().segment(title), part => part.segment)
  if (characters.length <= 60) return title
  const words = characters
    .slice(0, 59)
    .join('')
    .replace(/(?<=^.{30,})\s\S*$/u, '')
  return `${words.trimEnd()}…`
}

/** Returns a YAML string on one line: JSON in double quotes, which YAML reads equally without unprintable characters. */
function yamlString(text: string | null): string {
  return text === null ? 'null' : JSON.stringify(text.replace(unprintable, ' '))
}

// Includes text direction characters, but not joiners, which hold characters together.
const unprintable = /[\p{Cc}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\uFEFF\u202A-\u202E\u2066-\u2069]+/gu
