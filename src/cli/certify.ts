import { join, relative } from 'node:path'
import { messageOf } from '../base/errors.ts'
import { version } from '../base/version.ts'
import { writeWholeFile } from '../platform/write-whole-file.ts'
import { certificateOf, certificateText } from '../session/certificate.ts'
import type { SessionState } from '../session/state.ts'
import { commitHolds } from '../workspace/head-holds.ts'
import { writeFileInside } from '../workspace/inside-directory.ts'
import { readHead } from '../workspace/person-repository.ts'
import type { CliContext } from './context.ts'
import type { Run } from './open-run.ts'

/**
 * Writes `done.json` of a session that has come to its end as done: into the records, which count, and as a copy beside
 * its memory, in `folder`. Answers what went wrong, a sentence; null if nothing did.
 */
export async function certify(
  { records, repository, fingerprints, engine }: Run,
  ended: SessionState,
  folder: string,
  { node, platform }: Pick<CliContext, 'node' | 'platform'>,
): Promise<string | null> {
  const { claim, savepoint } = ended
  if (claim.state !== 'accepted') return null
  try {
    const head = repository === null ? null : await readHead(repository)
    const commit = head?.commit ?? null
    const text = certificateText(
      certificateOf(ended, {
        head,
        headHoldsAll: commit === null ? null : await commitHolds(fingerprints.git, commit, claim.tree),
        savepoint: savepoint?.tree === claim.tree ? savepoint.commit : null,
        versions: { codemachine: version, codex: engine.version, node, platform },
      }),
    )
    await writeWholeFile(join(records.sessionFolder(ended.id), 'done.json'), text)
    await writeFileInside(records.directory, relative(records.directory, join(folder, 'done.json')), text)
    return null
  } catch (error) {
    return `done.json could not be written: ${messageOf(error)}`
  }
}
