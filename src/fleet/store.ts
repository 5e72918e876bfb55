import { systemErrorCode, UserError } from '../base/errors.ts'
import { oneLine } from '../tell/words/safe-text.ts'
import { type Database, type Sql, SUPERSEDED } from './database.ts'
import { JOB_VERSION, type Submission } from './jobs.ts'
import type { Able, Claim, FleetQueue, TakeOptions } from './queue.ts'
import { SCHEMA } from './schema.ts'

/** The state of a fleet's session. `held`: it waits for another one; `dead`: never retried automatically. */
export type FleetState = 'held' | 'waiting' | 'running' | 'ended' | 'cancelled' | 'dead'

/** A session taken by a worker. */
export interface Taken {
  id: string
  /** Incremented by each takeover: calls with an older one are rejected. */
  epoch: number
  claim: Claim
  team: string
  repo: string
  ref: string
  /** Commit at its start; null: not resolved yet. */
  base: string | null
  /** Raw job of the database; `readJob` parses it. */
  job: unknown
  priority: number
  tags: string[]
  /** Template; null: the usual one. */
  template: string | null
  deadline: Date | null
  /** Number of its events in the database. */
  events: number
}

/** The worker that takes sessions. */
export interface Taker extends Able {
  name: string
  /** Id of this very process. */
  instance: string
}

/** SQL of a session's column `template`. */
export const TEMPLATE = `job ->> 'template' as template`

/** Submits sessions, all or none, and returns their ids in order. A `UserError` for one that can never begin. */
export async function submit({ sql }: Database, submissions: readonly Submission[]): Promise<string[]> {
  const sessions = submissions.map(({ notBefore, after, ...rest }) => ({
    ...rest,
    not_before: notBefore,
    ...(typeof after === 'number' ? { after_at: after } : { after }),
  }))
  try {
    const rows = await sql<{ id: string }>(`select id from ${SCHEMA}.submit($1, $2) as id`, [
      jsonb(sessions),
      JOB_VERSION,
    ])
    return rows.map(({ id }) => id)
  } catch (error) {
    throw asRefusal(error)
  }
}

/** Converts a refusal of the function `submit` to an error for a person. */
function asRefusal(error: unknown): unknown {
  const { detail = '' } = error as { detail?: string }
  switch (systemErrorCode(error)) {
    case 'CM003':
      return new UserError('CM1105', 'You are not in that team, so you cannot submit for it.', {
        hint: 'The owner of the fleet types: grant codemachine_team_<team> to <your login>;',
        exitCode: 4,
        cause: error,
      })
    case 'CM004':
      return new UserError('CM1108', `There is no session ${oneLine(detail, 60)} in the fleet to wait for.`, {
        hint: 'To list them: codemachine fleet list',
      })
    case 'CM005':
      return new UserError(
        'CM1109',
        `${detail} ended without being done, so a session that waits for its success would never start.`,
        {
          hint: `Retry it first: codemachine fleet retry ${detail}`,
        },
      )
    default:
      return error
  }
}

/** Takes the next session for a worker, and increments its epoch; null: none waits. */
export async function take(
  database: Database,
  queue: FleetQueue,
  taker: Taker,
  options: TakeOptions,
): Promise<Taken | null> {
  return await database.transaction(async sql => {
    for (;;) {
      const claim = await queue.take(sql, taker, options)
      if (claim === null) return null
      const taken = await takeOver(sql, claim, taker)
      if (taken !== null) return taken
      // It was cancelled meanwhile, or its deadline is over.
      await queue.settle(sql, claim)
    }
  })
}

interface SessionRow extends Omit<Taken, 'claim' | 'events'> {
  events: string
  is_late: boolean
}

async function takeOver(sql: Sql, claim: Claim, { name, instance }: Taker): Promise<Taken | null> {
  const [row] = await sql<SessionRow>(
    `update ${SCHEMA}.session set
       state = case when events = 0 and deadline < now() then 'dead' else 'running' end,
       reason = case when events = 0 and deadline < now() then 'it had not begun by its deadline' end,
       ended_at = case when events = 0 and deadline < now() then now() end,
       epoch = epoch + 1, worker = $2, instance = $3, taken_at = clock_timestamp(), seen_at = clock_timestamp()
     where id = $1 and state in ('waiting', 'running') and not cancel_asked
     returning id, epoch, team, repo, ref, base, job, priority, tags, ${TEMPLATE}, deadline, events, state = 'dead' as is_late`,
    [claim.session, name, instance],
  )
  if (row === undefined)
    await sql(
      `update ${SCHEMA}.session set state = 'cancelled', ended_at = now() where id = $1 and cancel_asked and state in ('waiting', 'running')`,
      [claim.session],
    )
  if (row === undefined || row.is_late) return null
  const { is_late: _, events, ...rest } = row
  return { ...rest, claim, events: Number(events) }
}

