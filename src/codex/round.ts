import type { ServerNotification, ServerRequest } from '../../protocol/codex.ts'
import type { Clock } from '../base/clock.ts'
import { messageOf } from '../base/errors.ts'
import type { PreparedRound, RoundRun } from '../session/engine.ts'
import type { RoundOutcome } from '../session/outcome.ts'
import type { ThreadSpec } from '../session/template.ts'
import { answerRequest } from './answer-request.ts'
import type { AppServer, AppServerExit } from './app-server.ts'
import { exitOutcome, INTERRUPTED, requestOutcome, turnOutcome } from './round-outcome.ts'
import { openRpc, RequestFailure, type Rpc } from './rpc.ts'
import type { SandboxTerms } from './sandbox.ts'
import type { ShieldedEnvironment } from './shielded-environment.ts'
import { startThread } from './start-thread.ts'
import { threadStartParams, turnStartParams } from './thread-params.ts'
import { translate } from './translate.ts'

export interface CodexRoundOptions {
  server: AppServer
  thread: ThreadSpec
  directory: string
  sandbox: SandboxTerms
  /** Variables that commands have otherwise than the app-server (`shieldEnvironment`); left out: none. */
  forCommands?: ShieldedEnvironment['forCommands']
  clientVersion: string
  clock: Clock
  /** Deadline of a request, ms. */
  requestMs: number
  /** What codex gets to end a turn that is interrupted, ms. */
  endMs: number
  /** Whether to ask first if anybody is logged in. */
  checkLogin: boolean
  /** Called when the turn has ended or never will: the process may be closed. May be called again. */
  onIdle(): void
  /** Something that only somebody who looks into codemachine itself wants to know. */
  log(message: string): void
}

type Ready = { threadId: string } | { failure: RoundOutcome }

/**
 * One thread of one app-server, and its one turn.
 *
 *     starting ──▶ ready ──run()──▶ running ──turn/completed, exit, failure──▶ ended
 *         └──────────┴──discard()──────────────────────────────────────────────▶ ended
 */
export class CodexRound implements PreparedRound {
  readonly thread: ThreadSpec
  readonly #options: CodexRoundOptions
  readonly #rpc: Rpc
  readonly #ready: Promise<Ready>
  readonly #ended = Promise.withResolvers<RoundOutcome>()
  readonly #turnStarted = Promise.withResolvers<string>()
  /** Commands that have started and not ended. */
  readonly #openCommands = new Set<string>()
  readonly #seenUnknown = new Set<string>()
  #waiting: (() => void)[] = []
  #run: RoundRun | null = null
  #threadId: string | null = null
  #turnId: string | null = null
  #interrupted = false
  /** Whether the turn has been asked for. */
  #asked = false
  #over = false

