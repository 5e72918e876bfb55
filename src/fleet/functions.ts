/**
 * The functions of version 3 of the schema: the only changes that a login without a worker can make. Each checks the
 * session's team and state. They run as the fleet's owner, so each names its schemas, and the login is `session_user`.
 * Codes: CM001 other epoch, CM002 missing events, CM003 foreign team, CM004 no such session to wait for, CM005 that session
 * is over and not done, CM006 invalid value, CM007 nothing to retry. The detail is the session or the team.
 */
export const FUNCTIONS_3 = `
create function codemachine.my_teams() returns text[] language sql stable set search_path = pg_catalog, pg_temp as $$
  select array_append(coalesce(array_agg(substr(rolname::text, length('codemachine_team_') + 1)), '{}'), '')
  from pg_roles where starts_with(rolname::text, 'codemachine_team_') and pg_has_role(session_user, oid, 'member')
$$;

-- Names are looked up here, and not in the tables that a login makes for itself.
create or replace function codemachine.is_mine(team text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select team = any (codemachine.my_teams())
$$;

create function codemachine.sees_all() returns boolean language sql stable set search_path = pg_catalog, pg_temp as $$
  select pg_has_role(session_user, (select nspowner from pg_namespace where nspname = 'codemachine'), 'usage')
$$;

create function codemachine.sees(team text) returns boolean language sql stable set search_path = pg_catalog, pg_temp as $$
  select codemachine.sees_all() or codemachine.is_mine(team)
$$;

-- The part that comes after the team says what a session wants of its worker. Called by functions alone that say where names are.
create function codemachine.lane_of(job_version int, team text, template text, tags text[]) returns text
language sql immutable as $$
  select 'sessions-' || job_version || case when team = '' then '' else '.' || team end
    || '/_' || left(regexp_replace(coalesce(template, 'goal'), '[^A-Za-z0-9_.-]', '-', 'g'), 100)
    || coalesce((select string_agg('/' || left(regexp_replace(tag, '[^A-Za-z0-9_.-]', '-', 'g'), 100), '' order by tag collate "C")
         from (select distinct unnest(tags) as tag) as each), '')
$$;

-- Makes a lane that is not there, with the place for what is lost too often; answers it.
create function codemachine.make_lane(lane text, team text) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare dead text := 'dead' || case when team = '' then '' else '.' || team end;
  keeps jsonb := '{"policy": "standard", "retentionSeconds": 315360000, "deleteAfterSeconds": 86400}';
begin
  if not exists (select from codemachine_queue.queue where name = lane) then
    perform codemachine_queue.create_queue(dead, keeps);
    perform codemachine_queue.create_queue(lane, keeps || jsonb_build_object('deadLetter', dead, 'retryLimit', 20, 'retryDelay', 0,
      'expireInSeconds', 86400, 'warningQueueSize', 1000000, 'heartbeatSeconds', (select lease_seconds from codemachine.term)));
  end if;
  return lane;
end $$;

-- Puts sessions that wait into the queue; none of them is there. p_after: not before; null: as the session says.
create function codemachine.enqueue(p_sessions text[], p_after timestamptz) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare each text; lane text;
begin
  foreach each in array p_sessions loop
    select codemachine.make_lane(codemachine.lane_of(job_version, team, job ->> 'template', tags), team) into lane
      from codemachine.session where id = each and state = 'waiting' and codemachine.sees(team);
    ${jobsOf('codemachine.session', "s.id = each and s.state = 'waiting'", { lane: 'lane', begins: 'greatest(p_after, s.not_before)' })};
  end loop;
end $$;

-- Submits sessions, all or none (what is asked here is soon answered, and long compiled); answers their ids in the same order. after_at: where in p_sessions the one stands that it waits for.
create function codemachine.submit(p_sessions jsonb, p_job_version int) returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare ids text[]; named text[]; wrong text; lanes jsonb;
begin
  with teams as materialized (select distinct r.team from jsonb_to_recordset(p_sessions) as r (team text))
    select team into wrong from teams where not codemachine.sees(team) limit 1;
  if found then raise exception 'not in the team %', wrong using errcode = 'CM003', detail = wrong; end if;
  if p_job_version not between 1 and 1000 or jsonb_array_length(p_sessions) > 10000 or exists (
    select from jsonb_to_recordset(p_sessions) as r (team text, priority int, tags text[], not_before timestamptz, deadline timestamptz)
    where r.team is null or r.team !~ '^([a-z][a-z0-9_]{0,30})?$' or r.priority not between -1000 and 1000 or cardinality(r.tags) > 100
      or exists (select from unnest(r.tags) as tag where tag is null or tag !~ '^[a-z0-9][a-z0-9_.-]{0,31}$')
      or r.not_before not between '2000-01-01Z' and '9999-01-01Z' or r.deadline not between '2000-01-01Z' and '9999-01-01Z')
  then raise exception 'a team, priority, tag or time that no session has' using errcode = 'CM006'; end if;
  named := array(select distinct r.after from jsonb_to_recordset(p_sessions) as r (after text) where r.after is not null);
  -- One that ends meanwhile lets go of what waits for it, and would not see it.
  perform from codemachine.session where id = any (named) order by id for share;
  select each into wrong from unnest(named) as each
    where not exists (select from codemachine.session b where b.id = each and codemachine.sees(b.team)) limit 1;
  if found then raise exception 'there is no session %', wrong using errcode = 'CM004', detail = wrong; end if;
  select b.id into wrong from codemachine.session b where b.id = any (named)
    and (b.state in ('dead', 'cancelled') or (b.state = 'ended' and b.outcome ->> 'kind' is distinct from 'done')) limit 1;
  if found then raise exception 'session % is over and not done', wrong using errcode = 'CM005', detail = wrong; end if;
  ids := array(select to_char(now() at time zone 'utc', 'YYYYMMDD') || '_' || nextval('codemachine.session_number')
    from generate_series(1, jsonb_array_length(p_sessions)));
  select jsonb_object_agg(jsonb_build_array(team, template, tags)::text,
      codemachine.make_lane(codemachine.lane_of(p_job_version, team, template, tags), team)) into lanes from (
    select distinct r.team, r.job ->> 'template' as template, r.tags from jsonb_to_recordset(p_sessions)
      as r (team text, job jsonb, tags text[])) as each;
  with made as (
    insert into codemachine.session (id, team, repo, ref, job, job_version, goal, priority, tags, not_before, deadline, after, state)
      select own.id, r.team, r.repo, r.ref, r.job, p_job_version, r.job ->> 'goal', r.priority, r.tags, r.not_before, r.deadline,
        coalesce(r.after, before.id), case when coalesce(r.after, before.id) is null or exists (
          select from codemachine.session b where b.id = r.after and b.state = 'ended') then 'waiting' else 'held' end
      from rows from (jsonb_to_recordset(p_sessions) as (team text, repo text, ref text, job jsonb, priority int, tags text[],
            not_before timestamptz, deadline timestamptz, after text, after_at int)) with ordinality as r
        join unnest(ids) with ordinality as own (id, at) on own.at = r.ordinality
        left join unnest(ids) with ordinality as before (id, at) on before.at = r.after_at + 1
      returning *)
  ${jobsOf('made', "s.state = 'waiting'", {
    lane: "lanes ->> jsonb_build_array(s.team, s.job ->> 'template', s.tags)::text",
    begins: 's.not_before',
  })};
  return query select unnest(ids);
end $$;

-- Cancels what waits, and asks the worker of what runs to end it; no row: it has ended, or is of others.
create function codemachine.cancel(p_session text) returns table (state text, worker text)
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update codemachine.session s set cancel_asked = true,
    state = case when s.state = 'running' then s.state else 'cancelled' end,
    reason = case when s.state = 'running' then s.reason end,
    ended_at = case when s.state = 'running' then s.ended_at else now() end
  where s.id = p_session and s.state in ('held', 'waiting', 'running') and codemachine.sees(s.team)
  returning s.state, s.worker
$$;

-- Takes out of the queue what waits there of a session that is over.
create function codemachine.dequeue(p_session text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  delete from codemachine_queue.job j where j.name like 'sessions-%' and j.data @> jsonb_build_object('session', p_session)
    and j.state <= 'retry' and exists (select from codemachine.session s
      where s.id = p_session and s.state in ('ended', 'cancelled', 'dead') and codemachine.sees(s.team));
end $$;

-- Has a session wait again that is not done and has room left.
create function codemachine.retry(p_session text) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare stands text;
begin
  -- First, as whoever takes one does: what is left of it in the queue would have it run twice.
  perform codemachine.dequeue(p_session);
  update codemachine.session s set reason = null, faults = 0, cancel_asked = false, ended_at = null, outcome = null, report = null,
      certificate = null, not_before = null, deadline = case when s.deadline > now() then s.deadline end,
      state = case when s.events > 0 or s.after is null or exists (
          select from codemachine.session b where b.id = s.after and b.state = 'ended' and b.outcome ->> 'kind' = 'done')
        then 'waiting' else 'held' end
    where s.id = p_session and codemachine.sees(s.team) and (s.state in ('dead', 'cancelled')
      or (s.state = 'ended' and coalesce(s.outcome ->> 'kind', '') in ('', 'needs-person', 'stalled', 'interrupted')))
    returning s.state into stands;
  if not found then raise exception 'session % cannot be tried again', p_session using errcode = 'CM007'; end if;
  perform codemachine.enqueue(array[p_session], null);
  return stands;
end $$;

-- What ended so long ago, and may be taken out by this login: its own, and whoever works may take out all.
create function codemachine.prunable(p_older_seconds float8) returns table (id text, repo text, has_refs boolean)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare teams text[] := codemachine.my_teams(); sees_all boolean := codemachine.sees_all();
  works boolean := sees_all or exists (
    select from pg_roles where rolname = 'codemachine_work' and pg_has_role(session_user, oid, 'member'));
begin
  return query select s.id, s.repo, s.events > 0 or s.epoch > 0 from codemachine.session s
    where s.state in ('ended', 'cancelled', 'dead') and s.ended_at < now() - make_interval(secs => p_older_seconds)
      and (sees_all or s.team = any (teams)) and (works or s.created_by = session_user)
      and not exists (select from codemachine.session h where h.after = s.id and h.state = 'held')
    order by s.ended_at;
end $$;

create function codemachine.prune(p_sessions text[]) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  delete from codemachine.session where id in (select each.id from codemachine.prunable(0) as each) and id = any (p_sessions)
$$;

-- What a worker has written down since an event: all of it, or nothing; what is there already is passed over.
create or replace function codemachine.append(p_session text, p_epoch int, p_first bigint, p_lines text[], p_progress jsonb)
returns bigint language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare s record; added bigint;
begin
  select epoch, events, state, team into s from codemachine.session where id = p_session for update;
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
  return s.events + added;
end $$;
`

/**
 * Returns the SQL that adds jobs to the queue like pg-boss 12.35.
 * @param from rows of sessions, called `s`, and which of them
 * @param lane that of such a row; no job is made where it is null
 * @param begins when it may begin; null: now
 */
function jobsOf(from: string, which: string, { lane, begins }: { lane: string; begins: string }): string {
  return `insert into codemachine_queue.job (name, data, priority, start_after, created_on, keep_until, group_id, expire_seconds,
      deletion_seconds, retry_limit, retry_delay, retry_backoff, retry_delay_max, policy, dead_letter, heartbeat_seconds)
    select q.name, jsonb_build_object('session', s.id), s.priority, coalesce(${begins}, now()), now(),
      coalesce(${begins}, now()) + q.retention_seconds * interval '1 s',
      left(encode(sha256(convert_to(s.team || chr(10) || s.repo, 'UTF8')), 'hex'), 24), q.expire_seconds,
      q.deletion_seconds, q.retry_limit, q.retry_delay, q.retry_backoff, q.retry_delay_max, q.policy, q.dead_letter, q.heartbeat_seconds
    from ${from} s join codemachine_queue.queue q on q.name = ${lane} where ${which}
    order by length(s.id), s.id collate "C"`
}
