import { parsedOrNull } from '../../../base/json.ts'
import { truncate } from '../../../base/text.ts'
import { parseAnswer } from '../../../core/rules/answer.ts'
import {
  type AgentWork,
  beginOf,
  commandLineOf,
  conditionHolds,
  type FlowPlan,
  type FlowStep,
  filesOf,
  holds,
  listIn,
  MOST_ITEMS,
  type OutputFile,
  type Reference,
  type TemplatePart,
  textAt,
} from './plan.ts'
import {
  type FoundRecording,
  inputHash,
  type KnownTexts,
  type RecordedResult,
  renderParts,
  type StepCame,
  type StepRecording,
  textOf,
} from './recording.ts'

/** Name of the kept text that holds the `MockScript` of a mock run as JSON. */
export const SCRIPT_NAME = 'mock.json'

/** Script of a mock run, step by step. Recordings are fixed, so everything is known at its start. JSON. */
export interface MockScript {
  v: 1
  steps: readonly MockStep[]
}

export interface MockStep {
  /** Id of the step. */
  id: string
  /** Lines below its title if it is played. */
  told: readonly string[]
  /** Lines instead of it, and after it. */
  before: readonly string[]
  after: readonly string[]
  /** Recording to play: its absolute path in the records, and its name for a person. Null: none. */
  recording: { path: string; name: string } | null
  /** Files to write, all at once; null: none. */
  write: MockWrite | readonly MockWrite[] | null
}

/** Text to write; path with `/` below the work directory. */
export interface MockWrite {
  path: string
  text: string
  append: boolean
}

/** Returns the lines below each step's title, in order (`FlowOptions.told`). */
export function toldOf({ steps }: MockScript, ids: readonly string[]): (readonly string[])[] {
  return ids.map(id => steps.find(step => step.id === id)?.told ?? [])
}

/** Returns the number of shown notes, rounds and writes of each step, in order (`FlowOptions.shown`). */
export function shownCounts({ steps }: MockScript, ids: readonly string[]): number[] {
  return ids.map(id => {
    const { before, after, recording, write } = steps.find(step => step.id === id) ?? NOTHING_SHOWN
    return before.length + (recording === null ? 0 : 1) + (write === null ? 0 : 1) + after.length
  })
}

const NOTHING_SHOWN: Omit<MockStep, 'id'> = { told: [], before: [], after: [], recording: null, write: null }

/** Options of a script. */
export interface ScriptOptions {
  /** Id of the first step; null: the first. */
  from: string | null
  /** Whether to write output files. */
  writes: boolean
  verbose: boolean
  /** Search result for each step, by id. */
  found: ReadonlyMap<string, FoundRecording>
  /** Returns the place to play a step's recording from. */
  placeOf(step: FlowStep): string
  /** Removes secrets. */
  redact(text: string): string
}

/** A script, and its recordings. `changed`: paths of those with another prompt or input now. */
export interface BuiltMock {
  script: MockScript
  played: readonly { step: FlowStep; recording: StepRecording }[]
  changed: readonly string[]
}

/** A step without a playable recording. `problem`: a sentence. */
export interface Unplayable {
  step: FlowStep
  problem: string
}

/** Returns the script of a mock run, or the unplayable steps. Pure. */
export function scriptOf(
  plan: Pick<FlowPlan, 'steps' | 'values'>,
  options: ScriptOptions,
): BuiltMock | { unplayable: readonly Unplayable[] } {
  const { from, found } = options
  const known = new Known(plan, found)
  const first = beginOf(plan.steps, from)
  for (const step of plan.steps.slice(0, first)) known.take(step, recordingOf(found, step))
  const steps: MockStep[] = []
  const played: { step: FlowStep; recording: StepRecording }[] = []
  const changed: string[] = []
  const unplayable: Unplayable[] = []
  let failed: FlowStep | null = null
  for (const step of plan.steps.slice(first)) {
    const items = plan.steps.flatMap(({ index, item }) => (index === step.index && item ? [item.text] : []))
    const how = { ...options, failed }
    const made = step.forEach === undefined ? stepOf(step, known, how) : loopOf(step, items, known, how)
    if ('problem' in made) {
      unplayable.push({ step, problem: made.problem })
      continue
    }
    steps.push(made.step)
    if (made.recording !== null && made.step.recording !== null) played.push({ step, recording: made.recording })
    if (made.isChanged && made.recording !== null) changed.push(made.recording.path)
    if (made.isFailed) failed = step
    known.take(step, made.isPassedOver ? 'skipped' : made.recording)
  }
  return unplayable.length > 0 ? { unplayable } : { script: { v: 1, steps }, played, changed }
}

