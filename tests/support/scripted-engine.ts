import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import { setTimeout as delay, setImmediate as nextTick } from 'node:timers/promises'
import type { ServerNotification } from '../../protocol/codex.ts'
import { unreachable } from '../../src/base/errors.ts'
import type { ThreadSpec } from '../../src/core/engine.ts'
import {
  defineEngine,
  type Engine,
  type EngineKind,
  type EngineSetup,
  type PreparedRound,
  type RoundRun,
  type UsageLimits,
} from '../../src/core/engine.ts'
import type { RoundOutcome } from '../../src/core/events/outcome.ts'
import { CODEX_PROVIDER } from '../../src/core/shapes/provider.ts'
import type { ItemsReply, ModelRequest, Reply, ReplyHeaders, ReplyItem, Script } from '../../src/demo/model/reply.ts'
import { type CodexError, INTERRUPTED, turnOutcome, withRetryAt } from '../../src/engines/codex/classify.ts'
import { RoundFeed } from '../../src/engines/codex/round-feed.ts'
import type { UsageWindows } from './scripted-model.ts'

export interface ScriptedEngineOptions {
  /** By which threads name it; left out: `codex`, in whose place it stands. */
  name?: string
  script: (request: PlayedRequest) => ReturnType<Script>
  /** As for the scripted model. */
  account?: () => UsageWindows | null
}

/** What a round asks, and the provider that it asks. */
export interface PlayedRequest extends ModelRequest {
  provider: string
}

/** A kind of engine that plays a script, and what its rounds have asked so far, in their order. */
export interface ScriptedRounds {
  kind: EngineKind
  requests: readonly PlayedRequest[]
}

/**
 * Plays the scripts of the scripted model in this process: without codex, a server or a sandbox. Commands run in bash, as the
 * person; tools are those of the thread and the plan. It tries nothing again: a fault ends its turn at once.
 */
export function scriptedEngine({ name = 'codex', ...options }: ScriptedEngineOptions): ScriptedRounds {
  const model: PlayedModel = { ...options, requests: [], threads: 0 }
  const can = { steer: true, tools: true, carryOn: true }
  return {
    kind: defineEngine({ name, sandbox: 'none', can, open: setup => openEngine(name, setup, model) }),
    requests: model.requests,
  }
}

interface PlayedModel extends Omit<ScriptedEngineOptions, 'name'> {
  requests: PlayedRequest[]
  /** How many threads have asked something. */
  threads: number
}

function openEngine(name: string, setup: EngineSetup, model: PlayedModel): Engine {
  const rounds = new Set<ScriptedRound>()
  const ended = async () => void (await Promise.all([...rounds].filter(each => each.isOver).map(each => each.ended)))
  return {
    name,
    version: setup.binary.version,
    hidesFiles: false,
    prepare(thread) {
      const round = new ScriptedRound(thread, setup, model)
      rounds.add(round)
      void round.ended.then(() => rounds.delete(round))
      return round
    },
    settle: ended,
    async close() {
      for (const round of rounds) round.discard()
      await ended()
    },
  }
}

/** What a turn waits for before it goes on without a command, ms: as codex, where the script does not say. */
const YIELD_MS = 10_000

/** One thread. `ended` resolves when it is over and its commands have ended. */
class ScriptedRound implements PreparedRound {
  readonly thread: ThreadSpec
  readonly ended: Promise<void>
  readonly #setup: EngineSetup
  readonly #model: PlayedModel
  readonly #feed: RoundFeed
  readonly #id = randomUUID()
  readonly #ending = new AbortController()
  readonly #over: Promise<void>
  readonly #commands = new Set<Command>()
  readonly #said: { role: 'user' | 'assistant'; text: string }[] = []
  readonly #total = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningOutputTokens: 0, totalTokens: 0 }
  #conversation: number | null = null
  #step = 0
  #attempt = 0
  #turns = 0
  #items = 0
  #lastOutputs: readonly string[] = []
  /** Of the turn that runs, if it has begun and not ended: what a person has said since its last request. */
  #steered: string[] | null = null
  /** Breaks off the reply that is under way, as codex does with what is said meanwhile. */
  #heard = Promise.withResolvers<typeof HEARD>()
  #run: RoundRun | null = null
  #turn: Promise<unknown> = Promise.resolve()

