import { join, relative } from 'node:path'
import { messageOf, UserError } from '../base/errors.ts'
import { loadPrompt, version } from '../base/package.ts'
import type { ThreadSpec } from '../core/contracts/template.ts'
import { certificateOf, certificateText } from '../core/rules/certificate.ts'
import type { Finding, ReviewTerms } from '../core/rules/review.ts'
import type { SessionState } from '../core/state/state.ts'
import { writeWholeFile } from '../platform/files.ts'
import { foldJournal } from '../records/journal.ts'
import { type ProofEnvironment, protectedSince, runGate } from '../run/gates.ts'
import type { Settings } from '../settings/schema.ts'
import { type ReviewMatter, reviewInput, reviewInstructions } from '../templates/round-input.ts'
import { writeFileInside } from '../workspace/files/inside-directory.ts'
import { isFullyCommitted, treeRevision } from '../workspace/git/commits.ts'
import { readHead, runGit, runGitOrThrow } from '../workspace/git/git.ts'
import type { PrivateGit } from '../workspace/git/private-git.ts'
import { changedFiles } from '../workspace/git/trees.ts'
import { protectedChanges } from '../workspace/protected-files.ts'
import type { Run } from './project.ts'
import type { CliContext } from './world.ts'

/** The most of a diff that is handed over to be cut to what a reviewer can be told, bytes. */
const DIFF_BYTES = 8 * 1024 * 1024

/** With what the claims of a run's sessions are proved. */
export function proofEnvironment({ clock }: CliContext, run: Run): ProofEnvironment {
  const { commands, fingerprints, savepoints, redactor, settings, records } = run
  const changedProtected: ProofEnvironment['changedProtected'] = (gates, before, after) =>
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

/** The thread of a reviewer of a work directory. What `terms` leaves open is as in the rounds. */
export function reviewThread(
  directory: string,
  terms: ReviewTerms | null,
  { model, effort }: Pick<Settings, 'model' | 'effort'>,
): ThreadSpec {
  return {
    agent: 'reviewer',
    developerInstructions: reviewInstructions(loadPrompt('review'), directory),
    model: terms?.model ?? model,
    effort: terms?.effort ?? effort,
    readOnly: true,
  }
}

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
        headHoldsAll: commit === null ? null : await isFullyCommitted(fingerprints.git, commit, claim.tree),
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

/** What a review by itself is of. */
export interface ReviewedWork {
  /** Null: what is not committed. */
  session: string | null
  /** Fingerprints of what it began with, and of what it is now. */
  since: string
  tree: string
  matter: ReviewMatter
}

/** Enough for all that a reviewer is shown, and the names of what it is not shown. */
const MOST_BYTES = 8 * 1024 * 1024

/** The work of a session: all that has changed since it began, by whomever. */
export async function workOfSession(run: Run, id: string): Promise<ReviewedWork> {
  const state = await foldJournal(run.records.journal(id), id)
  const since = state?.savepoint?.start ?? null
  if (state === null || since === null) {
    throw new UserError(`${id} has no savepoint of what it began with, so nothing tells what it changed.`, {
      hint: 'To review what is not committed: codemachine review --goal "…"',
    })
  }
  const { git } = run.fingerprints
  if (!(await runGit(git.setting, ['cat-file', '-e', `${since}^{tree}`])).ok) {
    throw new UserError(`What ${id} began with is no longer kept, so nothing tells what it changed.`)
  }
  const tree = await run.fingerprints.take()
  const [{ text, isCut }, { files }] = await Promise.all([
    run.savepoints.diff(since, tree, { mostBytes: MOST_BYTES }),
    protectedChanges({ gates: state.gates, before: since, after: tree, git }),
  ])
  const gates = resultsOf(state).filter(result => result.tree === tree)
  const matter = {
    goal: state.goal,
    said: state.personSaid,
    gates,
    protectedFiles: files,
    earlier: openFindings(state),
  }
  return { session: id, since, tree, matter: { ...matter, diff: text, isCut } }
}

/** What is not committed yet; in a directory without a repository or a commit, everything. */
export async function uncommittedWork(run: Run, goal: string): Promise<ReviewedWork> {
  const { git } = run.fingerprints
  const since = await treeOfHead(run, git)
  const tree = await run.fingerprints.take()
  if (since === tree) {
    const why = run.repository === null ? 'there is no file' : 'no file differs from the last commit'
    throw new UserError(`There is nothing to review: ${why}.`)
  }
  const { text, isCut } = await run.savepoints.diff(since, tree, { mostBytes: MOST_BYTES })
  const matter = { goal, gates: [], protectedFiles: [], earlier: [], diff: text, isCut }
  return { session: null, since, tree, matter }
}

async function treeOfHead({ repository }: Run, git: PrivateGit): Promise<string> {
  const commit = repository === null ? null : (await readHead(repository)).commit
  const held =
    commit === null ? null : await runGit(git.setting, ['rev-parse', '--verify', '--quiet', treeRevision(git, commit)])
  if (held?.ok) return held.stdout.trim()
  return (await runGitOrThrow(git.setting, ['hash-object', '-t', 'tree', '--stdin'], '')).trim()
}

function resultsOf({ claim }: SessionState): ReviewMatter['gates'] {
  return claim.state === 'nominated' || claim.state === 'accepted' ? claim.results : []
}

function openFindings({ reviews }: SessionState): readonly Finding[] {
  return reviews.last?.verdict === 'findings' ? reviews.last.findings : []
}
