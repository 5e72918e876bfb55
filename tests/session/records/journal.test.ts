import { execFileSync } from 'node:child_process'
import { appendFile, mkdir, mkdtemp, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import type { Recorded } from '../../../src/core/events/events.ts'
import type { Item } from '../../../src/core/events/items.ts'
import type { SessionOutcome } from '../../../src/core/events/outcome.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { plainView } from '../../../src/doors/screen/plain-view.ts'
import {
  foldJournal,
  followJournal,
  openJournal,
  problemOfJournal,
  readJournal,
  readSessions,
} from '../../../src/session/records/journal.ts'
import { moreSamples, recorded, sampleEvents, sampleItems, sampleOutcomes } from '../../doors/screen/samples.ts'
import { promise } from '../../support/promise.ts'
import { relayTemplate } from '../../support/relay-template.ts'
import { fold, recordsWith } from '../../support/session-events.ts'
import { isLinux, unless } from '../../support/skipped.ts'

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
  limits: { rounds: 3, timeMs: null, tokens: null },
  sandbox: 'workspace-write',
  network: false,
  overrides: [],
  said: {},
  model: null,
  effort: null,
  queued: null,
  host: 'desk',
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

promise('J2', 'A torn last line, a blank one or rubbish costs no other line')
test('a torn last line loses that line alone, and the next event stands on a line of its own', async () => {
  const path = await write('torn', [created, warning('torn away')])
  await truncate(path, (await stat(path)).size - 9)
  {
    await using journal = openJournal(path)
    journal.append(warning('after'))
  }
  expect(await Array.fromAsync(readJournal(path))).toEqual([created, warning('after')])
})

promise('J2')
test('blank lines, rubbish and events of a later version are passed over', async () => {
  const path = await write('rubbish', [created])
  await appendFile(path, '\n\n{"type":"warning"\n[1]\nnull\n{"v":1,"type":"from-the-future","at":"x"}\n\u0000\u0000\n')
  await appendFile(path, `${JSON.stringify(warning('still here'))}\n`)
  expect(await Array.fromAsync(readJournal(path))).toEqual([created, warning('still here')])
})

const whole = (line: object) => JSON.stringify(line)
const rubbishLines = recorded(Object.values(sampleEvents)).flatMap(event => [
  // Each field in turn is missing, and then holds what belongs into none.
  ...Object.keys(event).map(field => whole({ ...event, [field]: undefined })),
  ...Object.keys(event).map(field => whole({ ...event, [field]: [[7]] })),
  ...Object.keys(event).map(field => whole({ ...event, [field]: 'none' })),
  ...Object.keys(event).map(field => whole({ ...event, [field]: { kind: 'none', class: 'none' } })),
  whole({ v: 1, at: event.at, session: event.session, type: event.type }),
])

test('no line of a known type makes reading fail, whatever its fields hold, and the whole ones are all read', async () => {
  const path = await write('fields', [created])
  await appendFile(path, `${rubbishLines.join('\n')}\n${whole(warning('still here'))}\n`)
  const view = plainView(() => {}, { colour: false })
  let state = emptyState('20261120_1')
  const read = await Array.fromAsync(readJournal(path))
  for (const event of read) {
    state = fold(state, event)
    view.event(event, state)
    for (const at of [state.updatedAt, state.waiting?.until ?? 0]) expect(at).not.toBeNaN()
  }
  expect(read.at(-1)).toEqual(warning('still here'))
})

promise('J1', 'Every event that is written is read again')
test('every event that is written is read again', async () => {
  const item = (each: Item) => ({ ...sampleEvents['item-completed'], item: each })
  const end = (outcome: SessionOutcome) => ({ ...sampleEvents['session-ended'], outcome })
  const samples = [...Object.values(sampleEvents), ...Object.values(moreSamples)]
  const events = recorded([...samples, ...Object.values(sampleItems).map(item), ...sampleOutcomes.map(end)])
  expect(await Array.fromAsync(readJournal(await write('every', events)))).toEqual(events)
})

test('a journal of a newer format is not read at all, whatever it holds', async () => {
  const path = await write('newer', [created])
  const text = await readFile(path, 'utf8')
  await writeFile(path, text.replace('"v":1', '"v":2'))
  const said = `${path} was written by a newer codemachine (journal format 2); use that version.`
  await expect(Array.fromAsync(readJournal(path))).rejects.toMatchObject({ name: 'UserError', message: said })
  expect(await problemOfJournal(path)).toBe(said)
})

promise('J43')
test.each([
  ['{"format":"another","v":7}', '"another"'],
  ['{"format":"codemachine-snapshot","v":1,"sha256":""}', '"codemachine-snapshot"'],
  ['{"format":["codemachine-journal"],"v":1}', '["codemachine-journal"]'],
  ['{"format":"codemachine-journal","v":"1"}', '"codemachine-journal", version "1"'],
])('one of a foreign format is not read as ours: %s', async (line, format) => {
  const path = await write('foreign', [created])
  const text = await readFile(path, 'utf8')
  await writeFile(path, text.replace(/^.*\n/, `${line}\n`))
  const said = `${path} is not a journal of codemachine (its format is ${format}); restore the file.`
  expect(await problemOfJournal(path)).toBe(said)
  await expect(Array.fromAsync(readJournal(path))).rejects.toMatchObject({ name: 'UserError', message: said })
  await rm(path)
})

test.each(['rubbish', '{"v":1}', '{"format":"codemachine-journal"}', ''])(
  'a first line that names no format costs nothing: %j',
  async line => {
    const path = await write('first line', [created])
    const text = await readFile(path, 'utf8')
    await writeFile(path, text.replace(/^.*\n/, `${line}\n`))
    expect(await Array.fromAsync(readJournal(path))).toEqual([created])
    await rm(path)
  },
)

promise(
  'J43',
  'A journal or snapshot that is a pipe or a device is never waited for, and a journal of a foreign format is not read as ours: both are named, and all others are shown',
)
test('a journal that cannot be read is said so in a sentence', async () => {
  const directory = join(folder, 'a directory')
  await mkdir(directory)
  expect(await problemOfJournal(directory)).toBe(`${directory} cannot be read: it is a directory; restore the journal.`)
  const pipe = join(folder, 'a pipe')
  execFileSync('mkfifo', [pipe])
  const device = join(folder, 'device')
  await symlink('/dev/zero', device)
  for (const [path, what] of [
    [pipe, 'a pipe'],
    [device, 'a device'],
  ] as const) {
    const said = `${path} cannot be read: it is ${what}; restore the journal.`
    expect(await problemOfJournal(path)).toBe(said)
    const { signal } = new AbortController()
    const following = followJournal(path, { clock: systemClock, signal, isOver: async () => true })
    await expect(Array.fromAsync(following)).rejects.toMatchObject({ name: 'UserError', message: said })
  }
  const loop = join(folder, 'loop')
  await symlink(loop, loop)
  expect(await problemOfJournal(loop)).toBe(`${loop} cannot be read: ELOOP; make it readable.`)
  await expect(foldJournal(recordsWith(loop), '20261120_1')).rejects.toMatchObject({ name: 'UserError', exitCode: 2 })
  expect(await problemOfJournal(await write('good', [created]))).toBeNull()
  expect(await problemOfJournal(join(folder, 'missing'))).toBeNull()
})

test('what an earlier version wrote has every field that this one reads', async () => {
  const path = await write('earlier', [])
  const { host: _, ...older } = created
  const { memory: _memory, ...round } = { ...head, ...sampleEvents['round-ended'] }
  for (const line of [{ ...older, limits: { rounds: 3 } }, round, { ...round, at: '2026-11-20T23:10:00.000Z' }])
    await appendFile(path, `${JSON.stringify(line)}\n`)
  const [first, ...rounds] = await Array.fromAsync(readJournal(path))
  expect(first).toEqual({ ...created, host: '' })
  const memories = rounds.map(event => event.type === 'round-ended' && event.memory)
  expect(new Set(memories).size, 'two that are not known are not the same').toBe(2)
})

test('any prefix of a journal folds', async () => {
  const path = await write('prefix', [created, ...Array.from({ length: 20 }, (_, i) => warning(`n ${i} é`))])
  const bytes = await readFile(path)
  const first = bytes.indexOf('"codemachine":"0.1.0"}') + '"codemachine":"0.1.0"}'.length
  await fc.assert(
    fc.asyncProperty(fc.nat(bytes.length), async length => {
      const cut = join(folder, 'cut')
      await writeFile(cut, bytes.subarray(0, length))
      const state = await foldJournal(recordsWith(cut), '20261120_1')
      expect(state?.goal ?? null).toBe(length >= first ? created.goal : null)
    }),
  )
})

test('a session whose journal is not there is no session', async () => {
  expect(await foldJournal(recordsWith(join(folder, 'missing')), '20261120_1')).toBeNull()
})

/** Appends until the limit on the size of files is reached, which cuts a write short as a full disk does. */
const writeUntilFull = `
  import { execFileSync } from 'node:child_process'
  import { openJournal } from ${JSON.stringify(join(import.meta.dirname, '../../../src/session/records/journal.ts'))}
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

const asLinuxDoes = unless(isLinux, 'it fills up files and pipes as Linux does')

test.runIf(isLinux).each([
  ['a person is told once, and all that was said to be kept is kept', ''],
  ['what is written when there is room again is kept too', 'room again'],
])(`when the disk runs full %s${asLinuxDoes}`, async (_, roomAgain) => {
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

test.runIf(isLinux)(
  `a disk that fails once more at the end does not hide what failed first${asLinuxDoes}`,
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

test('a session whose template throws at its beginning is told of with the name of that, and counts as begun', async () => {
  const path = await write('thrown', [{ ...created, template: 'relay', queued: '000007' }, warning('on')])
  const first = () => {
    throw new Error('no legs')
  }
  const templates = new Map([['relay', { ...relayTemplate(), first }]])
  const { sessions, problems } = await readSessions({
    ...recordsWith(path),
    templates,
    sessions: async () => ['20261120_1'],
  })
  expect(sessions).toMatchObject([{ id: '20261120_1', goal: created.goal, queued: '000007', kind: null }])
  expect(problems).toEqual([
    '20261120_1 cannot continue until its template is fixed: the template "relay" failed in `first`: no legs.',
  ])
})
