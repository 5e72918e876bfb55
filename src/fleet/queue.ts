import { createHash } from 'node:crypto'
import type { FetchOptions, JobWithMetadata, PgBoss } from 'pg-boss'
import { USUAL_TEMPLATE } from '../modes/registry.ts'
import { type Database, packagePgBoss, type Sql } from './database.ts'
import { JOB_VERSION } from './jobs.ts'
import { bossOver, type FleetTerms, QUEUE_SCHEMA, SCHEMA, TEAM_OF_LANE } from './schema.ts'

/** A job of pg-boss: a session and the attempt. */
export interface Claim {
  queue: string
  id: string
  /** Number of the attempt: calls with an older one change nothing. */
  retryCount: number
  session: string
}

/** The tags and templates of a worker. */
export interface Able {
  tags: readonly string[]
  /** Names of templates; empty: all. */
  templates: readonly string[]
}

export interface TakeOptions {
  perRepository: number
  /** Groups that this worker skips. */
  without: readonly string[]
}

/** Returns the group of a repository and team, which limits sessions at once; as in the SQL function `enqueue`. */
export function groupOf(team: string, repo: string): string {
  return createHash('sha256').update(`${team}\n${repo}`).digest('hex').slice(0, 24)
}

/** True if a worker runs a template; null: the usual one. */
export function runsTemplate({ templates }: Pick<Able, 'templates'>, template: string | null): boolean {
  return templates.length === 0 || templates.includes(template ?? USUAL_TEMPLATE)
}

/**
 * Parses a lane's name, such as `sessions-1/_goal/gpu/linux`, of a team `sessions-1.shop/_goal`. The number is the version
 * of its jobs. The part after `_` is their template, undefined if mixed (by an earlier version). Null: not a lane, or with
 * newer jobs, which are left to newer workers.
 */
function laneNamed(name: string): { tags: readonly string[]; template: string | undefined } | null {
  const [head = '', ...wants] = name.split('/')
  const [, version] = /^sessions-(\d+)(?:\.\w+)?$/.exec(head) ?? []
  if (!(Number(version) <= JOB_VERSION)) return null
  const [first, ...rest] = wants
  return first?.startsWith('_') ? { tags: rest, template: first.slice(1) } : { tags: wants, template: undefined }
}

/**
 * Opens the queue of an initialized fleet.
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
    // The interval between two checks adds to each lease.
    monitorIntervalSeconds: Math.max(1, Math.floor(leaseSeconds / 4)),
  })
  boss.on('error', error => onProblem(error.message))
  await boss.start()
  return new FleetQueue(boss)
}

/**
 * The queue for workers. Each call is part of the transaction of `sql`. A caller that locks a job and its session's row
 * locks the job first, like `take`.
 */
export class FleetQueue implements AsyncDisposable {
  readonly #boss: PgBoss

  constructor(boss: PgBoss) {
    this.#boss = boss
  }

  /** Adds waiting sessions, each to the lane of its requirements. `notBefore` null: each session's own. */
  async add(sql: Sql, sessions: readonly string[], notBefore: Date | null): Promise<void> {
    if (sessions.length > 0) await sql(`select ${SCHEMA}.enqueue($1, $2)`, [sessions, notBefore])
  }

  /** Returns the next session for such a worker, of a team of its login; null: none waits. */
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

  /** Renews the lease; false: another worker has the session now. */
  async touch({ queue, id, retryCount }: Claim): Promise<boolean> {
    // The result's `jobs` are only the requested ones.
    const touched: { affected?: number } = await this.#boss.touch(queue, { id, retryCount })
    if (!touched.affected) return false
    // pg-boss limits a job to a day, so restart the time of a live one.
    await this.#boss
      .getDb()
      .executeSql(
        `update ${QUEUE_SCHEMA}.job set started_on = now() where name = $1 and id = $2 and state = 'active' and retry_count = $3 and started_on < now() - interval '1 hour'`,
        [queue, id, retryCount],
      )
    return true
  }

  /** Completes a job, whatever its result, and removes its repetition after an expired lease. */
  async settle(sql: Sql, { queue, id, retryCount }: Claim): Promise<void> {
    await this.#boss.complete(queue, { id, retryCount }, null, { db: bossOver(sql) })
    await sql(`delete from ${QUEUE_SCHEMA}.job where name = $1 and id = $2 and state in ('created', 'retry')`, [
      queue,
      id,
    ])
  }

  /** Releases a session of a worker that is known to be dead. */
  async release(sql: Sql, session: string): Promise<void> {
    const forget = `delete from ${QUEUE_SCHEMA}.job where name like 'sessions-%' and data @> $1 and state <= 'active'`
    // If the lease ends meanwhile, pg-boss recreates the job: the first statement waits for that, the second sees it.
    for (let time = 0; time < 2; time++) await sql(forget, [JSON.stringify({ session })])
  }

  /** Returns sessions of silent workers to the queue after their lease, and removes old jobs. */
  async supervise(): Promise<void> {
    await this.#boss.supervise()
  }

  /** Takes sessions of the login's teams with too many attempts from the queue and returns them. */
  async dead(sql: Sql): Promise<{ session: string; why: string }[]> {
    const queues = await sql<{ name: string }>(`select name from ${QUEUE_SCHEMA}.queue where name ~ '^dead(\\.|$)'`)
    const dead: { session: string; why: string }[] = []
    for (const { name } of queues) dead.push(...(await this.#deadIn(sql, name)))
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
      why: `its workers were lost ${(sourceRetryCount ?? 0) + 1} times`,
    }))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#boss.stop({ close: false, graceful: false })
  }
}

/** Returns the lanes with work for such a worker, of its login's teams that may spend more today, in search order. */
async function lanesFor(sql: Sql, { tags, templates }: Able): Promise<string[]> {
  const lanes = await sql<{ name: string; priority: number; at: Date }>(
    `with done as materialized (select team from ${SCHEMA}.day_limits() where is_full)
     select q.name, first.priority, first.created_on as at from ${QUEUE_SCHEMA}.queue q,
       lateral (select priority, created_on from ${QUEUE_SCHEMA}.job j
         where j.name = q.name and j.state < 'active' and not j.blocked and j.start_after <= now()
         order by priority desc, created_on limit 1) first
     where not exists (select from done where team in ('', ${TEAM_OF_LANE}))`,
  )
  const all = lanes.flatMap(row => {
    const lane = laneNamed(row.name)
    if (!lane?.tags.every(tag => tags.includes(tag))) return []
    const isRun = lane.template === undefined || runsTemplate({ templates }, lane.template)
    return isRun ? [{ ...row, ...lane }] : []
  })
  return (
    all
      // Work for few workers comes first: all workers can run sessions without requirements.
      .toSorted((a, b) => b.tags.length - a.tags.length || b.priority - a.priority || a.at.getTime() - b.at.getTime())
      .map(({ name }) => name)
  )
}

/** Returns the groups at their limit: pg-boss itself only counts within a lane. */
async function fullGroups(sql: Sql, perRepository: number): Promise<string[]> {
  const rows = await sql<{ id: string }>(
    // Lane by lane: for a login that sees some teams alone, an index is used for the name and nothing else.
    `select active.id from ${QUEUE_SCHEMA}.queue q, lateral (
       select j.group_id as id from ${QUEUE_SCHEMA}.job j
       where j.name = q.name and j.state = 'active' and j.group_id is not null offset 0) active
     group by active.id having count(*) >= $1`,
    [perRepository],
  )
  return rows.map(({ id }) => id)
}
