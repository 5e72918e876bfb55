import { messageOf } from '../../../base/errors.ts'
import { memberOf, parsedOrNull } from '../../../base/json.ts'
import { truncate } from '../../../base/text.ts'
import type { LiveEvent, Recorded, RecordedOf } from '../../../core/events/events.ts'
import type { Output } from '../../../core/rules/outputs.ts'
import type { SessionState } from '../../../core/state/state.ts'
import { ExecJson } from '../../../engines/exec/exec-json.ts'
import type { SessionRecorder } from '../../../project/modes.ts'
import type { Redactor } from '../../../secrets/redactor.ts'
import { openKeptTexts } from '../../../session/records/kept-texts.ts'
import { openOutputs } from '../../../session/records/outputs.ts'
import type { Records } from '../../../session/records/records.ts'
import { describeEvent } from '../../../tell/words/event.ts'
import { formatTime } from '../../../tell/words/numbers.ts'
import {
  beginOf,
  type FlowPlan,
  type FlowStep,
  MOST_ITEMS,
  PLAN_NAME,
  stepsOfLoop,
  type TemplatePart,
  usedParts,
} from '../file/plan.ts'
import {
  firstLine,
  inputHash,
  lastLine,
  type RecordedResult,
  type RecordingHeader,
  renderParts,
  type StepCame,
} from '../file/recording.ts'
import { recordOf, stepsNow } from '../next.ts'
import { titleOf } from '../view.ts'
import { APPROVE, type FlowWork, type StepRecord, workOf } from '../work.ts'
import { keepEarlier, RuntimeFile, writeMemory } from './runtime-files.ts'

/** Sources of the files that a real run leaves for people. */
interface RunRecorderOptions {
  records: Pick<Records, 'directory' | 'sessionFolder'>
  redactor: Redactor
  /** Receives a sentence for each failed write. */
  onProblem(sentence: string): void
}

/** Most characters waiting to be written: a blocked disk must not delay the run. */
const MOST_WAITING = 32 * 1024 * 1024
/** Most recorded characters of a value, and of a command's output. */
const MOST_VALUE = 64 * 1024
const MOST_PRINTED = 1024 * 1024
const MOST_WHY = 2_000

/** Files of one step. */
interface OpenStep {
  step: FlowStep
  recording: RuntimeFile
  log: RuntimeFile
}

/**
 * Writes the events of a real run into `.codex-flow/runtime/`: each step's recording, log and last message. Events are
 * queued and written in order. Disposing of it resolves when all is written.
 */
export class RunRecorder implements SessionRecorder {
  readonly #options: RunRecorderOptions
  readonly #problems = new Set<string>()
  #session = ''
  /** State after the last event; null: none yet. */
  #work: FlowWork | null = null
  #plan: FlowPlan | null = null
  #open: OpenStep | null = null
  /** Files of the steps that work beside the current one, by id. */
  readonly #beside = new Map<string, OpenStep>()
  #queue: Promise<void> = Promise.resolve()
  #waiting = 0
  #isLate = false
  /** Round of the incoming lines, and their converter to `codex exec` form, by the id of a step beside; empty: the current one. */
  readonly #lines = new Map<string, { round: number; lines: ExecJson }>()
  /** For the current step: ends of its commands, and a person's approval. */
  #verified = new Map<string, number>()
  #approved: boolean | undefined
  /** Last messages of the agents of steps, by id. */
  readonly #lastMessages = new Map<string, string>()

  constructor(options: RunRecorderOptions) {
    this.#options = options
  }

