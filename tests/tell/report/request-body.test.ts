import fc from 'fast-check'
import { expect, test } from 'vitest'
import { inert, requestTitle, withRequestBody } from '../../../src/tell/report/request-body.ts'
import { promise } from '../../support/promise.ts'

promise(
  'D137',
  'What agents and strangers wrote mentions nobody, closes no issue and gives no command in a pull or merge request',
)
test.each([
  ['@ann look', /@[\w-]/],
  ['\\@ann', /@[\w-]/],
  ['fixes #12', /#\d/],
  ['closes acme/shop#1 and !7', /[#!]\d/],
  ['resolves GH-12, ABC-7', /[A-Z]+-\d/],
  ['fixes https://github.com/acme/shop/issues/1', /:\/\//],
  ['/merge\n  /close', /^\s*\//m],
  ['<!-- codemachine:end -->', /<!--/],
  ['&#64;ann', /#\d/],
])('%s', (text, acted) => {
  expect(text).toMatch(acted)
  expect(inert(text)).not.toMatch(acted)
  expect(inert(text).replaceAll('\u2060', '')).toBe(text)
})

test('a title is one short line, also of a hostile goal', () => {
  expect(requestTitle('# Fix\u001b[31m the cart\nand more')).toBe('Fix␛[31m the cart')
  expect(requestTitle(' \n ')).toBe('Work of codemachine')
})

const ours = (text: string) => `<!-- codemachine:begin -->\n${text}\n<!-- codemachine:end -->`

test('only the part between the marks is replaced, whatever a person has made of the rest', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (before, after) => {
      const body = `${before}${ours('old')}${after}`
      expect(withRequestBody(body, ours('new'))).toBe(`${before}${ours('new')}${after}`)
    }),
  )
  expect(withRequestBody('', ours('new'))).toBe(ours('new'))
  expect(withRequestBody('Mine.', ours('new'))).toBe(`Mine.\n\n${ours('new')}`)
  // Half of an old part is not taken for the beginning of a new one.
  const half = '<!-- codemachine:begin -->\nMine.'
  expect(withRequestBody(withRequestBody(half, ours('new')), ours('newer'))).toBe(`${half}\n\n${ours('newer')}`)
})
