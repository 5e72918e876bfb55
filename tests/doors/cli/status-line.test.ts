import { mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { runCommandLine } from '../../../src/doors/cli/entry.ts'
import { takeRunLock } from '../../../src/session/records/run-lock.ts'
import { local, moreSamples, recorded, sampleEvents } from '../screen/samples.ts'
import { makePlace, type Place } from './place.ts'

const goal = 'Write a link checker\nthat is fast.'
const created = { ...moreSamples['every limit'], goal } satisfies SessionEvent
const { 'round-started': started, 'turn-started': turn, 'round-ended': ended, waiting } = sampleEvents
const at = Date.parse(recorded([created])[0]?.at ?? '')

/** What `codemachine status --line` writes, ten seconds after the first event. */
async function line(place: Place, ...flags: string[]): Promise<string> {
  const context = { ...place.context, clock: { ...place.context.clock, now: () => at + 10_000 } }
  const before = place.written()
  expect(await runCommandLine(context, ['status', '--line', ...flags])).toBe(0)
  return place.written().slice(before.length)
}

function run(place: Place): Promise<AsyncDisposable> {
  return takeRunLock(place.records.lock, { ...place.context, now: new Date(at - 1000) })
}

async function writeMemory(place: Place, files: Record<string, string>): Promise<void> {
  const folder = join(place.records.directory, '.codemachine', 'projects', '20261120_1')
  await mkdir(folder, { recursive: true })
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
}

const main = (title: string) =>
  `---\nstatus: in-progress\nfinite_incantatem: false\nshort_title: ${title}\n---\n## In progress\n- [ ] T3 report\n`
const tasks = JSON.stringify({
  tasks: ['T1', 'T2', 'T3'].map(id => ({ id, name: 'a', done: id === 'T1' })),
})

test('of what runs: what, which round and task, what it does, what it was asked for, and when usage is renewed', async () => {
  await using place = await makePlace()
  await using _lock = await run(place)
  const limits = {
    ...sampleEvents.limits,
    primary: { usedPercent: 40.4, windowMinutes: 300, resetsAt: local(21, 5, 2) },
  }
  await place.journal('20261120_1', [created, started, turn, limits])
  await writeMemory(place, { 'MAIN.md': main('linkcheck'), 'tasks.json': tasks })
  expect(await line(place)).toBe('linkcheck · running · 1 of 3 tasks · round 1 of 20 · usage 40 %, resets 05:02\n')
})

test('without tasks or a title, the goal says what runs', async () => {
  await using place = await makePlace()
  await using _lock = await run(place)
  await place.journal('20261120_1', [created, started, sampleEvents['stop-asked']])
  expect(await line(place)).toBe('Write a link checker · starting codex · stopping after this round · round 1 of 20\n')
})

test('of a wait, how long still', async () => {
  await using place = await makePlace()
  await using _lock = await run(place)
  await place.journal('20261120_1', [created, started, turn, ended, waiting])
  expect(await line(place)).toBe('Write a link checker · waiting until 05:02 (6:20:43 left) · round 1 of 20\n')
})

test('nothing where nothing has run yet, and no records are made there', async () => {
  await using place = await makePlace()
  const other = join(place.directory, '..', 'other')
  await mkdir(other)
  await rm(place.records.folder, { recursive: true })
  expect([await line(place), await line(place, '-C', other), await line(place, '-C', join(other, 'gone'))]).toEqual([
    '',
    '',
    '',
  ])
  expect(await readdir(join(place.records.root, 'state'))).toEqual([])
})

test('nothing where nobody runs, whatever there was', async () => {
  await using place = await makePlace()
  await place.journal('20261120_1', [created, started])
  expect(await line(place)).toBe('')
  await using _lock = await run(place)
  await place.journal('20261120_1', [sampleEvents['session-ended']])
  expect(await line(place)).toBe('')
})

test('in a folder of the work directory it tells of the work directory', async () => {
  await using place = await makePlace()
  await using _lock = await run(place)
  await place.journal('20261120_1', [created, started, turn])
  const inside = join(place.directory, 'src', 'deep')
  await mkdir(inside, { recursive: true })
  expect(await line(place, '-C', inside)).toContain('Write a link checker · running · round 1 of 20')
})

test('nothing from outside is a command to tmux or to the terminal', async () => {
  await using place = await makePlace()
  await using _lock = await run(place)
  await place.journal('20261120_1', [created, started, turn])
  await writeMemory(place, { 'MAIN.md': main('"#(date) #[x] \\e[2J\\u202e"') })
  const written = await line(place)
  expect(written).toMatch(/^##\(date\) ##\[x\]… · /)
  expect(written.trimEnd()).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
})

test('a memory folder that is a link is not followed', async () => {
  await using place = await makePlace()
  await using _lock = await run(place)
  await place.journal('20261120_1', [created, started, turn])
  await writeMemory(place, { 'MAIN.md': main('linkcheck') })
  const memory = join(place.records.directory, '.codemachine')
  await rename(memory, `${memory}-else`)
  await symlink(`${memory}-else`, memory)
  expect(await line(place)).toBe('Write a link checker · running · round 1 of 20\n')
})

test('tasks that are half-written are not told of', async () => {
  await using place = await makePlace()
  await using _lock = await run(place)
  await place.journal('20261120_1', [created, started, turn])
  await writeMemory(place, { 'MAIN.md': main('linkcheck'), 'tasks.json': '{"tasks":[' })
  expect(await line(place)).toBe('linkcheck · running · round 1 of 20\n')
})

test('it is one line or JSON, not both', async () => {
  await using place = await makePlace()
  expect(await runCommandLine(place.context, ['status', '--line', '--json'])).toBe(2)
})