interface MadeStep {
  step: MockStep
  recording: StepRecording | null
  isChanged: boolean
  isFailed: boolean
  isPassedOver: boolean
}

/** Returns the end of a loop, after its items. */
function loopOf(
  step: FlowStep,
  items: readonly string[],
  known: Known,
  options: ScriptOptions & { failed: FlowStep | null },
): MadeStep | { problem: string } {
  const recording = recordingOf(options.found, step)
  const { exit, failed, skipped } = recording?.header ?? {}
  const isRecorded = exit !== undefined || failed !== undefined || skipped !== undefined
  if (recording === null && options.failed === null) return { problem: problemOf(options.found.get(step.id), {}) }
  const done = items.length === 1 ? '1 item' : `${items.length} items`
  const isChanged = known.isOtherList(step, items, { recording, isWhole: exit !== undefined, redact: options.redact })
  const words =
    !isRecorded && options.failed !== null
      ? notRecordedAfter(options.failed)
      : failed !== undefined
        ? `failed, as recorded: ${failed}`
        : skipped !== undefined
          ? `skipped, as recorded: ${skipped}`
          : done
  return {
    step: {
      id: step.id,
      told: [],
      before: isChanged ? [line(changedSince(recording))] : [],
      after: [line(words)],
      recording: null,
      write: words === done ? writeOf(step, recording, options) : null,
    },
    recording,
    isChanged,
    isFailed: failed !== undefined,
    isPassedOver: words !== done && failed === undefined,
  }
}

function changedSince(recording: StepRecording | null): string {
  return `the prompt or the input has changed since ${recording?.path} was recorded`
}

function notRecordedAfter({ id }: FlowStep): string {
  return `not recorded: the recorded run ended when ${id} failed`
}

function stepOf(
  step: FlowStep,
  known: Known,
  options: ScriptOptions & { failed: FlowStep | null },
): MadeStep | { problem: string } {
  const { found, failed, verbose, placeOf, redact } = options
  const recording = recordingOf(found, step)
  const passedOver = (lines: readonly string[]): MadeStep => ({
    step: { id: step.id, told: [], before: lines.map(line), after: [], recording: null, write: null },
    recording: null,
    isChanged: false,
    isFailed: false,
    isPassedOver: true,
  })
  const condition = conditionOf(step, known, recording)
  if (condition.isPassedOver) return passedOver(condition.lines)
  const result = recording?.header ?? {}
  if (recording === null || (step.work.kind === 'agent' && !recording.hasEvents)) {
    // Steps after a failure did not run, so they have no recording.
    if (failed !== null) return passedOver([notRecordedAfter(failed)])
    if (step.work.kind === 'agent') return { problem: problemOf(found.get(step.id), result) }
  }
  const isChanged = known.isChanged(step, recording, redact)
  const why = failureOf(result, recording)
  const before = [
    ...condition.lines,
    ...(isChanged ? [changedSince(recording)] : []),
    ...(verbose ? detailsOf(step, known, recording) : []),
  ]
  const isPlayed = recording !== null && step.work.kind === 'agent'
  return {
    step: {
      id: step.id,
      told: isPlayed ? before.map(line) : [],
      before: isPlayed ? [] : before.map(line),
      after: [...resultLines(step, result), ...(why === null ? [] : [`failed, as recorded: ${why}`])].map(line),
      recording: isPlayed ? { path: placeOf(step), name: recording.path } : null,
      write: why === null ? writeOf(step, recording, options) : null,
    },
    recording,
    isChanged,
    isFailed: why !== null,
    isPassedOver: false,
  }
}

const MOST_LINE = 1_000

/** Returns one line that fits into a note. */
function line(text: string): string {
  return truncate(text.replace(/\s+/g, ' ').trim(), MOST_LINE)
}

/** Returns the texts that a step writes into its files; null: none. */
function writeOf(
  step: FlowStep,
  recording: StepRecording | null,
  { writes, redact }: ScriptOptions,
): MockStep['write'] {
  const files = filesOf(step)
  if (!writes || files.length === 0) return null
  const said = step.work.kind === 'agent' ? (recording?.lastMessage ?? '') : null
  const text = recording?.header.output ?? said
  if (text === null) return null
  const textFor = ({ field }: OutputFile) => redact(field === undefined ? text : textAt(parsedOrNull(text), field))
  return files.map(file => ({ path: file.path, append: file.append, text: textFor(file) }))
}

function recordingOf(found: ScriptOptions['found'], { id }: FlowStep): StepRecording | null {
  const one = found.get(id)
  return one?.kind === 'recording' ? one.recording : null
}

