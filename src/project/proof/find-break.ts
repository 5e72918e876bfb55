import type { GateStatus } from '../../core/events/outcome.ts'
import type { Certificate, CertifiedGate } from '../../core/rules/certificate.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import {
  type CheckoutResult,
  openScratchCheckouts,
  type ScratchCheckouts,
} from '../../workspace/fingerprint/scratch-checkout.ts'
import { GitBlocked } from '../../workspace/git/blocking-files.ts'
import { type Commit, commitsBetween, shortHash } from '../../workspace/git/commits.ts'
import { GitError } from '../../workspace/git/git.ts'
import type { PrivateGit } from '../../workspace/git/private-git.ts'

/** Known facts of a break, and the means to find out more. */
interface BreakSearch {
  certificate: Certificate
  /** Gates that fail in the work directory. */
  failing: readonly GateRun[]
  git: PrivateGit
  /** Checked-out commit; null: none, or unreadable. */
  head: string | null
  /** Fingerprint of the work directory. */
  tree: string
  /** Whether the certified files are still kept. */
  isKept: boolean
  /** Name by which a scratch folder is found again. */
  key: string
  /** Runs a gate on files in a checkout. */
  run(gate: GateRun['gate'], directory: string): Promise<GateRun>
  differs(before: string, after: string): Promise<Difference>
  say(text: string): void
}

/**
 * Finds the commit at which gates began to fail. It tests fresh checkouts: first the certified files, then HEAD, then
 * commits in between by bisection. If such a checkout behaves unlike the work directory, it cannot tell.
 */
export async function findBreak(search: BreakSearch): Promise<Verdict> {
  const { certificate, git, head, tree } = search
  if (tree === certificate.tree) return cannotTell(SAME_FILES)
  const from = certificate.git?.commit ?? null
  if (git.repository === null || from === null) return { kind: 'broken', since: null, gate: null }
  if (certificate.sandbox === 'danger-full-access') return cannotTell(NO_SANDBOX)
  if (git.setting.directory !== git.repository.root) return cannotTell('its repository ignores the work directory')
  if (head === null) return cannotTell('what is checked out here cannot be read')
  try {
    const between = await commitsBetween(git, from, head)
    if ('problem' in between) return cannotTell(between.problem)
    if (!search.isKept) return cannotTell('the certified files are no longer stored')
    const { commits } = between
    await using scratch = await openScratchCheckouts({
      ...search,
      from,
      tree: certificate.tree,
      commits: commits.map(({ commit }) => commit),
    })
    return await searchIn(scratch, commits, head, search)
  } catch (error) {
    // Without the repository's objects there are no commits to test.
    if (error instanceof GitError || error instanceof GitBlocked)
      return cannotTell(`the certified files cannot be read from git (${error.message})`)
    throw error
  }
}

/** Bisects: the commit before the answer passes and the answer fails. Both were tested, the answer twice. */
async function searchIn(
  scratch: ScratchCheckouts,
  commits: readonly Commit[],
  head: string,
  search: BreakSearch,
): Promise<Verdict> {
  const control = await controlOf(scratch, search)
  if ('problem' in control) return cannotTell(control.problem)
  const { telling } = control
  const tryCommit = async (index: number) =>
    await tryOn(await scratch.layCommit(index), inOneLine(commits[index]), { ...search, failing: telling })
  const now = commits.length === 0 ? { failed: null, tree: control.tree } : await tryCommit(commits.length - 1)
  if ('problem' in now) return cannotTell(`HEAD cannot be checked out: ${now.problem}`)
  if (now.failed === null) return await notCommitted(now.tree, head, search)
  let [good, bad] = [-1, commits.length - 1]
  while (bad - good > 1) {
    const middle = (good + bad) >> 1
    const tried = await tryCommit(middle)
    if ('problem' in tried) return cannotTell(`${inOneLine(commits[middle])} cannot be checked out: ${tried.problem}`)
    if (tried.failed === null) good = middle
    else bad = middle
  }
  // A random failure on the way could have led here.
  const again = await tryCommit(bad)
  if ('problem' in again || again.failed === null) {
    return cannotTell(`at ${inOneLine(commits[bad])} it fails only sometimes`)
  }
  return { kind: 'broken', since: commits[bad] ?? null, gate: again.failed.gate.name }
}

