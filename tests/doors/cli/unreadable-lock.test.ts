import { appendFile, rm, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { list, logs, status } from '../../../src/doors/cli/commands/look.ts'
import { recorded, sampleEvents } from '../screen/samples.ts'
import { makePlace, type Place } from './place.ts'

const { 'session-created': created, 'session-ended': ended } = sampleEvents

/** A place whose lock says nothing, with a session that has not ended; and what its commands say on stderr. */
async function spoilt(): Promise<{ place: Place; said: () => string; problem: string; journal: string }> {
  const place = await makePlace()
  const journal = await place.journal('20261120_1', [created])
  await writeFile(place.records.lock, 'rubbish')
  let text = ''
  place.context.stderr.on('data', (chunk: Buffer) => {
    text += chunk
  })
  const problem = `codemachine: ${place.records.lock} is not a lock of codemachine; if no codemachine runs here, delete it.\n`
  return { place, said: () => text, problem, journal }
}

test('status of a directory whose lock cannot be read says so, and not that nothing runs', async () => {
  const { place, said, problem } = await spoilt()
  await using _place = place
  expect(await status(place.context, { cd: place.directory, json: false })).toBe(0)
  expect(said()).toBe(problem)
  expect(place.written()).toMatch(/^Cannot tell if codemachine runs in .+\.\n/)
  expect(place.written()).toContain('  state    not ended; cannot tell if it is running\n')
})

test('status --json says that it is not known', async () => {
  const { place, said, problem } = await spoilt()
  await using _place = place
  await status(place.context, { cd: place.directory, json: true })
  expect(said()).toBe(problem)
  expect(JSON.parse(place.written())).toMatchObject({ runner: 'unknown', session: { standing: 'unknown' } })
})

test('list says so too', async () => {
  const { place, said, problem } = await spoilt()
  await using _place = place
  expect(await list(place.context, { cd: place.directory, json: false })).toBe(0)
  expect(said()).toBe(problem)
  expect(place.written()).toContain('  not ended  ')
})

test('logs -f goes on until the session ends', async () => {
  const { place, said, problem, journal } = await spoilt()
  await using _place = place
  const options = { cd: place.directory, follow: true }
  // A clock on which no time passes: it has read all there is, and waits for more.
  const asleep = Promise.withResolvers<'waits'>()
  const wait = (_ms: number, signal?: AbortSignal) =>
    new Promise<void>(resolve => {
      signal?.addEventListener('abort', () => resolve())
      asleep.resolve('waits')
    })
  const following = logs({ ...place.context, clock: { ...place.context.clock, wait } }, undefined, options)
  expect(await Promise.race([asleep.promise, following])).toBe('waits')
  for (const event of recorded([ended])) await appendFile(journal, `${JSON.stringify(event)}\n`)
  expect(await following).toBe(0)
  expect(place.written()).toContain('ended: done')
  expect(said()).toBe(problem)
})

test('logs -f of a session that ended says nothing of the lock', async () => {
  const { place, said, journal } = await spoilt()
  await using _place = place
  for (const event of recorded([ended])) await appendFile(journal, `${JSON.stringify(event)}\n`)
  expect(await logs(place.context, undefined, { cd: place.directory, follow: true })).toBe(0)
  expect(said()).toBe('')
  await rm(place.records.lock)
})
