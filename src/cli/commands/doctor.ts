import { hostname } from 'node:os'
import { styleText } from 'node:util'
import { makeChecks } from '../../app/doctor/doctor.ts'
import { type Finding, openCheckRun } from '../../app/doctor/finding.ts'
import { settingsOf } from '../../app/project.ts'
import type { CliContext } from '../../app/world.ts'
import { UserError } from '../../base/errors.ts'
import { sendTest } from '../../notify/notifier.ts'
import { writableByAgents } from '../../platform/files.ts'
import { openRecords } from '../../records/records.ts'
import { oneLine } from '../../words/cells.ts'
import { formatCount } from '../../words/numbers.ts'
import { findRepository } from '../../workspace/git/git.ts'
import { wantsColour } from '../flags.ts'

/** `codemachine doctor`: looks whether all that a run needs is there, and changes nothing. 4 if something has to be mended. */
export async function doctor(
  context: CliContext,
  options: { directory: string; codexBin?: string; json?: boolean },
): Promise<number> {
  const { stdout, signal } = context
  const colour = wantsColour(context)
  const findings: Finding[] = []
  await using checkRun = await openCheckRun(context)
  for await (const found of makeChecks(checkRun, {
    directory: options.directory,
    codexBin: options.codexBin ?? null,
  })) {
    findings.push(...found)
    if (options.json) continue
    for (const line of found.flatMap(finding => findingLines(finding, colour))) stdout.write(`${line}\n`)
  }
  if (signal.aborted) return signal.reason === 'SIGTERM' ? 143 : 130
  stdout.write(options.json ? `${JSON.stringify(findings)}\n` : `\n${conclusion(findings)}\n`)
  return findings.some(({ status }) => status === 'problem') ? 4 : 0
}

const TEXT_CHARS = 1000
const STATUS_WIDTH = 'problem'.length
const CHECK_WIDTH = 'codex-config'.length
const INDENT = ' '.repeat(STATUS_WIDTH + CHECK_WIDTH + 4)
const COLOURS = { ok: 'green', warning: 'yellow', problem: 'red' } as const

/** A finding for a person: a line, and one with its mend if it has one. */
function findingLines({ check, status, message, mend }: Finding, colour: boolean): string[] {
  const word = status.padEnd(STATUS_WIDTH)
  const shown = colour ? styleText(COLOURS[status], word, { validateStream: false }) : word
  const line = `${shown}  ${check.padEnd(CHECK_WIDTH)}  ${oneLine(message, TEXT_CHARS)}`
  return mend === null ? [line] : [line, `${INDENT}→ ${oneLine(mend, TEXT_CHARS)}`]
}

/** What all findings come to, in a sentence. */
function conclusion(findings: readonly Finding[]): string {
  const count = (status: Finding['status']) => findings.filter(finding => finding.status === status).length
  const [problems, warnings] = [count('problem'), count('warning')]
  const noted = warnings === 0 ? '' : ` (${formatCount(warnings, 'warning')})`
  if (problems === 0) return `codemachine can work here${noted}.`
  return `codemachine cannot work here until ${formatCount(problems, 'problem')} ${problems === 1 ? 'is' : 'are'} mended${noted}.`
}

/** `codemachine notify`: sends a sample through every way that the settings name, and says what became of it. */
export async function notify(context: CliContext, options: { directory: string }): Promise<number> {
  const { directory } = await openRecords({ ...context, directory: options.directory })
  const { settings } = await settingsOf(context, directory, {})
  const repository = await findRepository(directory)
  const where = writableByAgents(directory, context.env, repository ? [repository.gitDir, repository.commonDir] : [])
  const results = await sendTest(settings.notify, { ...context, where, host: hostname(), directory })
  if (results.length === 0) {
    throw new UserError('The settings name no way to notify you; set notify.command, notify.webhook or notify.bell.', {
      hint: 'In your own config.toml: docs/notifications.md shows how.',
    })
  }
  for (const { door, problem } of results) context.stdout.write(`${door}: ${problem ?? 'sent'}\n`)
  return results.every(({ problem }) => problem === null) ? 0 : 4
}
