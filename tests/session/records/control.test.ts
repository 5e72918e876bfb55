import { mkdir, mkdtemp, readdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Clock, systemClock as clock } from '../../../src/base/clock.ts'
import type { Reply } from '../../../src/core/shapes/reply.ts'
import {
  type Command,
  NOT_KNOWN,
  replySchema,
  replyToJson,
  sendCommand,
  watchCommands,
} from '../../../src/session/records/control.ts'
import { HandClock } from '../../support/hand-clock.ts'
import { promise } from '../../support/promise.ts'
import { untilInFolder } from '../../support/until-in-folder.ts'

let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'control-'))
})
afterEach(() => rm(directory, { recursive: true }))

const steer = (text: string): Command => ({ type: 'steer', text, at: '2026-11-20T23:00:00.000Z' })
const send = (text: string) => sendCommand(directory, steer(text), { clock, timeoutMs: 30_000 })
const write = (name: string, text: string) => writeFile(join(directory, name), text)

/** Resolves once a command lies there that nobody has taken: whole, and under its own name. */
const untilSent = () =>
  untilInFolder(directory, 'a command', async () => (await readdir(directory)).some(isSent) || null)
const isSent = (name: string) => /^[^.]+\.json$/.test(name)

const textOf = (command: Command) => (command.type === 'steer' ? command.text : command.type)

/** A clock that never lets a person wait. */
function hurriedClock(): Clock {
  let now = 0
  return {
    now: () => now,
    monotonic: () => now,
    wait: async ms => {
      now += ms
    },
  }
}

function receiver(reply: Reply = { code: 'done', message: 'The turn has it.' }) {
  const texts: string[] = []
  const handle = async (command: Command) => {
    texts.push(textOf(command))
    return reply
  }
  return { texts, handle }
}

test('a command reaches the run, its answer comes back at once, and no file is left', async () => {
  const { texts, handle } = receiver()
  // No time passes: nothing but the command wakes the run, and nothing but its answer whoever sent it.
  const standing = new HandClock()
  await using _ = await watchCommands(directory, handle, standing)
  const reply = await sendCommand(directory, steer('look at the tests first'), { clock: standing, timeoutMs: 30_000 })
  expect(reply).toEqual({ code: 'done', message: 'The turn has it.' })
  expect(texts).toEqual(['look at the tests first'])
  await expect.poll(() => readdir(directory), { timeout: 30_000 }).toEqual([])
})

test('each command arrives as it was sent', async () => {
  const at = '2026-11-20T23:00:00.000Z'
  const commands: Command[] = [
    steer('x'),
    { type: 'stop', now: false, at },
    { type: 'stop', now: true, at },
    { type: 'pause', at },
    { type: 'unpause', at },
    { type: 'retry', at },
  ]
  const taken: Command[] = []
  const handle = async (command: Command): Promise<Reply> => {
    taken.push(command)
    return { code: 'done' as const, message: command.type }
  }
  await using _ = await watchCommands(directory, handle, clock)
  for (const command of commands) {
    expect(await sendCommand(directory, command, { clock, timeoutMs: 30_000 })).toMatchObject({ message: command.type })
  }
  expect(taken).toEqual(commands)
})

promise('J7', 'A command of another terminal is handled once, in order, and answered')
test('commands are handled one after the other, in the order they were sent, and once', async () => {
  const log: string[] = []
  const handle = async (command: Command) => {
    const text = textOf(command)
    log.push(`${text} begins`)
    await readdir(directory)
    log.push(`${text} ends`)
    return { code: 'done' as const, message: text }
  }
  await using _ = await watchCommands(directory, handle, clock)
  let now = 1000
  const sent = Array.from({ length: 10 }, (_, i) =>
    sendCommand(directory, steer(String(i)), { clock: { ...clock, now: () => now++ }, timeoutMs: 30_000 }),
  )
  expect((await Promise.all(sent)).map(({ message }) => message)).toEqual(
    Array.from({ length: 10 }, (_, i) => String(i)),
  )
  expect(log).toHaveLength(20)
  for (let i = 0; i < 20; i += 2) expect(log[i + 1]).toBe(log[i]?.replace('begins', 'ends'))
})

