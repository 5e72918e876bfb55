import { chmod, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { IgnoreRules, makeMemoryFolder } from '../../../src/workspace/memory/memory-folder.ts'
import { promise } from '../../support/promise.ts'
import { unless } from '../../support/skipped.ts'

const isRoot = process.getuid?.() === 0

let root: string
let path: string
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'ignore-rules-')))
  path = join(root, '.codemachine', '.gitignore')
  await makeMemoryFolder(root, '.codemachine')
})
afterEach(() => rm(root, { recursive: true, force: true }))

const removed = () => rm(path)
const emptied = () => writeFile(path, '')
const negated = () => writeFile(path, '*\n!MAIN.md\n')
const folder = async () => {
  await rm(path)
  await mkdir(path)
}
const link = async () => {
  await rm(path)
  await symlink('/etc/hostname', path)
}
const bytes = () => writeFile(path, Buffer.from([0xff, 0x00]))

promise(
  'L21',
  'An agent that removes or changes the `.gitignore` of `.codemachine` has no memory committed by a later round: the file is put back after each round, and the session warns',
)
test.each([
  ['removed', removed, 'was gone'],
  ['emptied', emptied, 'was changed'],
  ['given other rules', negated, 'was changed'],
  ['replaced by a folder', folder, 'was no file of text'],
  ['replaced by a link', link, 'was no file of text'],
  ['replaced by bytes', bytes, 'was no file of text'],
])('the rules that keep git from the memory are put back when they are %s, each time', async (_, change, was) => {
  const rules = new IgnoreRules(root)
  expect(await rules.keep()).toBeNull()
  for (const _ of [1, 2]) {
    await change()
    expect(await rules.keep()).toContain(`.codemachine/.gitignore ${was}, so git could commit the memory;`)
    expect(await readFile(path, 'utf8')).toBe('*\n')
    expect(await rules.keep()).toBeNull()
  }
})

test('rules that a person has written before are kept, and put back as they were', async () => {
  await writeFile(path, '*\n!kb/\n')
  const rules = new IgnoreRules(root)
  expect(await rules.keep()).toBeNull()
  await removed()
  expect(await rules.keep()).toContain('codemachine restored it')
  expect(await readFile(path, 'utf8')).toBe('*\n!kb/\n')
})

test('rules that are gone before anybody has looked are made again, and said', async () => {
  await removed()
  expect(await new IgnoreRules(root).keep()).toContain('was gone')
  expect(await readFile(path, 'utf8')).toBe('*\n')
})

test('without the folder of the memory there is nothing that git could commit, and nothing is said', async () => {
  const rules = new IgnoreRules(root)
  expect(await rules.keep()).toBeNull()
  await rm(join(root, '.codemachine'), { recursive: true })
  expect(await rules.keep()).toBeNull()
  await symlink(tmpdir(), join(root, '.codemachine'))
  expect(await rules.keep()).toBeNull()
  await rm(root, { recursive: true })
  await writeFile(root, '')
  expect(await rules.keep()).toBeNull()
})

test(`rules that cannot be put back are said, with what is in the way${unless(!isRoot, 'root can write everywhere')}`, async ({
  skip,
}) => {
  skip(isRoot)
  const rules = new IgnoreRules(root)
  await removed()
  await chmod(join(root, '.codemachine'), 0o500)
  expect(await rules.keep()).toMatch(
    / was gone, so git can commit the memory, and codemachine cannot restore it: .*EACCES/,
  )
  await chmod(join(root, '.codemachine'), 0o700)
})
