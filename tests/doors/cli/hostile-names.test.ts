import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { runCommandLine } from '../../../src/doors/cli/entry.ts'
import { cliContext } from '../../support/cli-context.ts'
import { makePlace } from '../../support/place.ts'

test.each([
  'status',
  'list',
  'list --all',
  'queue list',
  'schedule list',
  'team list',
  'secret list',
  'agents list',
  'templates',
  'questions',
  'savepoints',
  'prune --dry-run',
  'flow list',
])('codemachine %s writes no escape of the name of its directory', async command => {
  await using place = await makePlace('')
  const directory = join(place.root, 'red\x1b[31m\nred')
  await mkdir(directory)
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  await runCommandLine(cliContext({ ...place, directory }, { stdout, stderr }), command.split(' '))
  const written = `${await text(stdout.end())}${await text(stderr.end())}`
  expect(written).not.toBe('')
  expect(written).not.toContain('\x1b')
})
