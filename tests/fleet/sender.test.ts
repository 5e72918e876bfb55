import { appendFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Recorded, SessionEvent } from '../../src/core/events/events.ts'
import type { SessionState } from '../../src/core/state/state.ts'
import { Sender, stateOf } from '../../src/fleet/worker/sender.ts'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { sampleEvents } from '../doors/screen/samples.ts'
import { promise } from '../support/promise.ts'
import { created, ended, recorded, SESSION, says, started, worked } from '../support/session-events.ts'
import { TestClock } from '../support/test-clock.ts'

const HEADER = '{"format":"codemachine-journal","v":1}\n'
const soon = { timeout: 20_000, interval: 5 }
/** How long it is waited after the first failure, and the second, ms. */
const [FIRST, SECOND] = [2_000, 4_000]

const savepoint = (round: number): SessionEvent => ({ ...sampleEvents.savepoint, round })
const over = sampleEvents['session-ended']

let folder: string
let journal: string
let clock: TestClock
let written: SessionEvent[]
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-sender-'))
  journal = join(folder, SESSION, 'journal.ndjson')
  clock = new TestClock()
  written = []
})
afterEach(() => rm(folder, { recursive: true }))

/** Writes events down as the runner does. */
async function write(...events: SessionEvent[]): Promise<void> {
  await mkdir(dirname(journal), { recursive: true })
  const isNew = written.length === 0
  written.push(...events)
  const lines = recorded(written).slice(-events.length)
  await appendFile(journal, `${isNew ? HEADER : ''}${lines.map(line => `${JSON.stringify(line)}\n`).join('')}`)
}

/** What a sender tells of, and a database and a remote as simple as can be. */
function send({ known = 0, carries = true }: { known?: number; carries?: boolean } = {}) {
  const rows: string[] = []
  const told = {
    rows,
    appends: [] as { first: number; count: number }[],
    carried: [] as { round: number; events: number }[],
    events: [] as string[],
    problems: [] as unknown[],
    carries,
    /** What the next appends and carries come to, in this order; `lost`: it was done, and nobody heard. */
    failures: [] as (Error | 'lost')[],
    carryFailures: [] as Error[],
  }
  for (let at = 0; at < known; at += 1) rows.push('before')
  const allowed: (() => void)[] = []
  const isOver = new AbortController()
  const stop = new AbortController()
  const final = new Error('it is somebody else by now')
  const sender = new Sender({
    session: SESSION,
    journal,
    known,
    templates: OWN_TEMPLATES,
    clock,
    async append(first, lines) {
      const failure = told.failures.shift()
      if (failure instanceof Error) throw failure
      told.appends.push({ first, count: lines.length })
      if (first > rows.length + 1) throw new Error(`${first} comes before ${rows.length + 1}`)
      rows.push(...lines.slice(rows.length + 1 - first))
      if (failure === 'lost') throw new Error('nobody heard')
    },
    async carry(standing) {
      const failure = told.carryFailures.shift()
      if (failure !== undefined) throw failure
      if (!told.carries) await new Promise<void>(resolve => allowed.push(resolve))
      told.carried.push(standing)
    },
    isFinal: error => error === final,
    onEvent: event => told.events.push(event.type),
    onProblem: problem => told.problems.push(problem),
  })
  const done = sender.run(isOver.signal, stop.signal)
  done.catch(() => {})
  return {
    sender,
    told,
    done,
    final,
    over: () => isOver.abort(),
    /** Lets what is being carried arrive. */
    arrive: async () => {
      await vi.waitFor(() => expect(allowed).not.toEqual([]), soon)
      allowed.shift()?.()
    },
    /** Expects so many events in the database before long. */
    has: (count: number) => vi.waitFor(() => expect(rows).toHaveLength(count), soon),
    async [Symbol.asyncDispose]() {
      stop.abort()
      for (const allow of allowed) allow()
      await done.catch(() => {})
    },
  }
}

const start = () => [created(), savepoint(0), started(1)] as SessionEvent[]
const typeOf = (line: string): string => (JSON.parse(line) as Recorded).type

describe('the events of a session', () => {
  test('are sent while its journal grows, each once and in order', async () => {
    await using sending = send()
    await write(...start())
    await sending.has(3)
    await write(says(1, 'a'))
    await write(says(1, 'b'), says(1, 'c'))
    await sending.has(6)
    expect(sending.told.rows.map(typeOf)).toEqual(written.map(({ type }) => type))
    expect(sending.told.events).toEqual(written.map(({ type }) => type))
    expect(sending.told.problems).toEqual([])
  })

  test('are sent where the journal comes long after its sender, and only whole lines of it', async () => {
    await using sending = send()
    await mkdir(dirname(journal))
    const [first, second, third] = recorded(start()).map(event => JSON.stringify(event))
    await writeFile(journal, `${HEADER}${first}\n${second}\n${third?.slice(0, 10)}`)
    await sending.has(2)
    await appendFile(journal, `${third?.slice(10)}\n`)
    await sending.has(3)
    expect(sending.told.rows).toEqual([first, second, third])
  })

  test('of a newer version count, and are sent as they are', async () => {
    await using sending = send()
    await write(...start())
    await appendFile(journal, `{"v":1,"type":"of-tomorrow","x":1}\n\nno json\n`)
    await sending.has(4)
    expect(sending.told.rows.at(-1)).toBe('{"v":1,"type":"of-tomorrow","x":1}')
    expect(sending.told.events).not.toContain('of-tomorrow')
  })

  test('that the database knows are not sent again, and make up its state all the same', async () => {
    await write(...start(), says(1, 'a'))
    await using sending = send({ known: 3 })
    await sending.has(4)
    expect(sending.told.appends).toEqual([{ first: 4, count: 1 }])
    expect(sending.told.events).toEqual(['item-completed'])
    expect(sending.sender.state).toMatchObject({ goal: 'build X', running: { round: 1 } })
  })

  test('many of them are sent some at a time', async () => {
    await write(...start(), ...Array.from({ length: 1_200 }, (_, at) => says(1, `${at}`)))
    await using sending = send()
    await sending.has(1_203)
    expect(Math.max(...sending.told.appends.map(({ count }) => count))).toBeLessThanOrEqual(500)
  })
})

