import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { errorKinds } from '../../src/base/error-codes.ts'

const SRC = join(import.meta.dirname, '../../src')

/** How many codes each range has given so far: a new one raises the number, and none ever lowers it. */
const GIVEN = {
  '01': 12,
  '02': 11,
  '03': 12,
  '04': 3,
  '05': 19,
  '06': 26,
  '07': 10,
  '08': 13,
  '09': 8,
  '10': 15,
  '11': 17,
  '12': 5,
}
/** Codes that no error has any more. They are not given again. */
const RETIRED: readonly string[] = []

test('every code that was ever given stays known, or is retired and not given again', () => {
  const given = Object.entries(GIVEN)
    .toSorted(([a], [b]) => a.localeCompare(b))
    .flatMap(([range, count]) => Array.from({ length: count }, (_, n) => `CM${range}${String(n + 1).padStart(2, '0')}`))
  expect(Object.keys(errorKinds)).toEqual(given.filter(code => !RETIRED.includes(code)))
})

test('every known code is that of an error', async () => {
  const files = (await readdir(SRC, { recursive: true })).filter(
    name => /\.tsx?$/.test(name) && name !== join('base', 'error-codes.ts'),
  )
  const texts = await Promise.all(files.map(name => readFile(join(SRC, name), 'utf8')))
  const used = new Set(texts.flatMap(text => text.match(/(?<=')CM\d{4}(?=')/g) ?? []))
  expect([...used].toSorted()).toEqual(Object.keys(errorKinds))
})
