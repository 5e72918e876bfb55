import { createHash } from 'node:crypto'
import { join, relative } from 'node:path'
import { isDiskFull, messageOf, systemErrorCode } from '../../base/errors.ts'
import { version } from '../../base/package.ts'
import type { SessionOutcome } from '../../core/events/outcome.ts'
import { certificateOf, certificateText } from '../../core/rules/certificate.ts'
import type { SessionState } from '../../core/state/state.ts'
import { writeWholeFile } from '../../platform/files.ts'
import { writeFileInside } from '../../workspace/files/inside-directory.ts'
import { isFullyCommitted } from '../../workspace/git/commits.ts'
import { readHead } from '../../workspace/git/git.ts'
import type { Run } from '../open-run.ts'
import type { World } from '../world.ts'

/** Result of writing a certificate. */
interface Certified {
  /** Outcome that replaces done; null: done stays. */
  refused: SessionOutcome | null
  /** Sentence about another failure; null: none. */
  problem: string | null
}

/**
 * Writes `done.json` of a session that ends as done: into the records, which count, and a copy next to its memory, in
 * `folder`. Without a certificate in the records the session is not done: nothing could verify it.
 */
export async function certify(
  run: Run,
  ended: SessionState,
  folder: string,
  platform: Pick<World, 'node' | 'platform'>,
): Promise<Certified> {
  if (ended.claim.state !== 'accepted' || ended.ended?.outcome.kind !== 'done') return NOTHING_TO_CERTIFY
  const { directory, sessionFolder } = run.records
  const path = join(sessionFolder(ended.id), 'done.json')
  let text: string
  try {
    text = await certificateOfRun(run, ended, ended.claim.tree, platform)
    await writeWholeFile(path, text)
  } catch (error) {
    return { refused: uncertified(path, error), problem: null }
  }
  try {
    await writeFileInside(directory, relative(directory, join(folder, 'done.json')), text)
    return NOTHING_TO_CERTIFY
  } catch (error) {
    return { refused: null, problem: `The copy of done.json could not be written: ${messageOf(error)}` }
  }
}

const NOTHING_TO_CERTIFY: Certified = { refused: null, problem: null }

async function certificateOfRun(
  { repository, fingerprints, engines }: Run,
  ended: SessionState,
  tree: string,
  { node, platform }: Pick<World, 'node' | 'platform'>,
): Promise<string> {
  const { savepoint } = ended
  const head = repository === null ? null : await readHead(repository)
  const commit = head?.commit ?? null
  return certificateText(
    certificateOf(ended, {
      head,
      headHoldsAll: commit === null ? null : await fingerprints.mending(git => isFullyCommitted(git, commit, tree)),
      savepoint: savepoint?.tree === tree ? savepoint.commit : null,
      notLookedAt: fingerprints.leftOut(),
      digestOf: ({ files }) => createHash('sha256').update(JSON.stringify(files)).digest('hex'),
      versions: { codemachine: version, codex: engines.of({}).version, node, platform },
    }),
  )
}

/** Returns the outcome of a session that would be done, but has no certificate. */
function uncertified(path: string, error: unknown): SessionOutcome {
  const why = isDiskFull(error) ? 'the disk is full' : (systemErrorCode(error) ?? messageOf(error).replace(/\.$/, ''))
  const reason = `The work was accepted, but its certificate ${path} could not be written: ${why}.`
  const hint = isDiskFull(error) ? ({ do: 'free-disk-space' } as const) : ({ do: 'say', text: MEND_RECORDS } as const)
  return { kind: 'needs-person', reason, hint }
}

const MEND_RECORDS =
  'Make that file writable. Then codemachine resume checks once more, without a round, and ends as done.'
