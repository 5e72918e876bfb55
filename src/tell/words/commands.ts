import { unreachable } from '../../base/errors.ts'
import type { SessionLimits, SessionOutcome, Used } from '../../core/events/outcome.ts'
import type { LimitName } from '../../core/rules/run-limits.ts'
import type { PromptTerms } from '../../core/shapes/queue.ts'
import { shellWord } from '../../platform/shell-word.ts'
import { formatCount } from './numbers.ts'
import { oneLine } from './safe-text.ts'

/** An ended session, and the remaining queue. */
export interface Stop {
  id: string
  outcome: SessionOutcome
  /** Its limits, and its use of them. */
  limits: SessionLimits
  used: Used
  /** Queued prompts that this run no longer handles. */
  waiting: number
  /** The work directory as typed on the command line; null: not typed. */
  directory: string | null
}

/** Returns the command that continues from here, as lines for a person; null: nothing left to do. `hasSlash`: it is typed on the screen. */
export function howToGoOn({ id, outcome, limits, used, waiting, directory }: Stop, hasSlash = false): string | null {
  const resume = () =>
    hasSlash
      ? `${secretsFirst(outcome, directory)}/resume ${id}`
      : resumeWithMore({ id, outcome, limits, used, directory })
  const kept = waiting === 0 ? '' : `\nThe queue (${waiting}) is kept.`
  switch (outcome.kind) {
    case 'done':
      return waiting === 0 ? null : `Stopped. To resume: codemachine${here(directory)}${kept}`
    case 'answered':
    case 'replayed':
      return null
    case 'planned':
      return `To carry it out: ${resume()}${kept}`
    case 'limit':
    case 'needs-person':
    case 'stalled':
    case 'interrupted':
      return `To continue: ${resume()}${kept}`
    default:
      return unreachable(outcome)
  }
}

/** Returns the command that resumes a session. `directory`: as typed on the command line; null: not typed. */
export function resumeCommand(id: string, directory: string | null): string {
  return `codemachine resume ${id}${here(directory)}`
}

function secretsFirst(outcome: SessionOutcome | null, directory: string | null): string {
  const hint = outcome?.kind === 'needs-person' ? outcome.hint : null
  const keys = hint?.do === 'secret' ? hint.keys : []
  return keys.map(key => `codemachine secret set ${key}${here(directory)}; `).join('')
}

/** Returns `resumeCommand` with raised limits, and with whatever the session lacked, on one line. */
export function resumeWithMore({
  id,
  outcome,
  limits,
  used,
  directory,
}: Omit<Stop, 'outcome' | 'waiting'> & { outcome: SessionOutcome | null }): string {
  return `${secretsFirst(outcome, directory)}codemachine resume ${id}${more(limits, used)}${networkFlag(outcome)}${here(directory)}`
}

/** Returns the `--network` flag of a resume command, with a space before it; empty if it ended for another reason. */
export function networkFlag(outcome: SessionOutcome | null): string {
  const hint = outcome?.kind === 'needs-person' ? outcome.hint : null
  return hint?.do === 'network' || (hint?.do === 'say' && hint.network) ? ' --network' : ''
}

/** Returns the `-C` flag for this work directory, with a space before it; empty if none was typed. */
export function here(directory: string | null): string {
  return directory === null ? '' : ` -C ${shellWord(directory)}`
}

/** Returns flags that raise the used-up limits to twice as much, counted from the session's start. */
function more(limits: SessionLimits, used: Used): string {
  const twice = (limit: number | null, value: number) =>
    limit !== null && value >= limit ? 2 * Math.max(limit, value) : null
  const rounds = twice(limits.rounds, used.rounds)
  const timeMs = twice(limits.timeMs, used.timeMs)
  const tokens = twice(limits.tokens, used.tokens)
  const cost = twice(limits.cost ?? null, used.cost ?? 0)
  return [
    ...(rounds === null ? [] : [` --rounds ${Math.min(rounds, MOST_ROUNDS)}`]),
    ...(timeMs === null ? [] : [` --max-time ${durationAsTyped(timeMs)}`]),
    ...(tokens === null ? [] : [` --max-tokens ${countAsTyped(roundedUp(tokens))}`]),
    ...(cost === null ? [] : [` --max-cost ${costAsTyped(cost)}`]),
  ].join('')
}

/** Largest value of the setting. */
const MOST_ROUNDS = 100_000

/** Rounds up to two digits. */
function roundedUp(count: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(count)) - 1)
  return Math.ceil(count / unit) * unit
}

const SECOND = 1000
const UNITS = [
  [3600 * SECOND, 'h'],
  [60 * SECOND, 'm'],
  [SECOND, 's'],
] as const

/** Formats a duration (ms) as a flag's value, rounded up to a second: `8h`, `1h30m`, `45s`. */
export function durationAsTyped(ms: number): string {
  let rest = Math.max(1, Math.ceil(ms / SECOND)) * SECOND
  const parts: string[] = []
  for (const [unit, name] of UNITS) {
    if (rest >= unit) parts.push(`${Math.floor(rest / unit)}${name}`)
    rest %= unit
  }
  return parts.join('')
}

/** Formats a number as a flag's value: `5M`, `500k`, `1234`. */
export function countAsTyped(count: number): string {
  if (count % 1_000_000 === 0) return `${count / 1_000_000}M`
  return count % 1000 === 0 ? `${count / 1000}k` : String(count)
}

/** Formats a limit as a flag: `--max-tokens 5M`. */
export function limitAsTyped(name: LimitName, value: number): string {
  switch (name) {
    case 'rounds':
      return `--rounds ${value}`
    case 'timeMs':
      return `--max-time ${durationAsTyped(value)}`
    case 'tokens':
      return `--max-tokens ${countAsTyped(value)}`
    case 'cost':
      return `--max-cost ${costAsTyped(value)}`
    default:
      return unreachable(name)
  }
}

/** Formats an amount of money as a flag's value, rounded up to the hundredth. */
export function costAsTyped(amount: number): string {
  return String(Math.max(0.01, Math.ceil(amount * 100 - 1e-6) / 100))
}

/** Says why a run begins no queued prompt: it has used up one of its limits. */
export function wordsForNothingLeft(name: LimitName, limit: number, waiting: number): string {
  const prompts = waiting === 1 ? '1 prompt waits' : `${waiting} prompts wait`
  return `The queue does not start (${prompts}): the run has used up its ${limitAsTyped(name, limit)}, which is for all its sessions together.`
}

/** What the session of a queued prompt begins with beside its prompt, as `build, 5 rounds, 2h`; empty if nothing was said. */
export function termsInWords({
  template,
  limits: { rounds, timeMs, tokens, cost } = {},
  gates = [],
  prove,
  follows,
  issue,
  schedule,
}: PromptTerms): string {
  return [
    template === undefined ? [] : oneLine(template, MOST_WORD),
    rounds === undefined ? [] : formatCount(rounds, 'round'),
    timeMs === undefined ? [] : durationAsTyped(timeMs),
    tokens === undefined ? [] : `${countAsTyped(tokens)} tokens`,
    cost === undefined ? [] : `a cost of ${costAsTyped(cost)}`,
    follows === undefined ? [] : `after ${oneLine(follows, MOST_WORD)}`,
    issue === undefined ? [] : `issue ${issue.number}`,
    schedule === undefined ? [] : `schedule ${oneLine(schedule, MOST_WORD)}`,
    prove ? 'proved' : [],
    gates.map(gate => `verified by ${oneLine(gate, MOST_WORD)}`),
  ]
    .flat()
    .join(', ')
}

const MOST_WORD = 60
