import { clipEnd } from '../../../base/text.ts'
import type { EventOf, SessionEvent } from '../../../core/events/events.ts'
import { MOST_ANSWER_REFUSALS, refusedAnswerNote } from '../../../core/rules/answer.ts'
import { followedMaterial } from '../../../core/rules/outputs.ts'
import type { ContextFacts } from '../../../core/shapes/context.ts'
import type { SessionState } from '../../../core/state/state.ts'
import type { RoundSpec, Step } from '../../../core/template.ts'
import { withNotices } from '../../../session/round-input.ts'
import { projectCommands } from '../execution/before.ts'
import { hashOfPlan, PLAN_ANSWER, type Plan, readPlan } from '../plan.ts'
import { planMarkdown, planText, readPlanText } from '../plan-text.ts'
import type { ChangeParts, ChangeState, ChangeWork, FileHashes, PlanningWork, PlanVersion, Process } from '../work.ts'

/** Looks of a change until its plan is accepted. */
export const LOOKS = {
  /** Gathers facts about the project. */
  context: 'context',
  /** Hashes the files that the plan names: a new draft's, else the shown version's. */
  files: 'plan-files',
  /** Reads the file of the shown version. */
  edited: 'plan-edited',
} as const

/** Most versions of one plan. */
export const MOST_VERSIONS = 10

/** Planning state before anything was done. */
export const NO_PLANNING: PlanningWork = {
  versions: [],
  filed: 0,
  draft: null,
  problem: null,
  refusals: 0,
  tries: 0,
  isRefused: false,
  checked: [],
  feedback: null,
  wanted: null,
  isGo: false,
  reading: null,
  unread: null,
  accepting: null,
  changedFiles: null,
  toldFiles: null,
  accepted: null,
  addsGates: false,
  isStopped: false,
}

/** Does nothing before there is a request, nor after the end. */
export const waitingForInput: ChangeState = {
  process({ outcome, execution: { tasks } }, { claim }) {
    // If the session was killed just before its end, the accepted files may have changed.
    const isOver = outcome !== null && (outcome.kind !== 'done' || claim.state === 'accepted')
    if (isOver) return { step: { kind: 'end', outcome } }
    return tasks.length > 0
      ? { to: 'EXECUTING_TASKS.queue', why: 'failed tasks are tried again in the resumed session' }
      : { to: 'GATHERING_CONTEXT', why: 'there is a request' }
  },
  ahead: ({ outcome, execution: { tasks } }, _, parts) =>
    outcome === null && tasks.length === 0 ? plannerOf(parts) : null,
}

/** Codemachine itself looks at the project. */
export const gatheringContext: ChangeState = {
  process({ context }) {
    if (context !== null) return { to: 'GENERATING_PLAN', why: 'the facts about the project are gathered' }
    return { step: { kind: 'look', what: LOOKS.context, keep: { file: 'context.md' } } }
  },
  fold(own, event) {
    if (event.type !== 'looked' || event.what !== LOOKS.context || event.output === undefined) return own
    return { ...own, context: { output: event.output, facts: factsOf(event.result) } }
  },
  ahead: (_own, _session, parts) => plannerOf(parts),
}

/** Makes the first version of the plan. */
export const generatingPlan: ChangeState = {
  enter: own => withPlanning(own, beginAgain(own.planning)),
  exit: withoutDraft,
  fold: foldMaking,
  process(own, session, parts) {
    const making = nextInMaking(own, session)
    if (making !== null) return making
    return own.planning.versions.length === 0
      ? { step: planRound(own, session, parts) }
      : { to: 'REVIEWING_PLAN.user-review', why: 'there is a plan' }
  },
  ahead: aheadInMaking,
}

/** Returns a change with some planning fields replaced. */
export function withPlanning(own: ChangeWork, more: Partial<PlanningWork>): ChangeWork {
  return { ...own, planning: { ...own.planning, ...more } }
}

/** Drops an unjudged draft when its state ends: a version that judged while folding refused it. */
export function withoutDraft(own: ChangeWork): ChangeWork {
  const { draft, wanted } = own.planning
  return draft?.isUnjudged === true && wanted === null ? withPlanning(own, { draft: null }) : own
}

/** Returns the shown or running version. Throws before there is one. */
export function lastVersion({ versions }: PlanningWork): PlanVersion {
  const last = versions.at(-1)
  if (last === undefined) throw new Error('There is no version of the plan yet.')
  return last
}

