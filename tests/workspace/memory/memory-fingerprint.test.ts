import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, realpath, rename, rm, symlink, truncate, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Memory } from '../../../src/core/shapes/memory.ts'
import { memoryFingerprint } from '../../../src/workspace/memory/memory-fingerprint.ts'
import type { SessionFolder } from '../../../src/workspace/memory/memory-paths.ts'
import { createSessionFolder } from '../../../src/workspace/memory/session-folder.ts'
import { openMemory } from '../../../src/workspace/memory/session-memory.ts'

let home: string
let place: SessionFolder
let memory: Memory

beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'memory-fingerprint-')))
  const directory = join(home, 'work')
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
  memory = openMemory({ folder: place.folder, directory, lastGood: place.lastGood })
})

afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})

const now = async () => (await memory.read()).fingerprint

test('it stays while nothing changes, and does not know files by when they were written', async () => {
  await mkdir(join(place.kb, 'build'))
  await writeFile(join(place.kb, 'build', 'notes.md'), 'The tests need a port.')
  const before = await now()
  expect(before).toMatch(/^[0-9a-f]{64}$/)
  await utimes(join(place.kb, 'build', 'notes.md'), 1, 1)
  expect(await now()).toBe(before)
})

test('it changes with what an agent writes, wherever it writes it, and comes back with it', async () => {
  const seen = [await now()]
  const tell = async () => seen.push(await now())
  await writeFile(place.tasks, JSON.stringify({ tasks: [{ id: 'T1', name: 'begin', done: false }] }))
  await tell()
  await writeFile(join(place.kb, 'notes.md'), 'one')
  await tell()
  await writeFile(join(place.kb, 'notes.md'), 'two')
  await tell()
  await rename(join(place.kb, 'notes.md'), join(place.kb, 'other.md'))
  await tell()
  await mkdir(join(place.kb, 'deep'))
  await rename(join(place.kb, 'other.md'), join(place.kb, 'deep', 'other.md'))
  await tell()
  expect(new Set(seen).size).toBe(seen.length)
  await rename(join(place.kb, 'deep', 'other.md'), join(place.kb, 'other.md'))
  await rm(join(place.kb, 'deep'), { recursive: true })
  expect(await now()).toBe(seen[4])
})

test('a claim counts, so that the same claim after two rounds is the same memory', async () => {
  const claim = async () => {
    const text = await readFile(place.main, 'utf8')
    await writeFile(place.main, text.replace('finite_incantatem: false', 'finite_incantatem: true'))
    return now()
  }
  const before = await now()
  const first = await claim()
  await memory.withdrawClaim()
  expect(await now()).toBe(before)
  expect(first).not.toBe(before)
  expect(await claim()).toBe(first)
})

test('what lies behind a link does not count, and a pipe is not waited for', async () => {
  const outside = join(home, 'outside')
  await mkdir(outside)
  await writeFile(join(outside, 'a.md'), 'one')
  await symlink(outside, join(place.kb, 'link'))
  execFileSync('mkfifo', [join(place.kb, 'pipe')])
  const before = await now()
  await writeFile(join(outside, 'a.md'), 'two')
  expect(await now()).toBe(before)
  await rm(join(place.kb, 'link'))
  await symlink(home, join(place.kb, 'link'))
  expect(await now()).not.toBe(before)
  await rm(place.kb, { recursive: true })
  await symlink(outside, place.kb)
  const linked = await now()
  await writeFile(join(outside, 'a.md'), 'three')
  expect(await now()).toBe(linked)
})

test('of a huge file, and of the thousand-and-first, only the stamps count', async () => {
  const huge = join(place.kb, 'huge')
  await writeFile(huge, '')
  await truncate(huge, 40_000_000_000)
  await utimes(huge, 1, 1)
  const before = await now()
  await utimes(huge, 1, 2)
  expect(await now()).not.toBe(before)
  await rm(huge)
  for (let n = 0; n < 1000; n += 1) await writeFile(join(place.kb, `${n}`.padStart(4, '0')), '')
  await writeFile(join(place.kb, 'z'), 'one')
  await utimes(join(place.kb, 'z'), 1, 1)
  const many = await now()
  await writeFile(join(place.kb, 'z'), 'two')
  await utimes(join(place.kb, 'z'), 1, 1)
  expect(await now()).toBe(many)
  await writeFile(join(place.kb, '0500'), 'one')
  expect(await now()).not.toBe(many)
})

test('two lists of texts that read alike one after the other are told apart', () => {
  expect(memoryFingerprint(['a', 'b'], place.kb)).not.toBe(memoryFingerprint(['atextb'], place.kb))
})
