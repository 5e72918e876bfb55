import { fstatSync, writeSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { type Command, CommanderError } from 'commander'
// It reads the environment of the process while it is loaded, so only the doors may import it.
import { xdgConfig } from 'xdg-basedir'
import { systemClock } from '../../base/clock.ts'
import { describeError, isReaderGone, outputLost, UserError } from '../../base/errors.ts'
import { OWN_ENGINES } from '../../engines/registry.ts'
import { NO_CURRENT_DIRECTORY } from '../../platform/run-process.ts'
import type { ServedPage } from '../../project/page/served.ts'
import type { BegunDetached } from '../../project/start/detached.ts'
import { configHomeOf, DETACHED_VARIABLE, homeOf, OWNED_VARIABLE, redactorOfEnvironment } from '../../project/world.ts'
import { safeText } from '../../tell/words/safe-text.ts'
import type { CliContext } from '../screen/cli-context.ts'
import { hasGlyphs, inAscii, writeInAscii } from '../screen/terminal/ascii.ts'
import { type BareContext, buildFlowProgram, buildProgram } from './program.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Runs the command line of this process and sets its exit code. The one place where anything thrown is shown. */
export async function main(process: NodeJS.Process, program: CliContext['program']): Promise<void> {
  const cwd = whereTyped(process)
  if (cwd === null) return refuseNowhere(process, program)
  const ending = new AbortController()
  const crashListeners = new Set<() => void>()
  const tellOfEnd = () => void [...crashListeners].map(listener => listener())
  let [lent, isLetGo] = [0, false]
  const endNow = (exitCode: number) => {
    tellOfEnd()
    void killStarted(process).finally(() => process.exit(exitCode))
  }
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (signal === 'SIGINT' ? lent > 0 : signal === 'SIGHUP' && (isLetGo || !hasTerminal(process))) return
      if (!ending.signal.aborted) return ending.abort(signal)
      // Of a window that is closed both its shell and the kernel tell.
      if (signal === 'SIGHUP') return
      // A second one does not wait for anything to end by itself.
      endNow(signal === 'SIGTERM' ? 143 : 130)
    })
  }
  endWithOwner(process, () => ending.abort('SIGTERM'))
  const { home, env } = homeOf(process.env, homedir(), () => userInfo().homedir, process.platform)
  const surroundings: Omit<BareContext, keyof Terminal> = {
    program,
    env,
    cwd,
    home,
    configHome: configHomeOf(xdgConfig, home, process.platform),
    platform: process.platform,
    arch: process.arch,
    node: process.versions.node,
    pid: process.pid,
    ownsProcess: true,
    clock: systemClock,
    engines: OWN_ENGINES,
    signal: ending.signal,
    host: hostOf(process, {
      crashListeners,
      lend: by => {
        lent += by
      },
      letGo: () => {
        isLetGo = true
      },
      endNow,
    }),
    own: ownProcess(process),
  }
  let lost: UserError | null = null
  const onLost = (error: unknown) => {
    if (lost !== null) return
    lost = outputLost(error)
    showError(lost, context)
  }
  const context: BareContext = Object.assign(terminalOf(process, onLost), surroundings)
  const fail = (error: unknown) => {
    tellOfEnd()
    const exitCode = showError(error, context)
    // What fell first is what the program ended of.
    process.exitCode ??= exitCode
  }
  process.on('uncaughtException', error => {
    fail(error)
    ending.abort('SIGTERM')
  })
  process.on('exit', () => {
    tellOfEnd()
    // Whatever a command came to: who reads its output must not take it for whole.
    if (lost !== null) process.exitCode ||= lost.exitCode
  })
  try {
    const exitCode = await runCommandLine(context, process.argv.slice(2))
    process.exitCode ??= exitCode
  } catch (error) {
    fail(error)
  }
}

/** What the terminal's program may do to this process. */
function hostOf(
  process: NodeJS.Process,
  own: { crashListeners: Set<() => void>; lend(by: 1 | -1): void; letGo(): void; endNow(exitCode: number): void },
): BareContext['host'] {
  return {
    signals: process,
    writeNow: text => writeAsFarAsPossible(process.stdout.fd, text),
    rawModeOff: () => void (process.stdin.isTTY && process.stdin.setRawMode(false)),
    beforeCrash: listener => {
      own.crashListeners.add(listener)
      return () => own.crashListeners.delete(listener)
    },
    withoutInterrupt: async action => {
      own.lend(1)
      try {
        return await action()
      } finally {
        own.lend(-1)
      }
    },
    endNow: () => own.endNow(130),
    letGo: async farewell => {
      own.letGo()
      const { letGoOfTerminal } = await import('../../platform/terminal.ts')
      await letGoOfTerminal({ ...farewell, self: process, clock: systemClock })
    },
  }
}

/** Has `end` called once who owns this process is gone, however that went: the system closes what it has held. */
function endWithOwner({ env, stdin }: NodeJS.Process, end: () => void): void {
  if (env[OWNED_VARIABLE] === undefined) return
  // What is started from here has other owners.
  delete env[OWNED_VARIABLE]
  stdin.on('error', end).on('close', end).resume()
  if ('unref' in stdin && typeof stdin.unref === 'function') stdin.unref()
}

function ownProcess(process: NodeJS.Process): CliContext['own'] {
  const { execPath, execArgv, argv, env } = process
  const [, script = '', ...args] = argv
  const log = env[DETACHED_VARIABLE]
  // What is started from here is none.
  delete env[DETACHED_VARIABLE]
  const letGo = () => void (process.connected && process.disconnect())
  const tell = (begun: BegunDetached | ServedPage) => void process.send?.(begun, undefined, undefined, letGo)
  return { command: [execPath, ...execArgv, script], args, detached: log === undefined ? null : { log, tell } }
}

