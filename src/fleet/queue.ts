import { createHash } from 'node:crypto'
import type { FetchOptions, JobWithMetadata, PgBoss } from 'pg-boss'
import { USUAL_TEMPLATE } from '../templates/registry.ts'
import { type Database, packagePgBoss, type Sql } from './database.ts'
import { JOB_VERSION } from './jobs.ts'
import { bossOver, type FleetTerms, QUEUE_SCHEMA, SCHEMA } from './schema.ts'

/** A job of pg-boss: which session, and which attempt at it. */
export interface Claim {
  queue: string
  id: string
  /** What counts the attempts: what is said with an older one changes nothing. */
  retryCount: number
  session: string
}

/** What the sessions of a lane have in common: whose they are, and what they want of a worker. */
export interface Lane {
  /** Empty: everybody's. */
  team: string
  tags: readonly string[]
  /** Null: the usual one. */
  template: string | null
}

/** What a worker has, and runs. */
export interface Able {
  tags: readonly string[]
  /** The names of templates; none: all. */
  templates: readonly string[]
}

/**
 * What waits for workers. Each call is part of the transaction that `sql` is of. Whoever locks a job and the row of its session locks the
 * job first, as `take` does.
 */
export interface FleetQueue extends AsyncDisposable {
  /** Adds sessions, all of one lane. */
  add(sql: Sql, lane: Lane, waiting: readonly Waiting[]): Promise<void>
  /** The next session that such a worker may have, of a team of its login; null: none waits. */
  take(sql: Sql, able: Able, options: TakeOptions): Promise<Claim | null>
  /** Says that whoever has it lives; false: it is somebody else's by now. */
  touch(claim: Claim): Promise<boolean>
  /** It is over, however it went; what waits again because its lease was over does so no more. */
  settle(sql: Sql, claim: Claim): Promise<void>
  /** Lets go of a session that a worker has, or had, which is known to be gone. */
  release(sql: Sql, session: string): Promise<void>
  /** Takes a session out that waits. */
  remove(sql: Sql, session: string): Promise<void>
  /** Has those wait again whose workers have said nothing for the lease, and lets go of what is long over. */
  supervise(): Promise<void>
  /** Sessions of the login's teams that were tried too often; they are taken out of the queue. */
  dead(sql: Sql): Promise<{ session: string; why: string }[]>
}

export interface Waiting {
  session: string
  priority: number
  notBefore: Date | null
  group: string
}

export interface TakeOptions {
  perRepository: number
  /** Groups that this worker does not take. */
  without: readonly string[]
}

/** A job that was tried so often is not tried again: something in it ends its workers. */
const MOST_TRIES = 20
const DAY_SECONDS = 24 * 60 * 60
/** How long one may wait. */
const KEPT_SECONDS = 10 * 365 * DAY_SECONDS

/** The sessions of one repository and team, of which only so many run at once. */
export function groupOf(team: string, repo: string): string {
  return createHash('sha256').update(`${team}\n${repo}`).digest('hex').slice(0, 24)
}

/**
 * The name of a lane: `sessions-1/_goal/gpu/linux`, of a team `sessions-1.shop/_goal/gpu/linux`. Its number is the version of the jobs in
 * it, and what begins with `_` is their template.
 */
export function laneOf({ team, tags, template }: Lane): string {
  const wants = [`_${template ?? USUAL_TEMPLATE}`, ...[...new Set(tags)].toSorted()]
  // Whoever may submit could have written any other text into the database, and pg-boss takes no other name.
  const names = wants.map(each => each.replace(/[^\w.-]/g, '-').slice(0, 100))
  return [`sessions-${JOB_VERSION}${ofTeam(team)}`, ...names].join('/')
}

/** Whether a worker runs a template; null: the usual one. */
export function runsTemplate({ templates }: Pick<Able, 'templates'>, template: string | null): boolean {
  return templates.length === 0 || templates.includes(template ?? USUAL_TEMPLATE)
}

function ofTeam(team: string): string {
  return team === '' ? '' : `.${team}`
}

/**
 * The lane of that name, and its template, undefined if it has those of any: it was made by an earlier codemachine. Null: it is none, or
 * has jobs of a newer version, which are left to newer workers.
 */
