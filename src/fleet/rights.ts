/** What the roles may do in both schemas, as statements that may be said again and again. */
const SUBMIT = 'codemachine_submit'
const WORK = 'codemachine_work'
const ALL = `${SUBMIT}, ${WORK}, codemachine_look`
const SCHEMAS = 'codemachine, codemachine_queue'

/** What a worker writes down of a session. Who may submit changes none of it but by functions. */
const SESSION_COLUMNS =
  'state, reason, epoch, faults, worker, instance, taken_at, seen_at, base, outcome, branch, report, certificate, ended_at'
const WORKER_COLUMNS = 'name, instance, host, place, version, clock_off_ms, slots, tags, repos, templates'

/** The sessions of one's own teams, and those of none. Looked up once for each statement. */
const OWN_TEAMS = '((select codemachine.my_teams())::text[])'
/** The team of a lane, by its name: `sessions-1.shop/_goal`, `dead.shop`. */
const TEAM_OF_LANE = `split_part(split_part(name, '/', 1), '.', 2)`

const POLICIES: Readonly<Record<string, string>> = {
  'codemachine.session': `team = any ${OWN_TEAMS}`,
  'codemachine.event': 'exists (select from codemachine.session s where s.id = session)',
  'codemachine.ask': 'exists (select from codemachine.session s where s.id = session)',
  'codemachine_queue.queue': `${TEAM_OF_LANE} = any ${OWN_TEAMS}`,
  // pg-boss names the one and the other.
  'codemachine_queue.job': `${TEAM_OF_LANE} = any ${OWN_TEAMS}`,
  'codemachine_queue.job_common': `${TEAM_OF_LANE} = any ${OWN_TEAMS}`,
}

/** Takes back what earlier versions gave, and gives what this one wants. Whoever says them owns both schemas. */
export const GRANTS: readonly string[] = [
  `revoke all on all tables in schema ${SCHEMAS} from public, ${ALL}`,
  `revoke all on all sequences in schema ${SCHEMAS} from public, ${ALL}`,
  `revoke all on all functions in schema ${SCHEMAS} from public, ${ALL}`,
  `grant usage on schema ${SCHEMAS} to ${ALL}`,
  `grant select on codemachine.session, codemachine.event, codemachine.ask, codemachine.worker, codemachine.term, codemachine.version to ${ALL}`,
  `grant select on codemachine_queue.version, codemachine_queue.queue to ${ALL}`,
  `grant execute on function codemachine.my_teams(), codemachine.is_mine(text), codemachine.sees_all(), codemachine.sees(text) to ${ALL}`,
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
