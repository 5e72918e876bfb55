import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseDuration } from '../../../src/base/text.ts'
import { parseCount } from '../../../src/project/settings/schema.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

describe('a duration', () => {
  test.each([
    ['8h', 8 * HOUR],
    ['90m', 90 * MINUTE],
    ['1h30m', 90 * MINUTE],
    ['1h 30m', 90 * MINUTE],
    ['2d', 2 * DAY],
    ['1w', 7 * DAY],
    ['1.5h', 90 * MINUTE],
    [' 45 min ', 45 * MINUTE],
    ['1 day 2 hours 3 minutes 4 seconds', DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND],
    ['0.1s', 100],
    ['1.0007s', 1001],
    ['0h', 0],
  ])('%j is %i ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms)
  })

  test.each([
    ['', ' ', 'banana', '8', '1.5', '-3h', '+3h', '1h banana', 'banana 1h', '1e9h', '1,5h', '1_0h', '1 0h', 'h', '.h'],
    ['1h30', '8H', '8M', '3mo', '1y', '5ms', '1h,30m', '1h;', '1hm', '1h\u{0}', '٣h', 'Infinity', 'NaNh', '1..5h'],
  ])('is nothing else', (...texts) => {
    expect(texts.filter(text => parseDuration(text) !== null)).toEqual([])
  })

  test('is read back from its parts, however they are set apart', () => {
    const part = fc.nat(99_999)
    fc.assert(
      fc.property(part, part, part, part, fc.constantFrom('', ' ', '  '), (d, h, m, s, gap) => {
        const text = [`${d}d`, `${h}h`, `${m}m`, `${s}s`].join(gap)
        expect(parseDuration(text)).toBe(d * DAY + h * HOUR + m * MINUTE + s * SECOND)
      }),
    )
  })

  test('is a text of amounts and units only, and the time that it takes to refuse one does not grow with its length', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'0123456789.dhmsin -,_eE') }), text => {
        const ms = parseDuration(text)
        if (ms !== null) expect(text).toMatch(/^[\d.dhmsinw ]+$/)
      }),
    )
    expect(parseDuration(`${'1 h '.repeat(50_000)}x`)).toBeNull()
    expect(parseDuration(`${'1'.repeat(200_000)}x`)).toBeNull()
  })
})

describe('a count', () => {
  test.each([
    [5_000_000, 5_000_000],
    ['5000000', 5_000_000],
    ['5M', 5_000_000],
    ['5m', 5_000_000],
    ['500k', 500_000],
    ['500K', 500_000],
    ['1.5M', 1_500_000],
    ['2.3M', 2_300_000],
    ['0.000001M', 1],
    ['2_000_000', 2_000_000],
    ['1_000 k', 1_000_000],
  ])('%j is %i', (written, count) => {
    expect(parseCount(written)).toBe(count)
  })

  test.each([
    '',
    ' ',
    'M',
    'banana',
    '-5M',
    '+5M',
    '1.5',
    '1.2345k',
    '5MM',
    '5M tokens',
    '5e6',
    '0x10',
    '_5',
    '5_',
    '5__0',
    '1,000',
    '.5M',
    '5.M',
    '5G',
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
  ])('%j is none', written => {
    expect(parseCount(written)).toBeNull()
  })

  test('is read back in every unit that it can be written in', () => {
    fc.assert(
      fc.property(fc.nat(2_000_000_000), count => {
        const ways = [count, `${count}`, count.toLocaleString('en').replaceAll(',', '_')]
        const written = [...ways, `${(count / 1000).toFixed(3)}k`, `${(count / 1e6).toFixed(6)}M`]
        expect(written.map(parseCount)).toEqual(written.map(() => count))
      }),
    )
  })
})
