import { join } from 'node:path'
import { Cleanup, Interrupted, messageOf, nullIfUserError, UserError } from '../../base/errors.ts'
import {
  CERTIFICATE_BYTES,
  type Certificate,
  type CertifiedGate,
  checksOf,
  parseCertificate,
} from '../../core/rules/certificate.ts'
import { folderOfCheck } from '../../core/rules/contract.ts'
import { globsLookedAt } from '../../core/rules/proof/gate-files.ts'
import type { SessionState } from '../../core/state/state.ts'
import { pathExists, readBoundedText } from '../../platform/files.ts'
import { foldJournal } from '../../session/records/journal.ts'
import type { Records } from '../../session/records/records.ts'
import { findObstacle, readTextFile } from '../../workspace/files/inside-directory.ts'
import type { Fingerprints } from '../../workspace/fingerprint/fingerprint.ts'
import { followIgnoreRules } from '../../workspace/fingerprint/session-rules.ts'
import { treeOfCommit } from '../../workspace/git/commits.ts'
import { readHead, runGit } from '../../workspace/git/git.ts'
import { whileGuarded } from '../../workspace/guard/repository-guard.ts'
import { openSandboxTraces } from '../../workspace/sandbox-traces.ts'
import { writableGit } from '../engine-of-project.ts'
import { findSession, type SessionsPlace } from '../find.ts'
import { openWorkDirectory, WAIT_FOR_ITS_END } from '../open-run.ts'
import { findSessionAround, placesAround } from '../worktrees/find.ts'
import type { World } from '../world.ts'
import { filesIn } from './contract-checks.ts'
import { cannotTell, type Difference, findBreak, type GateRun, passes, type Verdict } from './find-break.ts'
import { commandsFor, type GatesAgain, runAgain, runInScratch } from './gates-again.ts'
import { isLandingId, newestLanding, readLanding } from './landing-record.ts'

/** What to verify, and who receives messages. */
interface VerifyOptions {
  /** As typed; null: the newest finished session. */
  session: string | null
  codexBin?: string
  /** Receives a sentence for each thing that a person should know, and for each command that runs. */
  say: Say
  /** Receives each debug line, without secrets, if `logging.level` is `debug`. */
  onDebug?: ((line: string) => void) | undefined
}

type Say = (text: string) => void

/**
 * Checks whether a finished session's proof is still true, and if not, since when. No session runs here meanwhile. Throws a
 * `UserError` if there is no such session or certificate, or while a codemachine runs here (exit code 6).
 */
export async function verifySession(world: World, own: Records, options: VerifyOptions): Promise<Verified> {
  const { records, worktree, found } = await findDone(own, options, world.platform)
  const verification = await verifyFound(world, options, records, found)
  return { directory: records.directory, worktree, ...verification }
}

/** Returns the session that a person means, with its certificate. Throws a `UserError` if there is none. */
export async function findDone(
  own: Records,
  options: Pick<VerifyOptions, 'session' | 'say'>,
  platform: NodeJS.Platform,
): Promise<SessionsPlace & { found: Found }> {
  const { records, worktree, session } = await placeOf(own, options, platform)
  return { records, worktree, found: await findCertificate(records, session, options.say) }
}

/** Returns the meant session's place; without a word, that of the newest finished one here or in a worktree. */
async function placeOf(
  own: Records,
  { session, say }: Pick<VerifyOptions, 'session' | 'say'>,
  platform: NodeJS.Platform,
): Promise<SessionsPlace & { session: string | null }> {
  if (session !== null && isLandingId(session)) return { worktree: null, records: own, session }
  if (session !== null) {
    const { id, ...place } = await findSessionAround(own, session, { platform, onProblem: say })
    return { ...place, session: id }
  }
  const places = await placesAround(own, say)
  let last: (SessionsPlace & { session: string; at: number }) | null = null
  for (const place of places.length === 1 ? [] : places) {
    const newest = await newestProved(place.records, say)
    if (newest !== null && (last === null || newest.at > last.at))
      last = { ...place, session: newest.id, at: newest.at }
  }
  return last ?? { worktree: null, records: own, session: null }
}

/** Checks whether a certificate is still true. Throws `Interrupted` if the program must end. */
export async function verifyFound(
  world: World,
  options: Omit<VerifyOptions, 'session'>,
  records: Records,
  found: Found,
): Promise<Omit<Verified, 'directory' | 'worktree'>> {
  const verification = await verifyLocked(world, options, records, found)
  if (world.signal.aborted) throw new Interrupted(world.signal.reason)
  return { ...verification, certificate: found.certificate }
}

/** Result of a verification, and the certificate behind it. */
export interface Verified extends Verification {
  directory: string
  /** Worktree of the session's checkout; null: the named directory. */
  worktree: string | null
  certificate: Certificate
}

