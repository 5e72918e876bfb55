import type { RecordedOf } from '../session/events.ts'
import type { SessionState } from '../session/state.ts'
import { safeOutput } from './blocks/safe-output.ts'
import { type Description, describe, type Tone } from './description.ts'
import { formatCount } from './format-count.ts'
import { formatDuration } from './format-duration.ts'
import { oneLine } from './safe-text.ts'
import {
  gateName,
  wordsForBefore,
  wordsForChangedByGate,
  wordsForFlaky,
  wordsForGate,
  wordsForGateTime,
} from './words-for-gate.ts'

type GateEnded = RecordedOf<'gate-ended'>

const OUTPUT_LINES = 10
const LINE_CHARS = 300
const TEXT_CHARS = 2000

/** What a person is told of a gate that has run, part by part. */
export interface GateInWords {
  /** `gate tests`, `gate tests, after round 3`. */
  name: string
  /** `failed (exit code 1)`. */
  end: string
  time: string
  /** What else belongs to how it ended: `it failed before round 1, too`. */
  remarks: readonly string[]
  /** Sentences on what stood in its way, and on what it did to the files. */
  notes: readonly string[]
  /** Whether what it printed shows what is wrong. */
  isOutputShown: boolean
  tone: Tone
}

/** How a gate came out, with the last lines that it printed if that is not good. */
export function describeGate(event: GateEnded, state: SessionState): Description {
  const { name, end, time, remarks, notes, isOutputShown, tone } = gateInWords(event, state)
  const line = [`${name}: ${end}, ${time}`, ...remarks].join('; ')
  return describe([line, ...notes, ...(isOutputShown ? lastLines(event.output) : [])].join('\n'), tone)
}

/** The parts of which that is told. */
export function gateInWords(event: GateEnded, state: SessionState): GateInWords {
  const { gate, status, when, round, durationMs } = event
  const time = wordsForGateTime(when, round)
  const isBad = status === 'failed' || status === 'timed-out' || status === 'not-started'
  return {
    name: `gate ${gateName(gate)}${time === null ? '' : `, ${time}`}`,
    end: wordsForGate(event),
    time: formatDuration(durationMs),
    remarks: isBad ? remarksOn(event, state) : status === 'flaky' ? [wordsForFlaky(event)] : [],
    notes: notesOn(event),
    isOutputShown: isBad || status === 'flaky',
    tone: isBad || status === 'flaky' ? 'warning' : status === 'passed' ? 'good' : 'quiet',
  }
}

function remarksOn({ gate, when, status }: GateEnded, { gates, before }: SessionState): string[] {
  const first = before.find(result => result.gate === gate)?.status
  const since = when === 'before' || first === undefined ? null : wordsForBefore(first, status)
  const isOptional = gates.some(({ name, required }) => name === gate && !required)
  return [
    ...(since === null ? [] : [since]),
    ...(isOptional && when === 'claim' ? ['it is not required, so done does not wait for it'] : []),
  ]
}

function notesOn({ problem, ...rest }: GateEnded): string[] {
  const changed = wordsForChangedByGate(rest)
  return [...(problem === null ? [] : [oneLine(problem, TEXT_CHARS)]), ...(changed === null ? [] : [changed])]
}

function lastLines(output: string): string[] {
  const lines = safeOutput(output).filter(line => line !== '')
  const left = lines.length - OUTPUT_LINES
  return [
    ...(left > 0 ? [`… ${formatCount(left, 'line')} before`] : []),
    ...lines.slice(-OUTPUT_LINES).map(line => oneLine(line, LINE_CHARS)),
  ].map(line => `  ${line}`)
}
