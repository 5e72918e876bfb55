import { clipEnd } from '../../base/text.ts'
import type {
  EventOf,
  LifecycleEvent,
  Recorded,
  RoundEvent,
  SessionEvent,
  ShellEvent,
  StepEvent,
} from '../events/events.ts'
import { type Item, isCutOff, isWork } from '../events/items.ts'
import { newContract } from '../rules/contract.ts'
import { costAfter, usedSoFar } from '../rules/cost.ts'
import { NOT_IN_THIS_RUN } from '../rules/fallback.ts'
import { trendsAfterLimits, trendsAfterRound } from '../rules/forecast.ts'
import { hookNotice, replannedNotice, stuckNotice } from '../rules/notices.ts'
import {
  appendRequest,
  noticesAfterCutOff,
  noticesAfterRound,
  withCommandCutOff,
  withEndedCommands,
  withNotice,
  withSteering,
} from '../rules/notices-after-round.ts'
import { type Output, withOutput } from '../rules/outputs.ts'
import { NO_STALL, stallAfterRound } from '../rules/stall.ts'
import { questionKey } from '../shapes/tools.ts'
import { inTemplate } from '../template.ts'
import {
  CLAIM_FOLDS,
  claimAtResume,
  FILE_FOLDS,
  reviewsAtResume,
  withoutAccepted,
  withPersonSaid,
} from './fold-claim.ts'
import { CONTRACT_FOLDS, contractDecided, contractPutBack, contractReplanned, withWho } from './fold-contract.ts'
import {
  ANSWER_FOLDS,
  type AnswerEvent,
  PLAN_FOLDS,
  planAfterRound,
  planAfterUnpause,
  planAtCut,
  planAtResume,
  planAtRound,
  refusedAtResume,
  withThread,
} from './fold-plan.ts'
import { emptyPlan, PLAN_CHOICES, PLAN_DECISION } from './plan.ts'
import { addGates, enterScope, foldInScope, gatesAtResume, leaveScope } from './scope.ts'
import {
  discountSleep,
  type FoldsOf,
  failuresAfter,
  hold,
  interruptRound,
  NO_FAILURES,
  partOf,
  reachAfter,
  releaseHold,
  type SessionKind,
  type SessionState,
  sessionTokens,
  tokensOfProviders,
} from './state.ts'
import { CODEX_LOGIN, loginOfEngine, onLoginOf, usageOf, withUsage } from './usage.ts'

/** Returns the state after one more event. `templates`: those that this version knows. Pure: no clock, file or process. */
export function fold(state: SessionState, event: Recorded, templates: ReadonlyMap<string, SessionKind>): SessionState {
  const at = Date.parse(event.at)
  // The compiler cannot see that the table's function for each type takes events of that type.
  const apply = FOLDS[event.type] as (state: SessionState, event: SessionEvent, at: number) => SessionState
  const applied = foldInScope(state, event, session => apply(session, event, at))
  const next = {
    ...applied,
    work: workAfter(state, event),
    events: state.events + 1,
    updatedAt: updatedAt(state, event, at),
  }
  return event.type === 'session-created' ? begin(next, event, templates) : next
}

/** Publishing after the end is not work of the session. */
function updatedAt({ updatedAt }: SessionState, { type }: SessionEvent, at: number): number {
  return type === 'published' ? updatedAt : at
}

/** Returns the template's own state after one more event; `state`: before the event. */
function workAfter(state: SessionState, event: SessionEvent): unknown {
  const { kind, work } = state
  return kind === null || isBrokenOff(event) ? work : inTemplate(kind.name, 'fold', () => kind.fold(work, event, state))
}

/** Returns the session with its template, if this version knows that. */
function begin(
  state: SessionState,
  event: EventOf<'session-created'>,
  templates: ReadonlyMap<string, SessionKind>,
): SessionState {
  const kind = templates.get(event.template) ?? null
  if (kind === null) return state
  return {
    ...state,
    kind,
    work: inTemplate(kind.name, 'first', () => kind.first(event)),
    workState: kind.firstState ?? null,
    taskPlan: kind.hasPlan ? emptyPlan(event.asksPlan ?? false) : null,
  }
}

