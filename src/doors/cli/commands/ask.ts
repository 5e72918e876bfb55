import type { Option } from 'commander'
import { UserError } from '../../../base/errors.ts'
import type { PromptTerms, QueuedPrompt } from '../../../core/shapes/queue.ts'
import { isTaken } from '../../../core/shapes/reply.ts'
import type { Ask, RunOptions } from '../../../project/library.ts'
import { OpenProject } from '../../../project/open-project.ts'
import { askWhoRuns } from '../../../session/records/run-lock.ts'
import { termsInWords } from '../../../tell/words/commands.ts'
import { oneLine, titleLine } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import {
  type DirectoryFlags,
  directoryOf,
  type LookFlags,
  printDone,
  type RunFlags,
  readText,
  wantsColour,
} from '../flags.ts'
import { warnOn } from '../warn-on.ts'

/** A command that asks something of the codemachine that runs in the work directory. */
export interface RunningCommand {
  name: string
  /** For the help. */
  description: string
  /** What its words are, for the help; left out: it takes none. They are the text of what is asked, and `-` is standard input. */
  text?: string
  flags?: readonly (() => Option)[]
  /** What is asked. `agent`: the one that is meant; left out: the session. */
  ask(said: { text: string; now: boolean; go: boolean; agent?: string }): Ask
  /** What one would do to a run, as in `there is nothing to steer`; left out: its name. */
  verb?: string
  /** How to get what is wanted where nobody runs. */
  withoutRun: string
  /** What to do if the run does not take it; left out: look what it is doing. */
  refused?: string
}

/**
 * Asks something of the codemachine that runs in the directory, and prints its answer; resolves with the exit code. A
 * `UserError` if nobody runs there, or it does not take it.
 */
export async function askRunning(
  context: CliContext,
  { name, ask, text, verb = name, withoutRun, refused = WHAT_IT_DOES }: RunningCommand,
  words: readonly string[],
  { agent, ...flags }: LookFlags & { now?: true; go?: true; agent?: string },
): Promise<number> {
  const typed = text === undefined ? '' : await readText(context, words.join(' '))
  const said = { text: typed, now: flags.now ?? false, go: flags.go ?? false }
  return await tellRunning(context, flags, ask(agent === undefined ? said : { ...said, agent }), {
    nobody: `there is nothing to ${verb}`,
    withoutRun,
    refused: agent === undefined ? refused : WHAT_IT_DOES,
  })
}

/** @param words why nobody is asked where nobody runs, and what to type then; what to type where it is not taken */
async function tellRunning(
  context: CliContext,
  flags: LookFlags,
  ask: Ask,
  { nobody, withoutRun, refused }: { nobody: string; withoutRun: string; refused: string },
): Promise<number> {
  const { project, inPlace } = await openRunning(context, flags)
  const answer = await project.ask(ask)
  if (answer === null)
    throw new UserError('CM0613', `No codemachine runs in ${project.directory}, so ${nobody}.`, { hint: withoutRun })
  if (!isTaken(answer)) throw new UserError('CM0617', inPlace(answer.message), { hint: refused })
  return printDone(context, flags, inPlace(answer.message))
}

/** `limits`: what the session that runs may take in all. */
export async function changeLimits(
  context: CliContext,
  flags: Pick<RunFlags, 'cd' | 'json' | 'rounds' | 'maxTime' | 'maxTokens' | 'maxCost'>,
): Promise<number> {
  const { rounds, maxTimeMs: timeMs, maxTokens: tokens, maxCost: cost } = await limitsOf(flags)
  const wanted = Object.entries({ rounds, timeMs, tokens, cost }).filter(([, value]) => value !== undefined)
  if (wanted.length === 0)
    throw new UserError('CM0104', 'Give a new limit: --rounds, --max-time, --max-tokens or --max-cost.')
  return await tellRunning(
    context,
    flags,
    { type: 'limits', ...Object.fromEntries(wanted) },
    {
      nobody: 'there are no limits to change',
      withoutRun: 'For a session that has ended: codemachine resume --rounds 20',
      refused: WHAT_IT_DOES,
    },
  )
}

