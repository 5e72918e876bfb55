import { expect, test } from 'vitest'
import { cardOf } from '../../../src/tell/report/card.ts'
import { commandsOf } from '../../../src/tell/report/commands.ts'
import { markdownOf } from '../../../src/tell/report/markdown.ts'
import { htmlOf } from '../../../src/tell/report/page/page.ts'
import { promise } from '../../support/promise.ts'
import { withContract } from './contract-night.ts'
import { badNight, goodNight, HERE } from './made-up-night.ts'

promise(
  'P90',
  'The report says the outcome, what to look at first, the proof, the changes, the refusals, then time and tokens',
)
test('a report begins with what to look at first, then the sentences, and says none of it twice', () => {
  const data = withContract()
  const page = htmlOf(data, HERE)
  const at = (text: string) => page.indexOf(text)
  const first = page.slice(at('Look at this first'), at('What you asked for'))
  expect(first.match(/<li>.*?<\/li>/gs)?.map(item => item.replace(/<[^>]*>/g, '').slice(0, 12))).toEqual([
    'S2 weak: its',
    'S3 its check',
    'S1 has a fla',
    'Assumed: Yes',
    'Protected: t',
    'S4 cannot be',
  ])
  expect([at('<h1'), at('Look at this first'), at('What you asked for'), at('class="numbers"')]).toEqual(
    [at('<h1'), at('Look at this first'), at('What you asked for'), at('class="numbers"')].sort((a, b) => a - b),
  )
  expect(page.match(/<details class="file sentence">/g)).toHaveLength(4)
  expect(page).toContain('<span class="removed">-  if (dark) return &quot;dark&quot;\n</span>')
  expect(page).toContain('1 passing')
  expect(page).toContain('failed before, passed now, flaky')
  expect(page).not.toContain('What is left')
  const text = markdownOf(data, HERE)
  expect(text.indexOf('## Look at this first')).toBeLessThan(text.indexOf('## What you asked for'))
  expect(
    cardOf(data, { commands: [], columns: 100, full: null })
      .map(({ text }) => text)
      .join('\n'),
  ).toMatch(/look at {2}S2 weak/)
})

test.each([
  ['a good night', goodNight().report()],
  ['a bad night', badNight().report()],
  ['a contract', withContract()],
])(
  'outcome, first looks, proof, changes, refusals and numbers come in this order, as page, Markdown and card: %s',
  (_, data) => {
    const places = (text: string, parts: readonly string[]) => parts.map(part => text.indexOf(part))
    const inOrder = (found: readonly number[]) => {
      expect(Math.min(...found)).toBeGreaterThanOrEqual(0)
      expect(found).toEqual(found.toSorted((a, b) => a - b))
    }
    const asked = data.contract === undefined ? [] : ['What you asked for']
    const heads = ['Look at this first', ...asked, 'Proof', 'hat changed', 'Claims that were not accepted']
    const page = htmlOf(data, HERE).replace('<h2>Changes', '<h2>What changed')
    inOrder(places(page, ['<h1', ...heads, 'class="numbers"', '<h2>Timeline', '<h2>Rounds', 'class="commands"']))
    inOrder(places(markdownOf(data, HERE), ['# ', ...heads, '## The session', '## Rounds', '## Look closer']))
    const card = cardOf(data, { commands: [], columns: 100, full: null }).map(({ text }) => text.slice(0, 9).trim())
    inOrder(['goal', 'look at', 'proof', 'changes', 'refused', 'took'].map(label => card.indexOf(label)))
  },
)

test('the top of a report fits a chat message, however much there is to look at, and the rest is in full below', () => {
  const data = withContract()
  const [sentence] = data.contract?.sentences ?? []
  if (data.contract === undefined || sentence === undefined) throw new Error('It has a contract.')
  const long = 'Something long happened, and it has to be told. '.repeat(40)
  const many = Array.from({ length: 40 }, (_, at) => ({
    ...sentence,
    id: `S${at}`,
    state: 'weak' as const,
    quote: `${at} ${long}`,
  }))
  const outcome = { kind: 'needs-person', reason: long, hint: { do: 'say', text: `Hint: ${long}` } } as const
  const loaded = { ...data, goal: long.repeat(4), outcome, contract: { ...data.contract, sentences: many } }
  const [top = '', ...below] = markdownOf(loaded, HERE).split(/^(?=## (?!Look at this first))/m)
  expect(top.length).toBeLessThan(4000)
  expect(top).toContain('and 38 sentences that are not proved')
  expect(top).toContain('Assumed: Yes')
  const full = below.find(each => each.startsWith('## In full')) ?? ''
  for (const text of [long.repeat(4), `Hint: ${long}`]) expect(full).toContain(text.trim())
})

test('what is done by a contract alone can be verified again, too', () => {
  const data = withContract()
  const alone = { ...data, proof: { ...data.proof, gates: [] } }
  expect(commandsOf(alone, HERE)).toContainEqual({
    command: 'codemachine verify 20261120_1',
    what: 'runs gates and checks again',
  })
})
