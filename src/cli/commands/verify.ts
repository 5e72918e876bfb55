import { join } from 'node:path'
import { Cleanup } from '../../base/cleanup.ts'
import { Interrupted } from '../../base/errors.ts'
import type { Certificate } from '../../session/certificate.ts'
import { openRecords, type Records } from '../../session/records.ts'
import { oneLine } from '../../ui/safe-text.ts'
import type { Fingerprints } from '../../workspace/fingerprint.ts'
import { runGit } from '../../workspace/git-command.ts'
import { type PersonRepository, readHead } from '../../workspace/person-repository.ts'
import { openGuard } from '../../workspace/repository-guard.ts'
import { openSandboxTraces } from '../../workspace/sandbox-traces.ts'
import { writableGit } from '../codex-options.ts'
import type { CliContext } from '../context.ts'
import { openWorkDirectory, WAIT_FOR_ITS_END } from '../open-work-directory.ts'
import { commandsFor } from '../verify/commands-for.ts'
import { describeVerification } from '../verify/describe-verification.ts'
import { findBreak } from '../verify/find-break.ts'
import { type Found, findCertificate } from '../verify/find-certificate.ts'
import { GatesAgain } from '../verify/gates-again.ts'
import {
  type Difference,
  exitCodeOfVerdict,
  type GateRun,
  passes,
  type Verdict,
  type Verification,
} from '../verify/verification.ts'

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
  const guard = await openGuard({
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
