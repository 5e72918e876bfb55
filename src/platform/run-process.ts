import { type ChildProcess, spawn } from 'node:child_process'
import { access, constants, readlink, stat } from 'node:fs/promises'
import { devNull } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { env as hostEnvironment, platform as hostPlatform, kill } from 'node:process'
import type { Readable } from 'node:stream'
import type { Result } from 'execa'
import { messageOf, systemErrorCode } from '../base/errors.ts'
import { isWritableByAgents, NOWHERE, pathsOf, type WritableByAgents } from './files.ts'

/** End and output of a program. */
export interface ProcessResult {
  /** Null: it was killed or could not be started. */
  exitCode: number | null
  stdout: string
  stderr: string
  /**
   * Null: it exited by itself. Otherwise why it was ended (`timeout`, `output-limit`, `aborted`, a signal name), or why it
   * could not start (`ENOENT`, `EACCES`, …).
   */
  failure: string | null
}

export interface ProcessOptions {
  directory?: string
  /** The whole environment; nothing is inherited. */
  env: NodeJS.ProcessEnv
  /** Encoding of its output. */
  encoding: 'utf8' | 'latin1'
  /** Bytes for its stdin; left out: no stdin. */
  input?: Buffer
  /** Limit of each output stream, bytes; it is killed above that. */
  outputLimit: number
  /** Time limit, ms, then it is killed; left out: none. */
  timeoutMs?: number
  /** Kills it on abort. */
  signal?: AbortSignal
}

/**
 * Runs a program to its end and collects its output; any end is a value. It has its own process group, so Ctrl+C in the
 * terminal does not reach it. It does not wait for processes that the program leaves running.
 * || For the hot path: git between two rounds, `codex --version` at the start, the reports at the end. Execa takes about
 * twice as long per program (measured with `git --version` in a loop: 24 to 37 ms instead of 13 to 18, on a busy machine).
 * It also takes 9 MB of memory in a process that runs for days. All other programs: `runWithExeca`.
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
      // Its descendants may be unreachable and keep the pipes open.
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
      // If this process was busy, the last output is read between the timer and the immediate.
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

/** Time that leftover processes may keep the pipes open, ms. */
const PIPE_GRACE_MS = 250

function closePipes({ stdin, stdout, stderr }: ChildProcess): void {
  for (const pipe of [stdin, stdout, stderr]) pipe?.destroy()
}

/** The child leads its own group, except on Windows. */
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

/** Options for every program that execa runs: only the given environment; its end is a value. */
export const EXECA_OPTIONS = {
  extendEnv: false,
  reject: false,
  stripFinalNewline: false,
  // Only the entry point handles signals.
  cleanup: false,
} as const

/**
 * Its own process group, so Ctrl+C in the terminal does not reach it; all of it is killed at once. On Windows: the process
 * and its descendants.
 */
export const OWN_GROUP = { killDescendants: true, killSignal: 'SIGKILL', forceKillAfterDelay: false } as const

/**
 * Runs a program outside of rounds to its end, and collects its output. Same contract as `runProcess`, which serves the time
 * between rounds; this one loads execa on first use.
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
    // Bytes, because the limit counts bytes.
    encoding: 'buffer',
    maxBuffer: outputLimit,
    ...(input === undefined ? { stdin: 'ignore' } : { input }),
    timeout: timeoutMs ?? 0,
    ...(signal === undefined ? {} : { cancelSignal: signal }),
  })
  let grace: NodeJS.Timeout | undefined
  child.nodeChildProcess.once('exit', () => {
    // Execa waits for the pipes, which leftover processes may keep open. If this process was busy, the last output is read
    // between the timer and the immediate.
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
  /** Folders whose programs are ignored: an agent may have put them there. */
  where: WritableByAgents
}

/** `path` null: not found. `passedOver`: absolute paths of ignored programs of this name, which agents can write. */
export interface ProgramFound {
  path: string | null
  passedOver: readonly string[]
}

/** Finds the first program of this name on the PATH that no agent can write. On Windows `.exe` is optional. */
export async function findProgram(
  name: string,
  { env, platform = hostPlatform, where }: Omit<ProgramSearch, 'platform'> & Partial<ProgramSearch>,
): Promise<ProgramFound> {
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
 * Returns the absolute path of a Windows system program. A bare name could start a file of the current directory, where
 * agents can write. Never run on a real Windows yet.
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
  'powershell.exe': ['System32', 'WindowsPowerShell', 'v1.0'],
  'taskkill.exe': ['System32'],
} as const

/** Resolves with true if the path is an executable file. */
export async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}

/** Returns the name of the PATH variable; Windows also spells it `Path`. */
export function pathVariable(env: Readonly<NodeJS.ProcessEnv>): string {
  return Object.keys(env).find(name => name.toUpperCase() === 'PATH') ?? 'PATH'
}

/**
 * Variable with the person's full PATH, in the environment of our own programs. Their PATH lacks the folders where agents
 * worked.
 */
const PERSON_PATH = 'CODEMACHINE_PERSON_PATH'

/** Returns the person's full PATH, which agents' commands get; undefined: none. */
export function personPath(env: Readonly<NodeJS.ProcessEnv>): string | undefined {
  return env[PERSON_PATH] ?? env[pathVariable(env)]
}

