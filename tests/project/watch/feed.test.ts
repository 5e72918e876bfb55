import { existsSync } from 'node:fs'
import { appendFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import type { Item } from '../../../src/core/events/items.ts'
import { message, reply, shell } from '../../../src/demo/model/reply.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import type { WatchUpdate } from '../../../src/project/library.ts'
import type { FeedOptions } from '../../../src/project/watch/feed.ts'
import { followSession } from '../../../src/project/watch/feed.ts'
import { writeLiveSnapshot } from '../../../src/project/watch/live-share.ts'
import { openRecords } from '../../../src/session/records/records.ts'
import { type RunLock, takeRunLock } from '../../../src/session/records/run-lock.ts'
import { renewSnapshot } from '../../../src/tell/report/write.ts'
import { makePlace, type Place } from '../../doors/cli/place.ts'
import { recorded, sampleEvents } from '../../doors/screen/samples.ts'
import { openRealScene, type RealScene } from '../../support/real-scene.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { test } from '../../support/side-by-side.ts'
import { stopsMidway } from '../../support/stops-midway.ts'
import { untilInFolder } from '../../support/until-in-folder.ts'

const created = sampleEvents['session-created']
const started = sampleEvents['round-started']
const completed = sampleEvents['item-completed']
const ended = sampleEvents['session-ended']
const FIRST = '20261120_1'
const linesOf = (events: readonly SessionEvent[]) =>
  recorded(events, FIRST)
    .map(each => `${JSON.stringify(each)}\n`)
    .join('')

/** Somebody who watches, and keeps all that is fed. Disposing of it lets them go away. */
interface Watcher extends AsyncDisposable {
  fed: readonly WatchUpdate[]
  /** What has been streamed so far. */
  streamed(): string
  /** Resolves with the first that matches; rejects if the feed ends without it. */
  until(matches: (fed: WatchUpdate) => boolean): Promise<WatchUpdate>
  over: Promise<void>
}

function watch(options: Pick<FeedOptions, 'records' | 'id'> & Partial<FeedOptions>): Watcher {
  const leaving = new AbortController()
  const fed: WatchUpdate[] = []
  let isOver = false
  const looks = new Set<() => void>()
  const lookAll = () => {
    for (const look of [...looks]) look()
  }
  const follow = async () => {
    const signal = leaving.signal
    const given = {
      platform: process.platform,
      pid: process.pid,
      clock: systemClock,
      signal,
      onProblem: () => {},
      ...options,
    }
    for await (const each of followSession(given)) {
      fed.push(each)
      lookAll()
    }
  }
  const over = follow().finally(() => {
    isOver = true
    lookAll()
  })
  return {
    fed,
    over,
    streamed: () => fed.flatMap(each => (each.kind === 'live' && 'text' in each.event ? each.event.text : [])).join(''),
    until: matches =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = fed.find(matches)
          if (!found && !isOver) return
          looks.delete(look)
          if (found) resolve(found)
          else reject(new Error(`The feed ended without it: ${kindsOf(fed).join(', ')}`))
        }
        looks.add(look)
        look()
      }),
    async [Symbol.asyncDispose]() {
      leaving.abort()
      await over
    },
  }
}

function kindsOf(fed: readonly WatchUpdate[]): string[] {
  return fed.map(each => (each.kind === 'event' || each.kind === 'live' ? each.event.type : each.kind))
}

const isOf = (kind: WatchUpdate['kind']) => (fed: WatchUpdate) => fed.kind === kind
const isEvent = (type: SessionEvent['type']) => (fed: WatchUpdate) => fed.kind === 'event' && fed.event.type === type

/** Runs in the place, as far as others see. */
function take(place: Place, now = new Date(0)): Promise<RunLock> {
  return takeRunLock(place.records.lock, { ...place.context, now })
}

const item: Item = { kind: 'agent-message', id: 'm1', text: '', phase: null }
function shares(place: Place, { holder }: RunLock, events: number, text: string, dropped = 0, pid = holder.pid) {
  return writeLiveSnapshot(place.records.live, {
    pid,
    startTime: holder.startTime,
    session: FIRST,
    events,
    sequence: 1,
    items: [{ round: 1, item, startedAt: 5, text, dropped }],
  })
}

