import type { Sql } from './database.ts'

/**
 * Version 4 of the schema: what the fleet and each team may spend in a day. A limit of the whole fleet has no team (`''`).
 * Each session has a row for each day, so that workers never wait for each other's.
 */
export const LIMITS_4 = `
alter table codemachine.term add column day_begins interval not null default '0'
  check (day_begins >= interval '0' and day_begins < interval '24 hours');
create table codemachine.day_limit (
  team text primary key,
  tokens numeric check (tokens > 0),
  cost numeric check (cost > 0)
);
create table codemachine.spent (
  day date not null,
  team text not null,
  session text not null,
  tokens numeric not null,
  cost numeric not null,
  primary key (day, team, session)
);

create function codemachine.today() returns date
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select ((now() at time zone 'utc') - day_begins)::date from codemachine.term
$$;

-- Whoever sees a team sees its limit, and everybody that of the whole fleet.
create function codemachine.day_limits() returns table (team text, tokens float8, cost float8, used_tokens float8, used_cost float8,
  is_full boolean, ends_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select d.team, d.tokens::float8, d.cost::float8, u.tokens::float8, u.cost::float8,
    coalesce(u.tokens >= d.tokens, false) or coalesce(u.cost >= d.cost, false),
    (codemachine.today() + 1 + (select day_begins from codemachine.term)) at time zone 'utc'
  from codemachine.day_limit d, lateral (
    select coalesce(sum(s.tokens), 0) as tokens, coalesce(sum(s.cost), 0) as cost from codemachine.spent s
    where s.day = codemachine.today() and d.team in ('', s.team)) u
  where d.team = '' or codemachine.sees(d.team) order by d.team
$$;

-- A number in what a worker has written; 0 where it is none.
create function codemachine.amount(of jsonb, name text) returns numeric
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case when jsonb_typeof(of -> name) = 'number' then least(greatest((of -> name)::numeric, 0), 1e15) else 0 end
$$;

create or replace function codemachine.prune(p_sessions text[]) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  delete from codemachine.spent where day < codemachine.today();
  delete from codemachine.session where id in (select each.id from codemachine.prunable(0) as each) and id = any (p_sessions)
$$;

-- What a worker has written down since an event: all of it, or nothing; what is there already is passed over.
create or replace function codemachine.append(p_session text, p_epoch int, p_first bigint, p_lines text[], p_progress jsonb)
returns bigint language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare s record; added bigint; more_tokens numeric; more_cost numeric;
begin
  select epoch, events, state, team, progress into s from codemachine.session where id = p_session for update;
  if not found or s.epoch <> p_epoch or s.state <> 'running' or not codemachine.sees(s.team) then
    raise exception 'session % is not of epoch % any more', p_session, p_epoch using errcode = 'CM001';
  end if;
  if p_first > s.events + 1 then
    raise exception 'session % has % events, and is given one numbered %', p_session, s.events, p_first using errcode = 'CM002';
  end if;
  insert into codemachine.event (session, number, epoch, line)
    select p_session, p_first + i - 1, p_epoch, line
    from unnest(p_lines) with ordinality as given (line, i) where p_first + i - 1 > s.events;
  get diagnostics added = row_count;
  update codemachine.session set events = s.events + added, seen_at = clock_timestamp(),
    bytes = bytes + coalesce((select sum(octet_length(line)) from unnest(p_lines[cardinality(p_lines) - added + 1:]) as line), 0),
    progress = coalesce(p_progress, progress) where id = p_session;
  -- A round that was lost with its worker counts, and is counted once.
  more_tokens := greatest(codemachine.amount(p_progress, 'tokens') - codemachine.amount(s.progress, 'tokens'), 0);
  more_cost := greatest(codemachine.amount(p_progress, 'cost') - codemachine.amount(s.progress, 'cost'), 0);
  if more_tokens > 0 or more_cost > 0 then
    insert into codemachine.spent as own values (codemachine.today(), s.team, p_session, more_tokens, more_cost)
      on conflict (day, team, session) do update set tokens = own.tokens + excluded.tokens, cost = own.cost + excluded.cost;
  end if;
  return s.events + added;
end $$;
`

/** What a team may spend in a day. Null: no limit. */
export interface DayLimit {
  /** `''`: the whole fleet. */
  team: string
  tokens: number | null
  /** In the currency of the workers' prices. */
  cost: number | null
}

/** A change of a limit: a missing field stays, null removes it. */
export type DayLimitChange = Pick<DayLimit, 'team'> & Partial<DayLimit>

/** A limit, and what of it is used today. */
export interface DayLimitNow extends DayLimit {
  usedTokens: number
  usedCost: number
  /** True if no session of the team starts or continues on another worker today. */
  isFull: boolean
  /** End of this day. */
  endsAt: Date
}

export async function setDayLimits(sql: Sql, changes: readonly DayLimitChange[]): Promise<void> {
  for (const { team, ...change } of changes) {
    await sql('insert into codemachine.day_limit (team) values ($1) on conflict do nothing', [team])
    for (const [name, most] of Object.entries(change))
      await sql(`update codemachine.day_limit set ${name === 'tokens' ? 'tokens' : 'cost'} = $2 where team = $1`, [
        team,
        most,
      ])
  }
  await sql('delete from codemachine.day_limit where tokens is null and cost is null')
}

/** Returns the limits that this login sees, that of the whole fleet first. */
export async function dayLimits(sql: Sql): Promise<DayLimitNow[]> {
  return await sql<DayLimitNow>(
    `select team, tokens, cost, used_tokens as "usedTokens", used_cost as "usedCost", is_full as "isFull", ends_at as "endsAt"
     from codemachine.day_limits()`,
  )
}
