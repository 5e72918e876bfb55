import { resolve } from 'node:path'
import { UserError } from '../../../base/errors.ts'
import { writeWholeFile } from '../../../platform/files.ts'
import { makeBundle } from '../../../project/certificate/make.ts'
import { openRecords } from '../../../session/records/records.ts'
import { shortHash } from '../../../workspace/git/commits.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { directoryOf, type LookFlags } from '../flags.ts'
import { orUnwritable } from '../output.ts'
import { warnOn } from '../warn-on.ts'

interface CertificateFlags extends LookFlags {
  /** As typed; left out, or `-`: stdout. */
  out?: string
  sign?: string
  note?: true
}

/** `codemachine certificate`: what was proved of a session, as a bundle that others can check. */
export async function certificate(
  context: CliContext,
  session: string | undefined,
  flags: CertificateFlags,
): Promise<number> {
  const { sign, note = false, json } = flags
  const out = flags.out === undefined || flags.out === '-' ? null : resolve(context.cwd, flags.out)
  if (json && out === null && !note)
    throw new UserError(
      'CM0102',
      'The certificate is already printed as JSON lines; use --json only with --out FILE or --note.',
    )
  const say = warnOn(context)
  const records = await openRecords({ ...context, directory: directoryOf(context, flags) })
  const made = await makeBundle(context, records, { session: session ?? null, sign, note, say })
  if (out !== null) await orUnwritable('certificate', out, writeWholeFile(out, made.text))
  const { text, types, keyid, commit, ...rest } = made
  if (json) {
    context.stdout.write(`${JSON.stringify({ v: 1, ...rest, types, keyid, commit, note, out })}\n`)
    return 0
  }
  if (out === null && !note) context.stdout.write(text)
  if (out !== null) context.stdout.write(`${out}\n`)
  if (note && commit !== null) context.stdout.write(`note on ${shortHash(commit)} (refs/notes/codemachine)\n`)
  if (keyid === null) say('It is not signed, so it proves nothing about its origin; --sign KEY signs it.')
  return 0
}
