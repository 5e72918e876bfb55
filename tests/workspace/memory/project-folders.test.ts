import { lstat, mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeProjectFolders, specificationFile, specificationGuide } from '../../../src/workspace/memory/plan-files.ts'

let root: string
let directory: string

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'folders-')))
  directory = join(root, 'work')
  await mkdir(directory)
})

afterEach(async () => {
  await rm(root, { recursive: true, force: true })
})

test('a directory has the folders of a build and a guide to writing the specification, out of sight of git', async () => {
  await makeProjectFolders(directory)
  const home = join(directory, '.codemachine')
  expect((await readdir(home)).sort()).toEqual(['.gitignore', 'agents', 'inputs', 'memory', 'plan'])
  expect(await readFile(join(directory, specificationFile), 'utf8')).toBe(specificationGuide())
  expect((await stat(join(home, 'inputs'))).mode & 0o777).toBe(0o700)
})

test('what a person has written, emptied or put in its place stays', async () => {
  await makeProjectFolders(directory)
  const file = join(directory, specificationFile)
  for (const text of ['Build a game.\n', '']) {
    await writeFile(file, text)
    await makeProjectFolders(directory)
    expect(await readFile(file, 'utf8')).toBe(text)
  }
  await rm(file)
  await symlink(join(root, 'elsewhere.md'), file)
  await makeProjectFolders(directory)
  expect((await lstat(file)).isSymbolicLink()).toBe(true)
  expect(await readdir(root)).toEqual(['work'])
})

test.each([
  ['a link', (path: string) => symlink(root, path), 'is a link'],
  ['a file', (path: string) => writeFile(path, ''), 'is not a folder'],
])('%s in the place of a folder is refused in a sentence', async (_, put, what) => {
  await mkdir(join(directory, '.codemachine'))
  await put(join(directory, '.codemachine/inputs'))
  await expect(makeProjectFolders(directory)).rejects.toThrow(
    `${directory}/.codemachine/inputs ${what}; move it away, so that codemachine can make a folder in its place.`,
  )
  expect(await readdir(root)).toEqual(['work'])
})
