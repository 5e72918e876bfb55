import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { writeFileInside } from '../../../src/workspace/files/inside-directory.ts'

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