test('of a long past the last events are told, and the state is that of all of them', async () => {
  await using place = await makePlace()
  const past = Array.from({ length: 500 }, (_, n) => ({ type: 'warning', round: 1, message: String(n) }) as const)
  await place.journal(FIRST, [created, started, ...past])
  await using watcher = watch({ records: place.records, id: FIRST })
  await watcher.over
  expect(watcher.fed).toHaveLength(202)
  expect(watcher.fed[0]).toMatchObject({ event: { message: '300' }, state: { events: 303 } })
  expect(watcher.fed.slice(-2)).toMatchObject([
    { kind: 'attached', state: { goal: 'build X', events: 502 }, standing: 'cut-off' },
    { kind: 'cut-off' },
  ])
})

test('with a snapshot the same is told as without, and what lies long before is not read', async () => {
  await using place = await makePlace()
  const { records } = place
  const past = Array.from({ length: 900 }, (_, n) => ({ type: 'warning', round: 1, message: String(n) }) as const)
  await place.journal(FIRST, [created, started, ...past])
  const lines = (await readFile(records.journal(FIRST), 'utf8')).split(/(?<=\n)/)
  const told = async () => {
    await using watcher = watch({ records, id: FIRST })
    await watcher.over
    return watcher.fed
  }
  const whole = await told()
  for (const part of [300, 600, 601, 900]) {
    await writeFile(records.journal(FIRST), lines.slice(0, part).join(''))
    expect(await renewSnapshot(records, FIRST, 1)).toBe(true)
    await writeFile(records.journal(FIRST), lines.join(''))
    expect(await told()).toEqual(whole)
  }
  const line = Math.floor(lines.length / 3)
  const other = lines.with(line, (lines[line] ?? '').replace('warning', 'nothing'))
  await writeFile(records.journal(FIRST), other.join(''))
  expect(await told()).toEqual(whole)
})

test('a session that has ended is told, and that is all', async () => {
  await using place = await makePlace()
  await place.journal(FIRST, [created, ended])
  await using watcher = watch({ records: place.records, id: FIRST })
  await watcher.over
  expect(kindsOf(watcher.fed)).toEqual(['session-created', 'session-ended', 'attached', 'ended'])
})

test('a session of before ends although another one is at work', async () => {
  await using place = await makePlace()
  await using _lock = await take(place)
  await place.journal(FIRST, [created, ended])
  await place.journal('20261120_2', [created, started])
  await using watcher = watch({ records: place.records, id: FIRST })
  await watcher.over
  expect(kindsOf(watcher.fed).at(-1)).toBe('ended')
})

/** Resolves when all that was there before has been looked at: every look begins with what is shared. */
async function looked(path: string, watcher: Watcher) {
  for (let look = 0; look < 3; look++) {
    const before = watcher.fed.filter(isEvent('warning')).length
    await appendFile(path, linesOf([sampleEvents.warning]))
    await watcher.until(() => watcher.fed.filter(isEvent('warning')).length > before)
  }
}

test('a message is told as it grows, and what is completed does not begin anew', async () => {
  await using place = await makePlace()
  await using lock = await take(place)
  const path = await place.journal(FIRST, [created, started])
  await using watcher = watch({ records: place.records, id: FIRST })
  await watcher.until(isOf('attached'))
  await shares(place, lock, 2, 'left by a dead run', 0, 1)
  await looked(path, watcher)
  await shares(place, lock, 2, 'All is')
  await watcher.until(isOf('live'))
  // It has lost its beginning, of which all was told.
  await shares(place, lock, 2, 'is well.', 4)
  await watcher.until(({ kind }) => kind === 'live' && watcher.streamed() === 'All is well.')
  await appendFile(path, linesOf([completed]))
  await watcher.until(isEvent('item-completed'))
  await shares(place, lock, 5, 'is well. Late.', 4)
  await looked(path, watcher)
  await appendFile(path, linesOf([ended]))
  await watcher.until(isOf('ended'))
  const told = watcher.fed.filter(fed => !isEvent('warning')(fed))
  expect(kindsOf(told).slice(3)).toEqual([
    'item-started',
    'text-delta',
    'text-delta',
    'item-completed',
    'session-ended',
    'ended',
  ])
  expect(told[3]).toEqual({ kind: 'live', event: { type: 'item-started', round: 1, item }, at: 5 })
})

