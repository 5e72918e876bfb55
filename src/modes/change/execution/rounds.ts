import { clipEnd } from '../../../base/text.ts'
import type { ThreadSpec } from '../../../core/engine.ts'
import { type JsonSchema, refusedAnswer } from '../../../core/rules/answer.ts'
import type { Output } from '../../../core/rules/outputs.ts'
import { personsWordsOf, wordsInInput } from '../../../core/state/persons-words.ts'
import type { SessionState } from '../../../core/state/state.ts'
import type { RoundSpec, RoundStep } from '../../../core/template.ts'
import { fenced, fitNotices, joined } from '../../../session/round-input.ts'
import type { Plan } from '../plan.ts'
import { TASKS_ANSWER, type TaskSpec } from '../tasks.ts'
import type { ChangeParts, ChangeRole, ChangeWork, Responsible, TaskRecord } from '../work.ts'
import { acceptedPlan, DECOMPOSITION, projectCommands, statusBefore } from './before.ts'
import { giverOf, MOST_TASKS, outputOf, taskInHand } from './queue.ts'

type Material = NonNullable<RoundSpec['materials']>[number]

/** A round with gathered materials below its other input. */
interface RoundAsked {
  part: 'decompose' | 'gather' | 'act' | 'fix' | 'summary'
  thread: ThreadSpec
  input: string
  materials: readonly Material[]
  /** Most characters of all materials; null: as many as fit into a turn. */
  room: number | null
  answer?: NonNullable<RoundSpec['answer']>
  keep?: string
}

function roundStep(own: ChangeWork, asked: RoundAsked): RoundStep {
  const { part, thread, input, room, answer, keep } = asked
  const context = own.context === null ? [] : [{ name: 'what is known of the project', output: own.context.output }]
  const materials = [...asked.materials, ...context]
  return {
    kind: 'round',
    round: {
      thread,
      part,
      input,
      // Tasks follow the accepted plan.
      tellsGoal: true,
      ...(materials.length === 0 ? {} : { materials }),
      ...(room === null ? {} : { materialsMost: room }),
      ...(answer === undefined ? {} : { answer }),
      ...(keep === undefined ? {} : { keep }),
    },
  }
}

// Cut the plan into tasks.

/** Returns the round that cuts the accepted plan into tasks. Pure. */
export function decomposeRound(own: ChangeWork, session: SessionState, parts: ChangeParts): RoundStep {
  const { execution } = own
  const name = ofVersion(DECOMPOSITION, own)
  // The round hears of schema errors anyway.
  const isTold = refusedAnswer(session, name) !== null
  const problem =
    execution.problem === null || isTold
      ? null
      : `Your last list of tasks cannot be carried out:\n${execution.problem}\nFix that, and give the whole list again.`
  const input = joined([
    'Cut the accepted plan into tasks.',
    `The request, in the words of the person:\n\n${clipEnd(own.request, MOST_REQUEST)}`,
    `The accepted plan:\n\n${fenced(planInFull(acceptedPlan(own)))}`,
    remark(own),
    commandsKnown(own, session),
    alreadyDone(own),
    `At most ${MOST_TASKS - execution.made} tasks can be made.`,
    problem,
    saidByPerson(session),
  ])
  const materials = doneOutputs(own)
  const answer = { ...TASKS_ANSWER, name }
  const thread = parts.thread('decomposer', 'planner')
  return roundStep(own, { part: 'decompose', thread, input, materials, room: null, answer })
}

const MOST_REQUEST = 30_000

/** Name under which refusals count: another version of the plan has other tasks with the same ids. */
function ofVersion(name: string, { planning: { accepted } }: ChangeWork): string {
  const version = accepted?.version ?? 1
  return version === 1 ? name : `${name}~${version}`
}

function planInFull(plan: Plan | null): string {
  return plan === null ? '' : JSON.stringify(plan, null, 2)
}

function commandsKnown(own: ChangeWork, session: SessionState): string {
  const known = projectCommands(own, session)
  if (known.length === 0)
    return 'The project has no test or build command. Verify a task with a command that looks at what it promised, such as `node -e` or `grep`.'
  const lines = known.map(run => {
    const status = statusBefore(own, session, run)
    return `- \`${run}\`${status === 'failed' ? ' (it failed before anything was changed)' : ''}`
  })
  return `Commands of the project, which can verify tasks:\n${lines.join('\n')}`
}

