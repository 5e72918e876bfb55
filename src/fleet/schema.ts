import { UserError } from '../base/errors.ts'
import { type Database, packagePgBoss, type Sql } from './database.ts'
import { FUNCTIONS_3 } from './functions.ts'
import { type DayLimitChange, LIMITS_4, LIMITS_5, setDayLimits } from './limits.ts'

/** Schemas of codemachine's and of pg-boss's tables. */
export const SCHEMA = 'codemachine'
export const QUEUE_SCHEMA = 'codemachine_queue'

/** Roles of the database with their rights; people and workers become members. */
export const ROLES = {
  codemachine_submit: 'submits, cancels, steers and answers',
  codemachine_work: 'runs a worker',
  codemachine_look: 'looks',
} as const
/** Prefix of a team's role: only its members see the team's sessions. */
const TEAM_ROLE = 'codemachine_team_'
export const TEAM_NAME = /^[a-z][a-z0-9_]{0,30}$/

/** Returns the role whose members see the sessions of a team. */
export function roleOfTeam(team: string): string {
  return `${TEAM_ROLE}${team}`
}

/** The settings of a whole fleet. */
export interface FleetTerms {
  /** Time after which a silent worker loses its sessions, seconds: 10 to 3,600. */
  leaseSeconds: number
  /** Most sessions of one repository at once. */
  perRepository: number
  /** Time of day in UTC at which a day of the limits begins: `18:00`. */
  dayBegins: string
}

const USUAL_TERMS: FleetTerms = { leaseSeconds: 60, perRepository: 4, dayBegins: '00:00' }

/** The statements of each schema version, from the previous one. Never change a released one. */
const VERSIONS: readonly string[] = [
  `
create table ${SCHEMA}.term (
  only_one boolean primary key default true check (only_one),
  lease_seconds int not null check (lease_seconds between 10 and 3600),
  per_repository int not null check (per_repository between 1 and 10000)
);
insert into ${SCHEMA}.term (lease_seconds, per_repository) values (${USUAL_TERMS.leaseSeconds}, ${USUAL_TERMS.perRepository});

create function ${SCHEMA}.is_mine(team text) returns boolean language sql stable as $$
  select team = '' or exists (
    select from pg_roles where rolname = '${TEAM_ROLE}' || team and pg_has_role(session_user, oid, 'member'))
$$;

create sequence ${SCHEMA}.session_number;

create table ${SCHEMA}.session (
  id text primary key,
  team text not null default '',
  created_at timestamptz not null default now(),
  created_by text not null default session_user,
  repo text not null,
  ref text not null,
  base text,
  job jsonb not null,
  job_version int not null,
  goal text not null,
  priority int not null,
  tags text[] not null,
  not_before timestamptz,
  deadline timestamptz,
  after text,
  queue text not null,
  state text not null check (state in ('held', 'waiting', 'running', 'ended', 'cancelled', 'dead')),
  reason text,
  epoch int not null default 0,
  faults int not null default 0,
  worker text,
  instance uuid,
  taken_at timestamptz,
  seen_at timestamptz,
  cancel_asked boolean not null default false,
  events bigint not null default 0,
  bytes bigint not null default 0,
  progress jsonb,
  outcome jsonb,
  branch text,
  report text,
  certificate jsonb,
  ended_at timestamptz
);
create index session_by_state on ${SCHEMA}.session (state, created_at);
create index session_after on ${SCHEMA}.session (after) where state = 'held';
create index session_ended on ${SCHEMA}.session (ended_at) where ended_at is not null;
create index session_by_repo on ${SCHEMA}.session (team, repo) where state in ('waiting', 'running');

create table ${SCHEMA}.event (
  session text not null references ${SCHEMA}.session on delete cascade,
  number bigint not null,
  epoch int not null,
  at timestamptz not null default clock_timestamp(),
  line text not null,
  primary key (session, number)
);

create table ${SCHEMA}.ask (
  id bigint primary key generated always as identity,
  session text not null references ${SCHEMA}.session on delete cascade,
  ask jsonb not null,
  asked_at timestamptz not null default clock_timestamp(),
  asked_by text not null default session_user,
  reply jsonb,
  replied_at timestamptz
);
create index ask_open on ${SCHEMA}.ask (session) where reply is null;

create table ${SCHEMA}.worker (
  name text primary key,
  instance uuid not null,
  host text not null,
  place text not null,
  version text not null,
  started_by text not null default session_user,
  started_at timestamptz not null default clock_timestamp(),
  seen_at timestamptz not null default clock_timestamp(),
  clock_off_ms bigint not null,
  slots int not null,
  tags text[] not null,
  repos text[] not null,
  drains boolean not null default false,
  problem text,
  login jsonb,
  ended_at timestamptz
);

-- What a worker has written down since an event: all of it, or nothing; what is there already is passed over.
create function ${SCHEMA}.append(p_session text, p_epoch int, p_first bigint, p_lines text[], p_progress jsonb)
returns bigint language plpgsql as $$
declare s record; added bigint;
begin
  select epoch, events, state into s from ${SCHEMA}.session where id = p_session for update;
  if not found or s.epoch <> p_epoch or s.state <> 'running' then
    raise exception 'session % is not of epoch % any more', p_session, p_epoch using errcode = 'CM001';
  end if;
  if p_first > s.events + 1 then
    raise exception 'session % has % events, and is given one numbered %', p_session, s.events, p_first using errcode = 'CM002';
  end if;
  insert into ${SCHEMA}.event (session, number, epoch, line)
    select p_session, p_first + i - 1, p_epoch, line
    from unnest(p_lines) with ordinality as given (line, i) where p_first + i - 1 > s.events;
  get diagnostics added = row_count;
  update ${SCHEMA}.session set events = s.events + added, seen_at = clock_timestamp(),
    bytes = bytes + coalesce((select sum(octet_length(line)) from unnest(p_lines[cardinality(p_lines) - added + 1:]) as line), 0),
    progress = coalesce(p_progress, progress) where id = p_session;
  return s.events + added;
end $$;
`,
  // Sessions wait by their requirements, which include the template from now on.
  `
alter table ${SCHEMA}.worker add column templates text[] not null default '{}';
alter table ${SCHEMA}.session drop column queue;
`,
  FUNCTIONS_3,
  LIMITS_4,
  LIMITS_5,
]

