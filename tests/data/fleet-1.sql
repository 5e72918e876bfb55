--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: codemachine; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA codemachine;


--
-- Name: codemachine_queue; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA codemachine_queue;


--
-- Name: job_state; Type: TYPE; Schema: codemachine_queue; Owner: -
--

CREATE TYPE codemachine_queue.job_state AS ENUM (
    'created',
    'retry',
    'active',
    'completed',
    'cancelled',
    'failed'
);


--
-- Name: append(text, integer, bigint, text[], jsonb); Type: FUNCTION; Schema: codemachine; Owner: -
--

CREATE FUNCTION codemachine.append(p_session text, p_epoch integer, p_first bigint, p_lines text[], p_progress jsonb) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare s record; added bigint;
begin
  select epoch, events, state into s from codemachine.session where id = p_session for update;
  if not found or s.epoch <> p_epoch or s.state <> 'running' then
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


--
-- Name: is_mine(text); Type: FUNCTION; Schema: codemachine; Owner: -
--

CREATE FUNCTION codemachine.is_mine(team text) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
  select team = '' or exists (
    select from pg_roles where rolname = 'codemachine_team_' || team and pg_has_role(session_user, oid, 'member'))
$$;


--
-- Name: create_queue(text, jsonb); Type: FUNCTION; Schema: codemachine_queue; Owner: -
--

