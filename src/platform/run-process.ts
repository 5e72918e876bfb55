import { type ChildProcess, spawn } from 'node:child_process'
import { access, constants, readlink, stat } from 'node:fs/promises'
import { devNull } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { env as hostEnvironment, platform as hostPlatform, kill } from 'node:process'
import type { Readable } from 'node:stream'
import type { Result } from 'execa'
import { messageOf, systemErrorCode } from '../base/errors.ts'
import { isWritableByAgents, NOWHERE, pathsOf, type WritableByAgents } from './files.ts'

/** How a program ended, and its output. */
export interface ProcessResult {
  /** Null if it was killed or could not be started. */
  exitCode: number | null
  stdout: string
  stderr: string
  /**
   * Null if it exited by itself. Otherwise why it was ended (`timeout`, `output-limit`, `aborted`, or the name of a
   * signal), or why it could not be started (`ENOENT`, `EACCES`, …).
   */
  failure: string | null
}

export interface ProcessOptions {
  directory?: string
  /** The whole environment; nothing is inherited. */
  env: NodeJS.ProcessEnv
  /** Of its output. */
  encoding: 'utf8' | 'latin1'
  /** Bytes for its stdin, which is closed without them. */
  input?: Buffer
  /** The most that it may write to each of its streams, bytes; then it is killed. */
  outputLimit: number
  /** After how long it is killed; never, if left out. */
  timeoutMs?: number
  /** Kills it when it is aborted. */
  signal?: AbortSignal
}

/**
 * Runs a program to its end and collects its output; however it ends is a value. It runs in a process group of its own, so
 * that Ctrl+C in the terminal does not reach it. What it leaves running is not waited for.
 *
 * For programs of the hot path: git between two rounds, `codex --version` at the start, the reports at the end. It is not
 * execa, which takes about twice as long for each program (measured with `git --version` in a loop: 24 to 37 ms in place of
 * 13 to 18, on a busy machine) and 9 MB of memory in a process that runs for days. All other programs: `runWithExeca`.
 */
export function runProcess(program: string, args: readonly string[], options: ProcessOptions): Promise<ProcessResult> {
  const { directory, env, encoding, input, outputLimit, timeoutMs, signal } = options
  return new Promise(resolve => {
    if (signal?.aborted) {
      resolve({ exitCode: null, stdout: '', stderr: '', failure: 'aborted' })
      return
    }
    let child: ChildProcess
    try {
      child = spawn(program, args, {
        cwd: directory,
        env,
        detached: true,
        windowsHide: true,
        stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      })
    } catch (error) {
      resolve({ exitCode: null, stdout: '', stderr: '', failure: systemErrorCode(error) ?? messageOf(error) })
      return
    }
    let failure: string | null = null
    const end = (cause: string) => {
      failure ??= cause
      killGroup(child)
      // What it started may be out of reach, and hold the pipes.
      closePipes(child)
    }
    const timer = timeoutMs === undefined ? undefined : setTimeout(end, timeoutMs, 'timeout')
    const abort = () => end('aborted')
    signal?.addEventListener('abort', abort)
    const stdout = collect(child.stdout, outputLimit, end)
    const stderr = collect(child.stderr, outputLimit, end)
    child.stdin?.on('error', () => {}).end(input)
    child.once('error', error => {
      failure ??= systemErrorCode(error) ?? error.message
    })
    let grace: NodeJS.Timeout | undefined
    child.once('exit', () => {
      // Where this process was busy meanwhile, what it said last is read between the timer and the immediate.
      grace = setTimeout(() => setImmediate(closePipes, child), PIPE_GRACE_MS)
    })
    child.once('close', (exitCode, killedBy) => {
      clearTimeout(timer)
      clearTimeout(grace)
      signal?.removeEventListener('abort', abort)
      const isOwnEnd = failure === null && killedBy === null
      resolve({
        exitCode: isOwnEnd ? exitCode : null,
        stdout: Buffer.concat(stdout).toString(encoding),
        stderr: Buffer.concat(stderr).toString(encoding),
        failure: failure ?? killedBy,
      })
    })
  })
}

/** How long what a program has left running may hold its pipes, ms. */
const PIPE_GRACE_MS = 250

