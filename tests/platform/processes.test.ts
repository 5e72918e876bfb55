import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import { ancestorsOf, bootId, isAlive, isStillRunning, startTimeOf } from '../../src/platform/processes.ts'
import { isLinux, unless } from '../support/skipped.ts'

const started: { kill(signal: 'SIGKILL'): boolean }[] = []
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

async function start(command: string, ...args: string[]): Promise<{ pid: number; end(): Promise<void> }> {
  const child = spawn(command, args, { stdio: 'ignore' })
  started.push(child)
  await once(child, 'spawn')
  const end = async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  return { pid: child.pid ?? 0, end }
}

describe.runIf(isLinux)(`on Linux${unless(isLinux, 'this is another system')}`, () => {
  test('a process keeps its start time, and has none once it has ended', async () => {
    const child = await start('sleep', '300')
    const startTime = await startTimeOf(child.pid, 'linux')
    expect(startTime).toMatch(/^\d+$/)
    expect(await startTimeOf(child.pid, 'linux')).toBe(startTime)
    expect(await isStillRunning({ pid: child.pid, startTime }, 'linux')).toBe(true)
    await child.end()
    expect(await startTimeOf(child.pid, 'linux')).toBeNull()
    expect(await isAlive(child.pid, 'linux')).toBe(false)
  })

  test('another process with the same pid is another process', async () => {
    const child = await start('sleep', '300')
    expect(await isStillRunning({ pid: child.pid, startTime: '1' }, 'linux')).toBe(false)
    expect(await isStillRunning({ pid: child.pid, startTime: null }, 'linux')).toBe(true)
  })

  test('a zombie does not live', async () => {
    // The shell becomes a `sleep`, which never asks how its child ended; not before that does the child end.
    const script = 'exec 3<&0; cat <&3 >/dev/null & echo $!; exec sleep 300 3<&- </dev/null'
    const parent = spawn('bash', ['-c', script], { stdio: ['pipe', 'pipe', 'ignore'] })
    started.push(parent)
    const zombie = Number(String((await once(parent.stdout, 'data'))[0]))
    await expect.poll(() => readFileSync(`/proc/${parent.pid}/comm`, 'utf8'), { timeout: 30_000 }).toBe('sleep\n')
    parent.stdin.end()
    await expect.poll(() => isAlive(zombie, 'linux'), { timeout: 30_000, interval: 10 }).toBe(false)
    expect(process.kill(zombie, 0)).toBe(true)
  })

  test('a program whose name holds brackets and spaces is read all the same', async () => {
    const child = await start(process.execPath, '-e', 'process.title = "a) R (b"; setInterval(() => {}, 1e6)')
    expect(await startTimeOf(child.pid, 'linux')).toMatch(/^\d+$/)
  })

  test('the line of a process goes up to the first', async () => {
    const child = await start('sleep', '300')
    const line = [...(await ancestorsOf(child.pid, 'linux'))]
    expect(line.slice(0, 3)).toEqual([child.pid, process.pid, process.ppid])
    expect(line).not.toContain(0)
  })

  test('a start of the machine has an id', async () => {
    expect(await bootId('linux')).toMatch(/^[0-9a-f-]{36}$/)
  })
})

test('on Windows neither start times nor a boot id are known, and that is said with null', async () => {
  expect(await startTimeOf(process.pid, 'win32')).toBeNull()
  expect(await bootId('win32')).toBeNull()
  expect(await isStillRunning({ pid: process.pid, startTime: null }, 'win32')).toBe(true)
})
