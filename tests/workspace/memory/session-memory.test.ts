import { execFile } from 'node:child_process'
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import type { Memory } from '../../../src/core/shapes/memory.ts'
import type { SessionFolder } from '../../../src/workspace/memory/memory-paths.ts'
import { createSessionFolder } from '../../../src/workspace/memory/session-folder.ts'
import { openMemory } from '../../../src/workspace/memory/session-memory.ts'
import { cpuMs } from '../../support/cpu-time.ts'
import { isWindows, unless } from '../../support/skipped.ts'

const goodMain = `---
status: in-progress
finite_incantatem: false
short_title: "x"
---

# Goal

## In progress

- [ ] T1 begin

## Todo

- [ ] T2 go on
`
const goodTasks = JSON.stringify({ tasks: [{ id: 'T1', name: 'begin', done: false }] })

let home: string
let directory: string
let place: SessionFolder
let memory: Memory

const open = (): Memory => openMemory({ folder: place.folder, directory, lastGood: place.lastGood })

beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'memory-')))
  directory = join(home, 'work')
  await mkdir(directory)
  const git = { commit: null, branch: null }
  place = await createSessionFolder({
    directory,
    id: '20261120_1',
    goal: 'A goal',
    git,
    records: join(home, 'records'),
    redact: text => text,
  })
  await writeFile(place.main, goodMain)
  await writeFile(place.tasks, goodTasks)
  memory = open()
})

afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})

const goodSnapshot = {
  main: { status: 'in-progress', finiteIncantatem: false, shortTitle: 'x', open: ['T1 begin', 'T2 go on'] },
  tasks: [{ id: 'T1', name: 'begin', done: false }],
  fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
  texts: expect.any(Object),
}

describe('reading', () => {
  it('says what the files say, and keeps a copy of both where the agent cannot write', async () => {
    expect(await memory.read()).toEqual({ ...goodSnapshot, problems: [] })
    expect(await readFile(join(place.lastGood, 'MAIN.md'), 'utf8')).toBe(goodMain)
    expect(await readFile(join(place.lastGood, 'tasks.json'), 'utf8')).toBe(goodTasks)
    expect((await stat(join(place.lastGood, 'MAIN.md'))).mode & 0o777).toBe(0o600)
  })

  it('sees every change, also one of the same size in the same moment', async () => {
    await memory.read()
    for (let number = 0; number < 30; number += 1) {
      await writeFile(place.main, goodMain.replace('T1 begin', `T1 beg${String(number).padStart(2, '0')}`))
      expect((await memory.read()).main.open[0]).toBe(`T1 beg${String(number).padStart(2, '0')}`)
    }
  })

  it('takes no time while nothing changes, and writes nothing', async () => {
    const later = { ...systemClock, now: () => Date.now() + 1_000 }
    memory = openMemory({ folder: place.folder, directory, lastGood: place.lastGood, clock: later })
    await memory.read()
    const before = await stat(join(place.lastGood, 'MAIN.md'))
    const times: number[] = []
    for (let turn = 0; turn < 50; turn += 1) {
      const started = cpuMs()
      await memory.read()
      times.push(cpuMs() - started)
    }
    times.sort((a, b) => a - b)
    expect(times[25]).toBeLessThan(1)
    expect((await stat(join(place.lastGood, 'MAIN.md'))).ino).toBe(before.ino)
  })

  it('goes on after a restart with the good copies of the run before', async () => {
    await memory.read()
    await writeFile(place.main, 'rubbish')
    const snapshot = await open().read()
    expect(snapshot).toMatchObject(goodSnapshot)
    expect(snapshot.problems).toHaveLength(1)
  })
})

