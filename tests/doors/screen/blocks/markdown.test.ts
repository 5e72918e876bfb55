import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { loadGrammars, markdownLines } from '../../../../src/doors/screen/blocks/markdown.ts'
import { finishedLength } from '../../../../src/doors/screen/blocks/message-stream.ts'
import { cpuMs } from '../../../support/cpu-time.ts'
import { dark, expectFitting, plain, reader, seen, widths, wildMarkdown } from './terminal-lines.ts'

beforeAll(loadGrammars)

const draw = (text: string, columns = 40, theme = dark) => markdownLines(text, { columns, theme, first: true })
const shown = (text: string, columns = 40, theme = dark) => seen(draw(text, columns, theme))

const MESSAGE = `# The change

It **works**: see \`npm test\`, [the page](https://a.b/c) and
[cells.ts](/work/src/cells.ts).

- one that is long enough to be wrapped here
  1. deep
- [x] done
- [ ] not yet

> said
> so

\`\`\`ts
const a: number = 1 // one
\`\`\`

| Name | What it is | n |
| :--- | :--------- | -: |
| a | a long cell that has to be wrapped | 12 |
| b | short | 3 |

---
<b>bold</b> &amp; a < b
`

test('a message is drawn as a person would lay it out', () => {
  expect(shown(MESSAGE)).toMatchInlineSnapshot(`
    "The change

    It works: see npm test, the page and
    cells.ts.

    • one that is long enough to be wrapped
      here
      1. deep
    ✔ done
    ○ not yet

    │ said
    │ so

      ts
      const a: number = 1 // one

    Name  What it is                       n
    ────  ──────────────────────────────  ──
    a     a long cell that has to be      12
          wrapped
    b     short                            3

    ────────────────────────────────────────

    <b>bold</b> & a < b"
  `)
})

test('without colours the signs stay that say what is what, and links have their address', () => {
  expect(shown(MESSAGE, 40, plain).split('\n').slice(0, 5).join('\n')).toMatchInlineSnapshot(`
    "# The change

    It works: see \`npm test\`, the page
    (https://a.b/c) and
    cells.ts."
  `)
})

test('a screen reader gets words and no lines', () => {
  expect(shown(MESSAGE, 40, reader).split('\n').slice(5).join('\n')).toMatchInlineSnapshot(`
    "
    - one that is long enough to be wrapped
      here
      1. deep
    [done] done
    [to do] not yet

    > said
    > so

      code ts
      const a: number = 1 // one

    Name: a
    What it is: a long cell that has to be
    wrapped
    n: 12

    Name: b
    What it is: short
    n: 3

    ---

    <b>bold</b> & a < b"
  `)
})

test('code is painted by the rules of its language, and of an unknown one in one colour', () => {
  const keyword = dark.paint('keyword', 'const')
  expect(draw('```ts\nconst a = 1\n```').join('\n')).toContain(keyword)
  expect(draw('```klingon\nconst a = 1\n```').join('\n')).toContain(dark.paint('code', 'const a = 1'))
})

test('a table that is too wide for its columns is told row by row', () => {
  expect(shown('|a|b|c|d|\n|-|-|-|-|\n|one and more|two and more|three|four|', 20)).toBe(
    'a: one and more\nb: two and more\nc: three\nd: four',
  )
})

test('what would steer the terminal is shown, wherever it stands', () => {
  const evil = '\x1b]0;title\x07\x1b[2J\u202e'
  const safe = '␛]0;title␇␛[2J<U+202E>'
  for (const text of [
    evil,
    `\`${evil}\``,
    `\`\`\`js\n${evil}\n\`\`\``,
    `|a|\n|-|\n|${evil}|`,
    `# ${evil}`,
    `<b>${evil}`,
  ]) {
    expect(shown(text, 80)).toContain(safe)
  }
  expect(shown('a &#27;[2J &#x202e; b')).toBe('a ␛[2J <U+202E> b')
  expectFitting(draw(`[x](https://a.b/${evil}) <https://a.b/${evil}>`, 80), 80)
})

describe('whatever is written', () => {
  test('fits, and holds nothing that a terminal obeys but colours and links', () => {
    fc.assert(
      fc.property(
        wildMarkdown,
        fc.constantFrom(...widths),
        fc.constantFrom(dark, plain, reader),
        (text, columns, theme) => {
          expectFitting(draw(text, columns, theme), columns)
        },
      ),
    )
  })

  test('looks, drawn part by part as it comes, as the whole does', () => {
    fc.assert(
      fc.property(wildMarkdown, text => {
        const options = { columns: 40, theme: dark }
        const lines: string[] = []
        let rest = text
        for (let length = finishedLength(rest); length > 0; length = finishedLength(rest)) {
          lines.push(...markdownLines(rest.slice(0, length), { ...options, first: lines.length === 0 }))
          rest = rest.slice(length)
        }
        lines.push(...markdownLines(rest, { ...options, first: lines.length === 0 }))
        expect(seen(lines)).toBe(seen(draw(text)))
      }),
    )
  })
})

test('what is deeper than a person would read is shown as it is written', () => {
  for (const text of [`${'>'.repeat(30)} x`, `${'- '.repeat(30)}x`]) expect(shown(text, 80)).toBe(text)
})

test.each([
  ['quotes in quotes', '>'.repeat(10_000)],
  ['quotes and lists', '> - '.repeat(5000)],
  ['lists in lists', Array.from({ length: 300 }, (_, i) => `${' '.repeat(i * 2)}- x`).join('\n')],
  ['brackets', '['.repeat(10_000)],
  ['links that never end', '[a](b'.repeat(10_000)],
  ['emphasis that never ends', '_a __b'.repeat(10_000)],
  ['stars', `${'*'.repeat(50)}a`.repeat(1000)],
  ['a table of ten thousand columns', `${'|a'.repeat(10_000)}\n${'|-'.repeat(10_000)}`],
  ['5 MB in a line', 'x'.repeat(5_000_000)],
  ['5 MB of code', `\`\`\`js\n${'{[("'.repeat(1_250_000)}`],
  ['5 MB of lines', 'hello\n'.repeat(800_000)],
])('%s are drawn soon', (_, text) => {
  const start = cpuMs()
  const lines = draw(text, 80)
  // What each takes is less than a twentieth; a fault grows without a bound.
  expect(cpuMs() - start).toBeLessThan(4000)
  expectFitting(lines, 80)
})
