import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Submission } from '../src/fleet/jobs.ts'
import { append, submit, take } from '../src/fleet/store.ts'
import { cpuMsOf } from '../tests/support/cpu-time.ts'
import { makePlace, type TestPlace } from '../tests/support/place.ts'
import {
  type FleetPlace,
  type PostgresCluster,
  setUpFleet,
  startPostgres,
  WITHOUT_POSTGRES,
} from '../tests/support/postgres.ts'
import { writePeer } from '../tests/support/scripted-peer.ts'
import { WRITE_NEXT } from '../tests/support/writing-peer.ts'
import { atMost, type Figure, shown } from './figure.ts'
import { median, percentile } from './median.ts'
import { BIN, runCommand } from './run-command.ts'

const SUBMITTED = 10_000
const WAITING = 100_000
const TAKEN = 200
const IDLE_MS = 30_000
/** Pairs of a session in the fleet and the same one run locally. */
const PAIRS = Number(process.env.FLEET_PAIRS ?? 20)
const ROUNDS = 5
const WRITERS = 50
const BATCHES = 40
const TURN_MS = 400

/** What a fleet costs beside one machine, with a real PostgreSQL, of which nothing else is asked. */
export async function fleet(): Promise<Figure[]> {
  if (WITHOUT_POSTGRES !== '')
    return [{ what: 'a fleet: there is no PostgreSQL here', value: null, unit: '', target: null }]
  await using cluster = await startPostgres()
  return [...(await ofQueue(cluster)), ...(await ofEvents(cluster)), ...(await ofSessions(cluster))]
}

/** A session to submit. */
export function submission(at: number, repo = `git@host.example:team/app-${at % 200}`): Submission {
  return {
    repo,
    ref: 'main',
    job: { goal: 'Write what is missing.', template: null, gates: [], limits: { rounds: 20 } },
    priority: 0,
    tags: [],
    notBefore: null,
    deadline: null,
    after: null,
    team: '',
  }
}

async function ofQueue(cluster: PostgresCluster): Promise<Figure[]> {
  await using place = await setUpFleet(cluster)
  const { database, queue } = place
  const many = Array.from({ length: SUBMITTED }, (_, at) => submission(at))
  const since = performance.now()
  await submit(database, many)
  const submitMs = performance.now() - since
  for (let waiting = SUBMITTED; waiting < WAITING; waiting += SUBMITTED) await submit(database, many)
  await database.sql('analyze')
  const times: number[] = []
  const taker = { name: 'w', instance: crypto.randomUUID(), tags: [], templates: [] }
  for (let at = 0; at < TAKEN; at += 1) {
    const begun = performance.now()
    const taken = await take(database, queue, taker, { perRepository: 4, without: [] })
    times.push(performance.now() - begun)
    if (taken === null) throw new Error('Nothing waits.')
  }
  return [
    { what: `${SUBMITTED} sessions submitted`, value: submitMs, unit: 'ms', target: atMost(5_000) },
    { what: `one taken, ${WAITING} waiting: median`, value: median(times), unit: 'ms', target: atMost(10) },
    shown('one taken: 95 of 100', percentile(times, 95), 'ms'),
  ]
}

/** Events of many sessions at once, as the workers send them: each session its next batch when the last one is there. */
async function ofEvents(cluster: PostgresCluster): Promise<Figure[]> {
  await using place = await setUpFleet(cluster, { most: 16, perRepository: 1_000 })
  const { database, queue } = place
  await submit(
    database,
    Array.from({ length: WRITERS }, (_, at) => submission(at)),
  )
  const taker = { name: 'w', instance: crypto.randomUUID(), tags: [], templates: [] }
  const line = JSON.stringify({
    v: 1,
    at: '2026-11-28T00:00:00.000Z',
    session: '20261128_1',
    type: 'item-completed',
    text: 'x'.repeat(600),
  })
  const batch = Array.from({ length: 10 }, () => line)
  const times: number[] = []
  const all = await Promise.all(
    Array.from({ length: WRITERS }, () => take(database, queue, taker, { perRepository: 1_000, without: [] })),
  )
  const since = performance.now()
  await Promise.all(
    all.map(async taken => {
      if (taken === null) throw new Error('Nothing waits.')
      for (let at = 0; at < BATCHES; at += 1) {
        const begun = performance.now()
        await append(database, taken, at * batch.length + 1, batch, { round: at, rounds: null, waiting: null })
        times.push(performance.now() - begun)
      }
    }),
  )
  const perSecond = (WRITERS * BATCHES * batch.length * 1000) / (performance.now() - since)
  return [
    shown(`events of ${WRITERS} sessions at once, 10 a batch`, perSecond, '/s'),
    // A sender waits 100 ms for more before it sends: what takes no longer holds nothing up.
    { what: 'a batch of them: 95 of 100', value: percentile(times, 95), unit: 'ms', target: atMost(100) },
  ]
}

const PEER = `${WRITE_NEXT}
on['turn/start'] = id => {
  send({ id, result: { turn: { id: TURN } } }); started()
  setTimeout(() => { writeNext(${ROUNDS - 1}); message('done so far'); completed() }, ${TURN_MS})
}
`