CREATE FUNCTION codemachine_queue.create_queue(queue_name text, options jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $_$
    DECLARE
      tablename varchar := CASE WHEN options->>'partition' = 'true'
                            THEN 'j' || encode(sha224(queue_name::bytea), 'hex')
                            ELSE 'job_common'
                            END;
      queue_created_on timestamptz;
    BEGIN

      WITH q as (
        INSERT INTO codemachine_queue.queue (
          name,
          policy,
          retry_limit,
          retry_delay,
          retry_backoff,
          retry_delay_max,
          expire_seconds,
          retention_seconds,
          deletion_seconds,
          warning_queued,
          dead_letter,
          partition,
          table_name,
          heartbeat_seconds,
          notify,
          created_on,
          updated_on
        )
        VALUES (
          queue_name,
          options->>'policy',
          COALESCE((options->>'retryLimit')::int, 2),
          COALESCE((options->>'retryDelay')::int, 0),
          COALESCE((options->>'retryBackoff')::bool, false),
          (options->>'retryDelayMax')::int,
          COALESCE((options->>'expireInSeconds')::int, 900),
          COALESCE((options->>'retentionSeconds')::int, 1209600),
          COALESCE((options->>'deleteAfterSeconds')::int, 604800),
          COALESCE((options->>'warningQueueSize')::int, 0),
          options->>'deadLetter',
          COALESCE((options->>'partition')::bool, false),
          tablename,
          (options->>'heartbeatSeconds')::int,
          COALESCE((options->>'notify')::bool, false),
          codemachine_queue.job_now(),
          codemachine_queue.job_now()
        )
        ON CONFLICT DO NOTHING
        RETURNING created_on
      )
      SELECT created_on into queue_created_on from q;

      IF queue_created_on IS NULL OR options->>'partition' IS DISTINCT FROM 'true' THEN
        RETURN;
      END IF;

      EXECUTE format('CREATE TABLE codemachine_queue.%I (LIKE codemachine_queue.job INCLUDING DEFAULTS)', tablename);

      EXECUTE codemachine_queue.job_table_format($cmd$ALTER TABLE codemachine_queue.job ADD PRIMARY KEY (name, id)$cmd$, tablename);
      EXECUTE codemachine_queue.job_table_format($cmd$ALTER TABLE codemachine_queue.job ADD CONSTRAINT q_fkey FOREIGN KEY (name) REFERENCES codemachine_queue.queue (name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED$cmd$, tablename);
      EXECUTE codemachine_queue.job_table_format($cmd$ALTER TABLE codemachine_queue.job ADD CONSTRAINT dlq_fkey FOREIGN KEY (dead_letter) REFERENCES codemachine_queue.queue (name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED$cmd$, tablename);

      EXECUTE codemachine_queue.job_table_format($cmd$CREATE INDEX job_i11 ON codemachine_queue.job (name, priority DESC, created_on, start_after) WHERE state < 'active' AND NOT blocked$cmd$, tablename);
      EXECUTE codemachine_queue.job_table_format($cmd$CREATE UNIQUE INDEX job_i4 ON codemachine_queue.job (name, singleton_on, COALESCE(singleton_key, '')) WHERE state <> 'cancelled' AND singleton_on IS NOT NULL$cmd$, tablename);
      EXECUTE codemachine_queue.job_table_format($cmd$CREATE INDEX job_i7 ON codemachine_queue.job (name, group_id) WHERE state = 'active' AND group_id IS NOT NULL$cmd$, tablename);
      EXECUTE codemachine_queue.job_table_format($cmd$CREATE INDEX job_i9 ON codemachine_queue.job (name, id) WHERE blocking AND state = 'completed'$cmd$, tablename);
      EXECUTE codemachine_queue.job_table_format($cmd$CREATE INDEX job_i12 ON codemachine_queue.job (source_root_id) WHERE source_root_id IS NOT NULL$cmd$, tablename);

      IF options->>'policy' = 'short' THEN
        EXECUTE codemachine_queue.job_table_format($cmd$CREATE UNIQUE INDEX job_i1 ON codemachine_queue.job (name, COALESCE(singleton_key, '')) WHERE state = 'created' AND policy = 'short'$cmd$, tablename);
      ELSIF options->>'policy' = 'singleton' THEN
        EXECUTE codemachine_queue.job_table_format($cmd$CREATE UNIQUE INDEX job_i2 ON codemachine_queue.job (name, COALESCE(singleton_key, '')) WHERE state = 'active' AND policy = 'singleton'$cmd$, tablename);
      ELSIF options->>'policy' = 'stately' THEN
        EXECUTE codemachine_queue.job_table_format($cmd$CREATE UNIQUE INDEX job_i3 ON codemachine_queue.job (name, state, COALESCE(singleton_key, '')) WHERE state <= 'active' AND policy = 'stately'$cmd$, tablename);
      ELSIF options->>'policy' = 'exclusive' THEN
        EXECUTE codemachine_queue.job_table_format($cmd$CREATE UNIQUE INDEX job_i6 ON codemachine_queue.job (name, COALESCE(singleton_key, '')) WHERE state <= 'active' AND policy = 'exclusive'$cmd$, tablename);
      ELSIF options->>'policy' = 'key_strict_fifo' THEN
        EXECUTE codemachine_queue.job_table_format($cmd$CREATE UNIQUE INDEX job_i8 ON codemachine_queue.job (name, singleton_key) WHERE state IN ('active', 'retry', 'failed') AND policy = 'key_strict_fifo'$cmd$, tablename);
        EXECUTE codemachine_queue.job_table_format($cmd$CREATE INDEX job_i10 ON codemachine_queue.job (name, singleton_key, state DESC, created_on, id) INCLUDE (start_after) WHERE state < 'active' AND NOT blocked AND policy = 'key_strict_fifo'$cmd$, tablename);
        EXECUTE codemachine_queue.job_table_format($cmd$ALTER TABLE codemachine_queue.job ADD CONSTRAINT job_key_strict_fifo_singleton_key_check CHECK (NOT (policy = 'key_strict_fifo' AND singleton_key IS NULL))$cmd$, tablename);
      END IF;

      EXECUTE format('ALTER TABLE codemachine_queue.%I ADD CONSTRAINT cjc CHECK (name=%L)', tablename, queue_name);
      EXECUTE format('ALTER TABLE codemachine_queue.job ATTACH PARTITION codemachine_queue.%I FOR VALUES IN (%L)', tablename, queue_name);
    END;
    $_$;


--
-- Name: delete_queue(text); Type: FUNCTION; Schema: codemachine_queue; Owner: -
--

CREATE FUNCTION codemachine_queue.delete_queue(queue_name text) RETURNS void
    LANGUAGE plpgsql
    AS $$
    DECLARE
      v_table varchar;
      v_partition bool;
    BEGIN
      
      SELECT table_name, partition
      FROM codemachine_queue.queue
      WHERE name = queue_name
      INTO v_table, v_partition;

      IF v_partition THEN
        EXECUTE format('DROP TABLE IF EXISTS codemachine_queue.%I', v_table);
      ELSE
        EXECUTE format('DELETE FROM codemachine_queue.%I WHERE name = %L', v_table, queue_name);
      END IF;
    
      DELETE FROM codemachine_queue.queue WHERE name = queue_name;
    END;
    $$;


--
-- Name: job_now(); Type: FUNCTION; Schema: codemachine_queue; Owner: -
--

CREATE FUNCTION codemachine_queue.job_now() RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    AS $$
      SELECT pg_catalog.now();
    $$;


--
-- Name: job_table_format(text, text); Type: FUNCTION; Schema: codemachine_queue; Owner: -
--

CREATE FUNCTION codemachine_queue.job_table_format(command text, table_name text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $_$
      SELECT format(
        regexp_replace(
          regexp_replace(command, '\.job\y', '.%1$I', 'g'),
          '\yjob_i(\d+)', '%1$s_i\1', 'g'
        ),
        table_name
      );
    $_$;


--
-- Name: job_table_run(text, text, text); Type: FUNCTION; Schema: codemachine_queue; Owner: -
--

CREATE FUNCTION codemachine_queue.job_table_run(command text, tbl_name text DEFAULT NULL::text, queue_name text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql
    AS $$
    DECLARE
      tbl RECORD;
    BEGIN
      IF queue_name IS NOT NULL THEN
        SELECT table_name INTO tbl_name FROM codemachine_queue.queue WHERE name = queue_name;
      END IF;

      IF tbl_name IS NOT NULL THEN
        EXECUTE codemachine_queue.job_table_format(command, tbl_name);
        RETURN;
      END IF;

      EXECUTE codemachine_queue.job_table_format(command, 'job_common');

      FOR tbl IN SELECT table_name FROM codemachine_queue.queue WHERE partition = true
      LOOP
        EXECUTE codemachine_queue.job_table_format(command, tbl.table_name);
      END LOOP;
    END;
    $$;


--
-- Name: job_table_run_async(text, integer, text, text, text); Type: FUNCTION; Schema: codemachine_queue; Owner: -
--

CREATE FUNCTION codemachine_queue.job_table_run_async(command_name text, version integer, command text, tbl_name text DEFAULT NULL::text, queue_name text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql
    AS $$
    BEGIN
      IF queue_name IS NOT NULL THEN
        SELECT table_name INTO tbl_name FROM codemachine_queue.queue WHERE name = queue_name;
      END IF;

      IF tbl_name IS NOT NULL THEN
        INSERT INTO codemachine_queue.bam (name, version, status, queue, table_name, command)
        VALUES (
          command_name,
          version,
          'pending',
          queue_name,
          tbl_name,
          codemachine_queue.job_table_format(command, tbl_name)
        );
        RETURN;
      END IF;

      INSERT INTO codemachine_queue.bam (name, version, status, queue, table_name, command)
      SELECT
        command_name,
        version,
        'pending',
        NULL,
        'job_common',
        codemachine_queue.job_table_format(command, 'job_common')
      UNION ALL
      SELECT
        command_name,
        version,
        'pending',
        queue.name,
        queue.table_name,
        codemachine_queue.job_table_format(command, queue.table_name)
      FROM codemachine_queue.queue
      WHERE partition = true;
    END;
    $$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: ask; Type: TABLE; Schema: codemachine; Owner: -
--

CREATE TABLE codemachine.ask (
    id bigint NOT NULL,
    session text NOT NULL,
    ask jsonb NOT NULL,
    asked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    asked_by text DEFAULT SESSION_USER NOT NULL,
    reply jsonb,
    replied_at timestamp with time zone
);


--
-- Name: ask_id_seq; Type: SEQUENCE; Schema: codemachine; Owner: -
--

ALTER TABLE codemachine.ask ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME codemachine.ask_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: event; Type: TABLE; Schema: codemachine; Owner: -
--

CREATE TABLE codemachine.event (
    session text NOT NULL,
    number bigint NOT NULL,
    epoch integer NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    line text NOT NULL
);


--
-- Name: session; Type: TABLE; Schema: codemachine; Owner: -
--

CREATE TABLE codemachine.session (
    id text NOT NULL,
    team text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by text DEFAULT SESSION_USER NOT NULL,
    repo text NOT NULL,
    ref text NOT NULL,
    base text,
    job jsonb NOT NULL,
    job_version integer NOT NULL,
    goal text NOT NULL,
    priority integer NOT NULL,
    tags text[] NOT NULL,
    not_before timestamp with time zone,
    deadline timestamp with time zone,
    after text,
    queue text NOT NULL,
    state text NOT NULL,
    reason text,
    epoch integer DEFAULT 0 NOT NULL,
    faults integer DEFAULT 0 NOT NULL,
    worker text,
    instance uuid,
    taken_at timestamp with time zone,
    seen_at timestamp with time zone,
    cancel_asked boolean DEFAULT false NOT NULL,
    events bigint DEFAULT 0 NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL,
    progress jsonb,
    outcome jsonb,
    branch text,
    report text,
    certificate jsonb,
    ended_at timestamp with time zone,
    CONSTRAINT session_state_check CHECK ((state = ANY (ARRAY['held'::text, 'waiting'::text, 'running'::text, 'ended'::text, 'cancelled'::text, 'dead'::text])))
);


--
-- Name: session_number; Type: SEQUENCE; Schema: codemachine; Owner: -
--

CREATE SEQUENCE codemachine.session_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: term; Type: TABLE; Schema: codemachine; Owner: -
--

CREATE TABLE codemachine.term (
    only_one boolean DEFAULT true NOT NULL,
    lease_seconds integer NOT NULL,
    per_repository integer NOT NULL,
    CONSTRAINT term_lease_seconds_check CHECK (((lease_seconds >= 10) AND (lease_seconds <= 3600))),
    CONSTRAINT term_only_one_check CHECK (only_one),
    CONSTRAINT term_per_repository_check CHECK (((per_repository >= 1) AND (per_repository <= 10000)))
);


--
-- Name: version; Type: TABLE; Schema: codemachine; Owner: -
--

CREATE TABLE codemachine.version (
    version integer NOT NULL
);


--
-- Name: worker; Type: TABLE; Schema: codemachine; Owner: -
--

CREATE TABLE codemachine.worker (
    name text NOT NULL,
    instance uuid NOT NULL,
    host text NOT NULL,
    place text NOT NULL,
    version text NOT NULL,
    started_by text DEFAULT SESSION_USER NOT NULL,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    clock_off_ms bigint NOT NULL,
    slots integer NOT NULL,
    tags text[] NOT NULL,
    repos text[] NOT NULL,
    drains boolean DEFAULT false NOT NULL,
    problem text,
    login jsonb,
    ended_at timestamp with time zone
);


--
-- Name: bam; Type: TABLE; Schema: codemachine_queue; Owner: -
--

CREATE TABLE codemachine_queue.bam (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    queue text,
    table_name text NOT NULL,
    command text NOT NULL,
    error text,
    created_on timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    started_on timestamp with time zone,
    completed_on timestamp with time zone
);


--
-- Name: job; Type: TABLE; Schema: codemachine_queue; Owner: -
--

CREATE TABLE codemachine_queue.job (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    priority integer DEFAULT 0 NOT NULL,
    data jsonb,
    state codemachine_queue.job_state DEFAULT 'created'::codemachine_queue.job_state NOT NULL,
    retry_limit integer DEFAULT 2 NOT NULL,
    retry_count integer DEFAULT 0 NOT NULL,
    retry_delay integer DEFAULT 0 NOT NULL,
    retry_backoff boolean DEFAULT false NOT NULL,
    retry_delay_max integer,
    expire_seconds integer DEFAULT 900 NOT NULL,
    deletion_seconds integer DEFAULT 604800 NOT NULL,
    singleton_key text,
    singleton_on timestamp without time zone,
    group_id text,
    group_tier text,
    start_after timestamp with time zone DEFAULT now() NOT NULL,
    created_on timestamp with time zone DEFAULT now() NOT NULL,
    started_on timestamp with time zone,
    completed_on timestamp with time zone,
    keep_until timestamp with time zone DEFAULT (now() + '336:00:00'::interval) NOT NULL,
    output jsonb,
    dead_letter text,
    policy text,
    heartbeat_on timestamp with time zone,
    heartbeat_seconds integer,
    blocked boolean DEFAULT false NOT NULL,
    blocking boolean DEFAULT false NOT NULL,
    pending_dependencies integer DEFAULT 0 NOT NULL,
    source_name text,
    source_id uuid,
    source_created_on timestamp with time zone,
    source_retry_count integer,
    source_output jsonb,
    source_root_id uuid
)
PARTITION BY LIST (name);


--
-- Name: job_common; Type: TABLE; Schema: codemachine_queue; Owner: -
--

CREATE TABLE codemachine_queue.job_common (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    priority integer DEFAULT 0 NOT NULL,
    data jsonb,
    state codemachine_queue.job_state DEFAULT 'created'::codemachine_queue.job_state NOT NULL,
    retry_limit integer DEFAULT 2 NOT NULL,
    retry_count integer DEFAULT 0 NOT NULL,
    retry_delay integer DEFAULT 0 NOT NULL,
    retry_backoff boolean DEFAULT false NOT NULL,
    retry_delay_max integer,
    expire_seconds integer DEFAULT 900 NOT NULL,
    deletion_seconds integer DEFAULT 604800 NOT NULL,
    singleton_key text,
    singleton_on timestamp without time zone,
    group_id text,
    group_tier text,
    start_after timestamp with time zone DEFAULT now() NOT NULL,
    created_on timestamp with time zone DEFAULT now() NOT NULL,
    started_on timestamp with time zone,
    completed_on timestamp with time zone,
    keep_until timestamp with time zone DEFAULT (now() + '336:00:00'::interval) NOT NULL,
    output jsonb,
    dead_letter text,
    policy text,
    heartbeat_on timestamp with time zone,
    heartbeat_seconds integer,
    blocked boolean DEFAULT false NOT NULL,
    blocking boolean DEFAULT false NOT NULL,
    pending_dependencies integer DEFAULT 0 NOT NULL,
    source_name text,
    source_id uuid,
    source_created_on timestamp with time zone,
    source_retry_count integer,
    source_output jsonb,
    source_root_id uuid,
    CONSTRAINT job_key_strict_fifo_singleton_key_check CHECK ((NOT ((policy = 'key_strict_fifo'::text) AND (singleton_key IS NULL))))
);


--
-- Name: job_dependency; Type: TABLE; Schema: codemachine_queue; Owner: -
--

CREATE TABLE codemachine_queue.job_dependency (
    child_name text NOT NULL,
    child_id uuid NOT NULL,
    parent_name text NOT NULL,
    parent_id uuid NOT NULL
);


--
-- Name: queue; Type: TABLE; Schema: codemachine_queue; Owner: -
--

CREATE TABLE codemachine_queue.queue (
    name text NOT NULL,
    policy text NOT NULL,
    retry_limit integer NOT NULL,
    retry_delay integer NOT NULL,
    retry_backoff boolean NOT NULL,
    retry_delay_max integer,
    expire_seconds integer NOT NULL,
    retention_seconds integer NOT NULL,
    deletion_seconds integer NOT NULL,
    dead_letter text,
    partition boolean NOT NULL,
    table_name text NOT NULL,
    deferred_count integer DEFAULT 0 NOT NULL,
    queued_count integer DEFAULT 0 NOT NULL,
    ready_count integer DEFAULT 0 NOT NULL,
    warning_queued integer DEFAULT 0 NOT NULL,
    active_count integer DEFAULT 0 NOT NULL,
    failed_count integer DEFAULT 0 NOT NULL,
    total_count integer DEFAULT 0 NOT NULL,
    created_delta integer DEFAULT 0 NOT NULL,
    completed_delta integer DEFAULT 0 NOT NULL,
    failed_delta integer DEFAULT 0 NOT NULL,
    delta_on timestamp with time zone,
    delta_seconds integer,
    ready_history integer[] DEFAULT '{}'::integer[] NOT NULL,
    heartbeat_seconds integer,
    notify boolean DEFAULT false NOT NULL,
    singletons_active text[],
    monitor_claim_on timestamp with time zone,
    monitor_on timestamp with time zone,
    maintain_on timestamp with time zone,
    created_on timestamp with time zone DEFAULT now() NOT NULL,
    updated_on timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT queue_check CHECK ((dead_letter IS DISTINCT FROM name))
);


--
-- Name: queue_stats; Type: TABLE; Schema: codemachine_queue; Owner: -
--

CREATE TABLE codemachine_queue.queue_stats (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    deferred_count integer DEFAULT 0 NOT NULL,
    queued_count integer DEFAULT 0 NOT NULL,
    ready_count integer DEFAULT 0 NOT NULL,
    active_count integer DEFAULT 0 NOT NULL,
    failed_count integer DEFAULT 0 NOT NULL,
    total_count integer DEFAULT 0 NOT NULL,
    created_delta integer,
    completed_delta integer,
    failed_delta integer,
    delta_seconds integer,
    delta_on timestamp with time zone,
    captured_on timestamp with time zone DEFAULT now() NOT NULL
)
PARTITION BY RANGE (captured_on);


--
-- Name: queue_stats_20261128; Type: TABLE; Schema: codemachine_queue; Owner: -
--

CREATE TABLE codemachine_queue.queue_stats_20261128 (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    deferred_count integer DEFAULT 0 NOT NULL,
    queued_count integer DEFAULT 0 NOT NULL,
    ready_count integer DEFAULT 0 NOT NULL,
    active_count integer DEFAULT 0 NOT NULL,
    failed_count integer DEFAULT 0 NOT NULL,
    total_count integer DEFAULT 0 NOT NULL,
    created_delta integer,
    completed_delta integer,
    failed_delta integer,
    delta_seconds integer,
    delta_on timestamp with time zone,
    captured_on timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: queue_stats_20261129; Type: TABLE; Schema: codemachine_queue; Owner: -
--

CREATE TABLE codemachine_queue.queue_stats_20261129 (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    deferred_count integer DEFAULT 0 NOT NULL,
    queued_count integer DEFAULT 0 NOT NULL,
    ready_count integer DEFAULT 0 NOT NULL,
    active_count integer DEFAULT 0 NOT NULL,
    failed_count integer DEFAULT 0 NOT NULL,
    total_count integer DEFAULT 0 NOT NULL,
    created_delta integer,
    completed_delta integer,
    failed_delta integer,
    delta_seconds integer,
    delta_on timestamp with time zone,
    captured_on timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: schedule; Type: TABLE; Schema: codemachine_queue; Owner: -
--

CREATE TABLE codemachine_queue.schedule (
    name text NOT NULL,
    key text DEFAULT ''::text NOT NULL,
    kind text DEFAULT 'cron'::text NOT NULL,
    cron text NOT NULL,
    timezone text DEFAULT 'UTC'::text,
    data jsonb,
    options jsonb,
    created_on timestamp with time zone DEFAULT now() NOT NULL,
    updated_on timestamp with time zone DEFAULT now() NOT NULL,
    last_job_id uuid,
    CONSTRAINT schedule_kind_check CHECK ((kind = ANY (ARRAY['cron'::text, 'rrule'::text])))
);


--
-- Name: subscription; Type: TABLE; Schema: codemachine_queue; Owner: -
--

CREATE TABLE codemachine_queue.subscription (
    event text NOT NULL,
    name text NOT NULL,
    created_on timestamp with time zone DEFAULT now() NOT NULL,
    updated_on timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: version; Type: TABLE; Schema: codemachine_queue; Owner: -
--

CREATE TABLE codemachine_queue.version (
    version integer NOT NULL,
    cron_on timestamp with time zone,
    bam_on timestamp with time zone,
    flow_on timestamp with time zone,
    reindex_on timestamp with time zone,
    monitor_backoff_on timestamp with time zone
);


--
-- Name: warning; Type: TABLE; Schema: codemachine_queue; Owner: -
--

CREATE TABLE codemachine_queue.warning (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    type text NOT NULL,
    message text NOT NULL,
    data jsonb,
    created_on timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: job_common; Type: TABLE ATTACH; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.job ATTACH PARTITION codemachine_queue.job_common DEFAULT;


--
-- Name: queue_stats_20261128; Type: TABLE ATTACH; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.queue_stats ATTACH PARTITION codemachine_queue.queue_stats_20261128 FOR VALUES FROM ('2026-11-28 00:00:00+00') TO ('2026-11-29 00:00:00+00');


--
-- Name: queue_stats_20261129; Type: TABLE ATTACH; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.queue_stats ATTACH PARTITION codemachine_queue.queue_stats_20261129 FOR VALUES FROM ('2026-11-29 00:00:00+00') TO ('2026-11-30 00:00:00+00');


--
-- Data for Name: ask; Type: TABLE DATA; Schema: codemachine; Owner: -
--



--
-- Data for Name: event; Type: TABLE DATA; Schema: codemachine; Owner: -
--

INSERT INTO codemachine.event VALUES
	('20261128_1', 1, 1, '2026-11-28 12:31:30.508057+00', '{"type":"session-started","n":1}');


--
-- Data for Name: session; Type: TABLE DATA; Schema: codemachine; Owner: -
--

INSERT INTO codemachine.session VALUES
	('20261128_1', '', '2026-11-28 12:31:30.454563+00', 'postgres', 'git@host:team/app.git', 'main', NULL, '{"goal": "mend the door", "gates": ["npm test"], "limits": {"rounds": 8}, "template": null}', 1, 'mend the door', 0, '{}', NULL, NULL, NULL, 'sessions-1', 'ended', NULL, 1, 0, 'w1', '183b2655-7e07-4d58-93e0-36c39c4e9181', '2026-11-28 12:31:30.501274+00', '2026-11-28 12:31:30.508984+00', false, 1, 32, '{"round": 1, "rounds": 8}', '{"kind": "done"}', 'codemachine/x', '# Report', NULL, '2026-11-28 12:31:30.510613+00'),
	('20261128_2', '', '2026-11-28 12:31:30.520093+00', 'postgres', 'git@host:team/app.git', 'main', NULL, '{"goal": "mend the door", "gates": ["npm test"], "limits": {"rounds": 8}, "template": null}', 1, 'mend the door', 0, '{}', NULL, NULL, NULL, 'sessions-1', 'running', NULL, 1, 0, 'w1', '183b2655-7e07-4d58-93e0-36c39c4e9181', '2026-11-28 12:31:30.533459+00', '2026-11-28 12:31:30.533459+00', false, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('20261128_3', '', '2026-11-28 12:31:30.53538+00', 'postgres', 'git@host:team/app.git', 'main', NULL, '{"goal": "mend the door", "gates": ["npm test"], "limits": {"rounds": 8}, "template": "build"}', 1, 'mend the door', 0, '{}', NULL, NULL, NULL, 'sessions-1', 'waiting', NULL, 0, 0, NULL, NULL, NULL, NULL, false, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('20261128_4', '', '2026-11-28 12:31:30.53538+00', 'postgres', 'git@host:team/app.git', 'main', NULL, '{"goal": "mend the door", "gates": ["npm test"], "limits": {"rounds": 8}, "template": null}', 1, 'mend the door', 0, '{gpu}', NULL, NULL, NULL, 'sessions-1/gpu', 'waiting', NULL, 0, 0, NULL, NULL, NULL, NULL, false, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('20261128_5', '', '2026-11-28 12:31:30.53538+00', 'postgres', 'git@host:team/app.git', 'main', NULL, '{"goal": "mend the door", "gates": ["npm test"], "limits": {"rounds": 8}, "template": "build"}', 1, 'mend the door', 0, '{}', NULL, NULL, '20261128_3', 'sessions-1', 'held', NULL, 0, 0, NULL, NULL, NULL, NULL, false, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: term; Type: TABLE DATA; Schema: codemachine; Owner: -
--

INSERT INTO codemachine.term VALUES
	(true, 3600, 4);


--
-- Data for Name: version; Type: TABLE DATA; Schema: codemachine; Owner: -
--

INSERT INTO codemachine.version VALUES
	(1);


--
-- Data for Name: worker; Type: TABLE DATA; Schema: codemachine; Owner: -
--

INSERT INTO codemachine.worker VALUES
	('w1', '183b2655-7e07-4d58-93e0-36c39c4e9181', 'host', 'host:/w1', '0.1.0', 'postgres', '2026-11-28 12:31:30.550932+00', '2026-11-28 12:31:30.550932+00', 3, 2, '{}', '{}', false, NULL, NULL, NULL);


--
-- Data for Name: bam; Type: TABLE DATA; Schema: codemachine_queue; Owner: -
--



--
-- Data for Name: job_common; Type: TABLE DATA; Schema: codemachine_queue; Owner: -
--

INSERT INTO codemachine_queue.job_common VALUES
	('3d76ee1b-b0ef-4679-850d-021ed13077dc', 'sessions-1', 0, '{"session": "20261128_1"}', 'completed', 20, 0, 0, false, NULL, 86400, 86400, NULL, NULL, '574f53c782f4c387ad2d8397', NULL, '2026-11-28 12:31:30.454563+00', '2026-11-28 12:31:30.454563+00', '2026-11-28 12:31:30.48685+00', '2026-11-28 12:31:30.510613+00', '2036-11-25 12:31:30.454563+00', NULL, 'dead', 'standard', '2026-11-28 12:31:30.48685+00', 3600, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('3ab055a4-5a9f-4b00-becc-b56297969d70', 'sessions-1', 0, '{"session": "20261128_2"}', 'active', 20, 0, 0, false, NULL, 86400, 86400, NULL, NULL, '574f53c782f4c387ad2d8397', NULL, '2026-11-28 12:31:30.520093+00', '2026-11-28 12:31:30.520093+00', '2026-11-28 12:31:30.526039+00', NULL, '2036-11-25 12:31:30.520093+00', NULL, 'dead', 'standard', '2026-11-28 12:31:30.526039+00', 3600, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('c718289c-94a3-4852-a5c9-bc6684398221', 'sessions-1', 0, '{"session": "20261128_3"}', 'created', 20, 0, 0, false, NULL, 86400, 86400, NULL, NULL, '574f53c782f4c387ad2d8397', NULL, '2026-11-28 12:31:30.53538+00', '2026-11-28 12:31:30.53538+00', NULL, NULL, '2036-11-25 12:31:30.53538+00', NULL, 'dead', 'standard', NULL, 3600, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL),
	('dbf0e47a-7d48-47b8-a57a-f95e66c259f9', 'sessions-1/gpu', 0, '{"session": "20261128_4"}', 'created', 20, 0, 0, false, NULL, 86400, 86400, NULL, NULL, '574f53c782f4c387ad2d8397', NULL, '2026-11-28 12:31:30.53538+00', '2026-11-28 12:31:30.53538+00', NULL, NULL, '2036-11-25 12:31:30.53538+00', NULL, 'dead', 'standard', NULL, 3600, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: job_dependency; Type: TABLE DATA; Schema: codemachine_queue; Owner: -
--



--
-- Data for Name: queue; Type: TABLE DATA; Schema: codemachine_queue; Owner: -
--

INSERT INTO codemachine_queue.queue VALUES
	('dead', 'standard', 2, 0, false, NULL, 900, 315360000, 86400, NULL, false, 'job_common', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, '{}', NULL, false, NULL, NULL, NULL, NULL, '2026-11-28 12:31:30.473475+00', '2026-11-28 12:31:30.473475+00'),
	('sessions-1', 'standard', 20, 0, false, NULL, 86400, 315360000, 86400, 'dead', false, 'job_common', 0, 0, 0, 1000000, 0, 0, 0, 0, 0, 0, NULL, NULL, '{}', 3600, false, NULL, NULL, NULL, NULL, '2026-11-28 12:31:30.479101+00', '2026-11-28 12:31:30.479101+00'),
	('sessions-1/gpu', 'standard', 20, 0, false, NULL, 86400, 315360000, 86400, 'dead', false, 'job_common', 0, 0, 0, 1000000, 0, 0, 0, 0, 0, 0, NULL, NULL, '{}', 3600, false, NULL, NULL, NULL, NULL, '2026-11-28 12:31:30.54468+00', '2026-11-28 12:31:30.54468+00');


--
-- Data for Name: queue_stats_20261128; Type: TABLE DATA; Schema: codemachine_queue; Owner: -
--



--
-- Data for Name: queue_stats_20261129; Type: TABLE DATA; Schema: codemachine_queue; Owner: -
--



--
-- Data for Name: schedule; Type: TABLE DATA; Schema: codemachine_queue; Owner: -
--



--
-- Data for Name: subscription; Type: TABLE DATA; Schema: codemachine_queue; Owner: -
--



--
-- Data for Name: version; Type: TABLE DATA; Schema: codemachine_queue; Owner: -
--

INSERT INTO codemachine_queue.version VALUES
	(43, NULL, '2026-11-28 12:31:30.314645+00', NULL, NULL, NULL);


--
-- Data for Name: warning; Type: TABLE DATA; Schema: codemachine_queue; Owner: -
--



--
-- Name: ask_id_seq; Type: SEQUENCE SET; Schema: codemachine; Owner: -
--

SELECT pg_catalog.setval('codemachine.ask_id_seq', 1, false);


--
-- Name: session_number; Type: SEQUENCE SET; Schema: codemachine; Owner: -
--

SELECT pg_catalog.setval('codemachine.session_number', 5, true);


--
-- Name: ask ask_pkey; Type: CONSTRAINT; Schema: codemachine; Owner: -
--

ALTER TABLE ONLY codemachine.ask
    ADD CONSTRAINT ask_pkey PRIMARY KEY (id);


--
-- Name: event event_pkey; Type: CONSTRAINT; Schema: codemachine; Owner: -
--

ALTER TABLE ONLY codemachine.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (session, number);


--
-- Name: session session_pkey; Type: CONSTRAINT; Schema: codemachine; Owner: -
--

ALTER TABLE ONLY codemachine.session
    ADD CONSTRAINT session_pkey PRIMARY KEY (id);


--
-- Name: term term_pkey; Type: CONSTRAINT; Schema: codemachine; Owner: -
--

ALTER TABLE ONLY codemachine.term
    ADD CONSTRAINT term_pkey PRIMARY KEY (only_one);


--
-- Name: worker worker_pkey; Type: CONSTRAINT; Schema: codemachine; Owner: -
--

ALTER TABLE ONLY codemachine.worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (name);


--
-- Name: bam bam_pkey; Type: CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.bam
    ADD CONSTRAINT bam_pkey PRIMARY KEY (id);


--
-- Name: job job_pkey; Type: CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (name, id);


--
-- Name: job_common job_common_pkey; Type: CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.job_common
    ADD CONSTRAINT job_common_pkey PRIMARY KEY (name, id);


--
-- Name: job_dependency job_dependency_pkey; Type: CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.job_dependency
    ADD CONSTRAINT job_dependency_pkey PRIMARY KEY (child_name, child_id, parent_name, parent_id);


--
-- Name: queue queue_pkey; Type: CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (name);


--
-- Name: queue_stats queue_stats_pkey; Type: CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.queue_stats
    ADD CONSTRAINT queue_stats_pkey PRIMARY KEY (id, captured_on);


--
-- Name: queue_stats_20261128 queue_stats_20261128_pkey; Type: CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.queue_stats_20261128
    ADD CONSTRAINT queue_stats_20261128_pkey PRIMARY KEY (id, captured_on);


--
-- Name: queue_stats_20261129 queue_stats_20261129_pkey; Type: CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.queue_stats_20261129
    ADD CONSTRAINT queue_stats_20261129_pkey PRIMARY KEY (id, captured_on);


--
-- Name: schedule schedule_pkey; Type: CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.schedule
    ADD CONSTRAINT schedule_pkey PRIMARY KEY (name, key);


--
-- Name: subscription subscription_pkey; Type: CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.subscription
    ADD CONSTRAINT subscription_pkey PRIMARY KEY (event, name);


--
-- Name: version version_pkey; Type: CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.version
    ADD CONSTRAINT version_pkey PRIMARY KEY (version);


--
-- Name: warning warning_pkey; Type: CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.warning
    ADD CONSTRAINT warning_pkey PRIMARY KEY (id);


--
-- Name: ask_open; Type: INDEX; Schema: codemachine; Owner: -
--

CREATE INDEX ask_open ON codemachine.ask USING btree (session) WHERE (reply IS NULL);


--
-- Name: session_after; Type: INDEX; Schema: codemachine; Owner: -
--

CREATE INDEX session_after ON codemachine.session USING btree (after) WHERE (state = 'held'::text);


--
-- Name: session_by_repo; Type: INDEX; Schema: codemachine; Owner: -
--

CREATE INDEX session_by_repo ON codemachine.session USING btree (team, repo) WHERE (state = ANY (ARRAY['waiting'::text, 'running'::text]));


--
-- Name: session_by_state; Type: INDEX; Schema: codemachine; Owner: -
--

CREATE INDEX session_by_state ON codemachine.session USING btree (state, created_at);


--
-- Name: session_ended; Type: INDEX; Schema: codemachine; Owner: -
--

CREATE INDEX session_ended ON codemachine.session USING btree (ended_at) WHERE (ended_at IS NOT NULL);


--
-- Name: job_common_i1; Type: INDEX; Schema: codemachine_queue; Owner: -
--

CREATE UNIQUE INDEX job_common_i1 ON codemachine_queue.job_common USING btree (name, COALESCE(singleton_key, ''::text)) WHERE ((state = 'created'::codemachine_queue.job_state) AND (policy = 'short'::text));


--
-- Name: job_common_i10; Type: INDEX; Schema: codemachine_queue; Owner: -
--

CREATE INDEX job_common_i10 ON codemachine_queue.job_common USING btree (name, singleton_key, state DESC, created_on, id) INCLUDE (start_after) WHERE ((state < 'active'::codemachine_queue.job_state) AND (NOT blocked) AND (policy = 'key_strict_fifo'::text));


--
-- Name: job_common_i11; Type: INDEX; Schema: codemachine_queue; Owner: -
--

CREATE INDEX job_common_i11 ON codemachine_queue.job_common USING btree (name, priority DESC, created_on, start_after) WHERE ((state < 'active'::codemachine_queue.job_state) AND (NOT blocked));


--
-- Name: job_common_i12; Type: INDEX; Schema: codemachine_queue; Owner: -
--

CREATE INDEX job_common_i12 ON codemachine_queue.job_common USING btree (source_root_id) WHERE (source_root_id IS NOT NULL);


--
-- Name: job_common_i2; Type: INDEX; Schema: codemachine_queue; Owner: -
--

CREATE UNIQUE INDEX job_common_i2 ON codemachine_queue.job_common USING btree (name, COALESCE(singleton_key, ''::text)) WHERE ((state = 'active'::codemachine_queue.job_state) AND (policy = 'singleton'::text));


--
-- Name: job_common_i3; Type: INDEX; Schema: codemachine_queue; Owner: -
--

CREATE UNIQUE INDEX job_common_i3 ON codemachine_queue.job_common USING btree (name, state, COALESCE(singleton_key, ''::text)) WHERE ((state <= 'active'::codemachine_queue.job_state) AND (policy = 'stately'::text));


--
-- Name: job_common_i4; Type: INDEX; Schema: codemachine_queue; Owner: -
--

CREATE UNIQUE INDEX job_common_i4 ON codemachine_queue.job_common USING btree (name, singleton_on, COALESCE(singleton_key, ''::text)) WHERE ((state <> 'cancelled'::codemachine_queue.job_state) AND (singleton_on IS NOT NULL));


--
-- Name: job_common_i6; Type: INDEX; Schema: codemachine_queue; Owner: -
--

CREATE UNIQUE INDEX job_common_i6 ON codemachine_queue.job_common USING btree (name, COALESCE(singleton_key, ''::text)) WHERE ((state <= 'active'::codemachine_queue.job_state) AND (policy = 'exclusive'::text));


--
-- Name: job_common_i7; Type: INDEX; Schema: codemachine_queue; Owner: -
--

CREATE INDEX job_common_i7 ON codemachine_queue.job_common USING btree (name, group_id) WHERE ((state = 'active'::codemachine_queue.job_state) AND (group_id IS NOT NULL));


--
-- Name: job_common_i8; Type: INDEX; Schema: codemachine_queue; Owner: -
--

CREATE UNIQUE INDEX job_common_i8 ON codemachine_queue.job_common USING btree (name, singleton_key) WHERE ((state = ANY (ARRAY['active'::codemachine_queue.job_state, 'retry'::codemachine_queue.job_state, 'failed'::codemachine_queue.job_state])) AND (policy = 'key_strict_fifo'::text));


--
-- Name: job_common_i9; Type: INDEX; Schema: codemachine_queue; Owner: -
--

CREATE INDEX job_common_i9 ON codemachine_queue.job_common USING btree (name, id) WHERE (blocking AND (state = 'completed'::codemachine_queue.job_state));


--
-- Name: job_dep_parent_idx; Type: INDEX; Schema: codemachine_queue; Owner: -
--

CREATE INDEX job_dep_parent_idx ON codemachine_queue.job_dependency USING btree (parent_name, parent_id);


--
-- Name: queue_stats_i1; Type: INDEX; Schema: codemachine_queue; Owner: -
--

CREATE INDEX queue_stats_i1 ON ONLY codemachine_queue.queue_stats USING btree (name, captured_on DESC) INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);


--
-- Name: queue_stats_20261128_name_captured_on_deferred_count_queued_idx; Type: INDEX; Schema: codemachine_queue; Owner: -
--

CREATE INDEX queue_stats_20261128_name_captured_on_deferred_count_queued_idx ON codemachine_queue.queue_stats_20261128 USING btree (name, captured_on DESC) INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);


--
-- Name: queue_stats_20261129_name_captured_on_deferred_count_queued_idx; Type: INDEX; Schema: codemachine_queue; Owner: -
--

CREATE INDEX queue_stats_20261129_name_captured_on_deferred_count_queued_idx ON codemachine_queue.queue_stats_20261129 USING btree (name, captured_on DESC) INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);


--
-- Name: warning_i1; Type: INDEX; Schema: codemachine_queue; Owner: -
--

CREATE INDEX warning_i1 ON codemachine_queue.warning USING btree (created_on DESC);


--
-- Name: job_common_pkey; Type: INDEX ATTACH; Schema: codemachine_queue; Owner: -
--

ALTER INDEX codemachine_queue.job_pkey ATTACH PARTITION codemachine_queue.job_common_pkey;


--
-- Name: queue_stats_20261128_name_captured_on_deferred_count_queued_idx; Type: INDEX ATTACH; Schema: codemachine_queue; Owner: -
--

ALTER INDEX codemachine_queue.queue_stats_i1 ATTACH PARTITION codemachine_queue.queue_stats_20261128_name_captured_on_deferred_count_queued_idx;


--
-- Name: queue_stats_20261128_pkey; Type: INDEX ATTACH; Schema: codemachine_queue; Owner: -
--

ALTER INDEX codemachine_queue.queue_stats_pkey ATTACH PARTITION codemachine_queue.queue_stats_20261128_pkey;


--
-- Name: queue_stats_20261129_name_captured_on_deferred_count_queued_idx; Type: INDEX ATTACH; Schema: codemachine_queue; Owner: -
--

ALTER INDEX codemachine_queue.queue_stats_i1 ATTACH PARTITION codemachine_queue.queue_stats_20261129_name_captured_on_deferred_count_queued_idx;


--
-- Name: queue_stats_20261129_pkey; Type: INDEX ATTACH; Schema: codemachine_queue; Owner: -
--

ALTER INDEX codemachine_queue.queue_stats_pkey ATTACH PARTITION codemachine_queue.queue_stats_20261129_pkey;


--
-- Name: ask ask_session_fkey; Type: FK CONSTRAINT; Schema: codemachine; Owner: -
--

ALTER TABLE ONLY codemachine.ask
    ADD CONSTRAINT ask_session_fkey FOREIGN KEY (session) REFERENCES codemachine.session(id) ON DELETE CASCADE;


--
-- Name: event event_session_fkey; Type: FK CONSTRAINT; Schema: codemachine; Owner: -
--

ALTER TABLE ONLY codemachine.event
    ADD CONSTRAINT event_session_fkey FOREIGN KEY (session) REFERENCES codemachine.session(id) ON DELETE CASCADE;


--
-- Name: job_common dlq_fkey; Type: FK CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.job_common
    ADD CONSTRAINT dlq_fkey FOREIGN KEY (dead_letter) REFERENCES codemachine_queue.queue(name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED;


--
-- Name: job_common q_fkey; Type: FK CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.job_common
    ADD CONSTRAINT q_fkey FOREIGN KEY (name) REFERENCES codemachine_queue.queue(name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED;


--
-- Name: queue queue_dead_letter_fkey; Type: FK CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.queue
    ADD CONSTRAINT queue_dead_letter_fkey FOREIGN KEY (dead_letter) REFERENCES codemachine_queue.queue(name);


--
-- Name: schedule schedule_name_fkey; Type: FK CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.schedule
    ADD CONSTRAINT schedule_name_fkey FOREIGN KEY (name) REFERENCES codemachine_queue.queue(name) ON DELETE CASCADE;


--
-- Name: subscription subscription_name_fkey; Type: FK CONSTRAINT; Schema: codemachine_queue; Owner: -
--

ALTER TABLE ONLY codemachine_queue.subscription
    ADD CONSTRAINT subscription_name_fkey FOREIGN KEY (name) REFERENCES codemachine_queue.queue(name) ON DELETE CASCADE;


--
-- Name: ask; Type: ROW SECURITY; Schema: codemachine; Owner: -
--

ALTER TABLE codemachine.ask ENABLE ROW LEVEL SECURITY;

--
-- Name: event; Type: ROW SECURITY; Schema: codemachine; Owner: -
--

ALTER TABLE codemachine.event ENABLE ROW LEVEL SECURITY;

--
-- Name: ask of_team; Type: POLICY; Schema: codemachine; Owner: -
--

CREATE POLICY of_team ON codemachine.ask USING ((EXISTS ( SELECT
   FROM codemachine.session s
  WHERE (s.id = ask.session))));


--
-- Name: event of_team; Type: POLICY; Schema: codemachine; Owner: -
--

CREATE POLICY of_team ON codemachine.event USING ((EXISTS ( SELECT
   FROM codemachine.session s
  WHERE (s.id = event.session))));


--
-- Name: session of_team; Type: POLICY; Schema: codemachine; Owner: -
--

CREATE POLICY of_team ON codemachine.session USING (codemachine.is_mine(team));


--
-- Name: session; Type: ROW SECURITY; Schema: codemachine; Owner: -
--

ALTER TABLE codemachine.session ENABLE ROW LEVEL SECURITY;

--
-- PostgreSQL database dump complete
--


