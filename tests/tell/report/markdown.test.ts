import { lexer, type Token } from 'marked'
import { describe, expect, test } from 'vitest'
import { codeSpan, markdownOf } from '../../../src/tell/report/markdown.ts'
import { htmlOf } from '../../../src/tell/report/page/page.ts'
import { hostileNight } from './hostile-night.ts'
import { badNight, HERE, MadeUpNight } from './made-up-night.ts'

/** All tokens, those inside others too. */
function tokensOf(tokens: readonly Token[]): Token[] {
  return tokens.flatMap(token => {
    const inner: Token[] = 'tokens' in token && token.tokens ? token.tokens : []
    const items: Token[] = token.type === 'list' ? token.items : []
    const cells = token.type === 'table' ? [...token.header, ...token.rows.flat()] : []
    return [token, ...tokensOf([...inner, ...items, ...cells.flatMap(cell => cell.tokens)])]
  })
}

test('the report as Markdown has its parts as headings, and its tables as tables', () => {
  const tokens = tokensOf(lexer(markdownOf(badNight().report(), HERE)))
  const headings = tokens.flatMap(token => (token.type === 'heading' ? [token.text] : []))
  expect(headings).toEqual([
    'Needs a person: the review goes round in circles',
    'Look at this first',
    'Proof',
    'What changed',
    'Claims that were not accepted',
    'Questions and assumptions',
    'The session',
    'Rounds',
    'Waits and failures',
    'Look closer, or undo',
  ])
  const tables = tokens.flatMap(token => (token.type === 'table' ? [token.rows.length] : []))
  expect(tables).toEqual([5, 6])
})

describe('what came from outside', () => {
  const text = markdownOf(hostileNight().report(), HERE)
  const tokens = tokensOf(lexer(text))

  test('is no link, image, HTML, heading or table of its own, and nothing is struck out', () => {
    const types = new Set(tokens.map(({ type }) => type))
    for (const type of ['link', 'image', 'html', 'del', 'hr', 'code', 'def']) expect(types).not.toContain(type)
    const headings = tokens.filter(({ type }) => type === 'heading')
    expect(headings).toHaveLength(13)
    for (const token of tokens) {
      if (token.type !== 'table') continue
      for (const row of token.rows) expect(row).toHaveLength(token.header.length)
    }
  })

  test('does not steer a terminal, nor reorder a line', () => {
    expect(text).not.toMatch(/[^\n\P{Cc}]|[\p{Bidi_Control}\u2028]/u)
    expect(text).toContain('<U+202E>'.replace('<', '\\<').replace('>', '\\>').replace('+', '+'))
  })
})

test('a session that has only begun is told without the parts that it does not have', () => {
  const text = markdownOf(new MadeUpNight().report('running'), HERE)
  expect(text).toContain('# At work')
  expect(text).not.toContain('## Rounds')
})

test('a code span holds backticks', () => {
  expect(codeSpan('a ``b`` c')).toBe('``` a ``b`` c ```')
})

test('a sentence of its own has no sign that only the making of it needed', () => {
  const text = markdownOf(new MadeUpNight().report('running'), HERE)
  expect(text).toContain('- No gates are configured: no command was run that proves the work.\n')
  const shown = tokensOf(lexer(text)).flatMap(token => (token.type === 'text' && !token.tokens ? [token.text] : []))
  expect(shown).toContain('No gates are configured: no command was run that proves the work.')
})

describe("the template's own section", () => {
  const report = new MadeUpNight().report('running')
  const section = {
    title: 'The change',
    note: null,
    text: 'Open:\n- T1 failed: `npm test`\n- <b>T2</b> waits\n\nTo look: `` echo `date` ``\nTo undo: rewind',
  }
  const text = markdownOf({ ...report, goal: 'One\nTwo', work: { ...report.work, section } }, HERE)

  test('keeps its lines apart, as a goal of several lines does, and has lists and code as such', () => {
    const quotes = lexer(text).flatMap(token => (token.type === 'blockquote' ? [token] : []))
    const kinds = quotes.map(({ tokens }) => tokensOf(tokens ?? []).map(({ type }) => type))
    expect(kinds[0]).toEqual(['paragraph', 'text', 'br', 'text'])
    const list = quotes[1]?.tokens?.find(({ type }) => type === 'list')
    expect(list && 'items' in list ? list.items : []).toHaveLength(2)
    expect(kinds[1]?.filter(type => type === 'br')).toHaveLength(1)
    const code = tokensOf(quotes[1]?.tokens ?? []).flatMap(token => (token.type === 'codespan' ? [token.text] : []))
    expect(code).toEqual(['npm test', 'echo `date`'])
  })

  test('takes the place of the board where its table says all that the board does, on the page too', () => {
    const board = { count: 1, rows: [{ mark: 'done', id: 'T1', text: 'Write it', who: null }] } as const
    const table = { head: ['task'], rows: [['T1']] }
    const both = { ...report, work: { ...report.work, board, section: { ...section, table } } }
    const one = {
      ...report,
      work: { ...report.work, board, section: { ...section, table, tellsBoard: true } },
    } as const
    expect([markdownOf(both, HERE), htmlOf(both, HERE)].map(told => /## Board|<h2>Board/.test(told))).toEqual([
      true,
      true,
    ])
    expect([markdownOf(one, HERE), htmlOf(one, HERE)].map(told => /## Board|<h2>Board/.test(told))).toEqual([
      false,
      false,
    ])
  })

  test('has no HTML of its own', () => {
    expect(tokensOf(lexer(text)).map(({ type }) => type)).not.toContain('html')
  })
})
