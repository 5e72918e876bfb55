import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff'
import { inlineCode } from '../../base/markdown.ts'
import { clipEnd, truncate } from '../../base/text.ts'
import type { Parsed } from '../../core/shapes/memory.ts'
import { cleanPlan, type Mistake, type Plan } from './plan.ts'

/** A version of a plan, with the values of its file's head. */
export interface PlanHead {
  version: number
  author: 'planner' | 'person'
  /** Requested change of the version before; null: none. */
  feedback: string | null
  plan: Plan
  /** Hash of the plan, from `hashOfPlan`. */
  sha256: string
}

/**
 * Returns the text of `plan/vN.md`: front matter with facts of the version, and the plan in Markdown, which a person may
 * edit. `readPlanText` reads the same plan from it. Pure.
 */
export function planText({ version, author, feedback, plan, sha256 }: PlanHead): string {
  const head = [
    `version: ${version}`,
    `author: ${author}`,
    // A JSON string is valid YAML.
    ...(feedback === null ? [] : [`feedback: ${JSON.stringify(truncate(feedback, MOST_FEEDBACK))}`]),
    `sha256: ${sha256}`,
    '# Edit what stands below, and keep the headings in their order. Write commands and paths between backticks.',
  ]
  return `---\n${head.join('\n')}\n---\n\n${planMarkdown(plan)}`
}

const MOST_FEEDBACK = 4_000

/** Headings below the description, in order. */
const HEADINGS = ['Files', 'Risks', 'Verification', 'Questions'] as const
type Heading = (typeof HEADINGS)[number]

/** A plan in Markdown, without front matter. Pure. */
export function planMarkdown({ description, files, risks, verification, questions }: Plan): string {
  const entries: Record<Heading, readonly string[]> = {
    Files: files.map(({ path, change }) => pairText(path, change)),
    Risks: risks,
    Verification: verification.map(({ run, why }) => pairText(run, why)),
    Questions: questions,
  }
  const sections = HEADINGS.map(heading => `## ${heading}\n\n${listText(entries[heading])}`)
  return `${['# Plan', description, ...sections].join('\n\n')}\n`
}

function listText(entries: readonly string[]): string {
  return entries.length === 0 ? '*None.*' : entries.map(entry => `- ${indented(entry)}`).join('\n')
}

/** Indents all lines after the first by two blanks, so that none is a heading or an entry. */
function indented(text: string): string {
  return text.replace(/\n(?!\n|$)/g, '\n  ')
}

function pairText(code: string, text: string): string {
  return text === '' ? inlineCode(code) : `${inlineCode(code)}: ${text}`
}

/** Most characters of a file to read as a plan. */
const MOST_CHARACTERS = 256 * 1024

/**
 * Reads the plan of a `planText` text, even after a person's edit. A problem has a line per mistake, with the file's line if
 * known. Pure.
 * @param mistakesOf finds mistakes of a readable plan; left out: no check
 */
