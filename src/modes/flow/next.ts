import { clipEnd, truncate } from '../../base/text.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import type { SessionOutcome } from '../../core/events/outcome.ts'
import type { Decision } from '../../core/rules/decision.ts'
import type { Output } from '../../core/rules/outputs.ts'
import type { SessionState } from '../../core/state/state.ts'
import type { BesideSpec, InputPart, OwnStep, RoundScope, RoundSpec, Step, Template } from '../../core/template.ts'
import { fitNotices } from '../../session/round-input.ts'
import { formatCount } from '../../tell/words/numbers.ts'
import {
  type AgentWork,
  type Comparison,
  conditionHolds,
  type FlowPlan,
  type FlowStep,
  fieldKey,
  filesOf,
  holds,
  neededSteps,
  type OutputFile,
  pathsOf,
  type Reference,
  stepsOfLoop,
  type TemplatePart,
  usedParts,
} from './file/plan.ts'
import { titleOf } from './view.ts'
import { APPROVE, COLLECTED, type FlowWork, ITEMS, NOTES, type StepRecord, seenBeside, workOf } from './work.ts'

/** Means of a workflow. */
interface FlowParts {
  plan: FlowPlan
  /** Returns the thread of an agent's step. */
  threadFor(step: FlowStep): ThreadSpec | undefined
}

/** For a step without a timeout: as long as a gate without one, ms. */
const COMMAND_MS = 10 * 60_000
/** Most characters of earlier steps' results for an agent. */
const MEMORY_CHARACTERS = 32_000

/**
 * Returns the next step of a workflow, for its first open step. In this order: condition, round or command, verification,
 * approval, file. After all steps comes the claim, for the gates.
 */
export function nextOfFlow(parts: FlowParts): Pick<Template, 'next' | 'ahead'> {
  const { plan, threadFor } = parts
  return {
    next(session) {
      const own = workOf(session)
      const step = stepsNow(plan, own)[own.at]
      return step === undefined ? afterAll(own, session, plan) : nextOfStep(step, own, session, parts)
    },
    ahead(session) {
      const own = workOf(session)
      const steps = stepsNow(plan, own)
      const [step, next] = [steps[own.at], steps[own.at + 1]]
      if (step === undefined || step.forEach !== undefined) return null
      if (session.running === null) return own.now.hasWorked ? null : (threadFor(step) ?? null)
      if (isScope(step)) return threadFor(step) ?? null
      const isSure =
        next !== undefined &&
        next.when === null &&
        step.verify.length === 0 &&
        !step.approve &&
        own.beside?.[next.id] === undefined
      return isSure && next.forEach === undefined ? (threadFor(next) ?? null) : null
    },
  }
}

/** Returns the steps of a plan, with those of the items of the loops that have begun. */
export function stepsNow({ steps }: Pick<FlowPlan, 'steps'>, { items }: Pick<FlowWork, 'items'>): FlowStep[] {
  return steps.flatMap(step => {
    const own = step.forEach === undefined ? undefined : items[step.id]
    return own === undefined ? [step] : stepsOfLoop(step, own)
  })
}

function nextOfStep(step: FlowStep, own: FlowWork, session: SessionState, parts: FlowParts): Step {
  const { now } = own
  const record = own.steps[own.at]
  if (record?.mark === 'failed') return { kind: 'end', outcome: failedEnd(own, [own.at]) }
  if (own.isStopped) return { kind: 'end', outcome: { kind: 'interrupted', by: 'stop' } }
  const end = endBeforeWork(step, own, session, parts)
  if (end !== null) return end
  if (!now.hasWorked) return step.forEach === undefined ? workOn(step, own, session, parts) : nextOfLoop(step, own)
  const line = isScope(step) || step.forEach !== undefined ? undefined : step.verify[now.verified]
  if (line !== undefined) return command(line, step, session)
  if (step.approve && !now.isApproved && step.forEach === undefined)
    return { kind: 'decide', decision: decisionOn(step, own) }
  const write = writeOf(step, own)
  return (
    write ?? note(NOTES.done, `${titleOf(own, own.at + 1)}: done${wordsForItems(step, own)}${wordsForFile(step, own)}`)
  )
}

