import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { listSecrets, removeSecret, setSecret, warningsOf } from '../../../src/project/secrets/person-secrets.ts'
import { openRecords } from '../../../src/session/records/records.ts'
import { cliContext } from '../../support/cli-context.ts'
import { makePlace } from '../../support/place.ts'

test('a short value and a word are warned of, without the value', () => {
  const short = ['abc', ' 1234567 ', '7777777']
  for (const value of short) expect(warningsOf(value)).toEqual([expect.stringContaining('fewer than 8 characters')])
  for (const value of ['production', 'Geheimnis', 'open sesame'])
    expect(warningsOf(value)).toEqual([expect.stringContaining('It is an ordinary word')])
  for (const value of ['sk-live-0123', 'x'.repeat(40), '-----BEGIN\nKEY']) expect(warningsOf(value)).toEqual([])
  for (const value of ['zqxjkv', 'sesamstrasse']) expect(warningsOf(value).join()).not.toContain(value)
})

test('secrets are listed by name, with those whose file is broken, in a project without any session', async () => {
  await using place = await makePlace('')
  const world = cliContext(place)
  const records = await openRecords({ ...world, directory: place.directory })
  expect(await listSecrets(records)).toEqual([])
  expect(await setSecret(world, records, 'B_KEY', 'short\n', 'true')).toEqual(warningsOf('short'))
  expect(await setSecret(world, records, 'C_KEY', 'sk-live-0123456789', null)).toEqual([])
  await writeFile(join(records.secrets, 'A_KEY.json'), '{"value":"sk-live-0123456789')
  const listed = await listSecrets(records)
  expect(listed).toEqual([
    {
      key: 'A_KEY',
      check: null,
      since: null,
      short: false,
      problem: expect.stringContaining('A_KEY.json does not hold a secret'),
    },
    { key: 'B_KEY', check: 'true', since: expect.any(Number), short: true, problem: null },
    { key: 'C_KEY', check: null, since: expect.any(Number), short: false, problem: null },
  ])
  expect(JSON.stringify(listed)).not.toContain('sk-live')
  expect([await removeSecret(world, records, 'A_KEY'), await removeSecret(world, records, 'A_KEY')]).toEqual([
    true,
    false,
  ])
})
