import { join } from 'node:path'
import { writableGit } from '../../app/engine-of-project.ts'
import { openWorkDirectory, WAIT_FOR_ITS_END } from '../../app/project.ts'
import {
  commandsFor,
  type Difference,
  exitCodeOfVerdict,
  type Found,
  findBreak,
  findCertificate,
  type GateRun,
  GatesAgain,
  lastLine,
  passes,
  type Verdict,
  type Verification,
} from '../../app/verify.ts'
import type { CliContext } from '../../app/world.ts'
import { Cleanup, Interrupted, unreachable } from '../../base/errors.ts'
import type { Certificate } from '../../core/rules/certificate.ts'
import { openRecords, type Records } from '../../records/records.ts'
import { oneLine } from '../../words/cells.ts'
import { formatCount, formatDayAndTime, formatDuration } from '../../words/numbers.ts'
import type { Fingerprints } from '../../workspace/fingerprint.ts'
import { shortHash } from '../../workspace/git/commits.ts'
import { type PersonRepository, readHead, runGit } from '../../workspace/git/git.ts'
import { openRepositoryGuard } from '../../workspace/guard/repository-guard.ts'
import { openSandboxTraces } from '../../workspace/sandbox-traces.ts'

export interface VerifyOptions {
  directory: string
  /** As typed; null for the newest that is done. */
  session: string | null
  json: boolean
  codexBin?: string
}

type Say = (text: string) => void

/** `codemachine verify`: whether what was proved when a session was done is still true, and if not, since when. */
export async function verify(context: CliContext, options: VerifyOptions): Promise<number> {
  const say: Say = text => void context.stderr.write(`codemachine: ${oneLine(text, 1000)}\n`)
  const records = await openRecords({ ...context, directory: options.directory })
  const found = await findCertificate(records, options.session, say)
  const verification = await verifyLocked(context, options, records, found, say)
  if (context.signal.aborted) throw new Interrupted(context.signal.reason)
  const text = options.json
    ? `${JSON.stringify(jsonOf(verification))}\n`
    : describeVerification(verification, found.certificate)
  context.stdout.write(text)
  return exitCodeOfVerdict(verification.verdict)
}

/** What `--json` prints. */
function jsonOf({ gates, ...verification }: Verification): object {
  return { v: 1, ...verification, gates: gates.map(({ gate, ...run }) => ({ name: gate.name, run: gate.run, ...run })) }
}

async function verifyLocked(
  context: CliContext,
  options: VerifyOptions,
  records: Records,
  { certificate, overrides }: Found,
  say: Say,
): Promise<Verification> {
  await using opened = new Cleanup()
  const work = opened.use(await openWorkDirectory(context, records, say, WAIT_FOR_ITS_END))
  const { repository, fingerprints } = work
  const tree = await fingerprints.take()
  const changed = await changedSince(fingerprints, certificate.tree, tree)
  const judged = (verdict: Verdict, gates: readonly GateRun[]): Verification => {
    return { session: certificate.session, verdict, gates, changed }
  }
  const required = certificate.gates.filter(gate => gate.required)
  if (required.length === 0) return judged(cannotTell(NOTHING_TO_RUN), [])
  const commands = await commandsFor(context, records, { codexBin: options.codexBin, overrides })
  if ('problem' in commands) return judged(cannotTell(commands.problem), [])
  opened.use(await openSandboxTraces([records.directory], records.traces))
  const again = new GatesAgain({
    ...commands,
    sandbox: {
      mode: certificate.sandbox,
      network: certificate.network,
      writable: writableGit(records.directory, repository),
    },
    directory: records.directory,
    workTree: fingerprints,
    signal: context.signal,
  })
  const gates = await guarded(records, repository, certificate.session, say, () => runAll(again, required, say))
  const notStarted = gates.find(({ status }) => status === 'not-started')
  const failing = gates.filter(gate => !passes(gate))
  if (failing.length === 0) return judged({ kind: 'still-true' }, gates)
  if (notStarted) return judged(cannotTell(`${notStarted.gate.name} could not be run`), gates)
  const verdict = await findBreak({
    certificate,
    failing,
    git: fingerprints.git,
    head: repository === null ? null : (await readHead(repository)).commit,
    tree,
    isKept: changed !== null,
    key: records.key,
    run: (gate, directory) => again.inScratch(gate, directory),
    differs: (before, after) => fingerprints.changed(before, after),
    say,
  })
  return judged(verdict, gates)
}

