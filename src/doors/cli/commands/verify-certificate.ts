import { appendFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { UserError } from '../../../base/errors.ts'
import type { Required } from '../../../core/rules/certificate.ts'
import { type CheckedBundle, checkBundle } from '../../../project/certificate/check.ts'
import { describeBundle } from '../../../project/certificate/check-words.ts'
import { summaryOfBundle, summaryOfProblem } from '../../../project/certificate/summary.ts'
import { openRecords } from '../../../session/records/records.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { directoryOf, type LookFlags } from '../flags.ts'
import { askEach, orUnwritable } from '../output.ts'
import { listenersOn } from '../run-options.ts'
import { warnOn } from '../warn-on.ts'

interface CertificateFlags extends LookFlags {
  codexBin?: string
  /** The file as typed; left out: the note. */
  certificate?: string | undefined
  signers?: string | undefined
  run: boolean
  yes?: true | undefined
  network?: true | undefined
  require?: Required | undefined
  /** A file as typed. */
  summary?: string | undefined
}

/** Stands for a file of signers: every bundle is accepted, also an unsigned one. */
const ANYBODY = 'anybody'

/** `codemachine verify --certificate`: whether what somebody else proved is true of the files here. */
export async function verifyCertificate(context: CliContext, flags: CertificateFlags): Promise<number> {
  const summary = flags.summary === undefined ? null : resolve(context.cwd, flags.summary)
  if (flags.require !== undefined && flags.signers === undefined)
    throw new UserError('CM0102', `--require needs --signers FILE; --signers ${ANYBODY} accepts every certificate.`)
  try {
    const checked = await check(context, flags)
    if (summary !== null) await orUnwritable('summary', summary, appendFile(summary, summaryOfBundle(checked)))
    context.stdout.write(flags.json ? `${JSON.stringify(jsonOf(checked))}\n` : describeBundle(checked))
    return checked.holds ? 0 : 4
  } catch (error) {
    if (summary !== null && error instanceof UserError)
      await orUnwritable('summary', summary, appendFile(summary, summaryOfProblem(error.message)))
    throw error
  }
}

async function check(context: CliContext, flags: CertificateFlags): Promise<CheckedBundle> {
  const { stdin, stdout } = context
  const { json, certificate = null, signers, run, yes, network = false, codexBin } = flags
  const say = warnOn(context)
  const records = await openRecords({ ...context, directory: directoryOf(context, flags) })
  return await checkBundle(context, records, {
    file: certificate,
    signers: signers === ANYBODY ? undefined : signers,
    runs: run,
    network,
    require: flags.require,
    ...(codexBin === undefined ? {} : { codexBin }),
    say,
    onDebug: listenersOn(context, {}).onDebug,
    async confirm(lines, signer) {
      const whose = signer === null ? 'of somebody unknown' : `of ${oneLine(signer.name ?? signer.key, 100)}`
      const canAsk = stdin.isTTY === true && stdout.isTTY === true && !json
      const write = canAsk ? (text: string) => void stdout.write(`${text}\n`) : say
      write(`Commands ${whose}, for the sandbox${network ? ', with the network' : ''}:`)
      for (const line of lines) write(`  ${oneLine(line, 1000)}`)
      if (yes) return true
      if (!canAsk)
        throw new UserError(
          'CM0105',
          'Without a terminal, you cannot confirm these commands; use --yes to run them, or --no-run to leave them out.',
        )
      const [answer = false] = await askEach(context, ['Run them here?'], false)
      return answer
    },
  })
}

/** What `--json` prints. */
function jsonOf({ gates, certificate, signer, same, commit, changed, ...checked }: CheckedBundle): object {
  return {
    v: 1,
    ...checked,
    origin: signer,
    time: certificate.endedAt,
    subject: { tree: certificate.tree, commit, same, changed },
    gates: gates.map(({ gate, ...run }) => ({ name: gate.name, run: gate.run, ...run })),
  }
}
