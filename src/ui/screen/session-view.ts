import type { Recorded } from '../../session/events.ts'
import type { LiveEvent } from '../../session/live-events.ts'
import type { SessionState } from '../../session/state.ts'
import type { View } from '../../session/view.ts'
import { isPlanShown } from '../words-for-build.ts'
import { askAboutNewPlan, askToStart } from './questions.ts'
import type { Asking } from './tell.ts'

export interface SessionViewOptions extends Asking {
  /** What an answer has set going has failed with. */
  onFailure(error: unknown): void
}

/** A session on the screen: what happens in it is shown, and asks the person, or ends what they were asked. */
export class SessionView implements View {
  readonly #options: SessionViewOptions
  #hasBrokenOff = false

  constructor(options: SessionViewOptions) {
    this.#options = options
  }

  /** Whether a person is writing an answer, or was when the session ended. */
  get wasWriting(): boolean {
    return this.#hasBrokenOff || this.#isWriting
  }

  event(event: Recorded, state: SessionState): void {
    const { model, onFailure } = this.#options
    model.pane.event(event, state)
    // It has been answered elsewhere.
    const goesOn = event.type === 'unpaused' || event.type === 'session-resumed'
    const isOver = event.type === 'session-ended'
    if (isOver || event.type === 'round-started') this.#hasBrokenOff = isOver && this.#isWriting
    if (isOver || (goesOn && model.question?.whileHeld)) model.dismiss('withdrawn')
    if (event.type === 'replanned') askToStart(this.#options, event.files.length > 0).catch(onFailure)
    if (event.type === 'held' && isPlanShown(state)) askAboutNewPlan(this.#options).catch(onFailure)
    model.options.onChange()
  }

  /** @param at when it happened; Unix time, ms */
  live(event: LiveEvent, at = this.#options.clock.now()): void {
    const { model } = this.#options
    model.pane.live(event, at)
    model.options.onChange()
  }

  get #isWriting(): boolean {
    return this.#options.model.dialog?.writing === true
  }
}
