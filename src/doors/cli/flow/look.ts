import { relative, resolve } from 'node:path'
import { UserError } from '../../../base/errors.ts'
import { initFlow } from '../../../modes/flow/file/init.ts'
import { dryRunOf, wordsForEach } from '../../../modes/flow/file/mock-script.ts'
import {
  type AgentWork,
  commandLineOf,
  type FlowPlan,
  type FlowStep,
  filesOf,
  type OutputFile,
} from '../../../modes/flow/file/plan.ts'
import { findRecording } from '../../../modes/flow/file/recording.ts'
import { type GivenValues, readValues, type SecretIn } from '../../../modes/flow/file/variables.ts'
import { flowTyped, type LookedFlow, lookAtFlow, lookAtFlows } from '../../../modes/flow/start/look.ts'
import { flowRootOf, lineOfMistake, mistakesIn, secretInBy } from '../../../modes/flow/start/prepare.ts'
import { shellWord } from '../../../platform/shell-word.ts'
import { settingsOf } from '../../../project/open-run.ts'
import { redactorOfProject } from '../../../project/secrets/redactor.ts'
import { redactorOfEnvironment } from '../../../project/world.ts'
import { recordsAround } from '../../../session/records/records.ts'
import { here } from '../../../tell/words/commands.ts'
import { formatCount, formatSpan } from '../../../tell/words/numbers.ts'
import { oneLine, safeText } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { type DirectoryFlags, directoryOf, type LookFlags, printDone, readAll } from '../flags.ts'
import { inColumns } from '../output.ts'

/** What names the values of a workflow and the workflow of a file, as typed. */
export interface FlowLookFlags extends DirectoryFlags {
  /** Each `key=value`, `key=@file` or `key=@-`. */
  var?: string[]
  varsFile?: string
  /** Name of the workflow, of a file with several. */
  workflow?: string
  json?: boolean
}

/** What may be said to `flow init`, as typed. */
interface FlowInitFlags extends LookFlags {
  dir?: string
  templatesDir?: string
  force?: true
}

const SAMPLE = '.codex-flow/workflows/commit.workflow.toml'
const IS_WORKFLOW = /\/(?:flow|workflows\/.+\.workflow)\.toml$/
const WHAT_BECAME = { made: 'made', kept: 'kept', replaced: 'replaced' } as const

/** `flow init`: makes a first workflow, and says what to type next. */
export async function flowInit(context: CliContext, flags: FlowInitFlags): Promise<number> {
  const { dir, templatesDir, force = false, ...place } = flags
  const from = directoryOf(context, place)
  const directory = dir === undefined ? await flowRootOf(from) : resolve(from, dir)
  const templates = templatesDir === undefined ? null : resolve(from, templatesDir)
  const files = await initFlow({ directory, templates, force })
  const shown = (path: string) => relative(context.cwd, resolve(directory, path))
  const paths = files.map(({ path }) => path)
  const first = paths.find(path => path === SAMPLE) ?? paths.find(path => IS_WORKFLOW.test(path)) ?? SAMPLE
  const laid = inColumns(files.map(({ path, state }) => [WHAT_BECAME[state], shown(path)])).join('\n')
  const words = `${laid}\n\n${(await whatNext(context, directory, first)).join('\n')}`
  return printDone(context, flags, words, { directory, files })
}

/** What a person can type with a workflow that was laid down, each line as it works now. */
async function whatNext(context: CliContext, directory: string, path: string): Promise<string[]> {
  const place = { cd: directory }
  const { plans, mock, mistakes, missing } = await lookAtFlow(path, {
    ...(await lookOf(context, place)),
    workflow: null,
    given: new Map(),
  })
  const [plan] = plans
  const isElsewhere = (await flowRootOf(context.cwd)) !== (await flowRootOf(directory))
  const file = isElsewhere ? path : relative(context.cwd, resolve(directory, path))
  const where = isElsewhere ? here(directory) : ''
  if (plan === undefined || mistakes.length > 0)
    return ['To see its mistakes:', `  ${programOf(context)} validate ${shellWord(file)}${where}`]
  const names = missing.flatMap(({ problem }) => /^\{\{(.+?)\}\} has no value/.exec(problem)?.[1] ?? [])
  const values = names.map(name => ` --var ${shellWord(`${name}=…`)}`).join('')
  const command = `${programOf(context)} run ${shellWord(file)}${values}${where}`
  const unrecorded = await stepsWithoutRecording(directory, plan, context.signal)
  const replay =
    unrecorded.length === 0
      ? [
          'To see what it does, without a model and without an account:',
          `  ${command}${mock === false ? ' --mock' : ''}`,
        ]
      : [
          `It cannot be replayed yet: ${formatCount(unrecorded.length, 'step')} of it ${unrecorded.length === 1 ? 'has' : 'have'} no recording.`,
        ]
  return [...replay, 'To run it for real, with codex:', `  ${command} --no-mock`]
}

