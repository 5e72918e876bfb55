import { join, relative } from 'node:path'
import { messageOf, UserError } from '../../base/errors.ts'
import { version } from '../../base/package.ts'
import { certificateOf, certificateText } from '../../core/rules/certificate.ts'
import type { SessionState } from '../../core/state/state.ts'
import { writeWholeFile } from '../../platform/files.ts'
import { type ProofEnvironment, protectedSince, runGate } from '../../run/gates.ts'
import { reachesNetwork } from '../../settings/gates.ts'
import { reviewInput } from '../../templates/round-input.ts'
import { writeFileInside } from '../../workspace/files/inside-directory.ts'
import { isGateChanged } from '../../workspace/gate-paths.ts'
import { isFullyCommitted } from '../../workspace/git/commits.ts'
import { readHead } from '../../workspace/git/git.ts'
import { changedFiles } from '../../workspace/git/trees.ts'
import { gateConfiguration, hashOfPrograms, protectedChanges } from '../../workspace/protected-files.ts'
import type { Run } from '../open-run.ts'
import type { World } from '../world.ts'
import { counterProofOf } from './counter-proof.ts'
import { reviewThread } from './review.ts'

/** The most of a diff that is handed over to be cut to what a reviewer can be told, bytes. */
const DIFF_BYTES = 8 * 1024 * 1024

/** The most that is kept of what a command of a template printed. */
const COMMAND_CHARACTERS = 16_000

/**
 * With what the claims of a run's sessions are proved.
 * @param closed absolute paths that no command may read or make, as of now
 */
export function proofEnvironment({ clock }: World, run: Run, closed: () => readonly string[]): ProofEnvironment {
  const { commands, fingerprints, savepoints, redactor, settings, records } = run
  const changedProtected: ProofEnvironment['changedProtected'] = (gates, before, after) =>
    fingerprints.mending(git => protectedChanges({ gates, before, after, git }))
  /** Null if what it began with is no longer there. */
  const diffSince = async (start: string, tree: string) => {
    try {
      return await savepoints.diff(start, tree, { mostBytes: DIFF_BYTES })
    } catch (error) {
      if (error instanceof UserError) return null
      throw error
    }
  }
  const { directory } = records
  const onGates = () => ({ door: commands, redact: (text: string) => redactor.text(text), unreadable: closed() })
  return {
    // Whether it is flaky matters where it decides.
    runGate: (gate, { when, start, ...place }) => {
      // The rounds may have been given less since a scope was entered.
      const network = gate.network && reachesNetwork(settings)
      const isOwnChanged = async () =>
        start === null || (await fingerprints.mending(git => isGateChanged(git, { start, tree: place.tree, gate })))
      return runGate({ ...gate, network }, { ...onGates(), ...place, isAgainOnFailure: when === 'claim', isOwnChanged })
    },
    runCommand: ({ readOnly, ...command }, place) =>
      runGate(
        { ...command, required: false, protect: [], everyRound: false },
        { ...onGates(), ...place, isAgainOnFailure: false, mostCharacters: COMMAND_CHARACTERS, readOnly },
      ),
    async keepSavepoint(of) {
      const [kept, notLookedAt] = await Promise.all([
        savepoints.keep({ ...of, at: clock.now() }),
        fingerprints.leftOut(of.signal),
      ])
      return kept && { ...kept, ...(notLookedAt.count === 0 ? {} : { notLookedAt }) }
    },
    changedProtected,
    configuration: async (gates, before, after, programs) => {
      const both = { before: programs, after: await hashOfPrograms(directory) }
      return await fingerprints.mending(git => gateConfiguration({ gates, before, after, git, programs: both }))
    },
    counterProof: (gate, of) =>
      counterProofOf({ ...gate, network: gate.network && reachesNetwork(settings) }, of, {
        ...run,
        key: records.key,
        commands: run.commandOptions,
        redact: text => redactor.text(text),
        unreadable: closed(),
      }),
    programs: () => hashOfPrograms(directory),
    async lost(before, after) {
      const files = await fingerprints.mending(git => changedFiles(git, before, after))
      return files?.filter(({ how }) => how !== 'added').map(({ path }) => path) ?? null
    },
    async reviewer(state, tree) {
      const start = state.scope?.since ?? state.savepoint?.start ?? null
      const diff = start === null ? null : await diffSince(start, tree)
      const { files } = await changedProtected(state.gates, protectedSince(state) ?? '', tree)
      return {
        thread: reviewThread(records.directory, state.review ?? settings.reviewer, settings),
        input: reviewInput({
          goal: state.scope?.goal ?? state.goal,
          said: state.personSaid,
          gates: state.claim.state === 'nominated' ? state.claim.results : [],
          protectedFiles: files,
          configuration: state.gateConfiguration?.files ?? [],
          counterProofs: state.counterProofs.filter(proof => proof.tree === tree),
          earlier: state.reviews.last?.findings ?? [],
          diff: diff?.text ?? null,
          isCut: diff?.isCut ?? false,
        }),
      }
    },
  }
}

/**
 * Writes `done.json` of a session that has come to its end as done: into the records, which count, and as a copy beside
 * its memory, in `folder`. Answers what went wrong, a sentence; null if nothing did.
 */
export async function certify(
  { records, repository, fingerprints, engines }: Run,
  ended: SessionState,
  folder: string,
  { node, platform }: Pick<World, 'node' | 'platform'>,
): Promise<string | null> {
  const { claim, savepoint } = ended
  if (claim.state !== 'accepted') return null
  try {
    const head = repository === null ? null : await readHead(repository)
    const commit = head?.commit ?? null
    const text = certificateText(
      certificateOf(ended, {
        head,
        headHoldsAll:
          commit === null ? null : await fingerprints.mending(git => isFullyCommitted(git, commit, claim.tree)),
        savepoint: savepoint?.tree === claim.tree ? savepoint.commit : null,
        notLookedAt: await fingerprints.leftOut(),
        versions: { codemachine: version, codex: engines.of({}).version, node, platform },
      }),
    )
    await writeWholeFile(join(records.sessionFolder(ended.id), 'done.json'), text)
    await writeFileInside(records.directory, relative(records.directory, join(folder, 'done.json')), text)
    return null
  } catch (error) {
    return `done.json could not be written: ${messageOf(error)}`
  }
}
