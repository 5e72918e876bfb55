import { stat } from 'node:fs/promises'
import { parse } from 'node:path'
import { UserError } from '../base/errors.ts'
import { version } from '../base/package.ts'
import { formatBytes } from '../base/text.ts'
import { USUAL_TEMPLATE } from '../modes/registry.ts'
import { runProcess } from '../platform/run-process.ts'
import { type CheckRun, type OnLate, ok, openCheckRun, problem, warning } from '../project/doctor/checks.ts'
import type { World } from '../project/world.ts'
import type { Finding } from '../tell/words/doctor.ts'
import { formatCount } from '../tell/words/numbers.ts'
import { oneLine } from '../tell/words/safe-text.ts'
import { findGit } from '../workspace/git/find-git.ts'
import { type Database, DatabaseAway, packagePgBoss, START_LOCAL } from './database.ts'
import { fleetDatabase } from './fleet.ts'
import { JOB_VERSION } from './jobs.ts'
import { countStates, type FleetWorker, listSessions, listWorkers } from './look.ts'
import { openQueue, runsTemplate } from './queue.ts'
import { isLocal, takesRepo } from './repos.ts'
import { type FleetTerms, fleetTerms, QUEUE_SCHEMA, ROLES, roleOfTeam, SCHEMA } from './schema.ts'
import { TEMPLATE } from './store.ts'
import { remoteEnvironment } from './worker/clones.ts'

/** Timeout of one check of a busy database, ms. */
const LOOK_MS = 20_000
/** Timeout of a remote, ms. */
const REMOTE_MS = 15_000
const MOST_REMOTES = 20
/** Most findings of a kind that are listed singly. */
const MOST_TOLD = 10
/** Largest harmless clock difference, ms. */
const CLOCK_MS = 2_000
/** Table size above which a database on a usual machine is slow, bytes. */
const LARGE_BYTES = 50 * 1024 ** 3

/**
 * Checks everything that a fleet needs, and yields the findings of each check in order. Changes nothing; all its processes
 * have ended when it returns.
 * @param options `queue`: what `--queue` says; `offline`: whether the remotes are left alone
 */
export async function* examineFleet(
  world: World,
  { queue, offline, onLate }: { queue: string | undefined; offline: boolean; onLate: OnLate },
): AsyncGenerator<readonly Finding[]> {
  await using run = await openCheckRun(world, onLate)
  const packages = await run.look('packages', LOOK_MS, checkPackages)
  yield packages
  if (isBroken(packages)) return
  const opened = await run.check('database', LOOK_MS, async () => ({
    findings: [],
    value: await fleetDatabase(world, queue),
  }))
  yield opened.findings
  if (opened.value === null) return
  await using database = opened.value
  const reached = await run.look('database', LOOK_MS, () =>
    checkDatabase(world, database).catch(awayAsFinding(database)),
  )
  yield reached
  if (reached.every(({ check }) => check !== 'clock')) return
  const rights = await run.look('rights', LOOK_MS, () => checkRights(database))
  yield rights
  if (isBroken(rights)) return
  const schema = await run.check('schema', LOOK_MS, () => checkSchema(database))
  yield schema.findings
  const terms = schema.value
  if (terms === null) return
  yield await run.look('size', LOOK_MS, () => checkSize(database))
  const workers = await run.check('workers', LOOK_MS, () => checkWorkers(world, database, terms))
  yield workers.findings
  yield await run.look('queue', LOOK_MS, () => checkQueue(database, workers.value ?? []))
  if (!offline) yield await run.look('remote', LOOK_MS * 3, () => checkRemotes(run, database))
}

function isBroken(findings: readonly Finding[]): boolean {
  return findings.some(({ status }) => status === 'problem')
}

async function checkPackages(): Promise<Finding[]> {
  await packagePgBoss()
  return [ok('packages', 'pg and pg-boss are installed')]
}

async function checkDatabase({ clock }: World, { sql, place }: Database): Promise<Finding[]> {
  const before = clock.now()
  const [row] = await sql<{
    version: string
    login: string
    is_read_only: boolean
    is_encrypted: boolean | null
    now_ms: string
  }>(
    `select current_setting('server_version') as version, session_user as login,
       pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean as is_read_only,
       (select ssl from pg_stat_ssl where pid = pg_backend_pid()) as is_encrypted,
       (extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms`,
  )
  if (row === undefined) return []
  const how = row.is_encrypted === true ? 'encrypted' : 'on this machine, not encrypted'
  const what = `PostgreSQL ${row.version} at ${place} as ${row.login}, ${how}`
  const reached = row.is_read_only
    ? problem('database', `${what}: it is read-only.`, 'Is it a replica? Name the one that takes writes.', 'CM1107')
    : ok('database', what)
  // The answer is from a time between the two.
  const off = Math.round((before + clock.now()) / 2 - Number(row.now_ms))
  return [reached, clockFinding('the clock of this machine', off)]
}

