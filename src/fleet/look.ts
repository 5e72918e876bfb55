import * as v from 'valibot'
import { UserError } from '../base/errors.ts'
import type { SessionOutcome } from '../core/events/outcome.ts'
import { checkOf } from '../core/events/schema.ts'
import { sessionOutcome } from '../core/events/shapes.ts'
import { matching, some } from '../project/find.ts'
import { isSessionId } from '../session/records/records.ts'
import { describeOutcome } from '../tell/words/outcome.ts'
import { oneLine } from '../tell/words/safe-text.ts'
import type { Sql } from './database.ts'
import type { ForecastFacts, ForecastSession } from './forecast.ts'
import { dayLimits } from './limits.ts'
import { SCHEMA } from './schema.ts'
import { type FleetState, TEMPLATE } from './store.ts'

/** All states of a fleet's session, in display order. */
export const FLEET_STATES: readonly FleetState[] = ['running', 'waiting', 'held', 'ended', 'dead', 'cancelled']

/** A session of a fleet, for display. */
export interface FleetSession {
  id: string
  team: string
  repo: string
  ref: string
  /** Commit at its start; null: not resolved yet. */
  base: string | null
  state: FleetState
  /** Goal; in lists its first 2,000 characters. */
  goal: string
  /** Template; null: one agent, round after round. */
  template: string | null
  priority: number
  tags: string[]
  createdAt: Date
  createdBy: string
  notBefore: Date | null
  deadline: Date | null
  /** Id of the session that must be done first; null: none. */
  after: string | null
  /** Reason for its renewed wait or death; null: none. */
  reason: string | null
  epoch: number
  /** Its current or last worker; null: none yet. */
  worker: string | null
  takenAt: Date | null
  seenAt: Date | null
  endedAt: Date | null
  cancelAsked: boolean
  /** Number of its events in the database. */
  events: number
  /** Number of rounds including the running one, and its limit; null: unknown. */
  rounds: number | null
  mostRounds: number | null
  /** Raw outcome by its worker, which may be newer: `knownOutcome` reads it. */
  outcome: unknown
  branch: string | null
}

const isOutcome = checkOf(sessionOutcome)

/** Returns the outcome of a session without a hint for a person; null: not ended, or unknown to this version. */
export function knownOutcome({ outcome }: Pick<FleetSession, 'outcome'>): SessionOutcome | null {
  if (!isOutcome(outcome)) return null
  const known = outcome as SessionOutcome
  return known.kind === 'needs-person' ? { ...known, hint: null } : known
}

/** Returns the outcome in a word or two: `done, gates pass`; `unknown: postponed`. Null: not ended. */
export function wordsForFleetOutcome(session: Pick<FleetSession, 'outcome'>): string | null {
  if (session.outcome == null) return null
  const known = knownOutcome(session)
  if (known !== null) return describeOutcome(known).short
  const { kind = '' } = { ...(session.outcome as { kind?: unknown }) }
  return `unknown: ${oneLine(String(kind), 40)}`
}

const COLUMNS = (goal: string) => `id, team, repo, ref, base, state, ${goal} as goal, ${TEMPLATE},
  priority, tags, created_at as "createdAt", created_by as "createdBy", not_before as "notBefore", deadline, after, reason, epoch, worker,
  taken_at as "takenAt", seen_at as "seenAt", ended_at as "endedAt", cancel_asked as "cancelAsked", events, progress, outcome, branch`
const SHORT_GOAL = 'left(goal, 2000)'

/** A row of the database; another version or a person may have written any field. */
interface SessionRow extends Omit<FleetSession, 'events' | 'rounds' | 'mostRounds'> {
  events: string
  progress: unknown
}

function sessionOfRow({ events, progress, ...row }: SessionRow): FleetSession {
  const { round, rounds } = { round: null, rounds: null, ...(progress as object | null) }
  return {
    ...row,
    // Times that JavaScript lacks, such as `infinity`, arrive as numbers.
    createdAt: momentOf(row.createdAt) ?? new Date(0),
    notBefore: momentOf(row.notBefore),
    deadline: momentOf(row.deadline),
    takenAt: momentOf(row.takenAt),
    seenAt: momentOf(row.seenAt),
    endedAt: momentOf(row.endedAt),
    events: Number(events),
    rounds: countOf(round),
    mostRounds: countOf(rounds),
  }
}

function momentOf(value: unknown): Date | null {
  return value instanceof Date && !Number.isNaN(value.getTime()) ? value : null
}

function countOf(value: unknown): number | null {
  return Number.isSafeInteger(value) ? Number(value) : null
}
/** Of two submitted at once, the one with the higher number is newer. */
const NEWEST_FIRST = `created_at desc, length(id) desc, id desc`

/** Filter of listed sessions. */
interface Wanted {
  /** States; empty: all. */
  states: readonly FleetState[]
  /** Part of the repository's address; null: all. */
  repo: string | null
  /** Number of newest sessions; null: all. */
  most: number | null
}