  event(event: Recorded, state: SessionState): void {
    const next = workOf(state)
    const before = this.#work ?? next
    if (this.#work === null) this.#do(() => this.#prepare(next, state))
    this.#work = next
    this.#session = state.id
    const told = describeEvent(event, state)
    if (event.type === 'round-started' || event.type === 'step-started') this.#do(() => this.#openStep(before.at, next))
    if (event.type === 'agent-started') this.#do(() => this.#openBeside(event, next))
    const instance = 'instance' in event ? event.instance : undefined
    if (event.type === 'command-ran' && event.exitCode !== null) this.#verified.set(event.name, event.exitCode)
    // The gates of a scope are its step's verification.
    if (event.type === 'gate-ended' && event.scope !== undefined && event.exitCode !== null)
      this.#verified.set(event.gate, event.exitCode)
    if (event.type === 'decision-made' && event.id.startsWith(APPROVE)) this.#approved = event.choice === 'accept'
    if (told !== null) {
      const lines = [told.text, ...told.more.map(line => `  ${line}`)].map(line => line.trimEnd())
      this.#add('log', `${formatTime(Date.parse(event.at))}  ${lines.join('\n')}\n`, instance)
    }
    if (event.type === 'agent-ended') this.#do(() => this.#closeBeside(event.instance))
    if (before.steps === next.steps) return
    const open = new Set(before.options.steps.filter((_, at) => before.steps[at]?.mark === 'to-do').map(({ id }) => id))
    for (const [index, record] of next.steps.entries())
      if (record.mark !== 'to-do' && open.has(next.options.steps[index]?.id ?? '')) this.#finish(index, record, next)
  }

  live(_: LiveEvent): void {}

  /** Records an engine's line, without secrets. `beside`: the id of a step beside the current one. */
  record(round: number, line: string, beside?: string): void {
    const known = this.#lines.get(beside ?? '')
    const of = known?.round === round ? known : { round, lines: new ExecJson() }
    this.#lines.set(beside ?? '', of)
    const lines = of.lines.lines(line)
    const id = beside ?? this.#work?.options.steps[this.#work.at]?.id ?? ''
    for (const message of lines.map(messageIn)) if (message !== null) this.#lastMessages.set(id, message)
    if (lines.length > 0) this.#add('recording', `${lines.join('\n')}\n`, beside)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#do(() => this.#close())
    for (const id of this.#beside.keys()) this.#do(() => this.#closeBeside(id))
    await this.#queue
  }

  /** Report it once: a run does not end for files that only people read. */
  readonly #onProblem = (sentence: string): void => {
    if (this.#problems.has(sentence)) return
    this.#problems.add(sentence)
    this.#options.onProblem(sentence)
  }

  async #prepare({ options, steps }: FlowWork, { id, kept }: Pick<SessionState, 'id' | 'kept'>): Promise<void> {
    const { directory, sessionFolder } = this.#options.records
    try {
      this.#plan = JSON.parse(await openKeptTexts(sessionFolder(id)).read(PLAN_NAME, kept)) as FlowPlan
    } catch {
      // The template already says it.
      return
    }
    const first = beginOf(this.#plan.steps, options.from)
    const open = new Set(options.steps.filter((_, at) => steps[at]?.mark === 'to-do').map(each => each.id))
    const replaced = this.#plan.steps.filter(
      ({ id: step, work }, at) => at >= first && open.has(step) && !(work.kind === 'agent' && work.engine === 'mock'),
    )
    const texts = Array<string>(MOST_ITEMS).fill('')
    const all = replaced.flatMap(step => (step.forEach === undefined ? [step] : stepsOfLoop(step, { texts, count: 0 })))
    await keepEarlier(directory, all, id, this.#onProblem)
  }

  async #openStep(at: number, work: FlowWork): Promise<void> {
    const step = this.#plan === null ? undefined : stepsNow(this.#plan, work)[at]
    if (step === undefined || this.#open?.step.id === step.id) return
    await this.#close()
    this.#open = await this.#filesOf(step, work)
  }

  async #openBeside({ instance: id, door }: RecordedOf<'agent-started'>, work: FlowWork): Promise<void> {
    const step = this.#plan?.steps.find(each => each.id === id)
    if (step !== undefined && door === 'template') this.#beside.set(id, await this.#filesOf(step, work))
  }

  async #closeBeside(id: string): Promise<void> {
    const open = this.#beside.get(id)
    this.#beside.delete(id)
    await open?.recording[Symbol.asyncDispose]()
    await open?.log[Symbol.asyncDispose]()
  }

