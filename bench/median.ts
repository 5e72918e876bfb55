/** The middle value; the mean of the two in the middle where their number is even. Throws if there is none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.floor(sorted.length / 2)]]
  if (low === undefined || high === undefined) throw new Error('There is no median of nothing.')
  return (low + high) / 2
}

/** The value below or at which so many per cent of them lie. Throws if there is none. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const value = sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)]
  if (value === undefined) throw new Error('There is no percentile of nothing.')
  return value
}
