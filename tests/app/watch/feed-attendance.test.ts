import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Attendance } from '../../../src/app/watch/feed.ts'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import type { Reply } from '../../../src/core/contracts/reply.ts'
import { watchCommands } from '../../../src/records/control.ts'
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
    await using attendance = new Attendance(directory, clock)
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
