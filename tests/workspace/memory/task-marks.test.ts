import { expect, test } from 'vitest'
import { applyTaskMarks, rawTasksById } from '../../../src/workspace/memory/tasks-file.ts'

const text = `{ "owner": "me", "tasks": [ { "id": "T1", "name": "a", "done": true, "extra": [1] }, { "id": "T2", "name": "b", "done": false } ] }`

test('what codemachine says of a task is written into the file, and all else of it stays', () => {
  const marked = JSON.parse(applyTaskMarks(text, [{ id: 'T1', done: false, parked: 'It failed.' }]))
  expect(marked).toEqual({
    owner: 'me',
    tasks: [
      { id: 'T1', name: 'a', extra: [1], done: false, parked: 'It failed.' },
      { id: 'T2', name: 'b', done: false },
    ],
  })
  expect(JSON.parse(applyTaskMarks(JSON.stringify(marked), [{ id: 'T1', parked: null }])).tasks[0]).toEqual({
    id: 'T1',
    name: 'a',
    extra: [1],
    done: false,
  })
})

test('a file that says it already is left as it was, to the letter', () => {
  expect(
    applyTaskMarks(text, [
      { id: 'T1', done: true },
      { id: 'T2', parked: null },
      { id: 'T9', done: true },
    ]),
  ).toBe(text)
})

test('a task that was lost stands there again as it did, once', () => {
  const lost = rawTasksById(text).get('T1')
  const without = applyTaskMarks('{ "tasks": [ { "id": "T2", "name": "b", "done": false } ] }', [
    { id: 'T1', lost: lost ?? {} },
  ])
  expect(JSON.parse(without).tasks[1]).toEqual({ id: 'T1', name: 'a', done: true, extra: [1] })
  expect(applyTaskMarks(without, [{ id: 'T1', lost: lost ?? {} }])).toBe(without)
})