/** Returns true for a command that was stopped: it proves nothing, and the template is asked for it again. */
function isBrokenOff(event: SessionEvent): boolean {
  return event.type === 'command-ran' && event.status === 'broken-off'
}

/** Folds of step events. Pure. */
const STEP_FOLDS: FoldsOf<StepEvent> = {
  'step-started': (state, { step, kind, name, timeoutMs }, at) => ({
    ...releaseHold(state, at),
    step: { number: step, kind, name, since: at, ...(timeoutMs === undefined ? {} : { mostMs: timeoutMs }) },
  }),
  looked: (state, event, at) => endStep(withKept(state, event.output), event, at),
  'command-ran': (state, event, at) => {
    const next = event.changed.length === 0 ? state : withoutAccepted(state)
    return isBrokenOff(event) ? { ...next, step: null } : endStep(withKept(next, event.kept), event, at)
  },
  wrote: (state, event, at) => endStep(event.files.length === 0 ? state : withoutAccepted(state), event, at),
  noted: endStep,
  'state-entered': (state, event, at) => endStep({ ...state, workState: event.state }, event, at),
  'gates-added': (state, event, at) => endStep(addGates(withoutAccepted(state), event.gates), event, at),
  kept: (state, event, at) => endStep(withKept(state, event.output), event, at),
  'scope-entered': enterScope,
  'scope-left': (state, { step, outcome }, at) => {
    const left = leaveScope(state, outcome)
    return step === undefined ? left : endStep(left, { step }, at)
  },
}

/** The template itself stores the results of these events. */
const SHELL_FOLDS: FoldsOf<ShellEvent> = {
  'hook-started': (state, { hook }, at) => ({ ...state, checking: { kind: 'hook', hook, since: at } }),
  'hook-ended': (state, event) => {
    const next = { ...state, checking: null }
    return event.hook === 'after_round' && event.refuses === true ? withNotice(next, hookNotice(event)) : next
  },
  'shell-ran': state => state,
  'secret-asked': state => state,
  'secret-set': state => state,
  'secret-confirmed': endStep,
}

function withKept(state: SessionState, output: Output | undefined): SessionState {
  return output === undefined ? state : { ...state, outputs: withOutput(state.outputs, output) }
}

function endStep(state: SessionState, { step }: { step: number }, at: number): SessionState {
  return { ...state, step: null, steps: step, heldSince: state.pausedAt === null ? null : at }
}

/** Another login has its own usage windows, so a wait for the old ones ends. */
const OTHER_LOGIN = { waiting: null, primaryWindow: null, secondaryWindow: null, hasCredits: false, otherLogins: {} }
/** Returns the state on another engine, which has its own usage windows and models. */
function onEngine(state: SessionState, engine: string): SessionState {
  const next = onLoginOf(state, engine)
  return next === state ? state : { ...next, modelInUse: null, effortInUse: null }
}

