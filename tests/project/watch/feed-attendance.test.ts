import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import type { Reply } from '../../../src/core/shapes/reply.ts'
import { startTimeOf } from '../../../src/platform/processes.ts'
import { Attendance } from '../../../src/project/watch/feed.ts'
import { Watchers } from '../../../src/project/watch/live-share.ts'
import { type Command, watchCommands } from '../../../src/session/records/control.ts'
import { promise } from '../../support/promise.ts'
import { untilInFolder } from '../../support/until-in-folder.ts'

/** What a run says that is of a version without `watch`. */
const notKnown: Reply = { code: 'unknown-command', message: 'This is not a command that the run knows.' }

test.each<[string, Reply, boolean]>([
  ['a run of an older version, which will never know what it is asked, is asked once', notKnown, false],
  ['a run that knows is told again and again', { code: 'done', message: 'Shown for a minute.' }, true],
])('%s', async (_, reply, isToldAgain) => {
  const directory = await mkdtemp(join(tmpdir(), 'attendance-'))
  const clock = new ClockThatJumps()
  const asked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let times = 0
  const handle = async () => {
    asked[times++]?.resolve()
    return reply
  }
  const isEmpty = async () => ((await readdir(directory)).length === 0 ? true : null)
  try {
    await using _run = await watchCommands(directory, handle, systemClock)
    await using attendance = new Attendance(directory, { clock, pid: process.pid, platform: process.platform })
    attendance.keep()
    await asked[0]?.promise
    await untilInFolder(directory, 'nothing left', isEmpty)
    // What comes of an answer comes a moment after it was fetched.
    if (!isToldAgain) await attendance[Symbol.asyncDispose]()
    clock.ahead += 60_000
    clock.looks = 0
    attendance.keep()
    expect(clock.looks > 0, 'a command bears the time at which it was sent').toBe(isToldAgain)
    if (isToldAgain) await asked[1]?.promise
    expect(times).toBe(isToldAgain ? 2 : 1)
  } finally {
    await rm(directory, { recursive: true })
  }
})

class ClockThatJumps implements Clock {
  ahead = 0
  /** How often somebody wanted to know the time of day. */
  looks = 0

  now(): number {
    this.looks += 1
    return systemClock.now()
  }

  monotonic(): number {
    return systemClock.monotonic() + this.ahead
  }

  /** No answer is late. */
  wait(_ms: number, signal?: AbortSignal): Promise<void> {
    return systemClock.wait(60_000, signal)
  }
}
test('a process that watches says which it is, so that it is believed no longer than it lives', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'attendance-'))
  const told = Promise.withResolvers<Command>()
  const handle = async (command: Command): Promise<Reply> => {
    told.resolve(command)
    return { code: 'done', message: 'Shown for a minute.' }
  }
  const { pid, platform } = process
  try {
    await using _run = await watchCommands(directory, handle, systemClock)
    await using attendance = new Attendance(directory, { clock: systemClock, pid, platform })
    attendance.keep()
    expect(await told.promise).toMatchObject({ type: 'watch', pid, startTime: await startTimeOf(pid, platform) })
  } finally {
    await rm(directory, { recursive: true })
  }
})

promise('W31')
test('a process is believed to watch only while it lives, for a minute, and as the one that it said it is', async () => {
  const { platform } = process
  const clock = new ClockThatJumps()
  const watchers = new Watchers(false, { clock, platform })
  expect(await watchers.isAttached()).toBe(false)
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
  try {
    const pid = child.pid ?? 0
    const { changed } = watchers
    watchers.watched({ pid, startTime: `${await startTimeOf(pid, platform)}0` })
    expect([changed.aborted, await watchers.isAttached()]).toEqual([true, platform === 'win32'])
    watchers.watched({ pid, startTime: await startTimeOf(pid, platform) })
    expect(await watchers.isAttached()).toBe(true)
    clock.ahead += 61_000
    expect(await watchers.isAttached()).toBe(false)
    watchers.watched({ pid, startTime: await startTimeOf(pid, platform) })
    expect(await watchers.isAttached()).toBe(true)
  } finally {
    child.kill('SIGKILL')
  }
  await once(child, 'exit')
  expect(await watchers.isAttached()).toBe(false)
})

test('who watches is seen, however many have watched and left before', async () => {
  const { pid, platform } = process
  const clock = new ClockThatJumps()
  const watchers = new Watchers(false, { clock, platform })
  for (let gone = 1; gone <= 200; gone++) watchers.watched({ pid: 10_000_000 + gone, startTime: '1' })
  clock.ahead += 61_000
  watchers.watched({ pid, startTime: await startTimeOf(pid, platform) })
  expect(await watchers.isAttached()).toBe(true)
})

test('who does not say which process it is, as older versions do not, is not counted', async () => {
  const watchers = new Watchers(false, { clock: systemClock, platform: process.platform })
  watchers.watched({})
  expect(await watchers.isAttached()).toBe(false)
})
