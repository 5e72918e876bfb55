import { UserError } from '../base/errors.ts'
import { foldJournal } from '../session/fold-journal.ts'
import type { Finding } from '../session/review.ts'
import type { SessionState } from '../session/state.ts'
import type { ReviewMatter } from '../templates/review-prompt.ts'
import { runGit, runGitOrThrow } from '../workspace/git-command.ts'
import { treeAt } from '../workspace/head-holds.ts'
import { readHead } from '../workspace/person-repository.ts'
import type { PrivateGit } from '../workspace/private-git.ts'
import { protectedChanges } from '../workspace/protected-files.ts'
import type { Run } from './open-run.ts'

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
    commit === null ? null : await runGit(git.setting, ['rev-parse', '--verify', '--quiet', treeAt(git, commit)])
  if (held?.ok) return held.stdout.trim()
  return (await runGitOrThrow(git.setting, ['hash-object', '-t', 'tree', '--stdin'], '')).trim()
}

function resultsOf({ claim }: SessionState): ReviewMatter['gates'] {
  return claim.state === 'nominated' || claim.state === 'accepted' ? claim.results : []
}

function openFindings({ reviews }: SessionState): readonly Finding[] {
  return reviews.last?.verdict === 'findings' ? reviews.last.findings : []
}
