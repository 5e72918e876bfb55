import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Notice, personNotice } from '../../src/core/rules/notices.ts'
import { fitNotices } from '../../src/session/round-input.ts'

const MOST = 10_000
const said = (n: number, length: number) => personNotice(`${n}: ${'x'.repeat(length)}`)
const seen = (text: string): Notice => ({ from: 'codemachine', text })

test('what fits is told whole, in its order', () => {
  expect(fitNotices([seen('one'), personNotice('two'), seen('three\nfour')], MOST)).toEqual([
    '- one',
    '- A person says: two',
    '- three\nfour',
  ])
})

test('the newest is told whole, and an older one as far as there is room, with a word on how much is missing', () => {
  const [older = '', newest] = fitNotices([said(1, 6000), said(2, 6000)], MOST)
  expect(newest).toBe(`- ${said(2, 6000).text}`)
  expect(older).toMatch(/^- A person says: 1: x{3000,}\n\[… \d+ more characters\]$/)
})

test('a person’s own words go before what codemachine has noticed, and what is left out is counted', () => {
  const lines = fitNotices([said(1, 9800), seen('put back '.repeat(10)), seen('A person says: '.repeat(20))], MOST)
  expect(lines).toEqual([`- ${said(1, 9800).text}`, '- There was no room here for 2 more.'])
})

test('whatever is told, it is no longer than it may be, and nothing is lost without a word', () => {
  const notice = fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 12_000 }))
  fc.assert(
    fc.property(fc.array(notice, { maxLength: 30 }), notices => {
      const texts = notices.map(([isSaid, length], n) =>
        isSaid ? said(n, length) : seen(`${n}${'😀'.repeat(length / 2)}`),
      )
      const lines = fitNotices(texts, MOST)
      expect(lines.join('\n').length).toBeLessThanOrEqual(MOST)
      const left = Number(lines.at(-1)?.match(/no room here for (\d+) more/)?.[1] ?? 0)
      expect(lines.length - Math.sign(left) + left).toBe(texts.length)
      expect(lines.join('\n').isWellFormed()).toBe(true)
    }),
  )
})
