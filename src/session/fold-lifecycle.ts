import { unreachable } from '../base/errors.ts'
import type { EventOf } from './events.ts'
import { NO_FAILURES } from './failures.ts'
import { buildAtCut, buildAtResume, buildLetGo, firstBuild } from './fold-build.ts'
import { claimAtResume, reviewsAtResume } from './fold-proof.ts'
import { joined, leftByCut, told } from './hand-over.ts'
import { hold, interrupted, released } from './holding.ts'
import type { LifecycleEvent } from './lifecycle-events.ts'
import { afterSleep } from './machine-slept.ts'
import { replannedNotice, stuckNotice } from './notices.ts'
import { alsoSaid } from './person-said.ts'
import { sessionTokens } from './session-tokens.ts'
import { NO_STALL } from './stall.ts'
import type { SessionState } from './state.ts'

/** The state after one more event of the session as a whole. Pure. */
export function foldLifecycle(state: SessionState, event: LifecycleEvent, at: number): SessionState {
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
    case 'stuck':
      return told({ ...state, stall: { ...state.stall, remedy: event.remedy } }, stuckNotice(event, state.stall.tried))
    case 'session-ended':
      return {
        ...state,
        running: null,
        agents: [],
        build: buildAtCut(state),
        ...leftByCut(state),
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
    ...leftByCut(state),
  }
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

function replanned(state: SessionState, { files }: EventOf<'replanned'>): SessionState {
  const next = { ...state, replan: null, failures: NO_FAILURES }
  // A person has looked at it.
  return files.length === 0 ? next : told({ ...next, stall: NO_STALL }, replannedNotice())
}