/** Handles a person's request for another plan, as an answer or an interruption. */
export function withWanted(own: ChangeWork, { text, goesOn }: EventOf<'replan-asked'>): ChangeWork {
  const { wanted, feedback, versions, reading } = own.planning
  const isAsked = own.state === 'REVIEWING_PLAN.manual-review' && reading === null
  const isAnswer = isAsked && goesOn === undefined && versions.length < MOST_VERSIONS
  if (isAnswer) return withPlanning(own, { feedback: joined(feedback, text) })
  return withPlanning(own, { wanted: { text: joined(wanted?.text ?? null, text), isGo: goesOn ?? false } })
}

/**
 * Returns the planning state for the next planning round: an interrupting person's words become its feedback. After an
 * unusable answer the round gets the same input again.
 */
export function beginAgain(planning: PlanningWork): Partial<PlanningWork> {
  const { wanted, isRefused, feedback, accepted, versions } = planning
  if (wanted === null) return isRefused ? { isRefused: false } : { problem: null, refusals: 0 }
  const isEdited = planning.reading !== null || planning.draft?.author === 'person'
  return {
    isRefused: false,
    problem: null,
    refusals: 0,
    draft: null,
    reading: null,
    // Do not rewrite its file with the version's text.
    ...(isEdited ? { unread: fileOf(lastVersion(planning)), filed: versions.length } : {}),
    accepting: null,
    changedFiles: null,
    toldFiles: null,
    accepted: null,
    feedback: joined(feedback ?? remarkBefore(accepted), wanted.text),
    isGo: wanted.isGo,
    wanted: null,
  }
}

/** Returns a person's remark at the earlier acceptance, which still applies; null: none. */
function remarkBefore(accepted: PlanningWork['accepted']): string | null {
  const remark = accepted?.remark ?? null
  return remark === null ? null : `The version before was accepted with this remark, which still counts: ${remark}`
}

function joined(before: string | null, text: string): string {
  return before === null ? text : `${before}\n\n${text}`
}

/** Returns the next step until a new plan is a version in its file; null: no plan, or done. */
export function nextInMaking(own: ChangeWork, session: SessionState): Process | null {
  const { state, planning } = own
  const { isRefused, refusals, problem, draft, versions, filed, reading, unread } = planning
  if (unread !== null) return { step: { kind: 'note', name: UNREAD, text: wordsForUnread(unread) } }
  if (isRefused && refusals >= MOST_ANSWER_REFUSALS) return { step: noPlan(problem) }
  if (isRefused) return { to: state, why: `the plan cannot be used: ${firstLine(problem)}` }
  const isUnread = draft?.isUnjudged === true && draft.author === 'person'
  if (draft?.isUnjudged === true && !isUnread) return { to: state, why: NOT_JUDGED }
  const check = nextCheck(own, session)
  if (check !== null) return { step: runCheck(check) }
  if (draft !== null && !isUnread) return { step: { kind: 'look', what: LOOKS.files } }
  if (isUnread || reading === 'edited') return { step: { kind: 'look', what: LOOKS.edited } }
  const unfiled = versions[filed]
  return unfiled === undefined ? null : { step: keepVersion(unfiled) }
}

const UNREAD = 'edit-not-read'

function wordsForUnread(file: string): string {
  return `Your edit became no version, because somebody asked for another plan meanwhile. It is kept in ${file}.`
}

const NOT_JUDGED = 'the journal has no verdict on the last plan, so the planner makes it again'

function keepVersion(version: PlanVersion): Step {
  return { kind: 'keep', file: fileOf(version), text: planText(version) }
}

/** Returns the file of a version, in the session's folder. */
export function fileOf({ version }: Pick<PlanVersion, 'version'>): string {
  return `plan/v${version}.md`
}

/** A slower check, in ms, does not count as passing before the work. */
const CHECK_MS = 30_000

/** Nobody has accepted the plan yet, so its commands can write nothing. */
function runCheck(run: string): Step {
  return { kind: 'command', name: run, run, timeoutMs: CHECK_MS, network: false, readOnly: true }
}

/**
 * Returns the next check of the planner's draft that must fail before the work; null: none. The project's commands may pass
 * at any time, and all others once there are tasks.
 */
function nextCheck(own: ChangeWork, session: SessionState): string | null {
  const { draft, checked } = own.planning
  if (draft?.author !== 'planner' || draft.isUnjudged || own.execution.made > 0) return null
  const known = [...projectCommands(own, session), ...checked.map(({ run }) => run)]
  return draft.plan.verification.find(({ run }) => !known.includes(run))?.run ?? null
}