describe('a broken file', () => {
  it('is set aside, the last good one put back, and told once', async () => {
    await memory.read()
    await writeFile(place.tasks, '{ "tasks": [ { "id": "T1", "name": "a", "done": "yes" } ] }')
    expect(await memory.read()).toEqual({
      ...goodSnapshot,
      problems: [
        {
          file: 'tasks.json',
          problem: 'tasks[0].done is "yes"; use true or false.',
          setAside: 'tasks.broken-1.json',
          restored: true,
        },
      ],
    })
    expect(await readFile(place.tasks, 'utf8')).toBe(goodTasks)
    expect(await readFile(join(place.folder, 'tasks.broken-1.json'), 'utf8')).toContain('"yes"')
    expect((await memory.read()).problems).toEqual([])
  })

  it('is one with more tasks than can be judged, too; what a session has had before stays', async () => {
    const many = (count: number) =>
      JSON.stringify({ tasks: Array.from({ length: count }, (_, at) => ({ id: `T${at}`, name: 'x', done: true })) })
    await memory.read()
    await writeFile(place.tasks, many(2_000))
    expect((await memory.read()).tasks).toHaveLength(2_000)
    await writeFile(place.tasks, many(2_001))
    const { tasks, problems } = await memory.read()
    expect(tasks).toHaveLength(2_000)
    expect(problems).toMatchObject([{ problem: 'tasks has 2001 entries; write at most 2000.', restored: true }])
    for (const folder of [place.folder, place.lastGood]) await writeFile(join(folder, 'tasks.json'), many(2_001))
    expect(await open().read()).toMatchObject({ tasks: { length: 2_001 }, problems: [] })
  })

  it('never overwrites another one that was set aside', async () => {
    await memory.read()
    await writeFile(join(place.folder, 'MAIN.broken-1.md'), 'first')
    await symlink('/nowhere', join(place.folder, 'MAIN.broken-2.md'))
    await writeFile(place.main, 'broken')
    expect((await memory.read()).problems[0]?.setAside).toBe('MAIN.broken-3.md')
    expect(await readFile(join(place.folder, 'MAIN.broken-1.md'), 'utf8')).toBe('first')
  })

  it('that is gone is put back', async () => {
    await memory.read()
    await rm(place.main)
    const { main, problems } = await memory.read()
    expect(main).toEqual(goodSnapshot.main)
    expect(problems).toEqual([
      { file: 'MAIN.md', problem: 'it is gone; leave it where it is.', setAside: null, restored: true },
    ])
    expect(await readFile(place.main, 'utf8')).toBe(goodMain)
  })

  it('without a good copy is left for the person, and no default is invented', async () => {
    await rm(place.lastGood, { recursive: true })
    await writeFile(place.main, 'rubbish')
    await expect(memory.read()).rejects.toMatchObject({
      name: 'UserError',
      exitCode: 4,
      message: expect.stringContaining(`${place.main}: it has no front matter;`),
    })
    expect(await readFile(place.main, 'utf8')).toBe('rubbish')
  })

  it.each([
    ['of 100 MB', async () => truncate(place.main, 100 * 1024 * 1024), 'it is larger than 2 MiB; keep it short.'],
    [
      'that is not UTF-8',
      async () => writeFile(place.main, Buffer.concat([Buffer.from(goodMain), Buffer.from([0xc3, 0x28])])),
      'it is not valid UTF-8; write it as UTF-8 text.',
    ],
    [
      'with a NUL byte',
      async () => writeFile(place.main, `${goodMain}\0`),
      'line 16 has a NUL byte; write plain text.',
    ],
    [
      'that is a pipe nobody writes to',
      async () => {
        await rm(place.main)
        await promisify(execFile)('mkfifo', [place.main])
      },
      'it is not a regular file; write a file in its place.',
    ],
    [
      'that is a folder',
      async () => {
        await rm(place.main)
        await mkdir(place.main)
      },
      'it is not a regular file; write a file in its place.',
    ],
    [
      'that is empty',
      async () => writeFile(place.main, ''),
      'it is empty; begin with a front matter between two lines of ---.',
    ],
  ])('%s is set aside unread', async (_, breakIt, problem) => {
    await memory.read()
    await breakIt()
    const started = cpuMs()
    expect(await memory.read()).toEqual({
      ...goodSnapshot,
      problems: [{ file: 'MAIN.md', problem, setAside: 'MAIN.broken-1.md', restored: true }],
    })
    expect(cpuMs() - started).toBeLessThan(1_000)
    expect(await readFile(place.main, 'utf8')).toBe(goodMain)
  })

  it('that two ask for at once is set aside once', async () => {
    await memory.read()
    await writeFile(place.main, 'broken')
    const both = await Promise.all([memory.read(), memory.read()])
    expect(both.map(({ problems }) => problems.length)).toEqual([1, 0])
    expect(await readdir(place.folder)).toEqual(['MAIN.broken-1.md', 'MAIN.md', 'tasks.json'])
  })
})

