import { expect, test } from 'vitest'
import { type ForecastSession, type ForecastWorker, forecastOf } from '../../src/fleet/forecast.ts'
import type { DayLimitNow } from '../../src/fleet/limits.ts'

const MINUTE = 60_000
const NOW = Date.UTC(2026, 10, 20, 22)

const session = (id: string, change: Partial<ForecastSession> = {}): ForecastSession => ({
  id,
  group: 'app',
  team: '',
  repo: 'git@host:team/app.git',
  state: 'waiting',
  priority: 0,
  tags: [],
  template: null,
  notBefore: null,
  deadline: null,
  hasBegun: false,
  after: null,
  isHeldForGood: false,
  worker: null,
  workedMs: 0,
  ...change,
})

const worker = (name: string, change: Partial<ForecastWorker> = {}): ForecastWorker => ({
  name,
  slots: 1,
  tags: [],
  repos: [],
  templates: [],
  takes: true,
  pausedUntil: null,
  ...change,
})

const hour = [{ repo: 'git@host:team/app.git', durationMs: 60 * MINUTE, tokens: 3_000, cost: 0 }]

/** In minutes from now on. */
function forecast(
  sessions: ForecastSession[],
  workers: ForecastWorker[],
  { history = hour, perRepository = 9, by = 24 * 60, limits = [] as DayLimitNow[] } = {},
) {
  const facts = { now: NOW, history, sessions, workers, perRepository, beyond: 0, limits }
  const { done, late, usual } = forecastOf(facts, NOW + by * MINUTE)
  const minutes = (at: number | null) => (at === null ? null : Math.round((at - NOW) / MINUTE))
  return {
    usual,
    done: done.map(({ id, at }) => [id, minutes(at)]),
    late: late.map(({ id, at, why }) => [id, minutes(at), why]),
  }
}

test('two that wait for one slot end one after the other, and what ends too late is said with when', () => {
  const both = [session('a'), session('b')]
  expect(forecast(both, [worker('w')]).done).toEqual([
    ['a', 60],
    ['b', 120],
  ])
  const short = forecast(both, [worker('w')], { by: 90 })
  expect(short.done).toEqual([['a', 60]])
  expect(short.late).toEqual([['b', 120, null]])
  expect(forecast([...both, session('c')], [worker('w')], { by: 90 }).late).toEqual([
    ['b', 120, null],
    ['c', null, null],
  ])
})

test('without a session that has ended lately nothing is foretold', () => {
  expect(forecast([session('a')], [worker('w')], { history: [] })).toEqual({ usual: null, done: [], late: [] })
})

test('a repository takes as long as its own sessions did, and one with few of them as long as all', () => {
  const other = 'git@host:team/slow.git'
  const of = (repo: string, ...minutes: number[]) =>
    minutes.map(each => ({ repo, durationMs: each * MINUTE, tokens: 0, cost: 0 }))
  const history = [...of('git@host:team/app.git', 10, 20, 90), ...of(other, 300, 310)]
  const { done } = forecast([session('a'), session('b', { repo: other })], [worker('w', { slots: 2 })], { history })
  expect(done).toEqual([
    ['a', 20],
    ['b', 90],
  ])
})

test('one that runs needs what is left of the usual time, and one that is over it a tenth more', () => {
  const runs = { state: 'running', hasBegun: true, worker: 'w' } as const
  const sessions = [session('a', { ...runs, workedMs: 45 * MINUTE }), session('b', { ...runs, workedMs: 300 * MINUTE })]
  expect(forecast(sessions, [worker('w', { slots: 2 })]).done).toEqual([
    ['b', 6],
    ['a', 15],
  ])
})

test('what runs on a worker that is lost, or drains, goes on with another one', () => {
  const sessions = [
    session('a', { state: 'running', hasBegun: true, worker: 'w', workedMs: 30 * MINUTE }),
    session('b'),
  ]
  expect(forecast(sessions, [worker('v')]).done).toEqual([
    ['a', 30],
    ['b', 90],
  ])
  expect(forecast(sessions, [worker('v'), worker('w', { takes: false, slots: 5 })]).done).toEqual([
    ['a', 30],
    ['b', 90],
  ])
})

