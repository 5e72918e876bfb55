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
import { endWhatWasLeft } from '../../project/engine-of-project.ts'
import type { Ask } from '../../project/library.ts'
import { placesOf, type World } from '../../project/world.ts'
import { recordsOfGone, rootOf } from '../../session/records/records.ts'
import { readRunner, takeRunLock } from '../../session/records/run-lock.ts'
import { type Database, DatabaseAway } from '../database.ts'
import { type Fleet, whenThere } from '../fleet.ts'
import { type FleetQueue, groupOf, runsTemplate } from '../queue.ts'
import { takesRepo } from '../repos.ts'
import { type FleetTerms, SCHEMA } from '../schema.ts'
import { beat, giveBack, jsonb, reposAtWork, type Taken, take, takeBack } from '../store.ts'
import { Clones } from './clones.ts'
import type { Rights } from './runner.ts'
import { waitsForLogin } from './sender.ts'
import { type Came, type RunningHere, runHere, type WorkerPlace } from './session.ts'

/** What a worker is. */
interface WorkerOptions {
  name: string
  slots: number
  tags: readonly string[]
  /** Patterns of the repositories that it takes; none: all that lie on no disk. */
  repos: readonly string[]
  /** Where savepoints and results go; null: to each repository. */
  remote: string | null
  /** Whether it ends once nothing waits and nothing runs. */
  once: boolean
  /** How many mirrors of repositories it keeps. */
  keep: number
  rights: Rights
  /** What each run is told beside that. */
  args: readonly string[]
  own: readonly string[]
  say(line: string): void
}

/**
 * How often it looks for work and for what it is asked, ms: where there are many workers, each looks less often, so that all of them
 * together ask the database for the same.
 */
const LOOK_MS = 1_000
const LOOK_MS_A_WORKER = 10
const LONGEST_LOOK_MS = 10_000
/** How often it says that it lives, of the lease. */
const BEATS_PER_LEASE = 4
/** How often lost sessions are looked for, ms. */
const SUPERVISE_MS = 5_000
/** How long what is given back may take when the worker ends, ms. */
const LEAVE_MS = 60_000
/** How long nothing is taken where the worker's own place hinders sessions, ms; a full disk is looked at that often. */
const PAUSE_MS = 10 * 60_000
const DISK_PAUSE_MS = 60_000
/** So many sessions in a row that could not be begun, here or of one repository, are no chance. */
const MOST_PROBLEMS = 3
/** How long it is remembered which repositories are for others, ms. */
const OTHERS_MS = 10_000
/** How long an earlier worker's runner may take to end, ms. */
const END_MS = 20_000

/** Runs a worker until the signal is aborted, it is drained, or, with `once`, until nothing waits; what it has it gives back. Resolves with its exit code. */
export async function runWorker(world: World, fleet: Fleet, options: WorkerOptions): Promise<number> {
  const root = join(rootOf(world), 'fleet', 'workers', options.name)
  const clones = await Clones.open({ root, env: world.env, keep: options.keep })
  const { platform, pid, clock } = world
  const hint = 'Give this one another --name.'
  await using _held = await takeRunLock(join(root, 'lock'), { platform, pid, now: new Date(clock.now()), hint })
  const worker = new Worker(world, { ...fleet, clones, options, root })
  return await worker.run()
}

interface WorkerParts {
  database: Database
  queue: FleetQueue
  clones: Clones
  terms: FleetTerms
  options: WorkerOptions
  root: string
}

/** What the database says to a worker. */
interface Pulse {
  drains: boolean
  instance: string
  cancelled: string[]
  asks: { id: string; session: string; ask: Ask }[]
}

/** What the database knows of a worker's login. Moments are ISO 8601 in UTC. */
interface Login {
  windows: { minutes: number | null; usedPercent: number; resetsAt: string | null }[]
  /** Until when it takes nothing; null: it does. */
  pausedUntil: string | null
}

