/** Token counts of one thread as codex reports them: absolute, cumulative over the thread. */
export interface TokenCounts {
  input: number
  cachedInput: number
  output: number
  reasoning: number
  total: number
}
