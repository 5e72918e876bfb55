import { mkdir } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { Readable, Writable } from 'node:stream'
import type { ClientConnection } from '@agentclientprotocol/sdk'
import type { ServerNotification } from '../../../protocol/codex.ts'
import { messageOf } from '../../base/errors.ts'
import { clipEnd } from '../../base/text.ts'
import {
  type Engine,
  type EngineSetup,
  type PreparedRound,
  type RoundRun,
  type SandboxProblem,
  type ThreadSpec,
  unusableRound,
} from '../../core/engine.ts'
import type { RoundOutcome } from '../../core/events/outcome.ts'
import type { ExternalEngine } from '../../core/shapes/external-engine.ts'
import { CODEX_PROVIDER } from '../../core/shapes/provider.ts'
import { liesIn, type WritableByAgents, writableByAgents } from '../../platform/files.ts'
import { findProgram, isProgram, type ProgramFound, pathVariable } from '../../platform/run-process.ts'
import type { AppServer, AppServerExit } from '../codex/app-server.ts'
import { describeExit } from '../codex/app-server.ts'
import { INTERRUPTED } from '../codex/classify.ts'
import { Activity, RoundFeed, watchForSilence } from '../codex/round-feed.ts'
import { Rights } from '../codex/sandbox/rights.ts'
import { describeProblem } from '../codex/sandbox/try-sandbox.ts'
import { besidesDirectory, boxOverrides, hidesFiles } from '../codex/sandbox.ts'
import { memberOf, stringMember } from '../codex/wire.ts'
import type { AcpUpdates } from './acp-updates.ts'
import { outcomeOfError, outcomeOfStop } from './outcome.ts'
import type { ServedTools } from './tool-server.ts'

/** Outcomes of a round whose agent may not reach its model. */
const MAY_LACK_HOST: ReadonlySet<RoundOutcome['class']> = new Set(['silent', 'auth', 'network'])
/** Longest message that is read, in bytes. */
const MOST_MESSAGE_BYTES = 16 * 1024 * 1024
/** Most permission requests of an agent in a turn; more count as no progress. */
const MOST_ASKED = 2_000

/**
 * Runs rounds on another maker's coding agent over the Agent Client Protocol, version 1: one process per round. Its whole
 * process tree runs in codex's sandbox, with the rights of the rounds and its own folders.
 */
export class AcpEngine implements Engine {
  readonly name: string
  readonly version: string
  readonly mayHideUsage = true
  readonly #options: EngineSetup
  readonly #external: ExternalEngine
  readonly #rounds = new Set<AcpRound>()
  #begun: Rights | null = null

  constructor(external: ExternalEngine, options: EngineSetup) {
    this.name = external.name
    // The sandbox is codex's for every agent.
    this.version = options.binary.version
    this.#external = external
    this.#options = options
  }

