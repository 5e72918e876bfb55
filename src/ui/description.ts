import { safeText } from './safe-text.ts'

/** How a thing that happened is meant; a view makes a colour of it. */
export type Tone = 'plain' | 'quiet' | 'strong' | 'good' | 'warning' | 'bad'

/** What a view says of one thing that happened. Safe to write to a terminal; no text in it has a newline. */
export interface Description {
  text: string
  /** What belongs to it, line by line. */
  more: readonly string[]
  tone: Tone
}

/** A description of a text that may have several lines and may come from outside. */
export function describe(text: string, tone: Tone = 'plain'): Description {
  const [first = '', ...more] = safeText(text).split('\n')
  return { text: first, more, tone }
}
