import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cutUnfinished, nothingSecret, redactorOf } from '../../src/base/redactor.ts'
import { cpuMs } from '../support/cpu-time.ts'

const KEY = 'sk-proj-0123456789abcdef'
const redactor = redactorOf([{ name: 'MY_API_KEY', value: KEY }])

describe('a secret', () => {
  test('is named where it stood, as often as it stood there', () => {
    expect(redactor.text(`A=${KEY}; B="${KEY}"`)).toBe('A=[secret MY_API_KEY]; B="[secret MY_API_KEY]"')
  })

  test('that is the beginning of another does not leave the rest of that one', () => {
    const both = redactorOf([
      { name: 'SHORT', value: 'abcdefgh' },
      { name: 'LONG', value: 'abcdefgh-and-more' },
    ])
    expect(both.text('abcdefgh-and-more abcdefgh')).toBe('[secret LONG] [secret SHORT]')
  })

  test('with every special character is found as it is, in JSON, in JSON inside of JSON, and in an address', () => {
    const value = 'a"b\\c$1.*+?()[]{}|^/ü &=\n\tend'
    const { text } = redactorOf([{ name: 'X', value }])
    const once = JSON.stringify({ output: value })
    expect(text(`<${value}>`)).toBe('<[secret X]>')
    expect(text(once)).toBe('{"output":"[secret X]"}')
    expect(text(JSON.stringify({ once }))).not.toContain('$1.')
    expect(text(`?key=${encodeURIComponent(value)}`)).toBe('?key=[secret X]')
  })

  test('in several lines is found line by line too, as in a diff', () => {
    const lines = ['MIIEvQIBADANBgkqhkiG9w0B', 'AQEFAASCBKcwggSjAgEAAoIB']
    const { text } = redactorOf([{ name: 'PEM', value: `-----BEGIN-----\n${lines.join('\n')}\n-----END-----\n` }])
    const diff = text(`+-----BEGIN-----\n+${lines[0]}\n+${lines[1]}\n+-----END-----`)
    expect(diff).toBe('+-----BEGIN-----\n+[secret PEM]\n+[secret PEM]\n+-----END-----')
  })
})

describe('a secret that is cut in pieces by what steers a terminal', () => {
  const pieces = [...KEY]
  const cuts = {
    colour: '\x1b[1;31m',
    link: '\x1b]8;;x\x07',
    reset: '\x1b(B',
    nul: '\0',
    '8-bit': '\x9b0m',
    back: '\b',
    'link with an end of two characters': '\x1b]8;;x\x1b\\',
    'such a link and a colour': '\x1b]8;;x\x1b\\\x1b[1m\x1b]8;;\x1b\\',
    'title with quotes and backslashes': '\x1b]0;"C:\\b"\\\x07',
    'device control': '\x1bPq#0\x1b\\',
    '8-bit title': '\x9d0;x\x9c',
    '8-bit index': '\x84',
    'link written by hand': String.raw`\033]8;;x\033\\`,
    'title written by hand': String.raw`\e]0;x\a`,
  }

  test.each(Object.entries(cuts))('is taken out whole: %s', (_, cut) => {
    const text = `a${cut}b ${pieces.join(cut)}${cut} end`
    expect(redactor.text(text)).toBe(`a${cut}b [secret MY_API_KEY]${cut} end`)
    const event = { type: 'item-completed', item: { output: text } }
    expect(JSON.stringify(redactor.event(event))).toContain('[secret MY_API_KEY]')
    const line = redactor.line(JSON.stringify(event))
    expect(JSON.parse(line).item.output).toContain('[secret MY_API_KEY]')
    expect(redactor.line(JSON.stringify({ line: JSON.stringify(event) }))).toContain('[secret MY_API_KEY]')
  })

  test('is awaited as its beginning: in the middle of a text that still grows', () => {
    const begun = pieces.slice(0, 12).join(cuts.colour)
    expect(redactor.unfinished(`some ${begun}`)).toBe(begun.length)
    expect(redactor.unfinished(`${cuts.colour}nothing`)).toBe(0)
  })

  test.each([
    ['a colour', '\x1b[1;31m'],
    ['one of one character', '\x9b1;31m'],
    ['the choice of a character set', '\x1b(B'],
    ['a link', '\x1b]8;;https://example.org\x1b\\'],
    ['a title', '\x9d0;a title\x07'],
  ])('is awaited wherever the text is cut in %s within it', (_what, steers) => {
    const [before, after] = [pieces.slice(0, 4).join(''), pieces.slice(4).join('')]
    for (let at = 0; at <= steers.length; at++) {
      const { whole, held } = cutUnfinished(redactor, `some ${before}${steers.slice(0, at)}`)
      expect([whole, redactor.text(`${held}${steers.slice(at)}${after}`)]).toEqual(['some ', '[secret MY_API_KEY]'])
    }
    expect(redactor.unfinished(`nothing${steers.slice(0, -1)}`)).toBe(0)
  })

  test('is awaited in a title that has not come to its end', () => {
    expect(cutUnfinished(redactor, '\x1b]0;sk-pro')).toEqual({ whole: '\x1b]0;', held: 'sk-pro' })
  })

  test('a text with many colours and no secret stays as it is, and costs little', () => {
    const text = '\x1b[32m+ a line of a diff\x1b[0m\n'.repeat(20_000)
    const before = cpuMs()
    expect(redactor.text(text)).toBe(text)
    expect(cpuMs() - before).toBeLessThan(1000)
  })

  test('a long row of backslashes costs little, alone and beside what steers, and is passed over whole', () => {
    const row = '\\'.repeat(20_000)
    const before = cpuMs()
    const titles = '\x1b]0;"x"\\\x9d\\e]'.repeat(10_000)
    for (const text of [row, `\x1b[0m${row} ${row}`, `${row}\x1b]${row}`, titles, `\x1b]${row}e${row}`])
      expect(redactor.text(text)).toBe(text)
    expect(cpuMs() - before).toBeLessThan(1000)
    expect(redactor.text(`${row} ${pieces.join('\x1b[0m')}`)).toBe(`${row} [secret MY_API_KEY]`)
  })
})