/** Returns the results of the items of a loop. */
export function itemsOf({ index, forEach }: FlowStep, { options, steps }: FlowWork): StepRecord[] {
  if (forEach === undefined) return []
  return steps.filter((_, at) => options.steps[at]?.index === index && options.steps[at].item !== undefined)
}

/** Looks for the items of a loop; after these, for their outputs. */
function nextOfLoop({ id, index }: FlowStep, { items }: FlowWork): OwnStep {
  if (items[id] === undefined) return { kind: 'look', what: `${ITEMS}${index}` }
  return { kind: 'look', what: `${COLLECTED}${index}`, keep: { file: `loops/${id}.json` } }
}

function wordsForItems({ id }: FlowStep, { items }: FlowWork): string {
  const count = items[id]?.texts.length
  return count === undefined ? '' : `, ${formatCount(count, 'item')}`
}

/** Returns how a step ends without more work; null: work is left. */
function endBeforeWork(step: FlowStep, own: FlowWork, session: SessionState, parts: FlowParts): Step | null {
  const { now } = own
  const title = titleOf(own, own.at + 1)
  if (session.scope !== null && session.scope.name !== step.id) return leave('The step that it belonged to has ended.')
  const failed = itemsOf(step, own).filter(({ mark }) => mark === 'failed').length
  if (failed > 0) return note(NOTES.failed, `${title} failed: ${failed} of ${itemsOf(step, own).length} items failed.`)
  const missing = missingOf(step, own)
  if (missing !== null) return note(NOTES.leftOut, `${title}: left out, because it needs ${missing}`)
  // In a loop, each item has its own condition.
  const condition = step.forEach === undefined ? step.when : null
  const when = condition === null ? true : conditionHolds(condition, each => comparisonHolds(each, own, parts.plan))
  if (when === null) return note(NOTES.failed, `${title} failed: the answer that \`when\` compares is too large.`)
  if (!when) return note(NOTES.skipped, `${title}: skipped, because ${step.when?.text} is false`)
  if (now.failures <= step.retries) return null
  const tries = now.failures === 1 ? '' : ` (${now.failures} times)`
  return note(NOTES.failed, `${title} failed${tries}: ${onOneLine(now.failed ?? '')}`)
}

/** Returns a failure, and its output below it, in one line. */
function onOneLine(text: string): string {
  return joinLines(text.trim().replace(/\.?\s*\n\s*/, ': '))
}

function joinLines(text: string): string {
  return text.trim().replace(/\s*\n\s*/g, ' ')
}

function note(name: string, text: string): OwnStep {
  return { kind: 'note', name, text }
}

function leave(why: string): OwnStep {
  return { kind: 'leave-scope', why }
}

function isScope({ work }: FlowStep): boolean {
  return work.kind === 'agent' && work.engine === 'codemachine'
}

/** Returns in words the needed step without a result; null: none. A condition still knows an exit code. */
function missingOf(step: FlowStep, own: FlowWork): string | null {
  const lost = step.needs?.find(id => /^(failed|left-out)$/.test(recordOf(own, id)?.mark ?? ''))
  if (lost !== undefined) return `step "${lost}"`
  for (const part of usedParts(step)) {
    if (typeof part === 'string' || !('step' in part)) continue
    const record = recordOf(own, part.step)
    const isMissing = record?.mark === 'left-out' || (record?.mark === 'failed' && part.part !== 'exit')
    if (isMissing) return `step "${part.step}"`
  }
  return null
}

/** Returns the result of a step by its id. */
export function recordOf(own: FlowWork, id: string): StepRecord | undefined {
  return own.steps[own.options.steps.findIndex(step => step.id === id)]
}

function comparisonHolds(comparison: Comparison, own: FlowWork, plan: FlowPlan): boolean | null {
  const [left, right] = [comparedText(comparison.left, own, plan), comparedText(comparison.right, own, plan)]
  return left === null || right === null ? null : holds(comparison, left, right)
}

