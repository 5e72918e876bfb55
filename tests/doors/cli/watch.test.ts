import { appendFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { watch } from '../../../src/doors/cli/commands/look.ts'
import { takeRunLock } from '../../../src/session/records/run-lock.ts'
import { recorded, sampleEvents } from '../screen/samples.ts'
import { makePlace } from './place.ts'

test('without a terminal the session that runs is watched in plain lines, to its end', async () => {
  await using place = await makePlace()
  await using _lock = await takeRunLock(place.records.lock, { ...place.context, now: new Date(0) })
  const path = await place.journal('20261120_1', [sampleEvents['session-created']])
  const watching = watch(place.context, undefined, { cd: place.directory })
  await place.until('session 20261120_1  build X')
  await appendFile(path, `${JSON.stringify(recorded([sampleEvents['session-ended']])[0])}\n`)
  expect(await watching).toBe(0)
  expect(place.written()).toMatch(/ended: done.*\n.*\n$/)
})

test('a session that there is not is refused, with those that there are', async () => {
  await using place = await makePlace()
  await place.journal('20261120_1', [sampleEvents['session-created']])
  await expect(watch(place.context, '7', { cd: place.directory })).rejects.toMatchObject({
    message: `There is no session "7" in ${place.directory}.`,
    hint: 'There are: 20261120_1',
  })
})