/** Returns the failing gates that pass on a checkout of the certified files: the others tell nothing. */
async function controlOf(
  scratch: ScratchCheckouts,
  search: BreakSearch,
): Promise<{ telling: GateRun[]; tree: string } | { problem: string }> {
  const telling: GateRun[] = []
  let tree = ''
  let problem = ''
  for (const gate of search.failing) {
    const control = async () =>
      await tryOn(await scratch.layCertified(), 'what was certified', { ...search, failing: [gate] })
    let tried = await control()
    if (!('problem' in tried) && tried.failed !== null) tried = await control()
    if ('problem' in tried) return { problem: `the certified files cannot be checked out: ${tried.problem}` }
    tree = tried.tree
    if (tried.failed === null) telling.push(gate)
    else problem ||= `${nameOf(gate)} also fails in a fresh checkout of the certified files${endOf(tried.failed)}`
  }
  return telling.length === 0 ? { problem } : { telling, tree }
}

type Tried = { failed: GateRun | null; tree: string } | { problem: string }

/** Runs the gates up to the first failure. */
async function tryOn(laid: CheckoutResult, name: string, { failing, run, say }: BreakSearch): Promise<Tried> {
  if ('problem' in laid) return laid
  for (const { gate } of failing) {
    const result = await run(gate, laid.directory)
    if (result.status === 'not-started') return { problem: result.problem ?? `${nameOf(result)} could not be run` }
    if (passes(result)) continue
    say(`${name}: ${nameOf(result)} fails`)
    return { failed: result, tree: laid.tree }
  }
  say(`${name}: ${failing.map(nameOf).join(', ')} passes`)
  return { failed: null, tree: laid.tree }
}

async function notCommitted(laidOut: string, head: string, { differs, tree }: BreakSearch): Promise<Verdict> {
  const difference = await differs(laidOut, tree)
  return difference.count === 0 ? cannotTell(SAME_AS_HEAD) : { kind: 'broken-uncommitted', head, differs: difference }
}

/** Returns the verdict without a conclusion; `reason` follows `cannot tell:`. */
export function cannotTell(reason: string): Verdict {
  return { kind: 'cannot-tell', reason }
}

function inOneLine(commit: Commit | undefined): string {
  return commit === undefined ? '' : `${shortHash(commit.commit)} ${commit.subject}`
}

function nameOf({ gate }: GateRun): string {
  return `\`${gate.name}\``
}

function endOf({ output }: GateRun): string {
  const line = lastLine(output)
  return line === null ? '' : `: ${line}`
}

const NO_SANDBOX =
  'it fails now. codemachine does not search for the commit: without a sandbox (danger-full-access), a gate could change your own files'
const SAME_FILES = 'no file has changed, so it depends on something else: time, network, this machine, or ignored files'
const SAME_AS_HEAD = 'it passes in a fresh checkout of the same files, so it depends on ignored files or this machine'

/** Returns the last non-empty line of a gate's output, safe to show; null: none. */
export function lastLine(output: string): string | null {
  const line = output
    .split('\n')
    .map(each => each.trim())
    .findLast(each => each !== '')
  return line === undefined ? null : oneLine(line, 160)
}

/** Result of a gate that ran again. */
export interface GateRun {
  gate: CertifiedGate
  status: GateStatus
  exitCode: number | null
  durationMs: number
  /** Last lines of its output. */
  output: string
  problem: string | null
  /** Number of files that it changed itself in the work directory. */
  changedCount: number
}

/** Files that differ; `paths` holds at most 50. */
export interface Difference {
  paths: readonly string[]
  count: number
}

/** Whether the proved result is true now. */
export type Verdict =
  | { kind: 'still-true' }
  /** `since`: the first commit at which `gate` fails; both null without git. */
  | { kind: 'broken'; since: Commit | null; gate: string | null }
  /** HEAD passes: uncommitted changes fail. */
  | { kind: 'broken-uncommitted'; head: string; differs: Difference }
  | { kind: 'cannot-tell'; reason: string }

/** Returns whether a gate's result counts as passed. */
export function passes({ status }: Pick<GateRun, 'status'>): boolean {
  return status === 'passed' || status === 'flaky'
}
