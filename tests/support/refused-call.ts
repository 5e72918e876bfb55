import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Ended, startCodemachine } from './codemachine.ts'
import type { TestPlace } from './place.ts'

/** A call of codemachine's own process that the system refuses: not of git, of codex, or of what they start. */
export interface RefusedCall {
  thread: 'main' | 'files'
  call: string
  /** From 1 among the calls of this name in its thread, or among those about `path`. */
  nth: number
  error: string
  /** Of the only file whose calls count, relative to the records of the work directory; null: all do. */
  path: string | null
}

/** Why calls cannot be refused here; null if they can. */
export function problemOfTracing(): string | null {
  if (process.platform !== 'linux') return 'strace is only for Linux'
  return spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0 ? null : 'strace is missing, or not permitted'
}

const PAUSE = fileURLToPath(new URL('./pause.ts', import.meta.url))
/** What changes something, or takes something of the system. */
const CALLS = 'write,writev,pwrite64,fsync,fdatasync,rename,link,openat,clone,clone3,vfork'

/** Runs codemachine with one call refused. Answers the line of the call too; null: it did not come to it. */
export async function runRefused(
  place: TestPlace,
  args: readonly string[],
  { thread, call, nth, error, path }: RefusedCall,
): Promise<Ended & { refused: string | null }> {
  const about = path === null ? [] : ['-P', join(recordsOf(place), path)]
  const inject = ['-e', `trace=${call}`, '-e', `inject=${call}:error=${error}:when=${nth}`, ...about]
  const { ended, lines } = await runTraced(place, args, inject, [thread])
  return { ...ended, refused: lines.find(line => line.includes('(INJECTED)')) ?? null }
}

/** Runs codemachine, and answers each of its calls about files of the place, and each start of a process. */
export async function recordCalls(place: TestPlace, args: readonly string[]): Promise<Omit<RefusedCall, 'error'>[]> {
  const { lines, threads } = await runTraced(place, args, ['-e', `trace=${CALLS}`], ['main', 'files'])
  const counts = new Map<string, number>()
  const count = (key: string) => {
    const nth = (counts.get(key) ?? 0) + 1
    counts.set(key, nth)
    return nth
  }
  return lines.flatMap((line): Omit<RefusedCall, 'error'>[] => {
    const [, tid, call, rest] = /^(\d+) +(\w+)\((.*)/.exec(line) ?? []
    if (tid === undefined || call === undefined || rest === undefined) return []
    const thread = Number(tid) === threads.main ? 'main' : 'files'
    const nth = count(`${thread} ${call}`)
    if (/^(?:clone3?|vfork)$/.test(call))
      return rest.includes('CLONE_THREAD') ? [] : [{ thread, call, nth, path: null }]
    // An open names the current directory first.
    const [, path] = /^(?:AT_FDCWD<[^>]*>, )?[^</"]*[<"](\/[^>"]*)/.exec(rest) ?? []
    if (!path?.startsWith(`${place.root}/`) || (call === 'openat' && !/O_WRONLY|O_RDWR/.test(rest))) return []
    // Beside them the thread writes to what wakes another one, which libuv cannot do without.
    if (call !== 'write') return [{ thread, call, nth, path: null }]
    const about = relative(recordsOf(place), path)
    return about.endsWith('.tmp') ? [] : [{ thread, call, nth: count(about), path: about }]
  })
}

function recordsOf({ home, directory }: TestPlace): string {
  const key = createHash('sha256').update(directory).digest('hex').slice(0, 12)
  return join(home, '.codemachine', 'state', `work-${key}`)
}

interface Traced {
  ended: Ended
  lines: readonly string[]
  threads: Readonly<Record<RefusedCall['thread'], number>>
}

async function runTraced(
  place: TestPlace,
  args: readonly string[],
  options: readonly string[],
  traced: readonly RefusedCall['thread'][],
): Promise<Traced> {
  const env = { NODE_OPTIONS: `--import=${PAUSE}`, UV_THREADPOOL_SIZE: '1' }
  await using running = startCodemachine(place, args, { env })
  const { pid } = running
  const tasks = `/proc/${pid}/task`
  while (!/^State:\tT/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) await running.alive()
  const isOfFiles = (tid: string) => readFileSync(join(tasks, tid, 'comm'), 'utf8') === 'libuv-worker\n'
  const threads = { main: pid, files: Number(readdirSync(tasks).find(isOfFiles)) }
  const tids = traced.map(thread => threads[thread])
  const log = join(place.root, 'strace')
  const strace = spawn('strace', [
    '-qq',
    '-y',
    '-s',
    '0',
    '-o',
    log,
    ...options,
    ...tids.flatMap(tid => ['-p', String(tid)]),
  ])
  const over = once(strace, 'close')
  const isTraced = (tid: number) => !/^TracerPid:\t0$/m.test(readFileSync(join(tasks, String(tid), 'status'), 'utf8'))
  while (!tids.every(isTraced)) await running.alive()
  process.kill(pid, 'SIGCONT')
  const ended = await running.ended
  await over
  const lines = readFileSync(log, 'utf8').split('\n')
  return { ended, threads, lines: tids.length > 1 ? lines : lines.map(line => `${tids[0]} ${line}`) }
}
