import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  closeSync,
  openSync,
  renameSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { type Fingerprints, openFingerprints } from '../../src/workspace/fingerprint/fingerprint.ts'
import { findRepository } from '../../src/workspace/git/git.ts'
import { treeDiff } from '../../src/workspace/git/trees.ts'
import { planRewind } from '../../src/workspace/savepoints/rewind.ts'
import { openSavepoints } from '../../src/workspace/savepoints/savepoint-writer.ts'
import { promise } from '../support/promise.ts'
import { workDirectoryForEach } from '../support/work-directory.ts'

const place = workDirectoryForEach('unread-files')
const { write, git, environment } = place
let warnings: string[]

beforeEach(() => {
  warnings = []
})

const TERA = 1024 ** 4
/** What reads such a file takes hours. */
const SECONDS = 20_000
const SAID =
  'data.mdb is larger than max_file_size (2.0 GiB): only size and time are compared, and savepoints do not contain it.'

promise(
  'M21',
  'A file larger than `max_file_size` (2 GiB), a sparse one too, is not read: it is seen by size and time, and said once',
)
describe('a file larger than max_file_size, as sparse ones of database maps and disk images are', {
  timeout: SECONDS,
}, () => {
  it('is not read, whether it is new, or was small before; it is said once', async () => {
    write('a', 'a')
    write('data.mdb', 'small')
    const prints = await open()
    const seen = [await prints.take()]
    truncateSync(join(place.work, 'data.mdb'), TERA)
    seen.push(await prints.take())
    expect((await prints.changed(seen[0] ?? '', seen[1] ?? '')).paths).toEqual(['data.mdb'])
    expect(await prints.take()).toBe(seen[1])
    expect(await (await open()).take()).toBe(seen[1])
    expect(warnings).toEqual([SAID, SAID])
  })

  it('is named among the first 20, and it is said once that there are more', async () => {
    for (let number = 0; number < 25; number += 1) {
      write(`${number}.mdb`, '')
      truncateSync(join(place.work, `${number}.mdb`), TERA)
    }
    await (await open()).take()
    expect(warnings).toHaveLength(21)
    expect(warnings.filter(message => message.startsWith('This is true of more files'))).toEqual([
      'This is true of more files: only size and time are compared, and savepoints do not contain it.',
    ])
  })

  it('is seen to change by its size and its time, also where an agent sets the time back', async () => {
    const file = join(place.work, 'data.mdb')
    write('data.mdb', '')
    truncateSync(file, TERA)
    const prints = await open()
    const seen = [await prints.take()]
    appendFileSync(file, 'x')
    seen.push(await prints.take())
    utimesSync(file, 1, 1)
    seen.push(await prints.take())
    // Of the same size and time.
    const opened = openSync(file, 'r+')
    writeSync(opened, 'y')
    closeSync(opened)
    utimesSync(file, 1, 1)
    seen.push(await prints.take())
    unlinkSync(file)
    seen.push(await prints.take())
    write('data.mdb', 'small')
    seen.push(await prints.take())
    expect(new Set(seen).size).toBe(6)
  })

  it('is replaced by a folder, of which every file is seen', async () => {
    write('data.mdb', '')
    truncateSync(join(place.work, 'data.mdb'), TERA)
    const prints = await open()
    const before = await prints.take()
    unlinkSync(join(place.work, 'data.mdb'))
    write('data.mdb/in', 'x')
    const after = await prints.take()
    expect((await prints.changed(before, after)).paths).toEqual(['data.mdb', 'data.mdb/in'])
  })

  it('is committed by the person, in a tree of many files', async () => {
    execFileSync('git', ['init', '--quiet'], { cwd: place.work, env: environment() })
    for (let i = 0; i < 1200; i += 1) write(`f${i}`, `${i}`)
    write('data.mdb', 'small')
    git('add', '--all')
    git('-c', 'user.name=p', '-c', 'user.email=p@example.org', 'commit', '--quiet', '-m', 'x')
    truncateSync(join(place.work, 'data.mdb'), TERA)
    const prints = await open()
    const tree = await prints.take()
    expect((await prints.changed(git('rev-parse', 'HEAD^{tree}'), tree)).paths).toEqual(['data.mdb'])
    expect(warnings).toEqual([SAID])
  })

  it('is counted by the setting: one byte more than that', async () => {
    write('a', 'aaaa')
    write('b', 'bbbbb')
    await (await open(4)).take()
    expect(warnings.map(text => text.slice(0, 40))).toEqual(['b is larger than max_file_size (4 bytes)'])
  })
})

it('a pipe in the place of a file that was there is seen, and not waited at', async () => {
  write('a', 'a')
  write('b', 'b')
  const prints = await open()
  const before = await prints.take()
  unlinkSync(join(place.work, 'a'))
  execFileSync('mkfifo', [join(place.work, 'a')])
  const after = await prints.take()
  expect((await prints.changed(before, after)).paths).toEqual(['a'])
  expect(warnings).toEqual(['a is a pipe: only size and time are compared, and savepoints do not contain it.'])
  expect(await prints.take()).toBe(after)
})

