import { resolve } from 'node:path'
import { openRun, settingsOf } from '../../app/project.ts'
import { findUnfinished } from '../../app/resume.ts'
import { directoryOf, type RunFlags } from '../../app/run-flags.ts'
import { describeSpecification, goalOf, IS_IT_COMPLETE, specificationOf } from '../../app/start/dry-run.ts'
import { templateNamed } from '../../app/start/templates.ts'
import { beginStart, type NewStart, type Start, workThrough } from '../../app/work-through.ts'
import type { CliContext } from '../../app/world.ts'
import { UserError } from '../../base/errors.ts'
import { openQueue } from '../../records/queue.ts'
import { openRecords } from '../../records/records.ts'
import { resumeCommand } from '../../words/commands.ts'
import { readSpecification, type Specification } from '../../workspace/memory/specification.ts'
import { readText, wantsScreen } from '../flags.ts'
import { askYesOrNo } from '../output.ts'
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
    const { inWorktree } = await import('../../app/start/worktree.ts')
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
  const { runOnScreen, startScreen } = await import('../../tui/host/screen-home.ts')
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

export interface StartFlags extends RunFlags {
  /** Whether the specification is said to be complete, and the plan good as it comes. */
  yes?: true
  /** As typed. */
  template?: string
}

/**
 * `codemachine start`: builds what the specification asks for, and then works through what waits.
 * @param resumable whether it can be gone on with, which is then said; the demo cannot, for its model ends with it
 */
export async function start(
  context: CliContext,
  { yes, template: typed, ...flags }: StartFlags,
  resumable = true,
): Promise<number> {
  const { stdin, stdout, stderr } = context
  const named = typed === undefined ? null : templateNamed(typed)
  const records = await openRecords({ ...context, directory: directoryOf(context, flags) })
  const { directory } = records
  const template = named ?? (await settingsOf(context, directory, flags)).settings.mode
  const specification = await specificationOf(directory, template)
  const left = flags.worktree === undefined ? await findUnfinished(context, records) : null
  if (left !== null) {
    const command = resumeCommand(left.id, flags.cd ?? null)
    stderr.write(`${left.what}: ${left.about}. This starts a new session; to go on with that one: ${command}\n`)
  }
  if (!yes) {
    if (!stdin.isTTY || !stdout.isTTY || flags.json) {
      throw new UserError('Nobody can be asked here whether the specification is complete; say so with --yes.')
    }
    const isComplete = await askWhetherComplete(context, specification)
    if (!isComplete) return 0
  }
  const session = { text: goalOf(specification), template, asksPlan: !yes }
  if (flags.worktree === undefined) return await beginWhereShown(context, session, flags, resumable)
  const { startInWorktree } = await import('../../app/start/worktree.ts')
  return await startInWorktree(context, flags, directory, async inside => {
    const text = goalOf(await readSpecification(directoryOf(context, inside)))
    return await beginWhereShown(context, { ...session, text }, inside, resumable)
  })
}

async function beginWhereShown(
  context: CliContext,
  session: NewStart,
  flags: RunFlags,
  resumable: boolean,
): Promise<number> {
  if (!wantsScreen(context, flags)) return await beginStart(context, session, flags, resumable)
  const { runOnScreen } = await import('../../tui/host/screen-home.ts')
  return await runOnScreen(context, flags, inner => beginStart(inner, session, flags, resumable))
}

async function askWhetherComplete(context: CliContext, specification: Specification): Promise<boolean> {
  context.stdout.write(`${describeSpecification(specification).join('\n')}\n`)
  const answer = await askYesOrNo(context, IS_IT_COMPLETE)
  if (answer !== true) {
    context.stdout.write(`Nothing is started. Write what is missing into ${specification.path}, and start again.\n`)
  }
  return answer === true
}
