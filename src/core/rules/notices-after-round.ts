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

/** The notices, or the change of plan, that the next round gets after a round has ended. Pure. */
export function noticesAfterRound(
  state: SessionState,
  event: RoundEnded,
): Partial<Pick<SessionState, 'notices' | 'replan'>> {
  return isOfPlan(state.running) ? afterPlanChange(state, event) : afterWork(state, event)
}

/** The notices and the change of plan when the running round was cut off before its end: the next round of its kind is told so. Pure. */
export function noticesAfterCutOff(state: SessionState): Pick<SessionState, 'notices' | 'replan'> {
  const { running, notices, replan } = state
  if (running === null) return { notices, replan }
  if (isOfPlan(running)) return { notices, replan: withSteered(state) }
  return { notices: eachOnce([...notices, ...running.steered, cutOffNotice()]), replan }
}

/** The change of plan with what a person said to its round: the next round that tries it is told that, too. Null if there is none. */
function withSteered({ replan, running }: SessionState): string | null {
  return (running?.steered ?? []).map(({ text }) => text).reduce<string | null>(appendRequest, replan)
}

/** The session with one more notice for the next round; one that is there already is not added. Pure. */
export function withNotice(state: SessionState, notice: Notice): SessionState {
  return state.notices.some(({ text }) => text === notice.text)
    ? state
    : { ...state, notices: [...state.notices, notice] }
}

/** The session when a command ends with its round: the next round is told, of the first ten. Not after a round that only looks. Pure. */
export function withCommandCutOff(state: SessionState, item: Item): SessionState {
  const { running, kind } = state
  if (item.kind !== 'command' || running === null || partOf(kind, running.part).free) return state
  const notice = commandCutOffNotice(item.command)
  const lead = notice.text.slice(0, notice.text.indexOf('`'))
  const isMuch = state.notices.filter(({ text }) => text.startsWith(lead)).length >= MOST_CUT_OFF
  return isMuch ? state : withNotice(state, notice)
}

const MOST_CUT_OFF = 10

/** The session after a warning: of what was ended that the round had left running, the next round is told. Pure. */
export function withEndedCommands(state: SessionState, { ended }: EventOf<'warning'>): SessionState {
  return ended === undefined ? state : withNotice(state, leftRunningNotice(ended))
}

/**
 * The session after a person has said something: what no turn took is a notice for the next round; what one took is told
 * again if its round does not count. Pure.
 */
export function withSteering(state: SessionState, event: EventOf<'steered'>): SessionState {
  const notice = personNotice(event.text, event)
  if (!event.delivered) return withNotice(state, notice)
  const { running } = state
  return running ? { ...state, running: { ...running, steered: [...running.steered, notice] } } : state
}

/** The notices without repeated texts. */
function eachOnce(notices: readonly Notice[]): Notice[] {
  const texts = new Set<string>()
  return notices.filter(({ text }) => !texts.has(text) && texts.add(text))
}

/** A change of plan with one more request in it. `before`: null if there is none yet. */
export function appendRequest(before: string | null, text: string): string {
  return before === null ? text : `${before}\n\n${text}`
}

function isOfPlan(running: SessionState['running']): boolean {
  return running !== null && running.replan !== null
}

/** The notices after a round that worked on the goal. */
function afterWork(state: SessionState, { outcome, counts }: RoundEnded): Pick<SessionState, 'notices'> {
  const { told: toldBefore = 0, steered = [], isInterrupted = false } = state.running ?? {}
  const isCutShort = isInterrupted && outcome.class === 'interrupted'
  const notices = counts && !isCutShort ? state.notices.slice(toldBefore) : eachOnce([...state.notices, ...steered])
  // How a round ended that only looks is nothing to those who work.
  if (state.running !== null && partOf(state.kind, state.running.part).free) return { notices }
  const notice = isCutShort && counts ? interruptedNotice() : outcomeNotice(outcome)
  return notice === null ? { notices } : { notices: withNotice({ ...state, notices }, notice).notices }
}

/** The change of plan after its round. Its notices are not for the rounds that work on the goal. */
function afterPlanChange(state: SessionState, { outcome }: RoundEnded): Pick<SessionState, 'replan'> {
  return endsPlanChange(state, outcome.class) ? { replan: state.replan } : { replan: withSteered(state) }
}

/** True if the change of plan is over when the running round ends with this class; false if it is tried again. Pure. */
export function endsPlanChange(
  { replan, running }: Pick<SessionState, 'replan' | 'running'>,
  end: RoundClass,
): boolean {
  // A person has asked for more meanwhile, which makes one change with this.
  if (running === null || running.replan !== replan) return false
  return running.isInterrupted || FINAL.has(end)
}

/** Ends that another try would not better. */
const FINAL: ReadonlySet<RoundClass> = new Set(['worked', 'refused', 'context-full'])
