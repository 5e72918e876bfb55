import { clipEnd } from '../../base/text.ts'
import { titleLine } from '../words/safe-text.ts'
import { codeSpan, escapeMarkdown, proofSections } from './markdown.ts'
import type { ReportData } from './report-data.ts'
import { capital, headlineOf } from './words.ts'

const BEGIN = '<!-- codemachine:begin -->'
const END = '<!-- codemachine:end -->'
const TITLE_CHARS = 100
/** GitHub takes 65,536 characters, and one argument of a program 131,072 bytes. */
const BODY_CHARS = 30_000

/** What the body of a pull or merge request says beside the proof. */
interface BodyFacts {
  /** The issue that it closes, as `#12`; null: none. */
  closes: string | null
  /** What a person has to know of what was pushed, a sentence each. */
  notes: readonly string[]
  /** What to type to check it again. */
  check: string
}

/** The title of a request for a text that says what was wanted: on one line, and nobody is mentioned by it. */
export function requestTitle(text: string): string {
  return inert(titleLine(text, TITLE_CHARS)) || 'Work of codemachine'
}

/**
 * The proof of a session as the body of a pull or merge request, between two marks. What came from agents mentions nobody, closes
 * no issue, and is no command to the host. Without its secrets is how it is given.
 */
export function requestBody(data: ReportData, { closes, notes, check }: BodyFacts): string {
  const { issue } = data
  const about = issue === undefined ? [] : [`Issue: ${escapeMarkdown(issue.url)}`]
  const head = [`**${escapeMarkdown(capital(headlineOf(data).text))}**`, ...about, ...notes.map(escapeMarkdown)]
  const sections = [...head, ...proofSections(data)].join('\n\n')
  const shown = clipEnd(inert(sections), BODY_CHARS)
  return [
    BEGIN,
    ...(closes === null ? [] : [`Closes ${closes}`, '']),
    shown,
    '',
    `Check it again: ${codeSpan(check)}`,
    END,
  ].join('\n')
}

/** A body in which the part between the marks is this one, and what a person has written beside it stays. */
export function withRequestBody(before: string, body: string): string {
  // The last one: what a person has cut in half is theirs.
  const from = before.lastIndexOf(BEGIN)
  const to = before.indexOf(END, from)
  if (from === -1 || to === -1) return before.trim() === '' ? body : `${before.trimEnd()}\n\n${body}`
  return before.slice(0, from) + body + before.slice(to + END.length)
}

/**
 * A text in which a host finds nothing to act on: a word joiner, which nobody sees, stands within `@name`, `#1`, `!1`, `GH-1`,
 * addresses, commands at the beginning of a line, and comments.
 */
export function inert(text: string): string {
  return text.replace(ACTED_ON, `$&${JOINER}`)
}

const JOINER = '\u2060'
const ACTED_ON =
  /[@#!%~$&](?=[\p{L}\p{N}_"'[{:/])|\b[A-Za-z][A-Za-z0-9_]*-(?=\d)|:(?=\\?\/\/)|^[ \t>]*(?=\/)|<(?=!--)/gmu
