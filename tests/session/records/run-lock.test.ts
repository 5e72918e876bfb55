import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readRunLock, takeRunLock } from '../../../src/session/records/run-lock.ts'
import { promise } from '../../support/promise.ts'
import { isLinux, unless } from '../../support/skipped.ts'

let directory: string
let path: string
const children: ChildProcess[] = []
const now = new Date('2026-11-20T23:00:00.000Z')

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'lock-'))
  path = join(directory, 'lock')
})
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await rm(directory, { recursive: true })
})

const take = () => takeRunLock(path, { platform: process.platform, pid: process.pid, now })
const stateNow = async () => (await readRunLock(path, process.platform)).state
/** The lock as this process would have taken it, with other things in it. */
async function writeLock(changes: object) {
  await rm(path, { force: true })
  const lock = await take()
  await lock[Symbol.asyncDispose]()
  await writeFile(path, JSON.stringify({ ...lock.holder, ...changes }))
}

const program = `
  import { takeRunLock } from ${JSON.stringify(new URL('../../../src/session/records/run-lock.ts', import.meta.url))}
  console.log('ready')
  process.stdin.once('data', async () => {
    try {
      await takeRunLock(process.argv[1], { platform: process.platform, pid: process.pid, now: new Date() })
      console.log('held')
    } catch (error) {
      console.log(error.name + ' ' + error.exitCode + ' ' + error.message)
    }
  })`

/** Another codemachine: waits for \`go\`, then says how the taking of the lock went, and lives on. */
async function startOther() {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, path], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  children.push(child)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const line = async () => String((await lines.next()).value)
  expect(await line()).toBe('ready')
  return {
    child,
    go: () => {
      child.stdin.write('go\n')
      return line()
    },
    kill: async () => {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

test('one runs at a time, and the next one when it has ended', async () => {
  expect(await stateNow()).toBe('free')
  {
    await using lock = await take()
    expect(await readRunLock(path, process.platform)).toEqual({ state: 'held', holder: lock.holder })
    await expect(take()).rejects.toMatchObject({
      name: 'UserError',
      exitCode: 6,
      message: expect.stringMatching(
        new RegExp(`^Another codemachine \\(pid ${process.pid}\\) is running here since 2026-11-2\\d \\d\\d:00:00\\.$`),
      ),
    })
  }
  expect(await stateNow()).toBe('free')
  await (await take())[Symbol.asyncDispose]()
  expect(await readdir(directory)).toEqual([])
})

promise('J5', "The lock of a dead process, or of before a restart, stands in nobody's way")
test('another process that lives holds it, and one that was killed does not', async () => {
  const other = await startOther()
  expect(await other.go()).toBe('held')
  await expect(take()).rejects.toThrow(`Another codemachine (pid ${other.child.pid}) is running here since`)
  await other.kill()
  expect(await stateNow()).toBe('stale')
  const lock = await take()
  expect(lock).toMatchObject({ holder: { pid: process.pid }, killed: { pid: expect.any(Number) } })
  expect(await readdir(directory)).toEqual(['lock'])
  await lock[Symbol.asyncDispose]()
  await using next = await take()
  expect(next.killed).toBeNull()
})

test('of six processes that find the lock of a dead one at once, one gets it', async () => {
  const dead = await startOther()
  await dead.go()
  await dead.kill()
  const others = await Promise.all(Array.from({ length: 6 }, startOther))
  const answers = await Promise.all(others.map(other => other.go()))
  expect(answers.filter(answer => answer === 'held')).toHaveLength(1)
  expect(answers.filter(answer => answer.startsWith('UserError 6 Another codemachine (pid '))).toHaveLength(5)
  expect(await readdir(directory)).toEqual(['lock'])
})

promise('J4', 'Of many that start at the same moment, one gets the work directory')
test('of many that try at the same moment, again and again, one gets it', async () => {
  for (let round = 0; round < 20; round++) {
    await writeLock({ startTime: '1', nonce: `dead ${round}` })
    const attempts = await Promise.allSettled(Array.from({ length: 12 }, take))
    const winners = attempts.flatMap(attempt => (attempt.status === 'fulfilled' ? [attempt.value] : []))
    expect(winners).toHaveLength(1)
    expect(await readRunLock(path, process.platform)).toMatchObject({ holder: winners[0]?.holder })
    for (const winner of winners) await winner[Symbol.asyncDispose]()
  }
  expect(await readdir(directory)).toEqual([])
})

test('one who died while taking over does not stand in the way', async () => {
  await writeLock({ startTime: '1', nonce: 'dead' })
  // The name that the taking over of this very lock has.
  const inner = createHash('sha256').update('dead').digest('hex').slice(0, 12)
  const text = await readFile(path, 'utf8')
  await writeFile(`${path}.takeover-${inner}`, text.replace('"dead"', '"dead too"'))
  await using _ = await take()
  expect(await stateNow()).toBe('held')
  expect(await readdir(directory)).toEqual(['lock'])
})

const ofKernel = unless(isLinux, 'only Linux tells the boot and the container')

promise('J5')
test.runIf(isLinux)(`a lock from before a restart of the machine does not count${ofKernel}`, async () => {
  await writeLock({ bootId: 'before' })
  expect(await stateNow()).toBe('stale')
})

test('a lock of another machine counts, and one of this machine under another name is known', async () => {
  await writeLock({ host: 'elsewhere' })
  if (process.platform === 'linux') expect(await stateNow()).toBe('held')
  await writeLock({ host: 'elsewhere', bootId: 'other', pid: 4711 })
  expect(await stateNow()).toBe('elsewhere')
  await expect(take()).rejects.toMatchObject({
    exitCode: 6,
    message: expect.stringMatching(/^Another codemachine \(pid 4711 on elsewhere\) is running here since /),
    hint: `codemachine cannot look at another machine or container; if it no longer runs there, delete ${path}.`,
  })
})

test.runIf(isLinux)(
  `a lock of another container counts, and that of the same one before it was started again does not${ofKernel}`,
  async () => {
    const itsOwn = { pidNamespace: 'pid:[1]', pid: 4711, startTime: '1' }
    await writeLock({ ...itsOwn, host: 'another-container' })
    expect(await stateNow()).toBe('elsewhere')
    await writeLock(itsOwn)
    expect(await stateNow()).toBe('stale')
  },
)

test.runIf(isLinux)(
  `a lock that an earlier version took, which does not say in which container, is known${ofKernel}`,
  async () => {
    await writeLock({ pidNamespace: undefined, host: 'before' })
    expect(await stateNow()).toBe('held')
  },
)

test.each(['', '{', '[]', '{"pid":"1"}', '\u0000'])(
  'a file that is no lock is told in one sentence: %j',
  async text => {
    await writeFile(path, text)
    await expect(take()).rejects.toMatchObject({
      exitCode: 6,
      message: `${path} is not a lock of codemachine; if no codemachine runs here, delete it.`,
    })
    expect(await readFile(path, 'utf8')).toBe(text)
  },
)

test('a lock that was deleted by hand and taken by another is not removed at the end', async () => {
  const first = await take()
  await rm(path)
  await using second = await take()
  await first[Symbol.asyncDispose]()
  expect(await readRunLock(path, process.platform)).toEqual({ state: 'held', holder: second.holder })
})
