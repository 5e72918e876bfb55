import { type ChildProcess, spawn } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { messageOf } from '../../../base/errors.ts'
import { LineSplitter } from '../../../base/text.ts'
import type { SandboxChoice } from '../../../core/contracts/sandbox.ts'
import { endMarked, endTree, MARK_VARIABLE, makeMark } from '../../../platform/end-processes.ts'
import { readBoundedText } from '../../../platform/files.ts'
import { tomlString } from '../../../platform/toml.ts'
import { type CodexOptions, GIVE_UP_MS, KILL_GRACE_MS, LONGEST_WAIT_MS, PIPE_GRACE_MS } from '../app-server.ts'
import { type CodexCapabilities, capabilitiesOf } from '../find-codex.ts'
import { type AgentProfile, profileValues } from '../profiles.ts'
import { commandSettings, type ShieldedEnvironment, shieldEnvironment } from '../sandbox.ts'

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
  /** Called with each line of codex's output after its echo of the prompt. */
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
  const how = { clock, platform, self: owner.pid, graceMs: endMs }
  const { left } = await endMarked(MARK_VARIABLE, value => value === mark, how)
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
    `shell_environment_policy.set.${AGENTS_VARIABLE}=${tomlString(waiting)}`,
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

/** The request of one `codex exec`. */
export interface ExecRequest {
  agent: AgentProfile
  /** Whether the agent's profile is in codex's home, in the form that this codex reads. */
  hasProfile: boolean
  /** The work directory, absolute. */
  directory: string
  sandbox: SandboxChoice
  /** `key=value` pairs that the person hands to codex with `-c`; they win over all others. */
  overrides: readonly string[]
  /** What commands of the agent are to have otherwise than codex, and the policy that is in force there. */
  forCommands: ShieldedEnvironment['forCommands']
  shellPolicy: unknown
  /** Where codex writes what the agent has said last. Absolute. */
  lastMessage: string
  /** Instructions and request in one; null: they are written to stdin. */
  prompt: string | null
}

/** The arguments of `codex exec` for one task of an agent. */
export function execArguments(request: ExecRequest, capabilities: CodexCapabilities): string[] {
  const { agent, hasProfile, directory, sandbox, overrides, lastMessage, prompt } = request
  const settings = [
    ...modelSettings(agent, hasProfile && !capabilities.profileFiles),
    ...sandboxSettings(sandbox),
    ...trustSettings(directory, capabilities),
    ...Object.entries(commandSettings(request.forCommands, request.shellPolicy)).map(
      ([key, value]) => `${key}=${tomlValue(value)}`,
    ),
    ...overrides,
  ]
  return [
    'exec',
    ...(hasProfile ? ['--profile', agent.name] : []),
    '--skip-git-repo-check',
    '--sandbox',
    sandbox.mode,
    ...(sandbox.mode === 'danger-full-access' ? ['--dangerously-bypass-approvals-and-sandbox'] : []),
    ...settings.flatMap(pair => ['-c', pair]),
    '--color',
    'never',
    '--output-last-message',
    lastMessage,
    '-C',
    directory,
    // A prompt may begin like an option, or be the name of one of codex's commands.
    '--',
    prompt ?? '-',
  ]
}

/**
 * True if the prompt can be passed as an argument after `others`. Linux takes at most 128 KiB in one argument, Windows 32,767
 * UTF-16 units in all of them.
 */
