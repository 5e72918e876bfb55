import { styleText } from 'node:util'
import type { View } from '../session/view.ts'
import { describeEvent } from './describe-event.ts'
import type { Tone } from './description.ts'
import { formatTime } from './format-time.ts'

const CONTINUATION = ' '.repeat('22:41:07  '.length)

const COLOURS: Readonly<Record<Tone, Parameters<typeof styleText>[0] | null>> = {
  plain: null,
  quiet: 'dim',
  strong: 'bold',
  good: 'green',
  warning: 'yellow',
  bad: 'red',
}

/**
 * Writes a line for each thing that happened, for a person who reads a log: local time, what, how long, how many
 * tokens. What belongs to a thing follows on indented lines. `write` gets whole lines, with their newline.
 */
export function plainView(write: (text: string) => void, { colour }: { colour: boolean }): View {
  const paint = (text: string, tone: Tone) => {
    const style = colour ? COLOURS[tone] : null
    return style === null || text === '' ? text : styleText(style, text, { validateStream: false })
  }
  return {
    event(event, state) {
      const description = describeEvent(event, state)
      if (description === null) return
      const { text, more, tone } = description
      const time = paint(formatTime(Date.parse(event.at)), 'quiet')
      const lines = [`${time}  ${paint(text, tone)}`, ...more.map(line => `${CONTINUATION}${paint(line, tone)}`)]
      write(`${lines.map(line => line.trimEnd()).join('\n')}\n`)
    },
    live() {},
  }
}
