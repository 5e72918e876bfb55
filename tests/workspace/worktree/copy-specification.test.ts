import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeProjectFolders } from '../../../src/workspace/memory/plan-files.ts'
import { copySpecification } from '../../../src/workspace/worktree/land.ts'

let root: string
let from: string
let to: string

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'inputs-')))
  from = join(root, 'from')
  to = join(root, 'to')
  for (const each of [from, to]) await mkdir(each)
  await write(from, 'specifications.md', '# A game\n')
  await write(from, 'pictures/board.svg', '<svg/>')
})

afterEach(async () => {
  await rm(root, { recursive: true, force: true })
})

const inputs = (directory: string, file: string) => join(directory, '.codemachine/inputs', file)
const read = (file: string) => readFile(inputs(to, file), 'utf8')

async function write(directory: string, file: string, text: string): Promise<void> {
  await mkdir(dirname(inputs(directory, file)), { recursive: true })
  await writeFile(inputs(directory, file), text)
}

test('a specification comes along with the files beside it, in place of a guide that nobody has filled in', async () => {
  await makeProjectFolders(to)
  await write(to, 'pictures/board.svg', 'theirs')
  expect(await copySpecification(from, to)).toBe(true)
  expect([await read('specifications.md'), await read('pictures/board.svg')]).toEqual(['# A game\n', 'theirs'])
})

test('a directory that has a specification of its own keeps it, finished or not, and gets nothing', async () => {
  await write(to, 'specifications.md', '# Not finished\n')
  expect(await copySpecification(from, to)).toBe(false)
  expect(await read('specifications.md')).toBe('# Not finished\n')
  expect(existsSync(inputs(to, 'pictures'))).toBe(false)
})

test('nothing is written through a link, and none is followed', async () => {
  await mkdir(join(root, 'outside'))
  await writeFile(join(root, 'outside/secret'), 'secret')
  await symlink(join(root, 'outside'), inputs(from, 'linked'))
  await symlink(join(root, 'outside/secret'), inputs(from, 'secret'))
  await mkdir(inputs(to, ''), { recursive: true })
  await symlink(join(root, 'outside'), inputs(to, 'pictures'))
  expect(await copySpecification(from, to)).toBe(true)
  expect(['linked', 'secret'].map(each => existsSync(inputs(to, each)))).toEqual([false, false])
  expect(existsSync(join(root, 'outside/board.svg'))).toBe(false)
})
