import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ServerNotification } from '../../../protocol/codex.ts'
import { messageOf } from '../../base/errors.ts'
import { LineSplitter } from '../../base/text.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import {
  type Engine,
  type EngineSetup,
  type PreparedRound,
  type RoundRun,
  type SandboxProblem,
  unusableRound,
} from '../../core/engine.ts'
import type { RoundOutcome } from '../../core/events/outcome.ts'
import { CODEX_PROVIDER } from '../../core/shapes/provider.ts'
import { endTree } from '../../platform/end-processes.ts'
import type { AppServer, AppServerExit } from '../codex/app-server.ts'
import { exitOutcome, INTERRUPTED, turnOutcome, withRetryAt } from '../codex/classify.ts'
import { Activity, NetworkWaits, RoundFeed, watchForSilence } from '../codex/round-feed.ts'
import { Rights } from '../codex/sandbox/rights.ts'
import { Attempts, trySandbox, withoutSandbox } from '../codex/sandbox/try-sandbox.ts'
import { type CommandConfig, hidesFiles, NO_CONFIG, threadTerms } from '../codex/sandbox.ts'
import { type AskCodex, type AskedCodex, askAppServer, readCommandConfig } from '../codex/thread-start.ts'
import { waitsForNetwork } from '../codex/translate.ts'
import { parseObject } from '../codex/wire.ts'
import { execCommand } from './exec-arguments.ts'
import { ExecLines, isExecLine } from './exec-lines.ts'
import { refusedArgument } from './given-arguments.ts'

/**
 * Runs rounds on `codex exec --json`: one process per round, from the prompt to the end of its turn. Such a round cannot be
 * prepared, steered or continued, and gets no tools of codemachine.
 */
export class ExecEngine implements Engine {
  readonly name = 'exec'
  readonly version: string
  readonly #options: EngineSetup
  readonly #rights: Rights
  readonly #closing = new AbortController()
  /** Rounds that have begun or may begin. */
  readonly #rounds = new Set<ExecRound>()
  #config: Promise<AskedCodex<CommandConfig>> | null = null

  constructor(options: EngineSetup) {
    this.#options = options
    this.version = options.binary.version
    // The person's overrides are the last arguments, where they win.
    this.#rights = new Rights({ ...options, overrides: [], work: 'round' })
  }

  prepare(thread: ThreadSpec): PreparedRound {
    // Refuse: it would use codex's configured provider, to which the person has not agreed.
    if (thread.provider !== undefined && thread.provider !== CODEX_PROVIDER) return unusableRound(thread, NO_PROVIDER)
    const refused = refusedArgument(thread.args ?? [])
    if (refused !== null) return unusableRound(thread, unusableArgument(refused))
    const round = new ExecRound({
      ...this.#options,
      thread,
      rights: this.#rights,
      askForConfig: () => this.#askForConfig(),
      trySandbox: () => this.#trySandbox(),
      onOver: () => this.#rounds.delete(round),
    })
    this.#rounds.add(round)
    return round
  }

  get hidesFiles(): boolean {
    return hidesFiles(this.#options.sandbox)
  }

  async settle(): Promise<void> {
    await Promise.all([...this.#rounds].map(round => round.ending))
    await this.#rights.servers.sweep()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    for (const round of this.#rounds) round.discard()
    await this.#config
    await this.settle()
    await this.#rights.servers.close()
  }

  /** Returns the person's configuration for commands; asks until codex has answered once. */
  async #askForConfig(): Promise<AskedCodex<CommandConfig>> {
    if (Object.keys(this.#rights.shielded.forCommands).length === 0) return { answer: NO_CONFIG }
    this.#config ??= this.#ask(ask => readCommandConfig(ask, this.#options.directory)).then(asked => {
      if ('why' in asked) this.#config = null
      else this.#rights.learn(asked.answer)
      return asked
    })
    return await this.#config
  }

  async #trySandbox(): Promise<SandboxProblem | null> {
    const { directory, platform } = this.#options
    const { sandbox } = this.#rights
    if (sandbox.mode === 'danger-full-access') return null
    const asked = await this.#ask(ask =>
      trySandbox(params => ask('command/exec', params), { directory, platform, sandbox }),
    )
    return 'why' in asked ? null : asked.answer
  }

