import { execFileSync } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lacksRoom, writeWholeFile } from '../../src/platform/files.ts'
import { isLinux, unless } from '../support/skipped.ts'

/** Why a test is skipped elsewhere. */
const onLinux = unless(isLinux, 'it limits the size of files as Linux does')

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'whole-file-'))
})

afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})

test('a file is replaced as a whole, for this user alone', async () => {
  const path = join(folder, 'a.json')
  await writeFile(path, 'old', { mode: 0o644 })
  await writeWholeFile(path, 'new ü')
  expect(await readFile(path, 'utf8')).toBe('new ü')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await readdir(folder)).toEqual(['a.json'])
})

/** A limit on the size of files cuts a write short, without an error, as a nearly full disk does. */
const whenFull = `
  import { lacksRoom, writeWholeFile } from ${JSON.stringify(join(import.meta.dirname, '../../src/platform/files.ts'))}
  const [path, folder] = process.argv.slice(1)
  const code = await writeWholeFile(path, 'x'.repeat(100_000)).then(() => 'written', error => error.code)
  console.log(JSON.stringify({ code, lacksRoom: await lacksRoom(folder) }))
`

test.runIf(isLinux)(`without room for all of it the old file stays, and nothing else${onLinux}`, async () => {
  const path = join(folder, 'a.json')
  await writeFile(path, 'old')
  const node = [process.execPath, '--no-warnings', '--input-type=module', '-e', whenFull, path, folder]
  const said = execFileSync('bash', ['-c', 'ulimit -S -f 20; exec "$@"', 'bash', ...node], { encoding: 'utf8' })
  expect(JSON.parse(said)).toEqual({ code: 'EFBIG', lacksRoom: true })
  expect(await readFile(path, 'utf8')).toBe('old')
  expect(await readdir(folder)).toEqual(['a.json'])
})

test('a folder with room has it, one that is not there does not lack it, and neither keeps anything of the question', async () => {
  expect(await lacksRoom(folder)).toBe(false)
  expect(await lacksRoom(join(folder, 'none'))).toBe(false)
  expect(await readdir(folder)).toEqual([])
})
