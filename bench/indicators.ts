import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { systemClock } from '../src/base/clock.ts'
import { submit } from '../src/fleet/store.ts'
import { askSession } from '../src/fleet/tell.ts'
import { makePlace, type TestPlace } from '../tests/support/place.ts'
import { type FleetPlace, setUpFleet, startPostgres, WITHOUT_POSTGRES } from '../tests/support/postgres.ts'
import { writePeer } from '../tests/support/scripted-peer.ts'
import { WRITE_NEXT } from '../tests/support/writing-peer.ts'
import { atMost, type Figure } from './figure.ts'
import { makeRepository, submission } from './fleet.ts'
import { percentile } from './median.ts'
import { BIN } from './run-command.ts'

const BEGUN = 100
const STEERED = 100
const KILLS = 10
const SESSIONS = 4
const LEASE_SECONDS = 10
const BOUND_MS = 120_000

/** A codex whose turns end after a while, and take what a person says. */
const peer = (turnMs: number) => `${WRITE_NEXT}
on['turn/start'] = id => {
  send({ id, result: { turn: { id: TURN } } }); started()
  setTimeout(() => { writeNext(0); message('done'); completed() }, ${turnMs})
}
on['turn/steer'] = id => send({ id, result: { turnId: TURN } })
`

/** How long a person waits for a fleet: for 99 of 100 sessions, with two workers of this machine. */
export async function indicators(): Promise<Figure[]> {
  if (WITHOUT_POSTGRES !== '')
    return [{ what: 'a fleet: there is no PostgreSQL here', value: null, unit: '', target: null }]
  await using cluster = await startPostgres()
  await using place = await makePlace('')
  await using fleet = await setUpFleet(cluster, { leaseSeconds: LEASE_SECONDS, perRepository: 100 })
  const repo = makeRepository(place)
  const [short, long] = [await writePeer(place.root, peer(100)), await writePeer(place.root, peer(BOUND_MS * 10))]
  const begun = await timesToBegin(place, fleet, repo, short)
  const { steered, resumed } = await timesAtWork(place, fleet, repo, long)
  return [
    {
      what: `submitted to begun: 99 of 100 (${begun.length})`,
      value: percentile(begun, 99),
      unit: 'ms',
      target: atMost(5_000),
    },
    {
      what: `steered to heard: 99 of 100 (${steered.length})`,
      value: percentile(steered, 99),
      unit: 'ms',
      target: atMost(5_000),
    },
    {
      what: `worker killed to resumed, lease ${LEASE_SECONDS} s: 99 of 100 (${resumed.length})`,
      value: percentile(resumed, 99),
      unit: 'ms',
      target: atMost(30_000),
    },
  ]
}

async function timesToBegin(place: TestPlace, fleet: FleetPlace, repo: string, codex: string): Promise<number[]> {
  const workers = ['a', 'b'].map(name => startWorker(place, fleet, name, codex))
  try {
    const times: number[] = []
    for (let at = 0; at < BEGUN; at += 1) {
      // At no fixed moment of the workers' looks.
      await delay(Math.random() * 1_000)
      const since = Date.now()
      const [id = ''] = await submit(fleet.database, [submission(0, repo)])
      times.push((await firstAfter(fleet, id, 'round-started', since)) - since)
    }
    return times
  } finally {
    await Promise.all(workers.map(worker => end(worker, 'SIGTERM')))
  }
}

async function timesAtWork(place: TestPlace, fleet: FleetPlace, repo: string, codex: string) {
  const { database } = fleet
  const workers = new Map(['c1', 'c2'].map(name => [name, startWorker(place, fleet, name, codex)]))
  try {
    const begun = Date.now()
    const ids = await submit(
      database,
      Array.from({ length: SESSIONS }, () => submission(0, repo)),
    )
    for (const id of ids) await firstAfter(fleet, id, 'round-started', begun)
    const steered: number[] = []
    for (let at = 0; at < STEERED; at += 1) {
      await delay(Math.random() * 500)
      const since = performance.now()
      const ask = { type: 'steer', text: 'Keep the interface.' } as const
      const options = { mostMs: BOUND_MS, signal: new AbortController().signal }
      const reply = await askSession(database, systemClock, ids[at % ids.length] ?? '', ask, options)
      if (reply === null) throw new Error('Nobody has heard it.')
      steered.push(performance.now() - since)
    }
    const resumed: number[] = []
    for (let kill = 0; kill < KILLS; kill += 1) {
      const rows = await database.sql<{ id: string; worker: string }>(
        `select id, worker from codemachine.session where id = any($1) order by taken_at`,
        [ids],
      )
      const lost = rows[0]?.worker ?? ''
      const since = Date.now()
      const killed = workers.get(lost)
      if (killed === undefined) throw new Error(`No worker ${lost} runs.`)
      await end(killed, 'SIGKILL')
      workers.delete(lost)
      for (const { id, worker } of rows)
        if (worker === lost) resumed.push((await firstAfter(fleet, id, 'round-started', since)) - since)
      const name = `d${kill}`
      workers.set(name, startWorker(place, fleet, name, codex))
    }
    return { steered, resumed }
  } finally {
    await Promise.all([...workers.values()].map(worker => end(worker, 'SIGTERM')))
  }
}

/** When the first event of a type came after a moment; Unix time, ms. */
async function firstAfter({ database }: FleetPlace, id: string, type: string, since: number): Promise<number> {
  for (;;) {
    const rows = await database.sql<{ line: string }>(
      `select line from codemachine.event where session = $1 and line::text like $2`,
      [id, `%"${type}"%`],
    )
    const times = rows.map(({ line }) => JSON.parse(line) as { type: string; at: string })
    const first = times.find(event => event.type === type && Date.parse(event.at) >= since)
    if (first !== undefined) return Date.parse(first.at)
    if (Date.now() - since > BOUND_MS) throw new Error(`${id} has no ${type}.`)
    await delay(100)
  }
}

function startWorker({ root, env }: TestPlace, { url }: FleetPlace, name: string, codex: string): ChildProcess {
  const args = [
    '--queue',
    url,
    '--name',
    name,
    '--slots',
    String(SESSIONS),
    '--repos',
    `${root}/**`,
    '--codex-bin',
    codex,
  ]
  return spawn(process.execPath, [BIN, 'worker', ...args], {
    cwd: root,
    env: { ...env, CODEMACHINE_HOME: join(root, `home-${name}`) },
    stdio: 'ignore',
  })
}

async function end(worker: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (worker.exitCode !== null || worker.signalCode !== null) return
  const gone = once(worker, 'exit')
  worker.kill(signal)
  await gone
}
