import type { TokenCounts } from '../events/events.ts'

/** What a model costs per million tokens, in the currency of the person's prices. */
export interface Price {
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

const NO_TOKENS: TokenCounts = { input: 0, cachedInput: 0, output: 0, reasoning: 0, total: 0 }

/** The tokens of one thread as reported now, and as they were before; undefined: it is the first report. */
export interface ThreadUsage {
  total: TokenCounts
  before: TokenCounts | undefined
  /** The model that it has worked with since; undefined if not known. */
  model: string | undefined
}

/** The cost after one more report of a thread: what was used since the one before, at the price of the model now. Pure. */
export function costAfter(cost: Cost, usage: ThreadUsage, prices: readonly ModelPrice[]): Cost {
  const { total, before = NO_TOKENS, model } = usage
  const more = (key: keyof TokenCounts) => Math.max(0, total[key] - before[key])
  const price = priceOf(prices, model)
  if (price === null) return { ...cost, unpriced: cost.unpriced + more('total') }
  const used: TokenCounts = {
    input: more('input'),
    cachedInput: more('cachedInput'),
    output: more('output'),
    reasoning: more('reasoning'),
    total: more('total'),
  }
  return { ...cost, amount: cost.amount + costOf(used, price) }
}

/** Why a thread of this model must not work where the cost is limited, a sentence; null if it has a price. */
export function problemOfModel(prices: readonly ModelPrice[], model: string | null): string | null {
  if (model === null)
    return 'Codex does not say which model it works with, so --max-cost cannot be kept; name one with --model.'
  if (priceOf(prices, model) !== null) return null
  return `The model ${model} has no price, so --max-cost cannot be kept; write [prices."${model}"] with in, cached and out per million tokens into your config.toml.`
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