function comparedText(part: TemplatePart, own: FlowWork, { values }: FlowPlan): string | null {
  if (typeof part === 'string') return part
  if ('variable' in part) return values[part.variable]?.text ?? ''
  const record = recordOf(own, part.step)
  if (part.part === 'exit') return record?.exit?.toString() ?? ''
  if (record?.mark !== 'done') return ''
  return record.fields[fieldKey(part.field)] ?? null
}

/** Most characters of a refused claim's reason that a step's failure shows. */
const MOST_REFUSAL = 400

/** Returns the round or command of a step. */
function workOn(step: FlowStep, own: FlowWork, session: SessionState, parts: FlowParts): Step {
  const { work } = step
  if (work.kind === 'command') return command(work.run, step, session)
  const thread = parts.threadFor(step)
  if (thread === undefined) throw new Error(`The step "${step.id}" has no thread.`)
  if (work.engine === 'codemachine' && session.scope !== null && own.now.rounds >= work.rounds) {
    const rounds = work.rounds === 1 ? '1 round' : `${work.rounds} rounds`
    const refusal = session.claim.state === 'refused' ? ` Its last claim was refused: ${session.claim.detail}` : ''
    return leave(`The step is not done after ${rounds}.${truncate(refusal, MOST_REFUSAL)}`)
  }
  const round = roundOf(step, work, thread, own, session, parts.plan)
  const beside = canShare(step) ? besideOf(own, session, parts) : []
  return { kind: 'round', round: { ...round, ...(beside.length === 0 ? {} : { beside }) } }
}

/** Most steps at work, if the file does not say it. */
const USUAL_PARALLEL = 2

/** Returns true for a step of one round that may have others beside it. */
function canShare({ work, approve, timeoutMs, forEach, item }: FlowStep): boolean {
  const isRound = work.kind === 'agent' && work.engine !== 'codemachine' && work.engine !== 'mock'
  return isRound && !approve && timeoutMs === null && forEach === undefined && item === undefined
}

/** Returns the later steps that can work now, beside the current one. */
function besideOf(own: FlowWork, session: SessionState, parts: FlowParts): BesideSpec[] {
  const { plan, threadFor } = parts
  const ready = stepsNow(plan, own).flatMap((step, at) => {
    const seen = seenBeside(own, at)
    const thread = threadFor(step)
    if (at <= own.at || step.work.kind !== 'agent' || thread === undefined || !isReady(step, seen, plan)) return []
    return [{ ...roundOf(step, step.work, thread, seen, session, plan), name: step.id }]
  })
  return ready.slice(0, (plan.maxParallel ?? USUAL_PARALLEL) - 1)
}

/** Returns true if a later step has work left, and all that it needs has ended. */
function isReady(step: FlowStep, own: FlowWork, plan: FlowPlan): boolean {
  const { now } = own
  if (step.needs === undefined || !canShare(step) || now.hasWorked || now.failures > step.retries) return false
  const needed = [...step.needs, ...neededSteps(step)]
  const hasEnded = needed.every(id => (recordOf(own, id)?.mark ?? 'to-do') !== 'to-do')
  if (!hasEnded || recordOf(own, step.id)?.mark !== 'to-do' || missingOf(step, own) !== null) return false
  return step.when === null || conditionHolds(step.when, each => comparisonHolds(each, own, plan)) === true
}

function roundOf(
  step: FlowStep,
  work: AgentWork,
  thread: ThreadSpec,
  own: FlowWork,
  session: SessionState,
  plan: FlowPlan,
): RoundSpec {
  const rendered = work.input.map(part => inputPart(part, own, plan))
  const asked = [...rendered, ...toldOfTry(own)]
  const isLong = work.engine === 'codemachine'
  return {
    thread: atPace(thread, own),
    part: isLong ? 'work' : 'step',
    input: [...(isLong ? [GO_ON, ...toldOfTry(own)] : isEmpty(asked) ? [DO_IT] : asked), ...notices(session, isLong)],
    keep: step.id,
    ...materials(own),
    ...(step.timeoutMs === null ? {} : { timeoutMs: step.timeoutMs }),
    ...(work.schema === null ? {} : { answer: { name: nameOfTry(step.id, own.steps[own.at]), schema: work.schema } }),
    // A workflow asks only for the text in its step.
    ...(isLong
      ? { scope: scopeOf(step, isEmpty(rendered) ? [step.description ?? DO_IT] : rendered) }
      : { tellsGoal: true }),
  }
}

