import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type ComparedStates, OpenComparison, statesTyped } from '../../../src/project/diff/comparison.ts'
import { openRecords } from '../../../src/session/records/records.ts'
import { takeRunLock } from '../../../src/session/records/run-lock.ts'
import { cliContext } from '../../support/cli-context.ts'
import { keepSavepoint } from '../../support/kept-savepoints.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'

const UNSTOPPED = new AbortController().signal

test.each([
  ['', null, { kind: 'between', from: 'start', to: 'now' }],
  ['', '20261121_1', { kind: 'between', from: '20261121_1/start', to: 'now' }],
  ['3', '20261121_1', { kind: 'round', session: '20261121_1', round: 3 }],
  ['start', '20261121_1', { kind: 'between', from: '20261121_1/start', to: 'now' }],
  [' 2  4 ', '20261121_1', { kind: 'between', from: '20261121_1/2', to: '20261121_1/4' }],
  ['before-rewind-1', '20261121_1', { kind: 'between', from: 'before-rewind-1', to: 'now' }],
])('/diff %s means what codemachine diff would, a number alone the round', (typed, session, states) => {
  expect(statesTyped(typed, session)).toEqual(states)
  expect(() => statesTyped('1 2 3', session)).toThrow('/diff accepts one or two rounds or savepoints')
})

test('every kind of change is one file with its lines: renamed, of another mode, a link, not text, gone, with any name', async () => {
  await using place = await changed()
  await using seen = await compare(place, { kind: 'between', from: 'start', to: 'now' })
  const { files, count, added, removed } = await seen.source.read(UNSTOPPED)
  expect([count, added, removed]).toEqual([8, 5, 5])
  expect(files.map(({ path, from, how, added, removed }) => [path, from, how, added, removed])).toEqual([
    ['README.md', null, 'deleted', 0, 1],
    ['a.ts', null, 'changed', 2, 2],
    ['bin', null, 'added', null, null],
    ['evil\x1b[2J\nname', null, 'added', 1, 0],
    ['link', null, 'changed', 1, 1],
    ['new name', 'old name', 'renamed', 0, 0],
    ['run.sh', null, 'changed', 0, 0],
    ['umlaut-\ufffd', null, 'changed', 1, 1],
  ])
  const lines: Record<string, string[]> = {}
  for (const file of files) {
    const read = await seen.source.lines(file, UNSTOPPED)
    lines[file.path] = read.map(({ kind, before, after, text }) => `${kind} ${before ?? '-'} ${after ?? '-'} ${text}`)
  }
  expect(lines).toEqual({
    'README.md': ['hunk 1 0 @@ -1 +0,0 @@', 'removed 1 - # A project'],
    'a.ts': [
      'hunk 1 1 @@ -1,3 +1,3 @@',
      'removed 1 - one',
      'added - 1 ONE',
      'same 2 2 two',
      'removed 3 - three',
      'added - 3 THREE',
    ],
    bin: ['note - - It is not text, or larger than 4 MiB. It differs; no lines are shown.'],
    'evil\x1b[2J\nname': ['hunk 0 1 @@ -0,0 +1 @@', 'added - 1 x'],
    link: [
      'hunk 1 0 @@ -1 +0,0 @@',
      'removed 1 - a.ts',
      'note - - No newline at end of file',
      'hunk 0 1 @@ -0,0 +1 @@',
      'added - 1 plain',
    ],
    'new name': [],
    'run.sh': [],
    'umlaut-\ufffd': ['note - - Its name is not UTF-8: codemachine diff --no-pager shows its lines.'],
  })
})

test('what a round changed is what lies between its savepoint and the one before, and up to now while it works', async () => {
  await using place = await makePlace('')
  await keepSavepoint(place, 0)
  write(place, 'one', '1\n')
  await keepSavepoint(place, 1)
  write(place, 'two', '2\n')
  await keepSavepoint(place, 3)
  write(place, 'four', '4\n')
  const of = async (round: number) => {
    await using seen = await compare(place, { kind: 'round', session: null, round })
    const { from, to, files } = await seen.source.read(UNSTOPPED)
    return [from, to, files.map(({ path }) => path).join(' ')]
  }
  expect(await of(1)).toEqual(['20261121_1/start', '20261121_1/1', 'one'])
  // One of which there is none belongs to the next.
  expect(await of(3)).toEqual(['20261121_1/1', '20261121_1/3', 'two'])
  expect(await of(4)).toEqual(['20261121_1/3', 'now', 'four'])
  await expect(of(5)).rejects.toMatchObject({ message: 'Round 5 of 20261121_1 has no savepoint.' })
})

promise('R60', 'One file is put back to a savepoint without touching another, and that can be undone')
test('one file is put back with its bits, its link and its name, nothing else changes, and that can be undone', async () => {
  await using place = await changed()
  await using seen = await compare(place, { kind: 'between', from: 'start', to: 'now' })
  const { files } = await seen.source.read(UNSTOPPED)
  const named = (path: string) => files.find(each => each.path === path) ?? expect.unreachable(path)
  const at = (path: string) => join(place.directory, path)
  expect(await seen.source.putBack(named('link'))).toBe('before-rewind-1')
  expect(readlinkSync(at('link'))).toBe('a.ts')
  await seen.source.putBack(named('new name'))
  expect([existsSync(at('new name')), readFileSync(at('old name'), 'utf8')]).toEqual([false, 'the\nsame\nlines\n'])
  await seen.source.putBack(named('umlaut-\ufffd'))
  const left = ['README.md', 'a.ts', 'bin', 'evil\x1b[2J\nname', 'run.sh']
  expect((await seen.source.read(UNSTOPPED)).files.map(({ path }) => path)).toEqual(left)
  expect(await seen.source.putBack(named('link'), 'before-rewind-1')).toBe('before-rewind-4')
  expect(readFileSync(at('link'), 'utf8')).toBe('plain\n')
  expect(readFileSync(at('a.ts'), 'utf8')).toBe('ONE\ntwo\nTHREE\n')
})

