import type { CliContext } from '../context.ts'
import { makeChecks } from '../doctor/all-checks.ts'
import { openBench } from '../doctor/bench.ts'
import type { Finding } from '../doctor/finding.ts'
import { conclusion, findingLines } from '../doctor/finding-lines.ts'
import { wantsColour } from '../wants-colour.ts'

/** `codemachine doctor`: looks whether all that a run needs is there, and changes nothing. 4 if something has to be mended. */
export async function doctor(
  context: CliContext,
  options: { directory: string; codexBin?: string; json?: boolean },
): Promise<number> {
  const { stdout, signal } = context
  const colour = wantsColour(context)
  const findings: Finding[] = []
  await using bench = await openBench(context)
  for await (const found of makeChecks(bench, { directory: options.directory, codexBin: options.codexBin ?? null })) {
    findings.push(...found)
    if (options.json) continue
    for (const line of found.flatMap(finding => findingLines(finding, colour))) stdout.write(`${line}\n`)
  }
  if (signal.aborted) return signal.reason === 'SIGTERM' ? 143 : 130
  stdout.write(options.json ? `${JSON.stringify(findings)}\n` : `\n${conclusion(findings)}\n`)
  return findings.some(({ status }) => status === 'problem') ? 4 : 0
}
