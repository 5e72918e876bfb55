import { expect, test } from 'vitest'
import { cardOf } from '../../../src/tell/report/card.ts'
import { markdownOf } from '../../../src/tell/report/markdown.ts'
import { htmlOf } from '../../../src/tell/report/page/page.ts'
import type { ReportData } from '../../../src/tell/report/report-data.ts'
import { HERE, MadeUpNight } from './made-up-night.ts'

function told(data: ReportData) {
  const card = cardOf(data, { commands: [], columns: 120, full: null }).map(({ text }) => text)
  return {
    card: card.find(line => line.startsWith('changes ')),
    markdown: markdownOf(data, HERE),
    page: htmlOf(data, HERE),
  }
}

test('what a round left before codemachine was killed is told although no savepoint has it yet', () => {
  const data = new MadeUpNight().savepoint(0, 0).round({ files: 2 }).report('cut-off')
  const words = 'hat round 1 left (2 files) is in no savepoint yet: codemachine resume makes it'
  const { card, markdown, page } = told(data)
  expect(card).toBe(`changes  w${words}`)
  expect(markdown).toContain(`## What changed\n\nW${words}.\n`)
  expect(page).toContain(`W${words}.`)
  expect(markdown + page).not.toMatch(/nothing has changed|No file is different/)
  expect(data.changes).toMatchObject({ files: 0, unkept: [{ round: 1, files: 2 }] })
})

test('it stands beside what the last savepoint has, and nobody is sent to resume where the session runs or has ended', () => {
  const night = () => new MadeUpNight().savepoint(0, 0).round().savepoint(1, 4, ['a.txt']).round({ files: 1 }).round()
  const words = 'hat rounds 2 and 3 left (1 and 3 files) is in no savepoint'
  expect(told(night().report('running')).card).toBe(`changes  4 files, +112 −12 lines, 1 commit; w${words} yet`)
  const { card, page } = told(night().end({ kind: 'limit', limit: 'rounds' }).report())
  expect(card).toBe(`changes  4 files, +112 −12 lines, 1 commit; w${words}`)
  expect(page).toContain(`W${words}.`)
})

test('a savepoint that was made later has what the rounds before it left, and a round that changed nothing left nothing', () => {
  const night = new MadeUpNight().savepoint(0, 0).round().round().savepoint(2, 4, ['a.txt']).round({ files: 0 })
  expect(night.report('cut-off').changes.unkept).toEqual([])
  expect(told(night.report('cut-off')).card).toBe('changes  4 files, +112 −12 lines, 1 commit')
  const again = night.savepoint(3, 4).round({ counts: false, files: 1 }).savepoint(4, 5).round({ files: 2 })
  expect(told(again.report('cut-off')).card, 'tried again, and cut off').toContain('what round 4 left (2 files)')
})

test('where no savepoint has what it began with, the rounds tell what they changed, and nothing is said twice', () => {
  expect(told(new MadeUpNight().round().report('cut-off')).card).toBe('changes  1 file')
})

test('files that are in no commit are named beside the commits', () => {
  const uncommitted = { paths: ['notes.md', 'a.txt', 'b.txt', 'c.txt'], count: 60 }
  const night = (more: object) => new MadeUpNight().savepoint(0, 0).round().savepoint(1, 4, ['a.txt'], more).report()
  const { card, markdown, page } = told(night({ uncommitted }))
  const words = 'Not committed: notes.md, a.txt, b.txt and 57 more files'
  expect(card).toBe('changes  4 files, +112 −12 lines, 1 commit')
  for (const text of [markdown, page]) expect(text.split(words)).toHaveLength(2)
  expect(markdown.indexOf(words)).toBeLessThan(markdown.indexOf('## Proof'))
  expect(told(night({ uncommitted, commits: [] })).card, 'without commits').toBe('changes  4 files, +112 −12 lines')
  expect(told(night({})).card, 'all committed').toBe('changes  4 files, +112 −12 lines, 1 commit')
})
