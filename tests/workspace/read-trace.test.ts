import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { mkdir, symlink, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { traceReads } from '../../src/workspace/read-trace.ts'
import { incident } from '../support/promise.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trace-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Whether this file system keeps access times at all; else nothing can be found. */
async function keepsTimes(): Promise<boolean> {
  const probe = join(folder, 'probe')
  writeFileSync(probe, 'x')
  await utimes(probe, new Date('2001-01-01'), new Date())
  readFileSync(probe)
  return statSync(probe).atimeMs > Date.parse('2002-01-01')
}

incident('false done', 'A file with the name of a probe kept codemachine from seeing which files a gate reads', {
  since: '2026-11-29',
  fixed: '2026-12-01',
  foundBy: 'a review of the code',
})
test('the files that were read are found, each time anew, and those behind a link are not looked at', async () => {
  const keeps = await keepsTimes()
  const other = mkdtempSync(join(tmpdir(), 'trace-'))
  writeFileSync(join(other, 'far'), 'far')
  await mkdir(join(folder, 'sub'))
  for (const path of ['a', 'sub/b', 'c']) writeFileSync(join(folder, path), path)
  await symlink(other, join(folder, 'link'))
  const changed = statSync(join(folder, 'a')).mtimeMs
  // The name of the probe in earlier versions, which the work could take.
  writeFileSync(join(folder, '.codemachine-read-probe'), '')
  const trace = await traceReads(folder)
  expect(trace === null).toBe(!keeps)
  readFileSync(join(folder, 'sub/b'))
  readFileSync(join(folder, 'link/far'))
  if (trace !== null) expect([...(await trace.read())]).toEqual(['sub/b'])
  expect(statSync(join(folder, 'a')).mtimeMs).toBeCloseTo(changed, 1)
  const again = await traceReads(folder)
  readFileSync(join(folder, 'a'))
  if (again !== null) expect([...(await again.read())]).toEqual(['a'])
  rmSync(other, { recursive: true })
})
