import { randomUUID } from 'node:crypto'
import { vi } from 'vitest'
import type { SessionEvent } from '../../src/core/events/events.ts'
import type { FleetJob, Submission } from '../../src/fleet/jobs.ts'
import { SCHEMA } from '../../src/fleet/schema.ts'
import { append, type FleetEnd, finish, submit, type Taken, take } from '../../src/fleet/store.ts'
import { codemachineHere } from '../support/in-process.ts'
import { makePlace, type TestPlace } from '../support/place.ts'
import { type FleetPlace, type PostgresCluster, setUpFleet } from '../support/postgres.ts'
import { recorded } from '../support/session-events.ts'

/** A fleet that is set up in a database of its own, and a machine that looks at it. */
export interface FleetScene extends AsyncDisposable {
  place: TestPlace
  fleet: FleetPlace
  /** Types `codemachine fleet …`. */
  type(...words: string[]): ReturnType<typeof codemachineHere>
  /** Submits sessions of the same repository unless told otherwise; answers their ids. */
  submit(...changes: Partial<Submission>[]): Promise<string[]>
  /** Takes the next session as a worker does, which is not there otherwise. */
  take(name?: string, tags?: readonly string[]): Promise<Taken>
  /** Writes down what has happened in it. */
  happens(taken: Taken, ...events: SessionEvent[]): Promise<void>
  end(taken: Taken, end?: Partial<FleetEnd>): Promise<void>
  /** Writes down a worker that runs. */
  worker(
    name: string,
    row?: { slots?: number; tags?: string[]; repos?: string[]; templates?: string[]; login?: object },
  ): Promise<void>
  /** Replies to what is asked next, as a worker does; resolves with what it was. */
  reply(reply: object): Promise<object>
}

const JOB: FleetJob = { goal: 'mend the door', template: null, gates: [], limits: { rounds: 8 } }

export async function openFleetScene(cluster: PostgresCluster): Promise<FleetScene> {
  const place = await makePlace('')
  const fleet = await setUpFleet(cluster, { leaseSeconds: 3600 })
  place.env.CODEMACHINE_QUEUE = fleet.url
  const { sql } = fleet.database
  const counts = new Map<string, number>()
  return {
    place,
    fleet,
    type: (...words) => codemachineHere(place, ['fleet', ...words]),
    submit: (...changes) =>
      submit(
        fleet.database,
        changes.map(change => ({ ...USUAL, ...change })),
      ),
    take: async (worker = 'w1', tags = []) => {
      const taker = { name: worker, instance: randomUUID(), tags, templates: [] }
      const taken = await take(fleet.database, fleet.queue, taker, { perRepository: 4, without: [] })
      if (taken === null) throw new Error('Nothing waits.')
      return taken
    },
    happens: async (taken, ...events) => {
      const before = counts.get(taken.id) ?? 0
      const lines = recorded([...Array<SessionEvent>(before).fill(events[0] as SessionEvent), ...events])
        .slice(before)
        .map(event => JSON.stringify({ ...event, session: taken.id }))
      counts.set(taken.id, await append(fleet.database, taken, before + 1, lines, { round: 1, rounds: 8 }))
    },
    end: (taken, end = {}) =>
      finish(fleet.database, fleet.queue, taken, {
        state: 'ended',
        reason: null,
        outcome: { kind: 'done', verified: false },
        branch: `codemachine/${taken.id}`,
        report: null,
        certificate: null,
        ...end,
      }),
    worker: async (worker, { slots = 2, tags = [], repos = [], templates = [], login } = {}) => {
      await sql(
        `insert into ${SCHEMA}.worker (name, instance, host, place, version, clock_off_ms, slots, tags, repos, templates, login)
         values ($1, $2, 'host-of-${worker}', '/', '0.1.0', 0, $3, $4, $5, $6, $7)`,
        [worker, randomUUID(), slots, tags, repos, templates, login === undefined ? null : JSON.stringify(login)],
      )
    },
    reply: async reply =>
      await vi.waitFor(
        async () => {
          const [row] = await sql<{ ask: object }>(
            `update ${SCHEMA}.ask set reply = $1, replied_at = now() where reply is null returning ask`,
            [JSON.stringify(reply)],
          )
          if (row === undefined) throw new Error('Nothing is asked.')
          return row.ask
        },
        { timeout: 20_000, interval: 20 },
      ),
    [Symbol.asyncDispose]: async () => {
      await fleet[Symbol.asyncDispose]()
      await place[Symbol.asyncDispose]()
    },
  }
}

const USUAL: Submission = {
  repo: 'git@host:team/app.git',
  ref: 'main',
  job: JOB,
  priority: 0,
  tags: [],
  notBefore: null,
  deadline: null,
  after: null,
  team: '',
}
