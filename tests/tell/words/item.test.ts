import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Item, ItemFileChange } from '../../../src/core/events/items.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { eventLines } from '../../../src/doors/screen/blocks/event-lines.ts'
import { describeItem } from '../../../src/tell/words/item.ts'
import { dark, seen } from '../../doors/screen/blocks/terminal-lines.ts'
import { hostileText } from '../../doors/screen/hostile-text.ts'
import { recorded, sampleEvents } from '../../doors/screen/samples.ts'
import { cpuMs, timesSlower } from '../../support/cpu-time.ts'
import { promise } from '../../support/promise.ts'
import { fold } from '../../support/session-events.ts'

const FOLDER = '/work/.codemachine/projects/20261120_1'
const edit = (path: string, diff: string): ItemFileChange => ({ path, change: 'update', movedTo: null, diff })
const changes = (...all: ItemFileChange[]): Item => ({
  kind: 'file-change',
  id: 'c1',
  status: 'completed',
  changes: all,
})
const told = (item: Item) => describeItem(item, { session: '20261120_1', directory: '/work' })

const MAIN = edit(
  `${FOLDER}/MAIN.md`,
  `@@ -20,9 +20,9 @@
 ## In progress
 
-- [ ] T3 Test for empty names
+- [ ] **T4** Write the docs
 
 ## Todo
 
-- [ ] T4 Write the docs
+- [ ] T5 Publish
 
 ## Done
+- [x] T3 Test for empty names
`,
)
const TASKS = edit(
  `${FOLDER}/tasks.json`,
  `@@ -14,7 +14,7 @@
     {
       "id": "T3",
       "name": "Test for empty \\"names\\"",
-      "done": false
+      "done": true
     },
`,
)
const CODE = edit('/work/src/a.ts', '@@ -1 +1 @@\n-a\n+b\n')

const draw = (item: Item, full = false) => {
  const [created, then] = recorded([sampleEvents['session-created'], { type: 'item-completed', round: 1, item }])
  if (!created || !then) throw new Error('no event')
  const state = fold(fold(emptyState('20261120_1'), created), then)
  return seen(eventLines(then, state, { columns: 60, theme: dark, full })).trim()
}

promise(
  'O57',
  'What an agent notes in its memory files is one quiet line that says what became of the tasks; the log has it in full',
)
test('what an agent notes in its memory files is one quiet line that says what became of the tasks', () => {
  expect(told(changes(MAIN, TASKS))).toEqual({
    text: '✎ MAIN.md, tasks.json: T3 done, T4 begun',
    more: [],
    tone: 'quiet',
  })
  expect(draw(changes(MAIN, TASKS))).toBe('✎ MAIN.md, tasks.json: T3 done, T4 begun')
  expect(draw(changes(MAIN, TASKS), true)).toContain('+ - [x] T3 Test for empty names')
})

test('what it changes beside them is told as ever, before it', () => {
  expect(draw(changes(MAIN, CODE))).toBe('✎ src/a.ts  +1 −1\n1 - a\n1 + b\n\n✎ MAIN.md: T3 done, T4 begun')
  expect(told(changes(MAIN, CODE))).toMatchObject({
    text: '✎ src/a.ts (+1 −1)',
    more: ['✎ MAIN.md: T3 done, T4 begun'],
  })
})

test.each<[string, ItemFileChange, string]>([
  [
    'a new tasks.json',
    {
      ...TASKS,
      change: 'add',
      diff: '{ "tasks": [\n{"id":"T1","name":"a","done":false},\n{"id":"T2","done":false}\n] }\n',
    },
    'tasks.json: 2 tasks planned',
  ],
  [
    'tasks on one line each',
    {
      ...TASKS,
      diff: '@@ -2,3 +2,3 @@\n-{"id":"T1","done":true},\n+{"id":"T1","done":false},\n-{"id":"T2","done":false}\n+{"id":"T7","done":false}\n',
    },
    'tasks.json: T1 reopened, T7 added, T2 left out',
  ],
  [
    'a task that is not named in the diff',
    { ...TASKS, diff: '@@ -9 +9 @@\n-  "done": false\n+  "done": true\n' },
    'tasks.json',
  ],
  ['a note', { ...MAIN, path: '/work/.codemachine/kb/how-to.md' }, 'kb/how-to.md'],
  ['the plan of a build', { ...TASKS, path: '/work/.codemachine/plan/tasks.json' }, 'plan/tasks.json: T3 done'],
  ['a scope', { ...MAIN, path: `${FOLDER}/steps/one/MAIN.md` }, 'steps/one/MAIN.md: T3 done, T4 begun'],
  ['one that is deleted', { ...MAIN, change: 'delete', diff: '' }, 'MAIN.md (deleted)'],
])('%s', (_, change, words) => {
  expect(told(changes(change))?.text).toBe(`✎ ${words}`)
})

promise('O57')
test('what is refused, moved away, or only looks like memory is told as any change', () => {
  expect(told({ ...changes(MAIN), status: 'declined' } as Item)?.text).toContain('projects/20261120_1/MAIN.md (+')
  expect(told(changes({ ...MAIN, change: 'move', movedTo: '/work/a.md' }))?.text).toContain(' → a.md')
  expect(told(changes({ ...MAIN, path: '/work/.codemachine/agents/MAIN.md' }))?.text).toContain('agents/MAIN.md (+')
  expect(told(changes({ ...MAIN, path: '/elsewhere/.codemachine/projects/1/MAIN.md' }))?.text).toContain('(+')
})

test('whatever is written there, the line is one, bounded and soon', () => {
  fc.assert(
    fc.property(hostileText, fc.constantFrom('add', 'update', 'delete'), (text, change) => {
      const path = `${FOLDER}/${text}/tasks.json`
      const item = changes({ ...TASKS, path, change, diff: `@@ -1 +1 @@\n+"id": "${text}", "done": true\n` })
      const { text: line = '', more = [] } = told(item) ?? {}
      expect([line, ...more].join('')).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
      expect(line.length).toBeLessThan(600)
    }),
  )
  const start = cpuMs()
  for (const line of ['+"id": "', '+- [x] ', '+"id":"a","done":', '+## ', '+ "done" '])
    told(
      changes({ ...MAIN, diff: `@@\n${line.repeat(60_000)}` }, { ...TASKS, diff: `@@\n${`${line}\n`.repeat(60_000)}` }),
    )
  expect(cpuMs() - start).toBeLessThan(2000 * timesSlower())
})