test('what a session did that has ended is what lies between its start and its own end, whatever came later', async () => {
  await using place = await makePlace('')
  write(place, 'both', '0\n')
  await keepSavepoint(place, 0)
  write(place, 'both', '1\n')
  write(place, 'own', '1\n')
  await keepSavepoint(place, 1)
  const second = { session: '20261121_2', at: Date.parse('2026-11-21T02:00:00Z') }
  await keepSavepoint(place, 0, second)
  write(place, 'both', '2\n')
  write(place, 'later', '2\n')
  await using seen = await compare(place, { kind: 'ended', session: '20261121_1' })
  const { from, to, files } = await seen.source.read(UNSTOPPED)
  expect([from, to, files.map(({ path }) => path)]).toEqual(['20261121_1/start', '20261121_1/1', ['both', 'own']])
  const [both, own] = files
  if (both === undefined || own === undefined) return expect.unreachable()
  expect(await seen.source.beforePutBack(own, UNSTOPPED)).toBeNull()
  expect(await seen.source.beforePutBack(both, UNSTOPPED)).toBe('20261121_1/1')
  expect(await seen.source.keptLast()).toBeNull()
  await seen.source.putBack(both)
  expect(readFileSync(join(place.directory, 'both'), 'utf8')).toBe('0\n')
  expect(await seen.source.keptLast()).toBe('before-rewind-1')

  // Of one that has left no savepoint but its first, what the next one found; of the last one what is there now.
  await keepSavepoint(place, 0, { session: '20261121_3', at: Date.parse('2026-11-21T03:00:00Z') })
  const of = async (session: string) => {
    await using shown = await compare(place, { kind: 'ended', session })
    return (await shown.source.read(UNSTOPPED)).to
  }
  expect([await of('20261121_2'), await of('20261121_3')]).toEqual(['20261121_3/start', 'now'])
})

test('while a session runs here, that is said before a person is asked whether a file is to be put back', async () => {
  await using place = await changed()
  await using seen = await compare(place, { kind: 'between', from: 'start', to: 'now' })
  const [file] = (await seen.source.read(UNSTOPPED)).files
  const records = await openRecords({ ...cliContext(place), directory: place.directory })
  await using _runs = await takeRunLock(records.lock, { platform: process.platform, pid: process.pid, now: new Date() })
  await expect(seen.source.beforePutBack(file ?? expect.unreachable(), UNSTOPPED)).rejects.toMatchObject({
    message: 'A session is running here. Restore files after it has ended.',
    exitCode: 6,
  })
})

test('a file that has become a folder is put back in its place, and what was in there can be had again', async () => {
  await using place = await makePlace('')
  write(place, 'a', 'a file\n')
  await keepSavepoint(place, 0)
  rmSync(join(place.directory, 'a'))
  mkdirSync(join(place.directory, 'a'))
  write(place, 'a/inside', 'text\n')
  await using seen = await compare(place, { kind: 'between', from: 'start', to: 'now' })
  const [gone, inside] = (await seen.source.read(UNSTOPPED)).files
  expect((await seen.source.lines(gone ?? expect.unreachable(), UNSTOPPED)).map(({ text }) => text).at(-1)).toBe(
    'a file',
  )
  const kept = await seen.source.putBack(gone ?? expect.unreachable())
  expect(readFileSync(join(place.directory, 'a'), 'utf8')).toBe('a file\n')
  await seen.source.putBack(inside ?? expect.unreachable(), kept ?? '')
  expect(readFileSync(join(place.directory, 'a/inside'), 'utf8')).toBe('text\n')
})

test('where no session has made a savepoint, a sentence says so', async () => {
  await using place = await makePlace('')
  await using seen = await compare(place, { kind: 'between', from: 'start', to: 'now' })
  await expect(seen.source.read(UNSTOPPED)).rejects.toThrow(/^No savepoints in .* yet\.$/)
})

async function changed(): Promise<TestPlace> {
  const place = await makePlace('')
  const { directory } = place
  const odd = Buffer.concat([Buffer.from(`${directory}/umlaut-`), Buffer.from([0xfc])])
  write(place, 'a.ts', 'one\ntwo\nthree\n')
  write(place, 'old name', 'the\nsame\nlines\n')
  write(place, 'run.sh', '#!/bin/sh\n')
  writeFileSync(odd, 'u\n')
  symlinkSync('a.ts', join(directory, 'link'))
  await keepSavepoint(place, 0)
  write(place, 'a.ts', 'ONE\ntwo\nTHREE\n')
  write(place, 'bin', '\0\x01')
  write(place, 'evil\x1b[2J\nname', 'x\n')
  writeFileSync(odd, 'v\n')
  renameSync(join(directory, 'old name'), join(directory, 'new name'))
  chmodSync(join(directory, 'run.sh'), 0o755)
  rmSync(join(directory, 'README.md'))
  rmSync(join(directory, 'link'))
  write(place, 'link', 'plain\n')
  return place
}

function write({ directory }: TestPlace, path: string, text: string): void {
  writeFileSync(join(directory, path), text)
}

async function compare(place: TestPlace, states: ComparedStates) {
  const context = cliContext(place)
  const source = new OpenComparison(
    context,
    await openRecords({ ...context, directory: place.directory }),
    states,
    warning => expect.unreachable(warning),
  )
  return { source, [Symbol.asyncDispose]: () => source[Symbol.asyncDispose]() }
}