describe('an event', () => {
  test('is the same object if there is nothing to take out', () => {
    const event = { type: 'item-completed', item: { changes: [{ diff: 'a' }, { diff: 'b' }] }, tokens: null, n: 1 }
    expect(redactor.event(event)).toBe(event)
  })

  test('loses the secret at any depth, and is not changed itself', () => {
    const change = { path: '/a', diff: `+${KEY}` }
    const event = { type: 'item-completed', item: { changes: [{ path: '/b', diff: '' }, change] } }
    const before = structuredClone(event)
    const after = redactor.event(event)
    expect(after).toEqual({
      type: 'item-completed',
      item: {
        changes: [
          { path: '/b', diff: '' },
          { path: '/a', diff: '+[secret MY_API_KEY]' },
        ],
      },
    })
    expect(event).toEqual(before)
  })

  test('stays what it is, though a password reads like the name of its type', () => {
    const { event } = redactorOf([{ name: 'PASSWORD', value: 'interrupted' }])
    expect(event({ type: 'session-ended', outcome: { kind: 'interrupted', by: 'interrupted' } })).toEqual({
      type: 'session-ended',
      outcome: { kind: 'interrupted', by: '[secret PASSWORD]' },
    })
  })
})

describe('where a session belongs', () => {
  test('stays as it is, though a password reads like the name of the machine or is in a path', () => {
    const { event } = redactorOf([{ name: 'PASSWORD', value: 'build-machine' }])
    const created = {
      type: 'session-created',
      host: 'build-machine',
      directory: '/build-machine/a',
      goal: 'build-machine',
    }
    expect(event(created)).toEqual({ ...created, goal: '[secret PASSWORD]' })
  })
})

describe('a line of JSON', () => {
  test('stays JSON and loses the secret, also as the name of a key', () => {
    const line = JSON.stringify({ params: { [KEY]: 1, text: `it is\n${KEY}` } })
    expect(JSON.parse(redactor.line(line))).toEqual({
      params: { '[secret MY_API_KEY]': 1, text: 'it is\n[secret MY_API_KEY]' },
    })
  })

  test('stays JSON where a line break before a text reads like the beginning of the secret', () => {
    const { line } = redactorOf([{ name: 'X', value: 'nabcdefgh' }])
    expect(JSON.parse(line(JSON.stringify({ text: '\nabcdefgh' })))).toEqual({ text: '\nabcdefgh' })
  })

  test('of any texts and any secret holds the secret no more, and is still JSON', () => {
    const secret = fc.string({ minLength: 8, maxLength: 20, unit: 'binary' }).filter(text => text.trim().length >= 8)
    fc.assert(
      fc.property(secret, fc.string(), fc.string(), (value, before, after) => {
        const one = redactorOf([{ name: 'X', value }])
        const sent = { item: { output: `${before}${value}${after}` } }
        const kept: unknown = JSON.parse(one.line(JSON.stringify(sent)))
        expect(JSON.stringify(kept)).not.toContain(JSON.stringify(value.trim()).slice(1, -1))
        expect(one.event(sent).item.output).not.toContain(value.trim())
      }),
    )
  })
})

test('nothing is secret where there are no secrets', () => {
  expect(redactorOf([])).toBe(nothingSecret)
  expect(nothingSecret.text(KEY)).toBe(KEY)
})

describe('a text that comes in pieces', () => {
  test('is cut where a secret may begin, and never within one that is whole', () => {
    expect(cutUnfinished(redactor, 'it is sk-pro')).toEqual({ whole: 'it is ', held: 'sk-pro' })
    expect(cutUnfinished(redactor, `it is ${KEY}`)).toEqual({ whole: `it is ${KEY}`, held: '' })
    const two = redactorOf([
      { name: 'ONE', value: 'one-secret-twin' },
      { name: 'TWO', value: 'twin-of-secrets' },
    ])
    expect(cutUnfinished(two, 'It is one-secret-twin')).toEqual({ whole: 'It is one-secret-twin', held: '' })
  })

  test('is not held back without bound, whatever steers the terminal in it', () => {
    const text = `sk-p${'\x1b[31m'.repeat(20_000)}`
    expect(cutUnfinished(redactor, text)).toEqual({ whole: text, held: '' })
  })
})
