/** Whether codex is logged in. `by`: with what, as in `ChatGPT (pro)`; `why`: a sentence or its end. */
export type LoginState =
  | { kind: 'in'; by: string }
  | { kind: 'out' }
  | { kind: 'not-needed' }
  | { kind: 'unknown'; why: string }

/** A session that can be gone on with. */
export interface ResumableSession {
  id: string
  goal: string
  /** Rounds that counted. */
  rounds: number
  /** How it stopped, as in `cut off` or `stalled`. */
  stopped: string
  /** When it was last at work; Unix time, ms. */
  at: number
}

/** What the start screen tells. Null: not known yet. Texts are as they were found, not safe to be shown. */
export interface StartFacts {
  mode: string | null
  /** Of the work directory, the person's home as `~`. */
  directory: string | null
  /** `branch` is null where none is checked out. */
  git: { kind: 'repository'; branch: string | null } | { kind: 'none' } | null
  /** A model or effort that is null is left to codex. */
  model: { model: string | null; effort: string | null } | null
  codex: { kind: 'found'; version: string } | { kind: 'missing'; why: string } | null
  login: LoginState | null
  /** The newest first, at most 5. */
  resumable: readonly ResumableSession[] | null
  /** The prompts that wait, the next one first. */
  queue: readonly string[] | null
  /** What is needed and not there, a sentence each; grows as it is found out. */
  missing: readonly string[]
}

/** What is known before anything was looked at. */
export const NO_FACTS: StartFacts = {
  mode: null,
  directory: null,
  git: null,
  model: null,
  codex: null,
  login: null,
  resumable: null,
  queue: null,
  missing: [],
}

/** Said among what is missing. */
export const NOT_LOGGED_IN = 'Codex is not logged in.'
