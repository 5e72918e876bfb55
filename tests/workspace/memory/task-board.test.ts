import { expect, test } from 'vitest'
import { nothingSecret } from '../../../src/secrets/redactor.ts'
import { parseBoardMain } from '../../../src/workspace/memory/main-file.ts'
import { currentTask, parseBoardTasks } from '../../../src/workspace/memory/tasks-file.ts'

const main = (body: string, title = 'Dark mode') =>
  `---\nstatus: in-progress\nfinite_incantatem: false\nshort_title: ${title}\n---\n# Goal\nT9\n${body}`

const plain = nothingSecret.text
const task = (id: string, done = false) => ({ id, name: `Task ${id}`, phase: null, done })

test('a MAIN.md says its title and what is in progress, and nothing of what is to do later', () => {
  const text = main(
    '## Todo\n- [ ] T3 later\n## In progress\n- [x] T1 over\n- [ ] T2 now\n### Todo\n- [ ] T4\n## Done\n- T0',
  )
  expect(parseBoardMain(text, plain)).toEqual({ title: 'Dark mode', inProgress: ['T2 now'] })
})

test.each([
  ['is empty', ''],
  ['ends in its front matter', '---\nstatus: in-pro'],
  ['has no status', '---\nshort_title: X\n---\n'],
])('a MAIN.md that %s says nothing', (_what, text) => {
  expect(parseBoardMain(text, plain)).toBeNull()
})

test('tasks are told with their phase where it is a text', () => {
  const tasks = [
    { id: 'T1', name: 'Plan', done: true, phase: 'Planning' },
    { id: 'T2', name: 'Build', done: false, phase: 7 },
    { id: 'T3', name: 'Test', done: false },
  ]
  expect(parseBoardTasks(`\uFEFF${JSON.stringify({ tasks })}`, plain)).toEqual([
    { id: 'T1', name: 'Plan', phase: 'Planning', done: true },
    { id: 'T2', name: 'Build', phase: null, done: false },
    { id: 'T3', name: 'Test', phase: null, done: false },
  ])
})

test('a name as long as a file does not make the board as long', () => {
  const text = JSON.stringify({ tasks: [{ id: 'T1', name: 'x'.repeat(1_000_000), done: false }] })
  expect(parseBoardTasks(text, plain)?.[0]?.name.length).toBeLessThan(1100)
})

test('tasks that are only half written say nothing', () => {
  expect(parseBoardTasks('{ "tasks": [ { "id": "T1", "na', plain)).toBeNull()
})

test.each([
  [
    'the first that is named in progress',
    [task('T1'), task('T2'), task('T3')],
    ['by the way', '**T3**: build', 'T2'],
    'T3',
  ],
  ['not one whose id is only part of a word', [task('T1'), task('T12')], ['T12 build'], 'T12'],
  ['the first that is not done, if none is named', [task('T1', true), task('T2'), task('T3')], [], 'T2'],
  ['not one that is done', [task('T1', true), task('T2')], ['T1 once more'], 'T2'],
  ['none, if all are done', [task('T1', true)], ['T1'], null],
])('the task at work is %s', (_what, tasks, inProgress, current) => {
  expect(currentTask(tasks, inProgress)).toBe(current)
})
