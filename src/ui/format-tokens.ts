/** A number of tokens for a person: `950 tokens`, `45.2k tokens`, `1.3M tokens`, `5M tokens`. */
export function formatTokens(tokens: number): string {
  return `${shortNumber(tokens)} token${tokens === 1 ? '' : 's'}`
}

/** A large number in short, to one decimal: `950`, `45.2k`, `1.3M`, `5M`. */
export function shortNumber(count: number): string {
  if (count < 1000) return String(count)
  // From here on the thousands would round up to `1000k`.
  return count < 999_950 ? `${toOneDecimal(count / 1000)}k` : `${toOneDecimal(count / 1_000_000)}M`
}

function toOneDecimal(value: number): string {
  return value.toFixed(1).replace('.0', '')
}
