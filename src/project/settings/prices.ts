import * as v from 'valibot'
import { UserError } from '../../base/errors.ts'
import type { ModelPrice, Price } from '../../core/rules/cost.ts'
import { PRICES, shortened, type WrittenField, wrongValue } from './entries.ts'
import { line } from './schema.ts'

/** What a model may cost per million tokens; a model of one's own may cost nothing. */
const price = v.pipe(
  v.number(),
  v.minValue(0),
  v.maxValue(1_000_000),
  v.description('a number from 0 to 1000000, per million tokens'),
)
const modelName = line('', 500)

/** What may stand in the table of a model. */
const KEYS = ['in', 'cached', 'out'] as const satisfies readonly (keyof Price)[]

/**
 * The prices of the person's file. Throws a `UserError` of one sentence, with the place, for the first mistake: a price that
 * is none, or lacks input or output, or is of no model. Cached input without a price costs what other input does.
 */
export function effectivePrices(written: readonly WrittenField[]): readonly ModelPrice[] {
  const tables = new Map<string, { place: string; values: Partial<Price> }>()
  for (const field of written) {
    const { table, place } = field
    if (!v.is(modelName, table)) {
      throw new UserError(`${place}: a price is of no model; name it, such as [${PRICES}."gpt-5.5"].`)
    }
    const { values } = tables.get(table) ?? { values: {} }
    tables.set(table, { place: tables.get(table)?.place ?? place, values: { ...values, ...fieldOf(field) } })
  }
  return [...tables].map(([model, { place, values }]) => {
    const missing = (['in', 'out'] as const).find(key => values[key] === undefined)
    if (missing !== undefined) {
      throw new UserError(
        `${place}: the price of ${shortened(model)} has no "${missing}"; write in and out, per million tokens.`,
      )
    }
    const { in: input = 0, out = 0, cached = input } = values
    return { model, in: input, cached, out }
  })
}

/**
 * The field with its value, checked. A name of a model with a dot in it that is in no quotes is two names in TOML, and looks
 * like a key with a dot.
 */
function fieldOf({ table, key, value, written, place }: WrittenField): Partial<Price> {
  const known = KEYS.find(each => each === key)
  if (known === undefined) {
    const whole = `${table}.${key.split('.').slice(0, -1).join('.')}`
    const mend = key.includes('.')
      ? `if that is a part of the model's name, put it into quotes: [${PRICES}."${shortened(whole)}"].`
      : `those of a price are ${KEYS.join(', ')}.`
    throw new UserError(`${place}: unknown key "${PRICES}.${shortened(`${table}.${key}`)}"; ${mend}`)
  }
  if (!v.is(price, value)) {
    throw new UserError(`${place}: ${PRICES}."${shortened(table)}".${key} ${wrongValue(price, written)}`)
  }
  return { [known]: value }
}
