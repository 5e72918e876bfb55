import { resolve } from 'node:path'
import { UserError } from '../../../base/errors.ts'
import { nearestName, utf8Text } from '../../../base/text.ts'
import type { Output } from '../../../core/rules/outputs.ts'
import { OWN_ENGINES } from '../../../engines/registry.ts'
import { pathExists } from '../../../platform/files.ts'
import { readableState } from '../../../project/find.ts'
import type { RunOptions } from '../../../project/library.ts'
import type { PromptSession } from '../../../project/modes.ts'
import { OpenProject } from '../../../project/open-project.ts'
import { type Run, type RunListeners, settingsOf } from '../../../project/open-run.ts'
import { redactorOfProject } from '../../../project/secrets/redactor.ts'
import type { NewSession, RunObserver } from '../../../project/sessions.ts'
import { directoryOf, type World } from '../../../project/world.ts'
import { openOutputs } from '../../../session/records/outputs.ts'
import type { Records } from '../../../session/records/records.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { FlowFile } from '../file/file.ts'
import type { RunValue } from '../file/freeze.ts'
import {
  type CarriedStep,
  comparedFields,
  type FlowOptions,
  type FlowPlan,
  type FlowStep,
  flowOptionsOf,
  neededSteps,
  PLAN_NAME,
} from '../file/plan.ts'
import {
  bytesOfRecording,
  type FoundRecording,
  findRecording,
  keptRecording,
  type StepRecording,
} from '../file/recording.ts'
import { type StepRecord, workOf } from '../work.ts'
import { flowFilesAround, flowTyped, lookAtFlow } from './look.ts'
import { flowRootOf, mistakesIn, preparedPlan, secretInBy, type WantedFlow } from './prepare.ts'

/** A workflow to run for real. */
export interface FlowRun extends Omit<WantedFlow, 'directory'> {
  /** Id of the first step; null: the first. */
  from: string | null
  continueOnError: boolean
  verbose: boolean
  /** Seconds between two events of a replayed step in a real run. */
  pace: number
  /** `directory`: the person's current directory; the workflow runs in the project around it. */
  options: RunOptions
}

/** Template name of these sessions. */
const FLOW = 'flow'

/**
 * Runs a workflow in its own session, then the queue, like any run. Returns the exit code. Before it begins, it throws a
 * `UserError` for problems that a person must fix; with exit code 6 while a codemachine runs here.
 */
export async function runFlow(
  world: World,
  wanted: FlowRun,
  observer: RunObserver,
  listeners: RunListeners = {},
): Promise<number> {
  const stands = directoryOf(world, wanted.options)
  const { directory: _, ...others } = wanted.options
  const root = await flowRootOf(stands)
  // Name it only if it differs: then the session's messages name it too.
  const options = { ...others, ...(root === world.cwd ? {} : { directory: root }) }
  await using project = await OpenProject.open(world, options)
  const first = async (run: Run) => await newFlow(world, run, { ...wanted, directory: stands })
  const worked = await project.runQueue({ first }, observer, listeners)
  if (worked === null) throw new Error('No session was run.')
  return worked.exitCode
}

/** Throws a `UserError` if a queued prompt names no workflow here, or one with mistakes or without a value. */
export async function checkFlowPrompt(world: World, records: Records, prompt: string): Promise<void> {
  const { directory } = records
  const look = await lookIn(world, records)
  const { file, workflow } = await flowTyped(prompt.trim(), look)
  if (workflow === null && !(await pathExists(resolve(directory, file))))
    throw new UserError('CM1002', `No workflow and no file here is named ${oneLine(file, 60)}.`, {
      hint: 'The workflows of this project: codemachine flow list',
    })
  const { mistakes, missing } = await lookAtFlow(file, { ...look, workflow, given: new Map() })
  const wrong = [...mistakes, ...missing]
  if (wrong.length > 0) throw mistakesIn(wrong)
}

