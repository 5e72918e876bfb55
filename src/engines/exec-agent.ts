import { type ChildProcess, spawn } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { messageOf } from '../base/errors.ts'
import { LineSplitter } from '../base/line-splitter.ts'
import { GIVE_UP_MS } from '../codex/app-server.ts'
import { tomlText } from '../codex/codex-toml.ts'
import { capabilitiesOf } from '../codex/codex-version.ts'
import { type ExecRequest, execArguments, fitsAsArgument } from '../codex/exec-arguments.ts'
import { shieldEnvironment } from '../codex/shielded-environment.ts'
import { readBoundedText } from '../platform/bounded-file.ts'
import { endMarked, endTree } from '../platform/end-processes.ts'
import { MARK_VARIABLE, makeMark } from '../platform/marks.ts'
import type { CodexOptions } from './app-servers.ts'
import { AGENTS_VARIABLE, waitingAgents } from './exec-agents.ts'
import { ExecOutput } from './exec-output.ts'

export interface ExecAgentOptions
  extends Pick<
      CodexOptions,
      'env' | 'overrides' | 'directory' | 'sandbox' | 'key' | 'owner' | 'platform' | 'clock' | 'endMs' | 'log'
    >,
    Pick<ExecRequest, 'agent' | 'hasProfile' | 'shellPolicy' | 'lastMessage'> {
  binary: { path: string; version: string }
  /** All that the agent is told, and the end of it, by which codex's echo of it is known. */
  prompt: string
  promptEnd: string
  /** How long codex may say nothing before it counts as hung, ms. */
  silenceMs: number
  /** Ends it, and all that it has started. */
  signal: AbortSignal
  /** A line of what codex shows, from after the echo of the prompt. */
  onLine(line: string): void
}

/** How a task of an agent ended. */
export type ExecEnd =
  | { kind: 'completed'; result: string }
  /** `reason`: in codex's own words, no whole sentence. */
  | { kind: 'failed'; reason: string; exitCode: number | null }
  | { kind: 'terminated' }

/**
 * Runs one task of an agent through `codex exec`. Resolves when nothing is left of it that can be found; however it ends
 * is a value.
 */
export async function runExecAgent(options: ExecAgentOptions): Promise<ExecEnd> {
  const { signal, lastMessage, onLine } = options
  if (signal.aborted) return { kind: 'terminated' }
  const output = new ExecOutput(options.promptEnd, onLine)
  try {
    const exit = await runCodex(options, output)
    const result = exit.code === 0 && exit.problem === null ? await textOf(lastMessage) : null
    // It had come to its end before it was to.
    if (result !== null && (result !== '' || !signal.aborted)) return { kind: 'completed', result }
    if (signal.aborted) return { kind: 'terminated' }
    if (exit.problem !== null) return { kind: 'failed', reason: exit.problem, exitCode: exit.code }
    const how = exit.code === null ? 'codex was killed' : `codex ended with exit code ${exit.code}`
    return { kind: 'failed', reason: output.reason() ?? how, exitCode: exit.code }
  } finally {
    await rm(lastMessage, { force: true })
  }
}

const MOST_LINE_BYTES = 4 * 1024 * 1024
const MOST_RESULT_BYTES = 4 * 1024 * 1024
/** How long pipes may stay open after the process has ended: what it left running can hold them. */
const PIPE_GRACE_MS = 250
const KILL_GRACE_MS = 1_000

/** Tells apart what this process starts. No app-server that carries a mark runs in a process that runs this. */
let started = 0