/** Limit of stored engine changes; a certificate lists them. */
const MOST_CHANGES = 50
/** Folds of lifecycle events. Pure. */
const LIFECYCLE_FOLDS: FoldsOf<LifecycleEvent> = {
  'session-moved': (state, { directory, host }) => ({ ...state, ...OTHER_LOGIN, directory, host }),
  'session-created': (state, event, at) => ({
    ...state,
    goal: event.goal,
    template: event.template,
    directory: event.directory,
    queued: event.queued,
    follows: event.follows ?? null,
    adopted: event.adopted ?? null,
    issue: event.issue ?? null,
    kept: event.kept ?? [],
    replayed: event.replayed ?? false,
    replays: event.replayed ?? false,
    outputs: (event.outputs ?? []).reduce(withOutput, state.outputs),
    limits: event.limits,
    run: event.run ?? null,
    maxUsage: event.maxUsage ?? null,
    prices: event.prices ?? [],
    sandbox: event.sandbox,
    network: event.network,
    model: event.model,
    effort: event.effort,
    overrides: event.overrides,
    said: event.said,
    host: event.host,
    gates: event.gates ?? [],
    review: event.review ?? null,
    protectFrom: event.protectFrom ?? null,
    contract: event.prove === undefined ? null : newContract(event.prove),
    tests: event.tests ?? null,
    createdAt: at,
    beganAt: at,
  }),
  'session-resumed': resume,
  'settings-taken': (state, { limits, run = state.run, maxUsage = null }) => ({ ...state, limits, run, maxUsage }),
  'keep-awake': (state, event) => ({ ...state, keptAwake: event.by }),
  waiting: (state, event, at) => ({
    ...releaseHold(state, at),
    waiting: { until: Date.parse(event.until), since: at, reason: event.reason, cause: event.cause },
  }),
  'wait-ended': endWait,
  'engine-changed': (state, { from, to, isUsual, until, fault, round }) => ({
    ...onEngine(state, to),
    engine: isUsual ? null : to,
    engineChanges: [...state.engineChanges, { round, from, to }].slice(-MOST_CHANGES),
    fullUntil:
      until === null && fault === undefined
        ? state.fullUntil
        : { ...state.fullUntil, [from]: until === null ? NOT_IN_THIS_RUN : Date.parse(until) },
  }),
  'stop-asked': (state, { agent }) => (agent === undefined ? { ...state, stopAsked: true } : state),
  paused: (state, _, at) => hold(state, at),
  // A step that was stopped for the pause runs again.
  held: (state, _, at) => ({ ...state, step: null, heldSince: state.heldSince ?? at }),
  'hold-until': (state, { until, how }) => ({
    ...state,
    ...(state.decision === null
      ? { holdEnd: { at: Date.parse(until), how } }
      : { decision: { ...state.decision, until: Date.parse(until) } }),
  }),
  unpaused: (state, { by }, at) => ({
    ...releaseHold(state, at),
    pausedAt: null,
    // A timeout does not accept a plan that nobody has seen.
    taskPlan: by === 'default' ? state.taskPlan : planAfterUnpause(state),
  }),
  'interrupt-asked': (state, _, at) => interruptRound(hold(state, at)),
  'skip-asked': state => state,
  'replan-asked': askedToReplan,
  replanned,
  'decision-asked': askedToDecide,
  'decision-made': decided,
  stuck: (state, event) =>
    withNotice({ ...state, stall: { ...state.stall, remedy: event.remedy } }, stuckNotice(event, state.stall.tried)),
  'session-ended': (state, event) => ({
    ...state,
    running: null,
    agents: [],
    taskPlan: planAtCut(state),
    ...noticesAfterCutOff(state),
    pausedAt: null,
    heldSince: null,
    holdEnd: null,
    checking: null,
    step: null,
    offlineSince: null,
    windingDown: null,
    waiting: event.outcome.kind === 'interrupted' ? state.waiting : null,
    ended: { outcome: event.outcome, exitCode: event.exitCode, durationMs: event.durationMs },
  }),
  published: (state, { pushedTo, branch, commit, url, draft, problem }) => ({
    ...state,
    published: { pushedTo, branch, commit, url, draft, problem },
  }),
}

function resume(state: SessionState, event: EventOf<'session-resumed'>, at: number): SessionState {
  const { ended } = state
  return {
    ...state,
    limits: event.limits,
    run: event.run ?? state.run,
    maxUsage: event.maxUsage ?? null,
    prices: event.prices ?? [],
    said: event.said,
    host: event.host,
    beganAt: at,
    workedMs: ended?.durationMs ?? state.workedMs + Math.max(0, state.updatedAt - state.beganAt),
    ...gatesAtResume(state, event),
    contract: contractAtResume(state, event),
    checking: null,
    step: null,
    running: null,
    agents: [],
    taskPlan: planAtResume(state),
    ended: null,
    pausedAt: null,
    heldSince: null,
    holdEnd: null,
    decision: null,
    decided: null,
    stopAsked: false,
    offlineSince: null,
    windingDown: null,
    tokensBefore: sessionTokens(state),
    providerTokens: tokensOfProviders(state),
    threadTokens: {},
    failures: NO_FAILURES,
    // The person may have fixed the fault.
    fullUntil: Object.fromEntries(Object.entries(state.fullUntil).filter(([, until]) => until < NOT_IN_THIS_RUN)),
    // A person has seen it since it ended.
    stall: ended === null ? state.stall : NO_STALL,
    claim: claimAtResume(state),
    reviews: reviewsAtResume(state),
    refusedAnswers: refusedAtResume(state),
    ...noticesAfterCutOff(state),
  }
}

