import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openPersonsFiles } from '../../../src/workspace/memory/persons-files.ts'
import { promise } from '../../support/promise.ts'
import { isWindows, unless } from '../../support/skipped.ts'

const FILE = '.codemachine/inputs/specifications.md'
const TEXT = '# Two parts\n\nBack and front.\n'

let home: string
let directory: string
beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'persons-files-')))
  directory = join(home, 'work')
  await mkdir(join(directory, '.codemachine/inputs'), { recursive: true })
  await mkdir(join(directory, '.codemachine/projects/1'), { recursive: true })
  await writeFile(join(directory, FILE), TEXT)
})
afterEach(() => rm(home, { recursive: true, force: true }))

const open = () =>
  openPersonsFiles({
    directory,
    folder: join(directory, '.codemachine/projects/1'),
    copies: join(home, 'records/persons'),
  })
const at = (path: string) => join(directory, path)

test('a file that a round leaves alone, or to which it did white space alone, stays as it is', async () => {
  const files = open()
  files.before([FILE, 'missing.md'])
  expect(await files.after()).toEqual([])
  files.before([FILE])
  await writeFile(at(FILE), '# Two parts \r\n\r\n\r\nBack and front.')
  expect(await files.after()).toEqual([])
  expect(await readFile(at(FILE), 'utf8')).toBe('# Two parts \r\n\r\n\r\nBack and front.')
  expect(await readdir(join(home, 'records'))).toEqual([])
})

promise('D67')
test.each<[string, () => Promise<unknown>, object]>([
  ['shortens', () => writeFile(at(FILE), '# Two parts\n'), { how: 'changed', found: '# Two parts\n' }],
  ['makes no text', () => writeFile(at(FILE), Buffer.from([0, 255])), { how: 'changed', found: '\uFFFD\uFFFD' }],
  ['removes', () => rm(at(FILE)), { how: 'removed', found: null, setAside: null }],
  [
    'removes with its folder',
    () => rm(at('.codemachine/inputs'), { recursive: true }),
    { how: 'removed', found: null },
  ],
  ['makes a folder', () => rm(at(FILE)).then(() => mkdir(at(FILE))), { how: 'changed', found: null }],
  ['makes too large', () => writeFile(at(FILE), Buffer.alloc(2 ** 21)), { how: 'changed', found: null }],
])('one that a round %s is put back, and what it made of it is kept', async (_, change, said) => {
  open().before([FILE])
  await change()
  // As after a kill: another process puts it back.
  const [found, ...others] = await open().after()
  expect([others, found]).toEqual([[], expect.objectContaining({ file: FILE, restored: true, ...said })])
  expect(await readFile(at(FILE), 'utf8')).toBe(TEXT)
  expect(await open().after()).toEqual([])
})

test('copies that a killed run has removed in part put nothing back, and stop no later start', async () => {
  open().before([FILE])
  await rm(join(home, 'records/persons/0'))
  await writeFile(at(FILE), 'of the person')
  expect(await open().after()).toEqual([])
  expect(await readFile(at(FILE), 'utf8')).toBe('of the person')
  expect(await readdir(join(home, 'records'))).toEqual([])
})

test('each thing that rounds made of it is kept under a name of its own', async () => {
  for (const text of ['one', 'two']) {
    open().before([FILE])
    await writeFile(at(FILE), text)
    await open().after()
  }
  expect((await readdir(at('.codemachine/projects/1'))).sort()).toEqual([
    'specifications.changed-1.md',
    'specifications.changed-2.md',
  ])
  expect(await readFile(at('.codemachine/projects/1/specifications.changed-2.md'), 'utf8')).toBe('two')
})

test.skipIf(isWindows)(
  `nothing is read or written through a link that a round has put there${unless(!isWindows, 'links need a right')}`,
  async () => {
    const elsewhere = join(home, 'elsewhere')
    await mkdir(elsewhere)
    await writeFile(join(elsewhere, 'specifications.md'), 'of somebody else')
    const files = open()
    files.before([FILE])
    await rm(at('.codemachine/inputs'), { recursive: true })
    await symlink(elsewhere, at('.codemachine/inputs'))
    expect(await files.after()).toMatchObject([{ how: 'removed', found: null, restored: true }])
    expect(await readFile(join(elsewhere, 'specifications.md'), 'utf8')).toBe('of somebody else')
    files.before([FILE])
    await rm(at(FILE))
    await symlink(join(elsewhere, 'specifications.md'), at(FILE))
    expect(await files.after()).toMatchObject([{ how: 'changed', found: null, restored: true }])
    expect(await readFile(at(FILE), 'utf8')).toBe(TEXT)
    // What is behind a link before a round is not a file of the person's to be held.
    await rm(at(FILE))
    await symlink(join(elsewhere, 'specifications.md'), at(FILE))
    files.before([FILE])
    expect(await files.after()).toEqual([])
  },
)
