import { randomUUID } from 'node:crypto'
import type { Submission } from '../../src/fleet/jobs.ts'
import { type FleetEnd, submit, type Taken, type Taker, take } from '../../src/fleet/store.ts'
import type { FleetPlace } from '../support/postgres.ts'

/** A session as somebody submits it; `more` is what it has of its own. */
export function submission(more: Partial<Submission> = {}): Submission {
  return {
    repo: 'https://git.example/app',
    ref: 'main',
    job: { goal: 'build X', template: null, gates: [], limits: {} },
    priority: 0,
    tags: [],
    notBefore: null,
    deadline: null,
    after: null,
    team: '',
    ...more,
  }
}

/** Submits sessions, and answers their ids. */
export function submitAll({ database }: FleetPlace, ...of: Partial<Submission>[]): Promise<string[]> {
  return submit(database, of.map(submission))
}

/** A worker of that name, in a process of its own. */
export function taker(name: string, tags: readonly string[] = [], templates: readonly string[] = []): Taker {
  return { name, instance: randomUUID(), tags, templates }
}

/** Takes the next session for a worker; null: there is none for it. */
export function takeFor(
  { database, queue, terms }: FleetPlace,
  by: Taker,
  { perRepository = terms.perRepository, without = [] }: { perRepository?: number; without?: string[] } = {},
): Promise<Taken | null> {
  return take(database, queue, by, { perRepository, without })
}

/** Takes a session that has to be there. */
export async function takeOne(fleet: FleetPlace, by: Taker): Promise<Taken> {
  const taken = await takeFor(fleet, by)
  if (taken === null) throw new Error(`There is no session for ${by.name}.`)
  return taken
}

/** Has the lease of a session be over, as after a minute in which its worker said nothing, and whoever looks for that look. */
export async function loseLease(fleet: FleetPlace, session: string): Promise<void> {
  await fleet.database.sql(
    `update codemachine_queue.job set heartbeat_on = now() - interval '1 hour' where data ->> 'session' = $1 and state = 'active'`,
    [session],
  )
  await superviseAnew(fleet)
}

/** Looks for leases that are over, however lately that was done. */
export async function superviseAnew({ database, queue }: FleetPlace): Promise<void> {
  await database.sql('update codemachine_queue.queue set monitor_on = null, monitor_claim_on = null')
  await queue.supervise()
}

/** How a session ends that is done. */
export const DONE: FleetEnd = {
  state: 'ended',
  reason: null,
  outcome: { kind: 'done' },
  branch: null,
  report: null,
  certificate: null,
}

/** A row of a session. */
export async function rowOf({ database }: FleetPlace, id: string): Promise<Record<string, unknown>> {
  const [row] = await database.sql('select * from codemachine.session where id = $1', [id])
  if (row === undefined) throw new Error(`There is no session ${id}.`)
  return row
}
