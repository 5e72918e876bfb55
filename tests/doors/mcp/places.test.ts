import { mkdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { NamedPlaces } from '../../../src/doors/mcp/places.ts'
import { copiesIn, rootOf } from '../../../src/session/records/records.ts'
import { cliContext } from '../../support/cli-context.ts'
import { makePlace } from '../../support/place.ts'

test('of the sessions of a fleet the newest come first, whatever the number of each on its day', async () => {
  await using place = await makePlace('')
  const context = cliContext(place)
  for (const id of ['20261121_10', '20261122_1', '20261121_9'])
    await mkdir(join(copiesIn(rootOf(context)), id, 'shop'), { recursive: true })
  const places = await NamedPlaces.open(context, [], { fleet: { looked: Promise.resolve() } })
  const shown = await places.copies(2)
  expect(shown.map(each => basename(dirname(each)))).toEqual(['20261122_1', '20261121_10'])
})
