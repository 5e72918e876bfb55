import { UserError } from '../../../base/errors.ts'
import type { Required } from '../../../core/rules/certificate.ts'
import { type Verified, verifySession } from '../../../project/proof/verify.ts'
import { describeVerification } from '../../../project/proof/verify-words.ts'
import { openRecords } from '../../../session/records/records.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { directoryOf, type LookFlags } from '../flags.ts'
import { listenersOn } from '../run-options.ts'
import { warnOn } from '../warn-on.ts'

interface VerifyFlags extends LookFlags {
  codexBin?: string
  /** The file of a bundle, as typed. */
  certificate?: string
  /** Whether the bundle is the note on HEAD. */
  note?: true
  signers?: string
  run?: boolean
  yes?: true
  network?: true
  require?: Required
  /** A file of Markdown, as typed. */
  summary?: string
}

/** `codemachine verify`: whether what was proved when a session was done is still true, and if not, since when. */
export async function verify(
  context: CliContext,
  session: string | undefined,
  { json = false, certificate, note, signers, run = true, yes, network, require, summary, ...options }: VerifyFlags,
): Promise<number> {
  if (certificate !== undefined || note) {
    if (session !== undefined)
      throw new UserError(
        'CM0102',
        'Name a session, or use --certificate or --note; a session and these options cannot be combined.',
      )
    const { verifyCertificate } = await import('./verify-certificate.ts')
    const ofBundle = { json, certificate, signers, run, yes, network, require, summary }
    return await verifyCertificate(context, { ...ofBundle, ...options })
  }
  const [alone] = [
    ...(signers === undefined ? [] : ['--signers']),
    ...(run ? [] : ['--no-run']),
    ...(yes ? ['--yes'] : []),
    ...(network ? ['--network'] : []),
    ...(require === undefined ? [] : ['--require']),
    ...(summary === undefined ? [] : ['--summary']),
  ]
  if (alone !== undefined) throw new UserError('CM0102', `${alone} works only with --certificate FILE or --note.`)
  const say = warnOn(context)
  const records = await openRecords({ ...context, directory: directoryOf(context, options) })
  const verified = await verifySession(context, records, {
    ...options,
    session: session ?? null,
    say,
    onDebug: listenersOn(context, {}).onDebug,
  })
  context.stdout.write(json ? `${JSON.stringify(jsonOf(verified))}\n` : describeVerification(verified))
  return verified.verdict.kind === 'still-true' ? 0 : 4
}

/** What `--json` prints. */
function jsonOf({ gates, certificate: _, same: __, ...verification }: Verified): object {
  return { v: 1, ...verification, gates: gates.map(({ gate, ...run }) => ({ name: gate.name, run: gate.run, ...run })) }
}
