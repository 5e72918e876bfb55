import { clipEnd } from '../base/clip.ts'
import { unreachable } from '../base/errors.ts'
import { questionKey } from './ask-person.ts'
import type { Recorded, SessionEvent } from './events.ts'
import { failuresAfter, NO_FAILURES } from './failures.ts'
import {
  afterBroken,
  afterGateOfBuild,
  buildAfterRefusal,
  buildAfterRound,
  buildAtResume,
  buildAtRound,
  buildLetGo,
  firstBuild,
  foldBuild,
  wordsKept,
} from './fold-build.ts'
import {
  accepted,
  alsoChanged,
  claimAtResume,
  endGate,
  endReview,
  reviewsAtResume,
  savepointAfter,
  withoutAgreement,
} from './fold-proof.ts'
import { hasPassed } from './gate.ts'
import { joined, leftByCut, leftByRound, told } from './hand-over.ts'
import { hold, interrupted, leaveOut, released } from './holding.ts'
import { type Item, isWork } from './items.ts'
import {
  memoryNotice,
  personNotice,
  protectedNotice,
  refusalNotice,
  replannedNotice,
  restoredNotice,
  stuckNotice,
} from './notices.ts'
import { NO_STALL, stallAfterRefusal, stallAfterRound } from './stall.ts'
import { type SessionState, sessionTokens } from './state.ts'

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
    case 'round-started':
      return {
        ...released(state, at),
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
    case 'plan-updated':
      return { ...state, plan: event.steps }
    case 'error':
      return event.waitsForNetwork ? { ...state, offlineSince: state.offlineSince ?? at } : state
    case 'winding-down':
      return { ...state, windingDown: event.limit }
    case 'round-ended':
      return endRound(state, event, at)
    case 'waiting':
      return { ...released(state, at), waiting: { until: Date.parse(event.until), since: at, cause: event.cause } }
    case 'wait-ended':
      return endWait(state, event, at)
    case 'stop-asked':
      return { ...state, stopAsked: true }
    case 'paused':
      return hold(state, at)
    case 'held':
      return { ...state, heldSince: state.heldSince ?? at }
    case 'unpaused':
      return { ...released(state, at), pausedAt: null, build: buildLetGo(state.build) }
    case 'interrupt-asked':
      return interrupted(hold(state, at))
    case 'skip-asked':
      return state
    case 'replan-asked':
      return interrupted({ ...hold(alsoSaid(state, event.text), at), replan: joined(state.replan, event.text) })
    case 'replanned':
      return replanned(state, event)
    case 'steered':
      return steered(alsoSaid(state, event.text), event)
    case 'memory-broken':
      return told({ ...state, build: afterBroken(state.build, event) }, memoryNotice(event.problem))
    case 'repository-restored':
      return told(state, restoredNotice(event.paths))
    case 'savepoint':
      return { ...state, savepoint: savepointAfter(state, event) }
    case 'protected-changed':
      return told({ ...state, protectedChanged: alsoChanged(state, event.files) }, protectedNotice(event.files))
    case 'gate-started':
      return { ...state, checking: { kind: 'gate', gate: event.gate, when: event.when, since: at } }
    case 'gate-ended':
      return endGate({ ...state, checking: null, build: afterGateOfBuild(state.build, event) }, event)
    case 'question-asked':
      return { ...state, questions: state.questions + 1, asked: [...state.asked, questionKey(event.text)] }
    case 'plan-refused':
    case 'plan-ready':
    case 'agent-started':
    case 'agent-ended':
    case 'task-judged':
    case 'tasks-judged':
      return foldBuild(state, event, at)
    case 'done-nominated':
      return { ...state, claim: { state: 'nominated', by: event.by, tree: event.tree ?? null, results: [] } }
    case 'review-started':
      return { ...state, checking: { kind: 'review', review: event.review, since: at, heard: state.personSaid } }
    case 'review-ended':
      return endReview(state, event, at)
    case 'done-refused':
      return refuse(state, event)
    case 'done-accepted':
      return { ...state, claim: accepted(state.claim, event) }
    case 'stuck':
      return told({ ...state, stall: { ...state.stall, remedy: event.remedy } }, stuckNotice(event, state.stall.tried))
    case 'session-ended':
      return {
        ...state,
        running: null,
        agents: [],
        ...leftByCut(state),
        pausedAt: null,
        heldSince: null,
        checking: null,
        offlineSince: null,
        windingDown: null,
        waiting: event.outcome.kind === 'interrupted' ? state.waiting : null,
        ended: { outcome: event.outcome, exitCode: event.exitCode, durationMs: event.durationMs },
      }
    case 'machine-slept':
      return afterSleep(state, event.ms)
    case 'model-rerouted':
      return { ...state, modelInUse: event.to }
    case 'turn-continued':
    case 'request-answered':
    case 'warning':
      return state
    default:
      return unreachable(event)
  }
}