function alreadyDone({ execution }: ChangeWork): string | null {
  const done = execution.tasks.filter(({ status }) => status === 'COMPLETED')
  if (done.length === 0) return execution.made === 0 ? null : BEGUN
  const lines = done.map(({ spec, changed }) => {
    const outputs = Object.keys(spec.outputs)
    const gives = outputs.length === 0 ? '' : `; gives ${outputs.map(name => `${spec.id}.${name}`).join(', ')}`
    const files = changed.length === 0 ? '' : `; changed ${changed.slice(0, MOST_FILES).join(', ')}`
    return `- ${spec.id} ${spec.type}: ${clipEnd(spec.description, MOST_LINE)}${gives}${files}`
  })
  return `These tasks are done, and stay. Do not repeat them or their ids. Later tasks may use their outputs:\n${fenced(lines.join('\n'))}\n\n${BEGUN}`
}

const BEGUN =
  'Other tasks may have begun and are now dropped. Their changes are still there, so look at the current files.'

const MOST_FILES = 20
const MOST_LINE = 400

function doneOutputs({ execution }: ChangeWork): readonly Material[] {
  return execution.tasks.flatMap(({ spec, status, outputs }) =>
    status === 'COMPLETED' && outputs !== null ? [materialOf(spec, outputs, Object.keys(spec.outputs))] : [],
  )
}

function materialOf({ id }: TaskSpec, output: Output, names: readonly string[]): Material {
  return { name: `what ${id} gives: ${names.join(', ')}`, output }
}

// A task for a round.

/** Who does the current task, its input, and a note for the person. */
export interface TaskPlanned {
  by: Responsible
  /** A sentence for the journal if the planner's model does it, or its inputs are shortened; null: neither. */
  note: string | null
  step: RoundStep
}

/** Returns the round of the current task. Throws if there is none. Pure. */
export function taskRound(own: ChangeWork, session: SessionState, parts: ChangeParts): TaskPlanned {
  const record = taskInHand(own.execution)
  if (record === null) throw new Error('There is no task in hand.')
  const { spec } = record
  const isAction = spec.type === 'ACTION'
  const input = taskInput(own, record, session)
  const materials = inputsOf(own, record)
  const fit = fitOf(own, session, { role: isAction ? 'executor' : 'gatherer', input, materials, parts })
  const by = own.execution.byPlanner === null ? fit.by : 'planner'
  const step = roundStep(own, {
    part: isAction ? 'act' : 'gather',
    thread: parts.thread(isAction ? 'executor' : 'gatherer', by),
    input,
    materials,
    room: by === 'planner' ? null : fit.room,
    answer: { name: ofVersion(spec.id, own), schema: outputsSchema(spec) },
  })
  const why = own.execution.byPlanner ?? fit.why
  return { by, note: why === null ? null : noteOf(spec, by, why), step }
}

function noteOf({ id }: TaskSpec, by: Responsible, why: string): string {
  return by === 'planner'
    ? `${id} goes to the planner's model: ${why}.`
    : `${id} gets the results of earlier tasks shortened: ${why}.`
}

/** Schema of a task's answer: exactly the outputs that it promised. */
function outputsSchema({ outputs }: TaskSpec): JsonSchema {
  const names = Object.keys(outputs)
  const properties = Object.fromEntries(names.map(name => [name, { type: 'string', description: outputs[name] ?? '' }]))
  const inner = { type: 'object', properties, required: names, additionalProperties: false }
  return { type: 'object', properties: { outputs: inner }, required: ['outputs'], additionalProperties: false }
}

function taskInput(own: ChangeWork, record: TaskRecord, session: SessionState): string {
  const { tasks } = own.execution
  const { spec } = record
  const promised = Object.entries(spec.outputs).map(([name, what]) => `- ${name}: ${what}`)
  const gives =
    promised.length === 0
      ? 'End with the JSON object `{ "outputs": {} }`.'
      : `End with one JSON object, \`{ "outputs": { … } }\`, with exactly these names, each a text:\n${promised.join('\n')}`
  const checks =
    spec.type === 'ACTION'
      ? tasks.find(({ spec: { type } }, at) => at > tasks.indexOf(record) && type === 'VERIFICATION')
      : null
  return joined([
    `Task ${spec.id} (${tasks.indexOf(record) + 1} of ${tasks.length}), ${spec.type}:\n\n${spec.description}`,
    spec.files.length === 0 ? null : `Files: ${spec.files.join(', ')}`,
    inputsNamed(record),
    gives,
    checks?.spec.run == null ? null : `This is run after it: \`${checks.spec.run}\``,
    planInShort(own),
    remark(own),
    record.rounds === 0 ? null : 'An earlier round already worked on this task. First look at its changes.',
    spec.type === 'ACTION' ? notices(session) : saidByPerson(session),
  ])
}