/** The results of the setup, a sentence each. */
interface SetUp {
  done: string[]
  /** Steps that failed, and who can do them. */
  problems: string[]
}

/**
 * Creates or updates the schema; a repetition changes nothing. Throws a `UserError` for a newer schema, a too old
 * database, or a limit of a missing team.
 * @param teams names of teams whose roles are made
 * @param limits changes of what may be spent in a day
 */
export async function setUp(
  database: Database,
  {
    terms,
    teams,
    limits = [],
  }: { terms: Partial<FleetTerms>; teams: readonly string[]; limits?: readonly DayLimitChange[] },
): Promise<SetUp> {
  await refuseOldServer(database)
  await refuseWithoutRights(database)
  const done: string[] = []
  const problems: string[] = []
  await database.transaction(async sql => {
    // Of two setups at once, the second finds the first one's result.
    await sql(`select pg_advisory_xact_lock(hashtext('${SCHEMA}'))`)
    await refuseUnknownTeams(sql, teams, limits)
    await sql(`create schema if not exists ${SCHEMA}`)
    await sql(`create table if not exists ${SCHEMA}.version (version int not null)`)
    const version = await versionIn(sql)
    for (const [at, statements] of VERSIONS.entries()) if (at >= version) await sql(statements)
    if (version < VERSIONS.length) {
      await sql(`delete from ${SCHEMA}.version`)
      await sql(`insert into ${SCHEMA}.version values ($1)`, [VERSIONS.length])
      done.push(
        version === 0
          ? `The schema ${SCHEMA} is made, version ${VERSIONS.length}.`
          : `The schema ${SCHEMA} was updated from version ${version} to ${VERSIONS.length}.`,
      )
    }
    await sql(
      `update ${SCHEMA}.term set lease_seconds = coalesce($1, lease_seconds), per_repository = coalesce($2, per_repository),
         day_begins = coalesce($3, day_begins)`,
      [terms.leaseSeconds ?? null, terms.perRepository ?? null, terms.dayBegins ?? null],
    )
    await setDayLimits(sql, limits)
  })
  await database.transaction(async sql => {
    await sql(`select pg_advisory_xact_lock(hashtext('${SCHEMA}'))`)
    if (await setUpBoss(database)) done.push(`The schema ${QUEUE_SCHEMA} of pg-boss is made.`)
    await makeRoles(sql, teams, { done, problems })
  })
  return { done, problems }
}

/** Creates or updates the schema of pg-boss; returns true if it is new. */
async function setUpBoss(database: Database): Promise<boolean> {
  const { PgBoss } = await packagePgBoss()
  const boss = new PgBoss({ db: bossOver(database.sql), schema: QUEUE_SCHEMA, supervise: false, schedule: false })
  boss.on('error', () => {})
  const isNew = !(await boss.isInstalled())
  await boss.start()
  // A changed lease only applies to later jobs.
  const { leaseSeconds } = await fleetTerms(database)
  for (const { name, heartbeatSeconds } of await boss.getQueues())
    if (heartbeatSeconds) await boss.updateQueue(name, { heartbeatSeconds: leaseSeconds })
  await boss.stop({ close: false, graceful: false })
  return isNew
}