async function stepsWithoutRecording(directory: string, plan: FlowPlan, signal: AbortSignal): Promise<FlowStep[]> {
  const root = await flowRootOf(directory)
  const found = await Promise.all(plan.steps.map(async step => await findRecording(root, plan, step, signal)))
  return plan.steps.filter((_, at) => found[at]?.kind !== 'recording')
}

/** `flow list`: the workflow files of the project, and what is in them. */
export async function flowList(context: CliContext, { json, ...place }: LookFlags): Promise<number> {
  const look = { ...(await lookOf(context, place)), given: new Map(), workflow: null }
  const flows = await lookAtFlows(look)
  if (json) return print(context, `${JSON.stringify(flows.map(dataOf))}\n`)
  if (flows.length === 0) {
    return print(
      context,
      `There are no workflows in ${oneLine(look.directory, 500)} yet.\n  To make a first one: ${programOf(context)} init\n`,
    )
  }
  const rows = flows.flatMap(({ file, plans, mistakes }) => [
    ...plans.map(({ name, description, steps }) => [
      file,
      oneLine(name, MOST_NAME),
      formatCount(steps.length, 'step'),
      oneLine(description ?? '', MOST_DESCRIPTION),
    ]),
    ...(mistakes.length === 0
      ? []
      : [[file, '', formatCount(mistakes.length, 'mistake'), validateCommand(context, file)]]),
  ])
  return print(context, `${inColumns(rows).map(safeText).join('\n')}\n`)
}

const MOST_NAME = 60
const MOST_DESCRIPTION = 200

function validateCommand(context: CliContext, file: string): string {
  return `${programOf(context)} validate ${shellWord(file)}`
}

/** `flow validate`: every mistake of workflow files, a line each. */
export async function flowValidate(
  context: CliContext,
  files: readonly string[],
  flags: FlowLookFlags,
): Promise<number> {
  const place = await lookOf(context, flags)
  const look = { ...place, workflow: flags.workflow ?? null, given: await givenValues(context, flags) }
  const flows = files.length > 0 ? [] : await lookAtFlows(look)
  for (const each of files) flows.push(await lookAtFlow((await flowTyped(each, look)).file, look))
  if (flows.length === 0) {
    throw new UserError('CM1002', `There are no workflows in ${look.directory}.`, {
      hint: `To make a first one: ${programOf(context)} init`,
    })
  }
  const exitCode = flows.some(({ mistakes }) => mistakes.length > 0) ? 2 : 0
  if (flags.json) return print(context, `${JSON.stringify(flows.map(dataOf))}\n`, exitCode)
  return print(context, flows.map(flow => `${linesOfLook(flow).map(safeText).join('\n')}\n`).join(''), exitCode)
}

function linesOfLook({ file, plans, mistakes, missing }: LookedFlow): string[] {
  const steps = plans.reduce((sum, plan) => sum + plan.steps.length, 0)
  const what =
    plans.length === 1
      ? formatCount(steps, 'step')
      : `${formatCount(plans.length, 'workflow')}, ${formatCount(steps, 'step')}`
  const notes = missing.map(each => `${lineOfMistake(each)} (a note: it can be given when it is run)`)
  return mistakes.length > 0 ? [...mistakes.map(lineOfMistake), ...notes] : [`${file}: no mistakes (${what})`, ...notes]
}

/** What `--json` says of a workflow file. */
function dataOf({ file, mock, plans, mistakes, missing }: LookedFlow) {
  const workflows = plans.map(({ name, description, steps }) => ({ name, description, steps: steps.length }))
  return { file, mock: mock ?? true, workflows, mistakes, missing }
}

/** `flow show`: the steps of a workflow, as they would run. */
export async function flowShow(context: CliContext, typed: string, flags: FlowLookFlags): Promise<number> {
  const place = await lookOf(context, flags)
  const { file, workflow } = await flowTyped(typed, place)
  const look = { ...place, workflow: flags.workflow ?? workflow, given: await givenValues(context, flags) }
  const { plans, mock, mistakes, missing } = await lookAtFlow(file, look)
  const [plan] = plans
  if (plan === undefined || mistakes.length > 0) throw mistakesIn(mistakes)
  const isMock = mock ?? true
  if (flags.json) return print(context, `${JSON.stringify({ ...plan, mock: isMock, missing })}\n`)
  const others = plans.slice(1).map(({ name }) => name)
  const head = [
    `${plan.name}${plan.description === null ? '' : `: ${plan.description}`}`,
    `${formatCount(plan.steps.length, 'step')} of ${plan.file}; without --mock or --no-mock it is ${isMock ? 'replayed (mock)' : 'run for real'}`,
    ...(others.length === 0 ? [] : [`in the same file (--workflow <name>): ${others.join(', ')}`]),
    ...missing.map(({ problem }) => problem),
  ]
  const written = dryRunOf({ steps: plan.steps, values: {} }, null)
  const blocks = plan.steps.map((step, at) =>
    linesOfStep(step, written[at]?.input ?? null, plan.steps.length).join('\n'),
  )
  return print(context, `${safeText([head.join('\n'), ...blocks].join('\n\n'))}\n`)
}

