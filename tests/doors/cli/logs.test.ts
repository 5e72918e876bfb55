import { appendFile, readFile, rm } from 'node:fs/promises'
import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { UserError } from '../../../src/base/errors.ts'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { type LogsFlags, logs } from '../../../src/doors/cli/commands/look.ts'
import { takeRunLock } from '../../../src/session/records/run-lock.ts'
import { recorded, sampleEvents } from '../screen/samples.ts'
import { makePlace, type Place } from './place.ts'

const created = sampleEvents['session-created']
const started = sampleEvents['round-started']
const warning = (message: string): SessionEvent => ({ type: 'warning', round: 1, message })
const ended = sampleEvents['session-ended']
const lineOf = (event: SessionEvent) =>
  recorded([event])
    .map(each => `${JSON.stringify(each)}\n`)
    .join('')

function show(place: Place, { session, ...flags }: LogsFlags & { session?: string | undefined } = {}): Promise<number> {
  return logs(place.context, session, { cd: place.directory, ...flags })
}

const lock = (place: Place) => takeRunLock(place.records.lock, { ...place.context, now: new Date(0) })

const refusal = (promise: Promise<number>) =>
  promise.then(
    () => null,
    (error: unknown) =>
      error instanceof UserError ? { message: error.message, hint: error.hint, exitCode: error.exitCode } : error,
  )

test('a session is told again as it was while it ran', async () => {
  await using place = await makePlace()
  await place.journal('20261120_1', [created, started, ended])
  expect(await show(place)).toBe(0)
  expect(place.written()).toBe(
    [
      '22:41:07  session 20261120_1  build X  (goal, workspace-write, at most 20 rounds, no gates)\n          Nothing checks this goal. --prove checks each sentence.\n',
      '22:41:08  round 1  goal-worker, codex 0.169.0, model gpt-6\n',
      '22:41:09  session 20261120_1 ended: done, not verified: no gates are configured  (3 rounds, 2h05m, 1.2M tokens)\n          Next time: --prove checks each sentence.\n',
    ].join(''),
  )
})

test('--json gives the lines of the journal, without its first', async () => {
  await using place = await makePlace()
  const path = await place.journal('20261120_1', Object.values(sampleEvents))
  await show(place, { json: true })
  expect(place.written()).toBe((await readFile(path, 'utf8')).replace(/^.*\n/, ''))
})

test.each([
  [undefined, '20261121_1'],
  ['20261120_1', '20261120_1'],
  ['12', '20261120_12'],
  ['_12', '20261120_12'],
  ['0_12', '20261120_12'],
  ['20261121', '20261121_1'],
])('the session %j is %s', async (session, id) => {
  await using place = await makePlace()
  for (const each of ['20261120_1', '20261120_12', '20261121_1']) await place.journal(each, [created])
  await show(place, { session })
  expect(place.written()).toContain(`session ${id}  `)
})

test('a word that may mean several sessions is refused with their ids', async () => {
  await using place = await makePlace()
  for (const id of ['20261120_1', '20261120_2', '20261121_1']) await place.journal(id, [created])
  expect(await refusal(show(place, { session: '1' }))).toEqual({
    message: '"1" may mean 2 sessions; give more of the id.',
    hint: '20261120_1, 20261121_1',
    exitCode: 2,
  })
})

test('a word that means no session is refused with the ids there are', async () => {
  await using place = await makePlace()
  await place.journal('20261120_1', [created])
  expect(await refusal(show(place, { session: '7' }))).toMatchObject({ hint: 'There are: 20261120_1', exitCode: 2 })
})

test('where nothing has run yet there is nothing to tell', async () => {
  await using place = await makePlace()
  expect(await refusal(show(place))).toMatchObject({ exitCode: 2, message: expect.stringContaining('No sessions') })
})

