import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  openPicker,
  type Picker,
  type PickerQuestion,
  pickerKey,
  pickerLines,
} from '../../../../src/doors/screen/composer/picker.ts'
import { promise } from '../../../support/promise.ts'
import { dark, expectFitting, plain, reader, seen, wildMarkdown } from '../blocks/terminal-lines.ts'
import { keyNamed } from './press.ts'

const PLAN = `Rate limiting for every route: \`GET\` and \`POST\`.

**Files**

- \`src/限流.ts\`: 新的令牌桶 🪣
- \`src/server.ts\`: uses it

**This will count as proof**

- \`npm test\` — it has a test of the limit

\`\`\`diff
@@ -1,2 +1,2 @@
-a bucket for all
+a bucket for each address
\`\`\`
`

function question(markdown = PLAN): PickerQuestion {
  return {
    title: 'Plan, version 2. Carry it out?',
    markdown,
    options: ['Accept', 'Change it', 'Edit it', 'Plan again', 'Stop'].map(label => ({ id: label, label })),
  }
}

function press(picker: Picker, chord: string, area: Parameters<typeof pickerKey>[2]): Picker {
  return pickerKey(picker, chord.length === 1 ? { ...keyNamed('x'), input: chord } : keyNamed(chord), area).picker
}

test('what a question is about is drawn as Markdown, with the diff in its colours', () => {
  const { lines } = pickerLines(openPicker(question()), { columns: 60, maxRows: 40, theme: dark })
  expect(seen(lines)).toMatchInlineSnapshot(`
    "Plan, version 2. Carry it out?
    Rate limiting for every route: GET and POST.

    Files

    • src/限流.ts: 新的令牌桶 🪣
    • src/server.ts: uses it

    This will count as proof

    • npm test — it has a test of the limit

      diff
      @@ -1,2 +1,2 @@
      -a bucket for all
      +a bucket for each address

    ❯ 1. Accept
      2. Change it
      3. Edit it
      4. Plan again
      5. Stop"
  `)
  const row = (text: string) => lines.find(line => line.includes(text)) ?? ''
  expect(row('a bucket for all')).toContain(dark.paint('removed', '-a bucket for all'))
  expect(row('for each address')).toContain(dark.paint('added', '+a bucket for each address'))
})

test('of what is longer than its rows a part is shown, and where it is', () => {
  const area = { columns: 40, maxRows: 8, theme: plain }
  const first = openPicker(question())
  expect(seen(pickerLines(first, area).lines)).toMatchInlineSnapshot(`
    "Plan, version 2. Carry it out?
    Rate limiting for every route: \`GET\` and
    \`POST\`.

    ── 1–3 of 17 PgUp PgDn ─────────────────
    ❯ 1. Accept
      2. Change it
    ↓ 3. Edit it"
  `)
  const next = press(first, 'pagedown', area)
  expect(seen(pickerLines(next, area).lines)).toMatchInlineSnapshot(`
    "Plan, version 2. Carry it out?
    Files

    • \`src/限流.ts\`: 新的令牌桶 🪣
    ── 4–6 of 17 PgUp PgDn ─────────────────
    ❯ 1. Accept
      2. Change it
    ↓ 3. Edit it"
  `)
  const end = press(first, 'end', area)
  expect(seen(pickerLines(end, area).lines)).toContain('+a bucket for each address')
  expect(press(end, 'pagedown', area)).toEqual(end)
  expect(press(press(end, 'home', area), 'pageup', area)).toEqual(first)
  expect(press(press(first, ' ', area), 'b', area)).toEqual(first)
  expect(pickerKey(next, keyNamed('return'), area).result).toEqual({ kind: 'chosen', id: 'Accept' })
})

test('it is scrolled while an answer is typed, and a blank goes into the answer', () => {
  const area = { columns: 40, maxRows: 12, theme: plain }
  const writing = openPicker({ title: 'Change it', markdown: PLAN, options: [], freeText: 'What' })
  const typed = press(press(press(writing, 'a', area), ' ', area), 'pagedown', area)
  expect([typed.written.text.lines, typed.scrolled > 0]).toEqual([['a '], true])
  expect(pickerLines(typed, area).caret).not.toBeNull()
})

describe.each([
  [40, 10],
  [80, 24],
  [100, 30],
  [200, 50],
])('on a terminal of %i columns and %i rows', (columns, rows) => {
  const area = { columns, maxRows: rows - 3, theme: plain }

  promise(
    'C80',
    'What a person decides on is drawn as Markdown, diffs in colours, and can be read to its end on any screen; nothing in it steers the terminal',
  )
  test('every line of it can be read, and what is chosen is seen', () => {
    const long = Array.from({ length: 120 }, (_, i) => `${i + 1}. line ${i + 1} of it`).join('\n')
    const read = new Set<string>()
    let picker = openPicker(question(long))
    for (let page = 0; page < 120; page += 1) {
      const { lines } = pickerLines(picker, area)
      expect(lines.length).toBeLessThanOrEqual(area.maxRows)
      expect(seen(lines)).toMatch(/❯ 1\. Accept/)
      for (const [line] of seen(lines).matchAll(/line \d+ of it/g)) read.add(line)
      picker = press(picker, 'pagedown', area)
    }
    expect(read.size).toBe(120)
  })

  promise('C80')
  test('whatever it holds, it fits and steers nothing', () => {
    fc.assert(
      fc.property(wildMarkdown, fc.constantFrom(dark, plain, reader), fc.nat(300), (markdown, theme, scrolled) => {
        const { lines } = pickerLines({ ...openPicker(question(markdown)), scrolled }, { ...area, theme })
        expect(lines.length).toBeLessThanOrEqual(area.maxRows)
        expectFitting(lines, columns)
      }),
    )
  })
})