export function readPlanText(text: string, mistakesOf: (plan: Plan) => readonly Mistake[] = () => []): Parsed<Plan> {
  if (text.length > MOST_CHARACTERS) {
    return refused(`The file has ${text.length} characters; ${MOST_CHARACTERS} are the most that a plan may have.`)
  }
  const lines = text
    .replace(/^\uFEFF/, '')
    .replace(/\r\n?/g, '\n')
    .split('\n')
  const start = afterFrontMatter(lines)
  if (start === null) return refused('Line 1: the front matter has no end; close it with a line ---, or remove it.')
  const sections = sectionsIn(lines, start)
  if (!sections.ok) return sections
  const { description, entries } = sections.value
  const files = pairsOf(entries.Files, 'a path', /^([^\s`]+?)(?=:?\s|:?$)/)
  const commands = pairsOf(entries.Verification, 'a command', null)
  if (!files.ok) return files
  if (!commands.ok) return commands
  const plan = cleanPlan({
    description,
    files: files.value.map(([path, change]) => ({ path, change })),
    risks: entries.Risks.map(({ text }) => text),
    verification: commands.value.map(([run, why]) => ({ run, why })),
    questions: entries.Questions.map(({ text }) => text),
  })
  const wrong = mistakesOf(plan)
  if (wrong.length === 0) return { ok: true, value: plan }
  return refused(
    wrong
      .slice(0, MOST_NAMED)
      .map(mistake => atLine(mistake, entries))
      .join('\n'),
  )
}

/** The most mistakes that are named at once. */
const MOST_NAMED = 5

function refused(problem: string): { ok: false; problem: string } {
  return { ok: false, problem }
}

/** Where the plan begins; null: the front matter has no end. */
function afterFrontMatter(lines: readonly string[]): number | null {
  if (!/^---\s*$/.test(lines[0] ?? '')) return 0
  const end = lines.findIndex((line, at) => at > 0 && /^---\s*$/.test(line))
  return end === -1 ? null : end + 1
}

/**
 * The lines of the headings, looked for from the end: below them are only entries, in which no line begins as a heading
 * does, so that a description may have the same headings.
 */
function headingsIn(lines: readonly string[], start: number): Parsed<number[]> {
  const found: number[] = []
  let end = lines.length
  for (const heading of HEADINGS.toReversed()) {
    const is = new RegExp(`^##[ \\t]+${heading}[ \\t#]*$`, 'i')
    const at = lines.findLastIndex((line, index) => index >= start && index < end && is.test(line))
    if (at === -1) {
      const below = found[0] === undefined ? 'at the end' : `above line ${found[0] + 1}`
      const order = HEADINGS.map(each => `## ${each}`).join(', ')
      return refused(
        `There is no line "## ${heading}" ${below}; keep the headings in this order: ${order}. A section may be empty.`,
      )
    }
    found.unshift(at)
    end = at
  }
  return { ok: true, value: found }
}

/** What stands before the headings, and the entries below each of them. */
interface Sections {
  description: string
  entries: Record<Heading, readonly Entry[]>
}

/** An entry of a list, and its line from 1. */
interface Entry {
  text: string
  line: number
}

function sectionsIn(lines: readonly string[], start: number): Parsed<Sections> {
  const places = headingsIn(lines, start)
  if (!places.ok) return places
  const entries: Sections['entries'] = { Files: [], Risks: [], Verification: [], Questions: [] }
  for (const [at, heading] of HEADINGS.entries()) {
    const found = entriesIn(lines, (places.value[at] ?? 0) + 1, places.value[at + 1] ?? lines.length)
    if (!found.ok) return found
    entries[heading] = found.value
  }
  return { ok: true, value: { description: descriptionIn(lines.slice(start, places.value[0])), entries } }
}

function entriesIn(lines: readonly string[], start: number, end: number): Parsed<Entry[]> {
  const entries: { texts: string[]; line: number }[] = []
  for (let at = start; at < end; at++) {
    const line = lines[at] ?? ''
    const begun = /^(?:[-*+]|\d{1,3}[.)])(?: (.*)|[ \t]*)$/.exec(line)
    const last = entries.at(-1)
    if (/^[*_]?None\.?[*_]?\s*$/i.test(line)) continue
    if (begun !== null) entries.push({ texts: [begun[1] ?? ''], line: at + 1 })
    else if (last !== undefined && /^(?: {2}|\t|[ \t]*$)/.test(line)) last.texts.push(line.replace(/^(?: {2}|\t)/, ''))
    else if (line.trim() !== '') {
      return refused(
        `Line ${at + 1}: ${JSON.stringify(truncate(line, 60))} is not a list entry; begin it with "- ", or with two spaces to continue the entry above.`,
      )
    }
  }
  const found = entries.map(({ texts, line }) => ({ text: texts.join('\n').trim(), line }))
  return { ok: true, value: found.filter(({ text }) => text !== '') }
}

/** A code span at the beginning, and what is said of it. */
const PAIR = /^(`+)(?!`)(.*?[^`])\1(?!`)(?:: ?|\s*$|\s+(?:[-–—:]+\s+)?)([\s\S]*)$/

/** @param bare how the first part looks where it stands without backticks; null: it has to have them */
function pairsOf(entries: readonly Entry[], what: string, bare: RegExp | null): Parsed<[string, string][]> {
  const pairs: [string, string][] = []
  for (const { text, line } of entries) {
    const [, , code = '', rest = ''] = PAIR.exec(text) ?? []
    const plain = bare?.exec(text)?.[1]
    if (code !== '') pairs.push([code, rest])
    else if (plain !== undefined)
      pairs.push([
        plain,
        text
          .trim()
          .slice(plain.length)
          .replace(/^:?\s*/, ''),
      ])
    else {
      const example = what === 'a path' ? '- `src/a.ts`: what changes in it' : '- `npm test`: what it shows'
      return refused(`Line ${line}: this entry must begin with ${what} between backticks, such as "${example}".`)
    }
  }
  return { ok: true, value: pairs }
}

function descriptionIn(lines: readonly string[]): string {
  const first = lines.findIndex(line => line.trim() !== '')
  return (/^#[ \t]+Plan[ \t#]*$/i.test(lines[first] ?? '') ? lines.slice(first + 1) : lines).join('\n')
}

/** A mistake as a sentence with its line, where it is of one entry. */
function atLine({ place, wrong }: Mistake, entries: Sections['entries']): string {
  const [, list, at] = /^(files|verification)\[(\d+)\]/.exec(place) ?? []
  const line = (list === 'files' ? entries.Files : entries.Verification)[Number(at)]?.line
  if (list === undefined || line === undefined) return `The ${place === '' ? 'plan' : place} ${wrong}`
  return `Line ${line}: the ${list === 'files' ? 'path' : 'command'} ${wrong}`
}

/** The most of a diff, characters; looking for the shortest takes time with the square of the edits. */
const MOST_DIFF = 16 * 1024
const MOST_EDITS = 500

/** What is different in `after`, as a unified diff of their Markdown, at most 16 KiB; empty: nothing. Pure. */
export function planDiff(before: Plan, after: Plan): string {
  const [from, to] = [planMarkdown(before), planMarkdown(after)]
  if (from === to) return ''
  const options = { context: 3, maxEditLength: MOST_EDITS, headerOptions: FILE_HEADERS_ONLY }
  const diff = createTwoFilesPatch('plan', 'plan', from, to, undefined, undefined, options)
  return clipEnd(diff ?? '--- plan\n+++ plan\n[… written anew]\n', MOST_DIFF)
}
