import { describe, expect, test } from 'vitest'
import { runProcess, runWithExeca } from '../../src/platform/run-process.ts'

const options = { env: { PATH: process.env.PATH }, encoding: 'utf8', outputLimit: 1000 } as const
describe.each([
  ['between two rounds', runProcess],
  ['with execa', runWithExeca],
] as const)('a program that is run %s', (_what, run) => {
  const node = (script: string, more: { input?: Buffer; timeoutMs?: number; signal?: AbortSignal } = {}) =>
    run(process.execPath, ['-e', script], { ...options, ...more })

  test('what a program says and how it ended come back', async () => {
    const result = await node(`console.log('out'); console.error('err'); process.exit(3)`)
    expect(result).toEqual({ exitCode: 3, stdout: 'out\n', stderr: 'err\n', failure: null })
  })

  test('it is given its input, and may end without reading it', async () => {
    const echoed = await node(`process.stdin.pipe(process.stdout)`, { input: Buffer.from('größer') })
    expect(echoed.stdout).toBe('größer')
    const unread = await node(`process.exit(0)`, { input: Buffer.alloc(1_000_000) })
    expect(unread).toMatchObject({ exitCode: 0, failure: null })
  })

  test('one that hangs is killed when its time is over', async () => {
    const result = await node(`setInterval(() => {}, 1000)`, { timeoutMs: 200 })
    expect(result).toMatchObject({ exitCode: null, failure: 'timeout' })
  })

  test('one that nobody waits for any more is killed, and none is started after that', async () => {
    const over = new AbortController()
    const running = run('/bin/sh', ['-c', 'sleep 60'], { ...options, timeoutMs: 10_000, signal: over.signal })
    over.abort()
    expect(await running).toMatchObject({ exitCode: null, failure: 'aborted' })
    expect(await node(`console.log('ran')`, { signal: over.signal })).toMatchObject({ stdout: '', failure: 'aborted' })
  })

  test('one that has ended is not waited for because of what it left running', async () => {
    const result = await run('/bin/sh', ['-c', 'sleep 60 & echo $!; exit 3'], { ...options, timeoutMs: 10_000 })
    process.kill(Number(result.stdout))
    expect(result).toMatchObject({ exitCode: 3, failure: null })
  })

  test('one that says too much is killed, and what it said is bounded', async () => {
    const result = await node(`for (;;) require('fs').writeSync(1, 'x'.repeat(500))`)
    expect(result).toMatchObject({ exitCode: null, failure: 'output-limit' })
    expect(result.stdout.length).toBeLessThanOrEqual(1000)
  })

  test('one that is killed by somebody else has not come to its own end', async () => {
    const result = await node(`process.kill(process.pid, 'SIGTERM')`)
    expect(result).toMatchObject({ exitCode: null, failure: 'SIGTERM' })
  })

  test.each([
    ['missing', '/no/such/program', 'ENOENT'],
    ['not executable', import.meta.filename, 'EACCES'],
    ['no path at all', 'a\0b', 'ERR_INVALID_ARG_VALUE'],
  ])('a program that is %s is told by name', async (_what, program, failure) => {
    expect(await run(program, [], options)).toMatchObject({ exitCode: null, failure })
  })
})