  constructor(thread: ThreadSpec, setup: EngineSetup, model: PlayedModel) {
    this.thread = thread
    this.#setup = setup
    this.#model = model
    this.#feed = new RoundFeed(setup)
    const { signal } = this.#ending
    this.#over = new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
    this.ended = this.#over.then(async () => {
      await this.#turn
      await Promise.all([...this.#commands].map(command => command.kill()))
    })
  }

  get isOver(): boolean {
    return this.#ending.signal.aborted
  }

  async limits(): Promise<UsageLimits | null> {
    const used = this.#isOfAccount ? this.#model.account?.() : null
    return used ? limitsOf(used) : null
  }

  async run(run: RoundRun): Promise<RoundOutcome> {
    this.#run = run
    return await this.#play(run.input)
  }

  async carryOn(input: string): Promise<RoundOutcome | null> {
    if (this.isOver || this.#run === null) return null
    return await this.#play(input)
  }

  async steer(text: string): Promise<boolean> {
    if (this.isOver || this.#steered === null) return false
    this.#steered.push(text)
    this.#heard.resolve(HEARD)
    return true
  }

  async interrupt(): Promise<void> {
    this.#ending.abort()
    await this.ended
  }

  discard(): void {
    this.#ending.abort()
  }

  async #play(input: string): Promise<RoundOutcome> {
    const run = this.#run
    if (run === null || this.isOver) return INTERRUPTED
    this.#feed.open(run)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#turn = promise
    // A mistake of a script ends the turn as well.
    const outcome = await this.#turnOf(input).finally(resolve)
    this.#steered = null
    const stays = outcome.class === 'network' || (outcome.class === 'worked' && run.keepsThread === true)
    if (stays && !this.isOver) {
      this.#feed.hold()
      return outcome
    }
    // A command that is left running ends with the round, before its caller hears of that.
    this.#ending.abort()
    await this.ended
    this.#feed.close()
    return outcome
  }

  async #turnOf(input: string): Promise<RoundOutcome> {
    // As with every engine, no turn has begun by the time that it was asked for.
    await nextTick()
    if (this.isOver) return INTERRUPTED
    const turn = { id: `${this.#id}-${++this.#turns}`, status: 'inProgress', items: [], error: null }
    this.#steered = [input]
    this.#tell('turn/started', { turn })
    const { status, error } = await this.#converse(this.#steered)
    if (error !== null) this.#tell('error', { error: { additionalDetails: null, ...error }, willRetry: false })
    this.#tell('turn/completed', { turn: { ...turn, status, error } })
    return withRetryAt(turnOutcome(status, error), this.#setup.clock.now())
  }

  /** Asks and does what is answered, until nothing is left to be done. */
  async #converse(said: string[]): Promise<TurnEnd> {
    for (;;) {
      for (const text of said.splice(0)) this.#hear(text)
      this.#heard = Promise.withResolvers()
      const request = this.#request()
      const reply = await this.#orEnd(this.#model.script(request))
      const end = reply === HEARD || reply === ENDED ? reply : await this.#follow(reply, request)
      if (this.isOver || end === ENDED) return { status: 'interrupted', error: null }
      if (end === HEARD || 'message' in end) this.#attempt++
      if (end === HEARD) continue
      if ('message' in end) return { status: 'failed', error: end }
      this.#step++
      this.#attempt = 0
      if (end.outputs.length > 0) this.#lastOutputs = end.outputs
      else if (said.length === 0) return { status: 'completed', error: null }
    }
  }

