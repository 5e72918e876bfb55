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

/** What is made into a bundle, and where that goes. */
interface MakeOptions {
  /** As typed; null for the newest that is done. */
  session: string | null
  /** The key to sign with, as typed; left out: it is not signed. */
  sign?: string | undefined
  /** Whether it becomes a note on the commit. */
  note: boolean
  /** The commit of the note, if it is not in the history of HEAD; left out: one that is found. */
  commit?: string
  /** Told a sentence of each thing that a person should know. */
  say(text: string): void
}

/** The bundle of a session that is done. */
interface MadeBundle {
  session: string
  text: string
  /** The types of its predicates. */
  types: readonly string[]
  /** Of the key that signed it; null: nobody did. */
  keyid: string | null
  /** The commit that holds all of the proved files; null: none is known. */
  commit: string | null
}

/** Makes the bundle of a session that is done. A `UserError` if there is none, or it cannot be signed or noted. */
export async function makeBundle(world: World, own: Records, options: MakeOptions): Promise<MadeBundle> {
  const { sign, note, say } = options
  const { records, found } = await findDone(own, options, world.platform)
  const redactor = redactorOfProject(world, records)
  const certificate = redactor.event(found.certificate)
  const commit = options.commit ?? (await commitOf(world, records, certificate, say))
  if (note && commit === null)
    throw new UserError('CM0710', `No commit holds all of the proved files, so there is none for a note; commit them.`)
  // Of a landing the checks of its parts are gates.
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

/** A commit that holds the whole tree: the one of the end, or one since. */
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
  // A landing claims nothing.
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