  constructor(options: CodexRoundOptions) {
    this.#options = options
    this.thread = options.thread
    this.#rpc = openRpc(options.server.stdout, options.server.stdin, options.clock, {
      onNotification: (method, params) => this.#whenRunning(() => this.#onNotification(method, params)),
      onRequest: (method, params) => this.#onRequest(method, params),
      onLine: (line, message) => this.#whenRunning(() => this.#onLine(line, message)),
      onRubbish: line => options.log(`codex wrote a line that is not a message: ${line.slice(0, 200)}`),
    })
    void options.server.exit.then(exit => this.#onExit(exit))
    this.#ready = this.#start()
  }

  async run(run: RoundRun): Promise<RoundOutcome> {
    this.#run = run
    for (const action of this.#waiting.splice(0)) action()
    const ready = await this.#ready
    if ('failure' in ready) return this.#end(this.#interrupted ? INTERRUPTED : ready.failure)
    if (this.#over) return await this.#ended.promise
    const turn = turnStartParams(ready.threadId, run.input, this.#options.sandbox)
    this.#asked = true
    this.#request('turn/start', turn).catch((error: unknown) =>
      this.#end({ class: 'crashed', message: messageOf(error) }),
    )
    return await this.#ended.promise
  }

  async steer(text: string): Promise<boolean> {
    if (this.#over || this.#turnId === null) return false
    try {
      await this.#request('turn/steer', {
        threadId: this.#threadId,
        expectedTurnId: this.#turnId,
        input: [{ type: 'text', text, text_elements: [] }],
      })
      return true
    } catch (error) {
      this.#options.log(`codex did not take the text: ${messageOf(error)}`)
      return false
    }
  }

  async interrupt(): Promise<void> {
    this.#interrupted = true
    // Before `turn/started` codex answers "no active turn" and lets the turn run on.
    const turnId = this.#asked && (await this.#within(this.#turnStarted.promise))
    if (turnId && !this.#over) {
      const asked = this.#rpc.request('turn/interrupt', { threadId: this.#threadId, turnId }, this.#options.endMs)
      await asked.catch((error: unknown) => this.#options.log(`codex did not take the interrupt: ${messageOf(error)}`))
      await this.#within(this.#ended.promise)
    }
    this.#end(INTERRUPTED)
  }

  discard(): void {
    this.#interrupted = true
    this.#end(INTERRUPTED)
  }

  async #start(): Promise<Ready> {
    const { clientVersion, checkLogin, directory, sandbox, forCommands = {}, requestMs } = this.#options
    const params = threadStartParams(directory, this.thread, sandbox)
    try {
      const options = { clientVersion, params, forCommands, checkLogin, requestMs }
      const { threadId, loggedIn } = await startThread(this.#rpc, options)
      if (!loggedIn) return { failure: { class: 'auth', message: 'Codex is not logged in' } }
      this.#threadId = threadId
      return { threadId }
    } catch (error) {
      if (!(error instanceof RequestFailure)) throw error
      const closed = error.cause === 'closed'
      if (closed) this.#options.onIdle()
      return { failure: closed ? exitOutcome(await this.#options.server.exit, true) : requestOutcome(error) }
    }
  }

  #request(method: string, params: unknown): Promise<unknown> {
    return this.#rpc.request(method, params, this.#options.requestMs)
  }

  /** What the promise resolves with; null if the turn ends, or `endMs` pass, before it. */
  async #within<T>(promise: Promise<T>): Promise<T | null> {
    const settled = new AbortController()
    try {
      return await Promise.race([
        promise,
        this.#ended.promise.then(() => null),
        this.#options.clock.wait(this.#options.endMs, settled.signal).then(() => null),
      ])
    } finally {
      settled.abort()
    }
  }

  /** What comes before `run` is kept for it. */
  #whenRunning(action: () => void): void {
    if (this.#run) action()
    else this.#waiting.push(action)
  }

  #onLine(line: string, message: object): void {
    const method: unknown = Reflect.get(message, 'method')
    if (this.#over || (typeof method === 'string' && /delta$/i.test(method))) return
    this.#run?.onRecord(line)
  }

  #onNotification(method: string, params: unknown): void {
    try {
      this.#dispatch({ method, params } as ServerNotification)
    } catch (error) {
      this.#options.log(`${method} from codex was not understood: ${messageOf(error)}`)
    }
  }

  #dispatch(message: ServerNotification): void {
    const thread = threadOf(message)
    const ours = thread === null || thread === this.#threadId
    if (!ours && message.method !== 'thread/tokenUsage/updated') return
    if (message.method === 'turn/started') {
      this.#turnId = message.params.turn.id
      this.#turnStarted.resolve(this.#turnId)
    }
    this.#trackCommands(message)
    this.#emit(message)
    if (message.method === 'turn/completed' && (this.#turnId ?? message.params.turn.id) === message.params.turn.id) {
      const { status, error } = message.params.turn
      this.#end(turnOutcome(status, error))
    }
  }

  #emit(message: ServerNotification): void {
    const run = this.#run
    if (!run || this.#over) return
    const translation = translate(message, run.round)
    switch (translation.kind) {
      case 'event':
        run.onEvent(translation.event)
        break
      case 'live':
        run.onLive(translation.event)
        break
      case 'unknown':
        this.#logUnknown(message.method)
        break
      case 'ignored':
        break
    }
  }

  #trackCommands(message: ServerNotification): void {
    if (message.method !== 'item/started' && message.method !== 'item/completed') return
    const { item } = message.params
    if (item.type !== 'commandExecution') return
    if (message.method === 'item/started') this.#openCommands.add(item.id)
    else this.#openCommands.delete(item.id)
  }

  #logUnknown(method: string): void {
    if (this.#seenUnknown.has(method)) return
    this.#seenUnknown.add(method)
    this.#options.log(`codex sends ${method}, which this version of codemachine does not know; it is passed over.`)
  }

  #onRequest(method: string, params: unknown): unknown {
    const { result, subject, answer } = answerRequest(
      { method, params } as ServerRequest,
      this.#options.sandbox.acceptsCommands,
    )
    this.#whenRunning(() => {
      const run = this.#run
      if (run && !this.#over) run.onEvent({ type: 'request-answered', round: run.round, method, subject, answer })
    })
    return result
  }

  #onExit(exit: AppServerExit): void {
    this.#rpc.dispose()
    this.#end(this.#interrupted ? INTERRUPTED : exitOutcome(exit, false))
  }

  /** First cause wins. A turn that left commands running ends when these have ended with its process. */
  #end(outcome: RoundOutcome): RoundOutcome {
    if (this.#over) return outcome
    this.#over = true
    this.#options.onIdle()
    if (this.#openCommands.size === 0) this.#ended.resolve(outcome)
    else void this.#options.server.exit.then(() => this.#ended.resolve(outcome))
    return outcome
  }
}

function threadOf(message: ServerNotification): string | null {
  const { params }: { params: unknown } = message
  const id: unknown = typeof params === 'object' && params !== null ? Reflect.get(params, 'threadId') : null
  return typeof id === 'string' ? id : null
}
