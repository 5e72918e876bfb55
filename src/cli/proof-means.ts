import { UserError } from '../base/errors.ts'
import { type ProofMeans, protectedSince } from '../session/proof.ts'
import { runGate } from '../session/run-gate.ts'
import { reviewInput } from '../templates/review-prompt.ts'
import { changedFiles } from '../workspace/changed-files.ts'
import { protectedChanges } from '../workspace/protected-files.ts'
import type { CliContext } from './context.ts'
import type { Run } from './open-run.ts'
import { reviewThread } from './review-thread.ts'

/** The most of a diff that is handed over to be cut to what a reviewer can be told, bytes. */
const DIFF_BYTES = 8 * 1024 * 1024

/** With what the claims of a run's sessions are proved. */
export function proofMeans({ clock }: CliContext, run: Run): ProofMeans {
  const { commands, fingerprints, savepoints, redactor, settings, records } = run
  const changedProtected: ProofMeans['changedProtected'] = (gates, before, after) =>
    protectedChanges({ gates, before, after, git: fingerprints.git })
  /** Null if what it began with is no longer there. */
  const diffSince = async (start: string, tree: string) => {
    try {
      return await savepoints.diff(start, tree, { mostBytes: DIFF_BYTES })
    } catch (error) {
      if (error instanceof UserError) return null
      throw error
    }
  }
  return {
    runGate: (gate, { when, tree, signal }) =>
      runGate(gate, {
        door: commands,
        workTree: fingerprints,
        tree,
        signal,
        redact: text => redactor.text(text),
        // Whether it is flaky matters where it decides.
        isAgainOnFailure: when === 'claim',
      }),
    keepSavepoint: of => savepoints.keep({ ...of, at: clock.now() }),
    changedProtected,
    async lost(before, after) {
      const files = await changedFiles(fingerprints.git, before, after)
      return files?.filter(({ how }) => how !== 'added').map(({ path }) => path) ?? null
    },
    async reviewer(state, tree) {
      const start = state.savepoint?.start ?? null
      const diff = start === null ? null : await diffSince(start, tree)
      const { files } = await changedProtected(state.gates, protectedSince(state) ?? '', tree)
      return {
        thread: reviewThread(records.directory, state.review ?? settings.reviewer, settings),
        input: reviewInput({
          goal: state.goal,
          said: state.personSaid,
          gates: state.claim.state === 'nominated' ? state.claim.results : [],
          protectedFiles: files,
          earlier: state.reviews.last?.findings ?? [],
          diff: diff?.text ?? null,
          isCut: diff?.isCut ?? false,
        }),
      }
    },
  }
}
