import { UserError, unreachable } from '../../../base/errors.ts'
import type { Adopted } from '../../../core/shapes/conversation.ts'
import type { IssueRef } from '../../../core/shapes/published.ts'
import type { TemplateKind } from '../../../core/template.ts'
import type { RunOptions } from '../../../project/library.ts'
import { OpenProject, type Work } from '../../../project/open-project.ts'
import { settingsOf } from '../../../project/open-run.ts'
import { findUnfinished, type Resume } from '../../../project/resume.ts'
import { describeSpecification, goalOf, IS_IT_COMPLETE, specificationHere } from '../../../project/start/dry-run.ts'
import { templateNamed } from '../../../project/start/templates.ts'
import { openQueue } from '../../../session/records/queue.ts'
import { resumeCommand } from '../../../tell/words/commands.ts'
import { readSpecification, type Specification } from '../../../workspace/memory/specification.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import type { startScreen } from '../../screen/host/screen-home.ts'
import { type RunFlags, readText, wantsScreen } from '../flags.ts'
import { askYesOrNo, observerOn, whereShown } from '../output.ts'
import { listenersOn, runOptionsOf, type ShowFlags, worktreeOf } from '../run-options.ts'
import { warnOn } from '../warn-on.ts'

/**
 * `codemachine [goal]`: a session for the goal, then one for each prompt that waits. Without a goal, the session that
 * was left in the middle is offered first.
 * @param resumable whether it can be gone on with, which is then said; the demo cannot, for its model ends with it
 * @param adopted the conversation that it continues; left out: none
 */
export async function run(
  context: CliContext,
  goal: string | null,
  flags: RunFlags,
  resumable = true,
  adopted?: Adopted,
): Promise<number> {
  // A goal that cannot be used leaves no worktree behind.
  const said = goal === null ? null : await readText(context, goal)
  const ofIssue =
    flags.issue === undefined ? null : await (await import('./issue.ts')).goalOfIssue(context, flags.issue, said, flags)
  if (flags.issue !== undefined && ofIssue === null) return 0
  const text = ofIssue?.text ?? said
  if (text === null && flags.followUp !== undefined)
    throw new UserError('CM0102', '--follow-up needs a new goal: codemachine --follow-up <session> "…"')
  const typed = { text, isInputRead: goal === '-', adopted, issue: ofIssue?.issue }
  const wanted = worktreeOf(flags)
  if (wanted === null) return await runHere(context, typed, flags, resumable)
  const { inWorktree } = await import('../../../project/start/worktree.ts')
  return await inWorktree(context, wanted, sayOn(context), inside =>
    runHere(context, typed, { ...flags, cd: inside }, resumable),
  )
}

/** What was typed of a new session, or comes from an issue. */
interface TypedGoal {
  /** Null: no goal. */
  text: string | null
  isInputRead: boolean
  adopted?: Adopted | undefined
  issue?: IssueRef | undefined
}

/** The same in the directory itself; of the flags `worktree` has no meaning any more. `text` null: no goal was typed. */
async function runHere(
  context: CliContext,
  { text, isInputRead, adopted, issue }: TypedGoal,
  flags: RunFlags,
  resumable: boolean,
): Promise<number> {
  const options = runOptionsOf(flags)
  const { followUp: follows } = flags
  const more = {
    ...(follows === undefined && issue === undefined ? {} : { terms: { follows, issue } }),
    ...(adopted === undefined ? {} : { adopted }),
  }
  const first = text === null ? null : { text, ...more }
  // Its input is read to the end where the goal came from there, and no key would come.
  if (!isInputRead && wantsScreen(context, flags)) {
    const { runOnScreen, startScreen } = await import('../../screen/host/screen-home.ts')
    if (text === null) return await startScreen(context, options, workOfScreen)
    return await runOnScreen(context, options, inner => workOn(inner, options, { first, resumable }, flags), text)
  }
  if (first === null && context.display === undefined) {
    const exitCode = await offerWhatWasLeft(context, options, flags)
    if (exitCode !== null) return exitCode
  }
  return await workOn(context, options, { first, resumable }, flags)
}

/** What the start screen starts, as the command line does. */
const workOfScreen: Parameters<typeof startScreen>[2] = async (context, choice, options) => {
  switch (choice.kind) {
    case 'run': {
      const { goal } = choice
      const first = goal === null ? null : { text: await readText(context, goal) }
      return await workOn(context, options, { first }, {})
    }
    case 'start':
      return await workOn(context, options, { first: choice.session }, {})
    case 'resume': {
      const wanted = { session: choice.session, rereadsGates: false }
      return await goOnWith(context, { ...options, ...runOptionsOf(choice.more) }, wanted, {})
    }
    case 'change': {
      const { request, follows } = choice.change
      const { makeChange } = await import('../change/run.ts')
      return await makeChange(context, options, { request, said: {}, ...(follows === null ? {} : { follows }) }, {})
    }
    case 'team':
      return await (await import('../team/run.ts')).teamOnScreen(context, choice.goal, options)
    default:
      return unreachable(choice)
  }
}

/** Runs one session after the other, shown where the context and the flags say; resolves with the exit code. */
async function workOn(context: CliContext, options: RunOptions, work: Work, show: ShowFlags): Promise<number> {
  await using project = await OpenProject.open(context, options)
  const observer = observerOn(context, show, work.resumable)
  const worked = await project.runQueue(work, observer, listenersOn(context, show))
  if (worked !== null) return worked.exitCode
  throw new UserError('CM0104', 'There is no goal, and the queue is empty.', {
    hint: context.stdin.isTTY ? 'Give a goal: codemachine "…"' : 'To read the goal from standard input: codemachine -',
  })
}

