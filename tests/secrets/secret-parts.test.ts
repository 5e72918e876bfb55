import { createHash } from 'node:crypto'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { redactorOf } from '../../src/secrets/redactor.ts'
import { cpuMs, timesSlower } from '../support/cpu-time.ts'
import { promise } from '../support/promise.ts'

const VALUE = 'sk-live-4711-Qm9vYmFyZm9vYmFyYmF6'
const { text } = redactorOf([{ name: 'KEY', value: VALUE, isEncoded: true }])
const half = Math.ceil(VALUE.length / 2)

describe('a long part of a secret is taken out', () => {
  const codes: Readonly<Record<string, (part: string) => string>> = {
    'as it is': part => part,
    'in base64': part => Buffer.from(part).toString('base64').replaceAll('=', ''),
    'in hex': part => Buffer.from(part).toString('hex'),
    'in hex in capitals': part => Buffer.from(part).toString('hex').toUpperCase(),
    'over lines': part => part.replace(/.{7}/g, '$&\n'),
    'in colours': part => part.replace(/.{7}/g, '$&\x1b[31m'),
  }
  promise(
    'T56',
    'A part of a secret that is at least half of it is taken out, and so is a value whose characters were cut between their bytes, or lost; short parts and words stay',
  )
  test.each(Object.entries(codes))('%s, wherever it is cut', (_, coded) => {
    for (let at = 0; at + half <= VALUE.length; at++)
      for (const length of [half, half + 1, VALUE.length - 1 - at]) {
        const part = VALUE.slice(at, at + length)
        if (part.length < half || part === VALUE) continue
        const shown = text(`before [${coded(part)}] after`)
        expect(shown, part).toContain('[secret KEY]')
        expect(shown.startsWith('before [') && shown.endsWith('] after'), shown).toBe(true)
        // Of base64 the characters stay that hold a part of a byte beside it.
        expect(stripVTControlCharacters(shown).replace(/\[secret KEY\]|before|after/g, '').length, shown).toBeLessThan(
          9,
        )
      }
  })

  test('of a long secret 40 characters', () => {
    const value = createHash('sha512').update('long').digest('base64').repeat(2)
    const { text } = redactorOf([{ name: 'LONG', value, isEncoded: true }])
    for (const at of [0, 1, 19, 60, value.length - 40]) {
      expect(text(`<${value.slice(at, at + 40)}>`)).toBe('<[secret LONG]>')
      expect(text(`<${value.slice(at, at + 39)}>`)).not.toContain('[secret')
    }
  })

  test('where two secrets have a part in common, by the name of one of them', () => {
    const { text } = redactorOf([
      { name: 'ONE', value: `${VALUE}-one`, isEncoded: true },
      { name: 'TWO', value: `${VALUE}-two`, isEncoded: true },
    ])
    expect(text(`${VALUE} ${VALUE}-two`)).toBe('[secret ONE] [secret TWO]')
  })
})

promise('T56')
test('a shorter part, and one that stands in other texts as well, stays', () => {
  const stays = (value: string, shown: string) => {
    const { text } = redactorOf([{ name: 'KEY', value, isEncoded: true }])
    expect(text(`(${shown})`), shown).toBe(`(${shown})`)
  }
  stays(VALUE, VALUE.slice(0, half - 1))
  stays('hunter2-pass', 'hunter2-p')
  stays('my-production-database', 'production-')
  stays('1234567890123456', '1234567890')
  stays('the-big-secret-42', 'the-big-se')
})

test('parts of the secrets of the environment are not looked for', () => {
  const { text } = redactorOf([{ name: 'KEY', value: VALUE }])
  expect(text(VALUE.slice(0, half))).toBe(VALUE.slice(0, half))
})

promise('T56')
test('of other characters than ASCII that a program has lost, what is left is taken out', () => {
  const value = 'sk-lüve-47€11-abc'
  const { text } = redactorOf([{ name: 'KEY', value, isEncoded: true }])
  const bytes = Buffer.from(value)
  const lost = [
    new TextDecoder('utf-8').decode(Buffer.from('sk-lüve-47\xa411-abc', 'latin1')),
    bytes.toString('latin1'),
    value.replace(/[ü€]/g, '?'),
    value.replace(/[ü€]/g, ''),
    value.normalize('NFD'),
  ]
  for (const each of lost) expect(text(`<${each}>`), each).toBe('<[secret KEY]>')
})

test('looking for parts of a hundred secrets costs as much as looking for them', () => {
  const value = (n: number) => createHash('sha256').update(`${n}`).digest('base64')
  const secrets = Array.from({ length: 100 }, (_, n) => ({ name: `K${n}`, value: value(n), isEncoded: true as const }))
  const { text } = redactorOf(secrets)
  const long = `${value(7).slice(0, 21)}\n`.repeat(40_000)
  const before = cpuMs()
  expect(text(long)).toBe(long)
  expect(cpuMs() - before).toBeLessThan(2_000 * timesSlower())
})
