import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { TemplateError } from '../../../src/base/errors.ts'
import { STATES, stepTo } from '../../../src/modes/change/machine.ts'
import type { StateName } from '../../../src/modes/change/work.ts'
import { openChangeIn } from '../../support/change-session.ts'
import { playSession } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'

const REFINEMENT = 'REVIEWING_PLAN.refinement'
const NAMES = Object.keys(STATES) as StateName[]

promise('C5')
test('the edges of the table are those of the page about changes', async () => {
  const page = await readFile(join(import.meta.dirname, '../../../docs/reference/change-states.md'), 'utf8')
  const rows = [...page.matchAll(/^\| `([A-Z_a-z.-]+)` \| ((?:`[A-Z_a-z.-]+`(?:, )?)+) \|/gm)]
  const edges = rows.map(([, from, to = '']) => [from, [...to.matchAll(/`([^`]+)`/g)].map(([, name]) => name)])
  // Of a change of the plan the page says for all states at once that it leads there.
  const told = (name: StateName) =>
    name === 'REVIEWING_PLAN.rejected' ? STATES[name].next : STATES[name].next.filter(to => to !== REFINEMENT)
  expect(Object.fromEntries(edges)).toEqual(Object.fromEntries(NAMES.map(name => [name, told(name)])))
})

test('a change of the plan leads to refinement from every state from the first plan on', () => {
  const without = NAMES.filter(name => !STATES[name].next.includes(REFINEMENT))
  expect(without).toEqual(['GATHERING_CONTEXT'])
})

test('every state can be reached, and leads on', () => {
  const reached = new Set<StateName>(['WAITING_FOR_INPUT'])
  for (const name of reached) for (const next of STATES[name].next) reached.add(next)
  expect([...reached].sort()).toEqual([...NAMES].sort())
})

test('an edge that is in the table is a step, and one that is not throws', () => {
  for (const from of NAMES) {
    for (const to of NAMES) {
      const enter = () => stepTo(from, to, 'a test wants it')
      if (STATES[from].next.includes(to)) expect(enter()).toEqual({ kind: 'enter', state: to, why: 'a test wants it' })
      else expect(enter).toThrow(`The state ${from} is to be followed by ${to}`)
    }
  }
})

promise(
  'C5',
  'A session of a change goes only where its table of states allows; an edge that is not in it stops the session with a sentence',
)
test('an edge that is not in the table stops the session with a sentence', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'codemachine-change-'))
  const template = await openChangeIn(folder)
  const next = () => stepTo('WAITING_FOR_INPUT', 'GENERATING_SUMMARY', 'a test wants it')
  const played = playSession([], { folder, template: { ...template, next }, begun: { template: 'change' } })
  await expect(played).rejects.toThrow(TemplateError)
  await expect(played).rejects.toThrow(
    'the template "change" failed in `next`: The state WAITING_FOR_INPUT is to be followed by GENERATING_SUMMARY (a test wants it), which is no edge of the table.',
  )
  await rm(folder, { recursive: true, force: true })
})
