import type { Kernel, Process } from './kernel.ts'
import type { Child } from './machine.ts'

/** What a model has an agent do in a turn: each is sent, or done, before the next. */
export type Act =
  | { do: 'say'; text: string }
  | { do: 'command'; line: string; ms: number; exitCode: number; output: string; act?: () => void }
  | { do: 'start'; line: string; act: () => void; afterMs: number }
  /** Calls of the client's tools, all at once. */
  | { do: 'call'; calls: readonly ToolCall[] }

interface ToolCall {
  tool: string
  arguments: object
}

/** How a turn comes to its end. */
export type TurnEnd =
  | { kind: 'completed' | 'lost-end' | 'mute' | 'dies' | 'cut-line' | 'killed' }
  | { kind: 'failed'; message: string; info: unknown }

/** Who plays the model and the sandbox. */
export interface Agent {
  /** @param schema of the answer that is asked for, as JSON; empty: any text will do */
  turn(
    input: string,
    instructions: string,
    schema: string,
  ): { acts: readonly Act[]; end: TurnEnd; delayMs: () => number; isReordered: boolean }
  /** What a line comes to that is run outside of a turn, such as a gate. */
  command(line: string, directory: string): { ms: number; exitCode: number; output: string }
  limits(): object | null
  /** Told of what is said to a turn that runs. */
  steered(text: string): void
}

interface Request {
  id?: number | string
  method?: string
  params?: Record<string, unknown>
  /** Of an answer to a request of its own; left out: the client cannot. */
  result?: { success: boolean; contentItems: unknown }
}

/** An app-server of codex: its side of the protocol, as docs/inside/codex.md has it. */
export class Codex {
  readonly #kernel: Kernel
  readonly #process: Process
  readonly #child: Child
  readonly #args: readonly string[]
  readonly #agent: Agent
  #rest = ''
  #thread = ''
  #instructions = ''
  #turn: { id: string; isOver: boolean; items: object[]; status: string } | null = null
  #turns: { id: string; isOver: boolean; items: object[]; status: string }[] = []
  #calls = 0
  /** Its own requests that wait for an answer, by id. */
  readonly #asked = new Map<unknown, (result: Request['result']) => void>()
  #tokens = 0

  constructor(given: {
    kernel: Kernel
    process: Process
    child: Child
    args: readonly string[]
    agent: Agent
  }) {
    this.#kernel = given.kernel
    this.#process = given.process
    this.#child = given.child
    this.#args = given.args
    this.#agent = given.agent
  }

  listen(): void {
    const { stdin } = this.#child
    if (this.#args.includes('--version')) {
      stdin.resume()
      this.#after(20, () => this.#child.finish(0, 'codex-cli 0.169.0\n', ''))
      return
    }
    stdin.on('data', (chunk: Buffer) => {
      const lines = (this.#rest + chunk.toString('utf8')).split('\n')
      this.#rest = lines.pop() ?? ''
      for (const line of lines) this.#kernel.soon(this.#process, () => this.#take(JSON.parse(line)))
    })
    stdin.on('end', () => this.#after(30, () => this.#kernel.end(this.#process, 0)))
    this.#process.onSignal = () => this.#after(10, () => this.#kernel.end(this.#process, null, 'SIGTERM'))
  }

  #after(ms: number, act: () => void): void {
    this.#kernel.timer(this.#process, ms, act)
  }

  #write(text: string): void {
    if (this.#process.isAlive && !this.#child.stdout.destroyed) this.#child.stdout.write(text)
  }

  #send(message: object): void {
    this.#write(`${JSON.stringify(message)}\n`)
  }