async function runAll(again: GatesAgain, gates: Certificate['gates'], say: Say): Promise<GateRun[]> {
  const runs: GateRun[] = []
  for (const gate of gates) {
    say(`runs again: ${gate.name}`)
    runs.push(await again.inWorkDirectory(gate))
  }
  return runs
}

/** A gate runs what agents wrote, and may write in the repository's `.git`, as in a round. */
async function guarded<T>(
  records: Records,
  repository: PersonRepository | null,
  session: string,
  say: Say,
  action: () => Promise<T>,
): Promise<T> {
  const guard = await openRepositoryGuard({
    repository,
    workTree: records.directory,
    setAsideDir: join(records.sessionFolder(session), 'set-aside'),
    baselineFile: records.guard,
  })
  try {
    return await action()
  } finally {
    const restored = await guard.check()
    if (restored !== null && restored.restored.length > 0) {
      say(`A gate changed what the person's git runs, and it was put back: ${restored.restored.join(', ')}.`)
    }
    for (const problem of restored?.problems ?? []) say(problem)
    await guard.close()
  }
}

/** Null if the files of then are not kept any more. */
async function changedSince(fingerprints: Fingerprints, before: string, now: string): Promise<Difference | null> {
  if (before === now) return { paths: [], count: 0 }
  const { setting } = fingerprints.git
  const isKept = (await runGit(setting, ['cat-file', '-e', `${before}^{tree}`])).ok
  return isKept ? await fingerprints.changed(before, now) : null
}

function cannotTell(reason: string): Verdict {
  return { kind: 'cannot-tell', reason }
}

const NOTHING_TO_RUN =
  'the session was done without gates, so there is nothing to run again; give the next one some with --verify'

/** What came of verifying, as lines for a person. */
function describeVerification(verification: Verification, certificate: Certificate): string {
  const { verdict, gates } = verification
  const goal = oneLine(certificate.goal, 80)
  const lines = [
    headline(verdict),
    `  ${certificate.session}, done ${formatDayAndTime(Date.parse(certificate.endedAt))}: ${goal}`,
    ...gates.flatMap(lineOf),
    ...filesLine(verification),
    ...closer(verdict, certificate),
  ]
  return lines.map(line => `${line}\n`).join('')
}

function headline(verdict: Verdict): string {
  switch (verdict.kind) {
    case 'still-true':
      return 'still true'
    case 'broken': {
      const { since } = verdict
      if (since === null) return 'broken: there are no commits that could say since when'
      const date = formatDayAndTime(Date.parse(since.date))
      return `broken since ${shortHash(since.commit)} ${oneLine(since.subject, 100)} (${date})`
    }
    case 'broken-uncommitted':
      return `broken by what is not committed: ${named(verdict.differs)}`
    case 'cannot-tell':
      return `cannot tell: ${oneLine(verdict.reason, 600)}`
    default:
      return unreachable(verdict)
  }
}

function lineOf(run: GateRun): string[] {
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
      return 'did not come to its end in time'
    case 'not-started':
      return `could not be run${problem === null ? '' : `: ${oneLine(problem, 300)}`}`
    case 'broken-off':
      return 'was broken off'
    default:
      return unreachable(status)
  }
}

function filesLine({ changed, verdict }: Verification): string[] {
  if (verdict.kind === 'broken-uncommitted') return []
  if (changed === null) return ['  The files have changed since; which ones is not known any more.']
  if (changed.count === 0) return ['  The files are the very same as when it was done.']
  const have = changed.count === 1 ? 'has' : 'have'
  return [`  ${formatCount(changed.count, 'file')} ${have} changed since: ${named(changed)}`]
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
          git?.holdsAll === false ? ', with what was not committed when it was done' : ''
        }.`,
      ]
    case 'still-true':
    case 'cannot-tell':
      return []
    default:
      return unreachable(verdict)
  }
}

function named({ paths, count }: Difference): string {
  const shown = paths.slice(0, 8).map(path => oneLine(path, 120))
  return `${shown.join(', ')}${count > shown.length ? ` and ${count - shown.length} more` : ''}`
}