  /** Does what a reply says. */
  async #follow(reply: Reply, request: ModelRequest): Promise<ReplyOver> {
    if ('headers' in reply) this.#tellLimits(reply.headers ?? {})
    switch (reply.kind) {
      case 'items':
        return await this.#answer(reply, request)
      case 'status':
        return errorOfStatus(reply.status, reply.body)
      case 'raw-stream':
      case 'close-before-headers':
        return DISCONNECTED
      case 'hang-before-headers':
        return await this.#orEnd(new Promise<never>(() => {}))
      default:
        return unreachable(reply)
    }
  }

  async #answer({ items, end, usage, deltaMs = 0 }: ItemsReply, request: ModelRequest): Promise<ReplyOver> {
    const outputs: Promise<string>[] = []
    for (const item of end?.kind === 'cut' ? [] : items) {
      const waited = item.kind === 'hold' ? await this.#orEnd(item.until) : null
      if (waited === ENDED || waited === HEARD) return waited
      if (this.isOver) return ENDED
      await this.#do(item, outputs, deltaMs)
    }
    if (end !== undefined && end.kind !== 'completed') return errorOfEnd(end)
    if (usage !== null) {
      const output = Math.ceil(JSON.stringify(items).length / 4)
      const input = Math.ceil(JSON.stringify(request.body).length / 4)
      this.#tellUsage(usage ?? { input, cachedInput: 0, output, reasoning: 0 })
    }
    // What is said while tools work waits for them.
    const given = await Promise.race([Promise.all(outputs), this.#whenEnded()])
    return given === ENDED ? ENDED : { outputs: given }
  }

  async #do(item: ReplyItem, outputs: Promise<string>[], deltaMs: number): Promise<void> {
    switch (item.kind) {
      case 'message': {
        const whole = { type: 'agentMessage', id: this.#itemId(), text: item.text, phase: item.phase }
        this.#tell('item/started', { item: { ...whole, text: '' } })
        for (let at = 0; at < item.text.length; at += item.chunkSize) {
          if (deltaMs > 0) await delay(deltaMs)
          const delta = item.text.slice(at, at + item.chunkSize)
          this.#tell('item/agentMessage/delta', { itemId: whole.id, delta })
        }
        this.#tell('item/completed', { item: whole })
        this.#said.push({ role: 'assistant', text: item.text })
        return
      }
      case 'reasoning': {
        const { summary, content } = item
        this.#tell('item/completed', { item: { type: 'reasoning', id: this.#itemId(), summary, content } })
        return
      }
      case 'web-search':
        this.#tell('item/completed', { item: { type: 'webSearch', id: this.#itemId(), query: item.query } })
        return
      case 'function-call':
        outputs.push(this.#call(item.name, JSON.parse(item.arguments)))
        return
      case 'hold':
        return
      case 'apply-patch':
      case 'raw':
        throw new Error(`The scripted engine has no "${item.kind}"; play it with the real codex.`)
      default:
        unreachable(item)
    }
  }

  async #call(name: string, args: Record<string, unknown>): Promise<string> {
    if (name === 'exec_command') return await this.#execute(args as unknown as ExecArguments)
    if (name === 'update_plan') {
      const { explanation = null, plan } = args as { explanation?: string; plan: { step: string; status: string }[] }
      const steps = plan.map(each => ({ ...each, status: each.status === 'in_progress' ? 'inProgress' : each.status }))
      this.#tell('turn/plan/updated', { explanation, plan: steps })
      return 'Plan updated'
    }
    const tool = this.thread.tools?.find(each => each.name === name)
    if (tool === undefined || !this.#run?.onToolCall) return `unsupported call: ${name}`
    const call = { type: 'dynamicToolCall', id: this.#itemId(), tool: name, arguments: args }
    this.#tell('item/started', { item: { ...call, status: 'inProgress' } })
    const answer = await this.#run.onToolCall({ tool: name, arguments: args }, this.#ending.signal)
    const status = answer.success ? 'completed' : 'failed'
    this.#tell('item/completed', { item: { ...call, status, durationMs: 1 } })
    return answer.text
  }

  async #execute({ cmd, yield_time_ms: yieldMs = YIELD_MS, workdir }: ExecArguments): Promise<string> {
    if (this.thread.noShell) return 'unsupported call: exec_command'
    const { env, directory } = this.#setup
    const cwd = workdir ?? directory
    const begun = { type: 'commandExecution', id: this.#itemId(), command: `/bin/bash -lc '${cmd}'`, cwd }
    const item = {
      ...begun,
      commandActions: [],
      processId: null,
      aggregatedOutput: null,
      exitCode: null,
      durationMs: null,
    }
    this.#tell('item/started', { item: { ...item, status: 'inProgress' } })
    const startedAt = performance.now()
    const command = new Command(cmd, { cwd, env: { ...env, CODEX_THREAD_ID: this.#id } }, text =>
      this.#tell('item/commandExecution/outputDelta', { itemId: item.id, delta: text }),
    )
    this.#commands.add(command)
    const told = command.ended.then(({ exitCode, output }) => {
      this.#commands.delete(command)
      const status = exitCode === 0 ? 'completed' : 'failed'
      const durationMs = Math.round(performance.now() - startedAt)
      // One that ends with its round has not come to its end.
      if (!this.isOver)
        this.#tell('item/completed', { item: { ...item, status, exitCode, durationMs, aggregatedOutput: output } })
      return `Wall time: ${(durationMs / 1000).toFixed(4)} seconds\nProcess exited with code ${exitCode}\nOutput:\n${output}`
    })
    const late = new AbortController()
    const first = await Promise.race([told, delay(yieldMs, null, { signal: late.signal }).catch(() => null)])
    late.abort()
    return first ?? `Process running with session ID 1\nOutput:\n${command.output()}`
  }

  #hear(text: string): void {
    this.#said.push({ role: 'user', text })
    const content = [{ type: 'text', text, text_elements: [] }]
    this.#tell('item/completed', { item: { type: 'userMessage', id: this.#itemId(), content } })
  }

  #request(): PlayedRequest {
    this.#conversation ??= this.#model.threads++
    const { model, effort, developerInstructions, tools = [], noShell } = this.thread
    const schema = this.#run?.outputSchema
    const input = [{ role: 'developer', text: developerInstructions }, ...this.#said].map(({ role, text }) => ({
      type: 'message',
      role,
      content: [{ type: role === 'assistant' ? 'output_text' : 'input_text', text }],
    }))
    const request: PlayedRequest = {
      kind: 'turn',
      provider: this.thread.provider ?? CODEX_PROVIDER,
      thread: this.#id,
      conversation: this.#conversation,
      isSubAgent: false,
      step: this.#step,
      attempt: this.#attempt,
      model: model ?? 'scripted',
      effort,
      developerTexts: [developerInstructions],
      userTexts: this.#said.filter(({ role }) => role === 'user').map(({ text }) => text),
      lastOutputs: this.#lastOutputs,
      tools: [...(noShell ? [] : ['exec_command']), 'update_plan', ...tools.map(({ name }) => name)],
      headers: {},
      body: {
        model: model ?? 'scripted',
        input: [...input, ...this.#lastOutputs.map(output => ({ type: 'function_call_output', output }))],
        ...(schema && { text: { format: { type: 'json_schema', strict: true, schema } } }),
      },
    }
    this.#model.requests.push(request)
    return request
  }

  #tellUsage(usage: { input: number; cachedInput: number; output: number; reasoning: number }): void {
    const last = {
      inputTokens: usage.input,
      cachedInputTokens: usage.cachedInput,
      outputTokens: usage.output,
      reasoningOutputTokens: usage.reasoning,
      totalTokens: usage.input + usage.output,
    }
    for (const key of Object.keys(last) as (keyof typeof last)[]) this.#total[key] += last[key]
    const tokenUsage = { total: { ...this.#total }, last, modelContextWindow: 258_400 }
    this.#tell('thread/tokenUsage/updated', { tokenUsage })
  }

  /** The account's limits, where the headers of a reply have some. */
  #tellLimits(headers: ReplyHeaders): void {
    const window = (name: string) => {
      const read = (what: string) => Number(headers[`x-codex-${name}-${what}`])
      if (headers[`x-codex-${name}-used-percent`] === undefined) return null
      return {
        usedPercent: read('used-percent'),
        windowDurationMins: read('window-minutes'),
        resetsAt: read('reset-at'),
      }
    }
    const rateLimits = { limitId: 'codex', primary: window('primary'), secondary: window('secondary'), credits: null }
    if (this.#isOfAccount && (rateLimits.primary ?? rateLimits.secondary))
      this.#tell('account/rateLimits/updated', { rateLimits })
  }

  /** Tells the run as if codex had told it, in codex's words, which are also what is recorded of the round. */
  #tell(method: string, params: { [name: string]: unknown }): void {
    const where = { threadId: this.#id, turnId: `${this.#id}-${this.#turns}` }
    const whole = { method, params: { ...where, ...params }, emittedAtMs: this.#setup.clock.now() }
    this.#feed.line(JSON.stringify(whole), whole)
    this.#feed.notification(whole as unknown as ServerNotification, {
      model: this.thread.model ?? 'scripted',
      effort: this.thread.effort,
    })
  }

  #itemId(): string {
    return `item_${++this.#items}`
  }

  /** The limits are those of the account, which has nothing to do with another provider. */
  get #isOfAccount(): boolean {
    const { provider = CODEX_PROVIDER } = this.thread
    return provider === CODEX_PROVIDER
  }

  async #orEnd<T>(promise: T | Promise<T>): Promise<T | typeof ENDED | typeof HEARD> {
    return await Promise.race([promise, this.#heard.promise, this.#whenEnded()])
  }

  async #whenEnded(): Promise<typeof ENDED> {
    await this.#over
    return ENDED
  }
}