  /** Opens the files of a step, and writes their first lines. */
  async #filesOf(step: FlowStep, work: FlowWork): Promise<OpenStep> {
    const { directory } = this.#options.records
    const isReplay = step.work.kind === 'agent' && step.work.engine === 'mock'
    const log = await RuntimeFile.log(directory, step, this.#onProblem)
    const recording = await (isReplay
      ? RuntimeFile.none(this.#onProblem)
      : RuntimeFile.recording(directory, step, this.#session, this.#onProblem))
    await log.add(`== ${this.#session}: step ${step.index}/${this.#plan?.steps.length} ${step.id}\n`)
    // Its last line may be incomplete.
    if (recording.goesOn) await recording.add('\n')
    else await recording.add(`${firstLine(await this.#headerOf(step, work))}\n`)
    return { step, recording, log }
  }

  #finish(at: number, record: StepRecord, work: FlowWork): void {
    const [verified, approved] = [this.#verified, this.#approved]
    const id = work.options.steps[at]?.id ?? ''
    const lastMessage = this.#lastMessages.get(id) ?? null
    this.#lastMessages.delete(id)
    this.#verified = new Map()
    this.#approved = undefined
    const title = titleOf(work, at + 1)
    this.#do(async () => {
      await this.#openStep(at, work)
      const open = this.#open
      if (open === null) return
      const { step, recording } = open
      const output = record.output === null ? null : await this.#read(record.output)
      await recording.add(`${lastLine(resultOf(step, record, { title, verified, approved, output, lastMessage }))}\n`)
      const { directory } = this.#options.records
      if (step.work.kind === 'agent' && output !== null) await writeMemory(directory, step, output, this.#onProblem)
      await this.#close()
    })
  }

  async #headerOf(step: FlowStep, flow: FlowWork): Promise<RecordingHeader> {
    const { id, work, item } = step
    const redact = (text: string) => this.#options.redactor.text(text)
    const values = this.#plan?.values ?? {}
    const parts = usedParts(step)
    const recorded = [...new Set(variablesIn(parts))].flatMap(name => {
      const value = Object.hasOwn(values, name) ? values[name] : undefined
      return value?.from === 'run' && value.text.length <= MOST_VALUE ? [[name, redact(value.text)] as const] : []
    })
    const input =
      work.kind === 'agent' ? renderParts(work.input, { values, came: await this.#cameOf(parts, flow) }) : null
    return {
      step: id,
      ...(this.#plan === null ? {} : { workflow: { file: this.#plan.file, name: this.#plan.name } }),
      ...(work.kind === 'agent' && input !== null
        ? { input_sha256: inputHash(redact(work.prompt.text), redact(input)) }
        : {}),
      session: this.#session,
      ...(item === undefined ? {} : { item: redact(item.text) }),
      ...(recorded.length === 0 ? {} : { values: Object.fromEntries(recorded) }),
    }
  }

  /** Returns the results of referenced steps. */
  async #cameOf(parts: readonly TemplatePart[], flow: FlowWork): Promise<Map<string, StepCame>> {
    const came = new Map<string, StepCame>()
    for (const part of parts) {
      if (typeof part === 'string' || !('step' in part) || came.has(part.step)) continue
      const record = recordOf(flow, part.step)
      if (record?.mark === 'skipped') came.set(part.step, 'skipped')
      if (record?.mark !== 'done' && record?.mark !== 'failed') continue
      const output = record.output === null ? '' : await this.#read(record.output)
      const answer = record.answer === null ? null : await this.#read(record.answer)
      came.set(part.step, { output, exit: record.exit, answer: answer === null ? undefined : parsedOrNull(answer) })
    }
    return came
  }

  async #read(output: Output): Promise<string | null> {
    return await openOutputs(this.#options.records.sessionFolder(this.#session)).whole(output)
  }

  async #close(): Promise<void> {
    const open = this.#open
    this.#open = null
    await open?.recording[Symbol.asyncDispose]()
    await open?.log[Symbol.asyncDispose]()
  }

  /** @param id that of a step beside the current one; unknown or undefined: the current one */
  #add(to: 'log' | 'recording', text: string, id?: string): void {
    if (this.#waiting + text.length > MOST_WAITING) {
      if (!this.#isLate) this.#onProblem('The disk is too slow, so lines are missing in .codex-flow/runtime.')
      this.#isLate = true
      return
    }
    this.#waiting += text.length
    this.#do(async () => {
      this.#waiting -= text.length
      await (this.#beside.get(id ?? '') ?? this.#open)?.[to].add(text)
    })
  }

  #do(act: () => Promise<void>): void {
    this.#queue = this.#queue.then(act).catch((error: unknown) => {
      this.#onProblem(`.codex-flow/runtime could not be written: ${messageOf(error)}.`)
    })
  }
}

function variablesIn(parts: readonly TemplatePart[]): string[] {
  return parts.flatMap(part => (typeof part !== 'string' && 'variable' in part ? [part.variable] : []))
}

/** Returns a step's result for the last line of its recording. */
function resultOf(
  { work, verify, approve }: FlowStep,
  { mark, exit, triedAgain, why }: StepRecord,
  came: {
    title: string
    verified: ReadonlyMap<string, number>
    approved: boolean | undefined
    output: string | null
    lastMessage: string | null
  },
): RecordedResult {
  const { output } = came
  const ran = verify.flatMap(run => {
    const code = came.verified.get(run)
    return code === undefined ? [] : [{ run, exit: code }]
  })
  // An agent's output is in its recording.
  const isNew = output !== null && (work.kind === 'command' || output !== came.lastMessage)
  return {
    ...(exit === null ? {} : { exit }),
    ...(triedAgain === 0 ? {} : { tries: triedAgain + 1 }),
    ...(ran.length === 0 ? {} : { verify: ran }),
    ...(approve && came.approved !== undefined ? { approved: came.approved } : {}),
    ...(mark === 'failed' ? { failed: reasonIn(why ?? 'it failed', came.title) } : {}),
    ...(mark === 'skipped' || mark === 'left-out' ? { skipped: reasonIn(why ?? mark, came.title) } : {}),
    ...(isNew && output.length <= MOST_PRINTED ? { output } : {}),
  }
}

/** Returns a note's reason without title and result: a replay adds these itself. */
function reasonIn(why: string, title: string): string {
  const text = why.startsWith(title) ? why.slice(title.length) : why
  const reason = text.replace(/^:? *(?:failed(?: \(\d+ times\))?: |(?:skipped|left out), (?:because )?)?/, '')
  return truncate(reason, MOST_WHY)
}

/** Returns the complete agent message in a line; null: none. */
function messageIn(line: string): string | null {
  if (!line.startsWith('{"type":"item.completed"') || !line.includes('"agent_message"')) return null
  const item = memberOf(parsedOrNull(line), 'item')
  const text = memberOf(item, 'text')
  return memberOf(item, 'type') === 'agent_message' && typeof text === 'string' ? text : null
}
