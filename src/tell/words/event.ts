import { unreachable } from '../../base/errors.ts'
import type { Recorded, RecordedOf } from '../../core/events/events.ts'
import type { RoundOutcome } from '../../core/events/outcome.ts'
import type { OpenDecision } from '../../core/rules/decision.ts'
import { PROJECT_FILE } from '../../core/rules/notices.ts'
import { isCall, partOf, type SessionState } from '../../core/state/state.ts'
import { wordsForAdopted } from './adopted.ts'
import {
  describeCheck,
  describeContractTurn,
  describeContractTurnEnd,
  describeControl,
  describeDraft,
  describeFrozen,
} from './contract.ts'
import { describeDecisionAsked, describeDecisionMade, wordsForDecisionEnd } from './decision.ts'
import { describeAgentItem, describeItem, describePlan } from './item.ts'
import {
  clipLines,
  type Description,
  describe,
  describeTaken,
  type Hints,
  isAccessRefused,
  SHELL_HINTS,
  shownCommand,
  withRest,
  wordsForCause,
  wordsForClass,
  wordsForRoundEnd,
} from './names.ts'
import { formatCount, formatDuration, formatMoment, formatSpan, formatTokens } from './numbers.ts'
import {
  describeOutcome,
  waitEndOf,
  wordsForHoldEnd,
  wordsForLimits,
  wordsForRemedy,
  wordsForSpent,
  wordsForStall,
  wordsForWait,
  wordsForWindDown,
} from './outcome.ts'
import {
  agentLabel,
  describeAgentEnd,
  describeAgentStart,
  describeAnswer,
  describePlanReady,
  describeRefusedAnswer,
  describeRefusedPlan,
  describeTask,
  isPlanShown,
  isToldOfAgent,
  outputInWords,
  type PlanChangeInWords,
  planChangeInWords,
  wordsForPart,
} from './plan.ts'
import {
  describeAccepted,
  describeClaim,
  describeConfiguration,
  describeCounterProof,
  describeGate,
  describeGatesAdded,
  describeProtected,
  describeQuestion,
  describeRefusal,
  describeReviewEnd,
  describeReviewStart,
  describeScopeEntered,
  describeScopeLeft,
  isAnswerTold,
  isReviewing,
  wordsForGates,
  wordsForQuestions,
  wordsForReviewTerms,
  wordsForTests,
} from './proof.ts'
import { wordsForIssue, wordsForPublished } from './published.ts'
import { oneLine, titleLine } from './safe-text.ts'
import {
  describeCommandRun,
  describeConfirmed,
  describeEntered,
  describeHookRun,
  describeKept,
  describeLooked,
  describeSecretAsked,
  describeShellRun,
  describeWrote,
  statusOfWork,
  titleOfRound,
} from './work.ts'

/**
 * Describes an event for a person; null: nothing to tell. Pure.
 * @param state the session after the event
 * @param hints commands or keys for a person at this door
 */
export function describeEvent(event: Recorded, state: SessionState, hints: Hints = SHELL_HINTS): Description | null {
  // Each type's entry takes events of that type, which the compiler cannot follow here.
  const describer = DESCRIBERS[event.type] as Describer<Recorded> | null
  return describer === null ? null : describer(event, state, hints)
}

type Describer<E extends Recorded> = (event: E, state: SessionState, hints: Hints) => Description | null

