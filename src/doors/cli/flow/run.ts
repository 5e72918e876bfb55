import { UserError } from '../../../base/errors.ts'
import { nearestName } from '../../../base/text.ts'
import { exitCodeOf } from '../../../core/events/outcome.ts'
import { type DryStep, dryRunOf } from '../../../modes/flow/file/mock-script.ts'
import { type FlowPlan, flowOptionsOf } from '../../../modes/flow/file/plan.ts'
import { flowTyped } from '../../../modes/flow/start/look.ts'
import { preparedPlan, remarksOnPrograms } from '../../../modes/flow/start/prepare.ts'
import { shellWord } from '../../../platform/shell-word.ts'
import type { RunOptions } from '../../../project/library.ts'
import type { RunObserver } from '../../../project/sessions.ts'
import { here } from '../../../tell/words/commands.ts'
import { formatCount } from '../../../tell/words/numbers.ts'
import { oneLine, safeText } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { directoryOf, type RunFlags } from '../flags.ts'
import { observerOn, whereShown } from '../output.ts'
import { listenersOn, runOptionsOf } from '../run-options.ts'
import { inItsTurn } from '../turn.ts'
import { type FlowLookFlags, givenValues, lookOf, programOf } from './look.ts'

/** What may be said to `flow run`, as typed. */
interface FlowRunFlags extends RunFlags, Omit<FlowLookFlags, 'json'> {
  /** Left out: as the file says. */
  mock?: boolean
  verbose?: true
  from?: string
  pace?: string
  strict?: true
  write?: true
  dryRun?: true
  continueOnError?: true
  wait?: true
}

/** What is to be run, and how. */
interface FlowRun {
  plan: FlowPlan
  /** The work directory. */
  root: string
  /** Id of the step that it begins with; null: the first. */
  from: string | null
  /** Seconds between two events of a replay. */
  pace: number
  options: RunOptions
  flags: FlowRunFlags
  /** What is said of what the file names and nothing starts. */
  remarks: readonly string[]
}

/** `flow run`: replays a workflow, or runs it for real. */
export async function flowRun(context: CliContext, typed: string, typedFlags: FlowRunFlags): Promise<number> {
  const directory = directoryOf(context, typedFlags)
  const look = await lookOf(context, typedFlags)
  const { file, workflow } = await flowTyped(typed, look)
  const flags = { ...typedFlags, ...(workflow === null ? {} : { workflow }) }
  const pace = paceOf(flags.pace)
  const options = runOptionsOf(flags)
  const given = await givenValues(context, flags)
  const {
    plan,
    root,
    file: read,
  } = await preparedPlan({
    file,
    directory,
    workflow: flags.workflow ?? null,
    given,
    runValue: null,
    secretIn: look.secretIn,
    signal: context.signal,
    engines: look.engines,
  })
  const from = flags.from === undefined ? null : stepNamed(plan, flags.from)
  const run = { plan, root, from, pace, options, flags, remarks: remarksOnPrograms(read) }
  if (flags.dryRun) return dryRun(context, run)
  const isMock = flags.mock ?? read.mock ?? true
  const [alone] = isMock ? [] : [...(flags.strict ? ['--strict'] : []), ...(flags.write ? ['--write'] : [])]
  if (alone !== undefined)
    throw new UserError('CM0102', `${alone} works only in a mock run; leave it out, or add --mock.`)
  const begin = async (inner: CliContext) => {
    if (isMock) return await replay(inner, run, file)
    const { continueOnError = false, verbose = false, workflow = null } = flags
    const { runFlow } = await import('../../../modes/flow/start/run.ts')
    const request = { file, workflow, given, from, continueOnError, verbose, pace }
    return await runFlow(
      inner,
      { ...request, options: { ...options, directory } },
      observerOn(inner, flags),
      listenersOn(inner, flags),
    )
  }
  const isInputRead = flags.var?.some(each => each.endsWith('=@-')) ?? false
  return await inItsTurn(context, { directory: root, options, waits: flags.wait === true }, () =>
    whereShown(context, { ...options, directory: root }, flags, begin, { isInputRead }),
  )
}