/** Result of a verification. */
export interface Verification {
  session: string
  verdict: Verdict
  /** Required gates that ran, with their results in the work directory. */
  gates: readonly GateRun[]
  /** Changes since the session was done; null: its files are no longer stored. */
  changed: Difference | null
  /** Paths in the work directory that were not read; a folder ends in `/`. */
  notLookedAt: Difference
  /** Holder of the certified files: the work directory, or HEAD for a foreign certificate; null: neither. */
  same: 'files' | 'head' | null
}

async function verifyLocked(
  world: World,
  options: Omit<VerifyOptions, 'session'>,
  records: Records,
  { certificate, overrides, lookedAt, filesOf, stranger }: Found,
): Promise<Verification> {
  const { say } = options
  await using opened = new Cleanup()
  const work = opened.use(await openWorkDirectory(world, records, say, { hint: WAIT_FOR_ITS_END }))
  const { repository, fingerprints } = work
  // Files that counted then count now, even if git ignores them and no later session protects them.
  fingerprints.protect(lookedAt)
  // A foreign certificate's session name means another session here.
  if (stranger === undefined) await followIgnoreRules(fingerprints, records.ignoreRules(certificate.session))
  const tree = await fingerprints.take()
  const notLookedAt = fingerprints.leftOut()
  const changed = await changedSince(fingerprints, certificate.tree, tree)
  const head = repository === null ? null : (await readHead(repository)).commit
  const same = await holderOf(fingerprints, certificate.tree, tree, stranger === undefined ? null : head)
  const judged = (verdict: Verdict, gates: readonly GateRun[]): Verification => {
    return { session: certificate.session, verdict, gates, changed, notLookedAt, same }
  }
  const checks = checksOf(certificate)
  const required = [...certificate.gates.filter(gate => gate.required), ...checks.map(({ gate }) => gate)]
  if (required.length === 0) return judged(cannotTell(NOTHING_TO_RUN), [])
  const refusal = await stranger?.({ same, isKept: changed !== null, gates: required })
  if (refusal) return judged(cannotTell(refusal), [])
  const commands = await commandsFor(world, records, { ...options, overrides })
  if ('problem' in commands) return judged(cannotTell(commands.problem), [])
  opened.use(await openSandboxTraces([records.directory], records.traces))
  const again: GatesAgain = {
    ...commands,
    sandbox: {
      mode: certificate.sandbox,
      network: certificate.network,
      writable: stranger === undefined ? writableGit(records.directory, repository) : [],
    },
    directory: records.directory,
    home: world.home,
    workTree: fingerprints,
    signal: world.signal,
    isAgainOnFailure: true,
    filesOf,
  }
  // A gate runs agents' code that may write into the repository's `.git`, as in a round.
  const gates = await whileGuarded(
    {
      repository,
      workTree: records.directory,
      setAsideDir: join(
        stranger === undefined ? records.sessionFolder(certificate.session) : records.folder,
        'set-aside',
      ),
      baselineFile: records.guard,
      leaveOut: [records.root],
      reach: { env: world.env, sandbox: certificate.sandbox },
    },
    { say, what: "A gate changed what the person's git runs" },
    () => runAll(again, required, say),
  )
  const notStarted = gates.find(({ status }) => status === 'not-started')
  const failing = gates.filter(gate => !passes(gate))
  if (failing.length === 0) return judged({ kind: 'still-true' }, gates)
  if (notStarted)
    return judged(
      cannotTell([`${notStarted.gate.name} could not be run`, notStarted.problem ?? []].flat().join(': ')),
      gates,
    )
  const verdict = await findBreak({
    certificate,
    failing,
    git: fingerprints.git,
    head,
    tree,
    isKept: changed !== null,
    key: records.key,
    run: (gate, directory) => runInScratch(again, gate, directory),
    differs: (before, after) => fingerprints.changed(before, after),
    say,
  })
  return judged(verdict, gates)
}

async function holderOf(
  fingerprints: Fingerprints,
  then: string,
  now: string,
  head: string | null,
): Promise<Verification['same']> {
  if (now === then) return 'files'
  const held = head === null ? null : await fingerprints.mending(git => treeOfCommit(git, head))
  return held === then ? 'head' : null
}

async function runAll(again: GatesAgain, gates: Certificate['gates'], say: Say): Promise<GateRun[]> {
  const runs: GateRun[] = []
  for (const gate of gates) {
    say(`runs again: ${gate.name}`)
    runs.push(await runAgain(again, gate))
  }
  return runs
}

/** Null if the certified files are no longer stored. */
async function changedSince(fingerprints: Fingerprints, before: string, now: string): Promise<Difference | null> {
  if (before === now) return { paths: [], count: 0 }
  const isKept = await fingerprints.mending(git => runGit(git.setting, ['cat-file', '-e', `${before}^{tree}`]))
  return isKept.ok ? await fingerprints.changed(before, now) : null
}

const NOTHING_TO_RUN = 'this session had no gates; use --verify next time'

