import { unreachable } from '../base/errors.ts'
import type { SessionOutcome } from '../session/outcome.ts'

/** A session that has ended, and what is left to do. */
export interface Stop {
  id: string
  outcome: SessionOutcome
  /** How many rounds it was allowed. */
  rounds: number
  /** Prompts that wait and are not worked on any more. */
  waiting: number
  /** The work directory as it was named on the command line; null if it was not. */
  directory: string | null
}

/** What to type to go on from here, as lines for a person; null if nothing is left. */
export function howToGoOn({ id, outcome, rounds, waiting, directory }: Stop): string | null {
  const here = directory === null ? '' : ` -C ${shellWord(directory)}`
  const kept = waiting === 0 ? '' : `\nWhat waits in the queue (${waiting}) is kept.`
  switch (outcome.kind) {
    case 'done':
      return waiting === 0 ? null : `Stopped. To go on: codemachine${here}${kept}`
    case 'limit':
      return `To go on: codemachine resume ${id} --rounds ${rounds * 2}${here}${kept}`
    case 'needs-person':
    case 'interrupted':
      return `To go on: codemachine resume ${id}${here}${kept}`
    default:
      return unreachable(outcome)
  }
}

function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
