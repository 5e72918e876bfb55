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

-- What a session has used more is spent today: counted once, and also of a round that is lost with its worker.
create function codemachine.spend() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  more_tokens numeric := greatest(codemachine.amount(new.progress, 'tokens') - codemachine.amount(old.progress, 'tokens'), 0);
  more_cost numeric := greatest(codemachine.amount(new.progress, 'cost') - codemachine.amount(old.progress, 'cost'), 0);
begin
  if more_tokens > 0 or more_cost > 0 then
    insert into codemachine.spent as own values (codemachine.today(), new.team, new.id, more_tokens, more_cost)
      on conflict (day, team, session) do update set tokens = own.tokens + excluded.tokens, cost = own.cost + excluded.cost;
  end if;
  return null;
end $$;
create trigger spend after update of progress on codemachine.session for each row execute function codemachine.spend();
`

/**
 * Version 5: a row says when it was spent, so that the day of the limits may begin at another time.
 * A row holds an hour, or the part of it since the day began.
 */
export const LIMITS_5 = `
alter table codemachine.spent add column at timestamptz;
update codemachine.spent set at = (day + (select day_begins from codemachine.term)) at time zone 'utc';
alter table codemachine.spent drop column day, add primary key (at, team, session);

drop function codemachine.today();
create function codemachine.day_start() returns timestamptz
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select (((now() at time zone 'utc') - day_begins)::date + day_begins) at time zone 'utc' from codemachine.term
$$;

create or replace function codemachine.day_limits() returns table (team text, tokens float8, cost float8, used_tokens float8, used_cost float8,
  is_full boolean, ends_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with used as materialized (
    select s.team, sum(s.tokens) as tokens, sum(s.cost) as cost from codemachine.spent s
    where s.at >= codemachine.day_start() group by s.team)
  select d.team, d.tokens::float8, d.cost::float8, u.tokens::float8, u.cost::float8,
    coalesce(u.tokens >= d.tokens, false) or coalesce(u.cost >= d.cost, false), codemachine.day_start() + interval '24 hours'
  from codemachine.day_limit d, lateral (
    select coalesce(sum(used.tokens), 0) as tokens, coalesce(sum(used.cost), 0) as cost from used where d.team in ('', used.team)) u
  where d.team = '' or codemachine.sees(d.team) order by d.team
$$;

create or replace function codemachine.prune(p_sessions text[]) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  delete from codemachine.spent where at < now() - interval '24 hours';
  delete from codemachine.session where id in (select each.id from codemachine.prunable(0) as each) and id = any (p_sessions)
$$;

-- 0 after a report of an earlier worker, without such a number: nobody knows on which days all that was used.
create function codemachine.more(before jsonb, after jsonb, name text) returns numeric
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case when before is null or before ? name
    then greatest(codemachine.amount(after, name) - codemachine.amount(before, name), 0) else 0 end
$$;

create or replace function codemachine.spend() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  more_tokens numeric := codemachine.more(old.progress, new.progress, 'tokens');
  more_cost numeric := codemachine.more(old.progress, new.progress, 'cost');
begin
  if more_tokens > 0 or more_cost > 0 then
    insert into codemachine.spent as own (at, team, session, tokens, cost)
      values (greatest(date_trunc('hour', now(), 'UTC'), codemachine.day_start()), new.team, new.id, more_tokens, more_cost)
      on conflict (at, team, session) do update set tokens = own.tokens + excluded.tokens, cost = own.cost + excluded.cost;
  end if;
  return null;
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

/** A limit, and the use of today. */
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
