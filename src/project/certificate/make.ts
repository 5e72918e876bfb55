import { resolve } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { namesOfChecks, type SessionPredicate, type Statement, statementsOf } from '../../core/rules/attestations.ts'
import { sha256Of } from '../../platform/files.ts'
import { eachEvent } from '../../session/records/journal.ts'
import type { Records } from '../../session/records/records.ts'
import { commitWithTree } from '../../workspace/git/commits.ts'
import { findRepository, readHead } from '../../workspace/git/git.ts'
import { openCheckout } from '../../workspace/worktree/worktree.ts'
import { isLandingId } from '../proof/landing-record.ts'
import { findDone } from '../proof/verify.ts'
import { lookAtSavepoints } from '../savepoints.ts'
import { redactorOfProject } from '../secrets/redactor.ts'
import type { World } from '../world.ts'
import { bundleText } from './bundle.ts'
import { writeNote } from './note.ts'
import { SshKeygen } from './ssh-signature.ts'

/** What to put into a bundle, and where to store it. */
interface MakeOptions {
  /** As typed; null: the newest finished session. */
  session: string | null
  /** Signing key, as typed; left out: do not sign. */
  sign?: string | undefined
  /** Whether to add it as a note to the commit. */
  note: boolean
  /** Commit for the note if it is not in the history of HEAD; left out: search for it. */
  commit?: string
  /** Receives one sentence for each thing that a person should know. */
  say(text: string): void
}

/** The bundle of a finished session. */
interface MadeBundle {
  session: string
  text: string
  /** Types of its predicates. */
  types: readonly string[]
  /** Id of the signing key; null: not signed. */
  keyid: string | null
  /** Commit that holds all proved files; null: unknown. */
  commit: string | null
}

/** Makes the bundle of a finished session. Throws a `UserError` if there is none, or signing or noting fails. */
export async function makeBundle(world: World, own: Records, options: MakeOptions): Promise<MadeBundle> {
  const { sign, note, say } = options
  const { records, found } = await findDone(own, options, world.platform)
  const redactor = redactorOfProject(world, records)
  const certificate = redactor.event(found.certificate)
  const commit = options.commit ?? (await commitOf(world, records, certificate, say))
  if (note && commit === null)
    throw new UserError('CM0710', `No commit contains all proved files, so the note has no place; commit these files.`)
  // In a landing, the checks of its parts are gates.
  const names = [...namesOfChecks(certificate), ...certificate.gates.map(gate => gate.name)]
  const checks = names.map(name => ({ name, files: [...found.filesOf(name)] })).filter(({ files }) => files.length > 0)
  const statements: Statement[] = statementsOf(certificate, {
    commit,
    lookedAt: found.lookedAt,
    checks: redactor.event(checks),
    refused: redactor.event(await refusedIn(records, certificate.session)),
    sha256: sha256Of,
  })
  await using keygen = sign === undefined ? null : await SshKeygen.open(world, records)
  const signer = keygen === null ? null : await keygen.signerOf(sign ?? '', resolve(world.cwd, sign ?? ''))
  if (signer !== null && (certificate.network || certificate.sandbox === 'danger-full-access'))
    say('Rounds of this session had the network, or no sandbox, so an agent could have asked ssh-agent to sign, too.')
  const text = await bundleText(statements, signer)
  if (note && commit !== null) await writeNote(await openCheckout(records.directory, world.env), commit, text)
  const types = statements.map(({ predicateType }) => predicateType)
  return { session: certificate.session, text, types, keyid: signer?.keyid ?? null, commit }
}

/** Returns a commit that holds the whole tree: the one at the end of the session, or a later one. */
async function commitOf(
  world: World,
  records: Records,
  { tree, git }: { tree: string; git: { commit: string | null; holdsAll: boolean | null } | null },
  say: (text: string) => void,
): Promise<string | null> {
  if (git?.holdsAll === true) return git.commit
  const repository = await findRepository(records.directory)
  const head = repository === null ? null : (await readHead(repository)).commit
  if (head === null) return null
  await using open = await lookAtSavepoints(world, records, say)
  return open === null ? null : await commitWithTree(open.fingerprints.git, head, tree)
}

const MOST_REFUSED = 20

async function refusedIn(records: Records, id: string): Promise<SessionPredicate['refused']> {
  const all: SessionPredicate['refused']['last'] = []
  // A landing makes no claim.
  if (isLandingId(id)) return { count: 0, last: all }
  const only = 'done-refused'
  await eachEvent(
    records.journal(id),
    event => {
      if (event.type === only) all.push({ round: event.round, reason: event.reason })
    },
    { only },
  )
  return { count: all.length, last: all.slice(-MOST_REFUSED) }
}
