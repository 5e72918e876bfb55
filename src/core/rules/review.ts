import { truncate } from '../../base/text.ts'
import type { EventOf } from '../events/events.ts'
import type { Parsed } from '../shapes/memory.ts'
import type { AskedAnswer } from './answer.ts'

/** Settings of reviews; null: as the rounds. */
export type ReviewTerms = NonNullable<EventOf<'session-created'>['review']>

/** Cause of a review: a person wants one before done, or a round changed protected files. */
export type ReviewCause = EventOf<'review-started'>['causes'][number]

/** A reviewer's answer. `agreed`: the work meets the request, and may count as done. */
export type ReviewAnswer = NonNullable<EventOf<'review-ended'>['answer']>

/** A fault that a reviewer wants fixed. */
export type Finding = ReviewAnswer['findings'][number]

/** The reviews of a session so far. */
export interface Reviews {
  /** Number of answered reviews. */
  answered: number
  /** Consecutive reviews without an answer. */
  withoutAnswer: number
  /** The tree that the last review agreed to; null: it did not agree. */
  agreedTo: string | null
  /** Digest of the gate configuration that a review agreed to; null: none. */
  agreedConfiguration: string | null
  /** Round and tree of the last answered review; null: none. */
  of: { round: number; tree: string } | null
  /** Answer of the last review; null: none. */
  last: ReviewAnswer | null
  /** Its findings that an earlier review already had; they are left to the person. */
  repeated: readonly Finding[]
  /** Keys of the findings of all reviews (`findingKey`). */
  seen: readonly string[]
  /** Why the last answer was unusable; null: it was usable. */
  problem: string | null
}

export const NO_REVIEWS: Reviews = {
  answered: 0,
  withoutAnswer: 0,
  agreedTo: null,
  agreedConfiguration: null,
  of: null,
  last: null,
  repeated: [],
  seen: [],
  problem: null,
}

/** Splits an answer's findings into new and repeated ones. */
export function splitFindings(
  { seen }: Reviews,
  { findings }: ReviewAnswer,
): { fresh: readonly Finding[]; repeated: readonly Finding[] } {
  const before = seen.map(readKey)
  const isRepeated = (finding: Finding) => before.some(each => isSameThing(each, readKey(findingKey(finding))))
  return { fresh: findings.filter(each => !isRepeated(each)), repeated: findings.filter(isRepeated) }
}

/**
 * Returns the comparison key of a finding, one text. Two findings are the same if they name the same file, share a code name
 * if both have some, and share most words in any form and order.
 */
export function findingKey({ file, problem }: Finding): string {
  const quoted = [...problem.matchAll(QUOTED)].map(([, code = '']) => code)
  const words = problem.match(WORD) ?? []
  const names = [...quoted.flatMap(code => code.match(WORD) ?? []), ...words.filter(word => NAME.test(word))]
  const said = words.filter(word => word.length >= SHORTEST && !FILLERS.has(word.toLowerCase())).map(stemOf)
  return [file ?? '', listOf(names), listOf(said.length > 0 ? said : words.map(stemOf))].join('\n')
}

