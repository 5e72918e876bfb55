import type { Theme } from '../theme.ts'

/** Where and how a finished thing is drawn. */
export interface BlockOptions {
  /** Cells in a line; at least 2. */
  columns: number
  theme: Theme
  /** All of it, for the pager; else as much as is wanted in the terminal's scrollback. */
  full: boolean
}
