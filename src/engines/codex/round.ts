import type { ServerNotification, ServerRequest } from '../../../protocol/codex.ts'
import { messageOf } from '../../base/errors.ts'
import type {
  EngineSetup,
  ModelInUse,
  PreparedRound,
  RoundRun,
  SandboxProblem,
  ThreadSpec,
  UsageLimits,
} from '../../core/engine.ts'
import type { RoundOutcome } from '../../core/events/outcome.ts'
import type { Provider } from '../../core/shapes/provider.ts'
import { askPatiently, canBeAsked } from '../ask-provider.ts'
import type { AppServerExit, CodexOptions } from './app-server.ts'
import {
  type CodexError,
  exitOutcome,
  INTERRUPTED,
  ofProvider,
  requestOutcome,
  turnOutcome,
  withRetryAt,
} from './classify.ts'
import { Activity, NetworkWaits, RoundFeed, type SilenceLimits, watchForSilence } from './round-feed.ts'
import { Attempts, withoutSandbox } from './sandbox/try-sandbox.ts'
import type { SandboxTerms, ShieldedEnvironment } from './sandbox.ts'
import { type Connection, startThread, threadStartParams, turnStartParams, userInput } from './thread-start.ts'
import { answerRequest, questionsInItem, questionsInRequest, RoundTools } from './tools.ts'
import { parseUsageLimits, waitsForNetwork } from './translate.ts'
import { type LostEnd, Turn } from './turn/turn.ts'
import { memberOf, RequestFailure, type Rpc } from './wire.ts'

interface CodexRoundOptions
  extends SilenceLimits,
    Pick<EngineSetup, 'networkMs'>,
    Pick<CodexOptions, 'env' | 'directory' | 'clock' | 'requestMs' | 'endMs' | 'log'> {
  /** Connection to its app-server, not taken yet. */
  connection: Connection
  thread: ThreadSpec
  /** Provider of its model; null: codex's configured one. */
  provider: Provider | null
  sandbox: SandboxTerms
  /** Variables of commands that differ from the app-server's (`shieldEnvironment`). */
  forCommands: ShieldedEnvironment['forCommands']
  /** Returns why its sandbox cannot start anything, tried on its app-server; null: it can. Throws a `RequestFailure`. */
  trySandbox(rpc: Rpc): Promise<SandboxProblem | null>
  /** True to check codex's login before the thread starts. */
  checkLogin: boolean
  /** Returns true if its provider has just served another round, and so may be busy; undefined: no. */
  isServedElsewhere?(): boolean
  /** Called before the first turn begins. */
  onRun(): void
  /** Called once, when no turn runs or will run, so that the process can be closed. */
  onIdle(outcome: RoundOutcome): void
}

/** Time for a hung codex to end its turn before its process is closed, ms. */
const SILENT_GRACE_MS = 30_000
/** Deadline of the request for the account's usage, ms. */
const LIMITS_MS = 10_000
/** Deadline of `turn/steer`, ms: the person's next command waits for it. */
const STEER_MS = 5_000

type Ready = { threadId: string } | { failure: RoundOutcome }

/**
 * One thread of one app-server, and its turn: more than one only where the network broke it off, or the run keeps the
 * thread after one that worked.
 *
 *     starting ──▶ ready ──run()──▶ running ──turn/completed, exit, failure, silence──▶ ended
 *        │           │                │ ▲                                                 ▲
 *        │           │  network, kept │ │ carryOn()                                       │
 *        │           │                ▼ │                                                 │
 *        └───────────┴──discard()──── kept ──discard(), interrupt(), exit ────────────────┘
 */
export class CodexRound implements PreparedRound {
  readonly thread: ThreadSpec
  readonly #options: CodexRoundOptions
  readonly #rpc: Rpc
  readonly #ready: Promise<Ready>
  readonly #feed: RoundFeed
  readonly #activity: Activity
  readonly #tools: RoundTools
  readonly #attempts = new Attempts({ saysRequests: true })
  /** Ids of ended turns: their late notifications do not belong to the running turn. */
  readonly #endedTurns = new Set<string>()
  #run: RoundRun | null = null
  #threadId: string | null = null
  #inUse: ModelInUse = {}
  #turn: Turn | null = null
  /** Cause of the round's end; the first counts. */
  #cause: RoundOutcome | null = null
  #over: RoundOutcome | null = null
  #isAsking = false
  readonly #networkWaits: NetworkWaits
  /** Aborted when the round is over. */
  readonly #ending = new AbortController()