/**
 * Opens the project whose session is meant: that of the directory, or of the worktree of its checkout in which one runs while none
 * does in the directory. `inPlace`: a sentence for the person, which says where if it is a worktree.
 */
export async function openRunning(
  context: CliContext,
  flags: LookFlags,
): Promise<{ project: OpenProject; inPlace(sentence: string): string }> {
  const own = await openHere(context, flags)
  const { platform } = context
  const as = { project: own, inPlace: (sentence: string) => sentence }
  const { checkoutWithWorktrees } = await import('../../../project/find.ts')
  if ((await askWhoRuns(own.records.lock, platform, () => {})) !== null) return as
  if ((await checkoutWithWorktrees(own.directory)) === null) return as
  const { placeAtWork } = await import('../../../project/worktrees/find.ts')
  const onProblem = warnOn(context)
  const { worktree, records } = await placeAtWork(own.records, { platform, onProblem })
  if (worktree === null) return as
  const project = await OpenProject.open(context, { directory: records.directory })
  return { project, inPlace: sentence => `In the worktree ${worktree}: ${sentence}` }
}

const WHAT_IT_DOES = 'What it is doing: codemachine status'

async function gatesTyped(directory: string, verify: readonly string[]): Promise<readonly string[]> {
  const { withProjectTests } = await import('../../../project/start/project-tests.ts')
  return (await withProjectTests(directory, verify)).verify
}

/** `queue add`. */
export async function queueAdd(context: CliContext, words: readonly string[], flags: QueueAddFlags): Promise<number> {
  const project = await openHere(context, flags)
  const typed = await promptTyped(context, project, { words, flags, command: 'queue add' })
  if (typed === null) return 0
  const queued = await project.queue.add(typed.text, typed.terms)
  return printDone(context, flags, `Queued as ${queued.id}${inBrackets(queued)}: ${oneLine(typed.text, 80)}`, {
    id: queued.id,
  })
}

/** Returns the prompt that is typed, with its terms; null: the person has changed their mind. */
export async function promptTyped(
  context: CliContext,
  { records, directory }: Pick<OpenProject, 'records' | 'directory'>,
  { words, flags, command }: { words: readonly string[]; flags: QueueAddFlags; command: string },
): Promise<{ text: string; terms: PromptTerms } | null> {
  const { template, prove, followUp } = flags
  const { rounds, maxTimeMs: timeMs, maxTokens: tokens, maxCost: cost } = await limitsOf(flags)
  const gates = flags.verify && (await gatesTyped(directory, flags.verify))
  const said = words.length > 0 ? await readText(context, words.join(' ')) : null
  const ofIssue =
    flags.issue === undefined ? null : await (await import('./issue.ts')).goalOfIssue(context, flags.issue, said, flags)
  if (flags.issue !== undefined && ofIssue === null) return null
  const text = ofIssue?.text ?? said ?? (await textOfSpecification())
  const hasLimits = rounds !== undefined || timeMs !== undefined || tokens !== undefined || cost !== undefined
  const follows =
    followUp === undefined ? undefined : await (await import('../../../project/find.ts')).findSession(records, followUp)
  const limits = hasLimits ? { rounds, timeMs, tokens, cost } : undefined
  return { text, terms: { template, gates, prove, follows, issue: ofIssue?.issue, limits } }

  async function textOfSpecification(): Promise<string> {
    if (template === undefined)
      throw new UserError('CM0104', `The prompt is missing; say what to do: codemachine ${command} "…"`)
    const { goalOf, specificationHere } = await import('../../../project/start/dry-run.ts')
    const { templateNamed } = await import('../../../project/start/templates.ts')
    const { settingsOf } = await import('../../../project/open-run.ts')
    const what = records.templates.get(template)?.promptNames
    if (what !== undefined)
      throw new UserError(
        'CM0104',
        `The prompt is missing; name ${what}: codemachine ${command} --template ${template} …`,
      )
    const kind = templateNamed(records.templates, template, 'start')
    return goalOf(await specificationHere(directory, kind, await settingsOf(context, directory, {})))
  }
}

