import { systemErrorCode, UserError } from '../base/errors.ts'
import { oneLine } from '../tell/words/safe-text.ts'
import { type Database, type Sql, SUPERSEDED } from './database.ts'
import { JOB_VERSION, type Submission } from './jobs.ts'
import type { Able, Claim, FleetQueue, TakeOptions } from './queue.ts'
import { SCHEMA } from './schema.ts'

/** Where a session of the fleet stands. `held`: it waits for another one; `dead`: it is not tried again by itself. */
export type FleetState = 'held' | 'waiting' | 'running' | 'ended' | 'cancelled' | 'dead'

/** A session that a worker has taken, and what is known of it. */
export interface Taken {
  id: string
  /** Raised by each take-over: what is said with an older one is refused. */
  epoch: number
  claim: Claim
  team: string
  repo: string
  ref: string
  /** The commit that it begins with; null: not looked up yet. */
  base: string | null
  /** As the database has it; `readJob` reads it. */
  job: unknown
  priority: number
  tags: string[]
  /** Null: the usual one. */
  template: string | null
  deadline: Date | null
  /** How many events of it are in the database. */
  events: number
}

/** Who takes sessions. */
export interface Taker extends Able {
  name: string
  /** Of this very process. */
  instance: string
}

/** The column `template` of a session. */
export const TEMPLATE = `job ->> 'template' as template`

/** Submits sessions, all or none, and answers their ids in the same order. A `UserError` for one that could never begin. */
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

/** What the function `submit` refuses, said to a person. */
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
        `${detail} ended without being done, so a session that waits for it would never start.`,
        {
          hint: `Retry it first: codemachine fleet retry ${detail}`,
        },
      )
    default:
      return error
  }
}

/** Takes the next session for a worker, and raises its epoch; null: none waits. */
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
      // It was cancelled meanwhile, or its time is over.
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

/** The repositories of sessions that wait or run, each once: by steps through the index, however many sessions there are. */
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

/** Whether a session is still that of this epoch; says that whoever has it lives. */
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
  /** Whether a person has cancelled it. */
  isCancelled: boolean
  /** Whether its deadline is over. */
  isLate: boolean
}

/**
 * Appends events, and answers how many there are then. Told again what is there already, it passes that over. Throws `Superseded` if the
 * session is somebody else's by now.
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

/** Writes down with which commit a session begins, so that every worker begins with the same. */
export async function setBase({ sql }: Database, { id, epoch }: Taken, base: string): Promise<void> {
  await owned(
    sql,
    `update ${SCHEMA}.session set base = $3 where id = $1 and epoch = $2 and state = 'running' returning id`,
    [id, epoch, base],
  )
}

/** So often something may hinder a session before no worker tries it any more by itself. */
const MOST_FAULTS = 20
/** When it is tried again, seconds: the first time, twice as long each time after that, and at the most. */
const FIRST_DELAY = 2
const LONGEST_DELAY = 300

/** Gives a session back unended: another worker goes on with it. `isFault`: something hindered it; it waits a while then, and after too many of these it is dead. */
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

/** Has wait what an earlier worker had that is known to be gone, in place of its lease being over first. */
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
        // Its lease was over, and another worker was sooner.
        if (!(error instanceof Superseded)) throw error
      })
}

/** How a session has ended. */
export interface FleetEnd {
  state: 'ended' | 'cancelled' | 'dead'
  reason: string | null
  /** As in the event `session-ended`. */
  outcome: object | null
  branch: string | null
  /** The report as Markdown, and the certificate. */
  report: string | null
  certificate: object | null
}

/** Ends a session, and lets those wait for a worker that waited for it to be done. */
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

/** Answers what was asked of a session that is over: nobody is there any more whom it could be told. */
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

/** Carries out what ends the work at a session, in a transaction. Told again because the answer was lost, it does nothing more. */
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

/** Carries out an update of one's own session that returns a row; throws `Superseded` if it is somebody else's by now. */
async function owned<Row extends { id: string }>(sql: Sql, text: string, values: readonly unknown[]): Promise<Row[]> {
  const rows = await sql<Row>(text, values)
  if (rows.length === 0) throw new Superseded(String(values[0]))
  return rows
}

/** Thrown where another worker has taken a session over. */
export class Superseded extends Error {
  constructor(id: string) {
    super(`${id} has been taken over by another worker.`)
  }
}

/** The first so many events of a session, a line each. */
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

/** As `text` takes it, which has no NUL. */
function whole(text: string | null): string | null {
  return text?.toWellFormed().replaceAll('\0', '\ufffd') ?? null
}

/** As `jsonb` takes it, which has no NUL and no half of a character. */
export function jsonb(value: unknown): string | null {
  if (value === null) return null
  const clean = (_: string, each: unknown) =>
    typeof each === 'string' ? each.toWellFormed().replaceAll('\0', '\ufffd') : each
  return JSON.stringify(value, clean)
}
