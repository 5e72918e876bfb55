import type { SessionState } from './state/state.ts'

/**
 * How a session of a template is told: on the screen, on plain lines, by `status`, in notifications and in the report.
 * Functions of its own state, pure; `session` is the whole of it. All may be left out. A text may hold anything and be of
 * any length: it is bounded where it is kept, and made safe where it is drawn. What one of them throws is told in its place.
 */
export interface TemplateView<S = unknown> {
  /** What a step between two rounds is called while it is carried out: `checking the links`; null: as codemachine calls it. An empty text: what a look has found, a state that is entered (`enter`) or a file that is kept for people (`keep`) is not told. Of a state it may have more lines, which are told below the first where it is entered. */
  step?(step: StepName, own: S, session: SessionState): string | null
  /** What the round that runs, or the next one, is called in the place of its number, such as `Step 2/4: lint`; null: as codemachine calls it. */
  round?(own: S, session: SessionState): RoundTitle | null
  /** How far the work is, in a few words for one line: `step 3 of 8`; null: nothing. Left out: how many rows are done. */
  status?(own: S, session: SessionState): string | null
  /** The work, row by row, of which the first 500 are shown. Left out: the tasks of its plan, or of `tasks.json`. */
  board?(own: S, session: SessionState): readonly BoardRow[]
  /** What the card at the end says first: at most six facts. */
  card?(own: S, session: SessionState): readonly CardFact[]
  /** A section of its own in the report; null: none. */
  report?(own: S, session: SessionState): ReportSection | null
  /** What `work` of `status --json` has beside its own fields, for programs: JSON of at most 512 KiB. Left out: nothing. */
  data?(own: S, session: SessionState): Readonly<Record<string, unknown>>
  /**
   * What a session that goes on from it is told of its work beside its goal, its end and the files that it changed, in
   * Markdown, at most 64 KiB; null, or left out: its agent's last words.
   */
  followUp?(own: S, session: SessionState): string | null
  /** The versions of the plan that a person accepts or has changed, the oldest first, at most 50. Left out: there are none. */
  plans?(own: S, session: SessionState): readonly ShownPlan[]
}

/** A version of a plan, as a person is shown it. */
export interface ShownPlan {
  /** From 1. */
  version: number
  /** Who wrote it, such as `planner`. */
  author: string
  /** What a person wanted changed in the version before; null: nothing. */
  feedback: string | null
  /** Hash of its content, SHA-256 in hex. */
  sha256: string
  /** The plan as Markdown. */
  text: string
  /** Unified diff to the version before; null for the first. */
  diff: string | null
  /** `by`: who accepted it, such as `person`; null: nobody has. */
  accepted: { by: string; remark: string | null } | null
}

/** A step of a template that is no round, as its event names it. */
export interface StepName {
  /** Such as `look` or `command`. */
  kind: string
  /** Which of that kind; empty where there is but one. */
  name: string
}

/** What a round is called, on one line; `lines`: what is said below that where it begins, at most 100. */
export interface RoundTitle {
  title: string
  lines: readonly string[]
}

/**
 * How far a row of a board is. `claimed`: said to be done, and not proved yet; `parked`: left to a person, while the rest
 * goes on.
 */
export type BoardMark = 'to-do' | 'now' | 'claimed' | 'done' | 'parked' | 'failed'

/** A row of a board. */
export interface BoardRow {
  mark: BoardMark
  /** Short: `T3`. */
  id: string
  text: string
  /** Who works on it; null: nobody, or it is not known. */
  who: string | null
  /** Since when; Unix time, ms. */
  since: number | null
}

/** A fact of the card; `label`: at most eight letters, such as `built`. */
export interface CardFact {
  label: string
  /** Empty: its rows say it. */
  text: string
  /** Below the text, at most 200: the first are shown, and how many more there are. Left out: none. */
  rows?: readonly CardRow[]
  /** The text is a path or a command, which is not cut where it is longer than a line; left out: it is. */
  isToCopy?: true
}

/** A row of a fact; `mark`: how far it is, told in a word before the text, left out where that is not the question. */
export interface CardRow {
  text: string
  mark?: BoardMark
}

/** A section of the report. */
export interface ReportSection {
  title: string
  /** Whose words it is, or what they are good for; null: not said. */
  note: string | null
  /** In lines: one that begins with `- ` is an item of a list, and what stands between backticks is code. */
  text: string
  /** Below it, at most 10 cells in a row and 500 rows; left out: none. */
  table?: { head: readonly string[]; rows: readonly (readonly string[])[] }
  /** The table says all that the board does: the report leaves out the board. */
  tellsBoard?: true
}