test('priority, tags that few have, the moment before which it does not begin and the limit of its repository are kept', () => {
  const sessions = [
    session('low'),
    session('high', { priority: 5 }),
    session('gpu', { tags: ['gpu'], priority: -5 }),
    session('later', { notBefore: NOW + 30 * MINUTE, group: 'other' }),
  ]
  const workers = [worker('g', { tags: ['gpu'] }), worker('w', { slots: 3 })]
  expect(forecast(sessions, workers, { perRepository: 2 }).done).toEqual([
    ['gpu', 60],
    ['high', 60],
    ['later', 90],
    ['low', 120],
  ])
})

test('a login that waits for its window takes nothing before', () => {
  expect(forecast([session('a')], [worker('w', { pausedUntil: NOW + 300 * MINUTE })]).done).toEqual([['a', 360]])
})

test('what is held begins when the other one has ended, and never where that came to nothing', () => {
  const held = session('b', { state: 'held', after: 'a' })
  expect(forecast([session('a'), held], [worker('w', { slots: 2 })]).done).toEqual([
    ['a', 60],
    ['b', 120],
  ])
  expect(forecast([{ ...held, isHeldForGood: true }], [worker('w')]).late).toEqual([
    ['b', null, 'it waits for a, which did not end as done'],
  ])
})

test('what no worker takes is said with why', () => {
  const gpu = session('a', { tags: ['gpu'] })
  expect(forecast([gpu], []).late).toEqual([['a', null, 'no worker runs']])
  expect(forecast([gpu], [worker('w')]).late).toEqual([['a', null, 'no worker that takes sessions has gpu']])
  expect(forecast([session('a')], [worker('w', { repos: ['git@host:other/*'] })]).late).toEqual([
    ['a', null, 'no running worker takes its repository'],
  ])
  const builds = [worker('w', { templates: ['build'] })]
  expect(forecast([session('a')], builds).late).toEqual([['a', null, 'no free worker runs the template goal']])
  expect(forecast([session('a', { template: 'build' })], builds).done).toEqual([['a', 60]])
  expect(forecast([session('a')], [worker('w', { takes: false })]).late).toEqual([
    ['a', null, 'no worker takes more sessions'],
  ])
  const late = [session('a'), session('b', { deadline: NOW + 30 * MINUTE })]
  expect(forecast(late, [worker('w')]).late).toEqual([['b', null, 'it will not start before its deadline']])
})

test('a team at its limit begins nothing before its day ends, and then has a new one', () => {
  const limit = {
    team: 'shop',
    cost: null,
    usedTokens: 0,
    usedCost: 0,
    isFull: false,
    endsAt: new Date(NOW + 240 * MINUTE),
  }
  const shop = (id: string) => session(id, { team: 'shop' })
  const sessions = [shop('a'), shop('b'), shop('c'), shop('d'), shop('e'), session('other')]
  const limits = [{ ...limit, tokens: 5_000 }]
  const foretold = forecast(sessions, [worker('w')], { limits, by: 370 })
  expect(foretold.done).toEqual([
    ['a', 60],
    ['b', 120],
    ['other', 180],
    ['c', 300],
    ['d', 360],
  ])
  expect(foretold.late).toEqual([['e', null, 'the team shop will reach its limit of the day']])
  const now = [{ ...limit, tokens: 5_000, usedTokens: 5_000, isFull: true }]
  expect(forecast([shop('a')], [worker('w')], { limits: now, by: 200 }).late).toEqual([
    ['a', null, 'the team shop has reached its limit of the day'],
  ])
  const cost = [{ ...limit, team: '', tokens: null, cost: 1, usedCost: 2, isFull: true }]
  expect(forecast([session('a')], [worker('w')], { limits: cost }).done).toEqual([['a', 300]])
})
