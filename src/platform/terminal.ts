import { spawn } from 'node:child_process'
import { closeSync, openSync, writeSync } from 'node:fs'
import { lstat, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { devNull } from 'node:os'
import { join } from 'node:path'
import { kill, pid } from 'node:process'
import type { Result } from 'execa'
import type { Clock } from '../base/clock.ts'
import { messageOf, systemErrorCode } from '../base/errors.ts'
import { forPerson } from './control-group.ts'
import { readBoundedText, type WritableByAgents } from './files.ts'
import { EXECA_OPTIONS, systemProgram, withSearchPathOutside } from './run-process.ts'

export interface EditTextOptions {
  text: string
  env: Readonly<NodeJS.ProcessEnv>
  platform: NodeJS.Platform
  /** Parent of the file's private directory: best in the records, where no agent can write. */
  temporary: string
  /** Folders whose editors are not found by name: an agent may have put them there. */
  where: WritableByAgents
  /** Hands over the terminal, calls `edit` once, and takes the terminal back. */
  run: (edit: () => Promise<TerminalEnd>) => Promise<TerminalEnd>
}

/** The result of editing. `failed`: `message` is a sentence for the person, and the text is unchanged. */
export type EditedText = { kind: 'edited'; text: string } | { kind: 'unchanged' } | { kind: 'failed'; message: string }

/**
 * Lets the person edit a text in their editor: `$VISUAL`, else `$EDITOR`, else vi (Windows: notepad). As with git it is a
 * command line for the shell. The editor has the terminal, in this process's group. A newline that it adds at the end is
 * removed.
 */
export async function editText(options: EditTextOptions): Promise<EditedText> {
  const editor = editorOf(options.env, options.platform)
  let folder: string | null = null
  try {
    folder = await mkdtemp(join(options.temporary, 'edit-'))
    const path = join(folder, 'PROMPT.md')
    await writeFile(path, options.text, { mode: 0o600 })
    const end = await options.run(() => runEditor(editor, path, folder ?? '', options))
    const problem = problemOf(end)
    return problem === null ? await readBack(path, options) : failed(`${named(editor)} ${problem}`)
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return failed(`The text could not be handed to ${named(editor)}: ${messageOf(error)}`)
  } finally {
    if (folder !== null) await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined)
  }
}

const MOST_BYTES = 1024 * 1024

function editorOf({ VISUAL, EDITOR }: Readonly<NodeJS.ProcessEnv>, platform: NodeJS.Platform): string {
  return VISUAL?.trim() || EDITOR?.trim() || (platform === 'win32' ? 'notepad' : 'vi')
}

/** The editor starts in the private directory: in the work directory it may run files that an agent left for it. */
async function runEditor(
  editor: string,
  path: string,
  directory: string,
  { env, platform, where }: EditTextOptions,
): Promise<TerminalEnd> {
  const stdio = 'inherit' as const
  const options = {
    ...EXECA_OPTIONS,
    cwd: directory,
    env: forPerson(withSearchPathOutside(env, where, platform)),
    stdio,
  }
  const { execa } = await import('execa')
  return endOf(
    platform === 'win32'
      ? await execa(`${editor} "${path}"`, { ...options, shell: systemProgram('cmd.exe', env) })
      : await execa('/bin/sh', ['-c', `${editor} "$@"`, editor, path], options),
  )
}

/** Returns the rest of a sentence that starts with the editor's name. */
function problemOf(end: TerminalEnd): string | null {
  if ('error' in end) return `could not be started: ${end.error}`
  if ('signal' in end) return `was ended by ${end.signal}; the text is unchanged.`
  if (end.exitCode === 0) return null
  if (end.exitCode === 127) return 'was not found; name another editor in $VISUAL or $EDITOR.'
  if (end.exitCode > 128) return 'was killed; the text is unchanged.'
  if (end.exitCode === 126) return 'cannot be run; name another editor in $VISUAL or $EDITOR.'
  return `ended with exit code ${end.exitCode}; the text is unchanged.`
}