class Worker {
  readonly #world: World
  readonly #parts: WorkerParts
  readonly #instance = randomUUID()
  readonly #running = new Map<string, RunningHere>()
  readonly #place: WorkerPlace
  /** What is asked of a session just now, by the ids. */
  readonly #asking = new Set<string>()
  #drains = false
  #isAway = false
  /** Until when it takes nothing, by the monotonic clock, and why. */
  #paused: { until: number; why: string } | null = null
  #problemsInARow = 0
  /** Repositories that did not let it in, by their groups: how often in a row, and until when nothing of them is taken. */
  readonly #refusing = new Map<string, { times: number; until: number }>()
  /** Whether it takes a repository; and groups of those that it does not, until when that is looked at again. */
  readonly #takes: (repo: string) => boolean
  #others: { groups: readonly string[]; until: number } = { groups: [], until: 0 }
  #login: Login = { windows: [], pausedUntil: null }
  #beatAt = 0
  #lookMs = LOOK_MS
  #superviseAt = 0
  #woken = new AbortController()

  /** The names of those that it runs: no prompt begins a session of the others, or this codemachine does not know them. */
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

  /** Looks once for what there is to do; answers whether nothing waited. What fails for the database is tried again. */
  async #look(): Promise<boolean> {
    const { database, options, terms } = this.#parts
    const { clock } = this.#world
    try {
      await this.#hear(await this.#pulse())
      if (this.#isAway) {
        options.say(`The database at ${database.place} answers again.`)
        this.#beatAt = 0
        // The others are to be heard before they are taken for lost.
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
      throw new UserError('CM1111', `Another worker has the name ${options.name} by now; this one ends.`, {
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

  /** Hands on what a person asks of a session. What it cannot take yet is asked again with the next pulse. */
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
    // The one that came last goes first: it has lost least.
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

  /** Takes as much as there is room for; answers whether nothing more waits. */
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

  /** After some times in a row nothing of a repository is taken for a while: others go on, and other workers may be let in. */
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

  /** Takes nothing for so long, ms. */
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

  /** Keeps what is used of the login's windows; while one is used up, nothing is taken: a worker with another login may. */
  #hearOfLogin(event: RecordedOf<'limits' | 'waiting'>): void {
    if (event.type === 'limits') {
      // What a worker tells of its login is of codex.
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

  /** Groups of repositories that wait and are not for this worker; what has come lately may be missing. */
  async #notTaken(): Promise<readonly string[]> {
    const now = this.#world.clock.monotonic()
    const refusing = [...this.#refusing].flatMap(([group, { until }]) => (now < until ? [group] : []))
    if (now < this.#others.until) return [...this.#others.groups, ...refusing]
    const repos = await reposAtWork(this.#parts.database)
    const groups = repos.filter(({ repo }) => !this.#takes(repo)).map(({ team, repo }) => groupOf(team, repo))
    this.#others = { groups, until: now + OTHERS_MS }
    // One that nobody wants any more is forgotten.
    const atWork = new Set(repos.map(({ team, repo }) => groupOf(team, repo)))
    for (const group of this.#refusing.keys()) if (!atWork.has(group)) this.#refusing.delete(group)
    return [...groups, ...refusing]
  }

  /** Gives everything back, at once. */
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
    throw new UserError('CM1111', `A worker named ${options.name} runs already, on this machine or another one.`, {
      hint: 'Give this one another --name.',
      exitCode: 6,
    })
  }

  async #unregister(): Promise<void> {
    const { database, options } = this.#parts
    const ends = `update ${SCHEMA}.worker set ended_at = clock_timestamp() where name = $1 and instance = $2`
    // It is seen to be gone by its silence, too.
    await database.sql(ends, [options.name, this.#instance]).catch(() => {})
  }

  /** Takes away what an earlier worker of this name has left: it was killed. */
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

  /** Its stdin was closed, so it is ending by itself. */
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