/** Sets the person's pace for a replay. */
function atPace(thread: ThreadSpec, { options: { pace } }: FlowWork): ThreadSpec {
  const { recording } = thread
  if (recording === undefined) return thread
  return { ...thread, recording: { ...recording, pace: pace === 0 ? 'at-once' : { seconds: pace } } }
}

/** Input of a round of a step that is worked on until it is done. */
const GO_ON = 'Continue with the goal. Read MAIN.md and tasks.json first, then the state of the work itself.'
/** Input of a step without its own. */
const DO_IT = 'Do what your instructions say.'

function isEmpty(parts: readonly InputPart[]): boolean {
  return parts.every(part => typeof part === 'string' && part.trim() === '')
}

/** Returns the answer's name: refusals in a row count per try. */
function nameOfTry(id: string, record: StepRecord | undefined): string {
  const again = record?.triedAgain ?? 0
  return again === 0 ? id : `${id}~${again + 1}`
}

function inputPart(part: TemplatePart, own: FlowWork, { values }: FlowPlan): InputPart {
  if (typeof part === 'string') return part
  if ('variable' in part) return values[part.variable]?.text ?? ''
  return partOfStep(part, recordOf(own, part.step))
}

function partOfStep({ part, field }: Extract<Reference, { step: string }>, record: StepRecord | undefined): InputPart {
  if (part === 'exit') return record?.exit?.toString() ?? ''
  const output = (part === 'answer' ? record?.answer : record?.output) ?? null
  if (output === null) return ''
  return field.length === 0 ? { output } : { output, member: field }
}

/** Returns notes on the last try for the next one. */
function toldOfTry({ now }: FlowWork): string[] {
  return [
    ...(now.failed === null ? [] : [`\n\nThe try before this one failed:\n${now.failed}`]),
    ...(now.wanted === null
      ? []
      : [`\n\nA person has looked at what an earlier try came to, and wants it to be done again:\n${now.wanted}`]),
  ]
}

const MOST_NOTICES = 100_000

/** Returns notices for a round: only a person's words for a step of one round, all of them for a step of many. */
function notices({ notices }: SessionState, isLong: boolean): string[] {
  const told = isLong ? notices : notices.filter(({ from }) => from === 'person')
  return told.length === 0 ? [] : [`\n\nBefore anything else:\n${fitNotices(told, MOST_NOTICES).join('\n')}`]
}

/** Returns the results of earlier agents, newest first. */
function materials(own: FlowWork): Pick<RoundSpec, 'materials' | 'materialsMost'> {
  const earlier = own.options.steps.slice(0, own.at).flatMap(({ engine, item }, at) => {
    const output = own.steps[at]?.output ?? null
    const isOther = engine === 'command' || item !== undefined
    return isOther || output === null ? [] : [{ name: titleOf(own, at + 1), output }]
  })
  return earlier.length === 0 ? {} : { materials: earlier.reverse(), materialsMost: MEMORY_CHARACTERS }
}

function scopeOf({ id, verify, timeoutMs }: FlowStep, goal: readonly InputPart[]): RoundScope {
  const gates = [...new Set(verify)].map(run => ({ name: run, run, timeoutMs: timeoutMs ?? COMMAND_MS }))
  return { name: id, goal, gates }
}

function command(run: string, { timeoutMs, readOnly }: FlowStep, { network }: SessionState): OwnStep {
  const timeout = timeoutMs ?? COMMAND_MS
  return { kind: 'command', name: run, run, timeoutMs: timeout, network, ...(readOnly ? { readOnly: true } : {}) }
}

