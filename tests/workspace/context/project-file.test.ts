import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { hashFiles, readProjectFile } from '../../../src/workspace/context/project-file.ts'
import { workDirectoryForEach } from '../../support/work-directory.ts'

const place = workDirectoryForEach('project-file')
const project = () => ({ root: place.work, redact: (text: string) => text })
const { signal } = new AbortController()

test('the hash of a file changes with its content, and is null where there is none', async () => {
  place.write('a.ts', 'one')
  const paths = ['a.ts', 'gone.ts', '../home', 'x\0y', '', '__proto__', 'a.ts/b']
  const before = await hashFiles(place.work, paths, signal)
  expect(Object.entries(before)).toEqual([
    ['a.ts', '7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed'],
    ...paths.slice(1).map(path => [path, null]),
  ])
  place.write('a.ts', 'two')
  const after = await hashFiles(place.work, paths, signal)
  expect(after['a.ts']).not.toBe(before['a.ts'])
})

test('a large file counts by size and times, and two hundred files at most', async () => {
  place.write('large.bin', '')
  truncateSync(join(place.work, 'large.bin'), 64 * 1024 ** 2)
  const { 'large.bin': before } = await hashFiles(place.work, ['large.bin'], signal)
  expect(before).toMatch(/^[0-9a-f]{64}$/)
  truncateSync(join(place.work, 'large.bin'), 65 * 1024 ** 2)
  expect((await hashFiles(place.work, ['large.bin'], signal))['large.bin']).not.toBe(before)
  const many = Array.from({ length: 300 }, (_, index) => `${index}`)
  expect(Object.keys(await hashFiles(place.work, many, signal))).toHaveLength(200)
  await expect(hashFiles(place.work, many, AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped')
})

test('what is no file of the project is not read', async () => {
  place.write('../home/x.txt', 'private')
  place.write('docs/a.md', 'here')
  symlinkSync(join(place.base, 'home'), join(place.work, 'out'))
  symlinkSync('docs', join(place.work, 'in'))
  symlinkSync('loop', join(place.work, 'loop'))
  execFileSync('mkfifo', [join(place.work, 'pipe')])
  mkdirSync(join(place.work, '.git'))
  place.write('.git/config', 'x')
  expect(await readProjectFile(project(), 'out/x.txt')).toEqual({ kind: 'unread', why: 'lies outside of the project' })
  expect(await readProjectFile(project(), 'in/a.md')).toMatchObject({ kind: 'text', text: 'here' })
  expect(await readProjectFile(project(), 'loop')).toEqual({ kind: 'unread', why: 'is a link that leads nowhere' })
  expect(await readProjectFile(project(), 'pipe')).toEqual({ kind: 'unread', why: 'is not a regular file' })
  expect(await readProjectFile(project(), 'docs')).toEqual({ kind: 'unread', why: 'is not a regular file' })
  expect(await readProjectFile(project(), '.git/config')).toEqual({
    kind: 'unread',
    why: 'belongs to git or codemachine',
  })
  expect(await readProjectFile(project(), 'x'.repeat(5_000))).toEqual({
    kind: 'unread',
    why: 'cannot be read (ENAMETOOLONG)',
  })
  rmSync(join(place.work, 'pipe'))
  expect(await readProjectFile(project(), 'pipe')).toEqual({ kind: 'gone' })
  expect(await hashFiles(place.work, ['out/x.txt', 'docs'], signal)).toEqual({ 'out/x.txt': null, docs: null })
})

test.each([
  '.env',
  '.env.local',
  'config/prod.env',
  'server.pem',
  'id_ed25519',
  '.npmrc',
  'secrets.yaml',
  'main.tfstate',
])('%s is not read', async path => {
  place.write(path, 'secret')
  expect(await readProjectFile(project(), path)).toEqual({ kind: 'secret' })
})

test.each(['.env.example', 'src/secrets.ts', 'tokens.md', 'environment.ts', 'keys.ts'])('%s is read', async path => {
  place.write(path, 'text')
  expect(await readProjectFile(project(), path)).toMatchObject({ kind: 'text' })
})
