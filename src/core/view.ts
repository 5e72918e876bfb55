/** A version of a plan, as shown to a person. */
export interface ShownPlan {
  /** From 1. */
  version: number
  /** Its author: `planner`, for example. */
  author: string
  /** The person's feedback on the version before; null: none. */
  feedback: string | null
  /** Hash of its content, SHA-256 in hex. */
  sha256: string
  /** The plan as Markdown. */
  text: string
  /** Unified diff to the version before; null: first version. */
  diff: string | null
  /** `by`: who accepted it, `person` for example; null: nobody. */
  accepted: { by: string; remark: string | null } | null
}

/** A template step other than a round, named as in its event. */
export interface StepName {
  /** `look` or `command`, for example. */
  kind: string
  /** Its name within that kind; empty: the only one. */
  name: string
}

/** Title of a round on one line; `lines`: shown below it at its start, at most 100. */
export interface RoundTitle {
  title: string
  lines: readonly string[]
}

/** State of a board row. `claimed`: marked done, not proved yet. `parked`: left to a person, while the rest continues. */
export type BoardMark = 'to-do' | 'now' | 'claimed' | 'done' | 'parked' | 'failed'

/** A row of a board. */
export interface BoardRow {
  mark: BoardMark
  /** Short: `T3`. */
  id: string
  text: string
  /** Agent that works on it; null: nobody, or not known. */
  who: string | null
  /** Start of that work; Unix time, ms. */
  since: number | null
}

/** A fact of the card; `label`: at most eight letters, `built` for example. */
export interface CardFact {
  label: string
  /** Empty: see its rows. */
  text: string
  /** Rows below the text, at most 200: the first ones are shown, with the number of the rest. Left out: none. */
  rows?: readonly CardRow[]
  /** True: the text is a path or command, never cut to a line; left out: it is. */
  isToCopy?: true
}

/** A row of a fact; `mark`: its state, a word before the text; left out: not relevant. */
export interface CardRow {
  text: string
  mark?: BoardMark
}

/** A section of the report. */
export interface ReportSection {
  title: string
  /** Author or purpose of the words; null: not given. */
  note: string | null
  /** Lines: `- ` starts a list item, backticks enclose code. */
  text: string
  /** A table below it, at most 10 columns and 500 rows; left out: none. */
  table?: { head: readonly string[]; rows: readonly (readonly string[])[] }
  /** True: the table replaces the board in the report. */
  tellsBoard?: true
}
