import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { NOWHERE, writableByAgents } from '../../src/platform/files.ts'
import { type KeepAwakeOptions, keepAwake } from '../../src/platform/keep-awake.ts'
import { isAlive } from '../../src/platform/processes.ts'
import { killIfAlive } from '../support/kill-if-alive.ts'
import { isLinux, unless } from '../support/skipped.ts'
import { TestClock } from '../support/test-clock.ts'

/** No wait is ever over by itself. */
const STANDS_STILL: Clock = {
  now: () => 0,
  monotonic: () => 0,
  wait: (_ms, signal) =>
    new Promise(resolve => {
      if (signal?.aborted) resolve()
      else signal?.addEventListener('abort', () => resolve())
    }),
}
const started: number[] = []
let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-awake-'))
})

afterEach(async () => {
  for (const pid of started.splice(0)) await killIfAlive(pid)
  await rm(folder, { recursive: true, force: true })
})

function keep(platform: NodeJS.Platform, more: Partial<KeepAwakeOptions> = {}) {
  const env = { PATH: pathOn(platform) }
  return keepAwake({ platform, env, pid: process.pid, clock: new TestClock(), where: NOWHERE, ...more })
}

const pathOn = (platform: string) => [folder, '/usr/bin', '/bin'].join(platform === 'win32' ? ';' : ':')

/** A stand-in for a program of the system: notes its arguments and pid, then goes on with `script`. */
async function standIn(name: string, script: string): Promise<void> {
  const path = join(folder, name)
  await writeFile(path, `#!/bin/sh\nprintf '%s\\n' "$@" >'${folder}/args'\necho $$ >'${folder}/pid'\n${script}\n`)
  await chmod(path, 0o755)
}

async function standInPid(): Promise<number> {
  const pid = Number(await readFile(join(folder, 'pid'), 'utf8'))
  if (pid > 1) started.push(pid)
  return pid
}

const living = async (pids: readonly number[]) => {
  const alive = await Promise.all(pids.map(pid => isAlive(pid, 'linux')))
  return pids.filter((_pid, at) => alive[at])
}

/** As systemd-inhibit does it: the command runs as a child, and its end is the end. */
const INHIBIT = `exec 3<&0; shift 4; "$@" <&3 & wait`
const skipped = unless(isLinux, 'the programs of the system are stood in for by scripts of Linux')
const runOnLinux = (title: string, body: () => Promise<void>) => test.runIf(isLinux)(`${title}${skipped}`, body)

runOnLinux('on Linux the machine is kept awake by systemd-inhibit until that is disposed of', async () => {
  await standIn('systemd-inhibit', INHIBIT)
  const awake = await keep('linux')
  expect(awake).toMatchObject({ by: 'systemd-inhibit', problem: null })
  expect((await readFile(join(folder, 'args'), 'utf8')).trim().split('\n')).toEqual([
    '--what=sleep:idle',
    '--who=codemachine',
    '--why=A session is running',
    '--mode=block',
    'cat',
  ])
  const pid = await standInPid()
  expect(await living([pid])).toEqual([pid])
  await awake[Symbol.asyncDispose]()
  expect(await living([pid])).toEqual([])
  await awake[Symbol.asyncDispose]()
})

runOnLinux('one that does not end when asked is killed, with what it started', async () => {
  await standIn('systemd-inhibit', `trap '' TERM; sleep 60 & echo $! >'${folder}/child'; echo held; wait; wait`)
  const clock = new TestClock()
  const awake = await keep('linux', { clock })
  const pids = [await standInPid(), Number(await readFile(join(folder, 'child'), 'utf8'))]
  started.push(...pids)
  const ended = awake[Symbol.asyncDispose]()
  await clock.nextWait(900)
  await clock.advance(1000)
  await ended
  await expect.poll(() => living(pids), { timeout: 30_000, interval: 10 }).toEqual([])
})

runOnLinux('what it says when it refuses is told in one sentence', async () => {
  await standIn(
    'systemd-inhibit',
    `echo 'first' >&2; printf 'Failed to inhibit: \\033[1mAccess denied.\\n\\n' >&2; exit 1`,
  )
  expect(await keep('linux')).toMatchObject({
    by: null,
    problem: 'systemd-inhibit refused (exit code 1): Failed to inhibit: [1mAccess denied.',
  })
})

runOnLinux('a program that ends at once without a word does not keep the machine awake', async () => {
  await standIn('systemd-inhibit', 'exit 0')
  expect(await keep('linux')).toMatchObject({ by: null, problem: 'systemd-inhibit ended at once.' })
  await standIn('caffeinate', 'exit 0')
  expect(await keep('darwin')).toMatchObject({ by: null, problem: 'caffeinate ended at once.' })
})

runOnLinux('a program that is not there, or cannot be run, is told by name', async () => {
  const env = { PATH: folder }
  expect(await keep('linux', { env })).toMatchObject({
    by: null,
    problem: 'systemd-inhibit was not found on the PATH.',
  })
  await writeFile(join(folder, 'systemd-inhibit'), '#!/no/such/shell\n', { mode: 0o755 })
  expect(await keep('linux', { env })).toMatchObject({
    by: null,
    problem: 'systemd-inhibit could not be started (ENOENT).',
  })
})

runOnLinux('a program that an agent may have put there is not run', async () => {
  await standIn('systemd-inhibit', INHIBIT)
  const awake = await keep('linux', { env: { PATH: folder }, where: writableByAgents(folder, {}, []) })
  expect(awake).toMatchObject({
    by: null,
    problem: `systemd-inhibit was found only where an agent can write, so codemachine does not use it: ${folder}/systemd-inhibit.`,
  })
  await expect(readFile(join(folder, 'pid'))).rejects.toThrow('ENOENT')
})

