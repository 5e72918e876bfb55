import { jsonView } from '../ui/json-view.ts'
import { paintTone } from '../ui/paint-tone.ts'
import { plainView } from '../ui/plain-view.ts'
import type { CliContext } from './context.ts'
import type { Display } from './display.ts'
import type { RunFlags } from './flags.ts'
import { wantsColour } from './wants-colour.ts'

/** Of a file that lines go to. */
const COLUMNS = 80
const LEAST_COLUMNS = 40

/** The lines of stdout, as the flags say. */
export function displayOn(context: CliContext, flags: RunFlags): Display {
  const { stdout, stderr } = context
  const write = (text: string) => void stdout.write(text)
  stdout.once('error', () => {
    stderr.write('Nobody reads the output any more. The work goes on; codemachine logs -f follows it.\n')
  })
  return {
    view: flags.json ? jsonView(write) : plainView(write, { colour: wantsColour(context) }),
    say: text => void (flags.json ? stderr : stdout).write(`${text}\n`),
    card(lines) {
      if (flags.json) return
      const columns = Math.max(LEAST_COLUMNS, stdout.columns ?? COLUMNS)
      const paint = wantsColour(context) ? paintTone : (text: string) => text
      write(`${['', ...lines({ columns }).map(({ text, tone }) => paint(text, tone)), ''].join('\n')}\n`)
    },
    reach: () => {},
  }
}
