import { clipStart } from '../base/clip.ts'
import { fitNotices } from './fit-notices.ts'

/** The most of what is told in one turn: codex takes 1,048,576 characters, and fails a turn with more. */
const MOST_CHARACTERS = 1_048_000

/** What a round is asked for, with what it has to know first. */
export function withNotices(input: string, notices: readonly string[]): string {
  if (notices.length === 0) return input
  const room = MOST_CHARACTERS - input.length
  return `${input}\n\nBefore anything else:\n${fitNotices(notices, room).join('\n')}`
}

/** The input of a round that changes the plan; what was asked for last counts most. */
export function replanInput(asked: string): string {
  return `Change the plan:\n\n${clipStart(asked, MOST_CHARACTERS)}`
}