describe('a rewind', () => {
  promise('R25', 'A rewind neither removes nor overwrites a file of which no savepoint has the content')
  it('leaves alone a large file that no savepoint has', async () => {
    write('a', '1')
    const prints = await open(4)
    await using savepoints = openSavepoints(prints)
    const first = await prints.take()
    await savepoints.keep({ session: '20261122_1', round: 1, tree: first, at: 1_000 })
    write('large', 'large file')
    write('a', '2')
    const plan = await planRewind(prints.git, place.work, { now: await prints.take(), target: first })
    expect([plan.write.map(({ path }) => path), plan.remove]).toEqual([['a'], []])
  })

  promise('R25')
  it('does not overwrite one with what was there when it was small', async () => {
    write('a', '1')
    const prints = await open(4)
    const first = await prints.take()
    write('a', 'large file')
    await expect(planRewind(prints.git, place.work, { now: await prints.take(), target: first })).rejects.toThrow(
      'Nothing was changed, for a is in the way, and no savepoint has it',
    )
    renameSync(join(place.work, 'a'), join(place.base, 'a'))
    expect((await planRewind(prints.git, place.work, { now: await prints.take(), target: first })).write).toHaveLength(
      1,
    )
  })
})

promise('B99')
describe('a file that holds a secret', { timeout: SECONDS }, () => {
  const VALUE = 'sk-live-0123456789'
  const named = 'config/"ü" [1].json'
  const shown = (prints: Fingerprints, before: string, after: string) =>
    treeDiff(prints.git, before, after, { mostBytes: 100_000 })
  const blobs = () =>
    execFileSync('git', ['cat-file', '--batch-all-objects', '--batch'], { cwd: join(place.base, 'records') })

  it('is in no savepoint and no diff from when it is hidden on, and is seen to change', async () => {
    const hidden: string[] = []
    const prints = await open(undefined, () => hidden)
    write('a', '1')
    const seen = [await prints.take()]
    hidden.push(named)
    write(named, VALUE)
    write('a', '2')
    seen.push(await prints.take())
    write(named, `${VALUE}${VALUE}`)
    seen.push(await prints.take())
    unlinkSync(join(place.work, named))
    seen.push(await prints.take())
    expect(new Set(seen).size).toBe(4)
    expect((await prints.changed(seen[0] ?? '', seen[1] ?? '')).paths).toEqual(['a', named])
    const { text } = await shown(prints, seen[0] ?? '', seen[1] ?? '')
    expect(text).toContain('+2')
    expect(text).not.toContain(VALUE)
    expect(blobs().includes(VALUE)).toBe(false)
    expect(warnings).toEqual([
      `${named} holds a secret: only size and time are compared, and savepoints do not contain it.`,
    ])
  })

  it('is not shown in a diff of what it was before it was hidden, and a rewind leaves it alone', async () => {
    const hidden: string[] = []
    let prints = await open(undefined, () => hidden)
    write('a', '1')
    write(named, 'nothing yet')
    const first = await prints.take()
    write(named, `before ${VALUE}`)
    const second = await prints.take()
    hidden.push(named)
    const third = await prints.take()
    expect((await prints.changed(second, third)).paths).toEqual([named])
    expect(await prints.take()).toBe(third)
    for (const [before, after] of [
      [first, second],
      [first, third],
      [second, third],
      [third, first],
    ] as const) {
      const { text } = await shown(prints, before, after)
      expect(text).not.toContain(VALUE)
      expect(text).not.toContain('nothing yet')
    }
    prints = await open(undefined, () => hidden)
    expect(await prints.take()).toBe(third)
    expect((await shown(prints, first, second)).text).not.toContain(VALUE)
    write('a', '2')
    const trees = { now: await prints.take(), target: first, hidden: prints.hidden }
    expect((await planRewind(prints.git, place.work, trees)).write.map(({ path }) => path)).toEqual(['a'])
  })

  it('in a work directory that is a part of a repository is hidden as well', async () => {
    execFileSync('git', ['init', '--quiet'], { cwd: place.base, env: environment() })
    write('file', 'nothing yet')
    const hidden: string[] = []
    const prints = await open(undefined, () => hidden)
    const first = await prints.take()
    hidden.push('file')
    write('file', VALUE)
    const second = await prints.take()
    expect((await shown(prints, first, second)).text).not.toContain('nothing yet')
    expect(blobs().includes(VALUE)).toBe(false)
  })
})

async function open(maxFileSize?: number, hidden?: () => readonly string[]): Promise<Fingerprints> {
  return await openFingerprints({
    gitDir: join(place.base, 'records'),
    directory: place.work,
    repository: await findRepository(place.work),
    env: environment(),
    onWarning: message => warnings.push(message),
    ...(maxFileSize === undefined ? {} : { maxFileSize }),
    ...(hidden === undefined ? {} : { hidden }),
  })
}