/** Describers by event type; null: the event is not shown. */
const DESCRIBERS: { readonly [T in Recorded['type']]: Describer<RecordedOf<T>> | null } = {
  'session-created': describeCreation,
  'session-resumed': describeResumption,
  'session-moved': ({ worker, host, epoch }) =>
    describe(
      `the worker ${oneLine(worker, NAME_CHARS)} on ${oneLine(host, NAME_CHARS)} takes over the session (takeover ${epoch})`,
      'strong',
    ),
  'settings-taken': ({ changes }) => describe(describeTaken(changes)),
  'keep-awake': describeKeepAwake,
  waiting: describeWaiting,
  'wait-ended': describeWaitEnd,
  'engine-changed': describeEngineChange,
  'stop-asked': describeStopAsked,
  paused: (_, state) => describePaused(state),
  held: (_, state, hints) =>
    describe(isPlanShown(state) ? `the plan waits for you: ${hints.startBuild}` : `paused; ${hints.goOn}`, 'strong'),
  'hold-until': describeHoldEnd,
  unpaused: ({ by }) =>
    by === 'default'
      ? describe('nobody answered: continuing', 'warning')
      : describe('a person ended the pause: continuing', 'strong'),
  'interrupt-asked': (_, state) => describeInterrupt(state),
  'skip-asked': () => describe('skipped: this session ends now, and the next prompt in the queue starts', 'strong'),
  'replan-asked': describeReplanAsked,
  replanned: (event, _, hints) => describeReplanned(event, hints),
  'decision-asked': describeDecisionAsked,
  'decision-made': describeDecisionMade,
  stuck: describeStuck,
  'session-ended': describeSessionEnd,
  published: event => describe(wordsForPublished(event), event.problem === null ? 'strong' : 'warning'),

  'round-started': describeRoundStart,
  // It directly follows its round.
  'turn-started': null,
  'item-completed': describeItemOf,
  'plan-updated': ({ steps }) => describe(`plan  ${describePlan(steps)}`),
  // The end of the round shows it.
  usage: null,
  // `codemachine status` shows it.
  limits: null,
  'model-rerouted': ({ from, to, reason }) =>
    describe(`codex changed the model: ${name(from)} → ${name(to)} (${text(reason)})`, 'warning'),
  'request-answered': describeRequest,
  'question-asked': (event, _, hints) => describeQuestion(event, hints),
  'answer-given': describeAnswer,
  'answer-refused': describeRefusedAnswer,
  'output-kept': ({ output }) => describe(`kept: ${outputInWords(output)}`),
  steered: describeSteering,
  warning: ({ message, more = [] }, _, hints) =>
    more.length === 0
      ? describe(`warning: ${text(message)}`, 'warning')
      : describe(`${formatCount(1 + more.length, 'warning')}: ${hints.warnings}`, 'warning'),
  error: describeError,
  'turn-continued': describeTurnContinued,
  'winding-down': describeWindingDown,
  'machine-slept': ({ ms }) => describe(`the machine slept for ${formatSpan(ms)}; nothing was lost`),
  'round-ended': describeRoundEnd,

  // Its result shows it.
  'step-started': null,
  looked: describeLooked,
  'command-ran': describeCommandRun,
  wrote: describeWrote,
  noted: ({ text: said }) => describe(text(said)),
  'state-entered': describeEntered,
  kept: describeKept,
  'gates-added': describeGatesAdded,
  'scope-entered': describeScopeEntered,
  'scope-left': describeScopeLeft,

  'hook-started': null,
  'hook-ended': describeHookRun,
  'shell-ran': describeShellRun,
  'secret-asked': describeSecretAsked,
  'secret-set': ({ key }) => describe(`the secret ${key} was set`),
  'secret-confirmed': describeConfirmed,

  'memory-broken': describeBrokenMemory,
  'goal-restored': describeGoal,
  'repository-restored': describeRestoration,
  savepoint: null,
  'settings-changed': ({ round }) =>
    describe(
      `warning: Round ${round} changed ${PROJECT_FILE}. Lower limits apply from the next round, all else from the next run.`,
      'warning',
    ),
  'protected-changed': describeProtected,
  'gate-configuration': describeConfiguration,
  'counter-proof': describeCounterProof,

  'plan-refused': describeRefusedPlan,
  'plan-ready': describePlanReady,
  'agent-started': describeAgentStart,
  'agent-ended': describeAgentEnd,
  'task-judged': describeTask,
  // Every task that this changes was already shown.
  'tasks-judged': null,

  'gate-started': null,
  'gate-ended': describeGate,
  'done-nominated': describeClaim,
  'review-started': describeReviewStart,
  'review-ended': describeReviewEnd,
  'done-refused': describeRefusal,
  'done-accepted': describeAccepted,

  'contract-turn-started': describeContractTurn,
  'contract-turn-ended': describeContractTurnEnd,
  'contract-drafted': describeDraft,
  'contract-dropped': ({ why }) => describe(`the new check is not used: ${text(why)}`, 'warning'),
  'contract-frozen': describeFrozen,
  'contract-left': ({ why }) => describe(`the session continues without a contract: ${text(why)}`, 'warning'),
  'check-started': null,
  'check-ended': describeCheck,
  // Each is shown when it is tried.
  'controls-written': null,
  'control-tried': describeControl,
}

