import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Fingerprints, openFingerprints } from '../../src/workspace/fingerprint.ts'
import { findRepository } from '../../src/workspace/git/git.ts'
import { planRewind } from '../../src/workspace/savepoints/rewind.ts'
import { openSavepoints } from '../../src/workspace/savepoints/savepoint-writer.ts'

let base: string
let work: string
let warnings: string[]

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'unread-files-')))
  work = join(base, 'work')
  for (const folder of [work, join(base, 'home')]) mkdirSync(folder)
  warnings = []
})

afterEach(() => rmSync(base, { recursive: true, force: true }))

const TERA = 1024 ** 4
const SAID =
  'data.mdb is larger than max_file_size (2.0 GiB): only size and time are looked at, and no savepoint has the content.'

describe('a file larger than max_file_size, as sparse ones of database maps and disk images are', () => {
  it('is not read, whether it is new, or was small before; it is said once', async () => {
    write('a', 'a')
    write('data.mdb', 'small')
    const prints = await open()
    const seen = [await prints.take()]
    truncateSync(join(work, 'data.mdb'), TERA)
    seen.push(await prints.take())
    expect((await prints.changed(seen[0] ?? '', seen[1] ?? '')).paths).toEqual(['data.mdb'])
    expect(await prints.take()).toBe(seen[1])
    expect(await (await open()).take()).toBe(seen[1])
    expect(warnings).toEqual([SAID, SAID])
  })

  it('is seen to change by its size and its time, also where an agent sets the time back', async () => {
    write('data.mdb', '')
    truncateSync(join(work, 'data.mdb'), TERA)
    const prints = await open()
    const seen = [await prints.take()]
    appendFileSync(join(work, 'data.mdb'), 'x')
    seen.push(await prints.take())
    utimesSync(join(work, 'data.mdb'), 1, 1)
    seen.push(await prints.take())
    unlinkSync(join(work, 'data.mdb'))
    seen.push(await prints.take())
    write('data.mdb', 'small')
    seen.push(await prints.take())
    expect(new Set(seen).size).toBe(5)
  })

  it('is replaced by a folder, of which every file is seen', async () => {
    write('data.mdb', '')
    truncateSync(join(work, 'data.mdb'), TERA)
    const prints = await open()
    const before = await prints.take()
    unlinkSync(join(work, 'data.mdb'))
    write('data.mdb/in', 'x')
    const after = await prints.take()
    expect((await prints.changed(before, after)).paths).toEqual(['data.mdb', 'data.mdb/in'])
  })

  it('is committed by the person, in a tree of many files', async () => {
    execFileSync('git', ['init', '--quiet'], { cwd: work, env: environment() })
    for (let i = 0; i < 1200; i += 1) write(`f${i}`, `${i}`)
    write('data.mdb', 'small')
    git('add', '--all')
    git('-c', 'user.name=p', '-c', 'user.email=p@example.org', 'commit', '--quiet', '-m', 'x')
    truncateSync(join(work, 'data.mdb'), TERA)
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
  unlinkSync(join(work, 'a'))
  execFileSync('mkfifo', [join(work, 'a')])
  const after = await prints.take()
  expect((await prints.changed(before, after)).paths).toEqual(['a'])
  expect(warnings).toEqual(['a is a pipe: only size and time are looked at, and no savepoint has the content.'])
  expect(await prints.take()).toBe(after)
})

describe('a rewind', () => {
  it('leaves alone a large file that no savepoint has', async () => {
    write('a', '1')
    const prints = await open(4)
    await using savepoints = openSavepoints(prints)
    const first = await prints.take()
    await savepoints.keep({ session: '20261122_1', round: 1, tree: first, at: 1_000 })
    write('large', 'large file')
    write('a', '2')
    const plan = await planRewind(prints.git, work, { now: await prints.take(), target: first })
    expect([plan.write.map(({ path }) => path), plan.remove]).toEqual([['a'], []])
  })

  it('does not overwrite one with what was there when it was small', async () => {
    write('a', '1')
    const prints = await open(4)
    const first = await prints.take()
    write('a', 'large file')
    await expect(planRewind(prints.git, work, { now: await prints.take(), target: first })).rejects.toThrow(
      'Nothing was changed, for a is in the way, and no savepoint has it',
    )
    renameSync(join(work, 'a'), join(base, 'a'))
    expect((await planRewind(prints.git, work, { now: await prints.take(), target: first })).write).toHaveLength(1)
  })
})

function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: join(base, 'home') }
}

async function open(maxFileSize?: number): Promise<Fingerprints> {
  return await openFingerprints({
    gitDir: join(base, 'records'),
    directory: work,
    repository: await findRepository(work),
    env: environment(),
    onWarning: message => warnings.push(message),
    ...(maxFileSize === undefined ? {} : { maxFileSize }),
  })
}

function write(path: string, content: string): void {
  mkdirSync(dirname(join(work, path)), { recursive: true })
  writeFileSync(join(work, path), content)
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: work, env: environment(), encoding: 'utf8' }).trim()
}
