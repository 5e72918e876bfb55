import { homedir } from 'node:os'
import { systemClock } from '../base/clock.ts'
import { UserError } from '../base/errors.ts'
import type { CliContext } from './context.ts'
import { runCommandLine } from './main.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Runs the command line of this process and sets its exit code. The one place where anything thrown is shown. */
export async function main(process: NodeJS.Process): Promise<void> {
  const ending = new AbortController()
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      // A second one does not wait: what is left ends with our pipes, or at the next start.
      if (ending.signal.aborted) process.exit(signal === 'SIGTERM' ? 143 : 130)
      ending.abort(signal)
    })
  }
  // A reader that has gone away (`| head`, a closed terminal) ends the printing, not the work.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  const context: CliContext = {
    env: process.env,
    cwd: process.cwd(),
    home: homedir(),
    platform: process.platform,
    arch: process.arch,
    pid: process.pid,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    clock: systemClock,
    signal: ending.signal,
  }
  const fail = (error: unknown) => {
    process.exitCode = showError(error, context)
  }
  process.on('uncaughtException', error => {
    fail(error)
    ending.abort('SIGTERM')
  })
  try {
    const exitCode = await runCommandLine(context, process.argv.slice(2))
    process.exitCode ??= exitCode
  } catch (error) {
    fail(error)
  }
}

function showError(error: unknown, { stderr }: CliContext): number {
  if (error instanceof UserError) {
    stderr.write(`codemachine: ${error.message}\n${error.hint === null ? '' : `  ${error.hint}\n`}`)
    return error.exitCode
  }
  stderr.write(`codemachine: this is a bug in codemachine. Please report it with what follows.\n`)
  stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  return 1
}