/** Returns sessions of the fleet, the newest first. */
export async function listSessions(sql: Sql, { states, repo, most }: Wanted): Promise<FleetSession[]> {
  const rows = await sql<SessionRow>(
    `select ${COLUMNS(SHORT_GOAL)} from ${SCHEMA}.session
     where (cardinality($1::text[]) = 0 or state = any($1)) and ($2::text is null or position($2 in repo) > 0)
     order by ${NEWEST_FIRST} limit $3`,
    [states, repo, most],
  )
  return rows.map(sessionOfRow)
}

/** Returns sessions with a valid id that run or ended within `days`, running ones first, then the newest. */
export async function sessionsToFollow(
  sql: Sql,
  { days, most }: { days: number; most: number },
): Promise<FleetSession[]> {
  const rows = await sql<SessionRow>(
    `select * from (
       select ${COLUMNS(SHORT_GOAL)} from ${SCHEMA}.session where state in ('running', 'waiting') and events > 0
       union all
       select ${COLUMNS(SHORT_GOAL)} from ${SCHEMA}.session where ended_at > now() - make_interval(days => $1) and events > 0
     ) as each order by state = 'running' desc, "createdAt" desc, length(id) desc, id desc limit $2`,
    [days, most],
  )
  return rows.map(sessionOfRow).filter(({ id }) => isSessionId(id))
}

/** Returns the session for an id, a counter or a part of an id. Throws a `UserError` for none or several. */
export async function findFleetSession(sql: Sql, wanted: string): Promise<FleetSession> {
  const shown = oneLine(wanted, 60)
  if (!/^[\w]{1,40}$/.test(wanted))
    throw new UserError('CM0103', `"${shown}" is not the id of a session; an id looks like 20261120_1.`)
  const near = await sql<{ id: string }>(
    `select id from ${SCHEMA}.session
     where id = $1 or starts_with(id, $1) or right(id, length($1) + 1) = '_' || $1 or ($1 like '%\\_%' and right(id, length($1)) = $1)
     order by id = $1 desc, ${NEWEST_FIRST} limit 200`,
    [wanted],
  )
  const matches = matching(near, wanted)
  const [match] = matches
  if (match !== undefined && matches.length === 1) return await sessionOf(sql, match.id)
  if (match === undefined)
    throw new UserError('CM1108', `There is no session "${shown}" in the fleet.`, {
      hint: 'To list them: codemachine fleet list',
    })
  throw new UserError('CM0604', `"${shown}" may mean ${matches.length} sessions; use more of the id.`, {
    hint: some(matches.map(({ id }) => id).toReversed()),
  })
}

/** Returns a session by its whole id, with its whole goal. Throws a `UserError` if it no longer exists. */
export async function sessionOf(sql: Sql, id: string): Promise<FleetSession> {
  const [row] = await sql<SessionRow>(`select ${COLUMNS('session.goal')} from ${SCHEMA}.session where id = $1`, [id])
  if (row === undefined) throw new UserError('CM1108', `There is no session ${oneLine(id, 60)} in the fleet any more.`)
  return sessionOfRow(row)
}

/** Returns the report (Markdown) and the certificate of an ended session. */
export async function leftBySession(
  sql: Sql,
  id: string,
): Promise<{ report: string | null; certificate: object | null }> {
  const [row] = await sql<{ report: string | null; certificate: object | null }>(
    `select report, certificate from ${SCHEMA}.session where id = $1`,
    [id],
  )
  return row ?? { report: null, certificate: null }
}

/** Returns the lines of a session's journal after number `have`, at most 1,000. */
export async function linesAfter(sql: Sql, id: string, have: number): Promise<string[]> {
  const rows = await sql<{ line: string }>(
    `select line from ${SCHEMA}.event where session = $1 and number > $2 order by number limit 1000`,
    [id, have],
  )
  return rows.map(({ line }) => line)
}

/** Returns the number of sessions by state, and of those that ended as done. */
export async function countStates(sql: Sql): Promise<Record<FleetState | 'done', number>> {
  const rows = await sql<{ state: FleetState; count: number; done: number }>(
    `select state, count(*)::int as count, (count(*) filter (where outcome ->> 'kind' = 'done'))::int as done
     from ${SCHEMA}.session group by state`,
  )
  const count = (state: FleetState) => rows.find(row => row.state === state)?.count ?? 0
  const counts = Object.fromEntries(FLEET_STATES.map(state => [state, count(state)])) as Record<FleetState, number>
  return { ...counts, done: rows.find(({ state }) => state === 'ended')?.done ?? 0 }
}

/** A window of a login's usage limits. `resetsAt`: ISO 8601; null: not known. */
const windowSchema = v.object({
  name: v.pipe(v.string(), v.maxLength(100)),
  usedPercent: v.number(),
  resetsAt: v.optional(v.nullable(v.pipe(v.string(), v.maxLength(40))), null),
})
const loginSchema = v.object({
  windows: v.optional(v.pipe(v.array(windowSchema), v.maxLength(20)), []),
  pausedUntil: v.optional(v.nullable(v.pipe(v.string(), v.isoTimestamp())), null),
})

