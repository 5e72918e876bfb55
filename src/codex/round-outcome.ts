import { stripVTControlCharacters } from 'node:util'
import { systemErrorCode, unreachable } from '../base/errors.ts'
import type { RoundOutcome } from '../session/outcome.ts'
import type { AppServerExit } from './app-server.ts'
import { type CodexError, classifyStartError, classifyTurnError } from './classify.ts'
import type { RequestFailure } from './rpc.ts'

/** The outcome of a turn that was interrupted. */
export const INTERRUPTED: RoundOutcome = { class: 'interrupted', message: null }

/** The outcome of a turn that codex says has ended with this status. */
export function turnOutcome(status: string, error: CodexError | null): RoundOutcome {
  if (status === 'completed') return { class: 'worked', message: null }
  if (status === 'interrupted') return INTERRUPTED
  return error ? classifyTurnError(error) : { class: 'network', message: `The turn ended: ${status}.` }
}

/** The outcome of a request that has no result, while the process lives. */
export function requestOutcome({ cause, message }: RequestFailure): RoundOutcome {
  switch (cause) {
    case 'answered':
      return classifyStartError(message)
    case 'deadline':
      return { class: 'silent', message }
    case 'closed':
      return { class: 'crashed', message }
    default:
      return unreachable(cause)
  }
}

/** Why the system starts no program that does not pass by itself, as too many processes or open files do. */
const LASTING: ReadonlySet<string | null> = new Set([
  'ENOENT',
  'EACCES',
  'EPERM',
  'ENOEXEC',
  'ENOTDIR',
  'EISDIR',
  'ELOOP',
  'ENAMETOOLONG',
  'E2BIG',
])

/**
 * The outcome of a process that ended by itself. While it starts, codex exits with 1 and a sentence on stderr when its
 * home or configuration is unusable.
 */
export function exitOutcome(exit: AppServerExit, starting: boolean): RoundOutcome {
  return { class: isLasting(exit, starting) ? 'config' : 'crashed', message: describeExit(exit) }
}

function isLasting(exit: AppServerExit, starting: boolean): boolean {
  if (exit.reason === 'not-started') return LASTING.has(systemErrorCode(exit.error))
  return starting && exit.reason === 'exited' && exit.code === 1
}

/** What codex logs as it goes is no last word. */
const LOG_LINE = /^\s*\d{4}-\d\d-\d\dT\S+\s+(?:TRACE|DEBUG|INFO|WARN|ERROR)\s/

/** How a process ended, with its last words. */
export function describeExit(exit: AppServerExit): string {
  // Where the person has RUST_BACKTRACE set, the sentence comes first.
  const [said = ''] = stripVTControlCharacters(exit.stderr).split('\nStack backtrace:')
  const words = said
    .split('\n')
    .filter(line => line.trim() !== '' && !LOG_LINE.test(line))
    .slice(-3)
    .join(' ')
  switch (exit.reason) {
    case 'not-started':
      return `codex could not be started: ${exit.error.message}`
    case 'killed':
      return `codex was killed (${exit.signal}). ${words}`.trim()
    case 'not-ended':
      return `codex did not end, though it was killed. ${words}`.trim()
    case 'exited':
      return `codex ended with exit code ${exit.code}. ${words}`.trim()
  }
}