  async #ask<T>(converse: (ask: AskCodex) => Promise<T>): Promise<AskedCodex<T>> {
    const { binary, overrides, directory, clock, platform } = this.#options
    const args = overrides.flatMap(pair => ['-c', pair])
    const options = { path: binary.path, args, env: this.#rights.shielded.env, directory, clock, platform }
    return await askAppServer(options, this.#closing.signal, converse)
  }
}

const NO_PROVIDER: RoundOutcome = {
  class: 'config',
  message: 'The engine exec has no providers; use the engine codex, or the provider codex.',
}

function unusableArgument(name: string): RoundOutcome {
  return { class: 'config', message: `The argument "${name}" cannot be passed to codex exec; remove it.` }
}

interface ExecRoundOptions extends EngineSetup {
  thread: ThreadSpec
  rights: Rights
  /** Returns the person's configuration, which the rights know by then. */
  askForConfig(): Promise<AskedCodex<CommandConfig>>
  /** Returns why its sandbox cannot start anything; null: it can, or that is unknown. */
  trySandbox(): Promise<SandboxProblem | null>
  /** Called once, when no process of it runs or will run. */
  onOver(): void
}

/** Longest line that is read, in bytes. */
const MOST_LINE_BYTES = 16 * 1024 * 1024

/**
 * One `codex exec`, and its turn.
 *
 *     waiting ──run()──▶ running ──exit──▶ over
 *        └──discard(), interrupt()──────────▲
 */
class ExecRound implements PreparedRound {
  readonly thread: ThreadSpec
  readonly #options: ExecRoundOptions
  readonly #feed: RoundFeed
  readonly #activity: Activity
  readonly #networkWaits: NetworkWaits
  readonly #lines: ExecLines
  readonly #attempts = new Attempts({ saysRequests: false })
  /** Aborted when the round is over. */
  readonly #leaving = new AbortController()
  readonly #over = Promise.withResolvers<void>()
  #server: AppServer | null = null
  #hasRun = false
  #isEnding = false
  #isOver = false
  #hasThread = false
  /** Outcome of the turn as codex reports it. */
  #said: RoundOutcome | null = null
  /** Cause of its end; the first counts. */
  #cause: RoundOutcome | null = null

  constructor(options: ExecRoundOptions) {
    this.#options = options
    this.thread = options.thread
    this.#feed = new RoundFeed(options)
    this.#activity = new Activity(options.clock.monotonic())
    this.#networkWaits = new NetworkWaits(this.#activity, options)
    this.#lines = new ExecLines(options.directory)
  }

  /** Resolves at once, or after a process that must end has ended. */
  get ending(): Promise<void> {
    return this.#isEnding ? this.#over.promise : Promise.resolve()
  }

  /** Returns null: only an app-server reports usage limits. */
  async limits(): Promise<null> {
    return null
  }

