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
