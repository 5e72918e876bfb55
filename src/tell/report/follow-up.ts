import { clipEnd, clipStart } from '../../base/text.ts'
import type { ReportData } from './report-data.ts'
import { headlineOf, whatIsLeft } from './words.ts'
import { changesInWords } from './words-of-changes.ts'

/** The most of it, in bytes of UTF-8. */
const MOST_BYTES = 64 * 1024
const GOAL_CHARACTERS = 8_000
const WORDS_CHARACTERS = 12_000
const MOST_LEFT = 60
const LEFT_CHARACTERS = 500
const GATE_CHARACTERS = 4_000

/** What is known of a session beside its report. */
interface FollowedTerms {
  /** What its template says of its work; null: its agent's last words stand there. */
  work: string | null
  /** A line for each session that it went on from, the newest first. */
  earlier: readonly string[]
  /** What has become of its changes since; null: nothing. */
  note: string | null
}

/**
 * What a follow-up session is told of the earlier one, as Markdown of at most 64 KiB: its goal, end, and predecessor, what
 * it changed, and what is left or fails. It closes with what its template says, or what its agent said last.
 * Pure.
 */
export function followUpOf(
  data: ReportData,
  { work, earlier, note }: FollowedTerms = { work: null, earlier: [], note: null },
): string {
  const { goal, changes, proof, build, lastWords, session } = data
  const left = whatIsLeft(data)
  const failed = proof.gates.flatMap(({ name, last }) =>
    last === null || last.status === 'passed' || last.output.trim() === '' ? [] : [{ name, output: last.output }],
  )
  const words = work === null ? (build?.summary ?? lastWords) : null
  const changed = [changesInWords(data), ...changes.paths.map(({ path }) => `- ${path}`)].join('\n')
  return clipToBytes(
    [
      `# What session ${session} came to`,
      `## What was asked for\n\n${clipEnd(goal.trim(), GOAL_CHARACTERS)}`,
      `## How it ended\n\n${headlineOf(data).text}`,
      ...(earlier.length === 0
        ? []
        : [`## What it went on from, the newest first\n\n${earlier.map(line => `- ${line}`).join('\n')}`]),
      `## What it changed\n\n${changed}${note === null ? '' : `\n\n${note}`}`,
      left.length === 0
        ? '## What is left\n\nNothing known.'
        : `## What is left\n\n${left
            .slice(0, MOST_LEFT)
            .map(({ text }) => `- ${clipEnd(text, LEFT_CHARACTERS)}`)
            .join('\n')}`,
      ...(work === null ? [] : [work.trim()]),
      ...failed.map(({ name, output }) => `## What ${name} printed\n\n${clipStart(output.trimEnd(), GATE_CHARACTERS)}`),
      ...(words === null
        ? []
        : [`## What its agent said last (a claim, and no proof)\n\n${clipEnd(words.trim(), WORDS_CHARACTERS)}`]),
    ].join('\n\n'),
  )
}

function clipToBytes(text: string): string {
  let clipped = text
  while (Buffer.byteLength(clipped) > MOST_BYTES) clipped = clipEnd(clipped, Math.floor(clipped.length * 0.9))
  return `${clipped}\n`
}
