import { unreachable } from '../../base/errors.ts'
import type { Certificate } from '../../core/rules/certificate.ts'
import { formatCount, formatDayAndTime, formatDuration } from '../../tell/words/numbers.ts'
import { oneLine, titleLine } from '../../tell/words/safe-text.ts'
import { shortHash } from '../../workspace/git/commits.ts'
import { type Difference, type GateRun, lastLine, type Verdict } from './find-break.ts'
import type { Verification, Verified } from './verify.ts'

/** Describes a verification in lines for a person. */
export function describeVerification(verification: Verified): string {
  const { verdict, gates, certificate, worktree, directory } = verification
  const where = worktree === null ? '' : ` in the worktree ${worktree} (${oneLine(directory, 500)})`
  const goal = titleLine(certificate.goal, 80)
  const lines = [
    headline(verdict),
    `  ${certificate.session}${where}, done ${formatDayAndTime(Date.parse(certificate.endedAt))}: ${goal}`,
    ...gates.flatMap(lineOf),
    ...filesLine(verification),
    ...notLookedAtLine(verification),
    ...closer(verdict, certificate),
  ]
  return lines.map(line => `${line}\n`).join('')
}

/** Describes a verdict in one line. */
export function headline(verdict: Verdict): string {
  switch (verdict.kind) {
    case 'still-true':
      return 'still true'
    case 'broken': {
      const { since } = verdict
      if (since === null) return 'broken: without commits it is not known since when'
      const date = formatDayAndTime(Date.parse(since.date))
      return `broken since ${shortHash(since.commit)} ${oneLine(since.subject, 100)} (${date})`
    }
    case 'broken-uncommitted':
      return `broken by uncommitted changes: ${named(verdict.differs)}`
    case 'cannot-tell':
      return `cannot tell: ${oneLine(verdict.reason, 600)}`
    default:
      return unreachable(verdict)
  }
}

/** Describes a gate's result in one line; if it failed, also its last line of output. */
export function lineOf(run: GateRun): string[] {
  const changed = run.changedCount === 0 ? '' : `; it changes ${formatCount(run.changedCount, 'file')} itself`
  const took = run.status === 'not-started' ? '' : ` (${formatDuration(run.durationMs)})`
  const line = `  ${oneLine(run.gate.name, 100)}: ${inWords(run)}${changed}${took}`
  const said = run.status === 'failed' || run.status === 'timed-out' ? lastLine(run.output) : null
  return said === null ? [line] : [line, `    ${said}`]
}

function inWords({ status, exitCode, problem }: GateRun): string {
  switch (status) {
    case 'passed':
      return 'passes'
    case 'flaky':
      return 'is flaky: it failed, and passed when it was run again on the same files'
    case 'failed':
      return exitCode === null ? 'fails' : `fails, exit code ${exitCode}`
    case 'timed-out':
      return 'did not finish in time'
    case 'not-started':
      return `could not be run${problem === null ? '' : `: ${oneLine(problem, 300)}`}`
    case 'broken-off':
      return 'was interrupted'
    default:
      return unreachable(status)
  }
}

function filesLine({ changed, verdict }: Verification): string[] {
  if (verdict.kind === 'broken-uncommitted') return []
  if (changed === null) return ['  The files have changed since; the list of changes is no longer known.']
  if (changed.count === 0) return ['  The files are the same as when it was done.']
  const have = changed.count === 1 ? 'has' : 'have'
  return [`  ${formatCount(changed.count, 'file')} ${have} changed since: ${named(changed)}`]
}

function notLookedAtLine({ notLookedAt }: Verification): string[] {
  return notLookedAt.count === 0 ? [] : [`  Not looked at: ${named(notLookedAt)}`]
}

function closer(verdict: Verdict, { git }: Certificate): string[] {
  switch (verdict.kind) {
    case 'broken':
      if (verdict.since === null) return []
      return [
        `  ${oneLine(verdict.gate ?? 'It', 100)} passes before that commit, and fails in it and in HEAD.`,
        `  To look closer: git show ${shortHash(verdict.since.commit)}`,
      ]
    case 'broken-uncommitted':
      return [
        `  It passes in a fresh checkout of HEAD (${shortHash(verdict.head)})${
          git?.holdsAll === false ? ', with the files that were uncommitted when it was done' : ''
        }.`,
      ]
    case 'still-true':
    case 'cannot-tell':
      return []
    default:
      return unreachable(verdict)
  }
}

/** Names the first paths of a difference, and the number of others. */
export function named({ paths, count }: Difference): string {
  const shown = paths.slice(0, 8).map(path => oneLine(path, 120))
  return `${shown.join(', ')}${count > shown.length ? ` and ${count - shown.length} more` : ''}`
}
