import { mkdirSync } from 'node:fs'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { openRecords } from '../../src/session/records/records.ts'
import { openFingerprints } from '../../src/workspace/fingerprint/fingerprint.ts'
import { findRepository } from '../../src/workspace/git/git.ts'
import { openSavepoints } from '../../src/workspace/savepoints/savepoint-writer.ts'
import type { TestPlace } from './place.ts'

/** Keeps the files of a place as they are as the savepoint of a round, as a session does, without one. */
export async function keepSavepoint(
  place: Pick<TestPlace, 'directory' | 'home' | 'env'>,
  round: number,
  { session = '20261121_1', at = Date.parse('2026-11-21T01:00:00Z') } = {},
): Promise<{ gitDir: string; tree: string }> {
  const { directory, env, home } = place
  const records = await openRecords({ directory, env, home, platform: process.platform, templates: OWN_TEMPLATES })
  mkdirSync(records.sessionFolder(session), { recursive: true })
  const repository = await findRepository(records.directory)
  const fingerprints = await openFingerprints({ gitDir: records.git, directory: records.directory, repository, env })
  await using savepoints = openSavepoints(fingerprints, {
    onWarning: message => {
      throw new Error(message)
    },
  })
  const tree = await fingerprints.take()
  await savepoints.keep({ session, round, tree, at: at + round * 60_000 })
  return { gitDir: records.git, tree }
}