  /** Created with its first thread: each run opens every engine. */
  get #rights(): Rights {
    this.#begun ??= new Rights({ ...this.#options, overrides: [], work: 'round' })
    return this.#begun
  }

  prepare(thread: ThreadSpec): PreparedRound {
    const refused = this.refuses(thread)
    return refused === null ? this.#round(thread) : unusableRound(thread, { class: 'config', message: refused })
  }

  refuses(thread: Partial<ThreadSpec>): string | null {
    return refusalOf(thread, this.name)
  }

  /** Starts and ends a session of the agent. Returns its name, or why it cannot work. Never rejects. */
  async greet(): Promise<{ agent: string } | RoundOutcome> {
    return await this.#round({ ...THREAD_OF_TRY, readOnly: true }).greet()
  }

  #round(thread: ThreadSpec): AcpRound {
    const round: AcpRound = new AcpRound({
      ...this.#options,
      external: this.#external,
      thread,
      rights: this.#rights,
      onOver: () => this.#rounds.delete(round),
    })
    this.#rounds.add(round)
    return round
  }

  get reaches(): readonly string[] {
    const { network } = this.#external
    const { sandbox } = this.#options
    return network === true || sandbox.network || sandbox.mode === 'danger-full-access' ? ['*'] : network
  }

  get hidesFiles(): boolean {
    return hidesFiles(this.#options.sandbox)
  }

  async trySandbox(signal: AbortSignal): Promise<SandboxProblem | null> {
    const { sandbox, directory, platform, clock } = this.#options
    if (sandbox.mode === 'danger-full-access' || platform === 'win32') return null
    const { server } = this.#rights.start(boxed(['/bin/sh', '-c', ':'], THREAD_OF_TRY, this.#external, this.#options))
    const over = new AbortController()
    const late = clock.wait(TRY_MS, AbortSignal.any([signal, over.signal])).then(() => server.close())
    const exit = await Promise.race([server.exit, late])
    over.abort()
    if (signal.aborted || exit.reason !== 'exited' || exit.code === 0) return null
    return await describeProblem(exit.stderr, { directory, sandbox, platform })
  }

  async settle(): Promise<void> {
    await Promise.all([...this.#rounds].map(round => round.ending))
    await this.#begun?.servers.sweep()
  }

  async close(): Promise<void> {
    for (const round of this.#rounds) round.discard()
    await this.settle()
    await this.#begun?.servers.close()
  }
}

/** Longest wait for its sandbox, ms. */
const TRY_MS = 15_000
const THREAD_OF_TRY: ThreadSpec = { agent: 'sandbox', developerInstructions: '', model: null, effort: null }

/** Returns a sentence on why this agent cannot run a thread; null: it can. */
function refusalOf({ provider, noShell, args = [] }: Partial<ThreadSpec>, name: string): string | null {
  if (provider !== undefined && provider !== CODEX_PROVIDER)
    return `The engine ${name} has models of its own; use the engine codex with the provider ${provider}.`
  if (noShell)
    return `The engine ${name} always runs commands itself, and this step forbids that; use the engine codex.`
  if (args.length > 0) return `The engine ${name} takes no arguments for codex exec (${args[0]}); leave them out.`
  return null
}

/** Returns the arguments of codex that run a command in the sandbox of a thread. */
function boxed(
  command: readonly string[],
  thread: ThreadSpec,
  external: ExternalEngine,
  { directory, sandbox, platform }: Pick<EngineSetup, 'directory' | 'sandbox' | 'platform'>,
): readonly string[] {
  const { network } = external
  // The tools are served on this machine.
  const hosts = network === true || !thread.tools?.length ? network : [...network, loopbackOfTools(platform)]
  const overrides = boxOverrides(thread, directory, sandbox, { ...external, network: hosts })
  const isKept = hosts !== true && !sandbox.network && platform !== 'win32'
  const guarded = isKept ? ['/bin/sh', '-c', KEPT_TO_HOSTS, 'sh', ...command] : command
  return ['sandbox', ...overrides.flatMap(pair => ['-c', pair]), '--', ...guarded]
}

/** Runs a command only behind codex's proxy: a later codex might drop that feature and open the network. */
const KEPT_TO_HOSTS =
  '[ "$CODEX_NETWORK_PROXY_ACTIVE" = 1 ] || { echo "This codex does not keep the agent to its hosts; network = true in its table lets it reach all." >&2; exit 1; }; exec "$@"'

/** Returns the address of a thread's tools. On Linux, `127.0.0.1` is only the sandbox's own loopback. */
function loopbackOfTools(platform: NodeJS.Platform): string {
  return platform === 'linux' ? '127.0.0.2' : '127.0.0.1'
}

interface AcpRoundOptions extends EngineSetup {
  external: ExternalEngine
  thread: ThreadSpec
  rights: Rights
  /** Called once, when no process of it runs or will run. */
  onOver(): void
}

/** A connection to an agent that has a session. */
interface Session {
  /** Name and version, as the agent reports them. */
  agent: string
  server: AppServer
  connection: ClientConnection
  id: string
  updates: AcpUpdates
}

/**
 * One agent process, and its turns.
 *
 *     waiting ──run()──▶ running ──▶ kept ──carryOn()──▶ running …
 *        │                  └──────────┴──▶ over
 *        └──discard(), interrupt()───────────▲
 */
class AcpRound implements PreparedRound {
  readonly thread: ThreadSpec
  readonly #options: AcpRoundOptions
  readonly #feed: RoundFeed
  readonly #activity: Activity
  readonly #over = Promise.withResolvers<void>()
  /** Aborted when the round must end. */
  readonly #leaving = new AbortController()
  #session: Session | null = null
  #server: AppServer | null = null
  /** Its tools, served from before its session until after it. */
  #tools: ServedTools | null = null
  #run: RoundRun | null = null
  #isTurnOn = false
  /** True once the agent has done or said anything. */
  #hasDone = false
  #asked = 0
  #isOver = false
  /** The cause of its end; the first counts. */
  #cause: RoundOutcome | null = null

  constructor(options: AcpRoundOptions) {
    this.#options = options
    this.thread = options.thread
    this.#feed = new RoundFeed(options)
    this.#activity = new Activity(options.clock.monotonic())
  }

  /** Resolves at once, or after a process that must end has ended. */
  get ending(): Promise<void> {
    return this.#cause !== null || this.#leaving.signal.aborted ? this.#over.promise : Promise.resolve()
  }

  /** Returns the agent's name and version after the start of a session, or why none starts. */
  async greet(): Promise<{ agent: string } | RoundOutcome> {
    const silent: RoundRun = { round: 0, input: '', onEvent() {}, onLive() {}, onRecord() {} }
    this.#feed.open(silent)
    const started = await this.#start(silent)
    await this.#leave()
    return 'class' in started ? started : { agent: started.agent }
  }

  /** Returns null: the protocol has no usage limits. */
  async limits(): Promise<null> {
    return null
  }

  async run(run: RoundRun): Promise<RoundOutcome> {
    if (this.#cause) return this.#cause
    this.#run = run
    this.#feed.open(run)
    const { images = [] } = run
    if (images.length > 0)
      this.#warn(`The engine ${this.#options.external.name} gets no pictures; their paths are in the prompt.`)
    const outcome = this.#withHosts(await this.#begin(run))
    if (!this.#isKept(outcome)) await this.#leave()
    return outcome
  }

  async carryOn(input: string): Promise<RoundOutcome | null> {
    const session = this.#session
    const run = this.#run
    if (session === null || run === null || this.#isOver || this.#leaving.signal.aborted) return null
    this.#feed.open(run)
    const outcome = await this.#turn(session, input)
    if (!this.#isKept(outcome)) await this.#leave()
    return outcome
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

  #isKept({ class: end }: RoundOutcome): boolean {
    const isAlive = this.#session !== null && !this.#leaving.signal.aborted
    return isAlive && (end === 'network' || (end === 'worked' && this.#run?.keepsThread === true))
  }

  /** Adds the reachable hosts to the outcome if the agent did nothing: it may lack one and does not say so. */
  #withHosts(outcome: RoundOutcome): RoundOutcome {
    const { external, sandbox } = this.#options
    const { name, network } = external
    const isOpen = network === true || sandbox.network || sandbox.mode === 'danger-full-access'
    if (isOpen || this.#hasDone || !MAY_LACK_HOST.has(outcome.class)) return outcome
    const hosts = `${name} reaches only ${network.join(', ') || 'no host'}; network in [engines.${name}] can name more.`
    return { ...outcome, message: `${outcome.message ?? ''} ${hosts}` }
  }

  async #begin(run: RoundRun): Promise<RoundOutcome> {
    const started = await this.#start(run)
    if ('class' in started) return this.#cause ?? started
    this.#session = started
    if (this.#cause) return this.#cause
    return await this.#turn(started, promptOf(this.thread, run))
  }

  /** Starts the agent and a session. */
  async #start(run: RoundRun): Promise<Session | RoundOutcome> {
    const { directory, external, clock, requestMs, codemachineVersion, log } = this.#options
    // Import here, not at the top: every run opens these engines.
    const [{ client, methods, ndJsonStream, PROTOCOL_VERSION }, { AcpUpdates }] = await Promise.all([
      import('@agentclientprotocol/sdk'),
      import('./acp-updates.ts'),
    ])
    const program = await this.#program()
    if ('class' in program) return program
    for (const folder of external.home) await mkdir(folder, { recursive: true, mode: 0o700 })
    if (this.#cause) return this.#cause
    const server = this.#spawn([program.path, ...external.command.slice(1)])
    this.#server = server
    let updates: AcpUpdates | null = null
    const connection = client({ name: 'codemachine' })
      .onRequest(methods.client.session.requestPermission, ({ params }) => this.#permit(params))
      .onNotification(methods.client.session.update, ({ params }) => {
        if (this.#isTurnOn && params.sessionId === this.#session?.id && updates !== null)
          for (const each of updates.take(params.update)) this.#take(each)
      })
      .connect(
        ndJsonStream(
          Writable.toWeb(server.stdin) as WritableStream<Uint8Array>,
          Readable.toWeb(server.stdout) as ReadableStream<Uint8Array>,
          { maxMessageBytes: MOST_MESSAGE_BYTES },
        ),
      )
    connection.closed.catch((error: unknown) => log(`${external.name}: the connection broke: ${messageOf(error)}`))
    const ask = async (method: string, params: object) => {
      const answer = connection.agent.request<unknown>(method, params)
      answer.catch(() => {})
      return await this.#within(server, answer, requestMs, method)
    }
    try {
      const hello = await ask(methods.agent.initialize, {
        protocolVersion: PROTOCOL_VERSION,
        clientCapabilities: {
          fs: { readTextFile: false, writeTextFile: false },
          terminal: false,
          _meta: { terminal_output: true },
        },
        clientInfo: { name: 'codemachine', version: codemachineVersion },
      })
      const speaks = memberOf(hello, 'protocolVersion')
      if (speaks !== PROTOCOL_VERSION)
        return config(
          `${external.name} speaks version ${String(speaks)} of the Agent Client Protocol; codemachine speaks ${PROTOCOL_VERSION}.`,
        )
      const tools = await this.#offer(run, hello)
      this.#tools = tools
      const created = await ask(methods.agent.session.new, {
        cwd: directory,
        mcpServers:
          tools === null
            ? []
            : [
                {
                  type: 'http',
                  name: tools.name,
                  url: tools.url,
                  headers: [{ name: 'authorization', value: tools.authorization }],
                },
              ],
      })
      const id = stringMember(created, 'sessionId')
      if (id === null) return config(`${external.name} began no session: its answer to session/new has no sessionId.`)
      updates = new AcpUpdates(directory, id)
      const session = { agent: agentOf(hello), server, connection, id, updates }
      // From here on, `#leave` ends it, even if the choice of the model fails.
      this.#session = session
      await this.#chooseMode(created, id, ask)
      await this.#choose(created, id, ask)
      return session
    } catch (error) {
      return await this.#failed(error, server, true)
    } finally {
      this.#activity.restart(clock.monotonic())
    }
  }

  /** Returns the path of its program, never in a place that an agent can write. */
  async #program(): Promise<{ path: string } | RoundOutcome> {
    const { external, env, platform, directory, sandbox } = this.#options
    const [name] = external.command
    const where = writableByAgents(directory, env, besidesDirectory(sandbox))
    const { path, passedOver } = isAbsolute(name)
      ? await namedProgram(name, where)
      : await findProgram(name, { env, platform, where })
    if (path !== null) return { path }
    if (passedOver.length > 0)
      return config(
        `${external.name}: the program ${name} lies where an agent can write (${passedOver[0]}); install it elsewhere.`,
      )
    return config(
      `${external.name}: there is no program ${name} on PATH; install it, or name it by its absolute path in [engines.${external.name}].`,
    )
  }

  #spawn(command: readonly string[]): AppServer {
    const { rights, external, sandbox } = this.#options
    const { env, forCommands } = rights.shielded
    const own: NodeJS.ProcessEnv = { ...env, ...external.env }
    // Codex starts no git for its sandbox command, so only the sandbox protects the paths here.
    for (const [variable, value] of Object.entries(forCommands)) {
      if (variable === pathVariable(env)) continue
      if (value === null) delete own[variable]
      else own[variable] = value
    }
    const isOpen = sandbox.mode === 'danger-full-access'
    if (!isOpen) Object.assign(own, external.boxEnv)
    const { server } = isOpen
      ? rights.servers.startOther(command, own)
      : rights.servers.start(own, boxed(command, this.thread, external, { ...this.#options, sandbox: rights.sandbox }))
    rights.servers.works(server)
    return server
  }

  /** Serves the tools of the thread if the agent supports that; null: it does not, or there are none. */
  async #offer(run: RoundRun, hello: unknown): Promise<ServedTools | null> {
    const { tools = [] } = this.thread
    const { onToolCall } = run
    if (tools.length === 0 || onToolCall === undefined) return null
    if (memberOf(memberOf(memberOf(hello, 'agentCapabilities'), 'mcpCapabilities'), 'http') !== true) {
      const names = tools.map(({ name }) => name).join(', ')
      this.#warn(
        `The engine ${this.#options.external.name} takes no tools over HTTP, so the agent works without ${names}.`,
      )
      return null
    }
    const { serveTools } = await import('./tool-server.ts')
    return await serveTools({
      tools,
      version: this.#options.codemachineVersion,
      host: loopbackOfTools(this.#options.platform),
      answer: (call, over) => onToolCall(call, AbortSignal.any([over, this.#leaving.signal])),
    })
  }

  /** Selects a mode without permission requests if the agent has one; otherwise each request is allowed. */
  async #chooseMode(
    created: unknown,
    sessionId: string,
    ask: (method: string, params: object) => Promise<unknown>,
  ): Promise<void> {
    const { modes, name } = this.#options.external
    const offered = memberOf(memberOf(created, 'modes'), 'availableModes')
    const ids = (Array.isArray(offered) ? offered : []).map(each => stringMember(each, 'id'))
    const modeId = modes.find(each => ids.includes(each))
    if (modeId === undefined) return
    await ask('session/set_mode', { sessionId, modeId }).catch((error: unknown) => {
      this.#options.log(`${name} does not accept its mode ${modeId}: ${messageOf(error)}`)
    })
  }

  /** Sets model and effort of the thread. Warns in a sentence about a value that the agent refuses. */
  async #choose(
    created: unknown,
    sessionId: string,
    ask: (method: string, params: object) => Promise<unknown>,
  ): Promise<void> {
    const { name } = this.#options.external
    const offered = memberOf(created, 'configOptions')
    for (const [category, value] of [
      ['model', this.thread.model],
      ['thought_level', this.thread.effort],
    ] as const) {
      if (value === null) continue
      const option = (Array.isArray(offered) ? offered : []).find(each => memberOf(each, 'category') === category)
      const configId = stringMember(option, 'id')
      const what = category === 'model' ? 'model' : 'effort'
      try {
        if (configId === null) throw new Error(`it does not let codemachine choose its ${what}`)
        await ask('session/set_config_option', { sessionId, configId, value })
      } catch (error) {
        this.#warn(`The engine ${name} works with its own ${what}, and not with ${value}: ${messageOf(error)}.`)
      }
    }
  }

  async #turn(session: Session, text: string): Promise<RoundOutcome> {
    const { clock } = this.#options
    const { server, connection, id: sessionId, updates } = session
    this.#isTurnOn = true
    for (const each of updates.begin()) this.#take(each)
    this.#activity.beginTurn(clock.monotonic())
    const watch = watchForSilence({
      ...this.#options,
      activity: this.#activity,
      onSlept: ms => this.#feed.machineSlept(ms),
      onSilent: message =>
        void this.#end({ class: 'silent', message: message.replace(/\bcodex\b/, this.#options.external.name) }),
    })
    let usage: unknown
    let outcome: RoundOutcome
    try {
      const answer = connection.agent.request<unknown>('session/prompt', {
        sessionId,
        prompt: [{ type: 'text', text }],
      })
      answer.catch(() => {})
      const said = await this.#within(server, answer, null, 'session/prompt')
      usage = memberOf(said, 'usage')
      outcome = outcomeOfStop(memberOf(said, 'stopReason'))
    } catch (error) {
      outcome = await this.#failed(error, server, false)
    } finally {
      watch.stop()
    }
    for (const each of updates.end(usage)) this.#take(each)
    this.#isTurnOn = false
    // A turn that ended normally despite a stop did its work.
    return outcome.class === 'worked' ? outcome : (this.#cause ?? outcome)
  }

  /** Returns the agent's answer. Throws if the agent ends first or is silent for `mostMs`, ms; null: no limit. */
  async #within(server: AppServer, answer: Promise<unknown>, mostMs: number | null, method: string): Promise<unknown> {
    const { clock } = this.#options
    const over = new AbortController()
    const late =
      mostMs === null ? new Promise<never>(() => {}) : clock.wait(mostMs, over.signal).then(() => new Late(method))
    try {
      const first = await Promise.race([answer, late, server.exit.then(exit => new Gone(exit))])
      if (first instanceof Late || first instanceof Gone) throw first
      return first
    } finally {
      over.abort()
    }
  }

  async #failed(error: unknown, server: AppServer, isStarting: boolean): Promise<RoundOutcome> {
    const { external, clock, requestMs } = this.#options
    const { name } = external
    if (error instanceof Late)
      return { class: 'silent', message: `${name} did not answer ${error.method} within ${requestMs / 1000} s.` }
    const { RequestError } = await import('@agentclientprotocol/sdk')
    if (error instanceof RequestError) return outcomeOfError(error, clock.now(), this.#session?.updates.fullUntil)
    // The exit of the process, a moment later, says more than the broken connection.
    const exit = error instanceof Gone ? error.exit : await server.close()
    const message = describeExit(exit).replace(/^codex\b/, name)
    const isLasting = isStarting && exit.reason === 'exited' && (exit.code === 126 || exit.code === 127)
    return { class: isLasting || exit.reason === 'not-started' ? 'config' : 'crashed', message }
  }

  /** Allows everything: the sandbox is the limit. */
  #permit({ options }: { options: readonly { optionId: string; kind: string }[] }) {
    this.#asked += 1
    if (this.#asked > MOST_ASKED) {
      const message = `${this.#options.external.name} asked for permission ${this.#asked} times in one round.`
      void this.#end({ class: 'refused', message })
    }
    const yes = options.find(({ kind }) => kind === 'allow_once') ?? options.find(({ kind }) => kind === 'allow_always')
    const isOver = this.#leaving.signal.aborted || yes === undefined
    if (isOver) return { outcome: { outcome: 'cancelled' as const } }
    return { outcome: { outcome: 'selected' as const, optionId: yes.optionId } }
  }

  #warn(message: string): void {
    this.#take({ method: 'warning', params: { threadId: null, message } } as unknown as ServerNotification)
  }

  /** Logs and ignores a message that it cannot handle, because the wire is open. */
  #take(message: ServerNotification): void {
    const { clock, log, external } = this.#options
    try {
      const now = clock.monotonic()
      this.#activity.heard(now)
      this.#activity.note(message, now)
      this.#hasDone ||= message.method.startsWith('item/')
      this.#feed.line(JSON.stringify(message), message)
      this.#feed.notification(message, {})
    } catch (error) {
      log(`${message.method} from ${external.name} was not understood: ${messageOf(error)}`)
    }
  }

  /** Ends the round with this cause if it is the first. Tells the agent, and ends its process if it does not stop. */
  async #end(cause: RoundOutcome): Promise<void> {
    if (this.#isOver) return
    this.#cause ??= cause
    this.#leaving.abort()
    const session = this.#session
    if (session !== null && this.#isTurnOn)
      await session.connection.agent.notify('session/cancel', { sessionId: session.id }).catch(() => {})
    if (this.#isTurnOn || this.#server !== null) {
      void this.#server?.close()
      if (!this.#isTurnOn) await this.#leave()
      return await this.#over.promise
    }
    await this.#leave()
  }

  async #leave(): Promise<void> {
    this.#leaving.abort()
    this.#session?.connection.close()
    await this.#server?.close()
    const tools = this.#tools
    this.#tools = null
    await tools?.[Symbol.asyncDispose]()
    if (this.#isOver) return
    this.#isOver = true
    this.#feed.close()
    this.#over.resolve()
    this.#options.onOver()
  }
}

/** Returns a program that the person named by path. It may be in a temporary directory, like codex. */
async function namedProgram(
  file: string,
  { workDirectory, gitDirectories, elsewhere }: WritableByAgents,
): Promise<ProgramFound> {
  if (!(await isProgram(file))) return { path: null, passedOver: [] }
  const isInReach = liesIn(file, [...workDirectory, ...gitDirectories, ...elsewhere])
  return isInReach ? { path: null, passedOver: [file] } : { path: file, passedOver: [] }
}

/** Thrown if the agent did not answer in time. */
class Late {
  readonly method: string

  constructor(method: string) {
    this.method = method
  }
}

/** Thrown if the agent's process ended first. */
class Gone {
  readonly exit: AppServerExit

  constructor(exit: AppServerExit) {
    this.exit = exit
  }
}

function agentOf(hello: unknown): string {
  const info = memberOf(hello, 'agentInfo')
  const [name, version] = [stringMember(info, 'name') ?? 'an agent without a name', stringMember(info, 'version')]
  return clipEnd(version === null ? name : `${name} ${version}`, 200)
}

function config(message: string): RoundOutcome {
  return { class: 'config', message }
}

/** Joins instructions, request and answer format in one text, because the protocol has only one prompt. */
function promptOf({ developerInstructions }: ThreadSpec, { input, outputSchema }: RoundRun): string {
  const parts = [developerInstructions.trimEnd(), input]
  if (outputSchema !== undefined)
    parts.push(
      `End with one message that is a JSON value and nothing else: no text around it, no code fence. It fits this JSON Schema:\n${JSON.stringify(outputSchema)}`,
    )
  return parts.join('\n\n')
}