/** Returns the workflows of the project that a queued prompt can name: those without a mistake and with all values. */
export async function runnableWorkflows(world: World, records: Records): Promise<FlowPlan[]> {
  const look = { ...(await lookIn(world, records)), given: new Map() }
  const found: FlowPlan[] = []
  for (const file of await flowFilesAround(records.directory, world.signal)) {
    const { plans } = await lookAtFlow(file, { ...look, workflow: null })
    for (const plan of plans) {
      const { mistakes, missing } = await lookAtFlow(file, { ...look, workflow: plan.name })
      if (mistakes.length + missing.length === 0) found.push(plan)
    }
  }
  return found
}

async function lookIn(world: World, records: Records) {
  const { directory } = records
  const { engines } = await settingsOf(world, directory, {}, { withoutProject: true })
  const secretIn = secretInBy(redactorOfProject(world, records))
  return { directory, secretIn, signal: world.signal, engines: [...engines.keys()] }
}

/** Returns the session of the workflow that a queued prompt names. */
export async function flowOfPrompt(world: World, run: Run, prompt: string): Promise<PromptSession> {
  const { records, redactor } = run
  const { directory } = records
  const engines = run.engines.names.filter(name => !OWN_ENGINES.has(name))
  const look = { directory, secretIn: secretInBy(redactor), signal: world.signal, engines }
  const named = await flowTyped(prompt.trim(), look)
  const how = { from: null, continueOnError: false, verbose: false, pace: 1, given: new Map(), options: {} }
  const { text, terms, kept = [] } = await newFlow(world, run, { ...how, ...named, directory })
  return { text, options: terms?.options, kept }
}

/** Returns the session of a workflow as it is now. */
async function newFlow(
  { signal }: World,
  run: Run,
  { from, continueOnError, verbose, pace, file, directory, workflow, given }: FlowRun & { directory: string },
): Promise<Omit<NewSession, 'queued'>> {
  const { records, redactor, remarks } = run
  const { plan, notes } = await preparedPlan({
    file,
    directory,
    workflow,
    given,
    runValue: valuesIn(run),
    secretIn: secretInBy(redactor),
    signal,
    engines: run.engines.names.filter(name => !OWN_ENGINES.has(name)),
    // Check before a command runs for a value.
    check: flow => refuseForeignPrograms(flow, run),
  })
  remarks.push(...notes)
  const how = { mode: 'real', from, carried: [], continueOnError, writes: false, pace, verbose } as const
  const fresh = flowOptionsOf(plan, how)
  const last = from === null ? NOTHING_CARRIED : await lastRun(records, plan, { from, asked: fresh.asked })
  const options: FlowOptions = { ...fresh, carried: last.carried }
  return {
    text: plan.description === null ? plan.name : `${plan.name}: ${plan.description}`,
    template: FLOW,
    by: 'command',
    terms: { options: verbose ? { ...options, told: plan.steps.map(promptOf) } : options },
    kept: [{ name: PLAN_NAME, text: JSON.stringify(plan) }, ...(await recordingsFor(records.directory, plan, signal))],
    outputs: last.outputs,
  }
}

/** Describes a step's prompt. */
function promptOf({ work }: FlowStep): string[] {
  return work.kind === 'agent' ? [`prompt ${work.prompt.found}, ${work.prompt.text.length} characters`] : []
}

/** Most output of a command for a value, in bytes, and its longest time, ms. */
const VALUE_BYTES = 1024 * 1024
const VALUE_MS = 10 * 60_000

