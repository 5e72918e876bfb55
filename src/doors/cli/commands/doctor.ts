import { styleText } from 'node:util'
import { UserError } from '../../../base/errors.ts'
import type { OnLate } from '../../../project/doctor/checks.ts'
import { examine } from '../../../project/doctor/doctor.ts'
import { lookAtEngines } from '../../../project/look-at-engines.ts'
import { sendSamples } from '../../../project/open-run.ts'
import { conclusionOf, type Finding, lineOfWaiting, linesOfFinding } from '../../../tell/words/doctor.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { directoryOf, type LookFlags, printDone, wantsColour } from '../flags.ts'

/** `codemachine doctor`: looks whether all that a run needs is there, and changes nothing. 4 if something has to be mended. */
export async function doctor(
  context: CliContext,
  { codexBin, json, ...place }: LookFlags & { codexBin?: string },
): Promise<number> {
  const onLate = sayWaiting(context)
  const found = examine(context, { directory: directoryOf(context, place), codexBin: codexBin ?? null, onLate })
  return await showFindings(context, found, { json: json === true })
}

/** `codemachine engines`: the agents that can run rounds, each tried in its box. */
export async function engines(context: CliContext, { json, ...place }: LookFlags): Promise<number> {
  const findings = await lookAtEngines(context, directoryOf(context, place))
  if (json) {
    context.stdout.write(`${JSON.stringify(findings)}\n`)
    return 0
  }
  const paint = wantsColour(context) ? coloured : undefined
  for (const line of findings.flatMap(finding => linesOfFinding(finding, paint))) context.stdout.write(`${line}\n`)
  return 0
}

/**
 * Prints findings as they come, and what they come to; resolves with the exit code.
 * @param what the subject of the last sentence, where it is not codemachine here
 */
export async function showFindings(
  context: CliContext,
  all: AsyncIterable<readonly Finding[]>,
  { json, what }: { json: boolean; what?: { who: string; where: string } },
): Promise<number> {
  const { stdout, signal } = context
  const paint = wantsColour(context) ? coloured : undefined
  const findings: Finding[] = []
  for await (const found of all) {
    findings.push(...found)
    if (json) continue
    for (const line of found.flatMap(finding => linesOfFinding(finding, paint))) stdout.write(`${line}\n`)
  }
  if (signal.aborted) return signal.reason === 'SIGTERM' ? 143 : 130
  stdout.write(json ? `${JSON.stringify(findings)}\n` : `\n${conclusionOf(findings, what)}\n`)
  return findings.some(({ status }) => status === 'problem') ? 4 : 0
}

/** Says on stderr that a check has no answer yet. */
export function sayWaiting({ stderr }: CliContext): OnLate {
  return (check, ms) => stderr.write(`${lineOfWaiting(check, ms)}\n`)
}

const COLOURS = { ok: 'green', warning: 'yellow', problem: 'red' } as const

function coloured(word: string, status: Finding['status']): string {
  return styleText(COLOURS[status], word, { validateStream: false })
}

/** `codemachine notify`: sends a sample through every way that the settings name, and says what became of it. */
export async function notify(context: CliContext, flags: LookFlags): Promise<number> {
  const results = await sendSamples(context, directoryOf(context, flags), context.stdout.isTTY ? context.stdout : null)
  if (results.length === 0) {
    throw new UserError(
      'CM0208',
      'The settings name no way to notify you; set notify.command, notify.webhook or notify.bell.',
      {
        hint: 'In your own config.toml: docs/reference/notifications.md shows how.',
      },
    )
  }
  printDone(context, flags, results.map(({ channel, problem }) => `${channel}: ${problem ?? 'sent'}`).join('\n'), {
    results,
  })
  return results.every(({ problem }) => problem === null) ? 0 : 4
}