const NAME_CHARS = 200
const TEXT_CHARS = 2000
/** Most shown lines of a person's message, and of a diff. */
const MOST_LINES = 40
const REST = 'the session has all of it'

function describeCreation(event: RecordedOf<'session-created'>, state: SessionState): Description {
  const { gates, none } = gatesInWords(event)
  const tests = wordsForTests(event, state)
  const { adopted, follows, issue } = event
  const after = follows === undefined ? '' : `continues from ${follows}, `
  const from = adopted === undefined ? '' : `continues from ${wordsForAdopted(adopted, Date.parse(event.at))}, `
  const on = issue === undefined ? '' : `${wordsForIssue(issue)}, `
  const facts = `${event.template}, ${after}${from}${on}${event.sandbox}, ${wordsForLimits(event.limits)}${none}`
  return describe(
    `session ${event.session}  ${titleLine(event.goal, NAME_CHARS)}  (${facts})${gates}${tests === null ? '' : `\n${tests}`}`,
    'strong',
  )
}

/** If the session stopped during a wait, it finishes that wait first. */
function describeResumption(event: RecordedOf<'session-resumed'>, state: SessionState, hints: Hints): Description {
  const wait = describeWaiting(event, state, hints)
  const { gates, none } = gatesInWords(event)
  return describe(
    `session ${event.session} continues  ${titleLine(state.goal, NAME_CHARS)}  (${wordsForLimits(event.limits)}${none})${gates}${wait ? `\n${wait.text}` : ''}`,
    'strong',
  )
}

/** Lists the gates of a session, and a required review, on their own line; `none` says that there are none. */
function gatesInWords({ gates, review, prove }: RecordedOf<'session-created' | 'session-resumed'>): {
  gates: string
  none: string
} {
  const known = wordsForGates(gates)
  const terms = wordsForReviewTerms(review)
  const isNone = gates?.length === 0
  const lines = [isNone ? null : known, terms].filter(words => words !== null)
  return {
    gates: lines.length === 0 ? '' : `\n${lines.join('; ')}`,
    none: `${isNone ? ', no gates' : ''}${prove === undefined ? '' : ', proved by a contract'}`,
  }
}

/** Describes an action of codex, in a round or as a reviewer. */
function describeItemOf(event: RecordedOf<'item-completed'>, state: SessionState): Description | null {
  const { item, session, instance } = event
  if (isToldOfAgent(event, state)) return null
  if (instance !== undefined) {
    const told = describeAgentItem(item, { session, directory: state.directory })
    return told && { ...told, text: `${agentLabel(instance, state)}  ${told.text}` }
  }
  const description = describeItem(item, { session, directory: state.directory })
  if (description === null || (item.kind === 'agent-message' && isAnswerTold(item.text, state))) return null
  if (!isReviewing(state)) return description
  return { ...description, text: `${whoProves(state)}  ${description.text}` }
}

/** Names who works outside of a round: the reviewer, or the writer of the contract or wrong versions. */
function whoProves({ checking }: SessionState): string {
  return checking?.kind === 'contract' ? checking.role : 'reviewer'
}

function describeKeepAwake({ by, problem }: RecordedOf<'keep-awake'>): Description | null {
  // A server never sleeps, and lacks the tools to block it: doctor says it once.
  if (by === null) return null
  const why = problem === null ? '' : `: ${text(problem)}`
  return describe(`the machine is kept awake by ${name(by)}${why}`, problem === null ? 'quiet' : 'warning')
}

function describeBrokenMemory({ problem }: RecordedOf<'memory-broken'>): Description {
  const kept = problem.setAside === null ? '' : ` Its content is saved as ${name(problem.setAside)}.`
  const restored = problem.restored ? ' codemachine restored the last good version.' : ''
  return describe(`${name(problem.file)} could not be used: ${text(problem.problem)}${kept}${restored}`, 'warning')
}

