import { unreachable } from '../base/errors.ts'
import type { RoundClass } from './outcome.ts'
import type { SessionState } from './state.ts'

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