/** A certificate, and other values of the session that its gates need. */
export interface Found {
  certificate: Certificate
  /** `key=value` pairs for codex. */
  overrides: readonly string[]
  /** Globs of files that belong to the tree although git ignores them. */
  lookedAt: string[]
  /** Returns the files of the check of this name while it runs; none: it is a gate. */
  filesOf(name: string): readonly { path: string; text: string }[]
  /**
   * Returns why a foreign certificate's commands must not run here, as a clause; null: they may. Left out: the certificate
   * is from these records.
   */
  stranger?(of: {
    same: Verification['same']
    /** Whether the certified files are stored here. */
    isKept: boolean
    gates: readonly CertifiedGate[]
  }): Promise<string | null>
}

/**
 * Returns the certificate of the meant session, or of the newest finished one. It always comes from the records, because
 * agents can write its copy. Throws a `UserError` if there is none.
 * @param say receives sentences for the person
 */
export async function findCertificate(
  records: Records,
  wanted: string | null,
  say: (remark: string) => void,
): Promise<Found> {
  const newest = wanted === null ? await newestProved(records, say) : null
  const named = newest?.id ?? wanted
  if (named === null) {
    throw new UserError(
      'CM0702',
      `No session in ${records.directory} has a certificate, because none is done. So there is nothing to verify.`,
    )
  }
  if (isLandingId(named)) return await readLanding(records, named)
  const state = newest?.state ?? (await stateOf(records, await findSession(records, named)))
  const { id } = state
  if (!isDone(state)) {
    throw new UserError('CM0702', `Session ${id} is not done, so there is nothing to verify.`, {
      hint: `codemachine logs ${id} shows what happened.`,
    })
  }
  const path = certificatePath(records, id)
  const read = await readBoundedText(path, CERTIFICATE_BYTES)
  if (read === 'missing')
    throw new UserError('CM0702', `${path} is missing, so nothing shows what session ${id} proved.`)
  if ('problem' in read) throw new UserError('CM0703', `${path} ${read.problem}, so nothing shows what was proved.`)
  const certificate = parseCertificate(read.text, path)
  if (certificate.session !== id) throw new UserError('CM0703', `${path} is the certificate of another session.`)
  await compareCopy(records.directory, id, read.text, say)
  const checks = checksOf(certificate)
  return {
    certificate,
    overrides: state.overrides,
    lookedAt: globsLookedAt(state.gates, state.kind?.addsGates ?? false),
    filesOf: name => {
      const found = checks.find(({ gate }) => gate.name === name)
      const sentence = state.contract?.frozen?.sentences.find(({ id }) => id === found?.sentence)
      const check = found && sentence?.checks[found.check - 1]
      return found && check ? filesIn(folderOfCheck(found.sentence, found.check), check) : []
    },
  }
}

/** Returns the newest certified session or landing (`state`: null) of a directory. Null: none. */
export async function newestProved(
  records: Records,
  say: (remark: string) => void,
): Promise<{ id: string; at: number; state: SessionState | null } | null> {
  const state = await newestDone(records, say)
  const landing = await newestLanding(records).catch((error: unknown) => {
    say(messageOf(error))
    return nullIfUserError(error)
  })
  const at = landing === null ? 0 : Date.parse(landing.certificate.endedAt)
  if (landing !== null && at >= (state?.updatedAt ?? 0)) return { id: landing.certificate.session, at, state: null }
  return state && { id: state.id, at: state.updatedAt, state }
}

async function newestDone(records: Records, say: (remark: string) => void): Promise<SessionState | null> {
  for (const id of (await records.sessions()).reverse()) {
    // Do not read long journals without need.
    if (!(await pathExists(certificatePath(records, id)))) continue
    try {
      const state = await stateOf(records, id)
      if (isDone(state)) return state
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      say(error.message)
    }
  }
  return null
}

async function stateOf(records: Records, id: string): Promise<SessionState> {
  const state = await foldJournal(records, id)
  if (state === null) throw new UserError('CM0607', `${records.journal(id)} has no session.`)
  return state
}

/** A session that was resumed after it was done is not done. */
function isDone({ ended }: SessionState): boolean {
  return ended?.outcome.kind === 'done'
}

/** Returns the absolute path of a session's certificate; the file exists once the session is done. */
export function certificatePath(records: Records, id: string): string {
  return join(records.sessionFolder(id), 'done.json')
}

async function compareCopy(directory: string, id: string, text: string, say: (remark: string) => void): Promise<void> {
  const folder = join('.codemachine', 'projects', id)
  if ((await findObstacle(directory, folder)) !== null) return
  const copy = await readTextFile(join(directory, folder, 'done.json'), CERTIFICATE_BYTES)
  if (copy.kind === 'gone' || (copy.kind === 'text' && copy.text === text)) return
  say(`${join(folder, 'done.json')} was changed; codemachine uses its own record instead.`)
}
