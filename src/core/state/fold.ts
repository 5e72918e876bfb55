import { unreachable } from '../../base/errors.ts'
import { clipEnd } from '../../base/text.ts'
import { questionKey } from '../contracts/tools.ts'
import type { EventOf, FileEvent, LifecycleEvent, Recorded, RoundEvent, SessionEvent } from '../events/events.ts'
import { type Item, isWork } from '../events/items.ts'
import {
  memoryNotice,
  personNotice,
  protectedNotice,
  replannedNotice,
  restoredNotice,
  stuckNotice,
} from '../rules/notices.ts'
import { appendRequest, noticesAfterCutOff, noticesAfterRound, withNotice } from '../rules/notices-after-round.ts'
import { NO_STALL, stallAfterRound } from '../rules/stall.ts'
import {
  claimAtResume,
  foldClaim,
  protectedChangedAfter,
  reviewsAtResume,
  savepointAfter,
  withPersonSaid,
} from './fold-claim.ts'
import {
  buildAfterBrokenMemory,
  buildAfterRound,
  buildAfterUnpause,
  buildAtCut,
  buildAtResume,
  buildAtRound,
  firstBuild,
  foldBuild,
  lastWordsLimit,
} from './fold-plan.ts'
import {
  discountSleep,
  failuresAfter,
  hold,
  interruptRound,
  NO_FAILURES,
  releaseHold,
  type SessionState,
  sessionTokens,
} from './state.ts'

/** The state after one more event. Pure: no clock, file or process. */
export function fold(state: SessionState, event: Recorded): SessionState {
  const at = Date.parse(event.at)
  const next = apply(state, event, at)
  return next === state
    ? { ...state, events: state.events + 1, updatedAt: at }
    : { ...next, events: state.events + 1, updatedAt: at }
}

function apply(state: SessionState, event: SessionEvent, at: number): SessionState {
  switch (event.type) {
    case 'session-created':
    case 'session-resumed':
    case 'keep-awake':
    case 'waiting':
    case 'wait-ended':
    case 'stop-asked':
    case 'paused':
    case 'held':
    case 'unpaused':
    case 'interrupt-asked':
    case 'skip-asked':
    case 'replan-asked':
    case 'replanned':
    case 'stuck':
    case 'session-ended':
      return foldLifecycle(state, event, at)
    case 'round-started':
    case 'turn-started':
    case 'item-completed':
    case 'plan-updated':
    case 'usage':
    case 'limits':
    case 'model-rerouted':
    case 'request-answered':
    case 'question-asked':
    case 'steered':
    case 'warning':
    case 'error':
    case 'turn-continued':
    case 'winding-down':
    case 'machine-slept':
    case 'round-ended':
      return foldRound(state, event, at)
    case 'memory-broken':
    case 'repository-restored':
    case 'savepoint':
    case 'settings-changed':
    case 'protected-changed':
      return foldFiles(state, event)
    case 'plan-refused':
    case 'plan-ready':
    case 'agent-started':
    case 'agent-ended':
    case 'task-judged':
    case 'tasks-judged':
      return foldBuild(state, event, at)
    case 'gate-started':
    case 'gate-ended':
    case 'done-nominated':
    case 'review-started':
    case 'review-ended':
    case 'done-refused':
    case 'done-accepted':
      return foldClaim(state, event, at)
    default:
      return unreachable(event)
  }
}

/** The state after one more event of the files. Pure. */
function foldFiles(state: SessionState, event: FileEvent): SessionState {
  switch (event.type) {
    case 'memory-broken':
      return withNotice({ ...state, build: buildAfterBrokenMemory(state.build, event) }, memoryNotice(event.problem))
    case 'repository-restored':
      return withNotice(state, restoredNotice(event.paths))
    case 'savepoint':
      return { ...state, savepoint: savepointAfter(state, event) }
    case 'settings-changed':
      return state
    case 'protected-changed':
      return withNotice(
        { ...state, protectedChanged: protectedChangedAfter(state, event.files) },
        protectedNotice(event.files),
      )
    default:
      return unreachable(event)
  }
}

