import { readFile } from 'node:fs/promises'

/** A moment, or a duration, that a peer wrote down. Moments are of the machine's monotonic clock. */
interface Stamp {
  what: 'start' | 'completed' | 'status'
  ns: number
}

/** The stamps that peers appended, in the order of their writing. */
export async function readStamps(path: string): Promise<Stamp[]> {
  const lines = (await readFile(path, 'utf8')).trim().split('\n')
  return lines.map(line => {
    const [what, ns] = line.split(' ')
    if (what !== 'start' && what !== 'completed' && what !== 'status') throw new Error(`Not a stamp: ${line}`)
    return { what, ns: Number(ns) }
  })
}

/** The times from each `turn/completed` that was sent to the `turn/start` that was received next, ms. */
export function gapsOf(stamps: readonly Stamp[]): number[] {
  const ends = stamps.flatMap(({ what, ns }) => (what === 'completed' ? [ns] : []))
  const starts = stamps.flatMap(({ what, ns }) => (what === 'start' ? [ns] : []))
  return starts.slice(1).map((start, n) => (start - (ends[n] ?? Number.NaN)) / 1e6)
}

/**
 * For a scripted peer (tests/support/scripted-peer.ts): a turn that changes a file, waits until the peer of the next
 * round has its thread, and stamps when `turn/start` came and `turn/completed` went; with `gitStatus` also how long
 * `git status` takes, and with `work`, JavaScript, what else it does in round `round` before it ends.
 */
export const STAMPED_TURN = (options: {
  stamps: string
  rounds: number
  gitStatus: boolean
  work?: string
}): string => `
import { execFileSync } from 'node:child_process'
import { appendFileSync, statSync } from 'node:fs'
const stamps = ${JSON.stringify(options.stamps)}, ready = stamps + '.ready'
const stamp = (what, ns) => appendFileSync(stamps, what + ' ' + ns + '\\n')
// codemachine keeps codex itself from looking at the repository.
const plain = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_')))
let round = 0
on['thread/start'] = id => {
  appendFileSync(ready, '.')
  round = statSync(ready).size
  send({ id, result: { thread: { id: THREAD } } })
}
on['turn/start'] = id => {
  stamp('start', process.hrtime.bigint())
  send({ id, result: { turn: { id: TURN } } })
  started()
  message('hello')
  const wait = setInterval(() => {
    if (statSync(ready).size === round && round < ${options.rounds}) return
    clearInterval(wait)
    if (${options.gitStatus}) {
      const from = process.hrtime.bigint()
      execFileSync('git', ['status', '--porcelain'], { stdio: 'pipe', env: plain })
      stamp('status', process.hrtime.bigint() - from)
    }
    appendFileSync('notes.txt', 'round ' + round + '\\n')
    ${options.work ?? ''}
    const now = process.hrtime.bigint()
    completed()
    stamp('completed', now)
  }, 2)
}
`

/** A program that stands between codemachine and the real codex, hands everything on, and stamps the same moments. */
export const RELAY = (options: { stamps: string; codex: string }): string => `
import { spawn, spawnSync } from 'node:child_process'
import { appendFileSync } from 'node:fs'
const codex = ${JSON.stringify(options.codex)}, args = process.argv.slice(2)
const stamp = what => appendFileSync(${JSON.stringify(options.stamps)}, what + ' ' + process.hrtime.bigint() + '\\n')
if (args.includes('--version')) process.exit(spawnSync(codex, args, { stdio: 'inherit' }).status)
const child = spawn(codex, args, { stdio: ['pipe', 'pipe', 'inherit'] })
process.stdin.on('data', chunk => {
  if (chunk.includes('"turn/start"')) stamp('start')
  child.stdin.write(chunk)
}).on('end', () => child.stdin.end())
child.stdout.on('data', chunk => {
  if (chunk.includes('"turn/completed"')) stamp('completed')
  process.stdout.write(chunk)
})
child.on('exit', code => process.exit(code ?? 1))
`
