import parseUnits from 'parse-duration'

/** The ms that a text such as `8h`, `1h30m`, `1.5 days` or `2d 12h` means; null for any other, and without a unit. */
export function parseDuration(text: string): number | null {
  const trimmed = text.trim()
  // The library passes over what it does not know: to it "1h banana" is an hour, and "1,5h" are fifteen.
  if (!DURATION.test(trimmed)) return null
  const ms = parseUnits(trimmed)
  return ms === null ? null : Math.round(ms)
}

const DURATION = /^(?:\d+(?:\.\d+)?\s*(?:weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\s*)+$/
