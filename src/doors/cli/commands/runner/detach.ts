import { readFile, rm } from 'node:fs/promises'
import { relative } from 'node:path'
import { kill } from 'node:process'
import { Interrupted, systemErrorCode, UserError } from '../../../../base/errors.ts'
import { type BegunDetached, startRunner } from '../../../../project/start/detached.ts'
import { placesOf } from '../../../../project/world.ts'
import { openRecords } from '../../../../session/records/records.ts'
import { here } from '../../../../tell/words/commands.ts'
import type { CliContext } from '../../../screen/cli-context.ts'
import { directoryOf, type RunFlags, readAll } from '../../flags.ts'

/** Flags that print something and start nothing. */
type DetachFlags = RunFlags & { dryRun?: true; mock?: boolean; yes?: true }

/**
 * `--detach`: has the command that was typed done by a process that outlives this one and its terminal, and says which
 * session it has begun. What the command would ask first is asked here. Resolves with the exit code: of the command, if no
 * session came of it.
 * @param name of the command; null for a goal
 * @param first the first word behind it; left out: none
 */
export async function detach(
  context: CliContext,
  flags: DetachFlags,
  name: string | null = null,
  first?: string,
): Promise<number> {
  const { own, signal, stdout, stderr } = context
  const [alone] = [...(flags.dryRun ? ['--dry-run'] : []), ...(flags.mock ? ['--mock'] : [])]
  if (alone !== undefined)
    throw new UserError(
      'CM0102',
      `${alone} starts no session, so nothing can run in the background; leave --detach out.`,
    )
  if (flags.issue !== undefined && !flags.yes)
    throw new UserError(
      'CM0105',
      'With --detach, codemachine cannot ask you to confirm the issue; add --yes, or leave --detach out.',
    )
  if (name === 'start') {
    const { askBeforeStart } = await import('../run.ts')
    if (!(await askBeforeStart(context, flags))) return 0
  }
  const args = name === 'adopt' ? await (await import('../adopt.ts')).askBeforeAdopt(context, first, flags) : own.args
  if (args === null) return 0
  const records = await openRecords(placesOf(context, directoryOf(context, flags)))
  const isInput = args.some(arg => arg === '-' || arg.endsWith('=@-'))
  const input = isInput ? await readAll(context) : null
  const { log, pid, start } = await startRunner(context, records, { args, input, signal })
  switch (start.kind) {
    case 'told': {
      const said = await readFile(start.message.log)
      stderr.write(said.subarray(0, start.message.said))
      stdout.write(wordsFor(context, flags, start.message, pid))
      return 0
    }
    case 'ended':
      // Nothing has begun: it is as if it had been typed without --detach.
      ;(start.exitCode === 0 ? stdout : stderr).write(await readFile(log))
      await rm(log, { force: true })
      return start.exitCode ?? 1
    case 'failed':
      await rm(log, { force: true })
      throw new UserError('CM0614', `The background process could not be started: ${start.problem}`)
    case 'slow':
      if (!signal.aborted) {
        stdout.write(wordsFor(context, flags, { session: null, directory: records.directory, log }, pid))
        return 0
      }
      // Who presses Ctrl+C has thought better of it; a terminal that is closed is what it is to outlive.
      if (signal.reason === 'SIGINT' && pid !== null) endIfAlive(pid)
      throw new Interrupted(signal.reason)
  }
}

function endIfAlive(pid: number): void {
  try {
    kill(pid, 'SIGTERM')
  } catch (error) {
    if (systemErrorCode(error) !== 'ESRCH') throw error
  }
}

/** @param begun `session`: null where none has begun yet */
function wordsFor(
  { cwd }: CliContext,
  { json }: DetachFlags,
  { session, directory, log }: Pick<BegunDetached, 'directory' | 'log'> & { session: string | null },
  pid: number | null,
): string {
  if (json) return `${JSON.stringify({ session, directory, pid, log })}\n`
  if (session === null)
    return `It is still starting, without this terminal (pid ${pid}). Until then it writes to ${log}\n`
  const place = here(relative(cwd, directory) || null)
  return `${session} continues without this terminal (pid ${pid}).
  its log    ${log}
  see it     codemachine attach${place}
  end it     codemachine stop${place}
`
}
