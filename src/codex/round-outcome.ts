import { stripVTControlCharacters } from 'node:util'
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
  return cause === 'answered' ? classifyStartError(message) : { class: 'crashed', message }
}

/**
 * The outcome of a process that ended by itself. While it starts, codex exits with 1 and a sentence on stderr when its
 * home or configuration is unusable.
 */
export function exitOutcome(exit: AppServerExit, starting: boolean): RoundOutcome {
  const isConfig = exit.reason === 'not-started' || (starting && exit.reason === 'exited' && exit.code === 1)
  return { class: isConfig ? 'config' : 'crashed', message: describeExit(exit) }
}

/** How a process ended, with its last words. */
export function describeExit(exit: AppServerExit): string {
  // Where the person has RUST_BACKTRACE set, the sentence comes first.
  const [said = ''] = stripVTControlCharacters(exit.stderr).split('\nStack backtrace:')
  const words = said.trim().split('\n').slice(-3).join(' ')
  switch (exit.reason) {
    case 'not-started':
      return `codex could not be started: ${exit.error.message}`
    case 'killed':
      return `codex was killed (${exit.signal}). ${words}`.trim()
    case 'exited':
      return `codex ended with exit code ${exit.code}. ${words}`.trim()
  }
}
