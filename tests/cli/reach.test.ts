import { mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { reachOf, recordsInReach } from '../../src/cli/agents-reach.ts'
import { makePlace } from '../support/place.ts'

test('records in the work directory or in a temporary directory are in reach of agents, and a person is told', async () => {
  await using place = await makePlace('')
  const work = await realpath(place.directory)
  const elsewhere = join(await realpath(place.root), 'elsewhere')
  await mkdir(elsewhere)
  expect(await reachOf(join(work, '.codemachine'), work, {})).toBe('the work directory')
  expect(await reachOf(work, '/', {})).toBe('the work directory')
  expect(await reachOf('/tmp/cm', '/srv/work', {})).toBe('a temporary directory')
  expect(await reachOf(elsewhere, '/srv/work', { TMPDIR: elsewhere })).toBe('a temporary directory')
  expect(await reachOf('/srv/work-2', '/srv/work', {})).toBeNull()
  expect(recordsInReach('/tmp/cm', 'a temporary directory')).toMatch(/\/tmp\/cm.*no proof/)
  expect(recordsInReach('/srv', null)).toBeNull()
})
