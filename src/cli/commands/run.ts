import { resolve } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { openQueue } from '../../session/queue.ts'
import { openRecords } from '../../session/records.ts'
import { askYesOrNo } from '../ask-yes-or-no.ts'
import type { CliContext } from '../context.ts'
import type { RunFlags } from '../flags.ts'
import { resumeCommand } from '../how-to-go-on.ts'
import { openRun } from '../open-run.ts'
import { readText } from '../read-text.ts'
import { findUnfinished } from '../unfinished-session.ts'
import { wantsScreen } from '../wants-screen.ts'
import { type Start, workThrough } from '../work-through.ts'
import { resume } from './resume.ts'

/**
 * `codemachine [goal]`: a session for the goal, then one for each prompt that waits. Without a goal, the session that
 * was left in the middle is offered first.
 * @param resumable whether it can be gone on with, which is then said; the demo cannot, for its model ends with it
 */
export async function run(
  context: CliContext,
  goal: string | null,
  flags: RunFlags,
  resumable = true,
): Promise<number> {
  if (flags.worktree !== undefined) {
    const { inWorktree } = await import('../in-worktree.ts')
    return await inWorktree(context, flags, inside => run(context, goal, inside, resumable))
  }
  const text = goal === null ? null : await readText(context, goal)
  // Its input is read to the end where the goal came from there, and no key would come.
  if (goal !== '-' && wantsScreen(context, flags)) return await onScreen(context, text, flags, resumable)
  if (text === null && context.display === undefined) {
    const exitCode = await offerWhatWasLeft(context, flags)
    if (exitCode !== null) return exitCode
  }
  await using opened = await openRun(context, flags)
  const first: Start | null = text === null ? null : sessions => sessions.runNew({ text, queued: null }, async () => {})
  return (await workThrough(context, opened, { first, flags, resumable })).exitCode
}

async function onScreen(
  context: CliContext,
  goal: string | null,
  flags: RunFlags,
  resumable: boolean,
): Promise<number> {
  const { runOnScreen, startScreen } = await import('../screen/run-on-screen.ts')
  if (goal === null) return await startScreen(context, flags, { run, resume })
  return await runOnScreen(context, flags, inner => run(inner, goal, flags, resumable), goal)
}

/**
 * Names the session that was left in the middle, if there is one, and where a person watches asks whether to go on
 * with it. Resolves with the exit code if that was all; null: what waits has its turn.
 */
async function offerWhatWasLeft(context: CliContext, flags: RunFlags): Promise<number | null> {
  const { stdin, stdout, stderr } = context
  const records = await openRecords({ ...context, directory: resolve(context.cwd, flags.cd ?? '.') })
  const left = await findUnfinished(context, records)
  if (left === null) return null
  const { prompts } = await openQueue(records.queue).list()
  const waits = prompts.some(({ id }) => id !== left.queued)
  const command = resumeCommand(left.id, flags.cd ?? null)
  if (!stdin.isTTY || !stdout.isTTY || flags.json) {
    if (!waits) {
      throw new UserError(`${left.what}: ${left.about}; nothing waits in the queue.`, {
        hint: `To go on with it: ${command}`,
      })
    }
    stderr.write(`${left.what}, and is not gone on with now; for that: ${command}\n`)
    return null
  }
  const answer = await askYesOrNo(context, `${left.what}: ${left.about}. Go on with it?`)
  if (answer === null) return 0
  if (answer) return await resume(context, left.id, flags)
  if (waits) return null
  stdout.write(`Nothing waits in the queue. To go on with it later: ${command}\n`)
  return 0
}
