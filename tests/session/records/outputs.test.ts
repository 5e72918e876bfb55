import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openOutputs } from '../../../src/session/records/outputs.ts'

const GONE = '[… the rest of it is not kept any more]'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-outputs-'))
})
afterEach(() => rm(folder, { recursive: true }))

test('an output is a whole file for this user alone, known by its hash and its beginning', async () => {
  const outputs = openOutputs(folder)
  const text = `# Grüße\n${'x'.repeat(1_000)}`
  const kept = await outputs.keep({ n: 7, name: 'plan', kind: 'md', text })
  expect(kept).toEqual({
    n: 7,
    name: 'plan',
    file: '7-plan.md',
    bytes: Buffer.byteLength(text),
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    head: text.slice(0, 400),
  })
  const path = join(folder, 'outputs', '7-plan.md')
  expect(await readFile(path, 'utf8')).toBe(text)
  if (process.platform !== 'win32') {
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect((await stat(join(folder, 'outputs'))).mode & 0o777).toBe(0o700)
  }
  expect(await outputs.read(kept)).toBe(text)
  // A step that is done again writes over what it has left.
  const again = await outputs.keep({ n: 7, name: 'plan', kind: 'md', text: 'anew' })
  expect(await outputs.read(again)).toBe('anew')
  expect(await outputs.read(kept)).toBe(`${kept.head}\n${GONE}`)
  expect(await readdir(join(folder, 'outputs'))).toEqual(['7-plan.md'])
})

test.each([
  ['../../etc/passwd', '1-etc-passwd.txt'],
  ['', '1-output.txt'],
  ['...', '1-output.txt'],
  ['a\u0000b\nc', '1-a-b-c.txt'],
  ['解析', '1-output.txt'],
  ['x'.repeat(300), `1-${'x'.repeat(40)}.txt`],
])('what is called %j is written into the folder, and nowhere else', async (name, file) => {
  const outputs = openOutputs(folder)
  const kept = await outputs.keep({ n: 1, name, kind: 'txt', text: 'a' })
  expect(kept.file).toBe(file)
  expect(await readdir(join(folder, 'outputs'))).toEqual([file])
  expect(await readdir(folder)).toEqual(['outputs'])
})

test('of a text that is too long the beginning is kept, with how much is left out', async () => {
  const outputs = openOutputs(folder)
  const kept = await outputs.keep({ n: 1, name: 'log', kind: 'txt', text: '界'.repeat(1_048_576 + 5) })
  const text = await outputs.read(kept)
  expect(text.endsWith('\n[… 5 more characters]')).toBe(true)
  expect(kept.bytes).toBe(Buffer.byteLength(text))
})

test('of an output that is gone, was changed, or is a link to something else the beginning is left, and said to be that', async () => {
  const outputs = openOutputs(folder)
  const kept = await outputs.keep({ n: 1, name: 'a', kind: 'md', text: 'right' })
  const path = join(folder, 'outputs', kept.file)
  await writeFile(path, 'wrong')
  expect(await outputs.read(kept)).toBe(`right\n${GONE}`)
  await rm(path)
  expect(await outputs.read(kept)).toBe(`right\n${GONE}`)
  await symlink(folder, path)
  expect(await outputs.read(kept)).toBe(`right\n${GONE}`)
})

test('a session that never ends keeps at least its last 20,000 outputs, and not many more', async () => {
  const outputs = openOutputs(folder)
  const numbers = async () => (await readdir(join(folder, 'outputs'))).map(name => Number.parseInt(name, 10))
  for (const n of [1, 99, 100, 101, 20_099]) await outputs.keep({ n, name: 'a', kind: 'md', text: 'a' })
  expect((await numbers()).toSorted((a, b) => a - b)).toEqual([1, 99, 100, 101, 20_099])
  await outputs.keep({ n: 20_100, name: 'a', kind: 'md', text: 'a' })
  expect((await numbers()).toSorted((a, b) => a - b)).toEqual([101, 20_099, 20_100])
})
