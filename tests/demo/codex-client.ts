import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { ScriptedModel } from '../../src/demo/model/scripted-model.ts'

/** What codex sent, as far as these tests read it. */
interface Notification {
  method: string
  params: {
    threadId?: string
    turn?: Turn
    item?: Item
    delta?: string
    plan?: { step: string; status: string }[]
    error?: TurnError
    rateLimits?: { primary: { usedPercent: number; resetsAt: number } | null }
    tokenUsage?: { last: { inputTokens: number; outputTokens: number } }
    summary?: string
    message?: string
  }
}

interface Item {
  type: string
  id: string
  text?: string
  phase?: string | null
  command?: string
  aggregatedOutput?: string | null
  exitCode?: number | null
  status?: string
  changes?: { path: string }[]
  summary?: string[]
  content?: string[]
  query?: string
}

interface TurnError {
  message: string
  codexErrorInfo: unknown
}

interface Turn {
  id: string
  status: string
  error: TurnError | null
}

export interface PlayedTurn {
  status: string
  error: TurnError | null
  /** Completed items. */
  items: Item[]
  notifications: Notification[]
}

/** A real codex app-server with a home of its own, pointed at a scripted model. */
export interface Codex extends AsyncDisposable {
  readonly directory: string
  startThread(params?: object): Promise<string>
  playTurn(thread: string, text: string): Promise<PlayedTurn>
  interrupt(thread: string): Promise<void>
  /** Resolves when codex sends something of which this holds. */
  next(holds: (notification: Notification) => boolean): Promise<void>
}

/** Starts codex in a fresh directory, or in `directory`, which is then kept. It refuses settings that it does not know. */
export async function startCodex(
  model: ScriptedModel,
  options: { provider?: Record<string, string | number | boolean>; directory?: string; codexModel?: string } = {},
): Promise<Codex> {
  const root = await mkdtemp(join(tmpdir(), 'scripted-codex-'))
  const home = join(root, 'home')
  const directory = options.directory ?? join(root, 'work')
  const temporary = join(root, 'tmp')
  await mkdir(home, { recursive: true })
  await mkdir(temporary)
  await mkdir(directory, { recursive: true })
  await writeFile(join(home, 'config.toml'), model.codexConfig(options.codexModel ?? 'scripted-1', options.provider))
  const env = { PATH: process.env.PATH, HOME: home, CODEX_HOME: home, TMPDIR: temporary }
  const child = spawn(codexBinary(), ['app-server', '--strict-config'], {
    cwd: directory,
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const exited = once(child, 'exit')

  const events = new EventEmitter()
  events.setMaxListeners(0)
  const answers = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>()
  const turns = new Map<string, string>()
  void exited.then(() => {
    for (const answer of answers.values()) answer.reject(new Error('codex has ended'))
  })
  let nextId = 1
  const send = (line: object) => child.stdin.write(`${JSON.stringify(line)}\n`)
  const request = (method: string, params: object) =>
    new Promise<unknown>((resolve, reject) => {
      const id = nextId++
      answers.set(id, { resolve, reject })
      send({ id, method, params })
    })
  const receive = (line: string) => {
    const got = JSON.parse(line)
    if (got.method === undefined) {
      const answer = answers.get(got.id)
      if (got.error === undefined) answer?.resolve(got.result)
      else answer?.reject(new Error(got.error.message))
    } else if (got.id !== undefined) {
      send({ id: got.id, result: { decision: 'accept' } })
    } else {
      if (got.method === 'turn/started') turns.set(got.params.threadId, got.params.turn.id)
      events.emit('notification', got)
    }
  }
  let rest = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) receive(line)
  })

  await request('initialize', {
    clientInfo: { name: 'scripted-model-tests', title: null, version: '1' },
    capabilities: { experimentalApi: true },
  })
  send({ method: 'initialized' })

  return {
    directory,
    async startThread(params = {}) {
      const result = (await request('thread/start', { ...threadDefaults(directory), ...params })) as {
        thread: { id: string }
      }
      return result.thread.id
    },
    async playTurn(thread, text) {
      const notifications: Notification[] = []
      const ended = new Promise<Turn>(resolve => {
        const listen = (got: Notification) => {
          if ((got.params.threadId ?? thread) !== thread) return
          notifications.push(got)
          if (got.method !== 'turn/completed' || got.params.turn === undefined) return
          events.off('notification', listen)
          resolve(got.params.turn)
        }
        events.on('notification', listen)
      })
      await request('turn/start', { threadId: thread, input: [{ type: 'text', text }] })
      const turn = await ended
      const items = notifications.filter(one => one.method === 'item/completed').flatMap(one => one.params.item ?? [])
      return { status: turn.status, error: turn.error, items, notifications }
    },
    async interrupt(thread) {
      await request('turn/interrupt', { threadId: thread, turnId: turns.get(thread) })
    },
    next: holds =>
      new Promise(resolve => {
        const listen = (got: Notification) => {
          if (!holds(got)) return
          events.off('notification', listen)
          resolve()
        }
        events.on('notification', listen)
      }),
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      await exited
      await rm(root, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

/** As codemachine runs codex: in its sandbox, without network, with commits allowed and nothing escalated. */
function threadDefaults(directory: string): object {
  return {
    cwd: directory,
    sandbox: 'workspace-write',
    approvalPolicy: {
      granular: {
        sandbox_approval: false,
        rules: true,
        skill_approval: false,
        request_permissions: false,
        mcp_elicitations: false,
      },
    },
    config: {
      sandbox_workspace_write: { writable_roots: [join(directory, '.git')] },
      tools: { update_plan: { enabled: true } },
      projects: { [directory]: { trust_level: 'trusted' } },
      features: { goals: false },
    },
  }
}

function codexBinary(): string {
  const shim = createRequire(import.meta.url).resolve('@openai/codex/package.json')
  const name = `@openai/codex-${process.platform}-${process.arch}`
  const native = dirname(createRequire(shim).resolve(`${name}/package.json`))
  const triples: Record<string, string> = {
    'linux x64': 'x86_64-unknown-linux-musl',
    'linux arm64': 'aarch64-unknown-linux-musl',
    'darwin x64': 'x86_64-apple-darwin',
    'darwin arm64': 'aarch64-apple-darwin',
  }
  return join(native, 'vendor', triples[`${process.platform} ${process.arch}`] ?? '', 'bin', 'codex')
}