/** A step in lines; `input` as it is written, with the names in it. */
function linesOfStep(step: FlowStep, input: string | null, count: number): string[] {
  const { index, id, description, work, verify, retries, approve, timeoutMs, when, readOnly, needs } = step
  const [files, items] = [filesOf(step), wordsForEach(step)]
  const terms = [
    ...(retries === 0 ? [] : [`tried again ${retries === 1 ? 'once' : `up to ${retries} times`}`]),
    ...(approve ? ['a person looks at the output first'] : []),
    ...(timeoutMs === null ? [] : [`at most ${formatSpan(timeoutMs)}`]),
    ...(readOnly ? ['it can write nothing'] : []),
  ]
  return [
    `Step ${index}/${count}: ${oneLine(description ?? id, MOST_DESCRIPTION)}`,
    `  ${commandLineOf(step)}`,
    `  id        ${id}`,
    ...(work.kind === 'command' ? [] : linesOfAgent(work)),
    ...(items === null ? [] : [`  for each  ${[items].flat().join(', ')}`]),
    ...(needs === undefined ? [] : [`  needs     ${needs.join(', ') || 'no other step'}`]),
    ...(when === null ? [] : [`  when      ${when.text}`]),
    ...verify.map(line => `  verify    ${line}`),
    ...(terms.length === 0 ? [] : [`  terms     ${terms.join(', ')}`]),
    ...(files.length === 0 ? ['is shown'] : files.map(wordsForFile)).map(words => `  output    ${words}`),
    ...(input === null || input === '' ? [] : ['  input', ...input.split('\n').map(line => `    ${line}`.trimEnd())]),
  ]
}

function wordsForFile({ path, append, field }: OutputFile): string {
  return `${path}${field === undefined ? '' : `, the field ${field.join('.')}`}${append ? ' (added to it)' : ''}`
}

function linesOfAgent({ agent, engine, model, prompt, rounds, schema }: AgentWork): string[] {
  const most = engine === 'codemachine' ? `, at most ${formatCount(rounds, 'round')}` : ''
  return [
    `  agent     ${agent}, engine ${engine}, model ${model ?? "codex's own"}${most}`,
    `  prompt    ${prompt.found}, ${formatCount(prompt.text.length, 'character')}`,
    ...(schema === null ? [] : ['  answer    by a JSON Schema']),
  ]
}

function print({ stdout }: CliContext, text: string, exitCode = 0): number {
  stdout.write(text)
  return exitCode
}

/** Finds the secrets of the environment and of the project there. */
async function secretInProject(context: CliContext, flags: FlowLookFlags): Promise<SecretIn> {
  const [own] = await recordsAround({ ...context, directory: directoryOf(context, flags) })
  return secretInBy(own === undefined ? redactorOfEnvironment(context) : redactorOfProject(context, own))
}

/** Means to look at the workflows there. */
export async function lookOf(context: CliContext, flags: FlowLookFlags) {
  const secretIn = await secretInProject(context, flags)
  return {
    directory: directoryOf(context, flags),
    secretIn,
    signal: context.signal,
    engines: await knownEngines(context, flags),
  }
}

/** The engines of other makers that the person's settings know. */
async function knownEngines(context: CliContext, flags: FlowLookFlags): Promise<readonly string[]> {
  const { engines } = await settingsOf(context, directoryOf(context, flags), {}, { withoutProject: true })
  return [...engines.keys()]
}

/** How the commands of workflows are typed in the program that was typed. */
export function programOf({ program }: Pick<CliContext, 'program'>): string {
  return program === 'codex-flow' ? program : `${program} flow`
}

/** The values that the flags give, read once: what comes from standard input is gone then. */
export async function givenValues(context: CliContext, flags: FlowLookFlags): Promise<GivenValues> {
  return await readValues({
    given: flags.var ?? [],
    file: flags.varsFile ?? null,
    directory: directoryOf(context, flags),
    stdin: () => readAll(context),
    secretIn: await secretInProject(context, flags),
  })
}