function inputsNamed({ spec }: TaskRecord): string | null {
  const inputs = Object.entries(spec.inputs)
  if (inputs.length === 0) return null
  return `It builds on what earlier tasks gave, which stands below:\n${inputs.map(([name, from]) => `- ${name}: ${from}`).join('\n')}`
}

const SHORT_DESCRIPTION = 2_000
const SHORT_FILES = 2_000

function planInShort(own: ChangeWork): string | null {
  const plan = acceptedPlan(own)
  if (plan === null) return null
  const files = plan.files.map(({ path, change }) => `- ${path}: ${clipEnd(change, MOST_LINE)}`).join('\n')
  const text = `${clipEnd(plan.description, SHORT_DESCRIPTION)}\n\n${clipEnd(files, SHORT_FILES)}`
  return `The plan that it is a part of, in short; do your task and nothing else of it:\n\n${fenced(text.trim())}`
}

function remark({ planning: { accepted } }: ChangeWork): string | null {
  const said = accepted?.remark ?? null
  return said === null ? null : `The person accepted the plan with this remark. It counts like the plan:\n\n${said}`
}

/** Returns the answers of the tasks that give its inputs, each once. */
function inputsOf({ execution: { tasks } }: ChangeWork, { spec }: TaskRecord): readonly Material[] {
  const names = new Map<TaskRecord, string[]>()
  for (const from of Object.values(spec.inputs)) {
    const giver = giverOf(from, tasks)
    if (giver !== undefined) names.set(giver, [...(names.get(giver) ?? []), outputOf(from, giver.spec)])
  }
  return [...names].flatMap(([giver, outputs]) =>
    giver.outputs === null ? [] : [materialOf(giver.spec, giver.outputs, outputs)],
  )
}

// The context window of a small model.

/** Fewest characters per token: a text that fits by this fits by the tokenizers of code and prose. */
const TOKEN_CHARACTERS = 3
/**
 * Tokens that codex itself sends with each turn, instructions and tools: 38,500 characters of prose and JSON with codex
 * 0.169.
 */
const CODEX_TOKENS = 10_000
/** Largest part of the window to fill before the work begins. */
const MOST_FULL = 0.75
/** Inputs cut to less than this are useless. */
const LEAST_INPUT_CHARACTERS = 2_000

/** Long enough for the path of the file with a person's words, if the input has no space for them. */
const ANY_FILE = '.'.repeat(100)

/** Who can do this task, and the space for its inputs. */
interface Fit {
  by: Responsible
  room: number | null
  /** Why not the executor, or not with its complete inputs; null: it can as it is. */
  why: string | null
}

function fitOf(
  { options: { executor } }: ChangeWork,
  session: SessionState,
  asked: { role: ChangeRole; input: string; materials: readonly Material[]; parts: ChangeParts },
): Fit {
  const window = executor?.contextWindow ?? null
  if (window === null) return { by: 'executor', room: null, why: null }
  const { developerInstructions } = asked.parts.thread(asked.role, 'executor')
  const said = wordsInInput(personsWordsOf(session), ANY_FILE, { tellsGoal: true })
  const told = developerInstructions.length + said.length + asked.input.length
  const room = Math.floor((window * MOST_FULL - CODEX_TOKENS) * TOKEN_CHARACTERS) - told
  const need = asked.materials.reduce((sum, { output }) => sum + output.bytes, 0)
  if (room >= need) return { by: 'executor', room, why: null }
  const why = `its input does not fit into the context of ${window} tokens`
  if (room >= Math.min(need, LEAST_INPUT_CHARACTERS)) return { by: 'executor', room, why }
  return { by: 'planner', room: null, why }
}

// Fixes.

/** Returns the round that fixes a failure. Throws if there is none. Pure. */
export function fixRound(own: ChangeWork, session: SessionState, parts: ChangeParts): TaskPlanned {
  const { execution, options } = own
  const { fixing } = execution
  if (fixing === null) throw new Error('Nothing is fixed.')
  const record = taskInHand(execution)
  const input = joined([
    `A check failed after work on a plan. Find the cause, and fix it. This is attempt ${fixing.attempt} of ${options.fixAttempts}.`,
    record === null ? claimRefused(own) : verificationFailed(own, record, session),
    changedSince(own, record),
    fixing.earlier.length === 0
      ? null
      : `What earlier attempts did, without success:\n${fenced(fixing.earlier.join('\n'))}`,
    planInShort(own),
    remark(own),
    notices(session),
  ])
  const fit = fitOf(own, session, { role: 'fixer', input, materials: [], parts })
  const by = fixing.by === 'planner' ? 'planner' : fit.by
  const thread = parts.thread('fixer', by)
  const room = by === 'planner' ? null : fit.room
  const step = roundStep(own, { part: 'fix', thread, input, materials: [], room })
  return { by, note: fit.by === 'planner' ? `The planner's model fixes it: ${fit.why}.` : null, step }
}

