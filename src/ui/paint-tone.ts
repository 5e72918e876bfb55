import { styleText } from 'node:util'
import type { Tone } from './description.ts'

const COLOURS: Readonly<Record<Tone, Parameters<typeof styleText>[0] | null>> = {
  plain: null,
  quiet: 'dim',
  strong: 'bold',
  good: 'green',
  warning: 'yellow',
  bad: 'red',
}

/** A text in the colour of its tone, for lines that are written to a terminal. */
export function paintTone(text: string, tone: Tone): string {
  const style = COLOURS[tone]
  return style === null || text === '' ? text : styleText(style, text, { validateStream: false })
}