async function runCodex(
  options: ExecAgentOptions,
  output: ExecOutput,
): Promise<{ code: number | null; problem: string | null }> {
  const { clock, platform, owner, endMs, log } = options
  const mark = makeMark({ key: options.key, owner, n: started++ })
  let child: ChildProcess
  try {
    child = spawnCodex(options, mark)
  } catch (error) {
    return { code: null, problem: notStarted(error) }
  }
  const hung = new AbortController()
  const alive = new AbortController()
  const problem = new Promise<string | null>(resolve => {
    child.once('error', error => resolve(notStarted(error)))
    child.once('close', () => resolve(null))
    child.once('exit', () => void clock.wait(PIPE_GRACE_MS, alive.signal).then(() => child.stderr?.destroy()))
  })
  const lines = new LineSplitter(line => output.push(line.replace(/\r$/, '')), MOST_LINE_BYTES)
  let lastSaid = clock.monotonic()
  child.stderr?.on('data', (chunk: Buffer) => {
    lastSaid = clock.monotonic()
    lines.push(chunk)
  })
  const end = AbortSignal.any([options.signal, hung.signal])
  const ending = endOnSignal(child, end, alive.signal, options)
  void watchSilence(options, () => lastSaid, alive.signal).then(isHung => isHung && hung.abort())
  const fault = await Promise.race([problem, ending.then(livesOn => (livesOn ? null : problem))])
  alive.abort()
  lines.end()
  if (await ending) {
    // What waits for its end waits no longer, this process itself among it.
    child.stdin?.destroy()
    child.stderr?.destroy()
    child.unref()
    log(`codex (${child.pid}) has not ended ${GIVE_UP_MS / 1000} s after it was killed; it is left behind.`)
  }
  const { left } = await endMarked(MARK_VARIABLE, value => value === mark, {
    clock,
    platform,
    self: owner.pid,
    graceMs: endMs,
  })
  for (const { pid, command } of left) log(`Could not end ${command} (${pid}).`)
  const silence = hung.signal.aborted
    ? `codex said nothing for ${Math.round(options.silenceMs / 60_000)} minutes`
    : null
  return { code: child.exitCode, problem: fault ?? silence }
}

function notStarted(error: unknown): string {
  return `codex could not be started: ${messageOf(error)}`
}

function spawnCodex(options: ExecAgentOptions, mark: string): ChildProcess {
  const { binary, directory, sandbox, prompt, platform } = options
  const { env, forCommands } = shieldEnvironment(options.env, directory, sandbox)
  const waiting = [...waitingAgents(options.env), options.agent.name].join('/')
  const overrides = [
    // The variable itself does not reach commands that inherit only what a shell needs.
    `shell_environment_policy.set.${AGENTS_VARIABLE}=${tomlText(waiting)}`,
    ...options.overrides,
  ]
  const request: ExecRequest = { ...options, overrides, forCommands, prompt: null }
  const capabilities = capabilitiesOf(binary.version)
  const fits = fitsAsArgument(prompt, [binary.path, ...execArguments(request, capabilities)], platform)
  const child = spawn(binary.path, execArguments({ ...request, prompt: fits ? prompt : null }, capabilities), {
    cwd: directory,
    env: { ...env, [MARK_VARIABLE]: mark, [AGENTS_VARIABLE]: waiting },
    // An open stdin is waited for; what codex says last comes from its file.
    stdio: [fits ? 'ignore' : 'pipe', 'ignore', 'pipe'],
    detached: true,
    windowsHide: true,
  })
  child.stdin?.on('error', () => {}).end(prompt)
  return child
}

/**
 * Ends codex once it is to end; whether it lives on all the same. SIGINT makes codex end its commands before itself;
 * SIGTERM would leave them running.
 */
async function endOnSignal(
  child: ChildProcess,
  end: AbortSignal,
  alive: AbortSignal,
  options: ExecAgentOptions,
): Promise<boolean> {
  const { clock, platform, endMs } = options
  const livesOn = () => !alive.aborted && child.exitCode === null && child.signalCode === null
  await clock.wait(LONGEST_WAIT_MS, AbortSignal.any([end, alive]))
  for (const [name, graceMs] of [
    ['SIGINT', endMs],
    ['SIGTERM', KILL_GRACE_MS],
    ['SIGKILL', GIVE_UP_MS],
  ] as const) {
    if (child.pid === undefined || !livesOn()) return false
    await endTree(child.pid, name, platform)
    await clock.wait(graceMs, alive)
  }
  return livesOn()
}

/** The longest that a timer can be set to. */
const LONGEST_WAIT_MS = 2 ** 31 - 1

async function watchSilence(
  { clock, silenceMs }: ExecAgentOptions,
  lastSaid: () => number,
  alive: AbortSignal,
): Promise<boolean> {
  while (!alive.aborted) {
    const left = lastSaid() + silenceMs - clock.monotonic()
    if (left <= 0) return true
    await clock.wait(left, alive)
  }
  return false
}

async function textOf(path: string): Promise<string> {
  const read = await readBoundedText(path, MOST_RESULT_BYTES)
  return typeof read === 'object' && 'text' in read ? read.text : ''
}
