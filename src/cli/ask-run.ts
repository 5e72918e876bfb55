import { UserError } from '../base/errors.ts'
import type { Command, Reply } from '../session/command.ts'
import { sendCommand } from '../session/control.ts'
import { openRecords } from '../session/records.ts'
import { readRunLock } from '../session/run-lock.ts'
import type { CliContext } from './context.ts'

/** What is asked of a run, and what a person is told where that cannot be. */
interface Question {
  /** `at`: now, ISO 8601 in UTC. */
  command: (at: string) => Command
  /** What one would do to a run, as in `there is nothing to steer`. */
  verb: string
  /** How to get what is wanted where nobody runs. */
  withoutRun: string
  /** What to do if the run does not take it. */
  refused: string
}

/** How long the run may take to answer, ms. */
const REPLY_MS = 10_000

/**
 * Asks something of the codemachine that runs in the directory, and prints its answer; resolves with the exit code. A
 * `UserError` if nobody runs there, or it does not take it.
 */
export async function askRun(context: CliContext, directory: string, question: Question): Promise<number> {
  const { clock, platform, stdout } = context
  const { command, verb, withoutRun, refused } = question
  const records = await openRecords({ ...context, directory })
  const lock = await readRunLock(records.lock, platform)
  if (lock.state === 'unreadable') throw new UserError(`${lock.problem}; if no codemachine runs here, delete it.`)
  if (lock.state === 'free' || lock.state === 'stale') {
    throw new UserError(`No codemachine runs in ${records.directory}, so there is nothing to ${verb}.`, {
      hint: withoutRun,
    })
  }
  const at = new Date(clock.now()).toISOString()
  const reply: Reply = await sendCommand(records.control, command(at), { clock, timeoutMs: REPLY_MS })
  if (!reply.delivered && !reply.kept) throw new UserError(reply.message, { hint: refused })
  stdout.write(`${reply.message}\n`)
  return 0
}