async function ofSessions(cluster: PostgresCluster): Promise<Figure[]> {
  await using place = await makePlace('')
  await using inFleet = await setUpFleet(cluster, { leaseSeconds: 60 })
  const peer = await writePeer(place.root, PEER)
  const repo = makeRepository(place)
  const args = ['--queue', inFleet.url, '--name', 'bench', '--repos', `${place.root}/**`, '--codex-bin', peer]
  const worker = spawn(process.execPath, [BIN, 'worker', ...args], { cwd: place.root, env: place.env, stdio: 'ignore' })
  try {
    const times = { fleet: [] as number[], taken: [] as number[], local: [] as number[], rounds: [] as number[] }
    for (let pair = 0; pair <= PAIRS; pair += 1) {
      const { inAll, fromTaken, roundMs } = await runInFleet(inFleet, repo)
      const local = await runLocally(place, repo, peer)
      // The first of each warms the disk.
      if (pair === 0) continue
      times.fleet.push(inAll)
      times.taken.push(fromTaken)
      times.local.push(local.inAll)
      times.rounds.push(roundMs - local.roundMs)
    }
    const idle = await idleShare(worker.pid ?? 0)
    const more = (values: readonly number[]) => median(values.map((value, at) => value - (times.local[at] ?? 0)))
    return [
      shown(`a session of ${ROUNDS} rounds, locally in a clone: median`, median(times.local), 'ms'),
      {
        what: 'more in a fleet, from submitting it to its end',
        value: more(times.fleet),
        unit: 'ms',
        target: atMost(1_500),
      },
      shown('… from when it was taken', more(times.taken), 'ms'),
      { what: 'more in a fleet, a round', value: median(times.rounds), unit: 'ms', target: atMost(50) },
      { what: 'an idle worker, of a core', value: idle, unit: '%', target: atMost(0.5) },
    ]
  } finally {
    const gone = once(worker, 'exit')
    worker.kill('SIGTERM')
    await gone
  }
}

/** Makes a bare repository with 200 files, and answers where it is. */
export function makeRepository({ root, env }: TestPlace): string {
  const [bare, work] = [join(root, 'remote.git'), join(root, 'made')]
  mkdirSync(work)
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=p', '-c', 'user.email=p', ...args], { cwd: work, env, stdio: 'pipe' })
  git('init', '-q', '-b', 'main')
  for (let at = 0; at < 200; at += 1) writeFileSync(join(work, `file-${at}.txt`), `${at}\n`.repeat(100))
  git('add', '.')
  git('commit', '-qm', 'begin')
  git('clone', '-q', '--bare', work, bare)
  return bare
}

/** How long one took, ms: from when it was submitted, from when it was taken, and a round of it. */
async function runInFleet({ database }: FleetPlace, repo: string) {
  // At no fixed moment of the worker's looks.
  await delay(Math.random() * 2_000)
  const since = performance.now()
  const [id] = await submit(database, [submission(0, repo)])
  for (;;) {
    const [row] = await database.sql<{ state: string; ms: number }>(
      'select state, extract(epoch from ended_at - taken_at)::float8 * 1000 as ms from codemachine.session where id = $1',
      [id],
    )
    if (row?.state === 'ended') {
      const inAll = performance.now() - since
      const lines = await database.sql<{ line: string }>(
        'select line from codemachine.event where session = $1 order by number',
        [id],
      )
      return { inAll, fromTaken: row.ms, roundMs: roundMsOf(lines.map(({ line }) => line)) }
    }
    if (performance.now() - since > 120_000) throw new Error(`${id} is ${row?.state}.`)
    await delay(20)
  }
}

async function runLocally({ root, env }: TestPlace, repo: string, peer: string) {
  const clone = join(root, 'clone')
  rmSync(clone, { recursive: true, force: true })
  const since = performance.now()
  await runCommand('git', ['clone', '-q', repo, clone], 0, { cwd: root, env })
  const args = [BIN, submission(0).job.goal, '--json', '--rounds', '20', '--codex-bin', peer]
  const { stdout } = await runCommand(process.execPath, args, 0, { cwd: clone, env })
  return { inAll: performance.now() - since, roundMs: roundMsOf(stdout.trim().split('\n')) }
}

/** From the start of the first round to that of the last, by the round. */
function roundMsOf(lines: readonly string[]): number {
  const starts = lines
    .map(line => JSON.parse(line) as { type: string; at: string })
    .flatMap(({ type, at }) => (type === 'round-started' ? [Date.parse(at)] : []))
  return ((starts.at(-1) ?? Number.NaN) - (starts[0] ?? Number.NaN)) / (starts.length - 1)
}

/** What a worker that has nothing to do takes of a core, per cent. */
async function idleShare(pid: number): Promise<number> {
  const before = cpuMsOf(pid)
  await delay(IDLE_MS)
  return ((cpuMsOf(pid) - before) * 100) / IDLE_MS
}