/** A worker of the fleet, for display. */
export interface FleetWorker {
  name: string
  host: string
  version: string
  slots: number
  tags: string[]
  /** Patterns of accepted repositories; empty: all that are not on a disk. */
  repos: string[]
  /** Templates that it runs; empty: all. */
  templates: string[]
  /** True if it accepts nothing more. */
  drains: boolean
  /** A sentence on why it accepts no session; null: it does. */
  problem: string | null
  /** Windows of its login, and the end of their block; null: unknown. */
  login: v.InferOutput<typeof loginSchema> | null
  /** Lead of its clock over the database's, ms. */
  clockOffMs: number
  startedAt: Date
  seenAt: Date
  /** `lost`: silent for longer than the lease. `ended`: by itself. */
  standing: 'runs' | 'lost' | 'ended'
  /** Its current sessions. */
  sessions: string[]
}

/** Returns the running workers, and those that ended or were lost within `days`, by name. */
export async function listWorkers(sql: Sql, leaseSeconds: number, days = 1): Promise<FleetWorker[]> {
  const rows = await sql<Omit<FleetWorker, 'login' | 'clockOffMs'> & { login: unknown; clockOffMs: string }>(
    `select name, host, version, slots, tags, repos, templates, drains, problem, login, clock_off_ms as "clockOffMs", started_at as "startedAt",
       seen_at as "seenAt", case when ended_at is not null then 'ended'
         when seen_at < clock_timestamp() - make_interval(secs => $1) then 'lost' else 'runs' end as standing,
       array(select s.id from ${SCHEMA}.session s where s.state = 'running' and s.worker = w.name order by s.taken_at) as sessions
     from ${SCHEMA}.worker w where coalesce(ended_at, seen_at) > clock_timestamp() - make_interval(days => $2) order by name limit 10000`,
    [leaseSeconds, days],
  )
  return rows.map(({ login, clockOffMs, ...rest }) => {
    const read = v.safeParse(loginSchema, login)
    return { ...rest, clockOffMs: Number(clockOffMs), login: read.success ? read.output : null }
  })
}

const MOST_FORECAST = 5_000
/** Returns the SQL of a time as Unix time in ms. */
const ms = (moment: string) => `(extract(epoch from ${moment}) * 1000)::float8`
/** SQL of the time of a session's first event. */
const BEGUN = `(select e.at from ${SCHEMA}.event e where e.session = s.id and e.number = 1)`

/** Reads the input of a forecast. */
export async function forecastFacts(
  sql: Sql,
  { leaseSeconds, perRepository }: { leaseSeconds: number; perRepository: number },
): Promise<ForecastFacts> {
  const [{ now, open } = { now: 0, open: 0 }] = await sql<{ now: number; open: number }>(
    `select ${ms('clock_timestamp()')} as now, (select count(*)::int from ${SCHEMA}.session where state in ('running', 'waiting', 'held')) as open`,
  )
  const used = (what: string) =>
    `case when jsonb_typeof(progress -> '${what}') = 'number' then (progress -> '${what}')::float8 else 0 end`
  const history = await sql<ForecastFacts['history'][number]>(
    `select repo, ${ms(`s.ended_at`)} - ${ms(BEGUN)} as "durationMs", ${used('tokens')} as tokens, ${used('cost')} as cost from ${SCHEMA}.session s
     where state = 'ended' and ended_at > now() - interval '14 days' and events > 0 order by ended_at desc limit 500`,
  )
  const sessions = await sql<ForecastSession>(
    `select id, team || chr(10) || repo as "group", team, repo, state, tags, ${TEMPLATE}, after, worker, ${ms('not_before')} as "notBefore",
       ${ms('deadline')} as deadline, priority, events > 0 as "hasBegun",
       coalesce((select b.state in ('cancelled', 'dead') or (b.state = 'ended' and b.outcome ->> 'kind' <> 'done')
         from ${SCHEMA}.session b where b.id = s.after), s.after is not null) as "isHeldForGood",
       coalesce(${ms(`case when state = 'running' then clock_timestamp() else seen_at end`)} - ${ms(BEGUN)}, 0) as "workedMs"
     from ${SCHEMA}.session s where state in ('running', 'waiting', 'held')
     order by state = 'running' desc, priority desc, created_at, length(id), id limit $1`,
    [MOST_FORECAST],
  )
  const workers = (await listWorkers(sql, leaseSeconds)).filter(({ standing }) => standing === 'runs')
  return {
    now,
    perRepository,
    history,
    sessions,
    beyond: Math.max(0, open - sessions.length),
    limits: await dayLimits(sql),
    workers: workers.map(({ name, slots, tags, repos, templates, drains, problem, login }) => ({
      name,
      slots,
      tags,
      repos,
      templates,
      takes: !drains && problem === null,
      pausedUntil: login?.pausedUntil == null ? null : Date.parse(login.pausedUntil),
    })),
  }
}