/** Runs the commands of values in the sandbox of the rounds, without network. */
function valuesIn({ commands }: Run): RunValue {
  return async (line, signal) => {
    const printed: Buffer[] = []
    let bytes = 0
    const tooLong = new AbortController()
    const onStdout = (part: Buffer) => {
      bytes += part.length
      if (bytes <= VALUE_BYTES) printed.push(part)
      else tooLong.abort()
    }
    const until = AbortSignal.any([signal, tooLong.signal])
    const end = await commands.run({ run: line, network: false, timeoutMs: VALUE_MS, signal: until, onStdout })
    if (tooLong.signal.aborted) return { problem: `\`${line}\` printed more than 1 MiB` }
    switch (end.kind) {
      case 'timed-out':
        return { problem: `\`${line}\` took longer than ${VALUE_MS / 60_000} minutes` }
      case 'not-started':
        return { problem: `\`${line}\` could not be run: ${end.problem.replace(/\.$/, '')}` }
      case 'broken-off':
        return { problem: `\`${line}\` was interrupted` }
      case 'exited':
        return printedValue(line, end, printed)
    }
  }
}

function printedValue(
  line: string,
  { exitCode, output }: { exitCode: number; output: string },
  printed: readonly Buffer[],
): Awaited<ReturnType<RunValue>> {
  if (exitCode !== 0) {
    const lines = output.trim().split('\n')
    // Programs give the reason last, except those that print their usage after it, as git does.
    const said = lines.find(each => /^(?:error|fatal|warning):/i.test(each)) ?? lines.at(-1) ?? ''
    return { problem: `\`${line}\` ended with exit code ${exitCode}${said === '' ? '' : `: ${said.slice(0, 500)}`}` }
  }
  const text = utf8Text(Buffer.concat(printed))
  return text === null ? { problem: `what \`${line}\` printed is not UTF-8 text` } : { text }
}

/** Throws a `UserError` for a program that only the file names: a clone brings the file along. */
function refuseForeignPrograms({ file, engines }: FlowFile, { settings, sources }: Run): void {
  const { codex, codemachine } = engines
  const isOwn = sources.codexBin.layer !== 'project'
  const own = isOwn ? settings.codexBin : null
  for (const [name, { bin }] of Object.entries({ codex, codemachine })) {
    if (bin === null || bin.value === name || (name === 'codex' && bin.value === own)) continue
    const mend =
      name === 'codex'
        ? 'name the same program in your own settings or with --codex-bin, or remove it here'
        : 'this codemachine itself works on a step of this engine; remove it'
    throw new UserError(
      'CM1007',
      `${file}:${bin.line}:${bin.column}: ${bin.place}: you have not allowed the program "${bin.value}"; ${mend}.`,
    )
  }
}

/** Results of earlier steps in the last run. */
interface LastRun {
  carried: readonly CarriedStep[]
  outputs: NonNullable<NewSession['outputs']>
}

const NOTHING_CARRIED: LastRun = { carried: [], outputs: [] }

/** Number of sessions to search for a workflow's last run. */
const MOST_LOOKED_AT = 200

/** Returns the newest real run's results for a start at a later step. Throws a `UserError` if some are missing. */
async function lastRun(
  records: Records,
  plan: FlowPlan,
  { from, asked }: { from: string; asked: FlowOptions['asked'] },
): Promise<LastRun> {
  const begin = plan.steps.findIndex(({ id }) => id === from)
  if (begin === -1) throw new UserError('CM1006', noStep(plan, from))
  const before = plan.steps.slice(0, begin).map(({ id }) => id)
  const after = plan.steps.slice(begin)
  const needed = new Set(after.flatMap(step => neededSteps(step)))
  const answers = new Set(after.flatMap(step => neededSteps(step, 'answer')))
  const found = begin === 0 ? null : await newestRun(records, plan)
  if (found === null) {
    const missing = before.find(id => needed.has(id))
    if (missing === undefined) return NOTHING_CARRIED
    throw new UserError(
      'CM1006',
      `There is no earlier run of ${plan.name}, and the steps from "${from}" need the result of step "${missing}". Run the workflow from its beginning.`,
    )
  }
  const kept = openOutputs(records.sessionFolder(found.id))
  const last: { carried: CarriedStep[]; outputs: LastRun['outputs'][number][] } = { carried: [], outputs: [] }
  for (const id of before) {
    const record = found.steps.get(id)
    const refuse = (what: string) =>
      new UserError(
        'CM1006',
        `In the last run of ${plan.name} (${found.id}), step "${id}" has ${what}, but the steps from "${from}" need its result. Begin with --from ${id}, or an earlier step.`,
      )
    if (record === undefined || (record.mark !== 'done' && record.mark !== 'skipped')) {
      if (!needed.has(id)) continue
      throw refuse('no result')
    }
    const { mark, exit, output, answer } = record
    // At that time it may have had no schema.
    if (mark === 'done' && answer === null && answers.has(id)) throw refuse('no answer')
    const keep = async (name: string, from: Output | null, kind: 'md' | 'json') => {
      if (from === null) return null
      const text = await kept.whole(from)
      if (text !== null) last.outputs.push({ name, kind, text })
      else if (needed.has(id)) throw refuse('a result that cannot be read any more')
      return text
    }
    await keep(id, output, 'md')
    const json = await keep(`${id}.answer`, answer, 'json')
    // Conditions may now use other fields.
    const fields = json === null ? {} : comparedFields(JSON.parse(json), id, { asked })
    last.carried.push({ id, mark, exit, fields })
  }
  return last
}

