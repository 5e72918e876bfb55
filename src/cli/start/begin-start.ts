import type { CliContext } from '../context.ts'
import type { RunFlags } from '../flags.ts'
import { openRun } from '../open-run.ts'
import { type Start, workThrough } from '../work-through.ts'
import type { TemplateName } from './templates.ts'

/** A session that is to be started from the specification. */
export interface NewStart {
  /** Its goal. */
  text: string
  template: TemplateName
  /** Whether a person wants to see the plan before it is carried out. */
  asksPlan: boolean
}

/**
 * Runs the session to its end, and then what waits. Resolves with the exit code.
 * @param resumable whether it can be gone on with, which is then said
 */
export async function beginStart(
  context: CliContext,
  session: NewStart,
  flags: RunFlags,
  resumable = true,
): Promise<number> {
  await using opened = await openRun(context, flags)
  const first: Start = sessions => sessions.runNew({ ...session, queued: null }, async () => {})
  return (await workThrough(context, opened, { first, flags, resumable })).exitCode
}