/** Returns the repositories of waiting and running sessions, each once: fast, by steps through the index. */
export async function reposAtWork({ sql }: Database): Promise<{ team: string; repo: string }[]> {
  const next = `select team, repo from ${SCHEMA}.session where state in ('waiting', 'running')`
  return await sql(
    `with recursive found as (
       (${next} order by team, repo limit 1)
       union all
       select after.team, after.repo from found f,
         lateral (${next} and (team, repo) > (f.team, f.repo) order by team, repo limit 1) after
     ) select team, repo from found`,
  )
}

/** Returns the number of waiting sessions. */
export async function waitingCount({ sql }: Database): Promise<number> {
  const [row] = await sql<{ n: number }>(`select count(*)::int as n from ${SCHEMA}.session where state = 'waiting'`)
  return row?.n ?? 0
}

/** Renews the lease of a session, and checks that its epoch is current. */
export async function beat(database: Database, queue: FleetQueue, { id, epoch, claim }: Taken): Promise<Beat> {
  const isHeld = await queue.touch(claim)
  const [row] = await database.sql<{ cancel_asked: boolean; is_late: boolean | null }>(
    `update ${SCHEMA}.session set seen_at = clock_timestamp() where id = $1 and epoch = $2 and state = 'running'
     returning cancel_asked, deadline < now() as is_late`,
    [id, epoch],
  )
  if (row === undefined || !isHeld) return { isOwn: false, isCancelled: false, isLate: false }
  return { isOwn: true, isCancelled: row.cancel_asked, isLate: row.is_late === true }
}

interface Beat {
  isOwn: boolean
  /** True if a person has cancelled it. */
  isCancelled: boolean
  /** True if its deadline is over. */
  isLate: boolean
}

/**
 * Appends events, and returns their new number. Skips events that are already there. Throws `Superseded` if another worker
 * owns the session now.
 * @param first number of the first of them, from 1 on
 */
export async function append(
  { sql }: Database,
  { id, epoch }: Pick<Taken, 'id' | 'epoch'>,
  first: number,
  lines: readonly string[],
  progress: object | null,
): Promise<number> {
  const values = [id, epoch, first, lines, jsonb(progress)]
  try {
    const [row] = await sql<{ count: string }>(`select ${SCHEMA}.append($1, $2, $3, $4, $5) as count`, values)
    return Number(row?.count)
  } catch (error) {
    throw systemErrorCode(error) === SUPERSEDED ? new Superseded(id) : error
  }
}

/** Stores the first commit of a session, so that every worker begins with the same. */
export async function setBase({ sql }: Database, { id, epoch }: Taken, base: string): Promise<void> {
  await owned(
    sql,
    `update ${SCHEMA}.session set base = $3 where id = $1 and epoch = $2 and state = 'running' returning id`,
    [id, epoch, base],
  )
}

/** Number of faults after which no worker retries a session automatically. */
const MOST_FAULTS = 20
/** Delay before a retry, seconds: the first one, doubled each time, and the longest. */
const FIRST_DELAY = 2
const LONGEST_DELAY = 300

/** Returns an unfinished session to the queue. `isFault`: it waits first, and is dead after too many faults. */
export async function giveBack(
  database: Database,
  queue: FleetQueue,
  taken: Taken,
  { reason, isFault = false }: { reason: string; isFault?: boolean },
): Promise<void> {
  const { id, epoch, claim } = taken
  await once(database, taken, async sql => {
    await queue.settle(sql, claim)
    const [row] = await owned<{ id: string; state: FleetState; again: Date | null }>(
      sql,
      `update ${SCHEMA}.session set worker = null, instance = null, reason = $3, faults = faults + $4,
         state = case when faults + $4 > ${MOST_FAULTS} then 'dead' else 'waiting' end,
         ended_at = case when faults + $4 > ${MOST_FAULTS} then now() end
       where id = $1 and epoch = $2 and state = 'running'
       returning id, state, case when $4 > 0 then now() + make_interval(secs => least(${LONGEST_DELAY}, ${FIRST_DELAY} * 2 ^ (faults - 1))) end as again`,
      [id, epoch, whole(reason), Number(isFault)],
    )
    if (row?.state === 'waiting') await queue.add(sql, [id], row.again)
  })
}