/** Returns the contract of a resumed session, with new terms if a person gave some. */
function contractAtResume({ contract, last }: SessionState, { prove }: EventOf<'session-resumed'>) {
  // A person who resumes a contract-only session wants the work done, too.
  if (prove === undefined) return contract && { ...contract, terms: { ...contract.terms, only: false } }
  // After some work, no check can run before the work any more.
  return contract === null ? (last === null ? newContract(prove) : null) : { ...contract, terms: prove }
}

function endWait(state: SessionState, { reason }: EventOf<'wait-ended'>, at: number): SessionState {
  // A resume continues a stopped wait.
  if (reason === 'stopped') return state
  const { waiting } = state
  const isWaived = reason === 'retry' && waiting !== null && waiting.reason !== 'provider-away'
  return {
    ...discountSleep(state, at - (waiting?.until ?? at)),
    waiting: null,
    waivedUntil: isWaived ? waiting.until : state.waivedUntil,
    heldSince: state.pausedAt === null ? null : at,
  }
}

/** Returns the session after a person asked for a plan change; it pauses afterwards, unless it is to continue. */
function askedToReplan(before: SessionState, event: EventOf<'replan-asked'>, at: number): SessionState {
  const { text, goesOn } = event
  const contract = contractReplanned(before.contract, text)
  const state = { ...before, replansAsked: before.replansAsked + 1, contract }
  if (state.kind?.replansItself) return replansItself(state, text, at)
  // The plan decision is asked again after the change, unless the person already lets it continue.
  const isPlanAsked = state.decision?.id === PLAN_DECISION
  const next = { ...withPersonSaid(state, text), decision: null, replan: appendRequest(state.replan, text) }
  if (!goesOn) return interruptRound(hold(next, at))
  const taskPlan = isPlanAsked && state.taskPlan !== null ? { ...state.taskPlan, isLetGo: true } : state.taskPlan
  return interruptRound({ ...next, taskPlan })
}

/** For templates that change the plan themselves: stops running work, and drops a claim of the old plan. */
function replansItself(state: SessionState, text: string, at: number): SessionState {
  const { pausedAt, decision, step } = state
  const isIdle = (decision ?? step) !== null && pausedAt !== null
  const claim: SessionState['claim'] = state.claim.state === 'refused' ? state.claim : { state: 'none' }
  const next = { ...withPersonSaid(state, text), claim, decision: null, step: null }
  return interruptRound(isIdle ? { ...next, heldSince: at } : next)
}

function replanned(state: SessionState, { files, putBack }: EventOf<'replanned'>): SessionState {
  // A change that was requested during the restore of the old plan is still open.
  const isBack = putBack === true
  const next = {
    ...(isBack ? { ...withPersonSaid(state, TAKEN_BACK), contract: contractPutBack(state.contract) } : state),
    replan: isBack ? state.replan : null,
    failures: NO_FAILURES,
  }
  // A person has seen it.
  return files.length === 0 ? next : withNotice({ ...next, stall: NO_STALL }, replannedNotice())
}

/** The person's message when the plan was restored. */
const TAKEN_BACK = 'The last change of the plan is taken back.'

/** Returns the session after a decision was asked of a person. */
function askedToDecide(state: SessionState, event: EventOf<'decision-asked'>, at: number): SessionState {
  const { id, title, body, choices, default: usual, file, secret, until } = event
  const decision = {
    ...{ id, title, body, choices, default: usual },
    ...(file === undefined ? {} : { file }),
    ...(secret === undefined ? {} : { secret }),
  }
  return {
    ...releaseHold(withoutAccepted(state), at),
    decision: { ...decision, since: at, until: Date.parse(until) },
  }
}

