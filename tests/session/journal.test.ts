import { appendFile, mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Recorded } from '../../src/session/events.ts'
import { foldJournal } from '../../src/session/fold-journal.ts'
import { openJournal, readJournal } from '../../src/session/journal.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-journal-'))
})
afterAll(() => rm(folder, { recursive: true }))

const head = { v: 1, at: '2026-11-20T23:00:00.000Z', session: '20261120_1' } as const
const warning = (message: string): Recorded => ({ ...head, type: 'warning', round: null, message })
const created: Recorded = {
  ...head,
  type: 'session-created',
  goal: 'build X \u2028 with\nlines',
  template: 'goal',
  directory: '/work',
  limits: { rounds: 3 },
  sandbox: 'workspace-write',
  model: null,
  effort: null,
  queued: null,
  codemachine: '0.1.0',
}

async function write(name: string, events: readonly Recorded[]): Promise<string> {
  const path = join(folder, name)
  await using journal = openJournal(path)
  for (const event of events) journal.append(event)
  return path
}

test('a journal gives back what was appended, is private, and names its format first', async () => {
  const path = await write('whole', [created, warning('é\u2028😀')])
  expect(await Array.fromAsync(readJournal(path))).toEqual([created, warning('é\u2028😀')])
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(JSON.parse((await readFile(path, 'utf8')).split('\n')[0] ?? '')).toEqual({
    format: 'codemachine-journal',
    v: 1,
  })
})

test('a torn last line loses that line alone, and the next event stands on a line of its own', async () => {
  const path = await write('torn', [created, warning('torn away')])
  await truncate(path, (await stat(path)).size - 9)
  {
    await using journal = openJournal(path)
    journal.append(warning('after'))
  }
  expect(await Array.fromAsync(readJournal(path))).toEqual([created, warning('after')])
})

test('blank lines, rubbish and events of a later version are passed over', async () => {
  const path = await write('rubbish', [created])
  await appendFile(path, '\n\n{"type":"warning"\n[1]\nnull\n{"v":1,"type":"from-the-future","at":"x"}\n\u0000\u0000\n')
  await appendFile(path, `${JSON.stringify(warning('still here'))}\n`)
  expect(await Array.fromAsync(readJournal(path))).toEqual([created, warning('still here')])
})

test('any prefix of a journal folds', async () => {
  const path = await write('prefix', [created, ...Array.from({ length: 20 }, (_, i) => warning(`n ${i} é`))])
  const bytes = await readFile(path)
  const first = bytes.indexOf('"codemachine":"0.1.0"}') + '"codemachine":"0.1.0"}'.length
  await fc.assert(
    fc.asyncProperty(fc.nat(bytes.length), async length => {
      const cut = join(folder, 'cut')
      await writeFile(cut, bytes.subarray(0, length))
      const state = await foldJournal(cut, '20261120_1')
      expect(state?.goal ?? null).toBe(length >= first ? created.goal : null)
    }),
    { numRuns: 60 },
  )
})

test('a session whose journal is not there is no session', async () => {
  expect(await foldJournal(join(folder, 'missing'), '20261120_1')).toBeNull()
})
