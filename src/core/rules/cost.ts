import type { TokenCounts } from '../events/events.ts'

/** What a model costs per million tokens, in the currency of the person's prices. */
interface Price {
  /** Of input that was not cached. */
  in: number
  /** Of cached input. */
  cached: number
  /** Of output, which includes reasoning. */
  out: number
}

/** The price of a model, by its exact name. */
export interface ModelPrice extends Price {
  model: string
}

/** What a session has cost. */
export interface Cost {
  /** In the currency of the prices. */
  amount: number
  /** Tokens of models without a price, which are not in it. */
  unpriced: number
}

export const NO_COST: Cost = { amount: 0, unpriced: 0 }

const MILLION = 1_000_000

/** What these tokens cost. Input that was cached is a part of the input, and reasoning one of the output. Pure. */
function costOf({ input, cachedInput, output }: TokenCounts, price: Price): number {
  const cached = Math.min(cachedInput, input)
  return ((input - cached) * price.in + cached * price.cached + output * price.out) / MILLION
}

/** The price of a model; null if there is none, or nobody knows which model it is. */
function priceOf(prices: readonly ModelPrice[], model: string | null | undefined): Price | null {
  return prices.find(each => each.model === model) ?? null
}

export const NO_TOKENS: TokenCounts = { input: 0, cachedInput: 0, output: 0, reasoning: 0, total: 0 }

/** The tokens of one thread as reported now, and as they were before; undefined: it is the first report. */
interface ThreadUsage {
  total: TokenCounts
  before: TokenCounts | undefined
  /** The model that it has worked with since; undefined if not known. */
  model: string | undefined
}

/** The cost after one more report of a thread: what was used since the one before, at the price of the model now. Pure. */
export function costAfter(cost: Cost, usage: ThreadUsage, prices: readonly ModelPrice[]): Cost {
  const { total, before = NO_TOKENS, model } = usage
  const used = tokensSince(total, before)
  const price = priceOf(prices, model)
  if (price === null) return { ...cost, unpriced: cost.unpriced + used.total }
  return { ...cost, amount: cost.amount + costOf(used, price) }
}

/** Why a thread of this model must not work where the cost is limited, a sentence; null if it has a price. */
export function problemOfModel(prices: readonly ModelPrice[], model: string | null): string | null {
  if (model === null) return 'Codex does not report its model, so --max-cost cannot be enforced; name one with --model.'
  if (priceOf(prices, model) !== null) return null
  return `The model ${model} has no price, so --max-cost cannot be enforced; write [prices."${model}"] with in, cached and out per million tokens into your config.toml.`
}

/**
 * Whether a report only says that the context of its thread is full: codex then names the whole window as the total, without any
 * input or output, and nobody has used that. Pure.
 */
export function isFullWindow({ total, contextWindow }: { total: TokenCounts; contextWindow: number | null }): boolean {
  return contextWindow !== null && total.total === contextWindow && total.input === 0 && total.output === 0
}

/** What a thread has used as of one more report: a full context, which earlier versions journaled as used, adds nothing. Pure. */
export function usedSoFar(
  report: { total: TokenCounts; contextWindow: number | null },
  before: TokenCounts = NO_TOKENS,
): TokenCounts {
  return isFullWindow(report) ? before : report.total
}

/** What was used since. Pure. */
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

/** The tokens of two threads together. Pure. */
export function addTokens(a: TokenCounts, b: TokenCounts): TokenCounts {
  return {
    input: a.input + b.input,
    cachedInput: a.cachedInput + b.cachedInput,
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
    total: a.total + b.total,
  }
}
