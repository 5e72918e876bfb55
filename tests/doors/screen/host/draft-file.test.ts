import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDraftFile } from '../../../../src/doors/screen/host/drafts-and-history.ts'
import { HandClock } from '../../../support/hand-clock.ts'
import { untilInFolder } from '../../../support/until-in-folder.ts'

let folder: string
let path: string
let problems: string[]
let told: PromiseWithResolvers<void>
let clock: HandClock

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'draft-'))
  path = join(folder, 'draft.json')
  problems = []
  told = Promise.withResolvers()
  clock = new HandClock()
})

afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})

const holds = (text: string) =>
  untilInFolder(folder, text, async () => ((await readFile(path, 'utf8').catch(() => null)) === text ? true : null))
const onProblem = (problem: string) => {
  problems.push(problem)
  told.resolve()
}
const open = () => openDraftFile({ path, clock, onProblem })

test('what was typed last is there again, for this user alone', async () => {
  {
    await using draft = open()
    expect(await draft.read()).toBeNull()
    draft.keep({ text: 'a' })
    draft.keep({ text: 'ab ü\n', caret: 2 })
  }
  expect(await open().read()).toEqual({ text: 'ab ü\n', caret: 2 })
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await readdir(folder)).toEqual(['draft.json'])
})

test('a crash costs at most the last 300 ms, and fast typing writes no oftener', async () => {
  await using draft = open()
  draft.keep('first')
  for (const text of ['second', 'third']) draft.keep(text)
  expect(clock.pending).toEqual([300])
  await clock.over(300)
  await holds('"third"\n')
  draft.keep('fourth')
  expect(await readFile(path, 'utf8')).toBe('"third"\n')
  await clock.over(300)
  await holds('"fourth"\n')
})

test('an empty draft leaves no file', async () => {
  await writeFile(path, '"old"')
  {
    await using draft = open()
    draft.keep(null)
  }
  expect(await readdir(folder)).toEqual([])
})

test.each(['', '{', 'x'.repeat(10), '\xff\xfe'])('rubbish is no draft: %j', async text => {
  await writeFile(path, text, 'latin1')
  expect(await open().read()).toBeNull()
})

test('one that is too large is not kept, and the one before it stays', async () => {
  {
    await using draft = open()
    draft.keep('small')
    await clock.over(300)
    await holds('"small"\n')
    draft.keep('x'.repeat(8 * 1024 * 1024))
  }
  expect(await open().read()).toBe('small')
  expect(problems).toEqual([])
})

test('a directory in its place is one remark', async () => {
  await mkdir(path)
  await writeFile(join(path, 'x'), '')
  {
    await using draft = open()
    expect(await draft.read()).toBeNull()
    draft.keep('one')
    await clock.over(300)
    await told.promise
    draft.keep('two')
  }
  expect(problems).toHaveLength(1)
  expect(await readdir(folder)).toEqual(['draft.json'])
})
