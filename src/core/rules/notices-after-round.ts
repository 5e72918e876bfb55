import { unreachable } from '../../base/errors.ts'
import type { EventOf } from '../events/events.ts'
import type { RoundClass } from '../events/outcome.ts'
import type { SessionState } from '../state/state.ts'
import { cutOffNotice, interruptedNotice, type Notice, outcomeNotice } from './notices.ts'

type RoundEnded = EventOf<'round-ended'>

/** What a round that has ended leaves to the next one to know. */
export function leftByRound(state: SessionState, event: RoundEnded): Partial<Pick<SessionState, 'notices' | 'replan'>> {
  return isOfPlan(state.running) ? afterPlanChange(state, event) : afterWork(state, event)
}

/** A round that did not come to its end is told of to the next one of its kind. */
export function leftByCut(state: SessionState): Pick<SessionState, 'notices' | 'replan'> {
  const { running, notices, replan } = state
  if (running === null) return { notices, replan }
  if (isOfPlan(running)) return { notices, replan: withSteered(state) }
  return { notices: eachOnce([...notices, ...running.steered, cutOffNotice()]), replan }
}

/** The change of plan with what its round was told meanwhile: the next round that tries it has to know. */
function withSteered({ replan, running }: SessionState): string | null {
  return (running?.steered ?? []).map(({ text }) => text).reduce<string | null>(joined, replan)
}

/** The session when the next round is to be told this, too. */
export function told(state: SessionState, notice: Notice): SessionState {
  return state.notices.some(({ text }) => text === notice.text)
    ? state
    : { ...state, notices: [...state.notices, notice] }
}

/** Without those that say what one before them says. */
function eachOnce(notices: readonly Notice[]): Notice[] {
  const texts = new Set<string>()
  return notices.filter(({ text }) => !texts.has(text) && texts.add(text))
}

/** What a person asked for, and then asked for besides. */
export function joined(before: string | null, text: string): string {
  return before === null ? text : `${before}\n\n${text}`
}

function isOfPlan(running: SessionState['running']): boolean {
  return running !== null && running.replan !== null
}

/** What the next round has to know after one that worked on the goal. */
function afterWork(state: SessionState, { outcome, counts }: RoundEnded): Pick<SessionState, 'notices'> {
  const { told: toldBefore = 0, steered = [], isInterrupted = false } = state.running ?? {}
  const isCutShort = isInterrupted && outcome.class === 'interrupted'
  const notices = counts && !isCutShort ? state.notices.slice(toldBefore) : eachOnce([...state.notices, ...steered])
  // How a summary ended is nothing to those who work.
  if (state.running?.part === 'summary') return { notices }
  const notice = isCutShort && counts ? interruptedNotice() : outcomeNotice(outcome)
  return notice === null ? { notices } : { notices: told({ ...state, notices }, notice).notices }
}

/** What a round was told that was to change the plan, and how it went, is nothing to the rounds that work. */
function afterPlanChange(state: SessionState, { outcome }: RoundEnded): Pick<SessionState, 'replan'> {
  return endsPlanChange(state, outcome.class) ? { replan: state.replan } : { replan: withSteered(state) }
}

/** Whether the change of plan is over when the round that runs ends so; else it is to be tried again. Pure. */
export function endsPlanChange(
  { replan, running }: Pick<SessionState, 'replan' | 'running'>,
  end: RoundClass,
): boolean {
  // Asked for more meanwhile: that is one change with this.
  if (running === null || running.replan !== replan) return false
  return running.isInterrupted || isFinal(end)
}

/** Whether another try would not end better. */
function isFinal(end: RoundClass): boolean {
  switch (end) {
    case 'worked':
    case 'refused':
    case 'context-full':
      return true
    case 'interrupted':
    case 'window':
    case 'throttle':
    case 'network':
    case 'quota':
    case 'auth':
    case 'config':
    case 'silent':
    case 'crashed':
      return false
    default:
      return unreachable(end)
  }
}
