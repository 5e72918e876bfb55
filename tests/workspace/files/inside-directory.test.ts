import { renameSync, symlinkSync, unlinkSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { UserError } from '../../../src/base/errors.ts'
import { writeFileInside } from '../../../src/workspace/files/inside-directory.ts'
import { promise } from '../../support/promise.ts'

let home: string
let root: string

beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'inside-')))
  root = join(home, 'work')
  await mkdir(join(root, 'a'), { recursive: true })
  await mkdir(join(home, 'outside/b'), { recursive: true })
})

afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})

it.each(['l', 'l/b', 'a/l'])('nothing is written through a link in place of a folder: %s', async folder => {
  await symlink(join(home, 'outside'), join(root, 'l'))
  await symlink(join(home, 'outside'), join(root, 'a/l'))
  await expect(writeFileInside(root, join(folder, 'file'), 'x')).rejects.toThrow('is not a real folder')
  expect(await readdir(join(home, 'outside'), { recursive: true })).toEqual(['b'])
})

it('a link in place of the file is replaced, and nothing else is left behind', async () => {
  await writeFile(join(home, 'outside/file'), 'theirs')
  await symlink(join(home, 'outside/file'), join(root, 'a/file'))
  await writeFileInside(root, 'a/file', 'ours')
  expect(await readFile(join(root, 'a/file'), 'utf8')).toBe('ours')
  expect(await readFile(join(home, 'outside/file'), 'utf8')).toBe('theirs')
  expect(await readdir(join(root, 'a'))).toEqual(['file'])
})

promise('B45', 'A folder that is swapped for a link while codemachine writes never leads it outside')
it('a folder that is swapped for a link at any moment of a write never leads it outside', async () => {
  const folder = join(root, 'a')
  const outside = join(home, 'outside/b')
  let refused = 0
  const end = performance.now() + 1500
  for (let delay = 0; performance.now() < end && refused < ENOUGH; delay = (delay + 1) % MOMENTS) {
    const written = writeFileInside(root, 'a/file', 'x').then(
      () => null,
      (error: unknown) => error,
    )
    // Each turn of the loop of events lies between other two of the write's steps.
    for (let turn = 0; turn < delay; turn += 1) await new Promise(setImmediate)
    renameSync(folder, `${folder}.aside`)
    symlinkSync(outside, folder)
    if ((await written) instanceof UserError) refused += 1
    expect(await readdir(outside)).toEqual([])
    unlinkSync(folder)
    renameSync(`${folder}.aside`, folder)
    await rm(join(folder, 'file'), { force: true })
  }
  expect(refused).toBeGreaterThan(0)
})

/** How many turns of the loop of events a write takes, about. */
const MOMENTS = 60
const ENOUGH = 200
