import { UserError } from '../../../base/errors.ts'
import { newChange, type WantedChange } from '../../../modes/change/start/begin.ts'
import type { ChangeSaid } from '../../../modes/change/start/options.ts'
import type { RunOptions } from '../../../project/library.ts'
import { OpenProject } from '../../../project/open-project.ts'
import { flagValue } from '../../../project/settings/load.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { directoryOf, type RunFlags, readText } from '../flags.ts'
import { observerOn, whereShown } from '../output.ts'
import { listenersOn, runOptionsOf, worktreeOf } from '../run-options.ts'
import { inItsTurn } from '../turn.ts'

/** What may be said to `change`, as typed. */
interface ChangeFlags extends Omit<RunFlags, 'followUp'> {
  auto?: true
  planOnly?: true
  fixAttempts?: string
  executor?: string
  /** False: no executor, whatever the settings say; true also if nothing was said. */
  local?: boolean
  plannerModel?: string
  plannerEffort?: string
  plannerEngine?: string
  executorEngine?: string
  /** True: the newest change. */
  followUp?: string | true
  dryRun?: true
  wait?: true
}

/** A change as it was typed, checked. */
interface TypedChange extends WantedChange {
  /** Whether standard input was read to its end for the request. */
  isInputRead: boolean
}

/** `codemachine change [request|-]`: a session that plans and makes one change, then one for each prompt that waits. */
export async function change(context: CliContext, words: readonly string[], flags: ChangeFlags): Promise<number> {
  const { worktree, dryRun: isDry, ...others } = flags
  const runFlags = runFlagsOf(flags)
  // Read first, so that nothing is made for what cannot begin.
  const options = runOptionsOf(runFlags)
  const typed = await typedChange(context, words, flags)
  if (isDry) {
    if (worktree !== undefined)
      throw new UserError(
        'CM0102',
        '--dry-run makes no worktree; leave --worktree out, because the output is the same.',
      )
    const { dryRun } = await import('./dry-change.ts')
    return await dryRun(context, typed, options, runFlags)
  }
  const wanted = worktreeOf(runFlags)
  if (wanted === null) return await inTurn(context, options, others, typed)
  const { inWorktree } = await import('../../../project/start/worktree.ts')
  const say = (lines: string) => void context.stderr.write(`${lines}\n`)
  return await inWorktree(context, wanted, say, async inside => {
    return await inTurn(context, { ...options, directory: inside }, { ...others, cd: inside }, typed)
  })
}

/** The flags that any run has; whom it follows is not what theirs says. */
function runFlagsOf({ followUp: _, ...flags }: ChangeFlags): RunFlags {
  return flags
}

async function typedChange(context: CliContext, words: readonly string[], flags: ChangeFlags): Promise<TypedChange> {
  const said = saidIn(flags)
  const { followUp } = flags
  // What stands behind it may be the request: --follow-up "and document it".
  const isRequest = typeof followUp === 'string' && words.length === 0 && !SESSION.test(followUp)
  const text = isRequest ? followUp : words.join(' ')
  if (text.trim() === '') throw new UserError('CM0104', NO_REQUEST, { hint: howToSayIt(context) })
  if (SESSION.test(text)) throw new UserError('CM0102', wordsForSession(text.trim()))
  const request = await readText(context, text)
  const follows = followUp === undefined ? undefined : followUp === true || isRequest ? null : followUp
  return { request, said, ...(follows === undefined ? {} : { follows }), isInputRead: text === '-' }
}

/** Nobody asks for a change by the id of a session. */
const SESSION = /^\s*\d{8}_\d+\s*$/
const NO_REQUEST = 'There is no request; say what to change.'

function wordsForSession(id: string): string {
  return `${id} is a session, not a request. To resume it: codemachine resume ${id}. To build on its result: codemachine change --follow-up ${id} "…"`
}

function howToSayIt({ stdin }: CliContext): string {
  return stdin.isTTY
    ? 'Such as: codemachine change "add rate limiting to the API"'
    : 'To read the request from standard input: codemachine change -'
}

/** What the flags of a change say, in values; a `UserError` that names the flag for the first that cannot be read. */
function saidIn({
  auto,
  planOnly,
  fixAttempts,
  executor,
  local,
  plannerModel,
  plannerEffort,
  plannerEngine,
  executorEngine,
}: ChangeFlags): ChangeSaid {
  return {
    ...(auto ? { auto } : {}),
    ...(planOnly ? { planOnly } : {}),
    ...(fixAttempts === undefined ? {} : { fixAttempts: flagValue('change.fixAttempts', fixAttempts) }),
    ...(executor === undefined ? {} : { executor: flagValue('change.executor', executor) }),
    // Commander says true where nobody said anything.
    ...(local === false ? { executor: null } : {}),
    ...(plannerModel === undefined ? {} : { plannerModel: flagValue('change.plannerModel', plannerModel) }),
    ...(plannerEffort === undefined ? {} : { plannerEffort: flagValue('change.plannerEffort', plannerEffort) }),
    ...(plannerEngine === undefined ? {} : { plannerEngine: flagValue('change.plannerEngine', plannerEngine) }),
    ...(executorEngine === undefined ? {} : { executorEngine: flagValue('change.executorEngine', executorEngine) }),
  }
}

/** At once, or, with `--wait`, when no other codemachine runs there any more. */
async function inTurn(
  context: CliContext,
  options: RunOptions,
  flags: ChangeFlags,
  { isInputRead, ...wanted }: TypedChange,
): Promise<number> {
  const place = { directory: directoryOf(context, flags), options, waits: flags.wait === true }
  const work = (inner: CliContext) => makeChange(inner, options, wanted, flags)
  const shown = { goal: wanted.request, isInputRead }
  return await inItsTurn(context, place, () => whereShown(context, options, flags, work, shown))
}

/** Makes a change, then one session for each prompt that waits, shown where the context and the flags say; resolves with the exit code. */
export async function makeChange(
  context: CliContext,
  options: RunOptions,
  wanted: WantedChange,
  flags: ChangeFlags,
): Promise<number> {
  await using project = await OpenProject.open(context, options)
  const first = newChange(context, project.directory, options, wanted)
  const observer = observerOn(context, runFlagsOf(flags))
  const worked = await project.runQueue({ first }, observer, listenersOn(context, flags))
  if (worked === null) throw new Error('No session was run.')
  return worked.exitCode
}