/** Flags of `queue add`. */
export type QueueAddFlags = Pick<
  RunFlags,
  'cd' | 'json' | 'rounds' | 'maxTime' | 'maxTokens' | 'maxCost' | 'verify' | 'followUp' | 'issue' | 'yes'
> & {
  /** As typed. */
  template?: string
  prove?: true
}

/** What reads them brings all that reads settings, which nothing else here needs. */
async function limitsOf(flags: QueueAddFlags): Promise<RunOptions> {
  const { rounds, maxTime, maxTokens, maxCost } = flags
  if ([rounds, maxTime, maxTokens, maxCost].every(limit => limit === undefined)) return {}
  return (await import('../run-options.ts')).runOptionsOf(flags)
}

function inBrackets(queued: QueuedPrompt): string {
  const words = termsInWords(queued)
  return words === '' ? '' : ` (${words})`
}

/** `queue list`. */
export async function queueList(context: CliContext, flags: LookFlags): Promise<number> {
  const { queue } = await openHere(context, flags)
  const { prompts, problems } = await queue.list()
  for (const problem of problems) warnOn(context)(problem)
  if (flags.json) context.stdout.write(`${JSON.stringify(prompts)}\n`)
  else if (prompts.length === 0)
    context.stdout.write('The queue is empty. Add a prompt with: codemachine queue add "…"\n')
  else if (wantsColour(context)) {
    const { tableLines } = await import('../styled.ts')
    const hasTerms = prompts.some(each => termsInWords(each) !== '')
    const rows = prompts.map(each => [
      [each.id, 'accent'] as const,
      ...(hasTerms ? [[termsInWords(each), 'dim'] as const] : []),
      [oneLine(each.prompt, 500), 'plain'] as const,
    ])
    const heads = [{ head: 'id' }, ...(hasTerms ? [{ head: 'with' }] : []), { head: 'prompt' }]
    context.stdout.write(tableLines(context, heads, rows))
  } else
    for (const queued of prompts)
      context.stdout.write(`${queued.id}  ${titleLine(queued.prompt, 100)}${inBrackets(queued)}\n`)
  return 0
}

/** `queue edit`. */
export async function queueEdit(
  context: CliContext,
  id: string,
  words: readonly string[],
  flags: LookFlags,
): Promise<number> {
  const text = await readText(context, words.join(' '))
  const { queue } = await openHere(context, flags)
  await queue.edit(id, text)
  return printDone(context, flags, `${whole(id)} is now: ${oneLine(text, 80)}`, { id: whole(id) })
}

/** `queue move`. */
export async function queueMove(
  context: CliContext,
  id: string,
  { before, ...flags }: LookFlags & { before?: string },
): Promise<number> {
  const { queue } = await openHere(context, flags)
  await queue.move(id, before ?? null)
  const where = before === undefined ? 'behind all others' : `just before ${whole(before)}`
  return printDone(context, flags, `${whole(id)} waits ${where}.`, { id: whole(id) })
}

/** `queue rm`. */
export async function queueRemove(context: CliContext, id: string, flags: LookFlags): Promise<number> {
  const { queue } = await openHere(context, flags)
  await queue.remove(id)
  return printDone(context, flags, `Removed ${whole(id)} from the queue.`, { id: whole(id) })
}

/** An id as it is stored; as typed it may lack its zeros. */
function whole(id: string): string {
  return id.padStart(6, '0')
}

/** Opens the project of the directory that is meant. */
export async function openHere(context: CliContext, flags: DirectoryFlags): Promise<OpenProject> {
  return await OpenProject.open(context, { directory: directoryOf(context, flags) })
}
