import type { RoundClass, RoundOutcome } from '../session/outcome.ts'
import { oneLine } from './safe-text.ts'

const MESSAGE_CHARS = 2000

const WORDS: Readonly<Record<RoundClass, string>> = {
  worked: 'worked',
  interrupted: 'interrupted',
  'context-full': 'the context was full',
  refused: 'refused',
  window: 'usage limit',
  throttle: 'the server is busy',
  network: 'network',
  quota: 'no credit',
  auth: 'login',
  config: 'configuration',
  silent: 'silence',
  crashed: 'codex crashed',
}

/** What a class of failure is called: `usage limit`. */
export function wordsForClass(end: RoundClass): string {
  return WORDS[end]
}

/** How a round ended, in codex's own words too if it gave any, as a part of a sentence: `usage limit: You have hit your limit` */
export function wordsForCause(outcome: RoundOutcome): string {
  const words = wordsForClass(outcome.class)
  if (outcome.message === null) return words
  return `${words}: ${oneLine(outcome.message, MESSAGE_CHARS).replace(/(?<!\.)\.$/, '')}`
}

/** As `wordsForCause`, where a wait for it comes next and says the rest: `usage limit`. */
export function wordsForRoundEnd(outcome: RoundOutcome): string {
  return ALWAYS_WAITED_FOR.has(outcome.class) ? wordsForClass(outcome.class) : wordsForCause(outcome)
}

const ALWAYS_WAITED_FOR: ReadonlySet<RoundClass> = new Set(['window', 'throttle', 'network'])
