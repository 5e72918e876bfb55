import { expect, test } from 'vitest'
import { planDiff } from '../../../src/session/plan/plan-change.ts'
import { cpuMs, timesSlower } from '../../support/cpu-time.ts'

const plan = (tasks: readonly string[]) =>
  `# Goal\n\nbuild X\n\n## Todo\n\n${tasks.map(task => `- [ ] ${task}\n`).join('')}`
const asIs = (text: string) => text
const before = { main: plan(['T1 a', 'T2 b']), tasks: '{ "tasks": [] }\n' }

test('a plan that stays as it is has no diff, and a file that does is left out', () => {
  expect(planDiff(before, before, asIs)).toEqual([])
  expect(planDiff(before, { ...before, main: plan(['T2 b']) }, asIs)).toEqual([
    {
      file: 'MAIN.md',
      diff: '--- MAIN.md\n+++ MAIN.md\n@@ -4,5 +4,4 @@\n \n ## Todo\n \n-- [ ] T1 a\n - [ ] T2 b\n',
    },
  ])
})

test('a long diff says how much is missing', () => {
  const [change] = planDiff(before, { ...before, main: plan(Array(490).fill('T3 all over again'.repeat(4))) }, asIs)
  expect(change?.diff.length).toBeLessThan(16 * 1024 + 100)
  expect(change?.diff).toMatch(/\n\[… \d+ more characters\]$/)
})

const lines = (count: number, line: (index: number) => unknown) =>
  Array.from({ length: count }, (_, i) => `${line(i)}\n`).join('')

test('a line that is cut in two shows no part of a secret, and a change of nothing else is told of', () => {
  const value = `sk-${'0123456789'.repeat(100)}`
  const redact = (text: string) => text.replaceAll(value, '[secret KEY]')
  const [main, tasks] = planDiff(
    { main: '', tasks: `${value}\n` },
    { main: `${'x'.repeat(15_900)}\n${value}\n`, tasks: '[secret KEY]\n' },
    redact,
  )
  expect(main?.diff).toContain('+[secret KEY]\n')
  expect(main?.diff).not.toContain('sk-')
  expect(tasks?.diff).toBe('--- tasks.json\n+++ tasks.json\n[… only a secret is different]\n')
})

test.each<[string, string, string]>([
  ['nothing in common', lines(15_000, i => `old ${i}`), lines(15_000, i => `new ${i}`)],
  ['two words in another order', lines(20_000, i => i % 2), lines(20_000, i => Number(i % 3 === 0))],
  ['more lines than a plan has', lines(300_000, i => i), lines(299_000, i => i)],
])('files with %s are told of as written anew, in a moment', (_, old, now) => {
  const startedAt = cpuMs()
  const [change] = planDiff({ main: old, tasks: '' }, { main: now, tasks: '' }, asIs)
  expect(change?.diff).toBe('--- MAIN.md\n+++ MAIN.md\n[… written anew]\n')
  expect(cpuMs() - startedAt).toBeLessThan(1000 * timesSlower())
})

test('a line of megabytes is cut', () => {
  const [tasks] = planDiff(
    { main: '', tasks: 'x'.repeat(4_000_000) },
    { main: '', tasks: '\ud800'.repeat(4_000_000) },
    asIs,
  )
  expect(tasks?.diff.length).toBeLessThan(16 * 1024 + 100)
  expect(tasks?.diff.isWellFormed()).toBe(true)
})
