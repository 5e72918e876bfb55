import type { RecordedOf } from '../core/events/events.ts'
import type { SessionState } from '../core/state/state.ts'
import { type Description, describe, type Tone } from './names.ts'
import { formatBytes, formatCount, formatDuration } from './numbers.ts'
import { gateName, lastLinesShown, wordsForGate } from './proof.ts'
import { oneLine } from './safe-text.ts'

const NAME_CHARS = 120
const PATH_CHARS = 300
const TEXT_CHARS = 2000
const MOST_FILES = 10

type Step = Pick<NonNullable<SessionState['step']>, 'kind' | 'name'>

/** What codemachine does in a step that is no round: `running lint`; and the same in a word or two. */
export function wordsForStep({ kind, name }: Step): { words: string; short: string } {
  const shown = gateName(name)
  switch (kind) {
    case 'look':
      return { words: `looking: ${shown}`, short: shown }
    case 'command':
      return { words: `running ${shown}`, short: shown }
    case 'write':
      return { words: 'writing files', short: 'writing' }
    case 'claim':
      return { words: 'claiming that it is done', short: 'claiming' }
    // Of a later version.
    default:
      return { words: `${oneLine(kind, NAME_CHARS)} ${shown}`, short: shown }
  }
}

/** What a person is told of a look. What it found is the template's own. */
export function describeLooked({ what }: RecordedOf<'looked'>): Description {
  return describe(`looked: ${gateName(what)}`, 'quiet')
}

/** How a command of the template came out, with the last lines that it printed if that is not good. */
export function describeCommandRun(event: RecordedOf<'command-ran'>): Description {
  const { name, status, durationMs, problem, changed, changedCount, output } = event
  const shown = changed.slice(0, MOST_FILES).map(path => oneLine(path, PATH_CHARS))
  const left = changedCount - shown.length
  const list = [...shown, ...(left > 0 ? [`… and ${left} more`] : [])].join(', ')
  const isBad = status !== 'passed' && status !== 'broken-off'
  return describe(
    [
      `command ${gateName(name)}: ${wordsForGate(event)}, ${formatDuration(durationMs)}`,
      ...(problem === null ? [] : [oneLine(problem, TEXT_CHARS)]),
      ...(changedCount === 0 ? [] : [`it changed ${formatCount(changedCount, 'file')}: ${list}`]),
      ...(isBad ? lastLinesShown(output) : []),
    ].join('\n'),
    toneOf(status),
  )
}

function toneOf(status: RecordedOf<'command-ran'>['status']): Tone {
  if (status === 'passed') return 'good'
  return status === 'broken-off' ? 'quiet' : 'warning'
}

/** What a step has written, or why it has not. */
export function describeWrote({ files, problem }: RecordedOf<'wrote'>): Description {
  if (problem !== null) return describe(`nothing was written: ${oneLine(problem, TEXT_CHARS)}`, 'warning')
  const shown = files.slice(0, MOST_FILES).map(({ path }) => oneLine(path, PATH_CHARS))
  const left = files.length - shown.length
  const list = [...shown, ...(left > 0 ? [`… and ${left} more`] : [])].join(', ')
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  return describe(`wrote ${formatCount(files.length, 'file')} (${formatBytes(bytes)}): ${list}`)
}
