import type { SessionState } from './state.ts'
import type { TokenCounts } from './token-counts.ts'

/** Tokens of the whole session so far, all threads. */
export function sessionTokens(state: SessionState): number {
  return state.tokensBefore + (roundTokens(state)?.total ?? 0)
}

/** Tokens of the running round, its sub-agents included; null if none were reported. */
export function roundTokens(state: SessionState): TokenCounts | null {
  const threads = Object.values(state.threadTokens)
  return threads.length === 0 ? null : threads.reduce(add)
}

function add(a: TokenCounts, b: TokenCounts): TokenCounts {
  return {
    input: a.input + b.input,
    cachedInput: a.cachedInput + b.cachedInput,
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
    total: a.total + b.total,
  }
}
