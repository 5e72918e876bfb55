import { describe, expect, test } from 'vitest'
import { addTokens, costAfter, NO_COST, problemOfModel } from '../../../src/core/rules/cost.ts'
import { promise } from '../../support/promise.ts'

const PRICES = [
  { model: 'large', in: 2, cached: 0.5, out: 10 },
  { model: 'small', in: 0.2, cached: 0.2, out: 1 },
]
const tokens = (input: number, cachedInput: number, output: number, reasoning = 0) => ({
  input,
  cachedInput,
  output,
  reasoning,
  total: input + output,
})

test('the tokens of two threads are added kind by kind', () => {
  expect(addTokens(tokens(1, 2, 3, 4), tokens(10, 20, 30, 40))).toEqual(tokens(11, 22, 33, 44))
})

promise(
  'M13',
  "What a session costs is charged by the model's own prices, cached input apart, and no model is taken for free",
)
describe('the cost of a session', () => {
  test('charges cached input at its own price, and reasoning as a part of the output', () => {
    const usage = { total: tokens(1_000_000, 400_000, 100_000, 90_000), before: undefined, model: 'large' }
    expect(costAfter(NO_COST, usage, PRICES).amount).toBeCloseTo(0.6 * 2 + 0.4 * 0.5 + 0.1 * 10, 9)
  })

  test('adds what a thread has used since it was reported last, at the price of its model then', () => {
    const first = costAfter(NO_COST, { total: tokens(1_000_000, 0, 0), before: undefined, model: 'large' }, PRICES)
    const total = tokens(2_000_000, 0, 0)
    const rerouted = costAfter(first, { total, before: tokens(1_000_000, 0, 0), model: 'small' }, PRICES)
    expect(rerouted.amount).toBeCloseTo(2 + 0.2, 9)
    expect(costAfter(rerouted, { total: tokens(5, 0, 0), before: total, model: 'large' }, PRICES)).toEqual(rerouted)
  })

  test('never takes a model without a price for free', () => {
    for (const model of ['other', undefined]) {
      const usage = { total: tokens(900, 0, 100), before: undefined, model }
      expect(costAfter(NO_COST, usage, PRICES)).toEqual({ amount: 0, unpriced: 1000 })
    }
    expect(problemOfModel(PRICES, 'other')).toContain('The model other has no price')
    expect(problemOfModel(PRICES, null)).toContain('name one with --model')
    expect(problemOfModel(PRICES, 'small')).toBeNull()
  })
})
