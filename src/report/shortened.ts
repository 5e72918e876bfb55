/** A list of which the middle is left out if it is long. */
export interface Shortened<T> {
  entries: readonly T[]
  /** How many there were in all. */
  count: number
  /** How many are left out, and after how many of `entries` they would stand. */
  leftOut: number
  leftOutAfter: number
}