function awayAsFinding({ place }: Database): (error: unknown) => Finding[] {
  const mend = place.startsWith('/')
    ? START_LOCAL
    : 'Check that PostgreSQL runs there, listens on that address, and lets this machine in (pg_hba.conf, firewall).'
  return error => {
    if (!(error instanceof DatabaseAway)) throw error
    return [problem('database', error.message, mend)]
  }
}

function clockFinding(whose: string, offMs: number): Finding {
  const seconds = (Math.abs(offMs) / 1_000).toFixed(1)
  if (Math.abs(offMs) < CLOCK_MS) return ok('clock', `${whose} is off by ${seconds} s`)
  const which = offMs > 0 ? 'ahead of' : 'behind'
  return warning(
    'clock',
    `${whose} is ${seconds} s ${which} the clock of the database, which the fleet uses.`,
    'Let the network set it, such as with systemd-timesyncd or chrony.',
  )
}

async function checkRights({ sql, place }: Database): Promise<Finding[]> {
  const [me] = await sql<{ login: string; is_super: boolean; owner: string | null; owns: boolean | null }>(
    `select session_user as login, (select rolsuper from pg_roles where rolname = session_user) as is_super,
       pg_get_userbyid(n.nspowner) as owner, pg_has_role(session_user, n.nspowner, 'usage') as owns
     from (select to_regnamespace('${SCHEMA}')::oid as found) f left join pg_namespace n on n.oid = f.found`,
  )
  if (me === undefined) return []
  if (me.owner === null)
    return [
      problem(
        'schema',
        `The database at ${place} is not set up for a fleet.`,
        'Its owner types: codemachine fleet setup',
      ),
    ]
  const rows = await sql<{ role: string; is_member: boolean }>(
    `select rolname as role, pg_has_role(session_user, oid, 'member') as is_member from pg_roles where rolname like 'codemachine\\_%' order by 1`,
  )
  const teams = rows.flatMap(({ role, is_member }) => {
    const team = role.startsWith(roleOfTeam('')) ? role.slice(roleOfTeam('').length) : null
    return team !== null && is_member ? [team] : []
  })
  const has = rows.flatMap(({ role, is_member }) => (is_member && Object.hasOwn(ROLES, role) ? [role] : []))
  const inTeams =
    teams.length === 0 ? 'in no team' : `in ${teams.length === 1 ? 'the team' : 'the teams'} ${teams.join(', ')}`
  if (me.is_super || me.owns === true)
    return [
      ok(
        'rights',
        `${me.login} ${me.is_super ? 'is a superuser' : `owns the fleet (as ${me.owner})`}, and sees every team`,
      ),
    ]
  if (has.length > 0) return [ok('rights', `${me.login} is in ${has.join(', ')}, and ${inTeams}`)]
  return [
    problem(
      'rights',
      `${me.login} may not use the fleet: it has none of the fleet's roles.`,
      `Have ${me.owner} do this: grant codemachine_look to "${me.login}"; (or codemachine_submit, codemachine_work)`,
    ),
  ]
}

async function checkSchema(database: Database): Promise<{ findings: Finding[]; value: FleetTerms | null }> {
  const terms = await fleetTerms(database)
  const { leaseSeconds, perRepository } = terms
  const says = `a worker that is silent for ${leaseSeconds} s loses its sessions; at most ${formatCount(perRepository, 'session')} of one repository run at once`
  try {
    const queue = await openQueue(database, terms, () => {})
    await queue[Symbol.asyncDispose]()
  } catch (error) {
    if (error instanceof UserError) throw error
    const mend = 'Its owner types codemachine fleet setup, with the same version of pg-boss as the workers.'
    return { findings: [problem('schema', `pg-boss cannot use ${QUEUE_SCHEMA}: ${String(error)}`, mend)], value: null }
  }
  return { findings: [ok('schema', says)], value: terms }
}

async function checkSize({ sql }: Database): Promise<Finding[]> {
  const [row] = await sql<{ bytes: string; sessions: string; ended: string }>(
    `select (select coalesce(sum(pg_total_relation_size(c.oid)), 0) from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname in ('${SCHEMA}', '${QUEUE_SCHEMA}') and c.relkind in ('r', 'm'))::bigint as bytes,
       count(*) as sessions, count(ended_at) as ended from ${SCHEMA}.session`,
  )
  if (row === undefined) return []
  const bytes = Number(row.bytes)
  const what = `${formatCount(Number(row.sessions), 'session')}, ${row.ended} of them over, in ${formatBytes(bytes)}`
  if (bytes < LARGE_BYTES) return [ok('size', what)]
  return [warning('size', what, 'Remove ended sessions: codemachine fleet prune --older 30d')]
}

