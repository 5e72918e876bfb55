import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cutUnfinished, nothingSecret, redactorOf } from '../../src/secrets/redactor.ts'
import { cpuMs, timesSlower } from '../support/cpu-time.ts'
import { promise } from '../support/promise.ts'

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

promise('B19', 'A secret that is cut in pieces by colour codes, titles, links or control characters is taken out whole')
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
    expect(cpuMs() - before).toBeLessThan(1000 * timesSlower())
  })

  test('a long row of backslashes costs little, alone and beside what steers, and is passed over whole', () => {
    const row = '\\'.repeat(20_000)
    const before = cpuMs()
    const titles = '\x1b]0;"x"\\\x9d\\e]'.repeat(10_000)
    for (const text of [row, `\x1b[0m${row} ${row}`, `${row}\x1b]${row}`, titles, `\x1b]${row}e${row}`])
      expect(redactor.text(text)).toBe(text)
    expect(cpuMs() - before).toBeLessThan(1000 * timesSlower())
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

  test('is awaited, too, where it has in it what reads like something that steers a terminal', () => {
    const VALUE = String.raw`CORP\backup:p\fss\e[1mw\x1b]0`
    const one = redactorOf([{ name: 'LOGIN', value: VALUE, isEncoded: true }])
    const shown = one.text(`as ${VALUE} at`)
    for (let at = 4; at < VALUE.length + 3; at++) {
      const { whole, held } = cutUnfinished(one, `as ${VALUE} at`.slice(0, at))
      expect(one.text(whole) + one.text(held + `as ${VALUE} at`.slice(at))).toBe(shown)
    }
    expect(shown).toBe('as [secret LOGIN] at')
  })

  test('is found over lines, too, where it has such a thing in it', () => {
    const VALUE = String.raw`CORP\backup:p\fss\e[1mw\x1b]0`
    const one = redactorOf([{ name: 'LOGIN', value: VALUE, isEncoded: true }])
    for (let width = 1; width < VALUE.length; width++)
      expect(one.text(`as ${VALUE.replace(new RegExp(`.{${width}}`, 'g'), '$&\n')}`)).toMatch(
        /^as \[secret LOGIN\]\n?$/,
      )
  })

  test('is not held back without bound, whatever steers the terminal in it', () => {
    const text = `sk-p${'\x1b[31m'.repeat(20_000)}`
    expect(cutUnfinished(redactor, text)).toEqual({ whole: text, held: '' })
  })
})