/** Returns whether a step is skipped, and lines on its condition. */
function conditionOf(
  { when }: FlowStep,
  known: Known,
  recording: StepRecording | null,
): { isPassedOver: boolean; lines: readonly string[] } {
  if (when === null) return { isPassedOver: false, lines: [] }
  const texts = known.textsFor(recording)
  const compared: string[] = []
  const isTrue = conditionHolds(when, each => {
    const [left, right] = [textOf(each.left, texts), textOf(each.right, texts)]
    if (left === null || right === null) return null
    compared.push(`${shown(left)} ${each.operator} ${shown(right)}`)
    return holds(each, left, right)
  })
  if (isTrue === null) {
    const { skipped } = recording?.header ?? {}
    if (skipped !== undefined && recording?.hasEvents !== true)
      return { isPassedOver: true, lines: [`skipped, as recorded: ${skipped}`] }
    return { isPassedOver: false, lines: [`when ${when.text}: not recorded, so it counts as true`] }
  }
  return isTrue
    ? { isPassedOver: false, lines: [] }
    : { isPassedOver: true, lines: [`skipped: when ${when.text} (${compared.join('; ')}) is false`] }
}

function shown(text: string): string {
  return text === '' ? '""' : truncate(text, 100)
}

function problemOf(found: FoundRecording | undefined, { skipped }: RecordedResult): string {
  switch (found?.kind) {
    case undefined:
      return 'codemachine looked for no recording'
    case 'missing':
      return `there is no recording: ${found.looked.join(', or ')}`
    case 'broken':
      return `${found.path} ${found.problem}`
    case 'recording': {
      const why = skipped === undefined ? '' : ', because the recorded run skipped the step'
      return `${found.recording.path} holds no event of codex${why}`
    }
  }
}

/** Returns why a recorded step failed; null: it did not. */
function failureOf({ failed, exit, output }: RecordedResult, recording: StepRecording | null): string | null {
  if (failed !== undefined) return failed
  // A recorded result is more reliable than the last turn.
  return exit === undefined && output === undefined ? (recording?.failure ?? null) : null
}

/** Returns lines on the other actions of a real run, with their recorded results. */
function resultLines({ work, verify, retries, approve }: FlowStep, result: RecordedResult): string[] {
  const ran = (exit: number | undefined) => (exit === undefined ? 'not recorded' : `recorded: exit code ${exit}`)
  const { exit, tries, approved } = result
  return [
    ...(work.kind === 'command' ? [`would run: ${work.run} (${ran(exit)})`] : []),
    ...verify.map(run => `would run: ${run} (${ran(result.verify?.find(each => each.run === run)?.exit)})`),
    ...(retries === 0
      ? []
      : [
          `would run: again if it fails, at most ${retries === 1 ? 'once' : `${retries} times`} (${tries === undefined ? 'not recorded' : `recorded: ${tries === 1 ? 'not needed' : `${tries - 1} more`}`})`,
        ]),
    ...(approve ? [`would ask: a person to look at the output (${approvalWords(approved)})`] : []),
  ]
}

function approvalWords(approved: boolean | undefined): string {
  if (approved === undefined) return 'not recorded'
  return approved ? 'recorded: accepted' : 'recorded: not accepted'
}

function detailsOf(step: FlowStep, known: Known, recording: StepRecording | null): string[] {
  const { work } = step
  if (work.kind === 'command') return recording === null ? [] : [`recording: ${recording.path}`]
  const input = known.inputOf(work, recording)
  return [
    `prompt: ${work.prompt.found}`,
    `input: ${input === null ? 'known only in a real run' : `${input.length} characters`}`,
    ...(recording === null ? [] : [`recording: ${recording.path}`]),
  ]
}

/** Known values and step results so far. */
class Known {
  readonly #values: KnownTexts['values']
  readonly #recorded: Record<string, { text: string }> = {}
  readonly #came = new Map<string, StepCame>()

