import { expect, test } from 'vitest'
import { cardOf } from '../../../src/tell/report/card.ts'
import { commandsOf } from '../../../src/tell/report/commands.ts'
import { markdownOf } from '../../../src/tell/report/markdown.ts'
import { htmlOf } from '../../../src/tell/report/page/page.ts'
import { promise } from '../../support/promise.ts'
import { withContract } from './contract-night.ts'
import { HERE } from './made-up-night.ts'

promise(
  'P90',
  'The report begins with what to look at first, and then each sentence with its checks and wrong versions',
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
    'S4 no progra',
  ])
  expect([at('<h1'), at('Look at this first'), at('What you asked for'), at('class="numbers"')]).toEqual(
    [at('<h1'), at('Look at this first'), at('What you asked for'), at('class="numbers"')].sort((a, b) => a - b),
  )
  expect(page.match(/<details class="file sentence">/g)).toHaveLength(4)
  expect(page).toContain('<span class="removed">-  if (dark) return &quot;dark&quot;\n</span>')
  expect(page).toContain('1 passing')
  expect(page).toContain('failed before, passed now, flaky')
  const [, left = ''] = /<h2>What is left<\/h2>(.*?)<\/section>/s.exec(page) ?? []
  expect(left).not.toContain('assumption')
  const text = markdownOf(data, HERE)
  expect(text.indexOf('## Look at this first')).toBeLessThan(text.indexOf('## What you asked for'))
  expect(
    cardOf(data, { commands: [], columns: 100, full: null })
      .map(({ text }) => text)
      .join('\n'),
  ).toMatch(/left {5}S2 weak/)
})

test('what is done by a contract alone can be verified again, too', () => {
  const data = withContract()
  const alone = { ...data, proof: { ...data.proof, gates: [] } }
  expect(commandsOf(alone, HERE)).toContainEqual({
    command: 'codemachine verify 20261120_1',
    what: 'runs gates and checks again',
  })
})
