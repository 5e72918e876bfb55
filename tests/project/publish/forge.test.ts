import { expect } from 'vitest'
import { openForge } from '../../../src/project/publish/forge.ts'
import { placesOf } from '../../../src/project/world.ts'
import { openRecords } from '../../../src/session/records/records.ts'
import { cliContext } from '../../support/cli-context.ts'
import { makePlace } from '../../support/place.ts'
import { processesOf } from '../../support/processes.ts'
import { promise } from '../../support/promise.ts'
import { openForgeScene } from '../../support/scripted-forge.ts'
import { test } from '../../support/side-by-side.ts'

promise('D136', 'A gh or glab that hangs is ended with all that it has started, and its time is said')
test('a program that does not answer is ended with its children', async () => {
  await using place = await makePlace('')
  await using scene = await openForgeScene(place, 'gh')
  await scene.change({ instead: { 'pr list': { hangs: true } } })
  const context = cliContext({ ...place, env: { ...place.env, ...scene.env } }, {})
  const records = await openRecords(placesOf(context, place.directory))
  await using forge = await openForge(context, records, { host: 'forge.test', path: 'acme/shop' }, 3000)
  await expect(forge.find('x')).rejects.toThrow(
    'gh could not look for a pull request of x: it did not answer in 3 seconds.',
  )
  expect(processesOf(place).filter(each => each.includes('sleep 300'))).toEqual([])
})
