import childProcess, { type ChildProcess } from 'node:child_process'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import process from 'node:process'
import type { KillPoint } from '../../../support/kill-points.ts'

// Loaded into a codemachine with `node --import`. It sends the SIGKILL from within, between two instructions: from
// outside it would come some milliseconds, and events, later.

const points: readonly KillPoint[] = JSON.parse(process.env.KILL_POINTS ?? '[]')
const report = process.env.KILL_REPORT ?? ''
/** Those that an earlier codemachine was killed at are over. */
let struck = readOrNothing(report).split('\n').length - 1
let seen = 0

watchJournal()
watchGit()
watchRenames()
syncBuiltinESMExports()

function watchJournal(): void {
  const write = fs.writeSync
  fs.writeSync = ((fd: number, bytes: Buffer, ...rest: number[]) => {
    const point = points[struck]
    if (isJournaled(bytes)) passMoment()
    if (point === undefined || !('event' in point) || !isEvent(bytes, point) || !isTurn(point))
      return write(fd, bytes, ...rest)
    if (point.when === 'torn') write(fd, bytes.subarray(0, bytes.length >> 1))
    if (point.when !== 'after') strike(point)
    const written = write(fd, bytes, ...rest)
    if (point.when === 'after') strike(point)
    return written
  }) as typeof fs.writeSync
}

/** Strikes at a moment of any kind once its turn has come: at once, or a little later in the midst of something else. */
function passMoment(): void {
  const point = points[struck]
  if (point === undefined || !('any' in point) || !isTurn(point)) return
  if (point.delayMs === 0) strike(point)
  else setTimeout(strike, point.delayMs, point)
}

function isJournaled(bytes: unknown): bytes is Buffer {
  return Buffer.isBuffer(bytes) && bytes.subarray(0, 9).toString('latin1').trimStart().startsWith('{"v":1,')
}

function isEvent(bytes: unknown, { event: type, item, state }: Extract<KillPoint, { event: string }>): boolean {
  if (!isJournaled(bytes)) return false
  const event = JSON.parse(bytes.toString('utf8').trim())
  if (event.type !== type || (item !== undefined && event.item?.kind !== item)) return false
  return state === undefined || event.state === state
}

function watchGit(): void {
  const spawn = childProcess.spawn
  childProcess.spawn = ((program: string, args: readonly string[], ...rest: unknown[]) => {
    const child = Reflect.apply(spawn, childProcess, [program, args, ...rest]) as ChildProcess
    passMoment()
    const point = points[struck]
    if (point !== undefined && 'git' in point && args.includes(point.git) && isTurn(point)) strike(point)
    return child
  }) as typeof childProcess.spawn
}

/** A file that is written whole gets its name by a rename: until then there is only the temporary one. */
function watchRenames(): void {
  const { rename, renameSync } = fs
  const renamePromise = fs.promises.rename
  const look = (to: unknown) => {
    passMoment()
    const point = points[struck]
    if (point !== undefined && 'file' in point && String(to).endsWith(point.file) && isTurn(point)) strike(point)
  }
  fs.rename = ((from: string, to: string, done: (error: Error | null) => void) => {
    look(to)
    rename(from, to, done)
  }) as typeof fs.rename
  fs.renameSync = (from, to) => {
    look(to)
    renameSync(from, to)
  }
  fs.promises.rename = async (from, to) => {
    look(to)
    await renamePromise(from, to)
  }
}

function isTurn({ n }: KillPoint): boolean {
  seen += 1
  return seen === n
}

function strike({ victim }: KillPoint): void {
  const servers = victim === 'codemachine' ? [] : appServers()
  struck += 1
  seen = 0
  fs.appendFileSync(report, `${servers.length}\n`)
  for (const pid of servers) process.kill(pid, 'SIGKILL')
  if (victim !== 'codex') process.kill(process.pid, 'SIGKILL')
}

function appServers(): number[] {
  return fs
    .readdirSync('/proc')
    .map(Number)
    .filter(pid => Number.isInteger(pid) && parentOf(pid) === process.pid && commandOf(pid).endsWith('app-server\0'))
}

function parentOf(pid: number): number {
  const stat = readOrNothing(`/proc/${pid}/stat`)
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}

function commandOf(pid: number): string {
  return readOrNothing(`/proc/${pid}/cmdline`)
}

function readOrNothing(path: string): string {
  try {
    return fs.readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