function closePipes({ stdin, stdout, stderr }: ChildProcess): void {
  for (const pipe of [stdin, stdout, stderr]) pipe?.destroy()
}

/** It leads a group of its own, except on Windows. */
function killGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) kill(-child.pid, 'SIGKILL')
  } catch {
    child.kill('SIGKILL')
  }
}

function collect(stream: Readable | null, limit: number, end: (cause: string) => void): Buffer[] {
  const chunks: Buffer[] = []
  let size = 0
  stream?.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > limit) end('output-limit')
    else chunks.push(chunk)
  })
  return chunks
}

/** What every program that execa runs is given: the environment that is handed over and no more; its end is a value. */
export const EXECA_OPTIONS = {
  extendEnv: false,
  reject: false,
  stripFinalNewline: false,
  // Signals are handled in the entry point, and nowhere else.
  cleanup: false,
} as const

/**
 * A process group of its own, so that Ctrl+C in the terminal does not reach it; all of it is killed at once. On Windows
 * the process and what descends from it.
 */
export const OWN_GROUP = { killDescendants: true, killSignal: 'SIGKILL', forceKillAfterDelay: false } as const

/**
 * Runs a program that is no part of a round: to its end, collecting its output. The same contract as `runProcess`, which
 * is for what runs between two rounds; this one loads execa when the first program runs.
 */
export async function runWithExeca(
  program: string,
  args: readonly string[],
  { directory, env, encoding, input, outputLimit, timeoutMs, signal }: ProcessOptions,
): Promise<ProcessResult> {
  const { execa } = await import('execa')
  const child = execa(program, args, {
    ...EXECA_OPTIONS,
    ...OWN_GROUP,
    ...(directory === undefined ? {} : { cwd: directory }),
    env,
    // As bytes, for the limit is one of bytes.
    encoding: 'buffer',
    maxBuffer: outputLimit,
    ...(input === undefined ? { stdin: 'ignore' } : { input }),
    timeout: timeoutMs ?? 0,
    ...(signal === undefined ? {} : { cancelSignal: signal }),
  })
  let grace: NodeJS.Timeout | undefined
  child.nodeChildProcess.once('exit', () => {
    // Execa waits for the pipes, which what the program has left running may hold. Where this process was busy meanwhile,
    // the last output is read between the timer and the immediate.
    grace = setTimeout(() => {
      setImmediate(() => {
        for (const pipe of [child.stdout, child.stderr]) pipe.destroy()
      })
    }, PIPE_GRACE_MS)
  })
  const result = await child
  clearTimeout(grace)
  const failure = failureOf(result)
  return {
    exitCode: failure === null ? (result.exitCode ?? null) : null,
    stdout: Buffer.from(result.stdout).toString(encoding),
    stderr: Buffer.from(result.stderr).toString(encoding),
    failure,
  }
}

function failureOf(result: Pick<Result, 'timedOut' | 'isCanceled' | 'isMaxBuffer' | 'code' | 'signal'>): string | null {
  if (result.isCanceled) return 'aborted'
  if (result.timedOut) return 'timeout'
  if (result.isMaxBuffer) return 'output-limit'
  return result.code ?? result.signal ?? null
}

export interface ProgramSearch {
  env: Readonly<NodeJS.ProcessEnv>
  platform: NodeJS.Platform
  /** Programs in here are passed over: an agent may have put them there. */
  where: WritableByAgents
}

/** `path`: null if there is none. `passedOver`: the programs of this name where an agent can write, absolute paths. */
export interface ProgramFound {
  path: string | null
  passedOver: readonly string[]
}

/** The first program of this name on the PATH that no agent can have written. On Windows `.exe` may be left out. */
export async function findProgram(name: string, { env, platform, where }: ProgramSearch): Promise<ProgramFound> {
  const file = platform === 'win32' && !name.includes('.') ? `${name}.exe` : name
  const passedOver: string[] = []
  for (const { folder, isOwn } of searchedFolders(env, platform)) {
    const path = join(folder, file)
    if (!pathsOf(platform).isAbsolute(folder) || !(await isProgram(path))) continue
    if (isOwn && !isWritableByAgents(path, where, platform)) return { path, passedOver }
    passedOver.push(path)
  }
  return { path: null, passedOver }
}