/** Age in days after which lost workers are not reported. */
const MOST_DAYS = 7

/** Checks the workers that have not ended; the value: those that accept sessions now. */
async function checkWorkers(
  { clock }: World,
  { sql }: Database,
  { leaseSeconds }: FleetTerms,
): Promise<{ findings: Finding[]; value: FleetWorker[] }> {
  const workers = (await listWorkers(sql, leaseSeconds, MOST_DAYS)).filter(({ standing }) => standing !== 'ended')
  const alive = workers.filter(({ standing }) => standing === 'runs')
  const odd = workers.flatMap(worker => oddOf(worker, clock.now()))
  const beyond = odd.length - MOST_TOLD
  const told = odd.slice(0, MOST_TOLD)
  if (beyond > 0) told.push(warning('workers', `There are more of these: ${beyond}.`, 'codemachine fleet status'))
  const first =
    alive.length === 0
      ? warning('workers', 'No worker runs.', 'On a machine where codex is logged in, type: codemachine worker')
      : ok('workers', `${alive.length}: ${alive.map(({ name }) => name).join(', ')}`)
  return { findings: [first, ...told], value: alive.filter(({ drains }) => !drains) }
}

function oddOf({ name, host, standing, seenAt, drains, problem: says, ...row }: FleetWorker, now: number): Finding[] {
  const who = `${name} on ${host}`
  if (standing === 'lost')
    return [
      warning(
        'workers',
        `${who} has been silent for ${spanOf((now - seenAt.getTime()) / 1000)}: other workers take its sessions.`,
        `To start it there again: codemachine worker --name ${name}`,
      ),
    ]
  const off = clockFinding(`the clock of ${who}`, row.clockOffMs)
  const found = off.status === 'ok' ? [] : [off]
  if (row.version !== version)
    found.push(
      warning(
        'workers',
        `${who} is of version ${row.version}, and this is ${version}.`,
        'Install the same version on all of them.',
        'CM1113',
      ),
    )
  if (says !== null)
    found.push(warning('workers', `${who} takes no sessions now: ${says}`, 'On that machine, type: codemachine doctor'))
  if (drains)
    found.push(warning('workers', `${who} is drained: it takes no more sessions.`, 'To use it again, start it again.'))
  return found
}

function spanOf(seconds: number): string {
  const minutes = Math.round(seconds / 60)
  if (minutes < 2) return `${Math.round(seconds)} s`
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
}

async function checkQueue(database: Database, workers: readonly FleetWorker[]): Promise<Finding[]> {
  const { waiting, running, held, dead } = await countStates(database.sql)
  return [
    ok('queue', `${formatCount(waiting, 'session')} waiting, ${running} running, ${held} waiting for another session`),
    ...(await deadOnes(database, dead)),
    ...(await withoutWorker(database, workers)),
    ...(await heldForEver(database)),
    ...(await ofNewerVersion(database)),
  ]
}

async function deadOnes({ sql }: Database, count: number): Promise<Finding[]> {
  if (count === 0) return []
  const newest = await listSessions(sql, { states: ['dead'], repo: null, most: 3 })
  const some = newest.map(({ id, reason }) => `${id} (${oneLine(reason ?? 'no reason is known', 200)})`).join(', ')
  const message = `${formatCount(count, 'session')} will not be tried again: ${some}${count > newest.length ? ', …' : ''}`
  return [warning('queue', message, `Fix the cause, then: codemachine fleet retry ${newest[0]?.id}`)]
}

/** Finds sessions without a worker for their tags, template or repository. */
async function withoutWorker({ sql }: Database, workers: readonly FleetWorker[]): Promise<Finding[]> {
  // Without any worker, an earlier finding says so.
  if (workers.length === 0) return []
  const rows = await sql<{ repo: string; tags: string[]; template: string | null; count: string; id: string }>(
    `select repo, tags, ${TEMPLATE}, count(*), min(id) as id from ${SCHEMA}.session where state = 'waiting' and job_version <= ${JOB_VERSION}
     group by 1, 2, 3 order by 4 desc, 1, 2, 3 limit 500`,
  )
  const takers = workers.map(worker => ({ ...worker, takes: takesRepo(worker.repos) }))
  return rows
    .flatMap(row => {
      const able = takers.filter(each => each.takes(row.repo) && row.tags.every(tag => each.tags.includes(tag)))
      if (able.some(each => runsTemplate(each, row.template))) return []
      return [{ ...row, isOfTemplate: able.length > 0 }]
    })
    .slice(0, MOST_TOLD)
    .map(({ repo, tags, template, count, id, isOfTemplate }) => {
      const waits = `for which ${formatCount(Number(count), 'session')} ${count === '1' ? 'waits' : 'wait'}, such as ${id}.`
      const wants = tags.length === 0 ? '' : ` with ${tags.join(', ')}`
      const named = template ?? USUAL_TEMPLATE
      if (isOfTemplate)
        return warning(
          'queue',
          `No worker${wants} that is there and takes ${oneLine(repo, 200)} runs the template ${named}, ${waits}`,
          `Add it to fleet.templates in the settings of a worker's machine, or update codemachine there, and restart that worker.`,
        )
      const begin = tags.length === 0 ? '' : ` --tags ${tags.join(',')}`
      return warning(
        'queue',
        `No worker${wants} that is there takes ${oneLine(repo, 200)}, ${waits}`,
        `Start one that does: codemachine worker${begin}${isLocal(repo) ? ` --repos '${repo}'` : ''}`,
      )
    })
}