/** The state after one more event of the session as a whole. Pure. */
function foldLifecycle(state: SessionState, event: LifecycleEvent, at: number): SessionState {
  switch (event.type) {
    case 'session-created':
      return {
        ...state,
        goal: event.goal,
        template: event.template,
        directory: event.directory,
        queued: event.queued,
        limits: event.limits,
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
        build: firstBuild(event),
        createdAt: at,
        beganAt: at,
      }
    case 'session-resumed':
      return resume(state, event, at)
    case 'keep-awake':
      return { ...state, keptAwake: event.by }
    case 'waiting':
      return {
        ...releaseHold(state, at),
        waiting: { until: Date.parse(event.until), since: at, reason: event.reason, cause: event.cause },
      }
    case 'wait-ended':
      return endWait(state, event, at)
    case 'stop-asked':
      return { ...state, stopAsked: true }
    case 'paused':
      return hold(state, at)
    case 'held':
      return { ...state, heldSince: state.heldSince ?? at }
    case 'unpaused':
      return { ...releaseHold(state, at), pausedAt: null, build: buildAfterUnpause(state.build) }
    case 'interrupt-asked':
      return interruptRound(hold(state, at))
    case 'skip-asked':
      return state
    case 'replan-asked':
      return interruptRound({
        ...hold(withPersonSaid(state, event.text), at),
        replan: appendRequest(state.replan, event.text),
      })
    case 'replanned':
      return replanned(state, event)
    case 'stuck':
      return withNotice(
        { ...state, stall: { ...state.stall, remedy: event.remedy } },
        stuckNotice(event, state.stall.tried),
      )
    case 'session-ended':
      return {
        ...state,
        running: null,
        agents: [],
        build: buildAtCut(state),
        ...noticesAfterCutOff(state),
        pausedAt: null,
        heldSince: null,
        checking: null,
        offlineSince: null,
        windingDown: null,
        waiting: event.outcome.kind === 'interrupted' ? state.waiting : null,
        ended: { outcome: event.outcome, exitCode: event.exitCode, durationMs: event.durationMs },
      }
    default:
      return unreachable(event)
  }
}

function resume(state: SessionState, event: EventOf<'session-resumed'>, at: number): SessionState {
  const { ended } = state
  const workedUntil = state.heldSince ?? state.updatedAt
  return {
    ...state,
    limits: event.limits,
    said: event.said,
    host: event.host,
    beganAt: at,
    workedMs: ended?.durationMs ?? state.workedMs + Math.max(0, workedUntil - state.beganAt),
    gates: event.gates ?? state.gates,
    review: event.review === undefined ? state.review : event.review,
    checking: null,
    running: null,
    agents: [],
    build: buildAtResume(state),
    ended: null,
    pausedAt: null,
    heldSince: null,
    stopAsked: false,
    offlineSince: null,
    windingDown: null,
    tokensBefore: sessionTokens(state),
    threadTokens: {},
    failures: NO_FAILURES,
    // A person has looked at it since it ended.
    stall: ended === null ? state.stall : NO_STALL,
    claim: claimAtResume(state),
    reviews: reviewsAtResume(state),
    ...noticesAfterCutOff(state),
  }
}

function endWait(state: SessionState, { reason }: EventOf<'wait-ended'>, at: number): SessionState {
  // A wait that was broken off goes on when the session does.
  if (reason === 'stopped') return state
  return {
    ...discountSleep(state, at - (state.waiting?.until ?? at)),
    waiting: null,
    heldSince: state.pausedAt === null ? null : at,
  }
}

function replanned(state: SessionState, { files }: EventOf<'replanned'>): SessionState {
  const next = { ...state, replan: null, failures: NO_FAILURES }
  // A person has looked at it.
  return files.length === 0 ? next : withNotice({ ...next, stall: NO_STALL }, replannedNotice())
}

