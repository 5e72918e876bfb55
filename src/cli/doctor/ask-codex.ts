import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../../base/errors.ts'
import { version } from '../../base/version.ts'
import { type AppServer, startAppServer } from '../../codex/app-server.ts'
import { describeExit } from '../../codex/round-outcome.ts'
import { openRpc, RequestFailure, type Rpc } from '../../codex/rpc.ts'
import { initializeParams } from '../../codex/start-thread.ts'
import { endTree } from '../../platform/end-processes.ts'
import { pathExists } from '../../platform/path-exists.ts'
import type { Bench } from './bench.ts'

/** The answer to one request, or why there is none. */
type Answer = { result: unknown } | { failure: string }

/** What codex says and does when it is started as for a round, but for the turn. */
export interface CodexAnswers {
  /** What it warns of in its configuration. */
  warnings: readonly string[]
  threadStart: Answer
  accountRead: Answer
  /** A command in its sandbox that wrote where it may, and tried to write where it may not. */
  sandbox: Answer & { wroteInside: boolean; wroteOutside: boolean }
}

interface AskOptions {
  path: string
  env: NodeJS.ProcessEnv
  /** What `thread/start` is sent. */
  threadStart: object
  /** When all answers have to be there, by the monotonic clock. */
  deadline: number
}

const END_MS = 500
const COMMAND_MS = 5_000

/** Starts an app-server, asks it, and ends it. Answers why not if it does not come up. */
export async function askCodex(bench: Bench, options: AskOptions): Promise<CodexAnswers | { failure: string }> {
  const { clock, platform } = bench.context
  // Where it is started commands may write, so that cannot be the work directory: it may be the one around them all.
  const directory = join(bench.temporary, 'inside')
  await mkdir(directory)
  const server = startAppServer({
    path: options.path,
    args: [],
    env: { ...options.env, TMPDIR: bench.temporary },
    directory,
    clock,
    endMs: END_MS,
    signalTree: async (pid, signal) => {
      await endTree(pid, signal, platform)
    },
  })
  const warnings = new Set<string>()
  const rpc = openRpc(server.stdout, server.stdin, clock, {
    onNotification: (method, params) => {
      if (method === 'configWarning' || method === 'deprecationNotice') warnings.add(warningOf(params))
    },
    onRequest: () => null,
    onLine: () => {},
    onRubbish: () => {},
  })
  void server.exit.then(() => rpc.dispose())
  const leave = () => void server.close()
  bench.context.signal.addEventListener('abort', leave, { once: true })
  try {
    return await converse(bench, options, server, rpc, warnings)
  } finally {
    bench.context.signal.removeEventListener('abort', leave)
    await server.close()
    rpc.dispose()
  }
}

async function converse(
  bench: Bench,
  { threadStart, deadline }: AskOptions,
  server: AppServer,
  rpc: Rpc,
  warnings: ReadonlySet<string>,
): Promise<CodexAnswers | { failure: string }> {
  const { clock } = bench.context
  const ask = (method: string, params: object): Promise<Answer> =>
    rpc.request(method, params, Math.max(0, Math.round(deadline - clock.monotonic()))).then(
      result => ({ result }),
      (error: unknown) => ({ failure: messageOf(error) }),
    )
  try {
    await rpc.request('initialize', initializeParams(version), INITIALIZE_MS)
  } catch (error) {
    if (!(error instanceof RequestFailure)) throw error
    return { failure: error.cause === 'closed' ? describeExit(await server.exit) : error.message }
  }
  rpc.notify('initialized')
  const [thread, account, sandbox] = await Promise.all([
    ask('thread/start', threadStart),
    ask('account/read', {}),
    trySandbox(bench, params => ask('command/exec', params)),
  ])
  return { warnings: [...warnings], threadStart: thread, accountRead: account, sandbox }
}

const INITIALIZE_MS = 5_000

/** Whether a file was written is looked up on the disk: it is the sandbox that is being asked about. */
async function trySandbox(
  { temporary, context }: Bench,
  execute: (params: object) => Promise<Answer>,
): Promise<CodexAnswers['sandbox']> {
  const [inside, outside] = [join(temporary, 'inside'), join(temporary, 'outside')]
  await mkdir(outside)
  const answer = await execute({
    command:
      context.platform === 'win32'
        ? ['cmd.exe', '/d', '/c', 'echo in>written & echo out>..\\outside\\written']
        : ['/bin/sh', '-c', 'echo in > written; echo out > ../outside/written'],
    cwd: inside,
    timeoutMs: COMMAND_MS,
    sandboxPolicy: {
      type: 'workspaceWrite',
      writableRoots: [],
      networkAccess: false,
      // Both directories lie there.
      excludeTmpdirEnvVar: true,
      excludeSlashTmp: true,
    },
  })
  const [wroteInside, wroteOutside] = await Promise.all(
    [inside, outside].map(each => pathExists(join(each, 'written'))),
  )
  return { ...answer, wroteInside: wroteInside ?? false, wroteOutside: wroteOutside ?? false }
}

function warningOf(params: unknown): string {
  const { summary, details } = Object(params)
  return [summary, details].filter(text => typeof text === 'string' && text !== '').join(' ')
}