/** Returns the folders of the person's PATH in order; `isOwn`: true if our programs' PATH has it, too. */
export function searchedFolders(
  env: Readonly<NodeJS.ProcessEnv>,
  platform: NodeJS.Platform,
): { folder: string; isOwn: boolean }[] {
  const { delimiter, isAbsolute } = pathsOf(platform)
  const own = new Set((env[pathVariable(env)] ?? '').split(delimiter))
  const all = (personPath(env) ?? '').split(delimiter)
  // Our PATH has no relative folders; the caller decides about their base.
  return all.map(folder => ({ folder, isOwn: own.has(folder) || !isAbsolute(folder) }))
}

/**
 * Variable that stops Windows from running a bare name from the current directory; nothing else changes. Only codemachine
 * sets it: the person's own commands still find programs there.
 */
export const NO_CURRENT_DIRECTORY = ['NoDefaultCurrentDirectoryInExePath', 'codemachine'] as const

/** Returns the environment of our own programs: a PATH without these folders. `personPath` returns the full one. */
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

/** Returns the environment of other programs: the person's PATH, without our variables about it. */
export function withPersonPath(env: Readonly<NodeJS.ProcessEnv>): NodeJS.ProcessEnv {
  const { [PERSON_PATH]: path, ...rest }: NodeJS.ProcessEnv = env
  const [name, value] = NO_CURRENT_DIRECTORY
  if (rest[name] === value) delete rest[name]
  return path === undefined ? rest : { ...rest, [pathVariable(env)]: path }
}

/** Returns the full PATH from the codemachine that started this one, unless PATH was changed since. */
function inheritedPath(env: Readonly<NodeJS.ProcessEnv>, platform: NodeJS.Platform): string | undefined {
  const { delimiter } = pathsOf(platform)
  const path = env[pathVariable(env)]
  const whole = env[PERSON_PATH]
  if (path === undefined || whole === undefined) return path
  const folders = new Set([...whole.split(delimiter), devNull])
  return path.split(delimiter).every(folder => folders.has(folder)) ? whole : path
}

/**
 * Returns a PATH without relative folders, and without folders that agents can write. Never empty: an empty PATH means the
 * current directory.
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

/** Returns an environment with that PATH, for a program that starts others: these must not be an agent's either. */
export function withSearchPathOutside(
  env: Readonly<NodeJS.ProcessEnv>,
  where: WritableByAgents,
  platform: NodeJS.Platform = hostPlatform,
): NodeJS.ProcessEnv {
  const name = pathVariable(env)
  return { ...env, [name]: searchPathOutside(env[name] ?? '', where, platform) }
}

/** Program and arguments that run a command line, and additional variables. */
interface ShellLine {
  command: string[]
  env: Readonly<Record<string, string>>
}

/**
 * Returns how to run a line as typed. Both streams are one to keep their order, unless wanted apart. Not a login shell: its
 * profile would replace the person's PATH, which agents' commands get. The first printed byte shows that the shell started
 * (`StartMark`). Windows: `cmd.exe`, without that byte; never run on a real one yet.
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

/** Detects from a `shellLine`'s output that its shell started. A failed sandbox's message is not a command's exit. */
export class StartMark {
  #isStarted: boolean

  constructor(platform: NodeJS.Platform) {
    this.#isStarted = platform === 'win32'
  }

  get isStarted(): boolean {
    return this.#isStarted
  }

  /** Returns stdout without the mark. */
  take(stdout: Buffer): Buffer {
    if (this.#isStarted || stdout[0] !== STARTED) return stdout
    this.#isStarted = true
    return stdout.subarray(1)
  }
}

/** The first byte that the script prints. */
const STARTED = 0o6

/**
 * On Windows, a process start puts a backslash before each quote of an argument, which `cmd.exe` keeps. So the line is
 * passed in a variable, and the argument has no quote. A first `cmd.exe` expands the variable, with all special characters
 * escaped. It starts a second one, which reads the line and its variables as typed.
 */
function windowsLine(line: string, cmd: string): ShellLine {
  const escaped = `"${line}"`.replaceAll(/[\^"&|<>()!]/g, '^$&')
  const whole = `${cmd} /d /v:off /s /c ${escaped}`
  // `cmd.exe` would run only the beginning, which may succeed.
  if (/[\r\n]/.test(line) || whole.length > MOST_LINE) return windowsLine(`(echo ${NO_LINE}& exit 1)`, cmd)
  return { command: [cmd, '/d', '/v:off', '/c', `%${LINE_VARIABLE}%`], env: { [LINE_VARIABLE]: whole } }
}

const MOST_LINE = 8191
const NO_LINE = `codemachine: cmd.exe runs only one line of at most ${MOST_LINE} characters. Put this command into a script.`

const LINE_VARIABLE = 'CODEMACHINE_LINE'

/**
 * True if the prompt can be passed as an argument after `others`. Linux takes at most 128 KiB in one argument, Windows 32,767
 * UTF-16 units in all of them.
 */
export function fitsAsArgument(prompt: string, others: readonly string[], platform: NodeJS.Platform): boolean {
  if (prompt.includes('\0')) return false
  if (platform !== 'win32') return Buffer.byteLength(prompt) <= 100_000
  // Each is quoted, and quotes inside are doubled.
  const units = [...others, prompt].map(text => text.length + (text.match(/["\\]/g)?.length ?? 0) + 3)
  return units.reduce((sum, each) => sum + each, 0) <= 32_000
}

/** Resolves with the absolute paths that this process's stdout and stderr are redirected to. Linux only; else empty. */
export async function outputFiles(platform: NodeJS.Platform): Promise<string[]> {
  if (platform !== 'linux') return []
  const targets = await Promise.all([1, 2].map(fd => readlink(`/proc/self/fd/${fd}`).catch(() => '')))
  return [...new Set(targets.filter(target => isAbsolute(target) && !target.startsWith('/dev/')))]
}