/**
 * The absolute path of a program of Windows itself. By its bare name it would be taken from the directory in which it is
 * started, where agents can write. Never run on a real one yet.
 */
export function systemProgram(
  name: keyof typeof SYSTEM_FOLDERS,
  env: Readonly<NodeJS.ProcessEnv> = hostEnvironment,
): string {
  const variable = Object.keys(env).find(each => each.toUpperCase() === 'SYSTEMROOT')
  return pathsOf('win32').join((variable && env[variable]) || 'C:\\Windows', ...SYSTEM_FOLDERS[name], name)
}

const SYSTEM_FOLDERS = {
  'cmd.exe': ['System32'],
  'explorer.exe': [],
  'taskkill.exe': ['System32'],
} as const

/** True if the path is an executable file. */
export async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}

/** The name of the variable PATH in this environment: Windows also spells it `Path`. */
export function pathVariable(env: Readonly<NodeJS.ProcessEnv>): string {
  return Object.keys(env).find(name => name.toUpperCase() === 'PATH') ?? 'PATH'
}

/**
 * Holds the PATH as the person has it, where the environment is one of our own programs: its PATH is without the folders in
 * which agents have worked.
 */
const PERSON_PATH = 'CODEMACHINE_PERSON_PATH'

/** The PATH as the person has it, which commands of agents get; undefined: none. */
export function personPath(env: Readonly<NodeJS.ProcessEnv>): string | undefined {
  return env[PERSON_PATH] ?? env[pathVariable(env)]
}

/** The folders of the person's PATH, in their order; `isOwn`: whether our own programs have it on theirs. */
export function searchedFolders(
  env: Readonly<NodeJS.ProcessEnv>,
  platform: NodeJS.Platform,
): { folder: string; isOwn: boolean }[] {
  const { delimiter, isAbsolute } = pathsOf(platform)
  const own = new Set((env[pathVariable(env)] ?? '').split(delimiter))
  const all = (personPath(env) ?? '').split(delimiter)
  // A relative one is on no PATH of ours: who looks there says from where.
  return all.map(folder => ({ folder, isOwn: own.has(folder) || !isAbsolute(folder) }))
}

/**
 * Keeps Windows from taking a program that is started by its bare name from the current directory; anything else it does not
 * change. Set where codemachine starts, and not by a person: their commands find what lies beside them.
 */
export const NO_CURRENT_DIRECTORY = ['NoDefaultCurrentDirectoryInExePath', 'codemachine'] as const

/** The environment of our own programs: its PATH has none of these folders. `personPath` has the whole one. */
export function withOwnPath(
  env: Readonly<NodeJS.ProcessEnv>,
  folders: readonly string[],
  platform: NodeJS.Platform,
): NodeJS.ProcessEnv {
  const { [PERSON_PATH]: _, ...rest } = env
  const name = pathVariable(env)
  const path = inheritedPath(env, platform)
  if (path === undefined) return rest
  const outside = searchPathOutside(path, { ...NOWHERE, elsewhere: folders }, platform)
  return outside === path ? { ...rest, [name]: path } : { ...rest, [name]: outside, [PERSON_PATH]: path }
}

/** The environment of what is not ours: the PATH of the person, and none of our variables about it. */
export function withPersonPath(env: Readonly<NodeJS.ProcessEnv>): NodeJS.ProcessEnv {
  const { [PERSON_PATH]: path, ...rest }: NodeJS.ProcessEnv = env
  const [name, value] = NO_CURRENT_DIRECTORY
  if (rest[name] === value) delete rest[name]
  return path === undefined ? rest : { ...rest, [pathVariable(env)]: path }
}

/** That of a codemachine which has started this one, unless somebody has set another PATH in between. */
function inheritedPath(env: Readonly<NodeJS.ProcessEnv>, platform: NodeJS.Platform): string | undefined {
  const { delimiter } = pathsOf(platform)
  const path = env[pathVariable(env)]
  const whole = env[PERSON_PATH]
  if (path === undefined || whole === undefined) return path
  const folders = new Set([...whole.split(delimiter), devNull])
  return path.split(delimiter).every(folder => folders.has(folder)) ? whole : path
}

