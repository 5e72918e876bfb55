import { join, posix, resolve } from 'node:path'
import { Interrupted, UserError } from '../../base/errors.ts'
import { parsedOrNull } from '../../base/json.ts'
import {
  type Certificate,
  type CertifiedGate,
  lackOf,
  parseCertificate,
  type Required,
} from '../../core/rules/certificate.ts'
import { isWritableByAgents, readBoundedText, writeWholeFile } from '../../platform/files.ts'
import { secretVariables } from '../../secrets/variables.ts'
import type { Records } from '../../session/records/records.ts'
import { shortHash } from '../../workspace/git/commits.ts'
import { writableIn } from '../../workspace/git/find-git.ts'
import { openCheckout } from '../../workspace/worktree/worktree.ts'
import { type Found, type Verification, verifyFound } from '../proof/verify.ts'
import type { World } from '../world.ts'
import { type Bundle, parseBundle, readBundleFile } from './bundle.ts'
import { readNote } from './note.ts'
import { type Signer, SshKeygen } from './ssh-signature.ts'

/** Bundle to check, and how. */
interface CheckOptions {
  /** The file as typed; null: the note on HEAD, or before it. */
  file: string | null
  /** File of allowed signers, as typed; left out: the owner of the key stays unknown. */
  signers?: string | undefined
  /** Whether to run its commands again. */
  runs: boolean
  /** Whether they may use the network, if the session could. */
  network: boolean
  /** What the bundle must say about these files; left out: no demand. */
  require?: Required | undefined
  codexBin?: string
  /** Asks once per signer whether a stranger's commands may run here. */
  confirm(lines: readonly string[], signer: Signer | null): Promise<boolean>
  say(text: string): void
  onDebug?: ((line: string) => void) | undefined
}

/** Result of a bundle check. */
export interface CheckedBundle extends Verification {
  certificate: Certificate
  /** Null: not signed. */
  signer: Signer | null
  /** Commit that holds all proved files; null: it names none. */
  commit: string | null
  /** Whether its commands ran again. */
  ran: boolean
  /** Why it does not meet `require`, as a clause; null: it does. */
  unmet: string | null
  /** Whether it meets `require`, and its commands passed. If they were not to run: whether its files are here. */
  holds: boolean
}

/** Most globs of ignored files in a bundle, and the longest glob, in characters. */
const MOST_GLOBS = 200
const LONGEST_GLOB = 500
const SIGNERS_BYTES = 1024 * 1024
const CHECKS = '.codemachine/checks/'

/** Checks a bundle against this checkout, without the session's records. Throws a `UserError` if it proves nothing. */
export async function checkBundle(world: World, records: Records, options: CheckOptions): Promise<CheckedBundle> {
  const { file, runs, network, require, confirm } = options
  const { name, text } = await textOf(world, records, file)
  const bundle = parseBundle(text, name)
  const signer = await signerOf(world, records, bundle, { ...options, name })
  const { session, commit } = bundle
  const said = parseCertificate(JSON.stringify({ ...session.certificate, directory: records.directory }), name)
  if (runs && said.sandbox === 'danger-full-access')
    throw new UserError(
      'CM0709',
      `${name} comes from a session without a sandbox, so its commands would run unprotected; use --no-run.`,
    )
  // Limit each gate to the session's own network access.
  const gates = said.gates.map(gate => ({ ...gate, network: gate.network && network }))
  const git = commit === null ? said.git : { commit, branch: null, holdsAll: true }
  const certificate: Certificate = { ...said, gates, git, network: said.network && network }
  let ran = false
  const found: Found = {
    certificate,
    overrides: [],
    lookedAt: globsOf(bundle, name),
    filesOf: filesOf(bundle, name),
    stranger: async ({ same, isKept, gates }) => {
      if (same === null && !isKept)
        throw new UserError('CM0703', `${name} belongs to another repository: no commit here contains its files.`)
      if (!runs) return 'its commands did not run (--no-run)'
      const isConfirmed = await isTrusted(records, signer, () => confirm(linesOf(gates), signer))
      if (world.signal.aborted) throw new Interrupted(world.signal.reason)
      ran = isConfirmed
      return isConfirmed ? null : 'nobody confirmed its commands'
    },
  }
  const verification = await verifyFound({ ...world, env: withoutSecrets(world.env) }, options, records, found)
  const { same, verdict } = verification
  const unmet = require && (same === null ? 'these are not the files that were proved' : lackOf(certificate, require))
  const holds = (runs ? verdict.kind === 'still-true' : same !== null) && !unmet
  return { ...verification, certificate, signer, commit, ran, unmet: unmet ?? null, holds }
}

