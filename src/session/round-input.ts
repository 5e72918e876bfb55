import { createHash } from 'node:crypto'
import { relative, sep } from 'node:path'
import { loadPrompt } from '../base/package.ts'
import { clipEnd, clipStart, fillPlaceholders } from '../base/text.ts'
import type { Notice } from '../core/rules/notices.ts'
import { MOST_WORDS_CHARACTERS } from '../core/state/persons-words.ts'
import type { TemplateSetup } from '../core/template.ts'

/** Encloses text of agents or programs between two lines with its hash, which it cannot contain. Pure. */
export function fenced(text: string): string {
  const mark = createHash('sha256').update(text).digest('hex').slice(0, 16)
  return `[begin ${mark}]\n${text.trimEnd()}\n[end ${mark}]`
}

/** Joins the paragraphs of an input; null parts are left out. Pure. */
export function joined(parts: readonly (string | null)[]): string {
  return parts.filter(part => part !== null).join('\n\n')
}

/** The most of what is told in one turn: codex takes 1,048,576 characters, and fails a turn with more. Before it stand the words of the person. */
const MOST_CHARACTERS = 1_048_000 - MOST_WORDS_CHARACTERS

/** What a round is asked for, with what it has to know first. */
export function withNotices(input: string, notices: readonly Notice[]): string {
  if (notices.length === 0) return input
  const room = MOST_CHARACTERS - input.length
  return `${input}\n\nBefore anything else:\n${fitNotices(notices, room).join('\n')}`
}

/** The input of a round that changes the plan; what was asked for last counts most. */
export function replanInput(asked: string): string {
  return `Change the plan:\n\n${clipStart(asked, MOST_CHARACTERS)}`
}

/**
 * Returns the lines that tell a round of these notices, in their order and in at most `most` characters. The
 * person's own words are the last to go, then the newest; one that is too long is cut, and the last line says how many
 * are left out. Pure.
 */
export function fitNotices(notices: readonly Notice[], most: number): string[] {
  const kept = new Map<number, string>()
  let room = most - LAST_LINE_CHARACTERS
  for (const [at, { text }] of byWeight(notices)) {
    const line = fitLine(`- ${text}`, room)
    if (line === null) continue
    kept.set(at, line)
    room -= line.length + '\n'.length
  }
  const lines = notices.flatMap((_, at) => kept.get(at) ?? [])
  const left = notices.length - lines.length
  return left === 0 ? lines : [...lines, `- There was no room here for ${left} more.`]
}

/** Room for the line that says how many are left out. */
const LAST_LINE_CHARACTERS = 100
/** Room for what `clipEnd` says of the rest, and the end of the line. */
const CUT_CHARACTERS = 100
/** A shorter piece of a notice says nothing. */
const LEAST_NOTICE_CHARACTERS = 1000

/** The notices with their place in the list, those that must be told first. */
function byWeight(notices: readonly Notice[]): [number, Notice][] {
  const newestFirst = [...notices.entries()].reverse()
  const ofPerson = newestFirst.filter(([, { from }]) => from === 'person')
  return [...ofPerson, ...newestFirst.filter(([, { from }]) => from !== 'person')]
}

function fitLine(line: string, room: number): string | null {
  if (line.length < room) return line
  return room < LEAST_NOTICE_CHARACTERS ? null : clipEnd(line, room - CUT_CHARACTERS)
}

/** What the thread of a round is told that changes the plan as a person says. */
export function replanInstructions(setup: Pick<TemplateSetup, 'directory' | 'memory'>): string {
  return withPaths(loadPrompt('replan'), setup)
}

/**
 * A prompt with the paths of a session filled in, relative to the work directory where they lie in it. Throws if a
 * placeholder is left.
 */
export function withPaths(prompt: string, { directory, memory }: Pick<TemplateSetup, 'directory' | 'memory'>): string {
  return fillPlaceholders(prompt, {
    directory,
    main: fromDirectory(directory, memory.main),
    tasks: fromDirectory(directory, memory.tasks),
    kb: fromDirectory(directory, memory.kb),
  })
}

function fromDirectory(directory: string, path: string): string {
  const short = relative(directory, path)
  return short === '..' || short.startsWith(`..${sep}`) ? path : short
}
