import type { RecordedOf } from '../session/events.ts'
import { type Description, describe } from './description.ts'
import { oneLine } from './safe-text.ts'
import { shownCommand } from './shown-command.ts'

const METHOD_CHARS = 200
const TEXT_CHARS = 2000

/** What codex asked for, and what it was answered. */
export function describeRequest({ method, subject, answer }: RecordedOf<'request-answered'>): Description {
  const words = WORDS.get(method)?.(subject) ?? `asked (${oneLine(method, METHOD_CHARS)}): ${text(subject)}`
  return describe(`codex ${words}  → ${text(answer)}`)
}

/** Of the requests that are answered; one without a reason has as its subject only what kind it is. */
const WORDS: ReadonlyMap<string, (subject: string) => string> = new Map([
  ['item/commandExecution/requestApproval', subject => `asked to run: ${text(shownCommand(subject))}`],
  ['item/fileChange/requestApproval', subject => `asked to change files${because(subject, 'a file change')}`],
  ['item/permissions/requestApproval', subject => `asked for more permissions${because(subject, 'more permissions')}`],
  ['item/tool/requestUserInput', subject => `asked: ${text(subject)}`],
  ['mcpServer/elicitation/request', subject => `passed on ${text(subject)}`],
  ['item/tool/call', subject => `asked for the tool ${text(subject)}`],
])

function because(subject: string, unreasoned: string): string {
  return subject === unreasoned ? '' : `: ${text(subject)}`
}

function text(value: string): string {
  return oneLine(value, TEXT_CHARS)
}