/** The state after one more event of a round. Pure. */
function foldRound(state: SessionState, event: RoundEvent, at: number): SessionState {
  switch (event.type) {
    case 'round-started':
      return {
        ...releaseHold(state, at),
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
        },
        agents: [],
        build: buildAtRound(state.build, event.part ?? null),
        claim: { state: 'none' },
        checking: null,
        plan: [],
        waiting: null,
      }
    case 'turn-started':
      return online({
        ...state,
        running: state.running && { ...state.running, thread: event.thread, turn: event.turn },
        modelInUse: event.model ?? state.modelInUse,
        effortInUse: event.effort === undefined ? state.effortInUse : event.effort,
      })
    case 'item-completed':
      return online(workOn(state, event.item, event.instance === undefined))
    case 'plan-updated':
      return { ...state, plan: event.steps }
    case 'usage':
      return online({
        ...state,
        threadTokens: { ...state.threadTokens, [event.thread]: event.total },
        ...(event.thread === state.running?.thread
          ? { contextWindow: event.contextWindow, contextTokens: event.last.total }
          : {}),
      })
    case 'limits':
      return {
        ...state,
        primaryWindow: event.primary,
        secondaryWindow: event.secondary,
        hasCredits: event.credits ?? false,
      }
    case 'model-rerouted':
      return { ...state, modelInUse: event.to }
    case 'request-answered':
      return state
    case 'question-asked':
      return { ...state, questions: state.questions + 1, asked: [...state.asked, questionKey(event.text)] }
    case 'steered':
      return steered(withPersonSaid(state, event.text), event)
    case 'warning':
      return state
    case 'error':
      return event.waitsForNetwork ? { ...state, offlineSince: state.offlineSince ?? at } : state
    case 'turn-continued':
      return state
    case 'winding-down':
      return { ...state, windingDown: event.limit }
    case 'machine-slept':
      return discountSleep(state, event.ms)
    case 'round-ended':
      return endRound(state, event, at)
    default:
      return unreachable(event)
  }
}

/** What comes from the model shows that the network is there. */
function online(state: SessionState): SessionState {
  return state.offlineSince === null ? state : { ...state, offlineSince: null }
}

/** `isOwn`: whether it is of the round's own agent, and not of one that this gave a task. */
function workOn(state: SessionState, item: Item, isOwn: boolean): SessionState {
  const { running } = state
  if (running === null || item.kind === 'user-message') return state
  if (!isOwn) return { ...state, running: { ...running, hasWorked: running.hasWorked || isWork(item) } }
  const durationMs = 'durationMs' in item ? (item.durationMs ?? 0) : 0
  const lastWords = item.kind === 'agent-message' ? clipEnd(item.text, lastWordsLimit(running)) : running.lastWords
  const hasWorked = running.hasWorked || isWork(item)
  return { ...state, running: { ...running, hasWorked, commandMs: running.commandMs + durationMs, lastWords } }
}

function steered(state: SessionState, event: EventOf<'steered'>): SessionState {
  const notice = personNotice(event.text)
  if (!event.delivered) return withNotice(state, notice)
  const { running } = state
  return running ? { ...state, running: { ...running, steered: [...running.steered, notice] } } : state
}

function endRound(state: SessionState, event: EventOf<'round-ended'>, at: number): SessionState {
  const { running } = state
  return {
    ...state,
    ...noticesAfterRound(state, event),
    running: null,
    agents: [],
    build: buildAfterRound(state, event),
    last: { ...event, part: running?.part ?? null },
    roundsUsed: event.counts ? state.roundsUsed + 1 : state.roundsUsed,
    failures: failuresAfter(state.failures, event, running?.hasWorked ?? false, at),
    stall: running === null ? state.stall : stallAfterRound(state.stall, event, running),
    heldSince: state.pausedAt === null ? null : at,
    offlineSince: null,
    windingDown: null,
    tokensBefore: sessionTokens(state),
    threadTokens: {},
  }
}