runOnLinux('nor does it find programs there itself', async () => {
  const bin = join(folder, 'bin')
  await standIn('systemd-inhibit', `echo "$PATH" >'${folder}/path'; echo held; exec cat`)
  const where = { ...NOWHERE, workDirectory: [bin] }
  await using awake = await keep('linux', { env: { PATH: `${bin}:${folder}:/usr/bin:/bin` }, where })
  expect(awake.by).toBe('systemd-inhibit')
  expect(await readFile(join(folder, 'path'), 'utf8')).toBe(`${folder}:/usr/bin:/bin\n`)
})

runOnLinux('one that hangs and never holds is given up and ended', async () => {
  await standIn('systemd-inhibit', 'exec sleep 60')
  const clock = new TestClock()
  const awake = keep('linux', { clock })
  await clock.nextWait(10_000)
  await expect.poll(standInPid, { timeout: 30_000, interval: 10 }).toBeGreaterThan(0)
  await clock.advance(15_000)
  expect(await awake).toMatchObject({
    by: null,
    problem: 'systemd-inhibit did not answer within 15 s, and was ended.',
  })
  expect(await living([await standInPid()])).toEqual([])
})

runOnLinux('a run that ends first does not wait for the answer', async () => {
  await standIn('systemd-inhibit', 'exec sleep 60')
  const ending = new AbortController()
  const awake = keep('linux', { clock: STANDS_STILL, signal: ending.signal })
  await expect.poll(standInPid, { timeout: 30_000, interval: 10 }).toBeGreaterThan(0)
  ending.abort()
  expect((await awake).problem).toBe('codemachine ended before systemd-inhibit had answered.')
  expect(await living([await standInPid()])).toEqual([])
})

runOnLinux('on macOS it is caffeinate, which says nothing and is told whose end is its own', async () => {
  await standIn('caffeinate', `exec tail --pid="$3" -f /dev/null`)
  const clock = new TestClock()
  const starting = keep('darwin', { clock })
  await clock.nextWait(1900)
  await expect.poll(standInPid, { timeout: 30_000, interval: 10 }).toBeGreaterThan(0)
  await clock.advance(2000)
  const awake = await starting
  expect(awake).toMatchObject({ by: 'caffeinate', problem: null })
  expect((await readFile(join(folder, 'args'), 'utf8')).trim().split('\n')).toEqual(['-i', '-w', String(process.pid)])
  await awake[Symbol.asyncDispose]()
  expect(await living([await standInPid()])).toEqual([])
})

runOnLinux('on Windows it is a line of PowerShell, which says that it holds and reads until we end', async () => {
  await standIn('powershell.exe', `echo held; exec /bin/cat >/dev/null`)
  const awake = await keep('win32')
  expect(awake).toMatchObject({ by: 'powershell.exe', problem: null })
  const args = await readFile(join(folder, 'args'), 'utf8')
  expect(args).toContain('SetThreadExecutionState([uint32]2147483649)')
  expect(args).not.toContain('exit')
  const pid = await standInPid()
  await awake[Symbol.asyncDispose]()
  await expect.poll(() => living([pid]), { timeout: 30_000, interval: 10 }).toEqual([])
})

test('elsewhere nothing does, and that is said', async () => {
  await using awake = await keep('freebsd')
  expect(awake).toMatchObject({ by: null, problem: 'codemachine cannot keep a machine awake on freebsd.' })
})

test.runIf(isLinux).each([
  ['linux', 'systemd-inhibit', INHIBIT],
  ['linux', 'systemd-inhibit', 'echo held; exec sh -c "cat >/dev/null"'],
  ['darwin', 'caffeinate', `exec tail --pid="$3" -f /dev/null`],
  ['win32', 'powershell.exe', `echo held; exec /bin/cat >/dev/null`],
] as const)(`on %s a codemachine that is killed leaves no %s behind (%#)${skipped}`, async (platform, name, script) => {
  await standIn(name, script)
  const owner = await startOwner(platform)
  const [line] = await once(owner.stdout, 'data')
  expect(String(line)).toBe(`${name}\n`)
  await expect.poll(standInPid, { timeout: 30_000, interval: 10 }).toBeGreaterThan(0)
  const pid = await standInPid()
  expect(await living([pid])).toEqual([pid])
  owner.kill('SIGKILL')
  await expect.poll(() => living([pid]), { timeout: 30_000, interval: 10 }).toEqual([])
})

runOnLinux('it does not keep alive a codemachine that has nothing else to do', async () => {
  await standIn('systemd-inhibit', INHIBIT)
  const owner = await startOwner('linux', '')
  const [code] = await once(owner, 'exit')
  expect(code).toBe(0)
  const pid = await standInPid()
  await expect.poll(() => living([pid]), { timeout: 30_000, interval: 10 }).toEqual([])
})

/** A process that keeps the machine awake and never disposes of that. */
async function startOwner(platform: string, then = 'setTimeout(() => {}, 60_000)') {
  const script = join(folder, 'owner.mjs')
  const source = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href)
  await writeFile(
    script,
    `import { keepAwake } from ${source('platform/keep-awake.ts')}
     import { systemClock as clock } from ${source('base/clock.ts')}
     const { env, pid } = process
     const where = ${JSON.stringify(NOWHERE)}
     console.log((await keepAwake({ platform: '${platform}', env, pid, clock, where })).by)
     ${then}`,
  )
  const owner = spawn(process.execPath, [script], {
    env: { PATH: pathOn(platform) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (owner.pid !== undefined) started.push(owner.pid)
  return owner
}