function laneNamed(name: string): { team: string; tags: readonly string[]; template: string | undefined } | null {
  const [head = '', ...wants] = name.split('/')
  const [, version, team = ''] = /^sessions-(\d+)(?:\.(\w+))?$/.exec(head) ?? []
  if (!(Number(version) <= JOB_VERSION)) return null
  const [first, ...rest] = wants
  return first?.startsWith('_')
    ? { team, tags: rest, template: first.slice(1) }
    : { team, tags: wants, template: undefined }
}

/**
 * Opens the queue of a fleet that is set up.
 * @param onProblem told what went wrong in the background
 */
export async function openQueue(
  database: Database,
  { leaseSeconds }: FleetTerms,
  onProblem: (problem: string) => void,
): Promise<FleetQueue> {
  const { PgBoss } = await packagePgBoss()
  const boss = new PgBoss({
    db: bossOver(database.sql),
    schema: QUEUE_SCHEMA,
    migrate: false,
    createSchema: false,
    supervise: false,
    schedule: false,
    reindex: false,
    monitorVacuum: false,
    // What lies between two looks at the leases comes on top of each.
    monitorIntervalSeconds: Math.max(1, Math.floor(leaseSeconds / 4)),
  })
  boss.on('error', error => onProblem(error.message))
  await boss.start()
  return new BossQueue(boss, leaseSeconds)
}

class BossQueue implements FleetQueue {
  readonly #boss: PgBoss
  readonly #leaseSeconds: number
  readonly #made = new Set<string>()

  constructor(boss: PgBoss, leaseSeconds: number) {
    this.#boss = boss
    this.#leaseSeconds = leaseSeconds
  }

  async add(sql: Sql, of: Lane, waiting: readonly Waiting[]): Promise<void> {
    const lane = laneOf(of)
    await this.#make(lane, deadOf(of.team))
    const jobs = waiting.map(({ session, priority, notBefore, group }) => ({
      data: { session },
      priority,
      group: { id: group },
      ...(notBefore === null ? {} : { startAfter: notBefore }),
    }))
    await this.#boss.insert(lane, jobs, { db: bossOver(sql) })
  }

  async take(sql: Sql, able: Able, { perRepository, without }: TakeOptions): Promise<Claim | null> {
    const ignoreGroups = [...without, ...(await fullGroups(sql, perRepository))]
    const options: FetchOptions & { includeMetadata: true } = {
      includeMetadata: true,
      groupConcurrency: perRepository,
      db: bossOver(sql),
      ...(ignoreGroups.length === 0 ? {} : { ignoreGroups }),
    }
    for (const queue of await lanesFor(sql, able)) {
      const [job]: JobWithMetadata<{ session: string }>[] = await this.#boss.fetch(queue, options)
      if (job !== undefined) return { queue, id: job.id, retryCount: job.retryCount, session: job.data.session }
    }
    return null
  }

  async touch({ queue, id, retryCount }: Claim): Promise<boolean> {
    // Its `jobs` are those that were asked for.
    const touched: { affected?: number } = await this.#boss.touch(queue, { id, retryCount })
    if (!touched.affected) return false
    // pg-boss lets nothing be at work for more than a day: what lives begins anew.
    await this.#boss
      .getDb()
      .executeSql(
        `update ${QUEUE_SCHEMA}.job set started_on = now() where name = $1 and id = $2 and state = 'active' and retry_count = $3 and started_on < now() - interval '1 hour'`,
        [queue, id, retryCount],
      )
    return true
  }

  async settle(sql: Sql, { queue, id, retryCount }: Claim): Promise<void> {
    await this.#boss.complete(queue, { id, retryCount }, null, { db: bossOver(sql) })
    await sql(`delete from ${QUEUE_SCHEMA}.job where name = $1 and id = $2 and state in ('created', 'retry')`, [
      queue,
      id,
    ])
  }

  async remove(sql: Sql, session: string): Promise<void> {
    await deleteJobs(sql, session, 'retry')
  }

  async release(sql: Sql, session: string): Promise<void> {
    await deleteJobs(sql, session, 'active')
  }

  async supervise(): Promise<void> {
    await this.#boss.supervise()
  }