describe('a link', () => {
  it.each(['outside', 'inside'])('in place of a file is renamed, and its target %s stays as it is', async where => {
    await memory.read()
    const target = where === 'outside' ? join(home, 'secret.md') : join(directory, 'other.md')
    const other = goodMain.replace('in-progress', 'done')
    await writeFile(target, other)
    await rm(place.main)
    await symlink(target, place.main)
    expect(await memory.read()).toEqual({
      ...goodSnapshot,
      problems: [
        {
          file: 'MAIN.md',
          problem: 'it is a link; write a file in its place.',
          setAside: 'MAIN.broken-1.md',
          restored: true,
        },
      ],
    })
    expect(await readFile(target, 'utf8')).toBe(other)
    expect((await lstat(place.main)).isFile()).toBe(true)
    expect((await lstat(join(place.folder, 'MAIN.broken-1.md'))).isSymbolicLink()).toBe(true)
  })

  it.each([
    ['the session', '.codemachine/projects/20261120_1', '../20261120_1.broken-1'],
    ['all sessions', '.codemachine/projects', '../../projects.broken-1'],
    ['the memory', '.codemachine', '../../../.codemachine.broken-1'],
  ])('in place of the folder of %s is renamed, and nothing is written through it', async (_, path, setAside) => {
    await memory.read()
    const outside = join(home, 'outside')
    await mkdir(outside)
    await rm(join(directory, path), { recursive: true })
    await symlink(outside, join(directory, path))
    const problem = `its folder ${path} was a link; leave the folder where it is.`
    expect(await memory.read()).toEqual({
      ...goodSnapshot,
      problems: [
        { file: 'MAIN.md', problem, setAside, restored: true },
        { file: 'tasks.json', problem, setAside, restored: true },
      ],
    })
    expect(await readdir(outside)).toEqual([])
    expect(await readFile(place.main, 'utf8')).toBe(goodMain)
    expect((await lstat(join(place.folder, setAside))).isSymbolicLink()).toBe(true)
    expect(await readFile(join(directory, '.codemachine', '.gitignore'), 'utf8')).toBe('*\n')
  })

  it('to a folder that holds good files of another is not believed', async () => {
    await memory.read()
    const outside = join(home, 'outside')
    await rename(place.folder, outside)
    await writeFile(join(outside, 'MAIN.md'), goodMain.replace('in-progress', 'done'))
    await symlink(outside, place.folder)
    expect((await memory.read()).main.status).toBe('in-progress')
    expect(await readFile(join(outside, 'MAIN.md'), 'utf8')).toContain('status: done')
  })
})

describe('a folder', () => {
  it('that was removed is made again', async () => {
    await memory.read()
    await rm(join(directory, '.codemachine'), { recursive: true })
    const { problems, ...snapshot } = await memory.read()
    expect(snapshot).toEqual(goodSnapshot)
    expect(problems.map(({ file, problem, restored }) => [file, problem, restored])).toEqual([
      ['MAIN.md', 'its folder .codemachine was gone; leave the folder where it is.', true],
      ['tasks.json', 'its folder .codemachine was gone; leave the folder where it is.', true],
    ])
    expect((await memory.read()).problems).toEqual([])
  })

  it.skipIf(isWindows)(
    `that is made again is for this user alone, as are its files${unless(!isWindows, 'Windows has no such modes')}`,
    async () => {
      await memory.read()
      await rm(join(directory, '.codemachine'), { recursive: true })
      const before = process.umask(0)
      try {
        await memory.read()
      } finally {
        process.umask(before)
      }
      const paths = [join(directory, '.codemachine'), place.folder, place.main, place.tasks]
      const modes = await Promise.all(paths.map(async path => (await stat(path)).mode & 0o777))
      expect(modes).toEqual([0o700, 0o700, 0o600, 0o600])
    },
  )

  it('that a file took the place of is made again', async () => {
    await memory.read()
    await rm(place.folder, { recursive: true })
    await writeFile(place.folder, 'in the way')
    expect((await memory.read()).problems).toHaveLength(2)
    expect(await readFile(`${place.folder}.broken-1`, 'utf8')).toBe('in the way')
    expect(await readFile(place.tasks, 'utf8')).toBe(goodTasks)
  })

  it('that cannot be made again loses nothing that was known, and says so', async () => {
    await memory.read()
    await rm(directory, { recursive: true })
    await writeFile(directory, '')
    const { problems, ...snapshot } = await memory.read()
    expect(snapshot).toEqual(goodSnapshot)
    expect(problems.map(problem => problem.restored)).toEqual([false, false])
  })
})

test('that it is done is never written through a link, and becomes the last good copy', async () => {
  await memory.read()
  await rename(place.main, join(home, 'outside.md'))
  await symlink(join(home, 'outside.md'), place.main)
  expect(await memory.markDone()).toBeNull()
  expect(await readFile(join(home, 'outside.md'), 'utf8')).toBe(goodMain)
  const done = goodMain.replace('status: in-progress', 'status: done')
  expect(await readFile(place.main, 'utf8')).toBe(done)
  expect(await readFile(join(place.lastGood, 'MAIN.md'), 'utf8')).toBe(done)
})

test('where it cannot be written that it is done, the sentence says so', async () => {
  await memory.read()
  await rm(directory, { recursive: true })
  await writeFile(directory, '')
  expect(await memory.markDone()).toMatch(/^MAIN\.md does not say that it is done: /)
})