  async run(run: RoundRun): Promise<RoundOutcome> {
    if (this.#cause) return this.#cause
    this.#hasRun = true
    this.#feed.open(run)
    const { tools = [] } = this.thread
    if (tools.length > 0) run.onEvent({ type: 'warning', round: run.round, message: withoutTools(tools) })
    const schema = await writeSchema(run.outputSchema)
    try {
      return await this.#play(run.input, schema)
    } finally {
      if (schema !== null) await rm(schema.folder, { recursive: true, force: true })
      this.#leave()
    }
  }

  async carryOn(): Promise<null> {
    return null
  }

  async steer(): Promise<false> {
    return false
  }

  async interrupt(): Promise<void> {
    await this.#end(INTERRUPTED)
  }

  discard(): void {
    void this.#end(INTERRUPTED)
  }

  async #play(input: string, schema: { path: string } | null): Promise<RoundOutcome> {
    const asked = await this.#options.askForConfig()
    // A stop came during that request.
    if (this.#cause) return this.#cause
    // Without the person's policy, codemachine's would replace it and expose hidden variables to commands.
    if ('why' in asked) return asked.exit ? exitOutcome(asked.exit, true) : { class: 'crashed', message: asked.why }
    const { clock, log, rights, directory } = this.#options
    const { command, prompt } = execCommand({
      ...this.#options,
      terms: threadTerms(this.thread, directory, rights.sandbox),
      forCommands: rights.shielded.forCommands,
      input,
      shellPolicy: asked.answer.policy,
      schema: schema?.path ?? null,
    })
    const { server } = rights.start(command)
    rights.servers.works(server)
    this.#server = server
    const lines = new LineSplitter(
      line => this.#line(line),
      MOST_LINE_BYTES,
      bytes => log(`codex wrote a line that is not a message: (a line of ${bytes} bytes)`),
    )
    server.stdout.on('data', (chunk: Buffer) => lines.push(chunk))
    server.stdin.end(prompt)
    this.#activity.beginTurn(clock.monotonic())
    const watch = watchForSilence({
      ...this.#options,
      activity: this.#activity,
      onSlept: ms => this.#feed.machineSlept(ms),
      onSilent: message => void this.#end({ class: 'silent', message }),
    })
    const exit = await server.exit
    watch.stop()
    lines.end()
    const outcome = this.#outcome(exit)
    if (outcome.class !== 'worked' || this.thread.noShell || !this.#attempts.areInVain) return outcome
    return withoutSandbox(await this.#options.trySandbox(), outcome)
  }

  #outcome(exit: AppServerExit): RoundOutcome {
    // A turn that ended normally despite a stop did its work.
    if (this.#said?.class === 'worked') return this.#said
    return this.#cause ?? this.#said ?? exitOutcome(exit, !this.#hasThread)
  }

  #line(line: string): void {
    const { clock, log } = this.#options
    this.#activity.heard(clock.monotonic())
    const message = parseObject(line)
    if (message === null || !isExecLine(message)) {
      if (line.trim() !== '') log(`codex wrote a line that is not a message: ${line.slice(0, 200)}`)
      return
    }
    this.#feed.line(line, message)
    for (const notification of this.#lines.take(message)) this.#take(notification)
  }

  /** Logs and ignores a message that it cannot handle, because the wire is open. */
  #take(message: ServerNotification): void {
    const { clock, log } = this.#options
    try {
      this.#activity.note(message, clock.monotonic())
      if (message.method === 'thread/started') this.#hasThread = true
      this.#attempts.note(message)
      if (message.method === 'turn/completed') {
        const { status, error } = message.params.turn
        this.#said = withRetryAt(turnOutcome(status, error), clock.now())
      }
      if (message.method === 'error' && waitsForNetwork(message.params))
        void this.#endLongWait(message.params.error.message)
      this.#feed.notification(message, {})
    } catch (error) {
      log(`${message.method} from codex was not understood: ${messageOf(error)}`)
    }
  }

  /** Ends the round if its network wait lasts too long. */
  async #endLongWait(message: string): Promise<void> {
    if (await this.#networkWaits.lastsTooLong(this.#leaving.signal)) await this.#end({ class: 'network', message })
  }

  /** Ends the round with this cause if it is the first. On SIGINT codex ends its commands before itself. */
  async #end(cause: RoundOutcome): Promise<void> {
    if (this.#isOver) return
    this.#cause ??= cause
    if (!this.#hasRun) return this.#leave()
    const { platform, log } = this.#options
    const server = this.#server
    if (server === null || this.#isEnding) return await this.ending
    this.#isEnding = true
    if (server.pid !== undefined && this.#said === null) {
      await endTree(server.pid, 'SIGINT', platform).catch((error: unknown) => {
        log(`Could not send SIGINT to codex (${server.pid}): ${messageOf(error)}`)
      })
    }
    await server.close()
    await this.#over.promise
  }

  #leave(): void {
    this.#isOver = true
    this.#leaving.abort()
    this.#feed.close()
    this.#over.resolve()
    this.#options.onOver()
  }
}

function withoutTools(tools: readonly { name: string }[]): string {
  const names = tools.map(({ name }) => name).join(', ')
  return `The engine exec cannot offer codemachine's tools, so the agent works without ${names}; the engine codex has them.`
}

/** Writes the schema of the last message to a file, because codex reads it from one. */
async function writeSchema(schema: object | undefined): Promise<{ folder: string; path: string } | null> {
  if (schema === undefined) return null
  const folder = await mkdtemp(join(tmpdir(), 'codemachine-schema-'))
  const path = join(folder, 'schema.json')
  await writeFile(path, JSON.stringify(schema), { mode: 0o600 })
  return { folder, path }
}
