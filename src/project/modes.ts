import type { Recorded } from '../core/events/events.ts'
import type { SessionState, View } from '../core/state/state.ts'
import type { Redactor } from '../secrets/redactor.ts'
import type { Records } from '../session/records/records.ts'

/** Parts of modes for a project, apart from the kinds of their sessions (`World.templates`). */
export interface Modes {
  /** Template of a prompt that names none. */
  readonly usual: string
  /** Returns the parts of a template's mode; null: none. */
  partsOf(template: string): Promise<ModeParts | null>
}

/** A mode's parts for a project. All are optional. */
export interface ModeParts {
  /**
   * Returns the options of a new session: the given ones, and for the rest the settings. Throws a `UserError` for unusable
   * options.
   * @param run the opened `Run`, which the types of the library do not show
   */
  optionsAtBegin?(run: unknown, told: unknown): unknown
  /** Returns the options with which its plan runs without a question, or a person is asked about it. */
  optionsForPlan?(acceptsPlan: boolean): object
  /**
   * For a kind with `promptNames`: throws a `UserError` if this prompt names nothing that can run. Runs nothing.
   * @param world the `World`, which knows the modes itself
   */
  checkPrompt?(world: unknown, records: Records, prompt: string): Promise<void>
  /**
   * For a kind with `promptNames`: returns the session of a queued prompt. Throws a `UserError` as `checkPrompt`.
   * @param world the `World`
   * @param run the opened `Run`, which the types of the library do not show
   */
  sessionOfPrompt?(world: unknown, run: unknown, prompt: string): Promise<PromptSession>
  /** Opens the writer of files for people, apart from the records, while the session runs. Called before its first event. */
  openRecorder?(options: RecorderOptions): SessionRecorder
  /** Returns sentences for a person who resumes a session. */
  remarksOnResume?(records: Records, state: SessionState): Promise<string[]>
}

/** A session that a prompt names. */
export interface PromptSession {
  /** Its goal. */
  text: string
  /** Options of its template. */
  options: unknown
  /** Texts to keep unchanged for its template (`TemplateSetup.kept`). */
  kept: readonly { name: string; text: string }[]
}

interface RecorderOptions {
  records: Records
  redactor: Redactor
  /** Receives a sentence for each failed write. */
  onProblem(sentence: string): void
}

/** Writes files of one session. Disposing of it resolves when all is written. */
export interface SessionRecorder extends View, AsyncDisposable {
  /** @param state the session after the event */
  event(event: Recorded, state: SessionState): void
  /** Records a line that an engine sent in a round, without secrets. `beside`: the name of work beside the round's own. */
  record?(round: number, line: string, beside?: string): void
}