async function makeRoles(sql: Sql, teams: readonly string[], { done, problems }: SetUp): Promise<void> {
  const [me] = await sql<{ may: boolean }>(
    'select rolsuper or rolcreaterole as may from pg_roles where rolname = current_user',
  )
  const wanted = [...Object.keys(ROLES), ...teams.map(roleOfTeam)]
  const there = (await sql<{ rolname: string }>('select rolname from pg_roles where rolname = any($1)', [wanted])).map(
    ({ rolname }) => rolname,
  )
  const lacking = wanted.filter(role => !there.includes(role))
  if (lacking.length > 0 && me?.may !== true) {
    const statements = lacking.map(role => `create role ${role} nologin;`).join(' ')
    problems.push(
      `Your login may not create roles (it lacks CREATEROLE), so only you can use the fleet. Ask an administrator to run the following, then repeat the setup: ${statements}`,
    )
    if (lacking.some(role => Object.hasOwn(ROLES, role))) return
  } else {
    // Roles belong to the whole server: another fleet's setup may be faster.
    for (const role of lacking)
      await sql(
        `do $$ begin create role ${role} nologin; exception when duplicate_object or unique_violation then null; end $$`,
      )
    if (lacking.length > 0) done.push(`Roles made: ${lacking.join(', ')}.`)
  }
  for (const statement of GRANTS) await sql(statement)
}

/** The roles and their rights in both schemas. */
const SUBMIT = 'codemachine_submit'
const WORK = 'codemachine_work'
const ALL_ROLES = `${SUBMIT}, ${WORK}, codemachine_look`
const SCHEMAS = `${SCHEMA}, ${QUEUE_SCHEMA}`

/** Columns of a session that a worker writes. Submitters change them only through functions. */
const SESSION_COLUMNS =
  'state, reason, epoch, faults, worker, instance, taken_at, seen_at, base, outcome, branch, report, certificate, ended_at'
const WORKER_COLUMNS = 'name, instance, host, place, version, clock_off_ms, slots, tags, repos, templates'

/** SQL of the login's own teams and no team. Evaluated once per statement. */
const OWN_TEAMS = '((select codemachine.my_teams())::text[])'
/** SQL of a lane's team, by its name: `sessions-1.shop/_goal`, `dead.shop`. */
export const TEAM_OF_LANE = `split_part(split_part(name, '/', 1), '.', 2)`

const POLICIES: Readonly<Record<string, string>> = {
  'codemachine.session': `team = any ${OWN_TEAMS}`,
  'codemachine.event': 'exists (select from codemachine.session s where s.id = session)',
  'codemachine.ask': 'exists (select from codemachine.session s where s.id = session)',
  'codemachine_queue.queue': `${TEAM_OF_LANE} = any ${OWN_TEAMS}`,
  // pg-boss uses both names.
  'codemachine_queue.job': `${TEAM_OF_LANE} = any ${OWN_TEAMS}`,
  'codemachine_queue.job_common': `${TEAM_OF_LANE} = any ${OWN_TEAMS}`,
}

/** Revokes the rights of earlier versions and grants the current ones. The executing login owns both schemas. */
const GRANTS: readonly string[] = [
  `revoke all on all tables in schema ${SCHEMAS} from public, ${ALL_ROLES}`,
  `revoke all on all sequences in schema ${SCHEMAS} from public, ${ALL_ROLES}`,
  `revoke all on all functions in schema ${SCHEMAS} from public, ${ALL_ROLES}`,
  `grant usage on schema ${SCHEMAS} to ${ALL_ROLES}`,
  `grant select on codemachine.session, codemachine.event, codemachine.ask, codemachine.worker, codemachine.term, codemachine.version to ${ALL_ROLES}`,
  `grant select on codemachine_queue.version, codemachine_queue.queue to ${ALL_ROLES}`,
  `grant execute on function codemachine.my_teams(), codemachine.is_mine(text), codemachine.sees_all(), codemachine.sees(text), codemachine.day_limits() to ${ALL_ROLES}`,
  `grant execute on function codemachine.submit(jsonb, int), codemachine.cancel(text), codemachine.dequeue(text), codemachine.retry(text) to ${SUBMIT}`,
  `grant execute on function codemachine.prunable(float8), codemachine.prune(text[]) to ${SUBMIT}, ${WORK}`,
  `grant insert (session, ask) on codemachine.ask to ${SUBMIT}`,
  `grant update (drains) on codemachine.worker to ${SUBMIT}`,
  `grant execute on function codemachine.append(text, int, bigint, text[], jsonb), codemachine.enqueue(text[], timestamptz), codemachine_queue.job_now() to ${WORK}`,
  `grant update (${SESSION_COLUMNS}) on codemachine.session to ${WORK}`,
  `grant update (reply, replied_at) on codemachine.ask to ${WORK}`,
  `grant insert (${WORKER_COLUMNS}), update (${WORKER_COLUMNS}, started_at, seen_at, drains, problem, login, ended_at) on codemachine.worker to ${WORK}`,
  `grant select, insert, update, delete on codemachine_queue.job, codemachine_queue.job_common to ${WORK}`,
  `grant update on codemachine_queue.queue to ${WORK}`,
  `grant update (monitor_backoff_on) on codemachine_queue.version to ${WORK}`,
  `grant select, delete on codemachine_queue.job_dependency to ${WORK}`,
  ...Object.entries(POLICIES).flatMap(([table, sees]) => [
    `alter table ${table} enable row level security`,
    `drop policy if exists of_team on ${table}`,
    `create policy of_team on ${table} using (${sees})`,
  ]),
]

