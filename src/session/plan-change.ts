import type { Redactor } from '../base/redactor.ts'
import type { MemorySnapshot, MemoryTexts } from '../workspace/memory.ts'
import { endsPlanChange } from './ends-plan-change.ts'
import type { RoundClass } from './outcome.ts'
import { planDiff } from './plan-diff.ts'
import type { SessionLog } from './session-log.ts'
import type { SessionState } from './state.ts'

/** After so many rounds in a row that worked and then fell silent or crashed, it is given up. */
const MOST_BROKEN_OFF = 3

/** The change of plan that a person asked for, from the first round that tries it to what came of it. */
export class PlanChange {
  readonly #log: SessionLog
  readonly #redact: Redactor['text']
  /** The files before the first try. */
  #before: MemoryTexts | null = null
  #brokenOff = 0

  constructor(log: SessionLog, redact: Redactor['text']) {
    this.#log = log
    this.#redact = redact
  }

  /** A round starts that is to make it. */
  begin(memory: MemorySnapshot): void {
    this.#before ??= memory.texts
  }

  /**
   * That round has ended, and left the files so: journals what changed, unless it is to be tried again.
   * @param state the session just before the round ended
   */
  end(end: RoundClass, memory: MemorySnapshot, state: SessionState): void {
    if (this.#before === null) return
    const round = state.running?.round ?? 0
    this.#brokenOff = isBrokenOff(end, state) ? this.#brokenOff + 1 : 0
    const isGivenUp = this.#brokenOff >= MOST_BROKEN_OFF
    if (!isGivenUp && !endsPlanChange(state, end)) return
    if (isGivenUp) this.#log.emit({ type: 'warning', round, message: GIVEN_UP })
    const files = planDiff(this.#before, memory.texts, this.#redact)
    this.#log.emit({ type: 'replanned', round, files })
    this.#before = null
    this.#brokenOff = 0
  }
}

const GIVEN_UP = `The change of plan is given up: ${MOST_BROKEN_OFF} rounds in a row broke off in the middle of it. Ask for it again in other words, or in smaller steps.`

/** Whether the agent had worked, and nothing says that time mends it. */
function isBrokenOff(end: RoundClass, { replan, running }: SessionState): boolean {
  if (running === null || !running.hasWorked || running.replan !== replan) return false
  return end === 'silent' || end === 'crashed'
}