function decisionOn(step: FlowStep, own: FlowWork): Decision {
  return {
    id: `${APPROVE}${step.index}${step.item === undefined ? '' : `-${own.at}`}`,
    title: `${titleOf(own, own.at + 1)}. Continue with this output?`,
    body: own.now.words,
    choices: [
      { id: 'accept', label: 'Continue with it' },
      { id: 'again', label: 'Do it again', text: 'must' },
      { id: 'stop', label: 'Stop', hint: 'codemachine resume asks again' },
    ],
    default: null,
  }
}

/** Returns the name of the look at a file that a step appends to; `at`: its index among these. */
export function lookOf({ index }: Pick<FlowStep, 'index'>, at = 0): string {
  return `file-of-step-${index}${at === 0 ? '' : `-${at + 1}`}`
}

/** Returns the step that writes its output to its file; null: written, or not wanted. */
function writeOf(step: FlowStep, own: FlowWork): OwnStep | null {
  const { now, options } = own
  if (now.hasWritten) return null
  if (step.work.kind === 'agent' && step.work.engine === 'mock' && !options.writes) return null
  const output = now.answer ?? now.output
  // Nothing is appended to a file.
  const files = filesOf(step).filter(({ append }) => output !== null || !append)
  if (files.length === 0) return null
  const content = ({ field }: OutputFile) =>
    output === null ? { text: '' } : { output, ...(field && { member: field }) }
  return writeOrLook(
    step,
    files.map(file => ({ ...file, content: content(file) })),
    own,
  )
}

/** Returns the step that writes all files, once each of those to append to has been looked at. */
export function writeOrLook(
  step: FlowStep,
  files: readonly { path: string; append: boolean; content: { text: string } | { output: Output } }[],
  { now: { behind } }: FlowWork,
): OwnStep {
  const appended = files.filter(({ append }) => append)
  if (behind.length < appended.length) return { kind: 'look', what: lookOf(step, behind.length) }
  return {
    kind: 'write',
    files: files.map(file => {
      const { path, content } = file
      const before = behind[appended.indexOf(file)]
      return { path, ...content, ...(before && { append: { behind: before === 'gone' ? null : before } }) }
    }),
  }
}

/** Most characters of an output to show with `--verbose`. */
const MOST_SHOWN = 200

function wordsForFile(step: FlowStep, { now, options }: FlowWork): string {
  const file = now.hasWritten ? `, ${pathsOf(step)}` : ''
  const head = options.verbose ? joinLines((now.answer ?? now.output)?.head ?? '') : ''
  return head === '' ? file : `${file}: ${truncate(head, MOST_SHOWN)}`
}

/** Returns the step after all others: the gates decide, if nothing failed and nothing was replayed. */
function afterAll(own: FlowWork, session: SessionState, plan: FlowPlan): Step {
  const failed = own.steps.flatMap(({ mark }, at) =>
    mark === 'failed' && own.options.steps[at]?.continueOnError !== true ? [at] : [],
  )
  if (failed.length > 0) return { kind: 'end', outcome: failedEnd(own, failed) }
  if (session.replayed) return { kind: 'end', outcome: { kind: 'replayed' } }
  const { claim } = session
  if (claim.state === 'accepted') return { kind: 'end', outcome: { kind: 'done', verified: claim.verified } }
  if (own.refused === null) return { kind: 'claim' }
  const all = plan.steps.length === 1 ? 'The step has ended' : `All ${plan.steps.length} steps have ended`
  return { kind: 'end', outcome: needsPerson(`${all}, but the workflow is not done: ${own.refused}`) }
}

function failedEnd(own: FlowWork, failed: readonly number[]): SessionOutcome {
  const [first = 0] = failed
  const why = own.steps[first]?.why ?? ''
  const others = failed.length - 1
  return needsPerson(
    others === 0 ? why : `${why} ${others === 1 ? 'One more step' : `${others} more steps`} failed, too.`,
  )
}

const MOST_REASON = 2_000

function needsPerson(reason: string): SessionOutcome {
  return { kind: 'needs-person', reason: clipEnd(reason, MOST_REASON), hint: null, goalOnly: true }
}
