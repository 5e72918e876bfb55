import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { isLandingId, newestLanding, nextLandingId, readLanding } from '../../../src/project/proof/landing-record.ts'
import { makePlace } from '../../support/place.ts'
import { test } from '../../support/side-by-side.ts'

test('landings of a day are counted, and one that was damaged is told with its file', async () => {
  await using place = await makePlace('')
  const records = { folder: place.root }
  const today = new Date(2026, 10, 26)
  expect([await nextLandingId(records, today), await newestLanding(records)]).toEqual(['land-20261126_1', null])
  const folder = join(place.root, 'landings')
  await mkdir(folder)
  for (const id of ['land-20261126_9', 'land-20261126_10', 'land-20261125_11'])
    await writeFile(join(folder, `${id}.json`), '{"certificate":{}}')
  await writeFile(join(folder, 'land-20261127_x.json'), '')
  expect(await nextLandingId(records, today)).toBe('land-20261126_11')
  await expect(readLanding(records, 'land-20261126_9')).rejects.toThrow(
    `${folder}/land-20261126_9.json is no record of a landing: it was damaged or changed.`,
  )
  await expect(readLanding(records, 'land-20261126_3')).rejects.toThrow(
    'There is no record here that codemachine land made land-20261126_3.',
  )
  expect(['land-20261126_3', 'land-3', '20261126_3'].map(isLandingId)).toEqual([true, false, false])
})
