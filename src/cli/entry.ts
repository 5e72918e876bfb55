import { homedir } from 'node:os'
import { systemClock } from '../base/clock.ts'
import { Interrupted, messageOf, systemErrorCode, UserError } from '../base/errors.ts'
import type { CliContext } from './context.ts'
import { runCommandLine } from './main.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Runs the command line of this process and sets its exit code. The one place where anything thrown is shown. */
export async function main(process: NodeJS.Process): Promise<void> {
  const ending = new AbortController()
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (!ending.signal.aborted) return ending.abort(signal)
      // A second one does not wait for anything to end by itself.
      void killStarted(process).finally(() => process.exit(signal === 'SIGTERM' ? 143 : 130))
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

/** Loaded only now: it brings what most commands start without. */
async function killStarted({ pid, platform }: NodeJS.Process): Promise<void> {
  const { killMarkedNow } = await import('../platform/kill-marked-now.ts')
  killMarkedNow(pid, platform, systemClock)
}

function showError(error: unknown, { stderr }: CliContext): number {
  if (error instanceof Interrupted) return error.exitCode
  if (error instanceof UserError) {
    stderr.write(`codemachine: ${error.message}\n${error.hint === null ? '' : `  ${error.hint}\n`}`)
    return error.exitCode
  }
  if (isDiskFull(error)) {
    stderr.write(
      `codemachine: a disk is full: ${messageOf(error)}\n  Free some space; codemachine resume goes on then.\n`,
    )
    return 4
  }
  stderr.write(`codemachine: this is a bug in codemachine. Please report it with what follows.\n`)
  stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  return 1
}

/** Also where git, or what a library wraps, says it in its own words. */
function isDiskFull(error: unknown): boolean {
  const code = systemErrorCode(error)
  return code === 'ENOSPC' || code === 'EDQUOT' || /no space left on device|out of diskspace/i.test(messageOf(error))
}
