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
import { SCHEMA } from './schema.ts'
import { type FleetState, TEMPLATE } from './store.ts'

/** All states of a session of a fleet, in the order in which they are shown. */
export const FLEET_STATES: readonly FleetState[] = ['running', 'waiting', 'held', 'ended', 'dead', 'cancelled']

/** A session of a fleet as it is shown. */
export interface FleetSession {
  id: string
  team: string
  repo: string
  ref: string
  /** The commit that it began with; null: not looked up yet. */
  base: string | null
  state: FleetState
  /** Where it is listed the first 2,000 characters. */
  goal: string
  /** Null: one agent works on it, round after round. */
  template: string | null
  priority: number
  tags: string[]
  createdAt: Date
  createdBy: string
  notBefore: Date | null
  deadline: Date | null
  /** The session that has to be done before; null: none. */
  after: string | null
  /** Why it waits again, or is dead; null: nothing is to be said. */
  reason: string | null
  epoch: number
  /** Who has it, or had it last; null: nobody yet. */
  worker: string | null
  takenAt: Date | null
  seenAt: Date | null
  endedAt: Date | null
  cancelAsked: boolean
  /** How many events of it are in the database. */
  events: number
  /** Rounds so far, with the one that runs, and the most that it may take; null: not known. */
  rounds: number | null
  mostRounds: number | null
  /** As its worker has written it, which may be a newer one: `knownOutcome` reads it. */
  outcome: unknown
  branch: string | null
}

const isOutcome = checkOf(sessionOutcome)

/** How a session has ended; null: it has not, or in a way that this codemachine does not know. What a person can do about it is left out. */
export function knownOutcome({ outcome }: Pick<FleetSession, 'outcome'>): SessionOutcome | null {
  if (!isOutcome(outcome)) return null
  const known = outcome as SessionOutcome
  return known.kind === 'needs-person' ? { ...known, hint: null } : known
}

/** How a session has ended, in a word or two: `done, gates pass`; `unknown: postponed`. Null: it has not. */
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

/** A row as the database has it, where any of these was written by another version, or by hand. */
interface SessionRow extends Omit<FleetSession, 'events' | 'rounds' | 'mostRounds'> {
  events: string
  progress: unknown
}

function sessionOfRow({ events, progress, ...row }: SessionRow): FleetSession {
  const { round, rounds } = { round: null, rounds: null, ...(progress as object | null) }
  return {
    ...row,
    // What is no moment of ours, such as `infinity`, comes as a number.
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
/** Of two that were submitted at once the one with the higher number is the newer one. */
const NEWEST_FIRST = `created_at desc, length(id) desc, id desc`

/** Which sessions are listed. */
interface Wanted {
  /** None: of every state. */
  states: readonly FleetState[]
  /** A part of the address of the repository; null: of each. */
  repo: string | null
  /** How many, the newest; null: all. */
  most: number | null
}

/** Sessions of the fleet, the newest first. */
export async function listSessions(sql: Sql, { states, repo, most }: Wanted): Promise<FleetSession[]> {
  const rows = await sql<SessionRow>(
    `select ${COLUMNS(SHORT_GOAL)} from ${SCHEMA}.session
     where (cardinality($1::text[]) = 0 or state = any($1)) and ($2::text is null or position($2 in repo) > 0)
     order by ${NEWEST_FIRST} limit $3`,
    [states, repo, most],
  )
  return rows.map(sessionOfRow)
}

/** Those that can be followed: they have an id of ours, have begun, and have not ended for longer than `days`. Those that run come first, then the newest. */
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

/** The session that a person means, by its id, its counter or a part of the id; a `UserError` if it is none, or not one. */
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

/** A session by its whole id, with its whole goal; a `UserError` if there is none any more. */
export async function sessionOf(sql: Sql, id: string): Promise<FleetSession> {
  const [row] = await sql<SessionRow>(`select ${COLUMNS('session.goal')} from ${SCHEMA}.session where id = $1`, [id])
  if (row === undefined) throw new UserError('CM1108', `There is no session ${oneLine(id, 60)} in the fleet any more.`)
  return sessionOfRow(row)
}

/** What a session has left at its end: its report as Markdown, and its certificate. */
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

/** Lines of a session's journal, those numbered above `have`, at most 1,000. */
export async function linesAfter(sql: Sql, id: string, have: number): Promise<string[]> {
  const rows = await sql<{ line: string }>(
    `select line from ${SCHEMA}.event where session = $1 and number > $2 order by number limit 1000`,
    [id, have],
  )
  return rows.map(({ line }) => line)
}

/** How many sessions are in each state, and how many of those that ended are done. */
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

/** A worker of the fleet as it is shown. */
export interface FleetWorker {
  name: string
  host: string
  version: string
  slots: number
  tags: string[]
  /** Patterns of the repositories that it takes; none: all that lie on no disk. */
  repos: string[]
  /** The templates that it runs; none: all. */
  templates: string[]
  /** Whether it takes nothing more. */
  drains: boolean
  /** What keeps it from taking any, a sentence; null: nothing. */
  problem: string | null
  /** The windows of its login, and until when it takes nothing for them; null: it has not said. */
  login: v.InferOutput<typeof loginSchema> | null
  /** How far its clock is before that of the database, ms. */
  clockOffMs: number
  startedAt: Date
  seenAt: Date
  /** `lost`: it has said nothing for the lease. `ended`: by itself. */
  standing: 'runs' | 'lost' | 'ended'
  /** The sessions that it has. */
  sessions: string[]
}

/** The workers that run, and those that ended or were lost within so many days, by name. */
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
/** Unix time in ms of a moment, by SQL. */
const ms = (moment: string) => `(extract(epoch from ${moment}) * 1000)::float8`
/** When the first event of a session was written down. */
const BEGUN = `(select e.at from ${SCHEMA}.event e where e.session = s.id and e.number = 1)`

/** Reads what a forecast is made of. */
export async function forecastFacts(
  sql: Sql,
  { leaseSeconds, perRepository }: { leaseSeconds: number; perRepository: number },
): Promise<ForecastFacts> {
  const [{ now, open } = { now: 0, open: 0 }] = await sql<{ now: number; open: number }>(
    `select ${ms('clock_timestamp()')} as now, (select count(*)::int from ${SCHEMA}.session where state in ('running', 'waiting', 'held')) as open`,
  )
  const history = await sql<{ repo: string; durationMs: number }>(
    `select repo, ${ms(`s.ended_at`)} - ${ms(BEGUN)} as "durationMs" from ${SCHEMA}.session s
     where state = 'ended' and ended_at > now() - interval '14 days' and events > 0 order by ended_at desc limit 500`,
  )
  const sessions = await sql<ForecastSession>(
    `select id, team || chr(10) || repo as "group", repo, state, tags, ${TEMPLATE}, after, worker, ${ms('not_before')} as "notBefore",
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