function describeGoal({ file, how, setAside, restored }: RecordedOf<'goal-restored'>): Description {
  const what = file === 'MAIN.md' ? 'the goal in MAIN.md' : name(file)
  const kept = setAside === null ? '' : ` The changed text is saved as ${name(setAside)}.`
  const back = restored ? `${what} was ${how} and is restored` : `warning: ${what} was ${how} and could not be restored`
  return describe(`${back}: it holds your own words.${kept}`, 'warning')
}

function describeRestoration({ paths, setAside }: RecordedOf<'repository-restored'>): Description {
  const kept = setAside === null ? '' : ` (kept as ${text(setAside)})`
  const list = paths.map(name).join(', ')
  return describe(`restored the repository's own settings after the round: ${list}${kept}`, 'warning')
}

function describeSessionEnd(event: RecordedOf<'session-ended'>, state: SessionState): Description {
  const { text, hint, tone } = describeOutcome(event.outcome, state)
  const open = state.decision !== null && event.outcome.kind !== 'needs-person' ? openDecision(state.decision) : null
  const more = [hint, open, wordsForQuestions(state.questions)].filter(line => line !== null)
  return describe([`session ${event.session} ended: ${text}  (${wordsForSpent(event)})`, ...more].join('\n'), tone)
}

/** Says that a session ended with an open decision. */
function openDecision({ title }: OpenDecision): string {
  return `The session ended without your decision. When you resume it, it asks again: ${text(title)}`
}

function name(value: string): string {
  return oneLine(value, NAME_CHARS)
}

function text(value: string): string {
  return oneLine(value, TEXT_CHARS)
}

/** Describes a wait at its beginning, or when its session resumes. */
function describeWaiting({ at }: Recorded, state: SessionState, hints: Hints): Description | null {
  const { waiting } = state
  if (waiting === null) return null
  const now = Date.parse(at)
  const end = waitEndOf(state) ?? waiting.until
  const limit = end < waiting.until ? `, but the time is used up at ${formatMoment(end, now)}` : ''
  const how = isCall(state) ? hints.endWaitOfCall : hints.endWait
  return describe(`waiting ${wordsForWait(waiting, now)}${limit}; ${how}`, 'warning')
}

/** Says which engine runs the rounds now, and why. */
function describeEngineChange({ from, to, until, why, at }: RecordedOf<'engine-changed'>): Description {
  const when =
    until === null ? '' : `; the usage limit of ${name(from)} resets ${formatMoment(Date.parse(until), Date.parse(at))}`
  return describe(`${name(to)} runs the rounds now: ${text(why).replace(/\.$/, '')}${when}`, 'warning')
}

function describeWaitEnd({ reason }: RecordedOf<'wait-ended'>): Description {
  switch (reason) {
    case 'over':
      return describe('the wait is over')
    case 'retry':
      return describe('a person ended the wait: trying again', 'strong')
    case 'stopped':
      return describe('the wait is interrupted; it continues when the session is resumed', 'warning')
    default:
      return unreachable(reason)
  }
}

/** Describes a person's request to stop; at once if nothing runs. */
function describeStopAsked({ now, agent }: RecordedOf<'stop-asked'>, state: SessionState): Description {
  if (agent !== undefined)
    return describe(`${agentLabel(agent, state)} was stopped by a person; the round continues`, 'strong')
  const work = workOf(state)
  return describe(`stopping ${now || work === null ? 'now' : `after this ${work}`}`, 'strong')
}

/** Names the running work that a person may want to end: `round`, `gate`, `review`, `step`; null: none. */
export function workOf({ running, checking, step }: SessionState): string | null {
  return running === null ? (checking?.kind ?? (step === null ? null : 'step')) : 'round'
}

/** Describes a person's interruption; null if nothing runs and the session pauses at once, because `held` says it. */
function describeInterrupt(state: SessionState): Description | null {
  const work = workOf(state)
  if (work !== null) return describe(`interrupted by a person: the ${work} ends now`, 'strong')
  return state.waiting === null ? null : describe('interrupted by a person: pauses after this wait', 'strong')
}