  async dead(sql: Sql): Promise<{ session: string; why: string }[]> {
    const queues = await sql<{ name: string }>(`select name from ${QUEUE_SCHEMA}.queue`)
    const names = new Map(queues.map(({ name }) => [name, laneNamed(name)?.team]))
    const teams = await mine(sql, new Set([...names.values()].flatMap(team => team ?? [])))
    const dead: { session: string; why: string }[] = []
    for (const name of [...teams].map(deadOf).filter(each => names.has(each)))
      dead.push(...(await this.#deadIn(sql, name)))
    return dead
  }

  async #deadIn(sql: Sql, name: string): Promise<{ session: string; why: string }[]> {
    const db = bossOver(sql)
    const options = { includeMetadata: true, batchSize: 100, db } as const
    const jobs: JobWithMetadata<{ session: string }>[] = await this.#boss.fetch(name, options)
    const ids = jobs.map(({ id }) => id)
    if (ids.length > 0) await this.#boss.complete(name, ids, null, { db })
    return jobs.map(({ data, sourceRetryCount }) => ({
      session: data.session,
      why: `its workers were lost ${(sourceRetryCount ?? MOST_TRIES) + 1} times`,
    }))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#boss.stop({ close: false, graceful: false })
  }

  async #make(lane: string, dead: string): Promise<void> {
    if (this.#made.has(lane)) return
    const there = await this.#boss.getQueue(lane)
    if (there === null) {
      const keeps = { retentionSeconds: KEPT_SECONDS, deleteAfterSeconds: DAY_SECONDS }
      if ((await this.#boss.getQueue(dead)) === null) await this.#boss.createQueue(dead, keeps)
      await this.#boss.createQueue(lane, {
        ...keeps,
        deadLetter: dead,
        retryLimit: MOST_TRIES,
        retryDelay: 0,
        expireInSeconds: DAY_SECONDS,
        heartbeatSeconds: this.#leaseSeconds,
        warningQueueSize: 1_000_000,
      })
    }
    this.#made.add(lane)
  }
}

/** Where those of a team go that were tried too often. */
function deadOf(team: string): string {
  return `dead${ofTeam(team)}`
}

/** Takes a session out of the lane that it is in, whichever that is, if it has come so far there, or less. */
async function deleteJobs(sql: Sql, session: string, most: 'retry' | 'active'): Promise<void> {
  await sql(`delete from ${QUEUE_SCHEMA}.job where name like 'sessions-%' and data @> $1 and state <= $2`, [
    JSON.stringify({ session }),
    most,
  ])
}

/** The lanes in which something waits that such a worker may have; where it is to look first comes first. */
async function lanesFor(sql: Sql, { tags, templates }: Able): Promise<string[]> {
  const lanes = await sql<{ name: string; priority: number; at: Date }>(
    `select q.name, first.priority, first.created_on as at from ${QUEUE_SCHEMA}.queue q,
       lateral (select priority, created_on from ${QUEUE_SCHEMA}.job j
         where j.name = q.name and j.state < 'active' and not j.blocked and j.start_after <= now()
         order by priority desc, created_on limit 1) first`,
  )
  const all = lanes.flatMap(row => {
    const lane = laneNamed(row.name)
    if (!lane?.tags.every(tag => tags.includes(tag))) return []
    const isRun = lane.template === undefined || runsTemplate({ templates }, lane.template)
    return isRun ? [{ ...row, ...lane }] : []
  })
  const teams = await mine(sql, new Set(all.map(({ team }) => team)))
  return (
    all
      .filter(({ team }) => teams.has(team))
      // What few workers can do comes first: those that want nothing can be done by all.
      .toSorted((a, b) => b.tags.length - a.tags.length || b.priority - a.priority || a.at.getTime() - b.at.getTime())
      .map(({ name }) => name)
  )
}

/** Of these teams those whose sessions the login sees. */
async function mine(sql: Sql, teams: ReadonlySet<string>): Promise<ReadonlySet<string>> {
  if ([...teams].every(team => team === '')) return teams
  const rows = await sql<{ team: string }>(
    `select team from unnest($1::text[]) as team where ${SCHEMA}.is_mine(team) or not row_security_active('${SCHEMA}.session')`,
    [[...teams]],
  )
  return new Set(rows.map(({ team }) => team))
}

/** The groups of which as many are at work as may be: pg-boss itself counts those of one lane alone. */
async function fullGroups(sql: Sql, perRepository: number): Promise<string[]> {
  const rows = await sql<{ id: string }>(
    `select group_id as id from ${QUEUE_SCHEMA}.job where state = 'active' and group_id is not null group by group_id having count(*) >= $1`,
    [perRepository],
  )
  return rows.map(({ id }) => id)
}