/** Returns the session after the decision. A plan change is requested as `replan` does. */
function decided(state: SessionState, event: EventOf<'decision-made'>, at: number): SessionState {
  const { id, choice, text, by } = event
  const label = state.decision?.choices.find(each => each.id === choice)?.label ?? choice
  const next = {
    ...(text === null ? state : withPersonSaid(state, text)),
    decision: null,
    decided: { id, choice, text, by, label },
    contract: contractDecided(state.contract, event),
    heldSince: state.pausedAt === null ? null : at,
  }
  if (id !== PLAN_DECISION || state.taskPlan === null) return next
  if (choice === PLAN_CHOICES.accept) return { ...next, taskPlan: { ...state.taskPlan, isLetGo: true } }
  return choice === PLAN_CHOICES.change && text !== null ? { ...next, replan: appendRequest(state.replan, text) } : next
}

/** Folds of round events. Pure. */
const ROUND_FOLDS: FoldsOf<Exclude<RoundEvent, AnswerEvent>> = {
  'round-started': (state, event, at) => ({
    ...releaseHold(onEngine(state, event.engine), at),
    contract: withWho(state.contract, 'worker', {
      engine: event.engine,
      provider: event.provider ?? null,
      model: event.model,
    }),
    running: {
      round: event.round,
      part: event.part ?? null,
      replan: state.replan,
      startedAt: at,
      thread: null,
      turn: null,
      told: state.notices.length,
      steered: [],
      hasWorked: false,
      isInterrupted: false,
      commandMs: 0,
      lastWords: null,
      agentsEnded: [],
    },
    providerInUse: event.provider ?? null,
    roundsOfEngines: { ...state.roundsOfEngines, [event.engine]: (state.roundsOfEngines[event.engine] ?? 0) + 1 },
    reachOfEngines: reachAfter(state, event),
    agents: [],
    taskPlan: planAtRound(state, event.part ?? null),
    replayed: state.replayed || event.replayed === true,
    unknownPart: state.unknownPart ?? unknownPartOf(state, event.part ?? null),
    claim: event.keepsClaim === true && state.claim.state === 'accepted' ? state.claim : { state: 'none' },
    goalRestored: false,
    checking: null,
    step: null,
    plan: [],
    waiting: null,
  }),
  'turn-started': (state, event) =>
    online({
      ...state,
      running: state.running && { ...state.running, thread: event.thread, turn: event.turn },
      modelInUse: event.model ?? state.modelInUse,
      effortInUse: event.effort === undefined ? state.effortInUse : event.effort,
    }),
  'item-completed': (state, event) =>
    isCutOff(event.item)
      ? withCommandCutOff(state, event.item)
      : online(workOn(state, event.item, event.instance === undefined)),
  'plan-updated': (state, event) => ({ ...state, plan: event.steps }),
  usage: (state, event) => {
    const before = state.threadTokens[event.thread]
    const total = usedSoFar(event, before)
    return online({
      ...state,
      cost: costAfter(state.cost, { total, before, model: event.model }, state.prices),
      threadTokens: { ...state.threadTokens, [event.thread]: total },
      agents: withThread(state.agents, event),
      ...(event.thread === state.running?.thread && {
        contextWindow: event.contextWindow,
        contextTokens: event.last.total,
      }),
    })
  },
  limits: (state, event) => {
    const login = loginOfEngine(event.engine ?? CODEX_LOGIN)
    const { usageTrends } = usageOf(state, login)
    return withUsage(state, login, {
      primaryWindow: event.primary,
      secondaryWindow: event.secondary,
      hasCredits: event.credits ?? false,
      usageTrends: trendsAfterLimits(usageTrends, event, state.running !== null),
    })
  },
  'model-rerouted': (state, event) => ({ ...state, modelInUse: event.to }),
  'request-answered': state => state,
  'question-asked': (state, event) => ({
    ...state,
    questions: state.questions + 1,
    asked: [...state.asked, questionKey(event.text)],
  }),
  steered: (state, event) => {
    // The round also gets a copy of an answer to its agent; it is recorded once.
    const isCopy = event.agent !== undefined && event.answers !== undefined
    return isCopy ? state : withSteering(withPersonSaid(state, event.text), event)
  },
  warning: withEndedCommands,
  error: (state, event, at) => (event.waitsForNetwork ? { ...state, offlineSince: state.offlineSince ?? at } : state),
  'turn-continued': state => state,
  'winding-down': (state, event) => ({ ...state, windingDown: event.limit }),
  'machine-slept': (state, event) => discountSleep(state, event.ms),
  'round-ended': endRound,
}

