import { diskFull, isNoRoom } from '../base/disk-full.ts'
import { Interrupted, messageOf, UserError } from '../base/errors.ts'
import { redactorOf } from '../base/redactor.ts'
import { secretVariables } from '../secrets/secret-variables.ts'
import type { CliContext } from './context.ts'

/**
 * Shows a person what was thrown, and returns the exit code that stands for it. Without the secrets of the environment:
 * what is shown of a bug may be sent on.
 */
export function showError(error: unknown, { stderr, env }: Pick<CliContext, 'stderr' | 'env'>): number {
  if (error instanceof Interrupted) return error.exitCode
  const write = (text: string) => stderr.write(redactorOf(secretVariables(env)).text(text))
  const shown = isNoRoom(error) && !(error instanceof UserError) ? diskFull(placeOf(error), error) : error
  if (shown instanceof UserError) {
    write(`codemachine: ${shown.message}\n${shown.hint === null ? '' : `  ${shown.hint}\n`}`)
    return shown.exitCode
  }
  write(`codemachine: this is a bug in codemachine. Please report it with what follows.\n`)
  write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  return 1
}

/** What could not be written; Node names the file when it was to be opened, but not when it was written to. */
function placeOf(error: unknown): string {
  const path: unknown = error instanceof Error ? Reflect.get(error, 'path') : null
  return typeof path === 'string' ? path : `a file (${messageOf(error).slice(0, 500)})`
}
