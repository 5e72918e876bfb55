import { clipEnd } from '../base/clip.ts'
import type { AgentStatus } from './build-state.ts'
import type { AgentAnswer } from './delegation-agents.ts'
import type { RoundOutcome } from './outcome.ts'

/** The most of a result that whoever asked is told, and that is journaled; in characters, what is said of the rest left out. */
const MOST_ANSWER = 31_900
const MOST_JOURNALED = 3_900

/** How the work of an agent ended, and what it said last, cleaned; empty: nothing. */
export interface AgentEnd {
  agent: string
  outcome: RoundOutcome
  words: string
}

/** How its turn ended, as the journal says it. */
export function statusOf({ class: end }: RoundOutcome): AgentStatus {
  if (end === 'worked') return 'completed'
  return end === 'interrupted' ? 'terminated' : 'error'
}

/** What is journaled as the result. */
export function resultOf(end: AgentEnd): string {
  return clipEnd(inWords(end), MOST_JOURNALED)
}

/** What whoever asked is told. `counts`: whether the work counts for a task of the plan. */
export function answerOf(end: AgentEnd, instance: string, counts: boolean): AgentAnswer {
  const text = clipEnd(inWords(end), MOST_ANSWER)
  const status = statusOf(end.outcome)
  const success = status === 'completed'
  return { text: success && !counts ? `${text}\n\n${COUNTS_FOR_NONE}` : text, success, status, instance }
}

/** What whoever asked is told where nothing was started. */
export function refusal(problem: string): AgentAnswer {
  return { text: problem, success: false, status: 'refused' }
}

/** What `agent-started` says of the request. */
export function requestOf(task: string): string {
  return clipEnd(task, MOST_JOURNALED)
}

const COUNTS_FOR_NONE = '(The first line of the request names no task of the plan, so this counts for none.)'

function inWords({ agent, outcome, words }: AgentEnd): string {
  if (outcome.class === 'worked') return words || `${agent} has ended without a word.`
  const last = words === '' ? '' : `\n\nThis is what it said last:\n\n${words}`
  return `${agent} ${whyNot(outcome)}${last}`
}

function whyNot({ class: end, message }: RoundOutcome): string {
  const why = message === null ? '' : ` ${message}`
  switch (end) {
    case 'interrupted':
      return 'was ended before its work was done.'
    case 'window':
    case 'quota':
      return `did not come to its end: the account's usage is used up.${why}`
    case 'silent':
      return `did not come to its end: codex was silent.${why}`
    case 'crashed':
      return `did not come to its end: its codex died.${why}`
    default:
      return `did not come to its end.${why}`
  }
}