/** Returns the environment for a stranger's commands, without secrets. */
function withoutSecrets(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const secret = new Set(secretVariables(env).map(({ name }) => name))
  return Object.fromEntries(Object.entries(env).filter(([name]) => !secret.has(name)))
}

async function textOf(
  { cwd, env }: World,
  { directory }: Records,
  file: string | null,
): Promise<{ name: string; text: string }> {
  if (file !== null) return { name: file, text: await readBundleFile(resolve(cwd, file)) }
  const { commit, text } = await readNote(await openCheckout(directory, env))
  return { name: `The note on ${shortHash(commit)}`, text }
}

/** Returns the one signer of all lines. If a line has another signer or none, somebody added it. */
async function signerOf(
  world: World,
  records: Records,
  { attestations }: Bundle,
  { signers, name, say }: Pick<CheckOptions, 'signers' | 'say'> & { name: string },
): Promise<Signer | null> {
  const envelopes = attestations.flatMap(({ envelope }) => envelope ?? [])
  if (envelopes.length === 0 && signers === undefined) return null
  if (envelopes.length === 0)
    throw new UserError('CM0708', `${name} is not signed, so it comes from no signer of --signers.`)
  if (envelopes.length < attestations.length)
    throw new UserError('CM0708', `${name} was changed: only some of its lines are signed.`)
  const allowed = signers === undefined ? null : resolve(world.cwd, signers)
  if (allowed !== null) await lookAtSigners(world, records, allowed, say)
  await using keygen = await SshKeygen.open(world, records)
  let signer: Signer | null = null
  for (const { signed, signatures } of envelopes) {
    const [signature = Buffer.alloc(0)] = signatures
    const each = await keygen.signerIn({ signed, signature }, allowed, name)
    signer ??= each
    if (each.key !== signer.key)
      throw new UserError(
        'CM0708',
        `${name} has lines of two signers, ${signer.key} and ${each.key}, so somebody put two certificates together.`,
      )
  }
  return signer
}

async function lookAtSigners(
  { env }: World,
  { directory }: Records,
  path: string,
  say: (text: string) => void,
): Promise<void> {
  const read = await readBoundedText(path, SIGNERS_BYTES)
  if (read === 'missing')
    throw new UserError('CM0106', `The file ${path} does not exist; name a file of allowed signers.`)
  if ('problem' in read) throw new UserError('CM0106', `${path} ${read.problem}; name a file of allowed signers.`)
  if (isWritableByAgents(path, await writableIn(directory, env)))
    say(`Agents can write ${path}, so it vouches for nobody; keep it elsewhere.`)
}

function globsOf({ session: { lookedAt } }: Bundle, name: string): string[] {
  if (lookedAt.length <= MOST_GLOBS && lookedAt.every(glob => glob.length <= LONGEST_GLOB)) return lookedAt
  throw new UserError(
    'CM0703',
    `${name} has more than ${MOST_GLOBS} patterns of ignored files in lookedAt, or one of more than ${LONGEST_GLOB} characters.`,
  )
}

/** Returns the files of its checks. They may be only in the folder of the checks. */
function filesOf({ session: { checks } }: Bundle, name: string): Found['filesOf'] {
  const outside = checks
    .flatMap(({ files }) => files)
    .find(({ path }) => !path.startsWith(CHECKS) || posix.normalize(path) !== path)
  if (outside !== undefined)
    throw new UserError('CM0703', `${name} was changed: a check has a file outside of ${CHECKS}.`)
  return of => checks.find(check => check.name === of)?.files ?? []
}

function linesOf(gates: readonly CertifiedGate[]): string[] {
  return gates.map(({ run }) => run)
}

/** Asks once per key; an unsigned bundle is asked about each time. */
async function isTrusted(
  { folder }: Pick<Records, 'folder'>,
  signer: Signer | null,
  confirm: () => Promise<boolean>,
): Promise<boolean> {
  const path = join(folder, 'signers.json')
  const read = await readBoundedText(path, SIGNERS_BYTES)
  const known = read === 'missing' || 'problem' in read ? [] : parsedOrNull(read.text)
  const keys: string[] = Array.isArray(known) ? known.filter(each => typeof each === 'string') : []
  if (signer !== null && keys.includes(signer.key)) return true
  const isConfirmed = await confirm()
  if (isConfirmed && signer !== null) await writeWholeFile(path, JSON.stringify([...keys, signer.key]))
  return isConfirmed
}
