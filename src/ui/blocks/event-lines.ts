import { unreachable } from '../../base/errors.ts'
import type { Recorded, RecordedOf } from '../../session/events.ts'
import type { SessionState } from '../../session/state.ts'
import { widthOf } from '../cells.ts'
import { describeEvent } from '../describe-event.ts'
import { describeProof } from '../describe-proof.ts'
import { formatTime } from '../format-time.ts'
import { KEY_HINTS } from '../hints.ts'
import { isReviewAnswer, isReviewing } from '../reviewer.ts'
import { isToldOfAgent } from '../words-for-build.ts'
import { agentEndLines, agentItemLines, agentStartLines } from './agent-blocks.ts'
import { askedLines } from './asked-lines.ts'
import type { BlockOptions } from './block-options.ts'
import { checklistLines } from './checklist-lines.ts'
import { describedLines } from './described-lines.ts'
import { gateLines } from './gate-lines.ts'
import { itemLines } from './item-lines.ts'
import { personLines } from './person-lines.ts'
import { planLines } from './plan-lines.ts'
import { replanLines } from './replan-lines.ts'
import { reviewLines } from './review-lines.ts'
import { reviewerLines } from './reviewer-lines.ts'
import { roundLines } from './round-lines.ts'
import { createdCard, endedCard } from './session-cards.ts'

/**
 * An event as finished lines for the terminal, each at most `columns` cells wide; none for what a person need not see.
 * In the scrollback a blank line parts it from what is before; in full its local time stands in front.
 * @param state the session after the event
 */
export function eventLines(event: Recorded, state: SessionState, options: BlockOptions): string[] {
  if (options.full) return timedLines(event, state, options)
  const lines = drawn(event, state, options)
  return lines.length === 0 || isOneOfMany(event) ? lines : ['', ...lines]
}

/** Gates that pass, one after the other, are a list; so are tasks, and what agents beside each other do. */
function isOneOfMany(event: Recorded): boolean {
  if (event.type === 'gate-ended') return event.status === 'passed' && event.when === 'claim'
  if (event.type === 'item-completed') return event.instance !== undefined
  return event.type === 'agent-started' || event.type === 'task-judged'
}

// Narrower than this, the time has a line of its own.
const LEAST_COLUMNS_WITH_TIME = 60

function timedLines(event: Recorded, state: SessionState, options: BlockOptions): string[] {
  const time = options.theme.paint('dim', formatTime(Date.parse(event.at)))
  if (options.columns < LEAST_COLUMNS_WITH_TIME) {
    const lines = drawn(event, state, options)
    return lines.length === 0 || options.columns < widthOf(time) ? lines : [time, ...lines]
  }
  const gutter = ' '.repeat(widthOf(time) + 2)
  const lines = drawn(event, state, { ...options, columns: options.columns - gutter.length })
  return lines.map((line, i) => (i === 0 ? `${time}  ${line}` : line && gutter + line))
}

function drawn(event: Recorded, state: SessionState, options: BlockOptions): string[] {
  switch (event.type) {
    case 'session-created':
      return createdCard(event, options)
    case 'session-ended':
      return endedCard(event, state, options)
    case 'round-started':
    case 'round-ended':
      return roundLines(event, state, options)
    case 'item-completed':
      return drawnItem(event, state, options)
    case 'gate-ended':
      return gateLines(event, state, options)
    case 'review-ended':
      return reviewLines(event, options)
    case 'question-asked':
      return askedLines(describeProof(event, state, KEY_HINTS), options)
    case 'plan-updated':
      return checklistLines(event, options)
    case 'replanned':
      return replanLines(event, describeEvent(event, state, KEY_HINTS), options)
    case 'steered':
    case 'replan-asked':
      return personLines(event, state, options)
    case 'agent-started':
      return agentStartLines(event, options)
    case 'agent-ended':
      return agentEndLines(event, options)
    case 'plan-ready':
      return planLines(event, options)
    case 'plan-refused':
    case 'task-judged':
    case 'session-resumed':
    case 'keep-awake':
    case 'model-rerouted':
    case 'request-answered':
    case 'warning':
    case 'error':
    case 'turn-continued':
    case 'winding-down':
    case 'machine-slept':
    case 'waiting':
    case 'wait-ended':
    case 'stop-asked':
    case 'interrupt-asked':
    case 'skip-asked':
    case 'paused':
    case 'held':
    case 'unpaused':
    case 'stuck':
    case 'memory-broken':
    case 'repository-restored':
    case 'protected-changed':
    case 'review-started':
    case 'done-nominated':
    case 'done-refused':
    case 'done-accepted':
      return describedLines(describeEvent(event, state, KEY_HINTS), options)
    // The header shows what they say, as long as it is so.
    case 'turn-started':
    case 'usage':
    case 'limits':
    case 'savepoint':
    case 'gate-started':
    case 'tasks-judged':
      return []
    default:
      return unreachable(event)
  }
}

/** What codex did, in a round or as the reviewer of one. The reviewer's answer is only shown in full as it was written. */
function drawnItem(event: RecordedOf<'item-completed'>, state: SessionState, options: BlockOptions): string[] {
  const { item, session, instance } = event
  if (isToldOfAgent(event, state)) return []
  if (instance !== undefined) return agentItemLines(event, instance, state, options)
  const draw = (columns: number) => itemLines(item, { session, directory: state.directory }, { ...options, columns })
  if (!isReviewing(state)) return draw(options.columns)
  if (!options.full && item.kind === 'agent-message' && isReviewAnswer(item.text)) return []
  return reviewerLines(options, draw)
}