describe('the end of a round', () => {
  promise('N6', 'The database never knows more than the remote has the files of')
  test('is not in the database before the files of the round are where another worker finds them', async () => {
    await write(...start(), says(1, 'a'))
    await using sending = send({ carries: false })
    // Not even the first of all before there is something to go on from.
    await vi.waitFor(() => expect(sending.told.events).toHaveLength(4), soon)
    expect(sending.told.rows).toEqual([])
    await sending.arrive()
    await sending.has(4)
    await write(ended(1, worked), savepoint(1), started(2))
    await vi.waitFor(() => expect(sending.told.events).toHaveLength(7), soon)
    expect(sending.told.rows).toHaveLength(4)
    await sending.arrive()
    await sending.has(7)
    expect(sending.told.carried).toEqual([
      { round: 0, events: 2 },
      { round: 1, events: 6 },
    ])
    // The next round's go at once.
    await write(says(2, 'b'))
    await sending.has(8)
  })

  test('waits for its savepoint, which comes beside the next round', async () => {
    await using sending = send()
    await write(...start(), ended(1, worked), started(2), says(2, 'a'))
    await vi.waitFor(() => expect(sending.told.events).toHaveLength(6), soon)
    await sending.has(3)
    expect(sending.told.carried).toEqual([{ round: 0, events: 2 }])
    await write(savepoint(1))
    await sending.has(7)
    expect(sending.told.carried.at(-1)).toEqual({ round: 1, events: 7 })
  })

  test('waits for no savepoint where none could be made, but for what there is', async () => {
    await using sending = send()
    await write(...start(), ended(1, worked), started(2))
    await sending.has(3)
    await write(ended(2, worked))
    await sending.has(5)
    expect(sending.told.carried.at(-1)).toEqual({ round: Number.MAX_SAFE_INTEGER, events: 5 })
  })
})

describe('what cannot be sent', () => {
  promise('N7', 'What cannot be sent is sent later, and holds up no round')
  test('is sent later, ever less often, and nothing that comes meanwhile is lost', async () => {
    await using sending = send()
    await write(...start())
    await sending.has(3)
    const away = new Error('the database is away')
    sending.told.failures.push(away, away)
    await write(says(1, 'a'))
    await clock.nextWait(FIRST)
    await write(says(1, 'b'))
    await clock.advance(FIRST)
    await clock.nextWait(SECOND)
    expect(sending.told.rows).toHaveLength(3)
    await clock.advance(SECOND)
    await sending.has(5)
    expect(sending.told.problems).toEqual([away, away])
    expect(sending.told.rows.map(typeOf)).toEqual(written.map(({ type }) => type))
  })

  test('is there once where only the answer was lost', async () => {
    await using sending = send()
    await write(...start())
    await sending.has(3)
    sending.told.failures.push('lost')
    await write(says(1, 'a'), says(1, 'b'))
    await clock.nextWait(FIRST)
    expect(sending.told.rows).toHaveLength(5)
    await write(says(1, 'c'))
    await clock.advance(FIRST)
    await sending.has(6)
    expect(sending.told.rows).toEqual(recorded(written).map(event => JSON.stringify(event)))
  })

  test('holds only that up which needs it: what is carried is tried again by itself', async () => {
    await using sending = send()
    await write(...start())
    await sending.has(3)
    sending.told.carryFailures.push(new Error('the remote is away'))
    await write(says(1, 'a'), ended(1, worked), savepoint(1))
    await clock.nextWait(FIRST)
    await sending.has(4)
    await clock.advance(FIRST)
    await sending.has(6)
  })

  test('because it is somebody else’s by now ends it at once', async () => {
    await using sending = send()
    await write(...start())
    await sending.has(3)
    sending.told.failures.push(sending.final)
    await write(says(1, 'a'))
    await expect(sending.done).rejects.toBe(sending.final)
    expect(sending.told.rows).toHaveLength(3)
    expect(sending.told.problems).toEqual([])
  })

  test('likewise where it is the remote that says so', async () => {
    await using sending = send()
    sending.told.carryFailures.push(sending.final)
    await write(...start())
    await expect(sending.done).rejects.toBe(sending.final)
    expect(sending.told.rows).toEqual([])
  })
})

describe('the sender of a session', () => {
  test('is through when the session is over and all of it is sent', async () => {
    await using sending = send()
    await write(...start(), ended(1, worked), savepoint(1), over)
    await sending.has(6)
    sending.over()
    await sending.done
    expect(sending.told.rows.map(typeOf)).toEqual(written.map(({ type }) => type))
    expect(sending.told.carried.at(-1)).toEqual({ round: Number.MAX_SAFE_INTEGER, events: 6 })
    const state: SessionState = stateOf(SESSION, sending.told.rows, OWN_TEMPLATES)
    expect(state.ended).not.toBeNull()
    expect(state).toEqual(sending.sender.state)
  })

  test('is through where the session has ended before it began', async () => {
    await write(...start(), ended(1, worked), savepoint(1), over)
    await using sending = send()
    sending.over()
    await sending.done
    expect(sending.told.rows).toHaveLength(6)
  })

  test('is through where there is nothing to send', async () => {
    await using sending = send()
    sending.over()
    await sending.done
    expect(sending.told).toMatchObject({ rows: [], appends: [], carried: [] })
  })
})