/** Returns a fully checked draft once for passing checks. If the planner names one again, it stays. */
function afterCheck(own: ChangeWork, { status }: EventOf<'command-ran'>, session: SessionState): ChangeWork {
  const run = nextCheck(own, session)
  const { draft, checked } = own.planning
  if (run === null || draft === null) return own
  const ran = [...checked, { run, came: status === 'passed' ? ('passed' as const) : ('failed' as const) }]
  const after = withPlanning(own, { checked: ran })
  const isOfDraft = (each: string) => draft.plan.verification.some(({ run }) => run === each)
  const passed = ran.filter(({ run, came }) => came === 'passed' && isOfDraft(run))
  if (passed.length === 0 || nextCheck(after, session) !== null) return after
  const told = ran.map(each => (passed.includes(each) ? { ...each, came: 'told' as const } : each))
  const lines = passed.map(({ run }) => `- \`${run}\` ${PASSES_ALREADY}`)
  const problem = `${lines.join('\n')}\n\nThe rest of the plan can stay:\n\n${planMarkdown(draft.plan)}`
  return refused(withPlanning(after, { checked: told, draft: null }), problem)
}

const PASSES_ALREADY =
  'passes already, before anything is changed, so that it shows nothing of the change. Name one that fails until the change is made, or name it again if it is to guard what works.'

function noPlan(problem: string | null): Step {
  const times = `${MOST_ANSWER_REFUSALS} times in a row`
  return {
    kind: 'end',
    outcome: {
      kind: 'needs-person',
      reason: `The planner made no plan that can be used, ${times}. ${firstLine(problem)}`,
      hint: null,
      goalOnly: true,
    },
  }
}

function firstLine(problem: string | null): string {
  const [first = ''] = (problem ?? '').split('\n')
  return clipEnd(first.replace(/^- /, ''), 500)
}

/** Most characters of the request, and of all materials of a planning round. */
const MOST_REQUEST = 250_000
const MATERIALS_CHARACTERS = 200_000

/** Returns a planning round; it can write nothing. */
export function planRound(own: ChangeWork, session: SessionState, parts: ChangeParts): Step {
  const { context, planning } = own
  const followed = followedMaterial(session).materials ?? []
  const materials = [...(context === null ? [] : [{ name: 'the project', output: context.output }]), ...followed]
  const round: RoundSpec = {
    thread: plannerOf(parts),
    part: 'plan',
    tellsGoal: true,
    input: withNotices(planInput(own), session.notices),
    answer: {
      ...PLAN_ANSWER,
      name: planning.tries === 0 ? PLAN_ANSWER.name : `${PLAN_ANSWER.name}~${planning.tries + 1}`,
    },
    ...(materials.length === 0 ? {} : { materials, materialsMost: MATERIALS_CHARACTERS }),
  }
  return { kind: 'round', round }
}

function plannerOf(parts: ChangeParts) {
  return parts.thread('planner', 'planner')
}

function planInput({ request, planning, execution }: ChangeWork): string {
  const { feedback, problem, versions } = planning
  const before = versions.at(-1)
  const done = execution.tasks.filter(({ status }) => status === 'COMPLETED')
  return [
    `Plan this change. What the person asks for, word for word:\n\n${clipEnd(request, MOST_REQUEST)}`,
    ...(before === undefined
      ? []
      : [`Version ${before.version} of the plan, which the person has seen:\n\n${planMarkdown(before.plan)}`]),
    ...(done.length === 0
      ? []
      : [
          `Of an earlier version these tasks are done, and stay so:\n${done.map(({ spec }) => `- ${spec.id}: ${clipEnd(spec.description, 300)}`).join('\n')}`,
        ]),
    ...(feedback === null
      ? []
      : [`What the person wants to be another way, word for word. It counts more than all above:\n\n${feedback}`]),
    ...(problem === null ? [] : [refusedAnswerNote(problem, PLAN_ANSWER)]),
  ].join('\n\n')
}

/** Returns the thread of a planning round while one is due. */
export function aheadInMaking(own: ChangeWork, { running }: SessionState, parts: ChangeParts) {
  const { planning, options } = own
  const isDue = planning.draft === null && (planning.versions.length === 0 || planning.feedback !== null)
  if (running === null) return isDue ? plannerOf(parts) : null
  return options.review === 'auto' && !options.planOnly ? parts.thread('decomposer', 'planner') : null
}

/** Folds events while a plan is being made. */
export function foldMaking(own: ChangeWork, event: SessionEvent, session: SessionState): ChangeWork {
  const { running } = session
  switch (event.type) {
    case 'answer-given':
      return running?.part === 'plan' ? withAnswer(own, event) : own
    case 'answer-refused':
      return running?.part === 'plan' ? refused(own, event.problem) : own
    case 'round-ended':
      return running?.part === 'plan' ? afterRound(own, event) : own
    case 'command-ran':
      return afterCheck(own, event, session)
    case 'looked':
      return afterLook(own, event)
    case 'kept':
      return withFiled(own, event)
    case 'noted':
      return event.name === UNREAD ? withPlanning(own, { unread: null }) : own
    default:
      return own
  }
}

