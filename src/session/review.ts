/** With what reviews are made; null: what the rounds have. */
export interface ReviewTerms {
  model: string | null
  effort: string | null
}

/** Why a review is made: a person wants one before done, or a round changed what a gate protects. */
export type ReviewCause = 'asked' | 'protected'

/** Something that a reviewer wants to have mended. */
export interface Finding {
  severity: 'critical' | 'major' | 'minor'
  /** Relative to the work directory; null if it is about no file. */
  file: string | null
  /** From 1; null if it is about no line. */
  line: number | null
  problem: string
  mend: string
}

/** What a reviewer answered. `agreed`: the work is what was asked for, and may be called done. */
export interface ReviewAnswer {
  verdict: 'agreed' | 'findings'
  summary: string
  findings: readonly Finding[]
}

/** The reviews of a session so far. */
export interface Reviews {
  /** How many gave an answer. */
  answered: number
  /** How many in a row gave none. */
  withoutAnswer: number
  /** The tree that the last one agreed to; null if it did not agree. */
  agreedTo: string | null
  /** Of what the last one that answered was; null if there was none. */
  of: { round: number; tree: string } | null
  /** What the last one found; null if there was none. */
  last: ReviewAnswer | null
  /** Of these, what one before it had found, too: it is left to the person. */
  repeated: readonly Finding[]
  /** What tells findings of all reviews apart (`keyOf`). */
  seen: readonly string[]
}

export const NO_REVIEWS: Reviews = {
  answered: 0,
  withoutAnswer: 0,
  agreedTo: null,
  of: null,
  last: null,
  repeated: [],
  seen: [],
}

/** The findings of an answer that no review before it had, and those that one had. */
export function splitFindings(
  { seen }: Reviews,
  { findings }: ReviewAnswer,
): { fresh: readonly Finding[]; repeated: readonly Finding[] } {
  const before = seen.map(readKey)
  const isRepeated = (finding: Finding) => before.some(each => isSameThing(each, readKey(keyOf(finding))))
  return { fresh: findings.filter(each => !isRepeated(each)), repeated: findings.filter(isRepeated) }
}

/**
 * What of a finding is compared with others, as one text. Two are of the same thing if they are about the same file,
 * speak of the same code where both name some, and share most of their words, whatever the forms and the order of these.
 */
export function keyOf({ file, problem }: Finding): string {
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
const MOST = 0.6

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
  return 2 * shared(a.words, b.words) >= MOST * (a.words.length + b.words.length)
}

function shared(some: readonly string[], others: readonly string[]): number {
  const known = new Set(others)
  return some.filter(each => known.has(each)).length
}
