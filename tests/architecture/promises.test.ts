import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { marksIn, readIncidents, readPromises, SECTIONS } from '../../scripts/promises.ts'
import { promisesPage } from '../../scripts/promises-page.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** What a test imports that starts the built program. */
const RUNS_BUILT_PROGRAM =
  /\bopenReal\w*Scene\b|\bopenRealChangeScene\b|\bopenWorkerScene\b|\bsurvive\b|\bstartCodemachine\b|\bcodemachine\b.*support\/codemachine\.ts/

const promises = readPromises(ROOT)

test('each promise is said once, in a section that there is, and each section has some', () => {
  expect(promises.length).toBeGreaterThan(300)
  expect(
    promises.filter(({ sentences }) => sentences.length !== 1).map(({ id, sentences }) => [id, sentences]),
  ).toEqual([])
  expect([...new Set(promises.map(({ letter }) => letter))].sort()).toEqual(Object.keys(SECTIONS).sort())
})

test('the page of promises says what stands in the tests (node scripts/promises-page.ts writes it)', () => {
  expect(readFileSync(join(ROOT, 'docs/inside/promises.md'), 'utf8')).toBe(promisesPage())
})

test('a promise above no test is a mistake', () => {
  const text = "import { promise } from './promise.ts'\npromise('D4', 'x')\nconst a = 1\n"
  expect(() => marksIn('a.test.ts', text)).toThrow('a.test.ts: promise D4 stands above no test.')
})

test('each fault of the past says what it was, when it came in and was fixed, and what found it', () => {
  const incidents = readIncidents(ROOT)
  const incomplete = incidents.filter(
    ({ kind, fault, since, fixed, foundBy }) =>
      !['false done', 'lost night', 'lost work'].includes(kind) ||
      fault === '' ||
      foundBy === '' ||
      ![since, fixed].every(day => /^20\d\d-\d\d-\d\d$/.test(day)) ||
      fixed < since,
  )
  expect([incidents.length >= 24, incomplete]).toEqual([true, []])
})

test('what is held from end to end runs the built program, in a scene with the real codex', () => {
  const files = new Set(
    promises.filter(({ letter }) => letter === 'E').flatMap(({ held }) => held.map(({ path }) => path)),
  )
  const others = [...files].filter(path => !RUNS_BUILT_PROGRAM.test(readFileSync(join(ROOT, path), 'utf8')))
  expect([files.size > 20, others]).toEqual([true, []])
})