/** The answer is valid: it was judged before it was journaled. */
function withAnswer(own: ChangeWork, { value, judged }: EventOf<'answer-given'>): ChangeWork {
  const read = value === undefined ? TOO_LONG : readPlan(value)
  if (!read.ok) return refused(own, read.problem)
  const draft = { plan: read.value, author: 'planner', isUnjudged: judged !== true } as const
  return withPlanning(own, { draft, problem: null })
}

const TOO_LONG = { ok: false, problem: 'The answer has more than 60 KiB. Say it in fewer words.' } as const

function refused(own: ChangeWork, problem: string): ChangeWork {
  const { refusals, tries } = own.planning
  return withPlanning(own, { problem, refusals: refusals + 1, tries: tries + 1, isRefused: true })
}

/** A round without an answer counts as an unusable answer, unless it was interrupted. */
function afterRound(own: ChangeWork, { outcome, counts }: EventOf<'round-ended'>): ChangeWork {
  if (!counts || outcome.class === 'worked' || outcome.class === 'interrupted') return own
  return refused(own, outcome.message ?? `The round ended without an answer (${outcome.class}).`)
}

function afterLook(own: ChangeWork, { what, result }: EventOf<'looked'>): ChangeWork {
  if (what === LOOKS.edited) return withEdited(own, result)
  const { draft, versions, feedback } = own.planning
  if (what !== LOOKS.files || draft === null) return own
  const version: PlanVersion = {
    plan: draft.plan,
    author: draft.author,
    version: versions.length + 1,
    feedback: draft.author === 'person' ? EDITED : feedback,
    sha256: hashOfPlan(draft.plan),
    files: hashesOf(result),
  }
  return withPlanning(own, { versions: [...versions, version], draft: null, feedback: null, problem: null })
}

/** Feedback of a version that a person edited. */
const EDITED = 'edited by the person'

/** Result of reading a person's edit: a usable plan, a problem, or an empty file. */
export type EditedPlan = { plan: Plan } | { problem: string } | { text: '' }

/**
 * Handles a person's edit of the shown version's file. The file gets its own text back once the edit is a version, or if it
 * is empty. Early versions stored the whole text and judged it here.
 */
function withEdited(own: ChangeWork, result: unknown): ChangeWork {
  const shown = lastVersion(own.planning)
  const { plan, text, problem } = (result ?? {}) as { plan?: unknown; text?: string; problem?: string }
  const cannot = (why: string, more: Partial<PlanningWork> = {}) =>
    withPlanning(own, { reading: null, draft: null, problem: why, ...more })
  if (text?.trim() === '') {
    const why = `${fileOf(shown)} was empty, so codemachine restored the text of version ${shown.version}.`
    return cannot(why, { filed: shown.version - 1 })
  }
  const none = { ok: false, problem: problem ?? 'It is too large.' } as const
  const read = plan !== undefined ? readPlan(plan) : text !== undefined ? readPlanText(text) : none
  if (!read.ok) return cannot(`${fileOf(shown)} cannot be used: ${read.problem}`)
  if (hashOfPlan(read.value) === shown.sha256) return cannot(`You changed nothing in ${fileOf(shown)}.`)
  const draft = { plan: read.value, author: 'person', isUnjudged: plan === undefined } as const
  return withPlanning(own, { reading: null, problem: null, draft, filed: shown.version - 1 })
}

/** Returns the hashes that a look at a plan's files found. */
export function hashesOf(result: unknown): FileHashes {
  return typeof result === 'object' && result !== null ? (result as FileHashes) : {}
}

/** A failed write counts as written, as the journal says: the plan itself is in the journal. */
export function withFiled(own: ChangeWork, { file }: EventOf<'kept'>): ChangeWork {
  const version = own.planning.versions.find(each => fileOf(each) === file)
  return version === undefined ? own : withPlanning(own, { filed: version.version })
}

const NO_FACTS: ContextFacts = {
  branch: null,
  dirty: 0,
  entries: 0,
  manifests: [],
  rules: [],
  commands: [],
  mentioned: [],
  notes: [],
}

function factsOf(result: unknown): ContextFacts {
  const { facts } = (result ?? {}) as { facts?: ContextFacts }
  return facts ?? NO_FACTS
}
