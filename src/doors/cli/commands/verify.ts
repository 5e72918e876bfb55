import { type Verified, verifySession } from '../../../project/proof/verify.ts'
import { describeVerification } from '../../../project/proof/verify-words.ts'
import { openRecords } from '../../../session/records/records.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { directoryOf, type LookFlags } from '../flags.ts'
import { listenersOn } from '../run-options.ts'

/** `codemachine verify`: whether what was proved when a session was done is still true, and if not, since when. */
export async function verify(
  context: CliContext,
  session: string | undefined,
  { json, ...options }: LookFlags & { codexBin?: string },
): Promise<number> {
  const say = (text: string) => void context.stderr.write(`codemachine: ${oneLine(text, 1000)}\n`)
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
function jsonOf({ gates, certificate: _, ...verification }: Verified): object {
  return { v: 1, ...verification, gates: gates.map(({ gate, ...run }) => ({ name: gate.name, run: gate.run, ...run })) }
}