/** `codemachine resume`: goes on with a session that has not come to its end, then with what waits. */
export async function resume(context: CliContext, session: string | undefined, flags: RunFlags): Promise<number> {
  const options = runOptionsOf(flags)
  const wanted = { session: session ?? null, rereadsGates: flags.rereadGates ?? false }
  return await whereShown(context, options, flags, inner => goOnWith(inner, options, wanted, flags))
}

/** `codemachine queue run`: a session for each prompt that waits. */
export async function queueRun(context: CliContext, flags: RunFlags): Promise<number> {
  const options = runOptionsOf(flags)
  const { queue, directory } = await OpenProject.open(context, options)
  const { prompts, problems } = await queue.list()
  for (const problem of problems) warnOn(context)(problem)
  if (prompts.length === 0) {
    context.stdout.write(`The queue is empty in ${directory}.\n`)
    return 0
  }
  return await whereShown(context, options, flags, inner => workOn(inner, options, { first: null }, flags))
}

async function goOnWith(
  context: CliContext,
  options: RunOptions,
  wanted: Pick<Resume, 'session' | 'rereadsGates'>,
  show: ShowFlags,
): Promise<number> {
  await using project = await OpenProject.open(context, options)
  const [observer, listeners] = [observerOn(context, show), listenersOn(context, show)]
  const { withNetworkIfChosen } = await import('../team/with-network.ts')
  return await withNetworkIfChosen(context, options, { observer, listeners }, inner =>
    project.resumeWork({ ...wanted, alone: false }, inner, listeners),
  )
}

/**
 * Names the session that was left in the middle, if there is one, and where a person watches asks whether to go on
 * with it. Resolves with the exit code if that was all; null: what waits has its turn.
 */
async function offerWhatWasLeft(context: CliContext, options: RunOptions, flags: RunFlags): Promise<number | null> {
  const { stdin, stdout, stderr } = context
  await using project = await OpenProject.open(context, options)
  const { records } = project
  const left = await findUnfinished(context, records, warnOn(context))
  if (left === null) return null
  const { prompts } = await openQueue(records.queue).list()
  const waits = prompts.some(({ id }) => id !== left.queued)
  const command = resumeCommand(left.id, flags.cd ?? null)
  if (!stdin.isTTY || !stdout.isTTY || flags.json) {
    if (!waits) {
      throw new UserError('CM0104', `${left.what}: ${left.about}; the queue is empty.`, {
        hint: `To resume it: ${command}`,
      })
    }
    stderr.write(`${left.what}, and is not resumed now. To resume it: ${command}\n`)
    return null
  }
  const answer = await askYesOrNo(context, `${left.what}: ${left.about}. Resume it?`)
  if (answer === null) return 0
  if (answer) return await resume(context, left.id, flags)
  if (waits) return null
  stdout.write(`The queue is empty. To resume the session later: ${command}\n`)
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
  const { stderr } = context
  const options = runOptionsOf(flags)
  const { records, directory } = await OpenProject.open(context, options)
  const { template, specification } = await whatToStart(context, directory, options, typed)
  const wanted = worktreeOf(flags)
  const say = warnOn(context)
  const left = wanted === null ? await findUnfinished(context, records, say) : null
  if (left !== null) {
    const command = resumeCommand(left.id, flags.cd ?? null)
    stderr.write(`${left.what}: ${left.about}. This starts a new session. To resume that one: ${command}\n`)
  }
  if (!yes && context.own.detached === null && !(await askWhetherComplete(context, specification, flags))) return 0
  const begin = async (there: RunOptions, goal: Specification) => {
    const first = { text: goalOf(goal), template: template.name, asksPlan: !yes }
    return await whereShown(context, there, flags, inner => workOn(inner, there, { first, resumable }, flags))
  }
  if (wanted === null) return await begin(options, specification)
  const { startInWorktree } = await import('../../../project/start/worktree.ts')
  return await startInWorktree(context, { ...wanted, directory }, sayOn(context), async inside => {
    return await begin({ ...options, directory: inside }, await readSpecification(inside))
  })
}

/** What `start --detach` asks on the terminal, before its runner begins; false: nothing is to be started. */
export async function askBeforeStart(
  context: CliContext,
  { yes, template: typed, ...flags }: StartFlags,
): Promise<boolean> {
  if (yes) return true
  const options = runOptionsOf(flags)
  const { directory } = await OpenProject.open(context, options)
  const { specification } = await whatToStart(context, directory, options, typed)
  return await askWhetherComplete(context, specification, flags)
}

/** @param typed the name of the template; left out: the one of the settings */
async function whatToStart(
  context: CliContext,
  directory: string,
  options: RunOptions,
  typed: string | undefined,
): Promise<{ template: TemplateKind; specification: Specification }> {
  const named = typed === undefined ? null : templateNamed(context.templates, typed, 'start')
  const { settings, agentTables } = await settingsOf(context, directory, options)
  const template = named ?? templateNamed(context.templates, settings.mode, 'start')
  return { template, specification: await specificationHere(directory, template, { agentTables }) }
}

async function askWhetherComplete(
  context: CliContext,
  specification: Specification,
  { json }: ShowFlags,
): Promise<boolean> {
  const { stdin, stdout } = context
  if (!stdin.isTTY || !stdout.isTTY || json)
    throw new UserError(
      'CM0105',
      'Without a terminal, you cannot confirm that the specification is complete; use --yes.',
    )
  context.stdout.write(`${describeSpecification(specification).join('\n')}\n`)
  const answer = await askYesOrNo(context, IS_IT_COMPLETE)
  if (answer !== true) {
    context.stdout.write(`Nothing starts. Add the missing parts to ${specification.path}, and start again.\n`)
  }
  return answer === true
}

function sayOn({ stderr }: CliContext): (lines: string) => void {
  return lines => void stderr.write(`${lines}\n`)
}
