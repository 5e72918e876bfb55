import type { ChildProcess } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type Fingerprints, openFingerprints } from '../../../src/workspace/fingerprint/fingerprint.ts'
import { isSettled } from '../../../src/workspace/fingerprint/known-files.ts'
import { openSavepoints } from '../../../src/workspace/savepoints/savepoint-writer.ts'
import { compareWithGit } from './random-work.ts'

let base: string
let work: string

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'known-')))
  work = join(base, 'work')
  mkdirSync(work)
})

afterEach(() => rmSync(base, { recursive: true, force: true }))

describe('a fingerprint that is taken by what is known of the last one', () => {
  it.each([1, 408])('is the one that git alone takes, whatever is done there (%i)', async seed => {
    await compareWithGit(seed, 15)
  })

  it('is so among thousands of files, too', async () => {
    await compareWithGit(11, 8, 4_200)
  })

  it('starts one git among thousands of folders while no name comes, and another one where one has', async () => {
    for (let n = 0; n < 2_010; n++) write(`${n}/a`, '1')
    const { prints, calls } = await openCounted()
    const first = await prints.take()
    await prints.take()
    const look = async () => {
      calls()
      return { tree: await prints.take(), gits: calls().sort() }
    }
    write('7/a', '2')
    const changed = await look()
    expect(changed.gits).toEqual(['diff-files'])
    expect(await prints.changed(first, changed.tree)).toEqual({ paths: ['7/a'], count: 1 })
    write('8/new', '1')
    const added = await look()
    expect(added.gits).toEqual(['diff-files', 'ls-files'])
    expect(await prints.changed(changed.tree, added.tree)).toEqual({ paths: ['8/new'], count: 1 })
    expect((await look()).gits).toEqual(['diff-files'])
    rmSync(join(work, '8/new'))
    expect((await look()).tree).toBe(changed.tree)
    prints.takeNothingForGranted()
    expect(await prints.take()).toBe(changed.tree)
  })

  it('starts no git while no name comes, and one savepoint one git', async () => {
    const { prints, calls } = await openCounted()
    await using savepoints = openSavepoints(prints)
    write('a', '1')
    write('folder/b', '1')
    const keep = async (round: number) => {
      const kept = await savepoints.keep({ session: '20261121_1', round, tree: await prints.take(), at: round * 1000 })
      return kept?.changes.files
    }
    await keep(0)
    await prints.take()
    calls()
    await prints.take()
    write('a', '2')
    rmSync(join(work, 'folder/b'))
    const changed = await prints.take()
    expect(await prints.changed(changed, changed)).toEqual({ paths: [], count: 0 })
    await prints.leftOut()
    expect(calls()).toEqual([])
    expect(await keep(1)).toBe(2)
    expect(calls()).toEqual(['diff-tree'])
  })

  it('is taken with two gits by a new process that finds the files as the last one left them', async () => {
    const { prints } = await openCounted()
    write('folder/b', '1')
    const tree = await prints.take()
    const next = await openCounted()
    next.calls()
    expect(await next.prints.take()).toBe(tree)
    expect(next.calls().sort()).toEqual(['diff-files', 'ls-files'])
  })

  it('is taken by git alone where nothing is to be taken for granted, and by what is known again after that', async () => {
    const { prints, calls } = await openCounted()
    write('folder/b', '1')
    const before = await prints.take()
    write('folder/b', '2')
    const tree = await prints.take()
    expect(tree).not.toBe(before)
    prints.takeNothingForGranted()
    calls()
    expect(await prints.take()).toBe(tree)
    expect(calls()).toEqual(expect.arrayContaining(['diff-files', 'ls-files']))
    await prints.take()
    calls()
    await prints.take()
    expect(calls()).toEqual([])
  })

  it('has a file that was gone for a moment while git looked', async () => {
    const { prints } = await openCounted()
    write('a', '1')
    await prints.take()
    await prints.take()
    write('b', '1')
    const remove = () => rmSync(join(work, 'b'), { force: true })
    subscribe('child_process', remove)
    await prints.take()
    unsubscribe('child_process', remove)
    write('b', '1')
    const tree = await prints.take()
    prints.takeNothingForGranted()
    expect(await prints.take()).toBe(tree)
  })

  it('is taken without git again where git has had to take some, as long as they are few', async () => {
    const { prints, calls } = await openCounted()
    const begun = async (n: number) => {
      write(`${n}`, '1')
      await prints.take()
      rmSync(join(work, `${n}`))
      // A folder in the place of a file is git's to find.
      write(`${n}/inner`, '1')
      await prints.take()
    }
    for (let n = 0; n < 5; n++) {
      await begun(n)
      for (let left = 25; left > 0; left--) await prints.take()
    }
    calls()
    await prints.take()
    expect(calls()).toEqual([])
  })

  it('is not left to git for folders that have come and gone, however many they were', async () => {
    const { prints, calls } = await openCounted()
    write('a', '1')
    await prints.take()
    await prints.take()
    for (let n = 0; n < 5; n++) {
      for (let inner = 0; inner < 600; inner++) mkdirSync(join(work, `${n}/${inner}`), { recursive: true })
      await prints.take()
      rmSync(join(work, `${n}`), { recursive: true })
      await prints.take()
    }
    expect(calls().filter(command => command === 'diff-files')).toHaveLength(1)
  })

  it('reads a file again that may have been written after the look in the same step of the clock', () => {
    const at = 1_795_000_000_000
    const written = (beforeMs: number) => ({ ctimeMs: at - beforeMs, mtimeMs: at - beforeMs })
    expect([0, 10, 30].map(ms => isSettled(written(ms + 0.5), at))).toEqual([false, false, true])
    // Where times are whole seconds, a step may be two of them.
    expect([0, 2_000, 3_000].map(ms => isSettled(written(ms), at))).toEqual([false, false, true])
    // A clock that was set back, or a program that has set the time of writing.
    expect(isSettled(written(-5_000), at)).toBe(false)
    expect(isSettled({ ctimeMs: at - 30.5, mtimeMs: at + 9_000 }, at)).toBe(true)
  })

  it('keeps a file that is ignored since, also where git has to look at last', async () => {
    const { prints } = await openCounted()
    write('a', '1')
    await prints.take()
    write('kept.txt', '1')
    const seen = await prints.take()
    await prints.take()
    write('.gitignore', 'kept.txt\n')
    const ignored = await prints.take()
    prints.takeNothingForGranted()
    expect(await prints.take()).toBe(ignored)
    expect(await prints.changed(seen, ignored)).toEqual({ paths: ['.gitignore'], count: 1 })
  })
})

/** Fingerprints, and the git commands that were run since it was asked last. */
async function openCounted(): Promise<{ prints: Fingerprints; calls: () => string[] }> {
  const started: ChildProcess[] = []
  const note = (message: unknown) => {
    if (typeof message === 'object' && message !== null && 'process' in message)
      started.push(message.process as ChildProcess)
  }
  subscribe('child_process', note)
  onTestFinished(() => void unsubscribe('child_process', note))
  const env = { PATH: process.env.PATH, HOME: base }
  const prints = await openFingerprints({ gitDir: join(base, 'git'), directory: work, repository: null, env })
  return {
    prints,
    calls: () =>
      started.splice(0).map(({ spawnargs }) => spawnargs.find(word => COMMANDS.has(word)) ?? spawnargs.join(' ')),
  }
}

const COMMANDS = new Set(['ls-files', 'diff-files', 'update-index', 'write-tree', 'diff-tree', 'cat-file', 'ls-tree'])

function write(path: string, text: string): void {
  mkdirSync(join(work, path, '..'), { recursive: true })
  writeFileSync(join(work, path), text)
}
