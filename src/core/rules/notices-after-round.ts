import type { EventOf } from '../events/events.ts'
import type { Item } from '../events/items.ts'
import type { RoundClass } from '../events/outcome.ts'
import { partOf, type SessionState } from '../state/state.ts'
import {
  commandCutOffNotice,
  cutOffNotice,
  interruptedNotice,
  leftRunningNotice,
  type Notice,
  outcomeNotice,
  personNotice,
} from './notices.ts'

type RoundEnded = EventOf<'round-ended'>

/** Returns the notices or plan change for the next round, after a round ended. Pure. */
export function noticesAfterRound(
  state: SessionState,
  event: RoundEnded,
): Partial<Pick<SessionState, 'notices' | 'replan'>> {
  return isOfPlan(state.running) ? afterPlanChange(state, event) : afterWork(state, event)
}

/** Returns notices and plan change after a round was cut off; the next round of its kind gets them. Pure. */
export function noticesAfterCutOff(state: SessionState): Pick<SessionState, 'notices' | 'replan'> {
  const { running, notices, replan } = state
  if (running === null) return { notices, replan }
  if (isOfPlan(running)) return { notices, replan: withSteered(state) }
  return { notices: eachOnce([...notices, ...running.steered, cutOffNotice()]), replan }
}

/** Returns the plan change with the person's messages to its round, for the retry. Null: none. */
function withSteered({ replan, running }: SessionState): string | null {
  return (running?.steered ?? []).map(({ text }) => text).reduce<string | null>(appendRequest, replan)
}

/** Adds a notice for the next round, unless it is already there. Pure. */
export function withNotice(state: SessionState, notice: Notice): SessionState {
  return state.notices.some(({ text }) => text === notice.text)
    ? state
    : { ...state, notices: [...state.notices, notice] }
}

/** Adds a notice of a command that ended with its round, at most ten. Not for rounds that only read. Pure. */
export function withCommandCutOff(state: SessionState, item: Item): SessionState {
  const { running, kind } = state
  if (item.kind !== 'command' || running === null || partOf(kind, running.part).free) return state
  const notice = commandCutOffNotice(item.command)
  const lead = notice.text.slice(0, notice.text.indexOf('`'))
  const isMuch = state.notices.filter(({ text }) => text.startsWith(lead)).length >= MOST_CUT_OFF
  return isMuch ? state : withNotice(state, notice)
}

const MOST_CUT_OFF = 10

/** Adds a notice of leftover processes that were ended, from a warning. Pure. */
export function withEndedCommands(state: SessionState, { ended }: EventOf<'warning'>): SessionState {
  return ended === undefined ? state : withNotice(state, leftRunningNotice(ended))
}

/**
 * Returns the session after a person's message. If no turn accepted it, the next round gets it as a notice; else it is
 * repeated only if its round does not count. Pure.
 */
export function withSteering(state: SessionState, event: EventOf<'steered'>): SessionState {
  const notice = personNotice(event.text, event)
  if (!event.delivered) return withNotice(state, notice)
  const { running } = state
  return running ? { ...state, running: { ...running, steered: [...running.steered, notice] } } : state
}

/** Removes notices with repeated texts. */
function eachOnce(notices: readonly Notice[]): Notice[] {
  const texts = new Set<string>()
  return notices.filter(({ text }) => !texts.has(text) && texts.add(text))
}

/** Appends a request to a plan change. `before` null: none yet. */
export function appendRequest(before: string | null, text: string): string {
  return before === null ? text : `${before}\n\n${text}`
}

function isOfPlan(running: SessionState['running']): boolean {
  return running !== null && running.replan !== null
}

/** Returns the notices after a round that worked on the goal. */
function afterWork(state: SessionState, { outcome, counts }: RoundEnded): Pick<SessionState, 'notices'> {
  const { told: toldBefore = 0, steered = [], isInterrupted = false } = state.running ?? {}
  const isCutShort = isInterrupted && outcome.class === 'interrupted'
  const notices = counts && !isCutShort ? state.notices.slice(toldBefore) : eachOnce([...state.notices, ...steered])
  // Working rounds need not know how a read-only round ended.
  if (state.running !== null && partOf(state.kind, state.running.part).free) return { notices }
  const notice = isCutShort && counts ? interruptedNotice() : outcomeNotice(outcome)
  return notice === null ? { notices } : { notices: withNotice({ ...state, notices }, notice).notices }
}

/** Returns the plan change after its round. Its notices are not for rounds that work on the goal. */
function afterPlanChange(state: SessionState, { outcome }: RoundEnded): Pick<SessionState, 'replan'> {
  return endsPlanChange(state, outcome.class) ? { replan: state.replan } : { replan: withSteered(state) }
}

/** Returns true if the plan change ends with a round of this class; false: it is retried. Pure. */
export function endsPlanChange(
  { replan, running }: Pick<SessionState, 'replan' | 'running'>,
  end: RoundClass,
): boolean {
  // A person asked for more meanwhile; both make one change.
  if (running === null || running.replan !== replan) return false
  return running.isInterrupted || FINAL.has(end)
}

/** Ends that a retry would not improve. */
const FINAL: ReadonlySet<RoundClass> = new Set(['worked', 'refused', 'context-full'])