promise(
  'B96',
  'A secret of a project is taken out of all that is kept and shown, also encoded, wrapped and cut in pieces',
)
promise(
  'T32',
  'A secret is taken out of output plain, in base64, hex, addresses and JSON, over lines and where the output is cut',
)
describe('a secret that is looked for encoded', () => {
  const VALUE = 'sk-live/ü+0123456789?>~abcdef'
  const { text, line, unfinished } = redactorOf([{ name: 'KEY', value: VALUE, isEncoded: true }])
  const bytes = Buffer.from(VALUE)
  const hex = bytes.toString('hex')
  const base64 = (before: string, after = '') => Buffer.from(before + VALUE + after).toString('base64')
  const wrapped = (form: string, width: number, end = '\n') => form.replace(new RegExp(`.{${width}}`, 'g'), `$&${end}`)
  /** What stands around it, or at most a part of its first and of its last character. */
  const rest = (shown: string) => shown.split('[secret KEY]')

  const forms: Record<string, string> = {
    'as it is, over lines': wrapped(VALUE, 5),
    grouped: wrapped(VALUE, 4, '  '),
    'after two bytes, as in Basic authorization': base64('u:'),
    'in base64': base64(''),
    'in base64 after one byte, with a line end': base64('u', '\n'),
    'in base64 for addresses': bytes.toString('base64url'),
    'in base64 in an address': encodeURIComponent(base64('u:', 'x')),
    'in base64 as `base64 -w76` prints it': wrapped(base64('x'.repeat(70), 'y'.repeat(70)), 76),
    'in base64 with line ends of Windows': wrapped(base64(''), 10, '\r\n'),
    'in base64 in a text of JSON': JSON.stringify(wrapped(base64(''), 10, '\r\n')),
    'in base64 in a text of JSON in a text of JSON': JSON.stringify(JSON.stringify(wrapped(base64(''), 10))),
    'in base64 in a diff': `+${wrapped(base64(''), 10, '\n+')}`,
    'in hex': hex,
    'in HEX': hex.toUpperCase(),
    'in hex with colons': wrapped(hex, 2, ':'),
    'in hex as `xxd -p` prints it': wrapped(`6b6579${hex}0a`, 20),
    'in hex as a string of C': wrapped(hex, 2, '').replace(/../g, '\\x$&'),
    'in hex as an array of C':
      hex
        .match(/../g)
        ?.map(pair => `0x${pair}`)
        .join(', ') ?? '',
    'as numbers': JSON.stringify([...bytes]),
    'in an address': encodeURIComponent(VALUE),
    'in a form': new URLSearchParams({ key: VALUE }).toString(),
    'in an address, all of it encoded': hex.replace(/../g, '%$&'),
    'in JSON': JSON.stringify({ VALUE }),
    'in JSON of ASCII alone': JSON.stringify({ VALUE }).replace('ü', '\\u00fc'),
    'in JSON as PHP writes it': JSON.stringify({ VALUE }).replaceAll('/', '\\/'),
    "in a shell's quotes where the locale has ASCII alone": `$'sk-live/\\303\\274+0123456789?>~abcdef'`,
    'in the quotes of ls where the locale has ASCII alone': `'sk-live/'$'\\303\\274''+0123456789?>~abcdef'`,
    'as `printf %q` prints it': String.raw`sk-live/ü+0123456789\?\>\~abcdef`,
    'in base64, with colours': [...base64('')].join('\x1b[1m'),
  }
  const ways = Object.entries(forms)

  test.each<[string, string, string]>([
    ['in JSON as Go writes it', 'pw<a>&b=12345', String.raw`pw\u003ca\u003e\u0026b=12345`],
    ['in JSON as .NET writes it', 'p"ä+12345678', String.raw`p\u0022\u00E4\u002B12345678`],
    ['in JSON as PHP writes it, with a slash and another letter', 'pä/12345678', String.raw`p\u00e4\/12345678`],
    ['as `export -p` prints it', 'a$b!c"`d12345', String.raw`a\$b!c\"\`d12345`],
    ['as Python shows its bytes', 'pä/12345678', String.raw`b'p\xc3\xa4/12345678'`],
    ["in an address, by Python's quote", 'a/b!(c) 12345', 'a/b%21%28c%29%2012345'],
    ['in an address, by encodeURI', 'a/b&c "12345"', encodeURI('a/b&c "12345"')],
    ['in an address, by axios', 'a:b$c,d 12345', 'a:b$c,d+12345'],
    ['in a query', "a/b'c<12345>", new URL("http://x/?k=a/b'c<12345>").href],
    ['as a password in an address', 'a/b!c@<12345>', 'https://me:a%2Fb!c%40%3C12345%3E@host/'],
    ['in a form in small letters', 'a/b c&12345', 'a%2fb+c%2612345'],
  ])('with other characters than letters and digits is taken out: %s', (_, value, form) => {
    const other = redactorOf([{ name: 'KEY', value, isEncoded: true }])
    expect(other.text(`before ${form} after`)).toMatch(/^before [^1]*\[secret KEY\][^1]* after$/)
  })

  test.each(ways)('is taken out: %s', (_, form) => {
    const shown = text(`before ${form} after`)
    expect(rest(shown)).toHaveLength(2)
    expect(shown).toMatch(/^before .*\[secret KEY\].* after$/s)
    const around = rest(shown)
      .join('')
      .replace(/before|after|VALUE|key|6b6579|(?:eHh4|eXl5)[\w\n]*/g, '')
    expect(around.match(/\w/g)?.length ?? 0).toBeLessThan(8)
    const kept: unknown = JSON.parse(line(JSON.stringify({ output: `before ${form} after` })))
    expect(JSON.stringify(kept)).toContain('[secret KEY]')
  })

  test.each(ways)('is awaited wherever it is cut: %s', (_, form) => {
    const whole = text(`- ${form} -`)
    for (let at = 1; at < form.length; at++) {
      const { whole: first, held } = cutUnfinished({ ...redactorOf([]), text, unfinished }, `- ${form.slice(0, at)}`)
      expect(text(first) + text(`${held}${form.slice(at)} -`)).toBe(whole)
    }
  })

  test('is not looked for so if it is not said, and forms of less than 8 characters never are', () => {
    const plain = redactorOf([{ name: 'KEY', value: VALUE }])
    expect(plain.text(`${hex} ${base64('')} ${wrapped(VALUE, 5)}`)).not.toContain('[secret')
    const short = redactorOf([{ name: 'KEY', value: 'abc', isEncoded: true }])
    expect(short.text('YWJj 616263 a b c %61%62%63')).toBe('YWJj 616263 a b c [secret KEY]')
  })

  test('of digits alone is not found in a table of numbers', () => {
    const digits = redactorOf([{ name: 'PIN', value: '20261120', isEncoded: true }])
    expect(digits.text('2026 1120 20261120')).toBe('2026 1120 [secret PIN]')
  })

  test('in several lines is found whole, line by line, and encoded', () => {
    const lines = ['-----BEGIN-----', 'MIIEvQIBADANBgkqhkiG9w0B', 'AQEFAASCBKcwggSjAgEAAoIB', '-----END-----']
    const key = redactorOf([{ name: 'PEM', value: `${lines.join('\r\n')}\r\n`, isEncoded: true }])
    expect(key.text(`${lines.join('\n')}!`)).toBe('[secret PEM]!')
    expect(key.text(lines.map(each => `> ${each}`).join('\n'))).toBe(
      '> -----BEGIN-----\n> [secret PEM]\n> [secret PEM]\n> -----END-----',
    )
    const encoded = wrapped(Buffer.from(lines.join('\r\n')).toString('base64'), 76)
    expect(key.text(encoded).replace('[secret PEM]', '').length).toBeLessThan(5)
  })

  test('of 64 KiB, and a hundred others, cost little to know and to look for', () => {
    const random = (length: number) =>
      Buffer.from(Array.from({ length }, (_, at) => 33 + ((at * at * 31 + at * 7) % 90)))
    const long = random(64 * 1024).toString()
    const others = Array.from({ length: 100 }, (_, n) => `secret-${n}-${n * 7919}`)
    const output = 'a line of what a command has printed, 0123456789abcdef and so on\n'.repeat(30_000)
    const before = cpuMs()
    const many = redactorOf([long, ...others].map((value, n) => ({ name: `S${n}`, value, isEncoded: true as const })))
    expect(many.text(output)).toBe(output)
    expect(many.text(`${output}${Buffer.from(`x${long}`).toString('base64')}`).slice(output.length)).toMatch(
      /^.{0,3}\[secret S0\].{0,3}$/,
    )
    expect(many.unfinished(long.slice(0, 30_000))).toBe(30_000)
    expect(cpuMs() - before).toBeLessThan(3000 * timesSlower())
  })

  test('in base64 leaves nothing beside it that holds bits of it, on this line or on the next', () => {
    for (const value of [VALUE, `${VALUE}g`, `${VALUE}gh`]) {
      const one = redactorOf([{ name: 'KEY', value, isEncoded: true }])
      for (const [before, after] of [
        ['', ''],
        ['u', ''],
        ['u:', ''],
        ['', 'x'],
        ['u', 'xy'],
        ['u:', 'xyz'],
      ] as const) {
        const [from, to] = [before.length * 8, (before.length + Buffer.byteLength(value)) * 8]
        const plain = Buffer.from(before + value + after).toString('base64')
        const filling = plain.replace(/[^=]/g, '').length
        const own = plain.slice(0, plain.length - filling)
        const first = own.slice(0, Math.floor(from / 6))
        const last = own.slice(Math.ceil(to / 6)) + (after === '' && to % 6 !== 0 ? '' : '='.repeat(filling))
        expect(one.text(` ${plain}.`)).toBe(` ${first}[secret KEY]${last}.`)
        expect(one.text(` ${encodeURIComponent(own)}.`)).toBe(
          ` ${first}[secret KEY]${encodeURIComponent(own.slice(Math.ceil(to / 6)))}.`,
        )
        for (let width = 4; width < plain.length; width++) {
          const shown = one.text(wrapped(plain, width)).replace(/[\s=]/g, '')
          expect(shown).toBe(`${first}[secretKEY]${last.replaceAll('=', '')}`)
        }
      }
    }
  })
})

