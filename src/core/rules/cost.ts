import type { TokenCounts } from '../events/events.ts'

/** Price of a model per million tokens, in the currency of the person's prices. */
interface Price {
  /** Uncached input. */
  in: number
  /** Cached input. */
  cached: number
  /** Output, including reasoning. */
  out: number
}

/** The price of a model, by its exact name. */
export interface ModelPrice extends Price {
  model: string
}

/** Cost of a session. */
export interface Cost {
  /** In the currency of the prices. */
  amount: number
  /** Tokens of models without a price, not in `amount`. */
  unpriced: number
}

export const NO_COST: Cost = { amount: 0, unpriced: 0 }

const MILLION = 1_000_000

/** Returns the cost of these tokens. `input` includes cached input, `output` includes reasoning. Pure. */
function costOf({ input, cachedInput, output }: TokenCounts, price: Price): number {
  const cached = Math.min(cachedInput, input)
  return ((input - cached) * price.in + cached * price.cached + output * price.out) / MILLION
}

/** Returns the price of a model; null: no price, or unknown model. */
function priceOf(prices: readonly ModelPrice[], model: string | null | undefined): Price | null {
  return prices.find(each => each.model === model) ?? null
}

export const NO_TOKENS: TokenCounts = { input: 0, cachedInput: 0, output: 0, reasoning: 0, total: 0 }

/** Tokens of one thread: reported now, and before; undefined: the first report. */
interface ThreadUsage {
  total: TokenCounts
  before: TokenCounts | undefined
  /** Its model since then; undefined: not known. */
  model: string | undefined
}

/** Returns the cost after one more report: adds the tokens since the last one at the current model's price. Pure. */
export function costAfter(cost: Cost, usage: ThreadUsage, prices: readonly ModelPrice[]): Cost {
  const { total, before = NO_TOKENS, model } = usage
  const used = tokensSince(total, before)
  const price = priceOf(prices, model)
  if (price === null) return { ...cost, unpriced: cost.unpriced + used.total }
  return { ...cost, amount: cost.amount + costOf(used, price) }
}

/** Returns why a model cannot run under a cost limit, a sentence; null: it has a price. */
export function problemOfModel(prices: readonly ModelPrice[], model: string | null): string | null {
  if (model === null) return 'Codex does not report its model, so --max-cost cannot be enforced; name one with --model.'
  if (priceOf(prices, model) !== null) return null
  return `The model ${model} has no price, so --max-cost cannot be enforced. Write [prices."${model}"] with in, cached and out per million tokens into your config.toml.`
}

/**
 * Returns true if a report only says that the context is full. Codex then reports the window size as the total, without
 * input or output; no tokens were used. Pure.
 */
export function isFullWindow({ total, contextWindow }: { total: TokenCounts; contextWindow: number | null }): boolean {
  return contextWindow !== null && total.total === contextWindow && total.input === 0 && total.output === 0
}

/** Returns a thread's total use; a full context, which earlier versions journaled as use, adds nothing. Pure. */
export function usedSoFar(
  report: { total: TokenCounts; contextWindow: number | null },
  before: TokenCounts = NO_TOKENS,
): TokenCounts {
  return isFullWindow(report) ? before : report.total
}

/** Returns the tokens used between two reports. Pure. */
export function tokensSince(now: TokenCounts, before: TokenCounts): TokenCounts {
  const more = (key: keyof TokenCounts) => Math.max(0, now[key] - before[key])
  return {
    input: more('input'),
    cachedInput: more('cachedInput'),
    output: more('output'),
    reasoning: more('reasoning'),
    total: more('total'),
  }
}

/** Returns the sum of two token counts. Pure. */
export function addTokens(a: TokenCounts, b: TokenCounts): TokenCounts {
  return {
    input: a.input + b.input,
    cachedInput: a.cachedInput + b.cachedInput,
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
    total: a.total + b.total,
  }
}
