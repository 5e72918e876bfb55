import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openSandboxTraces } from '../../src/workspace/sandbox-traces.ts'

/** A work directory, and where the record of what was there lies; removed again. */
async function openPlace(): Promise<{ directory: string; record: string } & AsyncDisposable> {
  const root = await mkdtemp(join(tmpdir(), 'codemachine-traces-'))
  const directory = join(root, 'work')
  await mkdir(directory)
  const record = join(root, 'traces.json')
  return { directory, record, [Symbol.asyncDispose]: () => rm(root, { recursive: true }) }
}

test('empty folders that the sandbox left are removed; those that were there, or hold something, stay', async () => {
  await using place = await openPlace()
  const { directory, record } = place
  await mkdir(join(directory, '.aws'))
  const traces = await openSandboxTraces([directory], record)
  await mkdir(join(directory, '.agents'))
  await mkdir(join(directory, '.codex'))
  await writeFile(join(directory, '.codex', 'config.toml'), '')
  await mkdir(join(directory, 'empty'))
  await traces[Symbol.asyncDispose]()
  expect((await readdir(directory)).sort()).toEqual(['.aws', '.codex', 'empty'])
})

test('those of a run that was cut off are removed by the next one; what the person had is kept through any number of cuts', async () => {
  await using place = await openPlace()
  const { directory, record } = place
  await mkdir(join(directory, '.aws'))
  for (let cut = 0; cut < 3; cut++) {
    await openSandboxTraces([directory], record)
    expect(await readdir(directory)).toEqual(['.aws'])
    await mkdir(join(directory, '.agents'))
    await mkdir(join(directory, '.codex'))
  }
  const traces = await openSandboxTraces([directory], record)
  await traces[Symbol.asyncDispose]()
  expect(await readdir(directory)).toEqual(['.aws'])
})

test('an empty folder that the person makes after a run has ended is theirs', async () => {
  await using place = await openPlace()
  const { directory, record } = place
  await (await openSandboxTraces([directory], record))[Symbol.asyncDispose]()
  await mkdir(join(directory, '.codex'))
  await (await openSandboxTraces([directory], record))[Symbol.asyncDispose]()
  expect(await readdir(directory)).toEqual(['.codex'])
})

test.each([
  ['torn', '{"v":2,"absent":["/.ag'],
  ['empty', ''],
  ['only zeros, as after a power cut', '\0\0\0\0\0\0\0\0'],
  ['of a later version', '{"v":3,"absent":["/.agents"]}'],
  ['not about what the sandbox makes', '{"v":2,"absent":["/other"]}'],
])('a record that is %s removes nothing, and stops nobody', async (_, text) => {
  await using place = await openPlace()
  const { directory, record } = place
  await mkdir(join(directory, '.agents'))
  await mkdir(join(directory, '..', 'other'))
  await writeFile(record, text)
  await (await openSandboxTraces([directory], record))[Symbol.asyncDispose]()
  expect(await readdir(directory)).toEqual(['.agents'])
  expect(await readdir(join(directory, '..'))).toEqual(['other', 'work'])
})

test('a trace is what came since and holds nothing', async () => {
  await using place = await openPlace()
  const { directory, record } = place
  await mkdir(join(directory, '.aws'))
  const traces = await openSandboxTraces([directory], record)
  await mkdir(join(directory, '.codex'))
  const are = () => ['.codex', '.aws', '.agents', 'else'].map(name => traces.isTrace(join(directory, name)))
  expect(are()).toEqual([true, false, true, false])
  await writeFile(join(directory, '.codex', 'config.toml'), '')
  await writeFile(join(directory, '.agents'), '')
  expect(are()).toEqual([false, false, false, false])
  await traces[Symbol.asyncDispose]()
})

test('those that are kept are there in each folder until the end, and what was there before stays', async () => {
  await using place = await openPlace()
  const { directory, record } = place
  await mkdir(join(directory, 'sub'))
  await mkdir(join(directory, '.aws'))
  const traces = await openSandboxTraces([directory, join(directory, 'sub'), join(directory, 'missing')], record)
  await traces.keep()
  expect((await readdir(directory)).sort()).toEqual(['.agents', '.aws', '.codex', '.git', 'sub'])
  expect((await readdir(join(directory, 'sub'))).sort()).toEqual(['.agents', '.aws', '.codex', '.git'])
  await traces[Symbol.asyncDispose]()
  expect((await readdir(directory)).sort()).toEqual(['.aws', 'sub'])
  expect(await readdir(join(directory, 'sub'))).toEqual([])
})

test('an empty file that nobody may write and that was laid for a path which nobody may read is removed, now or by the next run', async () => {
  await using place = await openPlace()
  const { directory, record } = place
  const at = (name: string) => join(directory, name)
  await writeFile(at('.env'), '', { mode: 0o000 })
  const unreadable = [at('.env'), at('missing'), at('left'), at('token'), at('mine'), at('*.pem')]
  const traces = await openSandboxTraces([directory], record)
  await traces.expectFiles(unreadable)
  await writeFile(at('missing'), '', { mode: 0o000 })
  // Cut off: the next one knows of it.
  const next = await openSandboxTraces([directory], record)
  expect(await readdir(directory)).toEqual(['.env'])
  await next.expectFiles(unreadable)
  await writeFile(at('missing'), '', { mode: 0o000 })
  await writeFile(at('left'), '', { mode: 0o444 })
  await next.removeFiles()
  expect(await readdir(directory)).toEqual(['.env'])
  await writeFile(at('missing'), '', { mode: 0o444 })
  await writeFile(at('token'), 'text', { mode: 0o000 })
  await writeFile(at('mine'), '', { mode: 0o600 })
  await writeFile(at('*.pem'), '', { mode: 0o000 })
  await next[Symbol.asyncDispose]()
  expect((await readdir(directory)).sort()).toEqual(['*.pem', '.env', 'mine', 'token'])
})