/** Oldest PostgreSQL, as `server_version_num`. */
const OLDEST = 130_000

async function refuseOldServer({ sql, place }: Database): Promise<void> {
  const [row] = await sql<{ number: number; name: string }>(
    `select current_setting('server_version_num')::int as number, current_setting('server_version') as name`,
  )
  if (row !== undefined && row.number < OLDEST)
    throw new UserError('CM1106', `The database at ${place} is PostgreSQL ${row.name}; a fleet needs 13 or newer.`)
}

/** Throws a `UserError` if the login can neither create schemas nor owns the existing ones. */
async function refuseWithoutRights({ sql, place }: Database): Promise<void> {
  const [row] = await sql<{ login: string; database: string; owner: string | null; may: boolean }>(
    `select session_user as login, current_database() as database, pg_get_userbyid(n.nspowner) as owner,
       case when n.oid is null then has_database_privilege(current_database(), 'create') else pg_has_role(n.nspowner, 'usage') end as may
     from (select to_regnamespace('${SCHEMA}')::oid as found) as f left join pg_namespace n on n.oid = f.found`,
  )
  if (row === undefined || row.may) return
  const { login, database, owner } = row
  throw new UserError(
    'CM1105',
    owner === null
      ? `The login ${login} may not create a schema in the database at ${place}.`
      : `The fleet at ${place} belongs to ${owner}, and ${login} may not change it.`,
    {
      hint:
        owner === null
          ? `Ask its owner to run: grant create on database "${database}" to "${login}";`
          : `Run the setup as ${owner}, such as with PGUSER=${owner}.`,
      exitCode: 4,
    },
  )
}

/** Throws a `UserError` for a limit of a team without a role, which would limit nobody; exit code 4. */
async function refuseUnknownTeams(sql: Sql, made: readonly string[], limits: readonly DayLimitChange[]): Promise<void> {
  for (const { team, tokens, cost } of limits) {
    if (team === '' || made.includes(team) || (tokens ?? cost ?? null) === null) continue
    const role = roleOfTeam(team)
    const there = await sql('select from pg_roles where rolname = $1', [role])
    if (there.length === 0)
      throw new UserError('CM1105', `There is no team ${team}: the role ${role} is missing.`, {
        hint: `Correct the name, or make the team with --team ${team}.`,
        exitCode: 4,
      })
  }
}

async function versionIn(sql: Sql): Promise<number> {
  const [row] = await sql<{ version: number }>(`select version from ${SCHEMA}.version`)
  const version = row?.version ?? 0
  if (version > VERSIONS.length)
    throw new UserError(
      'CM1113',
      `The fleet's database has schema version ${version}, but this codemachine only knows versions up to ${VERSIONS.length}; update codemachine.`,
    )
  return version
}

/** Returns the settings of the fleet. Throws a `UserError` if its schema is missing or of another version. */
export async function fleetTerms({ sql, place }: Database): Promise<FleetTerms> {
  const version = await versionIn(sql)
  if (version < VERSIONS.length)
    throw new UserError(
      'CM1106',
      `The fleet's database at ${place} has schema version ${version}, but this codemachine needs version ${VERSIONS.length}.`,
      {
        hint: 'Its owner types: codemachine fleet setup',
      },
    )
  const [row] = await sql<FleetTerms>(
    `select lease_seconds as "leaseSeconds", per_repository as "perRepository", to_char(day_begins, 'HH24:MI') as "dayBegins" from ${SCHEMA}.term`,
  )
  return row ?? USUAL_TERMS
}

/** Returns the executor for pg-boss's statements. */
export function bossOver(sql: Sql) {
  return {
    // Several statements at once only work without values.
    executeSql: (text: string, values: unknown[] = []) => sql.raw(text, values.length === 0 ? undefined : values),
  }
}
