import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { remarksOnProof } from '../../../src/project/engine-of-project.ts'
import { openFingerprints } from '../../../src/workspace/fingerprint/fingerprint.ts'
import { makePlace } from '../../support/place.ts'

test('what will not work after all the work is said before it: a glob that matches nothing, an effort that nobody knows', async () => {
  await using place = await makePlace('', { git: false })
  const { root, directory, env } = place
  mkdirSync(join(directory, 'tests'))
  writeFileSync(join(directory, 'tests', 'a.test.ts'), '')
  const { git } = await openFingerprints({ gitDir: join(root, 'git'), directory, repository: null, env })
  const gate = { name: 'unit', run: 'true', timeoutMs: 1, required: true, network: false, everyRound: false }
  const gates = [{ ...gate, protect: ['tests/**', 'tset/**'] }]
  expect(await remarksOnProof(git, { gates, reviewer: { model: null, effort: 'huge' } })).toEqual([
    'gate unit: protect "tset/**" matches no file.',
    'reviewer.effort is "huge", but no model of codex has this effort; reviews may fail.',
  ])
  expect(await remarksOnProof(git, { gates: [], reviewer: { model: null, effort: 'high' } })).toEqual([])
})
