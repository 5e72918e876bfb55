/** Lines to page through: finished ones with colours and links, which nothing steers the terminal with. */
export interface PagerSource {
  readonly count: number
  /** The line at an index from 0 to below `count`; it stays the same. */
  line(index: number): string
  /**
   * Tells the listener after lines have been added at the end, and how many of the first ones have gone, so that all
   * others have moved up by so many. Returns what ends it.
   */
  onGrow(listener: (gone: number) => void): () => void
  /** Lays the lines out anew for another width; they come again from the first on. Left out: they are as they are. */
  resize?(columns: number): void
}