describe('withdrawing a claim', () => {
  const claiming = goodMain
    .replace('status: in-progress', '# keep me\nstatus: done # ok')
    .replace('finite_incantatem: false', 'finite_incantatem:   true')

  it('puts flag and status back, leaves all else, the mode too, and is what is put back later', async () => {
    await writeFile(place.main, claiming)
    await chmod(place.main, 0o640)
    expect((await memory.read()).main).toMatchObject({ status: 'done', finiteIncantatem: true })
    await memory.withdrawClaim()
    const withdrawn = claiming.replace('status: done', 'status: in-progress').replace('   true', '   false')
    expect(await readFile(place.main, 'utf8')).toBe(withdrawn)
    expect((await stat(place.main)).mode & 0o777).toBe(0o640)
    await rm(place.main)
    expect((await memory.read()).main).toMatchObject({ status: 'in-progress', finiteIncantatem: false })
    expect(await readFile(place.main, 'utf8')).toBe(withdrawn)
  })

  it('touches no file that claims nothing', async () => {
    await memory.read()
    const before = await stat(place.main, { bigint: true })
    await memory.withdrawClaim()
    expect(await stat(place.main, { bigint: true })).toEqual(before)
  })

  it('that cannot be written names the file', async () => {
    await writeFile(place.main, claiming)
    await memory.read()
    await rm(directory, { recursive: true })
    await writeFile(directory, '')
    await expect(memory.withdrawClaim()).rejects.toMatchObject({
      name: 'UserError',
      message: `${place.main} cannot be written to (ENOTDIR); give yourself the right to write in its folder.`,
    })
  })

  it('from a link never writes to its target, and the problem is told at the next reading', async () => {
    await writeFile(place.main, claiming)
    await memory.read()
    await rename(place.main, join(home, 'outside.md'))
    await symlink(join(home, 'outside.md'), place.main)
    await memory.withdrawClaim()
    expect(await readFile(join(home, 'outside.md'), 'utf8')).toBe(claiming)
    const { main, problems } = await memory.read()
    expect(main.finiteIncantatem).toBe(false)
    expect(problems).toMatchObject([{ file: 'MAIN.md', restored: true }])
  })
})

describe('a file caught half-written or mangled', () => {
  const edits = (text: string) =>
    fc.oneof(
      fc.nat(Buffer.byteLength(text)).map(length => Buffer.from(text).subarray(0, length)),
      fc
        .array(fc.tuple(fc.nat(Buffer.byteLength(text) - 1), fc.nat(255)), { minLength: 1, maxLength: 4 })
        .map(changes => {
          const bytes = Buffer.from(text)
          for (const [at, byte] of changes) bytes[at] = byte
          return bytes
        }),
    )

  it('never throws: what is said is always what a good file said', async () => {
    await memory.read()
    await fc.assert(
      fc.asyncProperty(edits(goodMain), edits(goodTasks), async (mainBytes, tasksBytes) => {
        await writeFile(place.main, mainBytes)
        await writeFile(place.tasks, tasksBytes)
        const { problems, ...said } = await memory.read()
        const { main, tasks } = said
        expect(main.status).toEqual(expect.any(String))
        expect(main.finiteIncantatem).toEqual(expect.any(Boolean))
        expect(new Set(tasks.map(task => task.id)).size).toBe(tasks.length)
        for (const { file, setAside, restored } of problems) {
          expect(restored).toBe(true)
          const written = file === 'MAIN.md' ? mainBytes : tasksBytes
          expect((await readFile(join(place.folder, setAside ?? ''))).equals(written)).toBe(true)
          await rm(join(place.folder, setAside ?? ''))
        }
        expect(await memory.read()).toEqual({ ...said, problems: [] })
      }),
    )
  })

  it('at every single length of tasks.json keeps the tasks', async () => {
    await memory.read()
    for (let length = 0; length < goodTasks.length; length += 1) {
      await writeFile(place.tasks, goodTasks.slice(0, length))
      expect((await memory.read()).tasks).toEqual(goodSnapshot.tasks)
      await rm(join(place.folder, 'tasks.broken-1.json'))
    }
  })
})

it('a file whose stamps were set back is read again all the same', async () => {
  const later = { ...systemClock, now: () => Date.now() + 1_000 }
  memory = openMemory({ folder: place.folder, directory, lastGood: place.lastGood, clock: later })
  await utimes(place.tasks, 1_000, 1_000)
  await memory.read()
  const before = await stat(place.tasks)
  await writeFile(place.tasks, goodTasks.replace('begin', 'BEGIN'))
  await utimes(place.tasks, 1_000, 1_000)
  expect(await stat(place.tasks)).toMatchObject({ ino: before.ino, size: before.size, mtimeMs: before.mtimeMs })
  expect((await memory.read()).tasks[0]?.name).toBe('BEGIN')
})
