import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Interrupted, UserError } from '../../../../src/base/errors.ts'
import { inTurn } from '../../../../src/doors/cli/turn.ts'
import { takeRunLock } from '../../../../src/session/records/run-lock.ts'
import { cliContext } from '../../../support/cli-context.ts'
import { makePlace } from '../../../support/place.ts'
import { promise } from '../../../support/promise.ts'
import { TestClock } from '../../../support/test-clock.ts'
import { recordsOf } from '../journaled.ts'

const HOUR = 3_600_000

async function openTurn() {
  const place = await makePlace('', { git: false })
  onTestFinished(() => place[Symbol.asyncDispose]())
  const clock = new TestClock()
  const ending = new AbortController()
  const said: string[] = []
  const context = cliContext(place, { clock, signal: ending.signal })
  const { lock: path } = await recordsOf(place)
  await mkdir(dirname(path), { recursive: true })
  const hold = () => takeRunLock(path, { platform: process.platform, pid: process.pid, now: new Date(clock.now()) })
  const turn = { directory: place.directory, mostMs: HOUR, say: (sentence: string) => void said.push(sentence) }
  return {
    clock,
    said,
    path,
    hold,
    interrupt: () => ending.abort('SIGINT'),
    take: (action: () => Promise<number>) => inTurn(context, turn, action),
  }
}

test('where nobody runs it is done at once, and nothing is said', async () => {
  const { take, said } = await openTurn()
  expect(await take(async () => 3)).toBe(3)
  expect(said).toEqual([])
})

promise('F33')
test('while another codemachine runs it is waited for its end, which is said once', async () => {
  const { take, clock, hold, said } = await openTurn()
  const lock = await hold()
  let isDone = false
  const taken = take(async () => {
    isDone = true
    return 0
  })
  await clock.nextWait(1000)
  expect(said).toEqual([
    `Another codemachine (pid ${process.pid}) is running here. Waiting for its end, at most 1 h; Ctrl+C ends the wait.`,
  ])
  await clock.advance(60_000)
  await clock.nextWait(1000)
  expect(isDone).toBe(false)
  await lock[Symbol.asyncDispose]()
  await clock.advance(1000)
  expect(await taken).toBe(0)
  expect(said).toHaveLength(1)
})

promise('F33')
test('when the time is over it is refused as a run is', async () => {
  const { take, clock, hold } = await openTurn()
  await using _ = await hold()
  let isOver = false
  const taken = take(async () => 0).finally(() => {
    isOver = true
  })
  taken.catch(() => {})
  const from = clock.monotonic()
  while (!isOver) await clock.advance(60_000)
  expect(clock.monotonic() - from).toBeGreaterThan(HOUR)
  await expect(taken).rejects.toMatchObject({
    message: expect.stringMatching(/^Another codemachine .+ codemachine waited 1 h for its end\.$/),
    exitCode: 6,
  })
})

test('Ctrl+C ends the wait', async () => {
  const { take, clock, hold, interrupt } = await openTurn()
  await using _ = await hold()
  const taken = take(async () => 0)
  await clock.nextWait(1000)
  interrupt()
  await expect(taken).rejects.toEqual(new Interrupted('SIGINT'))
})

test('what is refused because of a run in a folder of the directory is tried again', async () => {
  const { take, clock, said } = await openTurn()
  let tries = 0
  const taken = take(async () => {
    tries += 1
    if (tries === 3) return 0
    throw new UserError('CM0601', 'Another codemachine is running in sub.', { exitCode: 6 })
  })
  for (let n = 1; n < 3; n++) {
    await clock.nextWait(5000)
    await clock.advance(5000)
  }
  expect(await taken).toBe(0)
  expect(said).toHaveLength(1)
})

test('a lock that cannot be read is for a person, and not waited for', async () => {
  const { take, path } = await openTurn()
  await writeFile(path, 'rubbish')
  const refused = new UserError(
    'CM0602',
    'lock is not a lock of codemachine; if no codemachine runs here, delete it.',
    {
      exitCode: 6,
    },
  )
  await expect(take(() => Promise.reject(refused))).rejects.toBe(refused)
  await rm(path)
})

test('any other refusal is no matter of turns', async () => {
  const { take, said } = await openTurn()
  const refused = new UserError('CM1002', 'There is no such file.')
  await expect(take(() => Promise.reject(refused))).rejects.toBe(refused)
  expect(said).toEqual([])
})