  constructor({ values }: Pick<FlowPlan, 'values'>, found: ScriptOptions['found']) {
    this.#values = values
    // Conditions have no recordings except those of other steps.
    for (const each of found.values())
      if (each.kind === 'recording') Object.assign(this.#recorded, valuesOf(each.recording))
  }

  take(step: FlowStep, recording: StepRecording | 'skipped' | null): void {
    const came = recording === 'skipped' ? recording : cameOf(step, recording)
    if (came !== null) this.#came.set(step.id, came)
  }

  /** Returns the texts for a step with this recording. Values given now win over recorded ones. */
  textsFor(recording: StepRecording | null): KnownTexts {
    const values = { ...this.#recorded, ...(recording === null ? {} : valuesOf(recording)), ...this.#values }
    return { values, came: this.#came }
  }

  inputOf({ input }: AgentWork, recording: StepRecording | null): string | null {
    return renderParts(input, this.textsFor(recording))
  }

  /** Returns whether a step's prompt or input is known to differ from the recording. */
  isChanged({ work }: FlowStep, recording: StepRecording | null, redact: (text: string) => string): boolean {
    const hash = recording?.header.input_sha256
    if (hash === undefined || work.kind === 'command') return false
    // Values missing in this recording do not come from another one.
    const values = { ...(recording === null ? {} : valuesOf(recording)), ...this.#values }
    const input = renderParts(work.input, { values, came: this.#came })
    return input !== null && inputHash(redact(work.prompt.text), redact(input)) !== hash
  }

  /** Returns whether a loop is known to have other items than those recorded; `isWhole`: all of them ran. */
  isOtherList(
    { forEach = [] }: FlowStep,
    items: readonly string[],
    {
      recording,
      isWhole,
      redact,
    }: { recording: StepRecording | null; isWhole: boolean; redact: (text: string) => string },
  ): boolean {
    if (recording === null) return false
    const said = 'length' in forEach ? forEach : textOf(forEach, this.textsFor(recording))
    if (said === null) return false
    const list = typeof said === 'string' ? listIn(said) : said
    const most = isWhole ? MOST_ITEMS : items.length
    return JSON.stringify(list.slice(0, most).map(redact)) !== JSON.stringify(items)
  }
}

function valuesOf({ header }: StepRecording): Record<string, { text: string }> {
  return Object.fromEntries(Object.entries(header.values ?? {}).map(([name, text]) => [name, { text }]))
}

/** Returns a step's result by its recording; null: unknown. */
function cameOf({ work, forEach }: FlowStep, recording: StepRecording | null): StepCame | null {
  if (recording === null) return null
  const { header, hasEvents, lastMessage, failure } = recording
  if (header.skipped !== undefined && !hasEvents) return 'skipped'
  if (work.kind === 'command') return { output: header.output ?? null, exit: header.exit ?? null, answer: undefined }
  const output = header.output ?? lastMessage ?? ''
  if (forEach !== undefined) return { output, exit: header.exit ?? null, answer: parsedOrNull(output) }
  const answer = work.schema === null ? null : parseAnswer(output, work.schema)
  return {
    output,
    exit: header.exit ?? (failure === null ? 0 : null),
    answer: answer?.ok ? answer.value : undefined,
  }
}

/** A step as a real run would begin it. */
export interface DryStep {
  index: number
  id: string
  /** The description, else the id. */
  title: string
  /** Command line that would do it. */
  commandLine: string
  /** Input of its agent; unknown names stay as written. Null: a command. */
  input: string | null
  /** Commands that must pass. */
  verify: readonly string[]
  /** Ids of the steps that it waits for; null: all before it. */
  needs: readonly string[] | null
  /** Its condition as written; null: none. */
  when: string | null
  /** What it is repeated for; null: it runs once. */
  forEach: readonly string[] | string | null
  /** Its output files, with `/`. */
  outputs: readonly string[]
}

/** Returns the steps of a plan as a real run would begin them, from the id `from` on; null: all. Pure. */
export function dryRunOf({ steps, values }: Pick<FlowPlan, 'steps' | 'values'>, from: string | null): DryStep[] {
  const first = beginOf(steps, from)
  const known = { values, came: new Map() }
  return steps.slice(first).map(step => ({
    index: step.index,
    id: step.id,
    title: step.description ?? step.id,
    commandLine: commandLineOf(step),
    input:
      step.work.kind === 'agent' ? step.work.input.map(part => textOf(part, known) ?? written(part)).join('') : null,
    verify: step.verify,
    needs: step.needs ?? null,
    when: step.when?.text ?? null,
    forEach: wordsForEach(step),
    outputs: filesOf(step).map(({ path }) => path),
  }))
}

/** Returns the items of a loop, or the reference to them as written; null: no loop. */
export function wordsForEach({ forEach }: Pick<FlowStep, 'forEach'>): readonly string[] | string | null {
  if (forEach === undefined || 'length' in forEach) return forEach ?? null
  return written(forEach)
}

function written(part: TemplatePart): string {
  return typeof part === 'string' ? part : `{{${nameOf(part)}}}`
}

function nameOf(reference: Reference): string {
  if ('variable' in reference) return reference.variable
  return ['steps', reference.step, reference.part, ...reference.field].join('.')
}
