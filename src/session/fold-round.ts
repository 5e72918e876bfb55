import { clipEnd } from '../base/clip.ts'
import { unreachable } from '../base/errors.ts'
import { questionKey } from './ask-person.ts'
import type { EventOf } from './events.ts'
import { failuresAfter } from './failures.ts'
import { buildAfterRound, buildAtRound, wordsKept } from './fold-build.ts'
import { leftByRound, told } from './hand-over.ts'
import { released } from './holding.ts'
import { type Item, isWork } from './items.ts'
import { afterSleep } from './machine-slept.ts'
import { personNotice } from './notices.ts'
import { alsoSaid } from './person-said.ts'
import type { RoundEvent } from './round-events.ts'
import { sessionTokens } from './session-tokens.ts'
import { stallAfterRound } from './stall.ts'
import type { SessionState } from './state.ts'

/** The state after one more event of a round. Pure. */
export function foldRound(state: SessionState, event: RoundEvent, at: number): SessionState {
  switch (event.type) {
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
      return steered(alsoSaid(state, event.text), event)
    case 'warning':
      return state
    case 'error':
      return event.waitsForNetwork ? { ...state, offlineSince: state.offlineSince ?? at } : state
    case 'turn-continued':
      return state
    case 'winding-down':
      return { ...state, windingDown: event.limit }
    case 'machine-slept':
      return afterSleep(state, event.ms)
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
  const lastWords = item.kind === 'agent-message' ? clipEnd(item.text, wordsKept(running)) : running.lastWords
  const hasWorked = running.hasWorked || isWork(item)
  return { ...state, running: { ...running, hasWorked, commandMs: running.commandMs + durationMs, lastWords } }
}

function steered(state: SessionState, event: EventOf<'steered'>): SessionState {
  const notice = personNotice(event.text)
  if (!event.delivered) return told(state, notice)
  const { running } = state
  return running ? { ...state, running: { ...running, steered: [...running.steered, notice] } } : state
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