  #tell(method: string, params: object): void {
    this.#send({ method, params })
  }

  #take({ id, method, params = {}, result }: Request): void {
    if (method === undefined) {
      this.#asked.get(id)?.(result)
      return
    }
    const answer = this.#answerTo(method, params, id)
    if (answer !== null && id !== undefined) this.#after(2, () => this.#send({ id, ...answer }))
  }

  /** What it says to a request; null: that comes later. */
  #answerTo(
    method: string,
    params: Record<string, unknown>,
    id: Request['id'],
  ): { result: unknown } | { error: object } | null {
    switch (method) {
      case 'initialize':
        return { result: { userAgent: 'codex/0.169.0' } }
      case 'account/read':
        return { result: { account: { type: 'chatgpt' }, requiresOpenaiAuth: true } }
      case 'config/read':
        return { result: { config: {} } }
      case 'model/list':
        return { result: { data: [], nextCursor: null } }
      case 'account/rateLimits/read':
        return { result: { rateLimits: this.#agent.limits() } }
      case 'command/exec':
        this.#execute(id, params)
        return null
      case 'thread/start':
        this.#thread = this.#kernel.ids.uuid()
        this.#instructions = String(params.developerInstructions ?? '')
        return { result: { thread: { id: this.#thread }, model: 'simulated', reasoningEffort: null } }
      case 'thread/read': {
        const turns = this.#turns.map(({ id, status, items }) => ({ id, status, error: null, items }))
        return { result: { thread: { id: this.#thread, turns } } }
      }
      case 'turn/start':
        void this.#play(id, textOf(params.input), JSON.stringify(params.outputSchema ?? ''))
        return null
      case 'turn/steer':
        if (this.#turn === null || this.#turn.isOver) return { error: { code: -32600, message: 'no active turn' } }
        this.#agent.steered(textOf(params.input))
        return { result: { turnId: this.#turn.id } }
      case 'turn/interrupt':
        this.#after(15, () => this.#endTurn('interrupted', null))
        return { result: {} }
      default:
        return { error: { code: -32601, message: `unknown ${method}` } }
    }
  }

  #execute(id: Request['id'], params: Record<string, unknown>): void {
    const command = params.command as string[]
    const line = command.length > 3 ? (command.at(-1) ?? '') : ''
    const { ms, exitCode, output } =
      line === '' ? { ms: 20, exitCode: 0, output: '' } : this.#agent.command(line, String(params.cwd))
    if (line === '') {
      this.#after(ms, () => this.#send({ id, result: { exitCode, stdout: '', stderr: '' } }))
      return
    }
    const print = (text: string) =>
      this.#tell('command/exec/outputDelta', {
        processId: params.processId,
        stream: 'stdout',
        deltaBase64: Buffer.from(text).toString('base64'),
      })
    print('\u0006')
    this.#after(ms, () => {
      print(output)
      this.#send({ id, result: { exitCode, stdout: '', stderr: '' } })
    })
  }

  async #play(request: Request['id'], input: string, schema: string): Promise<void> {
    const { acts, end, delayMs, isReordered } = this.#agent.turn(input, this.#instructions, schema)
    const turn = { id: this.#kernel.ids.uuid(), isOver: false, items: [] as object[], status: 'inProgress' }
    this.#turn = turn
    this.#turns.push(turn)
    const about = { threadId: this.#thread, turnId: turn.id }
    const pause = () => this.#kernel.wait(this.#process, delayMs())
    const accept = () => this.#send({ id: request, result: { turn: { id: turn.id } } })
    if (!isReordered) accept()
    this.#tell('thread/status/changed', { threadId: this.#thread, status: { type: 'active' } })
    this.#tell('turn/started', { threadId: this.#thread, turn: { id: turn.id, status: 'inProgress', items: [] } })
    await pause()
    if (isReordered) accept()
    this.#complete(about, { type: 'userMessage', id: this.#itemId(), content: [{ type: 'text', text: input }] })
    for (const act of acts) {
      await pause()
      if (turn.isOver) return
      await this.#act(act, about)
      if (turn.isOver) return
      this.#tokens += 1000
      const tokens = {
        inputTokens: this.#tokens,
        cachedInputTokens: 0,
        outputTokens: this.#tokens / 10,
        reasoningOutputTokens: 0,
        totalTokens: (this.#tokens * 11) / 10,
      }
      this.#tell('thread/tokenUsage/updated', {
        ...about,
        tokenUsage: { total: tokens, last: tokens, modelContextWindow: 258400 },
      })
    }
    await pause()
    if (turn.isOver) return
    switch (end.kind) {
      case 'completed':
        return this.#endTurn('completed', null)
      case 'failed':
        this.#tell('error', {
          ...about,
          error: { message: end.message, codexErrorInfo: end.info, additionalDetails: null },
          willRetry: false,
        })
        return this.#endTurn('failed', { message: end.message, codexErrorInfo: end.info })
      case 'lost-end':
        turn.status = 'completed'
        turn.isOver = true
        return this.#tell('thread/status/changed', { threadId: this.#thread, status: { type: 'idle' } })
      case 'mute':
        return
      case 'cut-line':
        this.#write('{"method":"turn/comp')
        return this.#kernel.end(this.#process, 1)
      case 'dies':
        return this.#child.finish(101, '', 'thread panicked\n')
      case 'killed':
        return this.#kernel.end(this.#process, null, 'SIGKILL')
    }
  }

  #itemId(): string {
    return `item-${++this.#calls}`
  }

  #complete(about: object, item: object): void {
    this.#turn?.items.push(item)
    this.#tell('item/completed', { ...about, item })
  }

  async #act(act: Act, about: { threadId: string; turnId: string }): Promise<void> {
    const wait = (ms: number) => this.#kernel.wait(this.#process, ms)
    switch (act.do) {
      case 'say': {
        const item = { type: 'agentMessage', id: this.#itemId(), text: act.text, phase: null }
        this.#tell('item/started', { ...about, item: { ...item, text: '' } })
        for (let at = 0; at < act.text.length; at += 400)
          this.#tell('item/agentMessage/delta', { ...about, itemId: item.id, delta: act.text.slice(at, at + 400) })
        return this.#complete(about, item)
      }
      case 'call':
        return void (await Promise.all(act.calls.map(call => this.#call(call, about))))
      case 'command':
      case 'start': {
        const item = {
          type: 'commandExecution',
          id: this.#itemId(),
          command: `/bin/bash -lc '${act.line}'`,
          cwd: '/work',
          commandActions: [],
          processId: null,
          aggregatedOutput: null,
          exitCode: null,
          durationMs: null,
          status: 'inProgress',
        }
        this.#tell('item/started', { ...about, item })
        if (act.do === 'start') return this.#leave(act)
        await wait(act.ms)
        if (!this.#process.isAlive || this.#turn?.isOver) return
        act.act?.()
        this.#tell('item/commandExecution/outputDelta', { ...about, itemId: item.id, delta: act.output })
        return this.#complete(about, {
          ...item,
          status: act.exitCode === 0 ? 'completed' : 'failed',
          aggregatedOutput: act.output,
          exitCode: act.exitCode,
          durationMs: act.ms,
        })
      }
    }
  }

  async #call({ tool, arguments: given }: ToolCall, about: { threadId: string; turnId: string }): Promise<void> {
    const id = this.#itemId()
    const call = { namespace: null, tool, arguments: given }
    const item = { type: 'dynamicToolCall', id, ...call, contentItems: null, success: null, durationMs: null }
    this.#tell('item/started', { ...about, item: { ...item, status: 'inProgress' } })
    const { promise, resolve } = Promise.withResolvers<Request['result']>()
    this.#asked.set(id, resolve)
    this.#send({ id, method: 'item/tool/call', params: { ...about, callId: id, ...call } })
    const { success = false, contentItems = null } = (await promise) ?? {}
    if (this.#turn?.isOver) return
    this.#complete(about, { ...item, status: success ? 'completed' : 'failed', success, contentItems })
  }

  /** What it has started lives on, with its mark. */
  #leave({ line, act, afterMs }: Extract<Act, { do: 'start' }>): void {
    const process = this.#kernel.start({ command: ['/bin/sh', '-c', line], env: this.#process.env, parent: 1 })
    this.#kernel.timer(process, afterMs, () => {
      act()
      this.#kernel.end(process, 0)
    })
  }

  #endTurn(status: string, error: object | null): void {
    const turn = this.#turn
    if (turn === null || turn.isOver) return
    turn.isOver = true
    turn.status = status
    this.#tell('thread/status/changed', { threadId: this.#thread, status: { type: 'idle' } })
    this.#tell('turn/completed', { threadId: this.#thread, turn: { id: turn.id, status, error, items: [] } })
  }
}

function textOf(input: unknown): string {
  return Array.isArray(input) ? input.map(each => (each as { text?: string }).text ?? '').join('\n') : ''
}
