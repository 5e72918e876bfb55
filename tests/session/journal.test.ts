import { execFileSync } from 'node:child_process'
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
  network: false,
  overrides: [],
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

/** Appends until the limit on the size of files is reached, which cuts a write short as a full disk does. */
const writeUntilFull = `
  import { execFileSync } from 'node:child_process'
  import { openJournal } from ${JSON.stringify(join(import.meta.dirname, '../../src/session/journal.ts'))}
  const [path, roomAgain] = process.argv.slice(1)
  const event = n => ({ v: 1, at: '2026-11-20T23:00:00.000Z', session: 's', type: 'warning', round: n, message: 'x'.repeat(3000) })
  let kept = 0
  try {
    await using journal = openJournal(path)
    try {
      for (;; kept++) journal.append(event(kept))
    } catch (error) {
      if (!roomAgain) throw error
      execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=100000:'])
      journal.append(event(kept++))
    }
  } catch (error) {
    console.log(JSON.stringify({ kept, name: error.name, exitCode: error.exitCode, message: error.message }))
    process.exit()
  }
  console.log(JSON.stringify({ kept }))
`

test.runIf(process.platform === 'linux').each([
  ['a person is told once, and all that was said to be kept is kept', ''],
  ['what is written when there is room again is kept too', 'room again'],
])('when the disk runs full %s', async (_, roomAgain) => {
  const path = join(folder, `full ${roomAgain}`)
  const node = [process.execPath, '--no-warnings', '--input-type=module', '-e', writeUntilFull, path, roomAgain]
  const said = execFileSync('bash', ['-c', 'ulimit -S -f 20; exec "$@"', 'bash', ...node], { encoding: 'utf8' })
  const { kept, ...error } = JSON.parse(said)
  expect(kept).toBeGreaterThan(3)
  expect(error).toEqual(
    roomAgain ? {} : { name: 'UserError', exitCode: 4, message: `The disk is full: ${path} cannot be written.` },
  )
  const found = await Array.fromAsync(readJournal(path))
  expect(found.map(event => 'round' in event && event.round)).toEqual(Array.from({ length: kept }, (_, n) => n))
})

test.runIf(process.platform === 'linux')(
  'a disk that fails once more at the end does not hide what failed first',
  async () => {
    // A pipe takes what is written, and cannot be synced.
    const path = join(folder, 'pipe')
    execFileSync('mkfifo', [path])
    const use = async () => {
      await using journal = openJournal(path)
      await journal.sync()
    }
    await expect(use()).rejects.toMatchObject({ name: 'Error', code: 'EINVAL' })
  },
)