function noStep({ name, steps }: FlowPlan, wanted: string): string {
  const ids = steps.map(({ id }) => id)
  const near = nearestName(wanted, ids)
  const meant = near === null ? `use one of ${ids.slice(0, 20).join(', ')}.` : `did you mean "${near}"?`
  return `${name} has no step "${wanted.slice(0, 60)}"; ${meant}`
}

async function newestRun(
  records: Records,
  plan: FlowPlan,
): Promise<{ id: string; steps: ReadonlyMap<string, StepRecord> } | null> {
  for (const id of (await records.sessions()).reverse().slice(0, MOST_LOOKED_AT)) {
    const state = await readableState(records, id)
    if (state?.template !== FLOW || state.kind === null) continue
    const { options, steps } = workOf(state)
    if (options.mode !== 'real' || options.file !== plan.file || options.name !== plan.name) continue
    return { id, steps: new Map(options.steps.flatMap((step, at) => (steps[at] ? [[step.id, steps[at]]] : []))) }
  }
  return null
}

/** Largest recording that a session stores. */
const RECORDING_BYTES = 16 * 1024 * 1024

/** Returns recordings of replayed steps in a real run, by the template's names. */
async function recordingsFor(
  root: string,
  plan: FlowPlan,
  signal: AbortSignal,
): Promise<NonNullable<NewSession['kept']>> {
  const kept: { name: string; text: string }[] = []
  for (const step of plan.steps) {
    if (step.work.kind !== 'agent' || step.work.engine !== 'mock') continue
    const found = await findRecording(root, plan, step, signal)
    if (found.kind !== 'recording') throw new UserError('CM1005', noRecording(step, found))
    kept.push({ name: keptRecording(step), text: await textOf(root, step, found.recording) })
  }
  return kept
}

function noRecording({ id }: FlowStep, found: Exclude<FoundRecording, { kind: 'recording' }>): string {
  if (found.kind === 'broken') return `${found.path} ${found.problem.replace(/\.$/, '')}.`
  const is = found.looked.length === 1 ? 'is' : 'are'
  return `Step "${id}" is replayed (its engine is mock), but has no recording: ${found.looked.join(' and ')} ${is} missing.`
}

async function textOf(root: string, { id }: FlowStep, recording: StepRecording): Promise<string> {
  const { path, hasEvents, bytes } = recording
  if (!hasEvents)
    throw new UserError(
      'CM1005',
      `Step "${id}" is replayed (its engine is mock), but its recording ${path} contains no event of codex.`,
    )
  if (bytes > RECORDING_BYTES)
    throw new UserError('CM1005', `${path} is longer than 16 MiB, the most that a run replays of a step.`)
  const read = await bytesOfRecording(root, recording)
  if (read === null) throw new UserError('CM1005', `${path} changed while codemachine read it; try again.`)
  return read.toString()
}
