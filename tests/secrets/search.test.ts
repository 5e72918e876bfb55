import { execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, realpath, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SEARCH_LIMITS, searchFiles } from '../../src/secrets/search.ts'
import { cpuMs, timesSlower } from '../support/cpu-time.ts'
import { promise } from '../support/promise.ts'

const VALUE = 'sk-live/ü+0123456789?>~abcdef'
let directory: string
beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), 'search-')))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const secrets = [{ name: 'KEY', value: VALUE }]
const write = async (path: string, content: string | Buffer) => {
  await mkdir(join(directory, path, '..'), { recursive: true })
  await writeFile(join(directory, path), content)
}
const search = (since = 0, more = {}) => {
  const options = { since, secrets, signal: new AbortController().signal, now: () => 0, ...more }
  return searchFiles(directory, options)
}

promise(
  'B99',
  'A file that a command has written a secret into is found, whatever its form, and is in no savepoint and no diff',
)
test('files with a secret are found whatever its form, also ignored ones, and in what is no text', async () => {
  await write('.gitignore', '*')
  await write('plain.txt', `a ${VALUE} b`)
  await write('deep/er/encoded', Buffer.from(`x${VALUE}y`).toString('base64').replace(/.{10}/g, '$&\r\n'))
  await write('.git/config', Buffer.from(VALUE).toString('hex'))
  await write('image.png', Buffer.concat([Buffer.from([0x89, 0xff, 0xfe]), Buffer.from(VALUE), Buffer.from([0xff])]))
  await write('windows.txt', Buffer.from('key 0123-ascii-only', 'utf16le'))
  await write('windows-ü.txt', Buffer.from(`\ufeffkey ${VALUE}\r\n`, 'utf16le'))
  await write('other-end.txt', Buffer.from(`key ${VALUE}`, 'utf16le').swap16())
  await write('found.log', VALUE.replace('live', '\x1b[01;31m\x1b[Klive\x1b[m\x1b[K'))
  await write('json.json', JSON.stringify({ url: `?k=${encodeURIComponent(VALUE)}` }))
  await write('nothing.txt', VALUE.slice(0, -1))
  await write('.git/objects/ab/cd', VALUE)
  await write('zipped', gzipSync(`key ${VALUE}`))
  const found = await search(0, { secrets: [...secrets, { name: 'ASCII', value: '0123-ascii-only' }] })
  expect([...found.files].sort()).toEqual([
    '.git/config',
    '.git/objects/ab/cd',
    'deep/er/encoded',
    'found.log',
    'image.png',
    'json.json',
    'other-end.txt',
    'plain.txt',
    'windows-ü.txt',
    'windows.txt',
    'zipped',
  ])
  expect(found.problem).toBeNull()
})

test('a secret in a name or in the target of a link is taken away, for a list of a folder shows it', async () => {
  const NAME = 'sk-live-0123456789'
  const named = (since?: number) => search(since, { secrets: [{ name: 'N', value: NAME }] })
  await write(`old-${NAME}`, '')
  await symlink(NAME, join(directory, 'old-link'))
  expect((await named(Date.now() + 60_000)).files).toEqual([])
  await rm(join(directory, `old-${NAME}`))
  await rm(join(directory, 'old-link'))
  await write(`a/named-${NAME}`, NAME)
  await write('a/secret-in-name-1', 'of a person')
  await write(`b/${Buffer.from(NAME).toString('hex')}/c/file`, NAME)
  await mkdir(join(directory, 'd', NAME), { recursive: true })
  await symlink(`/nowhere/${NAME}`, join(directory, 'link'))
  await symlink(NAME, join(directory, `link-${NAME}`))
  await symlink('nothing', join(directory, 'sound'))
  const found = await named()
  expect([...found.files].sort()).toEqual([
    'a/secret-in-name-2',
    'b/secret-in-name-1',
    'b/secret-in-name-1/c/file',
    'd/secret-in-name-1',
    'link',
    'secret-in-name-1',
  ])
  expect(found.problem).toBeNull()
  const left = await readdir(directory, { recursive: true })
  expect(left.sort()).toEqual(
    [
      ['a', 'a/secret-in-name-1', 'a/secret-in-name-2', 'b', 'b/secret-in-name-1', 'b/secret-in-name-1/c'],
      ['b/secret-in-name-1/c/file', 'd', 'd/secret-in-name-1', 'sound'],
    ].flat(),
  )
})