const ENDED = Symbol('ended')
const HEARD = Symbol('heard')

/** How a turn ended, in codex's words. */
type TurnEnd = { status: 'completed' | 'interrupted'; error: null } | { status: 'failed'; error: CodexError }

/** How a reply came to its end: with what its calls gave, with a fault, broken off by what was said, or by the end of the round. */
type ReplyOver = { outputs: readonly string[] } | CodexError | typeof HEARD | typeof ENDED

interface ExecArguments {
  cmd: string
  yield_time_ms?: number
  workdir?: string
}

/** A line in bash, in a process group of its own. */
class Command {
  readonly ended: Promise<{ exitCode: number; output: string }>
  readonly #child: ChildProcess
  #output = ''

  constructor(cmd: string, where: { cwd: string; env: NodeJS.ProcessEnv }, onOutput: (text: string) => void) {
    const options = { ...where, detached: true, stdio: ['ignore', 'pipe', 'pipe'] as const }
    this.#child = spawn('/bin/bash', ['-c', cmd], { ...options, stdio: [...options.stdio] })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text
        onOutput(text)
      })
    }
    this.ended = new Promise(resolve => {
      this.#child.once('error', ({ message }) => resolve({ exitCode: 127, output: message }))
      this.#child.once('close', code => resolve({ exitCode: code ?? 137, output: this.#output }))
    })
  }

  output(): string {
    return this.#output
  }

  /** Ends it with all that it has started, but for what has left its group; resolves when it has ended. */
  async kill(): Promise<void> {
    const { pid } = this.#child
    try {
      if (pid !== undefined) process.kill(-pid, 'SIGKILL')
    } catch {
      // It has ended.
    }
    this.#child.stdout?.destroy()
    this.#child.stderr?.destroy()
    await this.ended
  }
}