test('a person is told what the run says, also when it cannot', async () => {
  const refuse = async (): Promise<Reply> => ({ code: 'no-session', message: 'No turn is running.' })
  const fail = async () => Promise.reject(new Error('codex has gone'))
  {
    await using _ = await watchCommands(directory, refuse, clock)
    expect(await send('x')).toEqual({ code: 'no-session', message: 'No turn is running.' })
  }
  await using _ = await watchCommands(directory, fail, clock)
  expect(await send('x')).toEqual({ code: 'failed', message: 'codex has gone' })
  expect(await send('x')).toEqual({ code: 'failed', message: 'codex has gone' })
})

test('with no run the command is taken back, so that no later run gets it', async () => {
  const options = { clock: hurriedClock(), timeoutMs: 3000 }
  expect(await sendCommand(directory, steer('x'), options)).toEqual({
    code: 'not-taken',
    message: 'The run did not accept the command in time; perhaps it is ending.',
  })
  expect(await readdir(directory)).toEqual([])
})

test('a run that dies over a command is told as such', async () => {
  let die = () => {}
  const dying = new Promise<Reply>(resolve => {
    die = () => resolve({ code: 'ending', message: 'too late' })
  })
  let isTaken = false
  const take = () => {
    isTaken = true
    return dying
  }
  const run = await watchCommands(directory, take, clock)
  // Its time begins to pass when the command is taken.
  const patient = { ...clock, monotonic: () => (isTaken ? clock.monotonic() : 0) }
  const reply = await sendCommand(directory, steer('x'), { clock: patient, timeoutMs: 300 })
  expect(reply).toEqual({
    code: 'no-answer',
    message: 'The run accepted the command, but has not reported its result.',
  })
  die()
  await run[Symbol.asyncDispose]()
})

test('what was sent to a run that has ended never reaches the next one', async () => {
  const sent = sendCommand(directory, steer('old'), { clock, timeoutMs: 30_000 })
  await untilSent()
  await write('000000000000001-x.taken', '{}')
  await write('000000000000001-x.reply.json', '{}')
  await utimes(join(directory, '000000000000001-x.reply.json'), 1, 1)
  const { texts, handle } = receiver()
  await using _ = await watchCommands(directory, handle, clock)
  expect(await sent).toEqual({ code: 'run-ended', message: 'The run that it was for has ended.' })
  expect(await send('new')).toMatchObject({ code: 'done' })
  expect(texts).toEqual(['new'])
  await expect.poll(() => readdir(directory), { timeout: 30_000 }).toEqual([])
})

test('what comes while the run ends is answered too', async () => {
  let finish = () => {}
  const finished = new Promise<void>(resolve => {
    finish = resolve
  })
  const texts: string[] = []
  const run = await watchCommands(
    directory,
    async command => {
      texts.push(textOf(command))
      await finished
      return { code: 'done' as const, message: 'done' }
    },
    clock,
  )
  const first = send('first')
  await expect.poll(() => texts, { timeout: 30_000 }).toEqual(['first'])
  const second = send('second')
  await untilSent()
  const ended = run[Symbol.asyncDispose]()
  finish()
  await ended
  expect(await first).toEqual({ code: 'done', message: 'done' })
  expect(await second).toEqual({ code: 'run-ended', message: 'The run that it was for has ended.' })
  expect(texts).toEqual(['first'])
})

test('what a newer codemachine asks is answered, not left without a word', async () => {
  const { handle } = receiver()
  await using _ = await watchCommands(directory, handle, clock)
  await write('000000000000001-a.json', '{ "type": "explode", "at": "2026-11-20T23:00:00.000Z" }')
  await expect
    .poll(() => readFile(join(directory, '000000000000001-a.reply.json'), 'utf8').catch(() => ''), { timeout: 30_000 })
    .toBe('{"code":"unknown-command","delivered":false,"message":"This is not a command that the run knows."}')
})

test('rubbish is set aside and stops nothing', async () => {
  const { texts, handle } = receiver()
  await using _ = await watchCommands(directory, handle, clock)
  await write('000000000000001-a.json', '{ "type": "steer"')
  await write('000000000000002-b.json', '{ "type": "explode", "at": "2026-11-20T23:00:00.000Z" }')
  await write('000000000000003-c.json', Buffer.from([0xff]).toString('latin1'))
  expect(await send('good')).toMatchObject({ code: 'done' })
  expect(texts).toEqual(['good'])
  await expect
    .poll(async () => (await readdir(directory)).filter(name => name.endsWith('.broken')).length, { timeout: 30_000 })
    .toBe(3)
})