/** Finds sessions that wait for one that is missing or has ended without success. */
async function heldForEver({ sql }: Database): Promise<Finding[]> {
  const rows = await sql<{ id: string; before: string; state: string | null }>(
    `select s.id, s.after as before, b.state from ${SCHEMA}.session s left join ${SCHEMA}.session b on b.id = s.after
     where s.state = 'held' and (b.id is null or b.state in ('dead', 'cancelled') or (b.state = 'ended' and b.outcome ->> 'kind' is distinct from 'done'))
     order by s.id limit ${MOST_TOLD}`,
  )
  return rows.map(({ id, before, state }) =>
    state === null
      ? warning(
          'queue',
          `${id} waits for ${before}, which does not exist.`,
          `Cancel it: codemachine fleet cancel ${id}`,
        )
      : warning(
          'queue',
          `${id} waits for ${before}, which ended without being done.`,
          `Retry that one, or cancel this one: codemachine fleet retry ${before}, codemachine fleet cancel ${id}`,
        ),
  )
}

async function ofNewerVersion({ sql }: Database): Promise<Finding[]> {
  const [row] = await sql<{ count: string }>(
    `select count(*) from ${SCHEMA}.session where state = 'waiting' and job_version > ${JOB_VERSION}`,
  )
  const count = Number(row?.count ?? 0)
  if (count === 0) return []
  const what = `${formatCount(count, 'session')} of a newer codemachine: workers of this version leave them to newer ones.`
  return [warning('queue', what, 'Update codemachine on the workers.', 'CM1113')]
}

/** Asks the remotes of waiting sessions, from this machine with its credentials. */
async function checkRemotes(run: CheckRun, { sql }: Database): Promise<Finding[]> {
  const rows = await sql<{ repo: string }>(
    `select repo from ${SCHEMA}.session where state in ('waiting', 'held', 'running') group by repo order by count(*) desc limit ${MOST_REMOTES + 1}`,
  )
  if (rows.length === 0) return []
  const program = await findGit(run.env, run.temporary)
  const left = rows.slice(0, MOST_REMOTES).map(({ repo }) => repo)
  const found: Finding[] = []
  const askNext = async (): Promise<void> => {
    for (let repo = left.shift(); repo !== undefined; repo = left.shift())
      found.push(await checkRemote(run, program, repo))
  }
  await Promise.all([askNext(), askNext(), askNext(), askNext(), askNext()])
  const more =
    rows.length > MOST_REMOTES ? [ok('remote', `only the ${MOST_REMOTES} with the most sessions were asked`)] : []
  return [...found.toSorted((a, b) => a.message.localeCompare(b.message)), ...more]
}

async function checkRemote({ env, world }: CheckRun, program: string, repo: string): Promise<Finding> {
  const shown = oneLine(repo, 200)
  const isHere = !isLocal(repo) || (await stat(repo.replace(/^file:\/\//, '')).catch(() => null)) !== null
  if (!isHere) return ok('remote', `${shown} is on a disk of the workers, not here`)
  const { exitCode, stderr, failure } = await runProcess(program, ['ls-remote', '--quiet', '--', repo, 'HEAD'], {
    // Run outside of any repository, whose configuration would apply.
    directory: parse(world.cwd).root,
    env: remoteEnvironment(env),
    encoding: 'utf8',
    outputLimit: 1024 * 1024,
    timeoutMs: REMOTE_MS,
    signal: world.signal,
  })
  if (exitCode === 0) return ok('remote', `${shown} answers`)
  const why =
    failure === 'timeout' ? `no answer within ${REMOTE_MS / 1_000} s` : oneLine(stderr.trim().split('\n')[0] ?? '', 300)
  return warning(
    'remote',
    `${shown} does not let this machine in: ${why}`,
    'Each worker needs its own access: an ssh key (without a passphrase, or in ssh-agent), or a git credential helper.',
  )
}
