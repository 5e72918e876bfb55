import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { sessionFolder } from '../../../src/workspace/memory/memory-paths.ts'
import { openScopedMemory } from '../../../src/workspace/memory/scope-memory.ts'
import { createSessionFolder } from '../../../src/workspace/memory/session-folder.ts'

let directory: string
let records: string
beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), 'codemachine-folder-')))
  records = await realpath(await mkdtemp(join(tmpdir(), 'codemachine-folder-records-')))
})
afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
  await rm(records, { recursive: true, force: true })
})

const TASKS = `${JSON.stringify({ tasks: [{ id: 'T1', name: 'weave', done: false, status: 'PENDING' }] }, null, 2)}\n`

async function open(memory: 'session' | 'project-plan' = 'session') {
  const place = { directory, id: '20261123_1', records, memory }
  const git = { commit: null, branch: null }
  await createSessionFolder({ ...place, goal: 'Weave it.', git, redact: text => text })
  const head = async () => git
  const paths = sessionFolder(place)
  const opened = openScopedMemory({
    goal: 'Weave it.',
    place: paths,
    directory,
    scope: () => null,
    head,
    redact: text => text,
  })
  await opened.memory.read()
  return { ...opened, paths }
}

test('tasks.json that codemachine writes is the memory, and the copy that is put back when an agent breaks it', async () => {
  const { memory, folder, paths } = await open()
  expect(await folder.write('tasks.json', TASKS)).toMatchObject({ bytes: Buffer.byteLength(TASKS) })
  expect((await memory.read()).tasks).toMatchObject([{ id: 'T1', name: 'weave', done: false }])
  await writeFile(paths.tasks, 'broken')
  const { tasks, problems } = await memory.read()
  expect(tasks).toHaveLength(1)
  expect(problems.map(({ file }) => file)).toEqual(['tasks.json'])
  expect(await readFile(paths.tasks, 'utf8')).toBe(TASKS)
})

test('what is no tasks.json is not written as one, and the one that was there stays', async () => {
  const { memory, folder, paths } = await open()
  const before = await readFile(paths.tasks, 'utf8')
  for (const text of [
    '',
    'prose',
    '{"tasks": [{"id": 7}]}',
    `{"tasks":[${'{"id":"a","name":"b","done":false},'.repeat(2001).slice(0, -1)}]}`,
  ])
    expect(await folder.write('tasks.json', text)).toMatchObject({ problem: expect.stringContaining('tasks.json') })
  expect(await readFile(paths.tasks, 'utf8')).toBe(before)
  expect((await memory.read()).problems).toEqual([])
})

test('the tasks of a plan that sessions share are no file of one of them', async () => {
  const { folder } = await open('project-plan')
  expect(await folder.write('tasks.json', TASKS)).toMatchObject({ problem: expect.stringContaining('tasks.json') })
})

test('a file is made with its folders, for nobody else to read, and is left alone if it is like that already', async () => {
  const { folder, paths } = await open()
  expect(await folder.write('plan/v1.md', '# Plän\n')).toEqual({
    bytes: 8,
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  })
  const path = join(paths.folder, 'plan/v1.md')
  const { mode, ino } = await stat(path)
  expect(mode & 0o777).toBe(0o600)
  await folder.write('plan/v1.md', '# Plän\n')
  expect((await stat(path)).ino).toBe(ino)
  await folder.write('plan/v1.md', 'Another.\n')
  expect(await readFile(path, 'utf8')).toBe('Another.\n')
  expect(await readdir(join(paths.folder, 'plan'))).toEqual(['v1.md'])
})

test('where an agent has put a link in the place of the folder of the session, nothing is written where it leads', async () => {
  const { memory, folder, paths } = await open()
  const elsewhere = join(directory, 'elsewhere')
  await mkdir(elsewhere)
  await rename(paths.folder, `${paths.folder}.gone`)
  await symlink(elsewhere, paths.folder)
  expect(await folder.write('context.md', 'secret')).toMatchObject({ problem: expect.stringContaining('is a link') })
  expect(await readdir(elsewhere)).toEqual([])
  // The memory sets it aside the next time that it is read, and then there is a folder again.
  await memory.read()
  expect(await folder.write('context.md', 'text')).toMatchObject({ bytes: 4 })
  expect(await readFile(join(paths.folder, 'context.md'), 'utf8')).toBe('text')
  expect(await readdir(elsewhere)).toEqual([])
})

test('a link, a folder or a file in the way of a path is never followed, and is said', async () => {
  const { folder, paths } = await open()
  await symlink(directory, join(paths.folder, 'plan'))
  expect(await folder.write('plan/v1.md', 'x')).toMatchObject({ problem: expect.stringContaining('is a link') })
  expect(existsSync(join(directory, 'v1.md'))).toBe(false)
  await writeFile(join(paths.folder, 'notes'), '')
  expect(await folder.write('notes/a.md', 'x')).toMatchObject({ problem: expect.stringContaining('is not a folder') })
  await mkdir(join(paths.folder, 'full', 'inside'), { recursive: true })
  expect(await folder.write('full', 'x')).toMatchObject({ problem: expect.stringContaining('cannot be written') })
  expect((await readdir(paths.folder)).filter(name => name.endsWith('.tmp'))).toEqual([])
})
