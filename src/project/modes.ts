import type { Recorded } from '../core/events/events.ts'
import type { SessionState, View } from '../core/state/state.ts'
import type { Redactor } from '../secrets/redactor.ts'
import type { Records } from '../session/records/records.ts'

/** What modes bring to a project beside the kinds of their sessions (`World.templates`). */
export interface Modes {
  /** The template of a prompt for which nobody has named one. */
  readonly usual: string
  /** What the mode of a template brings; null: nothing. */
  partsOf(template: string): Promise<ModeParts | null>
}

/** What a mode brings to a project. All of it may be left out. */
export interface ModeParts {
  /**
   * The options of a new session: what was told of them, and for the rest what the settings say. Throws a `UserError` for options
   * that cannot be used.
   * @param run the opened `Run`, which the types of the library do not show
   */
  optionsAtBegin?(run: unknown, told: unknown): unknown
  /** The options with which its plan is carried out as it comes, or a person is asked about it. */
  optionsForPlan?(acceptsPlan: boolean): object
  /** Opens what writes files of a session for people, beside the records, while it runs. Called before its first event. */
  openRecorder?(options: RecorderOptions): SessionRecorder
  /** What a person is told who goes on with a session: a sentence each. */
  remarksOnResume?(records: Records, state: SessionState): Promise<string[]>
}

interface RecorderOptions {
  records: Records
  redactor: Redactor
  /** Told a sentence of what could not be written. */
  onProblem(sentence: string): void
}

/** Writes files of one session. Its disposal resolves when all is written. */
export interface SessionRecorder extends View, AsyncDisposable {
  /** @param state the session after the event */
  event(event: Recorded, state: SessionState): void
  /** A line that an engine has sent in a round, without secrets. */
  record?(round: number, line: string): void
}
