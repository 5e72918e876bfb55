import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { refuseHiddenGates } from '../../../src/project/open-run.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { makePlace } from '../../support/place.ts'

const PASSWORD = 'hunter2-of-the-db'
const env = { DB_PASSWORD: PASSWORD, DB_USER: PASSWORD, SHORT_PASSWORD: 'make' }

test('a gate with a secret in it is refused before anything is begun, with how to write it', async () => {
  await using place = await makePlace('')
  const { exitCode, stderr } = await codemachineHere(place, ['--verify', `psql -p${PASSWORD}`, 'build X'], { env })
  expect([exitCode, stderr]).toEqual([
    2,
    'codemachine: --verify: this command contains a secret (DB_PASSWORD), which codemachine never stores; write "$DB_PASSWORD" instead. (CM0904)\n',
  ])
  await writeFile(join(place.directory, 'codemachine.toml'), `[[gates]]\nrun = "make"\nprotect = ["${PASSWORD}/**"]\n`)
  const other = await codemachineHere(place, ['build X'], { env })
  expect([other.exitCode, other.stderr]).toEqual([
    2,
    'codemachine: codemachine.toml:1: this gate contains a secret (DB_PASSWORD), which codemachine never stores; remove it. (CM0904)\n',
  ])
  expect(existsSync(join(place.directory, '.codemachine'))).toBe(false)
})

test('a session whose gate lost a secret when it was journaled does not go on with what is left of it', () => {
  const gate = { timeoutMs: 1, required: true, network: false, protect: [], everyRound: false }
  const run = 'psql -p[secret DB_PASSWORD]'
  expect(() => refuseHiddenGates('20261121_1', [{ ...gate, name: run, run }])).toThrow(
    '20261121_1 has a gate with a secret (psql -p[secret DB_PASSWORD]), which codemachine does not store. Write "$DB_PASSWORD" instead in the file of the gate, and add --reread-gates.',
  )
  expect(() => refuseHiddenGates('20261121_1', [{ ...gate, name: 'a', run: 'psql -p"$DB_PASSWORD"' }])).not.toThrow()
})