describe('a secret that repeats itself', () => {
  test('costs little where a text has nearly all of it, again and again: what is there of it is taken out', () => {
    const before = cpuMs()
    for (const unit of ['a', 'ab', 'aaab'.repeat(4096)]) {
      const value = unit.repeat((64 * 1024) / unit.length)
      const { text, unfinished } = redactorOf([{ name: 'LONG', value, isEncoded: true }])
      const near = `${value.slice(0, -1)}#`.repeat(2)
      const encoded = Buffer.from(near).toString('base64')
      expect([text(near), text(encoded) === encoded]).toEqual(['[secret LONG]#[secret LONG]#', true])
      expect(text(`#${value}#`)).toBe('#[secret LONG]#')
      expect(unfinished(near)).toBe(0)
      expect(unfinished(`#${value.slice(0, -1)}`)).toBe(value.length - 1)
    }
    expect(cpuMs() - before).toBeLessThan(4000 * timesSlower())
  })

  test('is found and awaited as by who compares it at every place', () => {
    const unit = fc.string({ minLength: 1, maxLength: 5, unit: fc.constantFrom('a', 'b') })
    const value = fc
      .tuple(unit, fc.integer({ min: 20, max: 80 }), unit)
      .map(([unit, times, end]) => unit.repeat(times) + end)
    const pieces = fc.array(fc.tuple(fc.nat(), fc.constantFrom('', 'a', 'b', '#')), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(value, pieces, (value, pieces) => {
        const { text, unfinished } = redactorOf([{ name: 'X', value }])
        const whole = pieces.map(([length, end]) => value.slice(0, length % (value.length + 1)) + end).join('')
        expect(text(whole)).toBe(whole.replaceAll(value, '[secret X]'))
        let longest = Math.min(value.length - 1, whole.length)
        while (!whole.endsWith(value.slice(0, longest))) longest--
        expect(unfinished(whole)).toBe(longest)
      }),
    )
  })
})
