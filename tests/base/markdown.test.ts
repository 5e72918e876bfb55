import fc from 'fast-check'
import { expect, test } from 'vitest'
import { codeBlock, inlineCode } from '../../src/base/markdown.ts'

const ticked = fc.array(fc.constantFrom('`', '``', 'a', ' ', '`````js'), { maxLength: 20 }).map(parts => parts.join(''))

test('no backtick of a text ends the code that it stands in', () => {
  fc.assert(
    fc.property(ticked, text => {
      const [, fence = '', inside = ''] = /^(`+)(?!`)(.*?)(?<!`)\1$/.exec(inlineCode(`x${text}x`)) ?? []
      expect(fence).not.toBe('')
      expect(inside.split(/[^`]+/)).not.toContain(fence)
      expect(inside.trim()).toBe(`x${text}x`)
    }),
  )
})

test('a text with very many backticks in a row makes no fence of more than a hundred', () => {
  const block = codeBlock(`a\n${'`'.repeat(5_000)}\nb\n\n`, 'text')
  const [opening = '', ...lines] = block.split('\n')
  expect(opening).toBe(`${'`'.repeat(100)}text`)
  expect(lines.at(-1)).toBe('`'.repeat(100))
  expect(lines.slice(0, -1)).toEqual(['a', '``\u200b', 'b'])
  expect(codeBlock('a ``` b')).toBe('````\na ``` b\n````')
})