test('what was set aside more than a day ago is removed by the next run', async () => {
  await write('old.broken', '')
  await write('new.broken', '')
  const twoDaysAgo = new Date(Date.now() - 48 * 3_600_000)
  await utimes(join(directory, 'old.broken'), twoDaysAgo, twoDaysAgo)
  await using _ = await watchCommands(directory, receiver().handle, clock)
  expect(await readdir(directory)).toEqual(['new.broken'])
})

test('an empty text is refused before it is sent', async () => {
  expect(await send('  ')).toEqual({ code: 'bad-text', message: 'The prompt is empty; say what to do.' })
})

test('a command that cannot be taken costs no other one its answer, nor the run its end', async () => {
  const { texts, handle } = receiver()
  const run = await watchCommands(directory, handle, clock)
  // A folder is where the command would be put while it is in hand, and where its answer would be.
  for (const name of ['000000000000001-a.taken', '000000000000001-a.reply.json']) {
    await mkdir(join(directory, name, 'x'), { recursive: true })
  }
  await write('000000000000001-a.json', JSON.stringify(steer('stuck')))
  expect(await send('good')).toMatchObject({ code: 'done' })
  expect(await send('better')).toMatchObject({ code: 'done' })
  await run[Symbol.asyncDispose]()
  expect(texts).toEqual(['good', 'better'])
})

test('a directory that is gone for a while stops nothing', async () => {
  const { texts, handle } = receiver()
  let looks = 0
  const counting: Clock = {
    ...clock,
    wait: (ms, signal) => {
      looks += 1
      return clock.wait(ms, signal)
    },
  }
  const run = await watchCommands(directory, handle, counting)
  await rename(directory, `${directory}-away`)
  const before = looks
  await expect.poll(() => looks, { timeout: 30_000 }).toBeGreaterThan(before + 1)
  await rename(`${directory}-away`, directory)
  expect(await send('here again')).toMatchObject({ code: 'done' })
  expect(texts).toEqual(['here again'])
  await rm(directory, { recursive: true })
  await run[Symbol.asyncDispose]()
  await mkdir(directory)
})

test('a reply of an earlier version, which gave no code, is read by what it did give', () => {
  const read = (reply: object) => v.parse(replySchema, reply)
  const message = 'So it is.'
  expect(read({ delivered: true, message })).toEqual({ code: 'done', message })
  expect(read({ delivered: false, kept: true, message })).toEqual({ code: 'kept', message })
  expect(read({ delivered: false, message })).toEqual({ code: 'refused', message })
  expect(read({ delivered: false, message: NOT_KNOWN })).toEqual({ code: 'unknown-command', message: NOT_KNOWN })
  // One of a later version, which knows more codes.
  expect(read({ code: 'asleep', delivered: false, message })).toEqual({ code: 'refused', message })
})

test('a version without codes reads of a reply what it decides by', () => {
  const message = 'So it is.'
  const written = (code: Reply['code']) => JSON.parse(replyToJson({ code, message }))
  expect(written('done')).toEqual({ code: 'done', delivered: true, message })
  expect(written('kept')).toEqual({ code: 'kept', delivered: false, kept: true, message })
  expect(written('ending')).toEqual({ code: 'ending', delivered: false, message })
})

promise('O132')
test('a command that was sent between the start of a run and its first look is handled, and one of before is answered as old', async () => {
  const early = send('too early')
  await untilSent()
  const since = clock.now() + 1
  while (clock.now() <= since) await Promise.resolve()
  const kept = send('in the first moment')
  await untilInFolder(directory, 'both', async () =>
    (await readdir(directory)).filter(isSent).length === 2 ? true : null,
  )
  const handled: string[] = []
  await using _watching = await watchCommands(
    directory,
    async command => {
      handled.push(textOf(command))
      return { code: 'done', message: 'heard' }
    },
    clock,
    since,
  )
  expect(await early).toMatchObject({ code: 'run-ended' })
  expect(await kept).toMatchObject({ code: 'done' })
  expect(handled).toEqual(['in the first moment'])
})