const DISCONNECTED: CodexError = {
  message: 'stream disconnected before completion: error sending request',
  codexErrorInfo: 'other',
}

/** What codex makes of an answer without a stream. */
function errorOfStatus(status: number, body: unknown): CodexError {
  const error: { type?: string; code?: string; resets_at?: number; message?: string } = Object(Object(body).error)
  const said = error.message ?? (typeof body === 'string' ? body : `status ${status}`)
  if (error.type === 'usage_limit_reached') {
    const when = error.resets_at === undefined ? 'later' : `on ${new Date(error.resets_at * 1000).toISOString()}`
    return { message: `You've hit your usage limit. Try again ${when}.`, codexErrorInfo: 'usageLimitExceeded' }
  }
  if (error.code === 'insufficient_quota' || error.code === 'usage_not_included')
    return { message: 'Quota exceeded. Check your plan and billing details.', codexErrorInfo: 'usageLimitExceeded' }
  if (error.code === 'model_not_found') return { message: said, codexErrorInfo: 'modelNotFound' }
  const message = `unexpected status ${status} ${STATUS_CODES[status]}: ${said}`
  return { message, codexErrorInfo: { httpConnectionFailed: { httpStatusCode: status } } }
}

/** What codex makes of a stream that did not come to its end. */
function errorOfEnd(end: Exclude<NonNullable<ItemsReply['end']>, { kind: 'completed' }>): CodexError {
  switch (end.kind) {
    case 'cut':
      return DISCONNECTED
    case 'failed': {
      const known: Record<string, string> = {
        context_length_exceeded: 'contextWindowExceeded',
        rate_limit_exceeded: 'rateLimitExceeded',
        slow_down: 'serverOverloaded',
        server_error: 'internalServerError',
      }
      return { message: end.message, codexErrorInfo: known[end.code] ?? 'other' }
    }
    case 'incomplete':
      return { message: `Incomplete response returned, reason: ${end.reason}`, codexErrorInfo: 'other' }
    default:
      return unreachable(end)
  }
}

function limitsOf({ primary, secondary }: UsageWindows): UsageLimits {
  const window = (of: UsageWindows['primary']) =>
    of === undefined
      ? null
      : { usedPercent: of.usedPercent, windowMinutes: of.windowMinutes, resetsAt: of.resetsAt * 1000 }
  return { primary: window(primary), secondary: window(secondary) }
}