test('-f goes on as the session does, and ends with it', async () => {
  await using place = await makePlace()
  await using _lock = await lock(place)
  const path = await place.journal('20261120_1', [created])
  const following = show(place, { follow: true })
  await place.until('session 20261120_1  build X')
  for (const message of ['one', 'two', 'three']) {
    await appendFile(path, lineOf(warning(message)))
    await place.until(`warning: ${message}\n`)
  }
  await appendFile(path, lineOf(ended))
  expect(await following).toBe(0)
  expect(place.written()).toMatch(/one\n.*two\n.*three\n.*ended: done.*\n.*\n$/)
})

test('-f tells a torn line once it is whole, and passes over one that never is', async () => {
  await using place = await makePlace()
  await using _lock = await lock(place)
  const path = await place.journal('20261120_1', [created])
  const following = show(place, { follow: true })
  await place.until('build X')
  const line = lineOf(warning('🌶'.repeat(100)))
  const bytes = Buffer.from(line)
  // In the middle of a character.
  const cut = bytes.indexOf('🌶') + 202
  // In one piece with a whole line, so that the torn one has been read when that is shown.
  await appendFile(path, Buffer.concat([Buffer.from(lineOf(warning('before'))), bytes.subarray(0, cut)]))
  await place.until('warning: before')
  await appendFile(path, bytes.subarray(cut))
  await place.until(`warning: ${'🌶'.repeat(100)}\n`)
  await appendFile(path, `{"v":1,"at":"2026-11-\n${lineOf(warning('after the tear'))}${lineOf(ended)}`)
  expect(await following).toBe(0)
  expect(place.written().match(/warning/g)).toHaveLength(3)
})

test('-f of a session that was cut off ends, for nobody runs it', async () => {
  await using place = await makePlace()
  await place.journal('20261120_1', [created, started])
  expect(await show(place, { follow: true })).toBe(0)
  expect(place.written()).toContain('round 1')
})

test('-f waits for a journal that is not there yet', async () => {
  await using place = await makePlace()
  const path = await place.journal('20261120_1', [created, ended])
  const text = await readFile(path, 'utf8')
  await rm(path)
  await using _lock = await lock(place)
  const following = show(place, { session: '20261120_1', follow: true })
  await appendFile(path, text)
  expect(await following).toBe(0)
})

test('-f ends when a person ends it', async () => {
  await using place = await makePlace()
  await using _lock = await lock(place)
  await place.journal('20261120_1', [created])
  // A clock on which no time passes: it has to be woken.
  const asleep = Promise.withResolvers<void>()
  const wait = (_ms: number, signal?: AbortSignal) =>
    new Promise<void>(resolve => {
      signal?.addEventListener('abort', () => resolve())
      asleep.resolve()
    })
  const context = { ...place.context, clock: { ...place.context.clock, wait } }
  const following = show({ ...place, context }, { follow: true })
  await asleep.promise
  place.interrupt()
  expect(await following).toBe(0)
})

test('a reader that goes away ends it', async () => {
  await using place = await makePlace()
  await using _lock = await lock(place)
  await place.journal('20261120_1', [created])
  const following = show(place, { follow: true })
  await place.until('build X')
  place.context.stdout.destroy()
  expect(await following).toBe(0)
})

test('a slow reader does not make the log pile up in memory', async () => {
  await using place = await makePlace()
  await place.journal(
    '20261120_1',
    Array.from({ length: 500 }, (_, i) => warning(`${i} ${'x'.repeat(500)}`)),
  )
  let [read, most] = ['', 0]
  const slow = new Writable({
    highWaterMark: 2000,
    write(chunk, _encoding, done) {
      read += chunk
      most = Math.max(most, slow.writableLength)
      setImmediate(done)
    },
  })
  await logs({ ...place.context, stdout: slow }, undefined, { cd: place.directory })
  await new Promise<void>(resolve => slow.end(resolve))
  expect(read.match(/warning/g)).toHaveLength(500)
  expect(most).toBeLessThan(4000)
})