test('what is named as a secret that reads like a word keeps its name', async () => {
  await write('production/settings', 'of production')
  await write('production/more', '')
  const found = await search(0, { secrets: [{ name: 'WORD', value: 'production' }] })
  expect([...found.files].sort()).toEqual(['production/more', 'production/settings'])
})

test('a value across any border of what is read at once is found', async () => {
  const long = 'x'.repeat(1024 * 1024 - 10)
  await write('border', `${long}${VALUE}${long}`)
  await write('wrapped', `${long}${Buffer.from(VALUE).toString('base64').replace(/.{3}/g, '$&\n')}`)
  await write('second', `${long}${long}${VALUE}`)
  expect([...(await search()).files].sort()).toEqual(['border', 'second', 'wrapped'])
})

test('only what was made or changed since is searched, whatever time a program sets', async () => {
  await write('old', VALUE)
  const since = Date.now() + 60_000
  expect((await search(since)).files).toEqual([])
  await utimes(join(directory, 'old'), new Date(0), new Date(0))
  expect((await search(Date.now())).files).toEqual(['old'])
  // What stamps files may be behind the clock.
  const { ctimeMs } = await stat(join(directory, 'old'))
  expect((await search(ctimeMs + 900)).files).toEqual(['old'])
})

test('links are not followed, nothing is waited for at a pipe, and what cannot be read is said', async () => {
  const outside = await mkdtemp(join(tmpdir(), 'outside-'))
  await writeFile(join(outside, 'file'), VALUE)
  await symlink(join(outside, 'file'), join(directory, 'link'))
  await symlink(outside, join(directory, 'folder'))
  await symlink('circle', join(directory, 'circle'))
  execFileSync('mkfifo', [join(directory, 'pipe')])
  expect(await search()).toEqual({ files: [], problem: null })
  await rm(outside, { recursive: true })
  await writeFile(Buffer.concat([Buffer.from(`${directory}/name-`), Buffer.from([0xff])]), VALUE)
  expect((await search()).problem).toBe('"name-\ufffd" cannot be searched for secrets (ENOENT).')
  if (process.getuid?.() === 0) return
  await rm(Buffer.concat([Buffer.from(`${directory}/name-`), Buffer.from([0xff])]))
  await write('closed', VALUE)
  await chmod(join(directory, 'closed'), 0)
  expect((await search()).problem).toBe('"closed" cannot be searched for secrets (EACCES).')
})

test('a search has bounds of files, bytes and time, and is broken off, and says so', async () => {
  for (let n = 0; n < 10; n++) await write(`file-${n}`, 'x'.repeat(100))
  const many = 'Too many files changed, so codemachine could not search all of them for secrets.'
  expect((await search(0, { limits: { ...SEARCH_LIMITS, files: 5 } })).problem).toBe(many)
  expect((await search(0, { limits: { ...SEARCH_LIMITS, bytes: 500 } })).problem).toBe(many)
  let now = 0
  expect((await search(0, { now: () => (now += 5_000) })).problem).toBe(many)
  expect((await search(0, { signal: AbortSignal.abort() })).problem).toBe(
    'The search for secrets in files was interrupted.',
  )
  expect(await search(0, { secrets: [{ name: 'SHORT', value: 'xxxxxxx' }] })).toEqual({ files: [], problem: null })
})

test('40 MB are searched for a secret of 64 KiB in little time', async () => {
  const line = 'const a = "a line of some source text", b = [0x12, 0xab]; // and what follows it\n'
  for (let n = 0; n < 2; n++) await write(`file-${n}`, line.repeat(250_000))
  const long = Array.from({ length: 64 * 1024 }, (_, at) => String.fromCharCode(33 + ((at * at * 31) % 90))).join('')
  const before = cpuMs()
  expect(await search(0, { secrets: [...secrets, { name: 'LONG', value: long }] })).toEqual({
    files: [],
    problem: null,
  })
  expect(cpuMs() - before).toBeLessThan(10_000 * timesSlower())
})
