/** A number of tokens for a person: `950 tokens`, `45.2k tokens`, `1.3M tokens`. */
export function formatTokens(tokens: number): string {
  if (tokens < 1000) return `${tokens} token${tokens === 1 ? '' : 's'}`
  // From here on the thousands would round up to `1000.0k`.
  return tokens < 999_950 ? `${(tokens / 1000).toFixed(1)}k tokens` : `${(tokens / 1_000_000).toFixed(1)}M tokens`
}
