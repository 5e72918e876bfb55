import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { watchSandboxTraces } from '../../src/workspace/sandbox-traces.ts'

test('empty folders that the sandbox left are removed; those that were there, or hold something, stay', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'codemachine-traces-'))
  await mkdir(join(directory, '.aws'))
  const remove = await watchSandboxTraces(directory)
  await mkdir(join(directory, '.agents'))
  await mkdir(join(directory, '.codex'))
  await writeFile(join(directory, '.codex', 'config.toml'), '')
  await mkdir(join(directory, 'empty'))
  await remove()
  expect((await readdir(directory)).sort()).toEqual(['.aws', '.codex', 'empty'])
  await rm(directory, { recursive: true })
})