type Terminal = Pick<BareContext, 'stdin' | 'stdout' | 'stderr' | 'helpOutput'>

/** Columns of a help that no terminal shows. */
const NO_TERMINAL = 80

/**
 * The streams of a process, and the way of a help to stdout. Each stream is opened when it is asked for: it brings its
 * part of Node's library with it, without which a help does.
 * @param onLost told why what was written to stdout did not arrive
 */
function terminalOf(process: NodeJS.Process, onLost: (error: unknown) => void): Terminal {
  const opened = new Set<'stdin' | 'stdout' | 'stderr'>()
  const open = <Name extends 'stdin' | 'stdout' | 'stderr'>(name: Name): NodeJS.Process[Name] => {
    const stream = process[name]
    // A reader that has gone away (`| head`, a closed terminal) ends the printing, not the work.
    if (!opened.has(name)) {
      stream.on('error', error => {
        if (name === 'stdout' && !isReaderGone(error, stream.isTTY)) onLost(error)
      })
      if (name !== 'stdin') writeInAscii(process[name], process)
    }
    opened.add(name)
    return stream
  }
  // Whether it is a terminal is asked of the stream, which is opened only for a locale that matters.
  const canShow = (text: string) =>
    hasGlyphs(process.env, process.platform) || !open('stdout').isTTY ? text : inAscii(text)
  return {
    get stdin() {
      return open('stdin')
    },
    get stdout() {
      return open('stdout')
    },
    get stderr() {
      return open('stderr')
    },
    helpOutput: {
      write: text => writeWhole(canShow(text), rest => open('stdout').write(rest)),
      // What is no such device is no terminal either.
      columns: () => (fstatSync(1).isCharacterDevice() && open('stdout').isTTY ? open('stdout').columns : NO_TERMINAL),
    },
  }
}

/** Writes a text to stdout, without the stream as far as the terminal, pipe or file takes it so; `write` gets the rest. */
function writeWhole(text: string, write: (rest: Buffer) => void): void {
  const bytes = Buffer.from(text)
  let done = 0
  try {
    while (done < bytes.length) done += writeSync(1, bytes, done)
  } catch {
    write(bytes.subarray(done))
  }
}

/** Whether SIGHUP is about a terminal of this process: after `nohup` it is not, and node itself has undone that it was ignored. */
function hasTerminal({ stdin, stdout, stderr }: NodeJS.Process): boolean {
  return [stdin, stdout, stderr].some(({ isTTY }) => isTTY)
}

function refuseNowhere({ stderr, env }: NodeJS.Process, program: CliContext['program']): void {
  const gone = 'The current directory no longer exists; go to another one, and type it again.'
  process.exitCode = showError(new UserError('CM0106', gone), { stderr, env, program })
}

/** Null: that directory has been removed. From now on Windows takes no program from there by its bare name. */
function whereTyped(process: NodeJS.Process): string | null {
  const [name, value] = NO_CURRENT_DIRECTORY
  if (process.platform === 'win32') process.env[name] ??= value
  try {
    return process.cwd()
  } catch {
    return null
  }
}

/** Loaded only now: it brings what most commands start without. */
async function killStarted({ pid, platform }: NodeJS.Process): Promise<void> {
  const { killMarkedNow } = await import('../../platform/end-processes.ts')
  killMarkedNow(pid, platform, systemClock)
}

/** A terminal that is gone or does not read takes nothing any more. */
function writeAsFarAsPossible(fd: number, text: string): void {
  try {
    writeSync(fd, text)
  } catch {}
}

/** Reads the command line, does what it says, and resolves with the exit code. */
export async function runCommandLine(context: BareContext, args: readonly string[]): Promise<number> {
  let exitCode = 0
  const build = context.program === 'codex-flow' ? buildFlowProgram : buildProgram
  const ended = (code: number) => {
    exitCode = code
  }
  // What completes is told of every command.
  const program = args[0] === 'complete' ? build(context, ended) : build(context, ended, args)
  await addCompletions(program, context, args)
  try {
    await program.parseAsync([...args], { from: 'user' })
    return exitCode
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    return error.exitCode === 0 ? 0 : 2
  }
}

/** The library that completes brings its own command; without it, the command is only listed. */
async function addCompletions(program: Command, context: BareContext, args: readonly string[]): Promise<void> {
  const what = 'print the completions for zsh, bash, fish or powershell'
  if (args[0] === 'complete') {
    const at = args.indexOf('--')
    if (at !== -1) await (await import('./completion.ts')).addValues(program, context, args.slice(at + 1))
    // It prints with the console, past this stream: opened, it tells what does not arrive.
    void context.stdout
    const { log } = console
    // Its script for bash declares constants, which cannot be loaded twice in a shell.
    console.log = (text: unknown) => log(String(text).replace(/^readonly (?=\w+=)/gm, ''))
    ;(await import('@bomb.sh/tab/commander')).default(program)
  } else program.command('complete [shell]').description(what)
  program.commands.at(-1)?.addHelpText('after', `\nExample:\n  source <(${program.name()} complete zsh)\n`)
}

/**
 * Shows a person what was thrown, and returns the exit code that stands for it. Without the secrets of the environment:
 * what is shown of a bug may be sent on.
 */
export function showError(
  error: unknown,
  { stderr, env, program }: Pick<CliContext, 'stderr' | 'env' | 'program'>,
): number {
  const { text, exitCode } = describeError(error, program)
  // A sentence may hold what came from outside: a path, a name out of a database, what a server said.
  if (text !== '') stderr.write(safeText(redactorOfEnvironment({ env }).text(text)))
  return exitCode
}