/**
 * A PATH without its relative folders, and without those in which an agent can write. Never empty: an empty PATH means
 * the current directory.
 */
export function searchPathOutside(
  path: string,
  where: WritableByAgents,
  platform: NodeJS.Platform = hostPlatform,
): string {
  const { delimiter, isAbsolute } = pathsOf(platform)
  const open = path.split(delimiter).filter(entry => isAbsolute(entry) && !isWritableByAgents(entry, where, platform))
  return open.length === 0 ? devNull : open.join(delimiter)
}

/** An environment with such a PATH: for a program that starts others, which must not be an agent's either. */
export function withSearchPathOutside(
  env: Readonly<NodeJS.ProcessEnv>,
  where: WritableByAgents,
  platform: NodeJS.Platform = hostPlatform,
): NodeJS.ProcessEnv {
  const name = pathVariable(env)
  return { ...env, [name]: searchPathOutside(env[name] ?? '', where, platform) }
}

/** What runs a line: the program and its arguments, and variables that it has beside those of the command. */
interface ShellLine {
  command: string[]
  env: Readonly<Record<string, string>>
}

/**
 * Runs a line as a person would type it, with both streams in one, unless they are wanted apart, so that they keep their
 * order. No login shell: its profile would put the system's PATH in the place of the person's, which agents' commands
 * have. The first byte that it prints says that its shell was started (`StartMark`). Windows: `cmd.exe`, without that; never
 * run on a real one yet.
 */
export function shellLine(
  line: string,
  platform: NodeJS.Platform,
  streams: 'as-one' | 'apart' = 'as-one',
  env?: Readonly<NodeJS.ProcessEnv>,
): ShellLine {
  const both = streams === 'as-one' ? ' 2>&1' : ''
  if (platform === 'win32') return windowsLine(`(${line})${both}`, systemProgram('cmd.exe', env))
  const script = `printf '\\006'; if [ -x /bin/bash ]; then exec /bin/bash -c "$1"${both}; else exec /bin/sh -c "$1"${both}; fi`
  return { command: ['/bin/sh', '-c', script, 'sh', line], env: {} }
}

/** Knows by what a `shellLine` prints whether its shell was started: what a sandbox says of its own failure is no exit code of a command. */
export class StartMark {
  #isStarted: boolean

  constructor(platform: NodeJS.Platform) {
    this.#isStarted = platform === 'win32'
  }

  get isStarted(): boolean {
    return this.#isStarted
  }

  /** What is printed to stdout, without the mark. */
  take(stdout: Buffer): Buffer {
    if (this.#isStarted || stdout[0] !== STARTED) return stdout
    this.#isStarted = true
    return stdout.subarray(1)
  }
}

/** What the script prints first. */
const STARTED = 0o6

/**
 * Whoever starts a program on Windows puts a backslash before each quote of an argument, which `cmd.exe` does not take away. So
 * the line goes by a variable, and the argument has no quote: a first `cmd.exe` puts in the variable, in which every character
 * that it would read is escaped, and starts a second one, which reads the line as it was typed, its variables too.
 */
function windowsLine(line: string, cmd: string): ShellLine {
  const escaped = `"${line}"`.replaceAll(/[\^"&|<>()!]/g, '^$&')
  return {
    command: [cmd, '/d', '/v:off', '/c', `%${LINE_VARIABLE}%`],
    env: { [LINE_VARIABLE]: `${cmd} /d /v:off /s /c ${escaped}` },
  }
}

const LINE_VARIABLE = 'CODEMACHINE_LINE'

/**
 * The files that stdout and stderr of this process are redirected to, absolute paths. Linux only; elsewhere always empty.
 */
export async function outputFiles(platform: NodeJS.Platform): Promise<string[]> {
  if (platform !== 'linux') return []
  const targets = await Promise.all([1, 2].map(fd => readlink(`/proc/self/fd/${fd}`).catch(() => '')))
  return [...new Set(targets.filter(target => isAbsolute(target) && !target.startsWith('/dev/')))]
}