type EventOf<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>

function replanned(state: SessionState, { files }: EventOf<'replanned'>): SessionState {
  const next = { ...state, replan: null, failures: NO_FAILURES }
  // A person has looked at it.
  return files.length === 0 ? next : told({ ...next, stall: NO_STALL }, replannedNotice())
}

function endWait(state: SessionState, { reason }: EventOf<'wait-ended'>, at: number): SessionState {
  // A wait that was broken off goes on when the session does.
  if (reason === 'stopped') return state
  return {
    ...afterSleep(state, at - (state.waiting?.until ?? at)),
    waiting: null,
    heldSince: state.pausedAt === null ? null : at,
  }
}

function refuse(state: SessionState, event: EventOf<'done-refused'>): SessionState {
  const refused: SessionState = {
    ...state,
    claim: { state: 'refused', reason: event.reason, detail: event.detail },
    build: buildAfterRefusal(state.build, event),
    stall: isJudged(state.last)
      ? stallAfterRefusal(state.stall, event.round, samenessOf(event, state.claim))
      : state.stall,
  }
  return told(refused, refusalNotice(event.detail))
}

/** Whether a refused claim of this round says anything: not if it used up none of the limit, or was broken off. */
function isJudged(round: SessionState['last']): boolean {
  return round === null || (round.counts && round.outcome.class !== 'interrupted')
}

/** Time for which the machine slept (ms) is neither work nor a failure that goes on; a minute more or less is none. */
function afterSleep(state: SessionState, ms: number): SessionState {
  return ms > 60_000 ? leaveOut(state, ms) : state
}

/** What comes from the model shows that the network is there. */
function online(state: SessionState): SessionState {
  return state.offlineSince === null ? state : { ...state, offlineSince: null }
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
    ...leftByCut(state),
  }
}

/** `isOwn`: whether it is of the round's own agent, and not of one that this gave a task. */
function workOn(state: SessionState, item: Item, isOwn: boolean): SessionState {
  const { running } = state
  if (running === null || item.kind === 'user-message') return state
  if (!isOwn) return { ...state, running: { ...running, hasWorked: running.hasWorked || isWork(item) } }
  const durationMs = 'durationMs' in item ? (item.durationMs ?? 0) : 0
  const lastWords = item.kind === 'agent-message' ? clipEnd(item.text, wordsKept(running)) : running.lastWords
  const hasWorked = running.hasWorked || isWork(item)
  return { ...state, running: { ...running, hasWorked, commandMs: running.commandMs + durationMs, lastWords } }
}

function endRound(state: SessionState, event: EventOf<'round-ended'>, at: number): SessionState {
  const { running } = state
  return {
    ...state,
    ...leftByRound(state, event),
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

function steered(state: SessionState, event: EventOf<'steered'>): SessionState {
  const notice = personNotice(event.text)
  if (!event.delivered) return told(state, notice)
  const { running } = state
  return running ? { ...state, running: { ...running, steered: [...running.steered, notice] } } : state
}

function alsoSaid(state: SessionState, text: string): SessionState {
  return {
    ...state,
    personSaid: [...state.personSaid, text].slice(-MOST_SAID),
    reviews: withoutAgreement(state.reviews),
  }
}

const MOST_SAID = 20

/** By what the same refusal is known: what gates print may differ from run to run, though nothing has got better. */
function samenessOf({ reason, detail }: EventOf<'done-refused'>, claim: SessionState['claim']): string {
  if (reason !== 'gate-failed' || claim.state !== 'nominated') return `${reason} ${detail}`
  const failed = claim.results.filter(({ status }) => !hasPassed(status))
  return `${reason} ${failed.map(({ gate, status, exitCode }) => `${gate} ${status} ${exitCode}`).join(' ')}`
}
