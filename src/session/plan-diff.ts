import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff'
import { clipEnd } from '../base/clip.ts'
import type { MemoryTexts } from '../workspace/memory.ts'
import type { EventOf } from './events.ts'

type PlanFiles = EventOf<'replanned'>['files']

/**
 * What changed in the memory files, as unified diffs of at most 16 KiB each, which then say how much is missing. Pure.
 * @param redact takes secrets out of a whole text: one that a bound cuts in two would not be found later
 */
export function planDiff(before: MemoryTexts, after: MemoryTexts, redact: (text: string) => string): PlanFiles {
  return [
    { file: 'MAIN.md' as const, diff: diffOf('MAIN.md', before.main, after.main, redact) },
    { file: 'tasks.json' as const, diff: diffOf('tasks.json', before.tasks, after.tasks, redact) },
  ].filter(({ diff }) => diff !== '')
}

const MOST_CHARACTERS = 16 * 1024
/** Looking for a shorter way between two files takes time with its square; this much some 50 ms. */
const MOST_EDITS = 500
const MOST_LINES = 20_000

function diffOf(name: string, before: string, after: string, redact: (text: string) => string): string {
  if (before === after) return ''
  const [from, to] = [redact(before), redact(after)]
  const headers = `--- ${name}\n+++ ${name}\n`
  if (from === to) return `${headers}[… only a secret is different]\n`
  if (isLong(from) || isLong(to)) return `${headers}${ANEW}`
  const options = { context: 3, maxEditLength: MOST_EDITS, headerOptions: FILE_HEADERS_ONLY }
  const diff = createTwoFilesPatch(name, name, from, to, undefined, undefined, options)
  return clipEnd(diff ?? `${headers}${ANEW}`, MOST_CHARACTERS)
}

/** Where so much is different that it is not worth the time to say what. */
const ANEW = '[… written anew]\n'

function isLong(text: string): boolean {
  let lines = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) if (++lines > MOST_LINES) return true
  return false
}