const QUOTED = /`([^`\n]+)`/g
const WORD = /[\p{L}_$][\p{L}\p{N}_$]*/gu
/** What only code is called: `parseUrl`, `MAX_SIZE`, `utf8`. */
const NAME = /\p{Ll}\p{Lu}|[_$\p{N}]/u
const SHORTEST = 4
const FILLERS = new Set(
  'also been could does from have into like more must only should still such than that their then there these they this when where which will with would'.split(
    ' ',
  ),
)
/** Two findings of which as much of the words is shared are of the same thing. */
const SHARED_WORDS = 0.6

function stemOf(word: string): string {
  return word.toLowerCase().replace(/(?<=\w{3})(?:ing|ed|es|s)$/, '')
}

function listOf(words: readonly string[]): string {
  return [...new Set(words.map(word => word.toLowerCase()))].sort().join(' ')
}

interface Key {
  file: string
  names: readonly string[]
  words: readonly string[]
}

function readKey(key: string): Key {
  const [words = '', names = '', ...file] = key.split('\n').reverse()
  return { file: file.reverse().join('\n'), names: split(names), words: split(words) }
}

function split(list: string): string[] {
  return list === '' ? [] : list.split(' ')
}

function isSameThing(a: Key, b: Key): boolean {
  if (a.file !== b.file) return false
  if (a.names.length > 0 && b.names.length > 0 && shared(a.names, b.names) === 0) return false
  return 2 * shared(a.words, b.words) >= SHARED_WORDS * (a.words.length + b.words.length)
}

function shared(some: readonly string[], others: readonly string[]): number {
  const known = new Set(others)
  return some.filter(each => known.has(each)).length
}

/** JSON Schema of a reviewer's answer, as strict as codex wants one: every field is required, and no other is allowed. */
export const REVIEW_SCHEMA = {
  type: 'object',
  properties: {
    verdict: { type: 'string', enum: ['agreed', 'findings'] },
    summary: { type: 'string' },
    findings: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          severity: { type: 'string', enum: ['critical', 'major', 'minor'] },
          file: { type: ['string', 'null'] },
          line: { type: ['integer', 'null'] },
          problem: { type: 'string' },
          mend: { type: 'string' },
        },
        required: ['severity', 'file', 'line', 'problem', 'mend'],
        additionalProperties: false,
      },
    },
  },
  required: ['verdict', 'summary', 'findings'],
  additionalProperties: false,
}

/** The most findings that are kept of one answer: those that weigh most. */
const MOST_FINDINGS = 50
const MOST_CHARACTERS = 2_000
const MOST_PATH_CHARACTERS = 1_000

/** The answer that a reviewer is asked for. */
export const REVIEW: AskedAnswer = { name: 'review', schema: REVIEW_SCHEMA }

/**
 * Reads what a reviewer of the work directory answered, a value of `parseAnswer` that fits `REVIEW_SCHEMA`; a problem is a
 * sentence. Texts are cut to 2,000 characters; a path that leads out of the work directory is none. Whoever agrees and names
 * something critical or major does not agree. Pure.
 * @param pathInside a path as the reviewer wrote it, relative to the work directory, with `/`; null if it leads out of it
 */
export function readReview(value: unknown, pathInside: PathInside): Parsed<ReviewAnswer> {
  const { verdict, summary, findings } = value as ReviewAnswer
  const found = findings.map(each => readFinding(each, pathInside))
  if (found.some(({ problem }) => problem === '')) {
    return { ok: false, problem: 'A finding of the reviewer does not say what is wrong.' }
  }
  if (verdict === 'findings' && found.length === 0) {
    return { ok: false, problem: 'The reviewer does not agree, but names no finding.' }
  }
  const isGrave = found.some(({ severity }) => severity !== 'minor')
  const answer: ReviewAnswer = {
    verdict: verdict === 'agreed' && !isGrave ? 'agreed' : 'findings',
    summary: clean(summary),
    findings: found.sort((a, b) => WEIGHTS[a.severity] - WEIGHTS[b.severity]).slice(0, MOST_FINDINGS),
  }
  return { ok: true, value: answer }
}

type PathInside = (path: string) => string | null

const WEIGHTS: Readonly<Record<Finding['severity'], number>> = { critical: 0, major: 1, minor: 2 }

function readFinding({ severity, file, line, problem, mend }: Finding, pathInside: PathInside): Finding {
  return {
    severity,
    file: fileOf(file, pathInside),
    line: line !== null && Number.isSafeInteger(line) && line > 0 ? line : null,
    problem: clean(problem),
    mend: clean(mend),
  }
}

function fileOf(value: string | null, pathInside: PathInside): string | null {
  const given = clean(value ?? '').replaceAll('\n', ' ')
  return given === '' || given.length > MOST_PATH_CHARACTERS ? null : pathInside(given)
}

function clean(value: string): string {
  return truncate(value.replace(/\t/g, ' ').trim(), MOST_CHARACTERS)
}
