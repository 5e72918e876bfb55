import { randomUUID } from 'node:crypto'
import { readdir, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { messageOf, UserError } from '../../base/errors.ts'
import { version } from '../../base/package.ts'
import type { RecordedOf } from '../../core/events/events.ts'
import type { Reply } from '../../core/shapes/reply.ts'
import { CODEX_LOGIN } from '../../core/state/usage.ts'
import { endTree } from '../../platform/end-processes.ts'
import { endWhatWasLeft } from '../../project/after-kill.ts'
import type { Ask } from '../../project/library.ts'
import { placesOf, type World } from '../../project/world.ts'
import { recordsOfGone, rootOf } from '../../session/records/records.ts'
import { readRunner, takeRunLock } from '../../session/records/run-lock.ts'
import { openTelemetry } from '../../tell/opentelemetry/telemetry.ts'
import { type Database, DatabaseAway } from '../database.ts'
import { type Fleet, whenThere } from '../fleet.ts'
import { type FleetQueue, groupOf, runsTemplate } from '../queue.ts'
import { takesRepo } from '../repos.ts'
import { type FleetTerms, SCHEMA } from '../schema.ts'
import { beat, giveBack, jsonb, reposAtWork, type Taken, take, takeBack, waitingCount } from '../store.ts'
import { Clones } from './clones.ts'
import type { Rights } from './runner.ts'
import { waitsForLogin } from './sender.ts'
import { type Came, type RunningHere, runHere, type WorkerPlace } from './session.ts'

/** Options of a worker. */
interface WorkerOptions {
  name: string
  slots: number
  tags: readonly string[]
  /** Patterns of accepted repositories; empty: all that are not on a disk. */
  repos: readonly string[]
  /** Remote for savepoints and results; null: each repository. */
  remote: string | null
  /** True to end once nothing waits or runs. */
  once: boolean
  /** Number of repository mirrors to keep. */
  keep: number
  rights: Rights
  /** Further arguments of each run. */
  args: readonly string[]
  own: readonly string[]
  say(line: string): void
}

/**
 * Interval between checks for work and requests, ms. With many workers each checks less often, so that the total load stays
 * equal.
 */
const LOOK_MS = 1_000
const LOOK_MS_A_WORKER = 10
const LONGEST_LOOK_MS = 10_000
/** Number of signs of life per lease. */
const BEATS_PER_LEASE = 4
/** Interval between searches for lost sessions, ms. */
const SUPERVISE_MS = 5_000
/** Timeout for the return of sessions at the worker's end, ms. */
const LEAVE_MS = 60_000
/** Pause after problems of the worker's machine, ms; and the interval of checks of a full disk. */
const PAUSE_MS = 10 * 60_000
const DISK_PAUSE_MS = 60_000
/** Number of failed starts in a row, here or for one repository, that cannot be chance. */
const MOST_PROBLEMS = 3
/** Time to remember the repositories of other workers, ms. */
const OTHERS_MS = 10_000
/** Timeout for the end of an earlier worker's runner, ms. */
const END_MS = 20_000

/**
 * Runs a worker until its signal, a drain or, with `once`, an empty queue; then returns its sessions. Resolves with the exit
 * code.
 */
export async function runWorker(world: World, fleet: Fleet, options: WorkerOptions): Promise<number> {
  const root = join(rootOf(world), 'fleet', 'workers', options.name)
  const clones = await Clones.open({ root, env: world.env, keep: options.keep })
  const { platform, pid, clock } = world
  const hint = 'Give this one another --name.'
  await using _held = await takeRunLock(join(root, 'lock'), { platform, pid, now: new Date(clock.now()), hint })
  const worker = new Worker(world, { ...fleet, clones, options, root })
  const length = () => waitingCount(fleet.database)
  // Each session exports its traces from its own process.
  const telemetry = await openTelemetry({ ...world, queue: { of: 'fleet', length }, onProblem: options.say })
  try {
    return await worker.run()
  } finally {
    await telemetry?.close()
  }
}

interface WorkerParts {
  database: Database
  queue: FleetQueue
  clones: Clones
  terms: FleetTerms
  options: WorkerOptions
  root: string
}

/** Messages of the database to a worker. */
interface Pulse {
  drains: boolean
  instance: string
  cancelled: string[]
  asks: { id: string; session: string; ask: Ask }[]
}

/** A worker's login in the database. Times are ISO 8601 in UTC. */
interface Login {
  windows: { minutes: number | null; usedPercent: number; resetsAt: string | null }[]
  /** Time until which it accepts nothing; null: it accepts sessions. */
  pausedUntil: string | null
}

class Worker {
  readonly #world: World
  readonly #parts: WorkerParts
  readonly #instance = randomUUID()
  readonly #running = new Map<string, RunningHere>()
  readonly #place: WorkerPlace
  /** Ids of the requests in progress. */
  readonly #asking = new Set<string>()
  #drains = false
  #isAway = false
  /** End of a pause on the monotonic clock, and its reason. */
  #paused: { until: number; why: string } | null = null
  #problemsInARow = 0
  /** Repositories that denied access, by group: failures in a row, and the end of their pause. */
  readonly #refusing = new Map<string, { times: number; until: number }>()
  /** Accepts a repository; and groups of the others, with the time of the next check. */
  readonly #takes: (repo: string) => boolean
  #others: { groups: readonly string[]; until: number } = { groups: [], until: 0 }
  #login: Login = { windows: [], pausedUntil: null }
  #beatAt = 0
  #lookMs = LOOK_MS
  #superviseAt = 0
  #woken = new AbortController()

  /** Names of the templates that it runs: this codemachine knows them, and a prompt can start them. */
  readonly #templates: readonly string[]

  constructor(world: World, parts: WorkerParts) {
    const { database, queue, clones, options } = parts
    const { name, remote, own, rights, args, say } = options
    this.#world = world
    this.#parts = parts
    this.#takes = takesRepo(options.repos)
    const all = [...world.templates.values()].flatMap(kind => (kind.hasOwnCommand || kind.isCall ? [] : [kind.name]))
    this.#templates = all.filter(each => rights.templates.length === 0 || rights.templates.includes(each))
    const onLogin = (event: RecordedOf<'limits' | 'waiting'>) => this.#hearOfLogin(event)
    this.#place = { world, database, queue, clones, name, remote, own, rights, args, onLogin, say }
  }

  async run(): Promise<number> {
    const { database, queue, options } = this.#parts
    const { clock, signal } = this.#world
    await this.#sweep()
    await whenThere(this.#world, () => this.#register(), options.say)
    await whenThere(
      this.#world,
      () => takeBack(database, queue, { name: options.name, instance: this.#instance }),
      options.say,
    )
    options.say(`Worker ${options.name} takes up to ${options.slots} at once.`)
    try {
      while (!signal.aborted) {
        const isIdle = await this.#look()
        const isEmpty = this.#running.size === 0
        if (isEmpty && (this.#drains || (options.once && isIdle))) break
        await clock.wait(this.#lookMs, AbortSignal.any([signal, this.#woken.signal]))
        this.#woken = new AbortController()
      }
    } finally {
      await this.#leaveAll()
      await this.#unregister()
    }
    return 0
  }

  /** Checks once for work; returns true if nothing waited. Database failures are retried later. */
  async #look(): Promise<boolean> {
    const { database, options, terms } = this.#parts
    const { clock } = this.#world
    try {
      await this.#hear(await this.#pulse())
      if (this.#isAway) {
        options.say(`The database at ${database.place} answers again.`)
        this.#beatAt = 0
        // Hear the other workers before any counts as lost.
        this.#superviseAt = clock.monotonic() + terms.leaseSeconds * 500
      }
      this.#isAway = false
      const now = clock.monotonic()
      if (now >= this.#beatAt) {
        this.#beatAt = now + (terms.leaseSeconds * 1000) / BEATS_PER_LEASE
        await this.#beatAll()
      }
      if (now >= this.#superviseAt) {
        this.#superviseAt = now + SUPERVISE_MS * (this.#lookMs / LOOK_MS)
        await this.#supervise()
      }
      return await this.#fill()
    } catch (error) {
      if (!(error instanceof DatabaseAway)) throw error
      if (!this.#isAway) options.say(`${error.message} Running sessions continue; no new ones start.`)
      this.#isAway = true
      return false
    }
  }

  async #pulse(): Promise<Pulse> {
    const { database, options } = this.#parts
    const [row] = await database.sql<{
      drains: boolean
      instance: string
      cancelled: string[] | null
      asks: Pulse['asks'] | null
    }>(
      `select w.drains, w.instance,
         (select array_agg(s.id) from ${SCHEMA}.session s where s.id = any($2) and s.cancel_asked) as cancelled,
         (select jsonb_agg(jsonb_build_object('id', a.id, 'session', a.session, 'ask', a.ask) order by a.id)
           from ${SCHEMA}.ask a where a.reply is null and a.session = any($2)) as asks
       from ${SCHEMA}.worker w where w.name = $1`,
      [options.name, [...this.#running.keys()]],
    )
    const { drains = false, instance = '', cancelled, asks } = row ?? {}
    return { drains, instance, cancelled: cancelled ?? [], asks: asks ?? [] }
  }

  async #hear({ drains, instance, cancelled, asks }: Pulse): Promise<void> {
    const { options } = this.#parts
    if (instance !== this.#instance)
      throw new UserError('CM1111', `Meanwhile another worker took the name ${options.name}, so this one ends.`, {
        exitCode: 6,
      })
    if (drains && !this.#drains) {
      options.say('Drained: running sessions go back to the queue after their round, and no new ones start.')
      for (const each of this.#running.values()) each.leave('drained')
    }
    this.#drains ||= drains
    for (const id of cancelled) this.#running.get(id)?.leave('cancelled')
    for (const ask of asks) void this.#answer(ask)
  }

  /** Forwards a person's request to a session. A request that it cannot accept yet is repeated with the next pulse. */
  async #answer({ id, session, ask }: Pulse['asks'][number]): Promise<void> {
    const { database, options } = this.#parts
    const running = this.#running.get(session)
    if (running === undefined || this.#asking.has(id)) return
    this.#asking.add(id)
    try {
      const failed = (error: unknown): Reply => ({ code: 'failed', message: messageOf(error) })
      const reply = await running.ask(ask).catch(failed)
      if (reply === null) return
      const values = [id, jsonb(reply)]
      await database.sql(`update ${SCHEMA}.ask set reply = $2, replied_at = clock_timestamp() where id = $1`, values)
    } catch (error) {
      options.say(`${session}: ${messageOf(error)}`)
    } finally {
      this.#asking.delete(id)
    }
  }

  async #beatAll(): Promise<void> {
    const { database, queue, clones, options } = this.#parts
    const problem = this.#paused?.why ?? null
    const [row] = await database.sql<{ workers: number }>(
      `update ${SCHEMA}.worker set seen_at = clock_timestamp(), clock_off_ms = $2 - (extract(epoch from clock_timestamp()) * 1000)::bigint,
         problem = $3, login = $4 where name = $1 and instance = $5
       returning (select count(*)::int from ${SCHEMA}.worker where ended_at is null and seen_at > now() - interval '1 day') as workers`,
      [options.name, Math.round(this.#world.clock.now()), problem, jsonb(this.#login), this.#instance],
    )
    this.#lookMs = Math.min(LONGEST_LOOK_MS, Math.max(LOOK_MS, (row?.workers ?? 1) * LOOK_MS_A_WORKER))
    for (const running of this.#running.values()) {
      const { isOwn, isCancelled, isLate } = await beat(database, queue, running.taken)
      if (!isOwn) running.leave('superseded')
      else if (isCancelled) running.leave('cancelled')
      else if (isLate) running.leave('deadline')
    }
    // Leave the newest session first, which loses least.
    if (this.#running.size > 0 && (await clones.isFull())) {
      this.#pause(DISK_PAUSE_MS, 'the disk is full')
      for (const last of [...this.#running.values()].slice(-1)) last.leave('full')
    }
  }

  async #supervise(): Promise<void> {
    const { database, queue } = this.#parts
    await queue.supervise()
    await database.transaction(async sql => {
      for (const { session, why } of await queue.dead(sql))
        await sql(
          `update ${SCHEMA}.session set state = 'dead', reason = $2, ended_at = now() where id = $1 and state in ('waiting', 'running')`,
          [session, why],
        )
    })
  }

  /** Takes sessions for all free slots; returns true if nothing more waits. */
  async #fill(): Promise<boolean> {
    const { database, queue, options, terms } = this.#parts
    if (await this.#isPaused()) return false
    while (!this.#drains && !this.#world.signal.aborted && this.#running.size < options.slots) {
      const templates = this.#templates
      const taker = { name: options.name, instance: this.#instance, tags: options.tags, templates }
      const without = await this.#notTaken()
      const taken = await take(database, queue, taker, { perRepository: terms.perRepository, without })
      if (taken === null) return true
      const isOfOthers = !this.#takes(taken.repo)
      if (isOfOthers || !runsTemplate({ templates }, taken.template)) {
        if (isOfOthers) this.#others.until = 0
        const what = isOfOthers ? 'take this repository' : 'run its template'
        await giveBack(database, queue, taken, { reason: `${options.name} does not ${what}` })
        continue
      }
      options.say(`${taken.id} is taken (epoch ${taken.epoch}).`)
      const running = runHere(this.#place, taken)
      this.#running.set(taken.id, running)
      void running.done.then(came => this.#hasCome(taken, came))
    }
    return false
  }

  #hasCome({ id, team, repo }: Taken, { problem, isOf }: Came): void {
    this.#running.delete(id)
    if (problem !== null && isOf === 'repository') this.#refuses(team, repo, problem)
    else {
      this.#refusing.delete(groupOf(team, repo))
      this.#problemsInARow = problem === null ? 0 : this.#problemsInARow + 1
      if (problem !== null && (isOf === 'worker' || this.#problemsInARow >= MOST_PROBLEMS))
        this.#pause(PAUSE_MS, problem)
    }
    this.#woken.abort()
  }

  /** Pauses a repository after some failures in a row: others continue, and other workers may have access. */
  #refuses(team: string, repo: string, problem: string): void {
    const group = groupOf(team, repo)
    const { times } = this.#refusing.get(group) ?? { times: 0 }
    const isEnough = times + 1 >= MOST_PROBLEMS
    const until = isEnough ? this.#world.clock.monotonic() + PAUSE_MS : 0
    if (isEnough)
      this.#parts.options.say(
        `This worker takes no sessions of ${repo} for ${Math.ceil(PAUSE_MS / 60_000)} min: ${problem}`,
      )
    this.#refusing.set(group, { times: isEnough ? 0 : times + 1, until })
  }

  /** Accepts nothing for `ms`. */
  #pause(ms: number, why: string): void {
    const { options } = this.#parts
    const until = this.#world.clock.monotonic() + ms
    if (this.#paused !== null && this.#paused.until >= until) return
    if (this.#paused?.why !== why)
      options.say(`This worker takes no sessions for ${Math.ceil(ms / 60_000)} min: ${why}`)
    this.#paused = { until, why }
    this.#beatAt = 0
  }

  async #isPaused(): Promise<boolean> {
    if (await this.#parts.clones.isFull()) this.#pause(DISK_PAUSE_MS, 'the disk is full')
    if (this.#paused === null) return false
    if (this.#world.clock.monotonic() < this.#paused.until) return true
    this.#paused = null
    this.#login = { ...this.#login, pausedUntil: null }
    this.#beatAt = 0
    this.#parts.options.say('This worker takes sessions again.')
    return false
  }

  /** Stores the usage of the login's windows. Accepts nothing during a full one: a worker with another login may. */
  #hearOfLogin(event: RecordedOf<'limits' | 'waiting'>): void {
    if (event.type === 'limits') {
      // A worker only reports its codex login.
      if ((event.engine ?? CODEX_LOGIN) !== CODEX_LOGIN) return
      const windows = [event.primary, event.secondary].flatMap(window => window ?? [])
      this.#login = {
        ...this.#login,
        windows: windows.map(({ windowMinutes, usedPercent, resetsAt }) => ({
          minutes: windowMinutes,
          usedPercent,
          resetsAt: resetsAt === null ? null : new Date(resetsAt).toISOString(),
        })),
      }
      return
    }
    if (!waitsForLogin(event)) return
    const leftMs = Date.parse(event.until) - this.#world.clock.now()
    if (!(leftMs > 0)) return
    this.#login = { ...this.#login, pausedUntil: event.until }
    this.#pause(leftMs, `the usage limit of the login is reached until ${event.until}`)
  }

  /** Returns the groups of waiting repositories for other workers; the newest may be missing. */
  async #notTaken(): Promise<readonly string[]> {
    const now = this.#world.clock.monotonic()
    const refusing = [...this.#refusing].flatMap(([group, { until }]) => (now < until ? [group] : []))
    if (now < this.#others.until) return [...this.#others.groups, ...refusing]
    const repos = await reposAtWork(this.#parts.database)
    const groups = repos.filter(({ repo }) => !this.#takes(repo)).map(({ team, repo }) => groupOf(team, repo))
    this.#others = { groups, until: now + OTHERS_MS }
    // Forget a repository without sessions.
    const atWork = new Set(repos.map(({ team, repo }) => groupOf(team, repo)))
    for (const group of this.#refusing.keys()) if (!atWork.has(group)) this.#refusing.delete(group)
    return [...groups, ...refusing]
  }

  /** Returns all sessions to the queue at once. */
  async #leaveAll(): Promise<void> {
    const all = [...this.#running.values()]
    for (const each of all) each.leave('stopped')
    const over = new AbortController()
    const left = Promise.all(all.map(({ done }) => done)).finally(() => over.abort())
    void this.#world.clock.wait(LEAVE_MS, over.signal).then(() => {
      if (!over.signal.aborted) for (const each of all) each.abandon()
    })
    await left
  }

  async #register(): Promise<void> {
    const { database, options, terms } = this.#parts
    const [row] = await database.sql(
      `insert into ${SCHEMA}.worker as w (name, instance, host, place, version, clock_off_ms, slots, tags, repos, templates)
       values ($1, $2, $3, $4, $5, $6 - (extract(epoch from clock_timestamp()) * 1000)::bigint, $7, $8, $9, $11)
       on conflict (name) do update set instance = excluded.instance, host = excluded.host, place = excluded.place, version = excluded.version,
         started_at = clock_timestamp(), seen_at = clock_timestamp(), clock_off_ms = excluded.clock_off_ms, slots = excluded.slots,
         tags = excluded.tags, repos = excluded.repos, templates = excluded.templates, drains = false, problem = null, login = null, ended_at = null
       -- Whoever holds the lock of the same place is the only one there: the one before was killed.
       where w.ended_at is not null or w.place = excluded.place or w.seen_at < clock_timestamp() - make_interval(secs => $10)
       returning name`,
      [
        options.name,
        this.#instance,
        hostname(),
        `${hostname()}:${this.#parts.root}`,
        version,
        Math.round(this.#world.clock.now()),
        options.slots,
        options.tags,
        options.repos,
        terms.leaseSeconds,
        this.#templates,
      ],
    )
    if (row !== undefined) return
    throw new UserError('CM1111', `A worker named ${options.name} already runs, on this machine or another one.`, {
      hint: 'Give this one another --name.',
      exitCode: 6,
    })
  }

  async #unregister(): Promise<void> {
    const { database, options } = this.#parts
    const ends = `update ${SCHEMA}.worker set ended_at = clock_timestamp() where name = $1 and instance = $2`
    // Its silence also shows that it has ended.
    await database.sql(ends, [options.name, this.#instance]).catch(() => {})
  }

  /** Removes the leftovers of a killed earlier worker with this name. */
  async #sweep(): Promise<void> {
    const { root, clones } = this.#parts
    for (const id of await readdir(join(root, 'sessions'))) {
      const records = await recordsOfGone(placesOf(this.#world, clones.folderOf(id)))
      if (records !== null) {
        await this.#endRunner(records.lock)
        await endWhatWasLeft(this.#world, records)
        await rm(records.folder, { recursive: true, force: true })
      }
      await clones.remove(id)
    }
    await clones.prune()
  }

  /** Waits for the end of a runner, whose stdin has been closed; kills it after a timeout. */
  async #endRunner(lock: string): Promise<void> {
    const { clock, platform } = this.#world
    for (const until = clock.monotonic() + END_MS; ; ) {
      const runner = await readRunner(lock, platform)
      if (runner === null) return
      const isOver = clock.monotonic() >= until
      if (isOver) await endTree(runner.pid, 'SIGKILL', platform)
      await clock.wait(isOver ? 1_000 : 200)
    }
  }
}