async function readBack(path: string, { text: before, platform }: EditTextOptions): Promise<EditedText> {
  const found = await lstat(path).catch(() => null)
  if (found === null) return failed('The editor has left no file behind; the text is unchanged.')
  if (!found.isFile()) return failed('The editor replaced the file by something else; the text is unchanged.')
  if (found.size > MOST_BYTES) return failed('What the editor has written is larger than 1 MiB; the text is unchanged.')
  const read = await readBoundedText(path, MOST_BYTES)
  if (read === 'missing') return failed('The editor has left no file behind; the text is unchanged.')
  if ('problem' in read) return failed(`What the editor has written ${read.problem}; the text is unchanged.`)
  const lines = platform === 'win32' ? read.text.replaceAll('\r\n', '\n') : read.text
  const text = before.endsWith('\n') ? lines : lines.replace(/\n$/, '')
  return text === before ? { kind: 'unchanged' } : { kind: 'edited', text }
}

function failed(message: string): EditedText {
  return { kind: 'failed', message }
}

function named(editor: string): string {
  return `The editor "${editor}"`
}

/** End of a program that had the terminal. `error`: why it could not start. */
export type TerminalEnd = { exitCode: number } | { signal: string } | { error: string }

export interface TerminalProgram {
  directory: string
  /** The whole environment; nothing is inherited. */
  env: NodeJS.ProcessEnv
  /** Text for its stdin, which is then closed; null: it inherits stdin. */
  input: string | null
  /** Its abort reason is the signal to send; SIGKILL follows after 2 s. */
  signal: AbortSignal
  clock: Clock
  /** Its output goes to stderr alone: stdout holds JSON. */
  onStderr?: boolean
}

/**
 * Runs a program to its end with this process's terminal and in its process group, so that Ctrl+C reaches it. Its output
 * goes only to the terminal.
 */
export async function runInTerminal(
  program: string,
  args: readonly string[],
  { directory, env, input, signal, clock, onStderr = false }: TerminalProgram,
): Promise<TerminalEnd> {
  const { execa } = await import('execa')
  const child = execa(program, args, {
    ...EXECA_OPTIONS,
    // Done below, on the clock.
    forceKillAfterDelay: false,
    cwd: directory,
    env,
    stdout: onStderr ? 2 : 'inherit',
    stderr: 'inherit',
    ...(input === null ? { stdin: 'inherit' } : { input }),
  })
  const over = new AbortController()
  const end = () => {
    child.kill(asSignal(signal.reason))
    void clock.wait(GRACE_MS, over.signal).then(() => {
      if (!over.signal.aborted) child.kill('SIGKILL')
    })
  }
  signal.addEventListener('abort', end, { once: true })
  if (signal.aborted) end()
  try {
    return endOf(await child)
  } finally {
    signal.removeEventListener('abort', end)
    over.abort()
  }
}

function endOf({ exitCode, signal, cause }: Pick<Result, 'exitCode' | 'signal' | 'cause'>): TerminalEnd {
  if (exitCode !== undefined) return { exitCode }
  return signal === undefined ? { error: messageOf(cause) } : { signal }
}

const GRACE_MS = 2_000

function asSignal(reason: unknown): NodeJS.Signals {
  return reason === 'SIGINT' || reason === 'SIGHUP' ? reason : 'SIGTERM'
}

export interface SuspendOptions {
  platform: NodeJS.Platform
  clock: Clock
  /** Emits the signals of this process: `process`. */
  signals: Pick<NodeJS.EventEmitter, 'once' | 'off'>
}

/** A shell stops its job at once; after this time nothing has stopped it, ms. */
const STOP_MS = 500
/** Wait for the terminal's new size, ms. */
const SIZE_MS = 100

/**
 * Stops this process and its group, like Ctrl-Z, so the shell continues. Resolves with true after `fg`, when the terminal's
 * size is known again. False without job control: on Windows, or if no shell waits for this process (the kernel then does
 * not stop it).
 */