/** Shows what was recorded, between two lines that say that this is all. */
async function replay(context: CliContext, run: FlowRun, file: string): Promise<number> {
  const { plan, root, from, pace, options, flags, remarks } = run
  const { strict = false, write = false, verbose = false, continueOnError = false } = flags
  const forReal = `For real: ${realCommand(context, file, flags)}`
  const say = sayOn(context, flags)
  const observer = sayingFirst(observerOn(context, flags, false), () => say(`Mock run: no model is asked. ${forReal}`))
  const { runMock } = await import('../../../modes/flow/start/mock-run.ts')
  const mode = { mode: 'mock', from, carried: [], continueOnError, writes: write, pace, verbose } as const
  const mock = { plan, options: flowOptionsOf(plan, mode), strict, remarks, run: { ...options, directory: root } }
  const { outcome } = await runMock(context, mock, observer)
  say(`Mock run: no model was asked. ${forReal}`)
  return exitCodeOf(outcome)
}

/** Says a line where the run is shown; beside lines of JSON on stderr. */
function sayOn({ display, stdout, stderr }: CliContext, { json }: FlowRunFlags): (line: string) => void {
  if (display !== undefined) return line => display.say(line)
  return line => void (json ? stderr : stdout).write(`${line}\n`)
}

/** The same observer, before whose first event something is said: what is refused is not begun. */
function sayingFirst(observer: RunObserver, say: () => void): RunObserver {
  let isSaid = false
  const { view } = observer
  return {
    ...observer,
    view: {
      event(event, state) {
        if (!isSaid) say()
        isSaid = true
        view.event(event, state)
      },
      live: event => view.live(event),
    },
  }
}

const MOST_VALUE = 60

/** The command line that runs the same for real. */
function realCommand(context: CliContext, file: string, flags: FlowRunFlags): string {
  const values = flags.var?.map(each => ` --var ${shellWord(oneLine(each, MOST_VALUE))}`) ?? []
  return [
    `${programOf(context)} run ${shellWord(file)} --no-mock`,
    flags.workflow === undefined ? '' : ` --workflow ${shellWord(flags.workflow)}`,
    ...values,
    flags.varsFile === undefined ? '' : ` --vars-file ${shellWord(flags.varsFile)}`,
    here(flags.cd ?? null),
  ].join('')
}

const MOST_PACE = 3600

function paceOf(typed: string | undefined): number {
  if (typed === undefined) return 1
  const pace = /^(\d+\.?\d*|\.\d+)$/.test(typed) ? Number(typed) : Number.NaN
  if (pace <= MOST_PACE) return pace
  throw new UserError(
    'CM0103',
    `--pace is "${oneLine(typed, MOST_VALUE)}"; use a number of seconds from 0 to ${MOST_PACE}, such as 0.5.`,
  )
}

/** The id of the step that `--from` names, by its id or its number. */
function stepNamed({ steps }: FlowPlan, typed: string): string {
  const found = steps.find(({ id }) => id === typed) ?? steps.find(({ index }) => String(index) === typed)
  if (found !== undefined) return found.id
  const nearest = nearestName(
    typed,
    steps.map(({ id }) => id),
  )
  const instead = nearest === null ? `the first is "${steps[0]?.id}".` : `did you mean "${nearest}"?`
  throw new UserError('CM0103', `--from is "${oneLine(typed, MOST_VALUE)}", but no step has that name; ${instead}`)
}

/** `flow run --dry-run`: prints what each step would be given. */
function dryRun(context: CliContext, { plan, from, flags, remarks }: FlowRun): number {
  for (const remark of remarks) context.stderr.write(`${context.program}: ${remark}\n`)
  const steps = dryRunOf(plan, from)
  if (flags.json) {
    context.stdout.write(`${JSON.stringify({ file: plan.file, name: plan.name, steps })}\n`)
    return 0
  }
  const head = `A dry run of ${plan.name} (${plan.file}): no model is asked, nothing is run or written.`
  const blocks = steps.map(step => linesOfDryStep(step, plan.steps.length).join('\n'))
  context.stdout.write(safeText(`${[head, ...blocks].join('\n\n')}\n`))
  return 0
}

function linesOfDryStep(
  { index, title, commandLine, input, verify, needs, when, forEach, outputs }: DryStep,
  count: number,
): string[] {
  return [
    `Step ${index}/${count}: ${oneLine(title, 200)}`,
    `  ${commandLine}`,
    ...(forEach === null ? [] : [`  for each of ${[forEach].flat().join(', ')}`]),
    ...(needs === null ? [] : [`  needs ${needs.join(', ') || 'no other step'}`]),
    ...(when === null ? [] : [`  only when ${when}`]),
    ...(input === null ? [] : [`  input, ${formatCount(input.length, 'character')}:`, ...indented(input)]),
    ...verify.map(line => `  verified by ${line}`),
    ...outputs.map(path => `  output into ${path}`),
  ]
}

function indented(text: string): string[] {
  return text.split('\n').map(line => `    ${line}`.trimEnd())
}