/** Describes a person's request to pause between two rounds; null if that is at once, because `held` says it. */
function describePaused(state: SessionState): Description | null {
  const between = state.decision === null ? workOf(state) : 'decision'
  const work = state.waiting === null ? between : 'wait'
  return work === null ? null : describe(`pausing after this ${work}`, 'strong')
}

/**
 * Says when a wait for a person ends by itself.
 * @param state the session after the event
 */
function describeHoldEnd({ at, until, how }: RecordedOf<'hold-until'>, { decision }: SessionState): Description {
  const [now, end] = [Date.parse(at), Date.parse(until)]
  return describe(decision === null ? wordsForHoldEnd({ at: end, how }, now) : wordsForDecisionEnd(decision, now))
}

/** Describes a person's message to the agent of a round, or to one that works for it. */
function describeSteering(
  { delivered, text, agent, answers }: RecordedOf<'steered'>,
  state: SessionState,
): Description {
  const says = answers === undefined ? 'says' : `answers ${name(answers)}`
  const whom = agent === undefined ? '' : ` to ${agentLabel(agent, state)}`
  const when = delivered ? '' : ', to the next round'
  // The first line of an answer holds question and answer; the rest is for the agent.
  const told = answers === undefined ? clipLines(text, MOST_LINES, REST) : (text.trim().split('\n', 1)[0] ?? '')
  return describe(`a person ${says}${whom}${when}: ${told}`, 'strong')
}

/** Describes a person's request to change the plan. */
function describeReplanAsked({ text, goesOn }: RecordedOf<'replan-asked'>): Description {
  const then = goesOn ? '; the session then continues' : ''
  return describe(`a person asked to change the plan${then}: ${clipLines(text, MOST_LINES, REST)}`, 'strong')
}

/** Describes a change of plan by tasks; one from an older version's journal as diffs. */
function describeReplanned(event: RecordedOf<'replanned'>, hints: Hints): Description {
  const { files, putBack } = event
  if (files.length === 0) return describe('the plan did not change', 'warning')
  const names = files.map(({ file }) => file).join(' and ')
  const head = putBack ? `the old plan is restored in ${names}` : `plan changed in ${names}`
  const change = planChangeInWords(event)
  const lines = change === null ? files.map(({ diff }) => clipLines(diff, MOST_LINES, REST)) : linesOfChange(change)
  return describe(`${head}; ${hints.changePlan}\n${lines.join('\n')}`, 'strong')
}

function linesOfChange({ tasks, left, main }: PlanChangeInWords): string[] {
  const lines = tasks.map(({ sign, text: words }) => `${sign} ${words}`)
  const shown = withRest(lines.slice(0, MOST_LINES), lines.length + left)
  return [...shown, ...(main === null ? [] : [main])]
}

/** Describes a request of codex, and its answer. */
function describeRequest({ method, subject, answer }: RecordedOf<'request-answered'>): Description {
  const words = REQUESTS.get(method)?.(subject) ?? `asked (${name(method)}): ${text(subject)}`
  return describe(`codex ${words}  → codemachine: ${text(answer)}`)
}

/** Words for codex's requests; one without a reason has only its kind as subject. */
const REQUESTS: ReadonlyMap<string, (subject: string) => string> = new Map([
  ['item/commandExecution/requestApproval', subject => `asked to run: ${text(shownCommand(subject))}`],
  ['item/fileChange/requestApproval', subject => `asked to change files${because(subject, 'a file change')}`],
  ['item/permissions/requestApproval', subject => `asked for more permissions${because(subject, 'more permissions')}`],
  ['item/tool/requestUserInput', subject => `asked: ${text(subject)}`],
  ['mcpServer/elicitation/request', subject => `passed on ${text(subject)}`],
  ['item/tool/call', subject => `asked for the tool ${text(subject)}`],
])

function because(subject: string, unreasoned: string): string {
  return subject === unreasoned ? '' : `: ${text(subject)}`
}

/** Describes the start of a round: which one, its agent and its model. @param state the session after the event */
/** Another maker's agent does not report its version before its round; this is the sandbox's version. */
function wordsForEngine({ engine, codex, reaches }: RecordedOf<'round-started'>): string {
  return `${name(engine)}${reaches === undefined ? '' : ' in the sandbox of codex'} ${name(codex)}`
}

