import { existsSync, readFileSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { LiveEvent, SessionEvent } from '../../../src/core/events/events.ts'
import type { Item } from '../../../src/core/events/items.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { LiveChanges } from '../../../src/project/watch/feed.ts'
import type { LiveSnapshot } from '../../../src/project/watch/live-share.ts'
import { LiveShare, SharedText } from '../../../src/project/watch/live-share.ts'
import { nothingSecret, type Redactor, redactorOf } from '../../../src/secrets/redactor.ts'
import { recorded, sampleEvents } from '../../doors/screen/samples.ts'
import { fold } from '../../support/session-events.ts'
import { untilInFolder } from '../../support/until-in-folder.ts'

/** Between two snapshots, ms. */
const PACE_MS = 250

const message: Item = { kind: 'agent-message', id: 'm1', text: '', phase: null }
const command: Item = {
  kind: 'command',
  id: 'c1',
  command: 'npm test',
  directory: '/work',
  status: 'running',
  exitCode: null,
  durationMs: null,
  output: '',
}
const says = (text: string): LiveEvent => ({ type: 'text-delta', round: 1, item: 'm1', source: 'agent-message', text })
const prints = (text: string): LiveEvent => ({ type: 'output-delta', round: 1, item: 'c1', text })
const starts = (item: Item): LiveEvent => ({ type: 'item-started', round: 1, item })

/** A clock on which time passes only when the test says so. */
class HandClock {
  time = 1_000_000
  readonly #pending = new Set<{ due: number; release: () => void }>()
  #begun = Promise.withResolvers<void>()
  now = () => this.time
  monotonic = () => this.time
  wait = (ms: number, signal?: AbortSignal) =>
    new Promise<void>(resolve => {
      if (signal?.aborted || ms <= 0) return resolve()
      const release = () => {
        this.#pending.delete(wait)
        resolve()
      }
      const wait = { due: this.time + ms, release }
      this.#pending.add(wait)
      signal?.addEventListener('abort', release)
      this.#begun.resolve()
      this.#begun = Promise.withResolvers()
    })
  pass(ms: number) {
    this.time += ms
    for (const { due, release } of this.#pending) if (due <= this.time) release()
  }
  /** How long is waited for still. */
  get left() {
    return [...this.#pending].map(({ due }) => due - this.time)
  }
  /** Resolves when the next wait begins. */
  get begun() {
    return this.#begun.promise
  }
}

/** A run in its first round. */
async function inRound(redactor: Redactor = nothingSecret) {
  const folder = await mkdtemp(join(tmpdir(), 'live-share-'))
  const path = join(folder, 'live.json')
  const clock = new HandClock()
  const share = new LiveShare({ path, owner: { pid: 7, startTime: '70' }, redactor, clock })
  onTestFinished(async () => {
    await share[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })
  let state = emptyState('20261120_1')
  const happens = (...events: SessionEvent[]) => {
    for (const event of recorded(events)) {
      state = fold(state, event)
      share.event(event, state)
    }
  }
  happens(sampleEvents['session-created'], sampleEvents['round-started'])
  const snapshot = (): LiveSnapshot | null => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : null)
  /** The snapshot of this number, as soon as the clock lets it be written. After each there is a pause. */
  const written = async (sequence: number) => {
    for (;;) {
      const found = snapshot()
      if (found?.sequence === sequence) return found
      const { begun } = clock
      if (isPausing()) clock.pass(PACE_MS)
      await begun
    }
  }
  const isPausing = () => clock.left.some(ms => ms <= PACE_MS)
  const pause = async () => {
    while (!isPausing()) await clock.begun
  }
  /** Resolves when no snapshot is there. */
  const gone = () => untilInFolder(folder, 'no snapshot', () => snapshot() === null || null)
  return { share, path, clock, happens, snapshot, written, pause, gone }
}

test('while nobody watches nothing is written', async () => {
  const { share, snapshot, clock } = await inRound()
  share.live(starts(message))
  share.live(says('All is well.'))
  expect([snapshot(), clock.left]).toEqual([null, []])
})

test('who begins to watch finds what runs, with its text from the first word on', async () => {
  const { share, path, written } = await inRound()
  share.live(starts(message))
  share.live(says('All is '))
  share.live(says('well.'))
  share.watched()
  expect(await written(1)).toEqual({
    pid: 7,
    startTime: '70',
    session: '20261120_1',
    events: 2,
    sequence: 1,
    items: [{ round: 1, item: message, startedAt: 1_000_000, text: 'All is well.', dropped: 0 }],
  })
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test('what comes within a quarter of a second is written at once, and nothing where nothing comes', async () => {
  const { share, clock, snapshot, written, pause } = await inRound()
  share.live(starts(message))
  share.watched()
  await written(1)
  await pause()
  const { begun } = clock
  clock.pass(PACE_MS)
  await begun
  expect(clock.left).toEqual([60_000 - PACE_MS])
  const before = clock.time
  share.live(says('one '))
  await written(2)
  await pause()
  expect(clock.time).toBe(before)
  for (let n = 0; n < 100; n++) share.live(says('more '))
  expect(snapshot()).toMatchObject({ sequence: 2, items: [{ text: 'one ' }] })
  expect((await written(3))?.items[0]?.text).toHaveLength(4 + 500)
})

test('what is completed, and what a round leaves behind, runs no more', async () => {
  const { share, happens, written } = await inRound()
  share.live(starts(message))
  share.live(starts(command))
  share.watched()
  expect((await written(1))?.items).toHaveLength(2)
  happens(sampleEvents['item-completed'])
  expect(await written(2)).toMatchObject({ events: 3, items: [{ item: { id: 'c1' } }] })
  happens(sampleEvents['round-ended'])
  expect((await written(3))?.items).toEqual([])
})

test('a minute after the last who watched the file is gone; whoever still watches keeps it', async () => {
  const { share, clock, snapshot, written, pause, gone } = await inRound()
  share.live(starts(message))
  share.watched()
  await written(1)
  clock.pass(50_000)
  share.watched()
  clock.pass(50_000)
  share.live(says('Still here.'))
  expect((await written(2))?.items[0]?.text).toBe('Still here.')
  await pause()
  clock.pass(60_000)
  await gone()
  // Whoever watches says so again and again: at the first time it may still be about to stop.
  await vi.waitFor(
    () => {
      share.watched()
      expect(snapshot()).not.toBeNull()
    },
    { timeout: 30_000, interval: 5 },
  )
  expect((await written(3))?.items[0]?.text).toBe('Still here.')
})

test('with the run the file goes', async () => {
  const { share, snapshot, written } = await inRound()
  share.live(starts(message))
  share.watched()
  await written(1)
  await share[Symbol.asyncDispose]()
  expect(snapshot()).toBeNull()
  share.watched()
  expect(snapshot()).toBeNull()
})

test('of an endless output the last 16 Ki characters are shared', async () => {
  const { share, written } = await inRound()
  share.live(starts(command))
  for (let line = 0; line < 20_000; line++) share.live(prints(`line ${line}\n`))
  share.watched()
  const [item] = (await written(1))?.items ?? []
  expect(item?.text).toMatch(/^[\s\S]{0,20}line 18\d+\n[\s\S]*line 19999\n$/)
  expect(item?.text.length).toBeLessThanOrEqual(16 * 1024)
})

test('a secret that comes in pieces is never in the file, nor is a part of it', async () => {
  const secret = 'sk-proj correct horse battery'
  const { share, written } = await inRound(redactorOf([{ name: 'MY_API_KEY', value: secret }]))
  share.live(starts(message))
  share.watched()
  let sequence = 1
  await written(sequence)
  for (const piece of ['It is sk-', 'proj corr', 'ect horse bat']) {
    share.live(says(piece))
    expect((await written(++sequence))?.items[0]?.text).toBe('It is ')
  }
  share.live(says('tery. Yes'))
  expect((await written(++sequence))?.items[0]?.text).toBe('It is [secret MY_API_KEY]. Ye')
  share.live(says(', it was.'))
  expect((await written(++sequence))?.items[0]?.text).toBe('It is [secret MY_API_KEY]. Yes, it was.')
})

test('however a text is cut, what is let out of it is the beginning of what the journal would say', () => {
  const redactor = redactorOf([
    { name: 'A', value: 'abab-ab' },
    { name: 'B', value: 'ba-babab' },
  ])
  const pieces = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '-'), maxLength: 6 }), { maxLength: 30 })
  fc.assert(
    fc.property(pieces, pieces => {
      const whole = redactor.text(pieces.join(''))
      const shared = new SharedText(redactor)
      let text = ''
      for (const piece of [...pieces, ' ']) {
        text += piece
        shared.follow({ item: message, text, dropped: 0 })
        expect(`${whole} `.startsWith(shared.text)).toBe(true)
      }
      expect(shared.text).toBe(`${whole} `)
    }),
  )
})

test('two agents that are at work at once are told apart, though they name what they do alike', async () => {
  const { share, happens, written } = await inRound()
  const of = (instance: string) => ({ type: 'item-started', round: 1, item: command, instance }) as const
  share.live(starts(command))
  for (const agent of ['backend-dev-20261120T224108001', 'qa-engineer-20261120T224108002']) share.live(of(agent))
  share.live({ ...prints('3 passed'), instance: 'qa-engineer-20261120T224108002' } as LiveEvent)
  share.watched()
  const first = await written(1)
  expect(first?.items.map(({ instance, text }) => [instance ?? null, text])).toEqual([
    [null, ''],
    ['backend-dev-20261120T224108001', ''],
    ['qa-engineer-20261120T224108002', '3 passed'],
  ])
  const changes = new LiveChanges()
  const seen = [...changes.in(first ?? never(), 0)].map(({ event }) => event)
  expect(seen.map(event => ('instance' in event ? event.instance : null))).toEqual([
    null,
    'backend-dev-20261120T224108001',
    'qa-engineer-20261120T224108002',
    'qa-engineer-20261120T224108002',
  ])
  const ended = { ...sampleEvents['agent-ended'], instance: 'qa-engineer-20261120T224108002' }
  happens(ended)
  const [event] = recorded([ended])
  const later = new LiveChanges()
  if (event) later.event(event, 3)
  expect([...later.in(first ?? never(), 0)], 'a snapshot from before its end').toHaveLength(2)
  expect((await written(2))?.items.map(({ instance }) => instance ?? null)).toEqual([
    null,
    'backend-dev-20261120T224108001',
  ])
})

function never(): never {
  throw new Error('There is no snapshot.')
}
