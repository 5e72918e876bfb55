/** On what a session goes on where the usage window of its engine is full. */
export interface FallbackTerms {
  /** The names of the engines, the first choice first; none: it waits. */
  engines: readonly string[]
  /** It waits where the window resets within this time, ms. */
  afterMs: number
}

/**
 * The engine whose turn it is: the first that has room, or null if the windows of all are full. Pure.
 * @param usual that of the session, which comes first
 * @param fullUntil when full windows reset, by engine; Unix time, ms
 */
export function engineWithRoom(
  usual: string,
  { engines }: Pick<FallbackTerms, 'engines'>,
  fullUntil: Readonly<Record<string, number>>,
  now: number,
): string | null {
  return [usual, ...engines].find(name => (fullUntil[name] ?? 0) <= now) ?? null
}