export async function suspendSelf({ platform, clock, signals }: SuspendOptions): Promise<boolean> {
  if (platform === 'win32') return false
  const before = clock.monotonic()
  const continued = await heard('SIGCONT', STOP_MS, () => kill(0, 'SIGTSTP'))
  // After a long stop, the limit may pass before the waking signal is heard.
  if (!continued && clock.monotonic() - before < 2 * STOP_MS) return false
  // A terminal reports a new size only to its foreground job.
  await heard('SIGWINCH', SIZE_MS, () => kill(pid, 'SIGWINCH'))
  return true

  async function heard(signal: NodeJS.Signals, boundMs: number, cause: () => void): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const listener = () => resolve(true)
    const over = new AbortController()
    signals.once(signal, listener)
    cause()
    void clock.wait(boundMs, over.signal).then(() => resolve(false))
    const isHeard = await promise
    over.abort()
    signals.off(signal, listener)
    return isHeard
  }
}

export interface LetGoOptions {
  self: Pick<NodeJS.Process, 'once' | 'off' | 'stdin' | 'platform' | 'pid'>
  /** Whole lines to write before the shell gets the terminal back. */
  lines: string
  /** Lines to write if no shell takes the terminal. */
  withoutShell: string
  /** Absolute path of the file for stdout and stderr from then on. */
  log: string
  /** Environment of the process that continues this one: its PATH has no folders that agents can write. */
  env: NodeJS.ProcessEnv
  clock: Clock
}

/**
 * Returns the terminal to the waiting shell; this process continues in the background, with its streams in a file. The shell
 * waits for an end or a stop. So the group is stopped, like Ctrl-Z, and another process continues it once the shell has the
 * terminal. Without job control (`suspendSelf`) it continues anyway, and the terminal stays as it is until closed.
 */
export async function letGoOfTerminal(options: LetGoOptions): Promise<void> {
  const { self, lines, withoutShell, log } = options
  self.stdin.destroy()
  writeSync(1, lines)
  if (!(await stoppedAndContinued(options))) writeSync(1, withoutShell)
  for (const [fd, path, flags] of [
    [0, devNull, 'r'],
    [1, log, 'a'],
    [2, log, 'a'],
  ] as const) {
    closeSync(fd)
    // It gets the lowest free number: the one closed just before.
    openSync(path, flags, 0o600)
  }
}

async function stoppedAndContinued({ self, env, clock }: LetGoOptions): Promise<boolean> {
  const { platform } = self
  if (platform === 'win32') return false
  const args = ['-c', CONTINUE_WHEN_STOPPED, 'sh', String(self.pid)]
  const waker = spawn('/bin/sh', args, { detached: true, stdio: 'ignore', env })
  const { promise, resolve } = Promise.withResolvers<boolean>()
  waker.once('spawn', () => resolve(true))
  waker.once('error', () => resolve(false))
  waker.unref()
  // Without the waker, nothing would continue this process.
  return (await promise) && (await suspendSelf({ platform, clock, signals: self }))
}

/**
 * Script for `sh`, with a pid. It continues the group once it is stopped and another group has the terminal, or after 5 s.
 * It repeats that a moment later, for a shell that stopped it again. `ps` and proc(5) give state, group, and the terminal's
 * group.
 */
const CONTINUE_WHEN_STOPPED = `
look() {
  if [ -r "/proc/$1/stat" ]; then sed 's/.*) //' "/proc/$1/stat" | cut -d ' ' -f 1,3,6
  else ps -o stat=,pgid=,tpgid= -p "$1"; fi
}
pid=$1 n=0
while [ "$n" -lt 50 ]; do
  set -- $(look "$pid")
  [ $# -eq 3 ] || exit 0
  case $1 in T*) [ "$2" = "$3" ] || break ;; esac
  sleep 0.1
  n=$((n + 1))
done
kill -s CONT -- "-$2"
sleep 1
kill -s CONT -- "-$2"`
