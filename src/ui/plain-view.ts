import { unreachable } from '../base/errors.ts'
import type { SessionState } from '../session/state.ts'
import type { View } from '../session/view.ts'
import { Countdown } from './countdown.ts'
import { describeEvent } from './describe-event.ts'
import { type Description, describe, type Tone } from './description.ts'
import { formatTime } from './format-time.ts'
import { paintTone } from './paint-tone.ts'
import { waitEndOf } from './wait-end.ts'

const CONTINUATION = ' '.repeat('22:41:07  '.length)

/**
 * Writes a line for each thing that happened, for a person who reads a log: local time, what, how long, how many
 * tokens. What belongs to a thing follows on indented lines. A wait is counted down, a line every 15 minutes. `write`
 * gets whole lines, with their newline.
 */
export function plainView(write: (text: string) => void, { colour }: { colour: boolean }): View {
  let countdown: Countdown | null = null
  const paint = (text: string, tone: Tone) => (colour ? paintTone(text, tone) : text)
  const say = (at: number, { text, more, tone }: Description) => {
    const time = paint(formatTime(at), 'quiet')
    const lines = [`${time}  ${paint(text, tone)}`, ...more.map(line => `${CONTINUATION}${paint(line, tone)}`)]
    write(`${lines.map(line => line.trimEnd()).join('\n')}\n`)
  }
  return {
    event(event, state) {
      const at = Date.parse(event.at)
      countdown = countdownOf(state, countdown, at)
      const description = describeEvent(event, state)
      if (description !== null) say(at, description)
    },
    live(event) {
      switch (event.type) {
        case 'still-waiting': {
          const text = countdown?.tick(event.leftMs)
          if (countdown && text) say(countdown.until - event.leftMs, describe(text, 'quiet'))
          break
        }
        // Comes again, whole, as `item-completed`.
        case 'item-started':
        case 'text-delta':
        case 'output-delta':
          break
        default:
          unreachable(event)
      }
    },
  }
}

/** The countdown after an event at the time `at`: the same one as long as it is the same wait. */
function countdownOf(state: SessionState, countdown: Countdown | null, at: number): Countdown | null {
  const end = waitEndOf(state)
  if (end === null) return null
  return end === countdown?.until ? countdown : new Countdown(end, end - at)
}
