import { clipEnd, clipStart } from '../base/text.ts'
import type { ReportData } from './report-data.ts'
import { changesInWords, headlineOf, whatIsLeft } from './words.ts'

/** The most of it, in bytes of UTF-8. */
const MOST_BYTES = 64 * 1024
const GOAL_CHARACTERS = 8_000
const WORDS_CHARACTERS = 12_000
const MOST_LEFT = 60
const LEFT_CHARACTERS = 500
const GATE_CHARACTERS = 4_000

/**
 * What a session came to, for one that goes on from it, as Markdown of at most 64 KiB: what was asked for, how it ended,
 * what it changed, what is left and fails, and what its agent said last. Pure.
 */
export function followUpOf(data: ReportData): string {
  const { goal, changes, proof, build, lastWords, session } = data
  const left = whatIsLeft(data)
  const failed = proof.gates.flatMap(({ name, last }) =>
    last === null || last.status === 'passed' || last.output.trim() === '' ? [] : [{ name, output: last.output }],
  )
  const words = build?.summary ?? lastWords
  return clipToBytes(
    [
      `# What session ${session} came to`,
      `## What was asked for\n\n${clipEnd(goal.trim(), GOAL_CHARACTERS)}`,
      `## How it ended\n\n${headlineOf(data).text}`,
      `## What it changed\n\n${[changesInWords(data), ...changes.paths.map(({ path }) => `- ${path}`)].join('\n')}`,
      left.length === 0
        ? '## What is left\n\nNothing that is known.'
        : `## What is left\n\n${left
            .slice(0, MOST_LEFT)
            .map(({ text }) => `- ${clipEnd(text, LEFT_CHARACTERS)}`)
            .join('\n')}`,
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
