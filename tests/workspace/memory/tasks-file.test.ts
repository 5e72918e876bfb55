import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseTasksFile } from '../../../src/workspace/memory/tasks-file.ts'
import { cpuMs, timesSlower } from '../../support/cpu-time.ts'
import { incident, promise } from '../../support/promise.ts'

const task = (id: string, done = false) => ({ id, name: `Task ${id}`, done })
const file = (...tasks: unknown[]) => JSON.stringify({ tasks })

function problem(text: string): string {
  const tasks = parseTasksFile(text)
  return tasks.ok ? 'no problem' : tasks.problem
}

describe('a tasks.json', () => {
  test('has tasks with id, name, done and phase; what else they have is their own', () => {
    const full = {
      ...task('T1', true),
      details: 'd',
      acceptanceCriteria: ['a', 'b'],
      phase: 'Building',
      subtasks: [{ id: 'T1.1', name: 's', details: '' }],
      owner: { any: 'thing' },
    }
    expect(parseTasksFile(file(full, task('T2')))).toEqual({
      ok: true,
      value: [{ ...task('T1', true), phase: 'Building' }, task('T2')],
    })
  })

  test('may have a text of millions of line feeds', () => {
    expect(problem(file({ ...task('T1'), details: '\n'.repeat(5_000_000) }))).toBe('no problem')
  })

  test('may have no tasks, a byte order mark and unknown fields', () => {
    expect(parseTasksFile('\uFEFF{ "version": 2, "tasks": [] }\n')).toEqual({ ok: true, value: [] })
  })

  test.each([
    [
      file(task('T1'), task('T2'), task('T3'), { ...task('T4'), done: 'yes' }),
      'tasks[3].done is "yes"; use true or false.',
    ],
    [file({ id: 'T1', name: 'a' }), 'tasks[0].done is missing; use true or false.'],
    [file({ ...task('T1'), id: '' }), 'tasks[0].id is ""; use a string such as "T1".'],
    [file({ ...task('T1'), id: 7 }), 'tasks[0].id is 7; use a string such as "T1".'],
    [file({ ...task('T1'), name: ' ' }), 'tasks[0].name is " "; use a string that says what the task is.'],
    [
      file({ ...task('T1'), name: 'x'.repeat(100).split('') }),
      'tasks[0].name is a list; use a string that says what the task is.',
    ],
    [file(task('T1'), null), 'tasks[1] is null; write { "id": "T1", "name": "…", "done": false }.'],
    [
      file(task('T1'), task('T2'), task('T3'), task('T4'), task('T2')),
      'duplicate id "T2" at tasks[4]; give every task its own id.',
    ],
    ['{ "tasks": {} }', 'tasks is an object; write { "tasks": [ … ] }.'],
    ['{}', 'tasks is missing; write { "tasks": [ … ] }.'],
    ['[]', 'tasks is missing; write { "tasks": [ … ] }.'],
    ['null', 'the whole is null; write { "tasks": [ … ] }.'],
    ['{ "__proto__": { "tasks": [] } }', 'tasks is missing; write { "tasks": [ … ] }.'],
    [
      '{ "tasks": [{ "__proto__": { "id": "T1", "name": "a", "done": true } }] }',
      'tasks[0].id is missing; use a string such as "T1".',
    ],
  ])('that is wrong is told with its place and its mend (%#)', (text, sentence) => {
    expect(problem(text)).toBe(sentence)
  })

  incident('false done', '`{"done": false, "done": true}` in `tasks.json` counted as done', {
    since: '2026-11-21',
    fixed: '2026-11-22',
    foundBy: 'a trial',
  })
  promise('D18', 'A key that occurs twice in an object, of `tasks.json` or of an answer, is a mistake with its place')
  test.each([
    ['{"tasks":[{"id":"T1","name":"a","done":false,"done":true}]}', 'line 1, column 46: "done"'],
    ['{"tasks":[{"id":"T1","name":"a","d\\u006fne":false,\n  "done":true}]}', 'line 2, column 3: "done"'],
    ['{"tasks":[{"id":"T1","name":"a","done":false}],\n"tasks":[]}', 'line 2, column 1: "tasks"'],
    ['{"tasks":[],"own":{"__proto__":1,"__proto__":2}}', 'line 1, column 34: "__proto__"'],
    ['{"tasks":[],"own":{"a":"\\"","b":1,"b":2}}', 'line 1, column 35: "b"'],
  ])('in which a key occurs twice is refused, with the place of the second: %j', (text, place) => {
    expect(problem(text)).toBe(`${place} occurs twice in the same object; write every key once.`)
  })

  test('may have the same key in different objects', () => {
    expect(
      parseTasksFile(file({ ...task('T1'), own: { id: 1, done: [{ id: 2 }, { id: 3 }] } }, task('T2'))),
    ).toMatchObject({ ok: true })
  })

  test.each([
    ['', 1, 1, 'the file ends too early'],
    ['{\n  "tasks": [\n', 3, 1, 'the file ends too early'],
    ['{\n  "tasks": [],\n}', 3, 1, '"}" is not JSON here'],
    ['{ "tasks": [1 2] }', 1, 15, '"2" is not JSON here'],
    ["{ 'tasks': [] }", 1, 3, '"\'" is not JSON here'],
    ['{ "tasks": [] }\n// note', 2, 1, '"/" is not JSON here'],
    ['{ "tasks": [01] }', 1, 13, '"0" is not JSON here'],
    ['{ "tasks": ["a\n"] }', 1, 15, '"\\n" is not JSON here'],
    ['{ "tasks": ["\\q"] }', 1, 14, '"\\\\" is not JSON here'],
    ['{ "tasks" [] }', 1, 11, '"[" is not JSON here'],
    ['{ "tasks": [True] }', 1, 13, '"T" is not JSON here'],
    ['{ "tasks": [ ] ] }', 1, 16, '"]" is not JSON here'],
    ['😀', 1, 1, '"😀" is not JSON here'],
  ])('that is not JSON is told with line and column: %j', (text, line, column, what) => {
    expect(problem(text)).toBe(
      `line ${line}, column ${column}: ${what}; write JSON without comments or trailing commas.`,
    )
  })

  test('that was cut off or hit by a wrong character names the place where it stops being JSON', () => {
    fc.assert(
      fc.property(
        fc.json(),
        fc.nat(),
        fc.constantFrom('', '}', ']', ',', ':', '"', '\\', '-', '0', 'e', ' ', 'x'),
        (json, n, character) => {
          const at = n % (json.length + 1)
          const text = json.slice(0, at) + character + (character === '' ? '' : json.slice(at + 1))
          const found = /^line 1, column (\d+): (.*);/.exec(problem(text))
          const place = Number(found?.[1]) - 1
          if (isJson(text)) {
            expect(found).toBeNull()
          } else {
            // What comes before the change was JSON; at most the number or word that was hit began before it.
            expect(place).toBeGreaterThanOrEqual(at - 30)
            expect(place).toBeLessThanOrEqual(text.length)
            expect(found?.[2] === 'the file ends too early').toBe(place === text.length)
          }
        },
      ),
    )
  })

  test('of the largest size is judged in time, however deep it is', () => {
    const started = cpuMs()
    expect(problem(`{"tasks":[${'['.repeat(1_000_000)}`)).toContain('ends too early')
    expect(problem(`{"tasks":[${'{},'.repeat(300_000)}{}]}`)).toContain('tasks[0].id is missing')
    expect(cpuMs() - started).toBeLessThan(3_000 * timesSlower())
  })
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