/** Returns the sessions of a known dead worker to the queue before their lease ends. */
export async function takeBack(
  database: Database,
  queue: FleetQueue,
  { name, instance }: Pick<Taker, 'name' | 'instance'>,
): Promise<void> {
  const had = await database.sql<{ id: string }>(
    `select id from ${SCHEMA}.session where worker = $1 and instance <> $2 and state = 'running'`,
    [name, instance],
  )
  for (const { id } of had)
    await database
      .transaction(async sql => {
        await queue.release(sql, id)
        await owned(
          sql,
          `update ${SCHEMA}.session set state = 'waiting', worker = null, instance = null, reason = $4
           where id = $1 and worker = $2 and instance <> $3 and state = 'running' returning id`,
          [id, name, instance, `${name}: the worker was killed`],
        )
        await queue.add(sql, [id], null)
      })
      .catch(error => {
        // Its lease was over, and another worker was faster.
        if (!(error instanceof Superseded)) throw error
      })
}

/** The end of a session. */
export interface FleetEnd {
  state: 'ended' | 'cancelled' | 'dead'
  reason: string | null
  /** Outcome as in the event `session-ended`. */
  outcome: object | null
  branch: string | null
  /** Report as Markdown, and certificate. */
  report: string | null
  certificate: object | null
}

/** Ends a session, and queues the sessions that waited for its success. */
export async function finish(database: Database, queue: FleetQueue, taken: Taken, end: FleetEnd): Promise<void> {
  await once(database, taken, async sql => {
    await queue.settle(sql, taken.claim)
    await owned(
      sql,
      `update ${SCHEMA}.session set state = $3, reason = $4, outcome = $5, branch = $6, report = $7, certificate = $8, ended_at = now()
       where id = $1 and epoch = $2 and state = 'running' returning id`,
      [
        taken.id,
        taken.epoch,
        end.state,
        whole(end.reason),
        jsonb(end.outcome),
        end.branch,
        whole(end.report),
        jsonb(end.certificate),
      ],
    )
    await endAsks(sql, taken.id)
    await release(sql, queue, taken.id)
  })
}

/** Answers open requests to an ended session: nobody else will. */
async function endAsks(sql: Sql, session: string): Promise<void> {
  const reply = jsonb({ code: 'ending', message: 'It has ended.' })
  await sql(
    `update ${SCHEMA}.ask set reply = $2, replied_at = clock_timestamp() where session = $1 and reply is null`,
    [session, reply],
  )
}

async function release(sql: Sql, queue: FleetQueue, before: string): Promise<void> {
  const rows = await sql<{ id: string }>(
    `update ${SCHEMA}.session s set state = 'waiting' where after = $1 and state = 'held'
       and exists (select from ${SCHEMA}.session b where b.id = $1 and b.state = 'ended' and b.outcome ->> 'kind' = 'done')
     returning id`,
    [before],
  )
  await queue.add(
    sql,
    rows.map(({ id }) => id),
    null,
  )
}

/** Runs the end of a session's work in a transaction. A repetition after a lost answer changes nothing. */
async function once(
  database: Database,
  { id, epoch }: Pick<Taken, 'id' | 'epoch'>,
  work: (sql: Sql) => Promise<void>,
): Promise<void> {
  try {
    await database.transaction(work)
  } catch (error) {
    if (!(error instanceof Superseded)) throw error
    const text = `select from ${SCHEMA}.session where id = $1 and epoch = $2 and state <> 'running'`
    if ((await database.sql(text, [id, epoch])).length === 0) throw error
  }
}

/** Runs an update of the worker's own session that returns a row; throws `Superseded` if another worker owns it now. */
async function owned<Row extends { id: string }>(sql: Sql, text: string, values: readonly unknown[]): Promise<Row[]> {
  const rows = await sql<Row>(text, values)
  if (rows.length === 0) throw new Superseded(String(values[0]))
  return rows
}

/** Thrown if another worker has taken over the session. */
export class Superseded extends Error {
  constructor(id: string) {
    super(`${id} has been taken over by another worker.`)
  }
}

/** Returns the first `most` events of a session, a line each. */
export async function linesOf({ sql }: Database, id: string, most: number): Promise<string[]> {
  const lines: string[] = []
  while (lines.length < most) {
    const rows = await sql<{ line: string }>(
      `select line from ${SCHEMA}.event where session = $1 and number > $2 and number <= $3 order by number limit 2000`,
      [id, lines.length, most],
    )
    if (rows.length === 0) throw new Error(`${id} has ${lines.length} events in the database, and not ${most}`)
    lines.push(...rows.map(({ line }) => line))
  }
  return lines
}

/** Returns a text for the type `text`, which has no NUL. */
function whole(text: string | null): string | null {
  return text?.toWellFormed().replaceAll('\0', '\ufffd') ?? null
}

/** Returns JSON for the type `jsonb`, which has no NUL and no lone surrogate. */
export function jsonb(value: unknown): string | null {
  if (value === null) return null
  const clean = (_: string, each: unknown) =>
    typeof each === 'string' ? each.toWellFormed().replaceAll('\0', '\ufffd') : each
  return JSON.stringify(value, clean)
}