function claimRefused({ execution: { claim } }: ChangeWork): string {
  return `All tasks are done, but codemachine did not accept the claim that everything is done:\n${fenced(clipEnd(claim.refused ?? '', MOST_REFUSAL))}`
}

const MOST_REFUSAL = 12_000

function verificationFailed(own: ChangeWork, { spec, results }: TaskRecord, session: SessionState): string {
  const run = spec.run ?? ''
  const last = results.at(-1)
  const before = statusBefore(own, session, run) === 'failed' ? ' It failed before anything was changed, too.' : ''
  return joined([
    `${spec.id} verifies this:\n${fenced(spec.description)}`,
    `The command: \`${run}\``,
    `It ${howItEnded(last)}${last?.status === 'failed' ? ', twice in a row' : ''}.${before}`,
    `The end of what it printed:\n${fenced(last?.tail ?? '')}`,
  ])
}

/** Describes how a command failed, as the end of a sentence. */
export function howItEnded(result: { status: string; exitCode: number | null } | undefined): string {
  switch (result?.status) {
    case undefined:
      return 'did not run'
    case 'passed':
      return 'passed'
    case 'flaky':
      return 'failed, then passed on the same files'
    case 'timed-out':
      return 'ran into its timeout'
    case 'not-started':
      return 'could not be started'
    default:
      return result?.exitCode == null ? 'failed' : `ended with exit code ${result.exitCode}`
  }
}

/** `once`, `3 times`. */
export function formatTimes(count: number): string {
  return count === 1 ? 'once' : `${count} times`
}

/** Lists the files changed since the same command last passed, or since the work began. */
function changedSince({ execution: { tasks, claim } }: ChangeWork, record: TaskRecord | null): string {
  const end = record === null ? tasks.length : tasks.indexOf(record) + 1
  const passed = tasks.findLastIndex(
    ({ spec, status }, at) =>
      at < end - 1 && status === 'COMPLETED' && spec.run !== null && spec.run === record?.spec.run,
  )
  const changed = [
    ...tasks.slice(passed + 1, end).flatMap(each => each.changed),
    ...(record === null ? claim.work.changed : []),
  ]
  const files = [...new Set(changed)]
  const since = passed === -1 ? 'since the work began' : `since ${tasks[passed]?.spec.id}, when it passed last`
  if (files.length === 0) return `No file was changed ${since}.`
  const more = files.length - MOST_NAMED
  const list = files.slice(0, MOST_NAMED).map(path => `- ${path}`)
  return `Files that were changed ${since}:\n${[...list, ...(more > 0 ? [`- and ${more} more`] : [])].join('\n')}`
}

const MOST_NAMED = 60

// The summary.

/** Returns the round that writes the summary for the person; `facts`: codemachine's own part. Pure. */
export function summaryRound(own: ChangeWork, facts: string, parts: ChangeParts): RoundStep {
  const input = joined([
    'Write what the person reads first when they come back to this change.',
    `The request, in their words:\n\n${clipEnd(own.request, MOST_REQUEST)}`,
    `What codemachine knows of it, and shows above your words:\n\n${fenced(clipEnd(facts, MOST_FACTS))}`,
  ])
  const thread = parts.thread('summary', 'planner')
  return roundStep(own, { part: 'summary', thread, input, materials: [], room: null, keep: 'summary' })
}

const MOST_FACTS = 60_000

// Words for all rounds.

const MOST_NOTICES = 20_000

function saidByPerson(session: SessionState): string | null {
  return told(session.notices.filter(({ from }) => from === 'person'))
}

/** Returns notices for a round that changes files; reasons of refused claims are elsewhere. */
function notices(session: SessionState): string | null {
  return told(
    session.notices.filter(({ from, isOfProof }) => from === 'person' || (from === 'codemachine' && !isOfProof)),
  )
}

function told(notices: SessionState['notices']): string | null {
  return notices.length === 0 ? null : `Before anything else:\n${fitNotices(notices, MOST_NOTICES).join('\n')}`
}