export function fitsAsArgument(prompt: string, others: readonly string[], platform: NodeJS.Platform): boolean {
  if (prompt.includes('\0')) return false
  if (platform !== 'win32') return Buffer.byteLength(prompt) <= 100_000
  // Each stands in quotes, and what would end them is doubled.
  const units = [...others, prompt].map(text => text.length + (text.match(/["\\]/g)?.length ?? 0) + 3)
  return units.reduce((sum, each) => sum + each, 0) <= 32_000
}

/** What the profile says, too: another call may write that file before codex reads it. `inTable`: it is a table, which wins over the top level. */
function modelSettings(agent: AgentProfile, inTable: boolean): string[] {
  const before = inTable ? `profiles.${agent.name}.` : ''
  return profileValues(agent).flatMap(([key, value]) =>
    value === null ? [] : [`${before}${key}=${tomlString(value)}`],
  )
}

function sandboxSettings({ mode, network, writable }: SandboxChoice): string[] {
  if (mode !== 'workspace-write') return []
  return [
    `sandbox_workspace_write.network_access=${network}`,
    ...(writable.length === 0 ? [] : [`sandbox_workspace_write.writable_roots=${tomlValue([...writable])}`]),
  ]
}

/** Keeps codex from writing into the person's config.toml that the directory is trusted (docs/profiles.md). */
function trustSettings(directory: string, { execWritesTrust, untrustedKeepsConfig }: CodexCapabilities): string[] {
  if (!execWritesTrust) return []
  const level = untrustedKeepsConfig ? 'untrusted' : 'trusted'
  return [`projects={${tomlString(directory)}={trust_level="${level}"}}`]
}

function tomlValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(', ')}]`
  return tomlString(String(value))
}

/** The environment variable with the agents that wait for an agent outside of a session. */
const AGENTS_VARIABLE = 'CODEMACHINE_AGENTS'

/** The agents that wait for the caller, the nearest last; empty where a person calls. */
export function waitingAgents(env: NodeJS.ProcessEnv): string[] {
  return (env[AGENTS_VARIABLE] ?? '').split('/').filter(name => name !== '')
}

/**
 * Splits the output of `codex exec` into lines, and drops codex's header and its echo of the instructions and the request.
 */
export class ExecOutput {
  readonly #request: readonly string[]
  readonly #onLine: (line: string) => void
  /** The last lines before the request: as many as it has. */
  #before: string[] = []
  #hasBegun = false
  #tail: string[] = []

  /** `request`: the end of the prompt, by which codex's echo of it is known. */
  constructor(request: string, onLine: (line: string) => void) {
    // As codex's lines come here.
    this.#request = request.split('\n').map(line => line.replace(/\r$/, ''))
    this.#onLine = onLine
  }

  push(line: string): void {
    this.#tail.push(line)
    if (this.#tail.length > TAIL_LINES) this.#tail.shift()
    if (this.#hasBegun) {
      this.#onLine(line)
      return
    }
    this.#before.push(line)
    if (this.#before.length > this.#request.length) this.#before.shift()
    if (line !== this.#request.at(-1) || !this.#isRequest()) return
    this.#hasBegun = true
    this.#before = []
    // What the person has written is no reason why codex failed.
    this.#tail = []
  }

  /** Why codex failed, in its own words, as far as it said. */
  reason(): string | null {
    // Once it works, it also shows what commands print.
    const error = this.#hasBegun ? /^ERROR: / : /^(ERROR|Error)\b/
    const at = this.#tail.findLastIndex(line => error.test(line))
    if (at === -1) return null
    const [first = '', ...rest] = this.#tail.slice(at, at + REASON_LINES)
    const words = withoutJson(first.replace(/^ERROR:\s*/, ''))
    // Only of a configuration that it cannot read does codex speak on the next lines.
    if (!/:$/.test(words)) return words
    const more = rest.findIndex(line => line.trim() === '' || /^\s*\|/.test(line))
    return [words, ...rest.slice(0, more === -1 ? rest.length : more)].join(' ').trim()
  }

  #isRequest(): boolean {
    return this.#before.length === this.#request.length && this.#before.every((line, at) => line === this.#request[at])
  }
}

const TAIL_LINES = 40
const REASON_LINES = 4

/** Providers answer with JSON, in which one member is for people. */
function withoutJson(words: string): string {
  if (!words.startsWith('{')) return words
  try {
    const { error }: { error?: { message?: unknown } } = Object(JSON.parse(words))
    return typeof error?.message === 'string' ? error.message : words
  } catch {
    return words
  }
}