function describeRoundStart(event: RecordedOf<'round-started'>, state: SessionState): Description {
  const provider = event.provider === undefined ? '' : `, provider ${name(event.provider)}`
  const model = `${provider}${event.model === null ? '' : `, model ${name(event.model)}`}`
  const change = state.running?.replan != null ? CHANGING : null
  const own = change === null ? titleOfRound(state) : null
  if (own !== null) return { text: own.title, more: own.lines, tone: 'strong', moreTone: 'quiet' }
  const part = event.part === undefined ? change : wordsForPart(state, event.part)
  const number = `round ${event.round}`
  const isFree = event.part !== undefined && partOf(state.kind, event.part).free
  const isNumbered = !isFree && !(change !== null && state.taskPlan !== null)
  const heading = [...(isNumbered ? [number] : []), ...(part === null ? [] : [part])].join(
    part === CHANGING ? ', ' : '  ',
  )
  return describe(
    `${heading}${part === null ? '  ' : ': '}${name(event.agent)}, ${wordsForEngine(event)}${model}`,
    'strong',
  )
}

const CHANGING = 'changing the plan'

/** Names a round at its end: a summary or change of plan passes its number on to the next round. */
function endedRound({ round }: RecordedOf<'round-ended'>, { kind, taskPlan, last }: SessionState): string {
  if (last === null) return `round ${round}`
  if (last.isReplan) return taskPlan === null ? `round ${round}, ${CHANGING},` : CHANGING
  // Its current name may be that of the next round.
  if (kind?.view?.round !== undefined) return 'round'
  return last.part !== null && partOf(kind, last.part).free ? wordsForPart({ kind }, last.part) : `round ${round}`
}

/**
 * Describes an error that codex reports. Null for repeated notices that the network is away, and for errors that end the
 * turn, because its end shows them.
 */
function describeError(event: RecordedOf<'error'>, state: SessionState): Description | null {
  if (event.waitsForNetwork) {
    const isFirst = state.offlineSince === Date.parse(event.at)
    return isFirst ? describe('the network is down; codex keeps trying', 'warning') : null
  }
  if (!event.willRetry) return null
  const details = event.details === null ? '' : `: ${text(event.details)}`
  return describe(`error: ${text(event.message)}${details} (codex tries again)`, 'warning')
}

/** Says that a failed turn continues as another one. */
function describeTurnContinued({ cause }: RecordedOf<'turn-continued'>): Description {
  return describe(`turn failed${wordsForFailure(cause)}; continuing in the same thread`, 'warning')
}

function wordsForFailure(cause: RoundOutcome): string {
  if (isAccessRefused(cause)) return `: ${wordsForClass(cause)}`
  return cause.class === 'network' ? ' for the network' : ` (${wordsForCause(cause)})`
}

/** Describes a limit reached in the middle of a round. */
function describeWindingDown(event: RecordedOf<'winding-down'>, state: SessionState): Description {
  return describe(
    `${wordsForWindDown(event.limit, state)}: the ${isReviewing(state) ? 'reviewer' : 'agent'} is told to stop safely, and has ${formatSpan(event.graceMs)}`,
    'warning',
  )
}

/** Describes a session without progress, and the remedy. */
function describeStuck({ why, rounds, remedy }: RecordedOf<'stuck'>): Description {
  return describe(`${wordsForStall(why, rounds)}: the next round is ${wordsForRemedy(remedy)}`, 'warning')
}

/**
 * Describes how a round ended, its cost and its changes.
 * @param state the session after the event
 */
function describeRoundEnd(event: RecordedOf<'round-ended'>, state: SessionState): Description {
  const work = statusOfWork(state)
  const facts = [
    `${endedRound(event, state)} ended: ${wordsForRoundEnd(event.outcome)}`,
    formatDuration(event.durationMs),
    ...(event.tokens === null ? [] : [formatTokens(event.tokens.total)]),
    // In a call nobody checks the files.
    ...(event.treeAfter === ''
      ? []
      : [`${event.changedCount === 0 ? 'no files' : formatCount(event.changedCount, 'file')} changed`]),
    ...(work === null ? [] : [text(work)]),
  ]
  return describe(facts.join(', '), event.outcome.class === 'worked' ? 'strong' : 'warning')
}