  constructor(options: CodexRoundOptions) {
    const { connection, clock, log } = options
    this.#options = options
    this.thread = options.thread
    this.#feed = new RoundFeed(options)
    this.#activity = new Activity(clock.monotonic())
    this.#networkWaits = new NetworkWaits(this.#activity, options)
    this.#tools = new RoundTools({
      ...options,
      feed: this.#feed,
      tools: options.thread.tools ?? [],
      onToolCall: () => this.#run?.onToolCall?.bind(this.#run),
      over: this.#ending.signal,
    })
    this.#rpc = connection.rpc
    connection.take({
      onNotification: (method, params) => this.#onNotification(method, params),
      onRequest: (method, params) => this.#onRequest(method, params),
      onLine: (line, message) => {
        this.#activity.heard(clock.monotonic())
        this.#feed.line(line, message)
      },
      onRubbish: line => log(`codex wrote a line that is not a message: ${line.slice(0, 200)}`),
    })
    void connection.server.exit.then(exit => this.#onExit(exit))
    this.#ready = this.#start()
  }

  get isOver(): boolean {
    return this.#over !== null
  }

  /** True if its provider has sent something to its running turn within `withinMs`. */
  isServed(withinMs: number): boolean {
    const { clock } = this.#options
    return this.#turn !== null && this.#over === null && this.#activity.isServed(clock.monotonic(), withinMs)
  }

  async limits(): Promise<UsageLimits | null> {
    const ready = await this.#ready
    if ('failure' in ready || this.#over) return null
    try {
      const deadlineMs = Math.min(LIMITS_MS, this.#options.requestMs)
      return parseUsageLimits(await this.#rpc.request('account/rateLimits/read', undefined, deadlineMs))
    } catch (error) {
      this.#options.log(`codex does not say how much of the account's limit is used: ${messageOf(error)}`)
      return null
    }
  }

  async run(run: RoundRun): Promise<RoundOutcome> {
    this.#run = run
    this.#options.onRun()
    const turn = await this.#play(run.input, run.images)
    return turn instanceof Turn ? await turn.ended : turn
  }

  async carryOn(input: string): Promise<RoundOutcome | null> {
    if (this.#over) return this.#cause === INTERRUPTED ? INTERRUPTED : null
    if (this.#turn || !this.#run) return null
    const turn = await this.#play(input)
    if (!(turn instanceof Turn)) return turn
    const outcome = await turn.ended
    return turn.wasRefused && !this.#cause ? null : outcome
  }

  async steer(text: string, images?: readonly string[]): Promise<boolean> {
    const expectedTurnId = this.#turn?.id ?? null
    if (this.#over || expectedTurnId === null) return false
    try {
      const params = { threadId: this.#threadId, expectedTurnId, input: userInput(text, images) }
      await this.#rpc.request('turn/steer', params, Math.min(STEER_MS, this.#options.requestMs))
      return true
    } catch (error) {
      this.#options.log(`codex did not accept the text: ${messageOf(error)}`)
      return false
    }
  }

  async interrupt(): Promise<void> {
    this.#cause ??= INTERRUPTED
    await this.#turn?.interrupt(this.#options.endMs)
    this.#end(this.#cause)
  }

  discard(): void {
    this.#end(INTERRUPTED)
  }

  async #start(): Promise<Ready> {
    const { directory, sandbox, provider, forCommands } = this.#options
    const params = threadStartParams(directory, this.thread, sandbox, provider)
    try {
      const options = { ...this.#options, params, forCommands }
      const { threadId, loggedIn, inUse } = await startThread(this.#options.connection, options)
      if (!loggedIn) return { failure: { class: 'auth', message: 'Codex is not logged in' } }
      this.#threadId = threadId
      this.#inUse = inUse
      return { threadId }
    } catch (error) {
      return { failure: await this.#failure(error) }
    }
  }

  /** Starts a turn; returns the outcome if that is impossible. */
  async #play(input: string, images?: readonly string[]): Promise<Turn | RoundOutcome> {
    const run = this.#run
    if (run) this.#feed.open(run)
    const ready = await this.#ready
    if (this.#over) return this.#over
    if ('failure' in ready) return this.#end(this.#cause ?? ready.failure)
    const { clock, sandbox, requestMs, log } = this.#options
    const { threadId } = ready
    const turn = new Turn({ rpc: this.#rpc, clock, threadId, requestMs, log })
    this.#turn = turn
    this.#activity.beginTurn(clock.monotonic())
    const watch = watchForSilence({
      ...this.#options,
      activity: this.#activity,
      onSlept: ms => this.#feed.machineSlept(ms),
      onSilent: message => void this.#giveUp(turn, { class: 'silent', message }, SILENT_GRACE_MS),
    })
    void turn.ended.then(() => watch.stop())
    const params = turnStartParams(threadId, userInput(input, images), sandbox, run?.outputSchema)
    this.#rpc
      .request('turn/start', params, requestMs)
      .then(answer => turn.accept(answer))
      .catch(async (error: unknown) => {
        if (error instanceof RequestFailure && error.cause !== 'deadline') turn.refuse()
        const failure = await this.#failure(error)
        this.#end(this.#cause ?? failure)
      })
    return turn
  }

  /** Returns the outcome of a failed request. Closes a process that accepts no more requests. */
  async #failure(error: unknown): Promise<RoundOutcome> {
    if (!(error instanceof RequestFailure)) throw error
    if (error.cause !== 'closed') return requestOutcome(error)
    const { server } = this.#options.connection
    void server.close()
    return exitOutcome(await server.exit, this.#threadId === null)
  }

  /** Interrupts the turn, which gets `ms` to end. */
  async #giveUp(turn: Turn, cause: RoundOutcome, ms: number): Promise<void> {
    this.#cause ??= cause
    await turn.interrupt(ms)
    this.#end(this.#cause)
  }

  /** Bounds a wait of codex, which is endless for a missing server. */
  #boundWait(turn: Turn, said: string | null): void {
    const { provider, env } = this.#options
    if (provider !== null && canBeAsked(provider, env)) void this.#askForProvider(turn, provider)
    void this.#endLongWait(turn, said)
  }

  /** Ends the turn if the provider does not answer codemachine either and is not busy with another round. */
  async #askForProvider(turn: Turn, provider: Provider): Promise<void> {
    if (this.#isAsking || this.#options.isServedElsewhere?.()) return
    this.#isAsking = true
    const problem = await askPatiently(provider, null, { ...this.#options, signal: this.#ending.signal })
    this.#isAsking = false
    if (problem === null || this.#over || this.#turn !== turn || this.#options.isServedElsewhere?.()) return
    const outcome = { class: problem.kind === 'away' ? 'network' : 'config', message: problem.message } as const
    await this.#giveUp(turn, outcome, this.#options.endMs)
  }

  /** Ends the turn if its network wait lasts too long. */
  async #endLongWait(turn: Turn, said: string | null): Promise<void> {
    const { provider, endMs } = this.#options
    if (!(await this.#networkWaits.lastsTooLong(this.#ending.signal)) || this.#turn !== turn) return
    const server = provider === null ? 'its server' : `the provider ${provider.name} at ${provider.baseUrl}`
    const why = said === null ? '' : ` (${said})`
    const message = `No network: codex cannot reach ${server}${why}.`
    await this.#giveUp(turn, { class: 'network', message }, endMs)
  }

  #onNotification(method: string, params: unknown): void {
    const message = { method, params } as ServerNotification
    this.#feed.whenOpen(() => this.#take(message))
  }

  /** Logs and ignores a message that it cannot handle, because the wire is open. */
  #take(message: ServerNotification): void {
    try {
      this.#activity.note(message, this.#options.clock.monotonic())
      this.#dispatch(message)
    } catch (error) {
      this.#options.log(`${message.method} from codex was not understood: ${messageOf(error)}`)
    }
  }

  #dispatch(message: ServerNotification): void {
    const { provider } = this.#options
    if ((provider !== null && isOfAccount(message)) || isOfReading(message)) return
    const thread = threadOf(message)
    const ours = thread === null || thread === this.#threadId
    if (!ours && message.method !== 'thread/tokenUsage/updated') return
    if (ours) this.#attempts.note(message)
    switch (message.method) {
      case 'turn/started':
        if (this.#endedTurns.has(message.params.turn.id)) return
        this.#turn?.start(message.params.turn.id)
        break
      case 'turn/completed':
        this.#completeTurn(message.params.turn)
        break
      case 'thread/status/changed':
        this.#followStatus(message.params.status.type)
        break
      case 'error':
        if (this.#turn && waitsForNetwork(message.params))
          this.#boundWait(this.#turn, message.params.error.additionalDetails)
        break
      default:
        break
    }
    this.#turn?.note(message)
    this.#feed.notification(message, this.#inUse)
    if (message.method === 'item/completed') this.#tools.keep(questionsInItem(message.params.item))
  }

  #completeTurn({ id, status, error }: { id: string; status: string; error: CodexError | null }): void {
    const turn = this.#turn
    if (turn === null || this.#endedTurns.has(id) || (turn.id ?? id) !== id) return
    this.#endedTurns.add(id)
    const outcome = turnOutcome(status, error)
    if (outcome.class === 'worked' && !this.thread.noShell && this.#attempts.areInVain)
      void this.#endAfterTrying(turn, outcome)
    else this.#endTurn(turn, outcome)
  }

  /** Ends a turn after a trial of the sandbox: a turn that could start nothing did not work. */
  async #endAfterTrying(turn: Turn, outcome: RoundOutcome): Promise<void> {
    const found = await this.#options.trySandbox(this.#rpc).catch(() => null)
    if (!this.#over) this.#endTurn(turn, withoutSandbox(found, outcome))
  }

  /** Follows the thread's status. If an idle thread never reported the end of its turn, reads the end back. */
  #followStatus(status: string): void {
    if (status === 'active') this.#turn?.isActive()
    else void this.#turn?.lostEnd().then(end => end && this.#feed.whenOpen(() => this.#takeLostEnd(end)))
  }

  /** Handles and records a lost end as if codex had reported it. */
  #takeLostEnd({ missing, wasToldToStart, ...turn }: LostEnd): void {
    const [threadId, turnId] = [this.#threadId, turn.id]
    this.#options.log(`codex did not report the end of its turn (${turn.status}); it was read back from the thread.`)
    const untold = [
      ...(wasToldToStart ? [] : [{ method: 'turn/started', params: { threadId, turn: { ...turn, items: [] } } }]),
      ...missing.map(item => ({ method: 'item/completed', params: { item, threadId, turnId } })),
      { method: 'turn/completed', params: { threadId, turn: { ...turn, items: [] } } },
    ]
    for (const message of untold) {
      this.#feed.line(JSON.stringify(message), message)
      this.#take(message as ServerNotification)
    }
  }

  #endTurn(turn: Turn, said: RoundOutcome): void {
    const { clock, provider } = this.#options
    const known = withRetryAt(provider ? ofProvider(said, provider) : said, clock.now())
    // A turn that ended normally despite a stop did its work.
    const outcome = known.class === 'worked' ? known : (this.#cause ?? known)
    const stays = outcome.class === 'network' || (outcome.class === 'worked' && this.#run?.keepsThread === true)
    if (!stays || this.#cause) {
      this.#end(outcome)
      return
    }
    this.#turn = null
    this.#feed.hold()
    turn.end(outcome)
  }

  /** Answers at once, so that codex never waits; only codemachine's own tools may take time. */
  #onRequest(method: string, params: unknown): unknown {
    const request = { method, params } as ServerRequest
    if (request.method === 'item/tool/call') return this.#tools.call(request.params)
    const answered = answerRequest(request)
    this.#feed.requestAnswered(method, answered)
    if (request.method === 'item/tool/requestUserInput') this.#tools.keep(questionsInRequest(request.params))
    return answered.result
  }

  #onExit(exit: AppServerExit): void {
    this.#turn?.refuse()
    this.#end(this.#cause ?? exitOutcome(exit, this.#threadId === null))
  }

  /** Ends the round; the first cause counts. Leftover commands end with its process. */
  #end(outcome: RoundOutcome): RoundOutcome {
    if (this.#over) return this.#over
    this.#over = outcome
    this.#ending.abort()
    this.#feed.close()
    this.#options.onIdle(outcome)
    this.#turn?.end(this.#activity.hasCommands ? this.#options.connection.server.exit.then(() => outcome) : outcome)
    return outcome
  }
}

/** True for codex's notice about the read of a thread. */
function isOfReading({ method, params }: ServerNotification): boolean {
  return method === 'deprecationNotice' && params.summary.startsWith('Full-history hydration')
}

/** True for notices that do not concern a person's provider: account limits, and unknown metadata of its model. */
function isOfAccount({ method, params }: ServerNotification): boolean {
  if (method === 'account/rateLimits/updated') return true
  return method === 'warning' && params.message.startsWith('Model metadata for ')
}

/** Returns the id of a notification's thread; null: none. */
export function threadOf(message: ServerNotification): string | null {
  const id = memberOf(message.params, 'threadId')
  return typeof id === 'string' ? id : null
}