/** Folds of all events. Pure. */
const FOLDS: FoldsOf<SessionEvent> = {
  ...LIFECYCLE_FOLDS,
  ...ROUND_FOLDS,
  ...ANSWER_FOLDS,
  ...STEP_FOLDS,
  ...SHELL_FOLDS,
  ...FILE_FOLDS,
  ...PLAN_FOLDS,
  ...CLAIM_FOLDS,
  ...CONTRACT_FOLDS,
}

/** Returns the `part` of a round if this version's template does not know it, else null. */
function unknownPartOf({ kind }: SessionState, part: string | null): string | null {
  return kind === null || part === null || Object.hasOwn(kind.parts, part) ? null : part
}

/** A message of the model proves that the network works. */
function online(state: SessionState): SessionState {
  return state.offlineSince === null ? state : { ...state, offlineSince: null }
}

/** `isOwn`: true for the round's own agent, false for an agent that it gave a task. */
function workOn(state: SessionState, item: Item, isOwn: boolean): SessionState {
  const { running } = state
  if (running === null || item.kind === 'user-message') return state
  if (!isOwn && !partOf(state.kind, running.part).delegates) return state
  if (!isOwn) return { ...state, running: { ...running, hasWorked: running.hasWorked || isWork(item) } }
  const durationMs = 'durationMs' in item ? (item.durationMs ?? 0) : 0
  const lastWords =
    item.kind === 'agent-message' ? clipEnd(item.text, partOf(state.kind, running.part).keepsWords) : running.lastWords
  const hasWorked = running.hasWorked || isWork(item)
  return { ...state, running: { ...running, hasWorked, commandMs: running.commandMs + durationMs, lastWords } }
}

/** A round's savepoint exists before the next round's one begins. */
const MOST_UNKEPT = 2

function endRound(state: SessionState, event: EventOf<'round-ended'>, at: number): SessionState {
  const { running, claim } = state
  return {
    ...(claim.state === 'accepted' && claim.tree !== event.treeAfter ? withoutAccepted(state) : state),
    ...noticesAfterRound(state, event),
    running: null,
    agents: [],
    contract: state.contract && { ...state.contract, tree: event.treeAfter },
    taskPlan: planAfterRound(state),
    last: { ...event, part: running?.part ?? null, isReplan: running != null && running.replan !== null },
    unkept: [...state.unkept, { round: event.round, tree: event.treeAfter, files: event.changedCount }].slice(
      -MOST_UNKEPT,
    ),
    hasChangedFiles: state.hasChangedFiles || event.treeBefore !== event.treeAfter,
    roundsUsed: event.counts ? state.roundsUsed + 1 : state.roundsUsed,
    failures: failuresAfter(state.failures, event, running?.hasWorked ?? false, { ...state, at }),
    stall:
      running === null || state.replayed
        ? state.stall
        : stallAfterRound(state.stall, event, { ...running, ...partOf(state.kind, running.part) }),
    heldSince: state.pausedAt === null ? null : at,
    offlineSince: null,
    windingDown: null,
    // Usage windows belong to the account; rounds of other providers do not use them.
    usageTrends: event.counts && state.providerInUse === null ? trendsAfterRound(state.usageTrends) : state.usageTrends,
    tokensBefore: sessionTokens(state),
    providerTokens: tokensOfProviders(state),
    threadTokens: {},
  }
}
