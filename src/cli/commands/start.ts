import { UserError } from '../../base/errors.ts'
import { openRecords } from '../../session/records.ts'
import { readSpecification, type Specification } from '../../workspace/specification.ts'
import { askYesOrNo } from '../ask-yes-or-no.ts'
import type { CliContext } from '../context.ts'
import { directoryOf, type RunFlags } from '../flags.ts'
import { resumeCommand } from '../how-to-go-on.ts'
import { settingsOf } from '../open-run.ts'
import { beginStart, type NewStart } from '../start/begin-start.ts'
import { templateNamed } from '../start/templates.ts'
import { describeSpecification, goalOf, IS_IT_COMPLETE, specificationOf } from '../start/what-to-build.ts'
import { findUnfinished } from '../unfinished-session.ts'
import { wantsScreen } from '../wants-screen.ts'

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
  const { startInWorktree } = await import('../start/start-in-worktree.ts')
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
  const { runOnScreen } = await import('../screen/run-on-screen.ts')
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
