import { unreachable } from '../base/errors.ts'
import type { Recorded, SessionEvent } from './events.ts'
import { foldBuild } from './fold-build.ts'
import { foldClaim } from './fold-claim.ts'
import { foldFiles } from './fold-files.ts'
import { foldLifecycle } from './fold-lifecycle.ts'
import { foldRound } from './fold-round.ts'
import type { SessionState } from './state.ts'

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