test('rubbish where a run shares what it does is nothing', async () => {
  await using place = await makePlace()
  await using _lock = await take(place)
  const path = await place.journal(FIRST, [created])
  await writeFile(place.records.live, '{"pid":')
  await using watcher = watch({ records: place.records, id: FIRST })
  await watcher.until(isOf('attached'))
  await appendFile(path, linesOf([ended]))
  await watcher.until(isOf('ended'))
  expect(watcher.fed.some(isOf('live'))).toBe(false)
})

test('whoever goes away leaves nothing behind, of a run that takes nothing too', async () => {
  await using place = await makePlace()
  await using _lock = await take(place)
  await place.journal(FIRST, [created, started])
  const watcher = watch({ records: place.records, id: FIRST })
  await watcher.until(isOf('attached'))
  await untilInFolder(place.records.control, 'a command', async () =>
    (await readdir(place.records.control)).length > 0 ? true : null,
  )
  await watcher[Symbol.asyncDispose]()
  expect(await readdir(place.records.control)).toEqual([])
})

test('a run that goes away without an end leaves its session gone', async () => {
  await using place = await makePlace()
  const lock = await take(place)
  await place.journal(FIRST, [created, started])
  await using watcher = watch({ records: place.records, id: FIRST })
  expect(await watcher.until(isOf('attached'))).toMatchObject({ standing: 'running' })
  await lock[Symbol.asyncDispose]()
  await watcher.over
  expect(kindsOf(watcher.fed).at(-1)).toBe('gone')
})

/** A command of the scripted model that prints until the file `go` is there, beside the work directory; codex tells nothing of its first words. */
const untilGo = 'until [ -e ../go ]; do echo ticking; sleep 0.1; done; echo over-now'

async function recordsOf({ place }: RealScene) {
  return await openRecords({ ...place, platform: process.platform, templates: OWN_TEMPLATES })
}

test('two people watch a run of another process, come and go, and go on with its next session', async () => {
  const heard = Promise.withResolvers<void>()
  const spoken = { ...reply(message('This is said at a calm pace. '.repeat(5), { chunkSize: 10 })), deltaMs: 1 }
  const step = { ...spoken, items: [...spoken.items, shell(untilGo, { yieldMs: 30_000 })] }
  const rounds = [[step, ...round(claimDone)], round(claimDone)]
  await using scene = await openRealScene(rounds, { modelClock: stopsMidway(6, heard.promise) })
  await using running = scene.start('--json', 'build X')
  const { session: id } = await running.event('turn-started')
  const records = await recordsOf(scene)
  {
    await using early = watch({ records, id })
    await early.until(({ kind }) => kind === 'live')
    await early.until(() => early.streamed().includes('calm pace'))
    expect(early.fed.some(fed => isEvent('item-completed')(fed) && JSON.stringify(fed).includes('calm'))).toBe(false)
  }
  heard.resolve()
  await using late = watch({ records, id })
  await late.until(() => late.streamed().includes('ticking'))
  await using third = watch({ records, id })
  await third.until(() => third.streamed().includes('ticking'))
  expect(third.fed.some(fed => fed.kind === 'live' && JSON.stringify(fed).includes('second-half\n'))).toBe(false)
  await scene.run('queue', 'add', 'then Y')
  await writeFile(join(scene.place.root, 'go'), '')
  expect((await running.ended).exitCode).toBe(0)
  for (const watcher of [late, third]) {
    await watcher.over
    expect(kindsOf(watcher.fed).filter(kind => /^(ended|next-session|session-created|gone)$/.test(kind))).toEqual([
      'session-created',
      'ended',
      'next-session',
      'session-created',
      'ended',
    ])
  }
  expect(existsSync(records.live)).toBe(false)
})

test('whoever watches a run that is killed is told so, and finds it cut off afterwards', async () => {
  await using scene = await openRealScene([[reply(shell(untilGo, { yieldMs: 30_000 }))]])
  await using running = scene.start('--json', 'build X')
  const { session: id } = await running.event('turn-started')
  const records = await recordsOf(scene)
  await using watcher = watch({ records, id })
  await watcher.until(() => watcher.streamed().includes('ticking'))
  running.process.kill('SIGKILL')
  await watcher.over
  expect(kindsOf(watcher.fed).at(-1)).toBe('gone')
  await using again = watch({ records, id })
  await again.over
  expect(again.fed.at(-1)).toEqual({ kind: 'cut-off' })
  expect(again.fed.some(isOf('live'))).toBe(false)
})
