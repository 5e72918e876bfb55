import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, UserError } from '../../base/errors.ts'
import type { Recorded, RecordedOf } from '../../core/events/events.ts'
import { isFinished, type SessionOutcome } from '../../core/events/outcome.ts'
import type { Reply, ReplyCode } from '../../core/shapes/reply.ts'
import type { SessionState } from '../../core/state/state.ts'
import { pathExists } from '../../platform/files.ts'
import { endWhatWasLeft } from '../../project/after-kill.ts'
import { NOTES_REF } from '../../project/certificate/note.ts'
import { askRun } from '../../project/commands/commands.ts'
import type { Ask } from '../../project/library.ts'
import { placesOf, type World } from '../../project/world.ts'
import { openQueue as openPrompts } from '../../session/records/queue.ts'
import { openRecords, type Records } from '../../session/records/records.ts'
import type { GitSetting } from '../../workspace/git/git.ts'
import type { PrivateGit } from '../../workspace/git/private-git.ts'
import { memoryRoot } from '../../workspace/memory/memory-paths.ts'
import { type Carried, newestCarried } from '../carried.ts'
import { type Database, DatabaseAway } from '../database.ts'
import { type FleetJob, readJob } from '../jobs.ts'
import type { FleetQueue } from '../queue.ts'
import { problemOfRef, problemOfRepo } from '../repos.ts'
import { append, type FleetEnd, finish, giveBack, linesOf, Superseded, setBase, type Taken } from '../store.ts'
import { carrySession, type Packed, settleSession } from './carry.ts'
import { branchOf, type Clones, FullDisk, Hopeless, RemoteError } from './clones.ts'
import { asksForIt, giveRights, hindranceOf, type Rights, type Runner, startRunner } from './runner.ts'
import { hasEnded, progressOf, Sender, stateOf, waitsForLogin } from './sender.ts'

/** Shared parts of a worker's sessions. */
export interface WorkerPlace {
  world: World
  /** Absolute command line that starts this program. */
  own: readonly string[]
  database: Database
  queue: FleetQueue
  clones: Clones
  name: string
  /** Remote for savepoints and results; null: the repository itself. */
  remote: string | null
  rights: Rights
  /** Further arguments of each run. */
  args: readonly string[]
  /** Called with the usage of the login's windows, and each wait for one. */
  onLogin(event: RecordedOf<'limits' | 'waiting'>): void
  say(line: string): void
}

/**
 * The reason to leave a session before its end.
 * At once: `superseded` by another worker, `cancelled` by a person, the worker `stopped`, the disk `full`, a usage `window`
 * of the login full. At the end of its round: `drained`, or its `deadline`.
 */
type Leaving = 'superseded' | 'cancelled' | 'stopped' | 'full' | 'window' | 'drained' | 'deadline'

/** The result of a session here, for the worker. */
export interface Came {
  /** Its problem here; null: none, or the session's own. */
  problem: string | null
  /** Sessions with the same problem: all of this `worker`, of this `repository`, or `any` (unknown). */
  isOf: 'worker' | 'repository' | 'any'
}

/** A session that runs on this worker. */
export interface RunningHere {
  readonly taken: Taken
  /** Leaves the session. */
  leave(why: Leaving): void
  /** Aborts pending sends: the worker cannot wait any longer. */
  abandon(): void
  /** Sends it a request; null: it accepts none now, so ask again later. */
  ask(ask: Ask): Promise<Reply | null>
  /** Resolves with its result; never rejects. */
  readonly done: Promise<Came>
}

const REPORT_BYTES = 1024 * 1024
/** Most crashes of a runner here. */
const MOST_FALLS = 3
/** Longest wait for an unreachable remote after the end of a session, ms. */
const PUBLISH_MS = 10 * 60_000
const RETRY_MS = 2_000
/** A shorter wait for the login happens here, ms. */
const SHORT_WAIT_MS = 2 * 60_000

/** Runs a taken session to its end or until it is left. */
export function runHere(place: WorkerPlace, taken: Taken): RunningHere {
  return new SessionHere(place, taken)
}

/** Thrown if this worker's machine blocks a session. */
class PlaceProblem extends Error {}

class SessionHere implements RunningHere {
  readonly taken: Taken
  readonly done: Promise<Came>
  readonly #place: WorkerPlace
  /** Aborted to end everything at once: another worker owns the session. */
  readonly #gone = new AbortController()
  /** Aborted to stop its preparation. */
  readonly #left = new AbortController()
  #records: Records | null = null
  #leaving: Leaving | null = null
  #runner: Runner | null = null
  /** Known commit of the remote's reference; null: the reference does not exist. */
  #tip: string | null = null
  /** Last commit carried from here; null: none yet. */
  #packed: Packed | null = null
  #sender: Sender | null = null

  constructor(place: WorkerPlace, taken: Taken) {
    this.#place = place
    this.taken = taken
    this.done = this.#carryOut()
  }

  leave(why: Leaving): void {
    const isAtOnce = why !== 'drained' && why !== 'deadline'
    const wasAtOnce = this.#left.signal.aborted
    if (this.#leaving === null || (isAtOnce && !wasAtOnce) || why === 'superseded') this.#leaving = why
    else if (this.#leaving !== why) return
    if (why === 'superseded') this.#gone.abort(new Superseded(this.taken.id))
    if (isAtOnce) this.#left.abort()
    this.#endRunner()
  }

  abandon(): void {
    this.#gone.abort(new Error('the worker ends'))
  }

  async ask(ask: Ask): Promise<Reply | null> {
    if (this.#records === null) return null
    const reply = await askRun(this.#place.world, this.#records, ask)
    return reply !== null && NOT_YET.has(reply.code) ? null : reply
  }

  #endRunner(): void {
    if (this.#left.signal.aborted) this.#runner?.end()
    else if (this.#leaving !== null && this.#records !== null && this.#runner !== null)
      void askRun(this.#place.world, this.#records, { type: 'stop', now: false }).catch(() => {})
  }

  async #carryOut(): Promise<Came> {
    const { say, clones, world } = this.#place
    const { id } = this.taken
    try {
      return await this.#work()
    } catch (error) {
      if (error instanceof Superseded || this.#leaving === 'superseded') {
        say(`${id} has been taken over by another worker.`)
        return NOTHING
      }
      return await this.#giveUp(error)
    } finally {
      this.#gone.abort(new Error('it is over'))
      // A running carry would recreate its folders.
      await this.#sender?.settled()
      if (this.#records !== null) {
        await endWhatWasLeft(world, this.#records).catch(() => {})
        await rm(this.#records.folder, { recursive: true, force: true, maxRetries: 5 }).catch(() => {})
      }
      await clones.remove(id).catch(() => {})
      await clones.prune().catch(() => {})
    }
  }

  /** Returns a session that cannot continue here: another worker may succeed, unless nobody can. */
  async #giveUp(error: unknown): Promise<Came> {
    const { database, queue, say } = this.#place
    const { taken } = this
    const isLeft = this.#leaving !== null && (this.#left.signal.aborted || this.#gone.signal.aborted)
    const reason = isLeft ? REASONS[this.#leaving ?? 'stopped'] : messageOf(error)
    say(isLeft ? `${taken.id} is left: ${reason}.` : `${taken.id}: ${reason}`)
    const again = { reason, isFault: !isLeft && !(error instanceof FullDisk) }
    try {
      await this.#persist(async () => {
        if (this.#leaving === 'cancelled') await finish(database, queue, taken, ended('cancelled', null))
        else if (error instanceof Hopeless) await finish(database, queue, taken, ended('dead', reason))
        else await giveBack(database, queue, taken, again)
      })
    } catch (problem) {
      // The queue finds it after its lease.
      say(`${taken.id}: ${messageOf(problem)}`)
    }
    // No worker can run a hopeless session, so it is no sign against this worker.
    return isLeft || error instanceof Hopeless ? NOTHING : { problem: reason, isOf: this.#whoseIs(error) }
  }

  #whoseIs(error: unknown): Came['isOf'] {
    if (error instanceof PlaceProblem || error instanceof FullDisk) return 'worker'
    // With a separate remote of the worker, that one may be the cause.
    return error instanceof RemoteError && this.#place.remote === null ? 'repository' : 'any'
  }

  async #work(): Promise<Came> {
    const { clones, world, database } = this.#place
    const { taken } = this
    const signal = AbortSignal.any([this.#gone.signal, this.#left.signal])
    const job = readJob(taken.job)
    if (job === null) throw new Hopeless('Its job cannot be read: submit it again.')
    const wrong = problemOfRepo(taken.repo) ?? problemOfRef(taken.ref)
    if (wrong !== null) throw new Hopeless(`${taken.repo} at ${taken.ref} ${wrong}.`)
    const mirror = await clones.fetch(taken.repo, taken.id, signal)
    const base = taken.base ?? (await clones.resolve(mirror, taken.ref, signal))
    if (base === null) throw new Hopeless(`There is no ${taken.ref} in ${taken.repo}.`)
    if (taken.base === null) await setBase(database, taken, base)
    else if (!(await clones.hasCommit(mirror, base, signal)))
      throw new Hopeless(`${base} is not in ${taken.repo} any more.`)
    const carried = await this.#takeOver(mirror, signal)
    const folder = await clones.clone(mirror, taken.id, carried?.head ?? base, signal)
    const records = await openRecords(placesOf(world, folder))
    this.#records = records
    // Remove leftovers of an earlier worker with this name.
    await rm(records.sessionFolder(taken.id), { recursive: true, force: true })
    if (carried === null) await this.#addPrompt(records, job)
    const before = carried === null ? null : await this.#settle(records, carried, mirror)
    if (before?.ended != null && isFinished(before.ended.outcome)) return await this.#close(records, before)
    return await this.#close(records, await this.#play(records, job, carried === null))
  }

  get #ref(): string {
    return `refs/codemachine/${this.taken.id}/state`
  }

  get #remote(): string {
    return this.#place.remote ?? this.taken.repo
  }

  /**
   * Takes over the remote's reference, so that the previous worker's pushes fail. Returns the commit to continue from; null:
   * it has not begun yet.
   */
  async #takeOver(mirror: string, signal: AbortSignal): Promise<Carried | null> {
    const { clones } = this.#place
    const { id, epoch, events } = this.taken
    if (epoch === 1) {
      const refs = [this.#ref, `refs/heads/${branchOf(id)}`]
      if ((await clones.remoteRefs(this.#remote, refs, signal)).size === 0) return null
      throw new Hopeless(`${this.#remote} already has a session ${id} of another fleet; submit this one again.`)
    }
    for (let tries = 0; ; tries += 1) {
      const tip = await clones.remoteRef(this.#remote, this.#ref, signal)
      this.#tip = tip
      if (tip === null && events > 0)
        throw new Hopeless(`${this.#ref} is missing in ${this.#remote}, so ${id} cannot be resumed.`)
      if (tip !== null) await clones.fetchRef(this.#remote, this.#ref, mirror, signal)
      const carried = tip === null ? null : await newestCarried(clones.setting(mirror), tip, events)
      const marker = await clones.marker(mirror, { from: carried, tip, session: id, epoch }, signal)
      const isOurs = await clones.push(
        mirror,
        { remote: this.#remote, ref: this.#ref, commit: marker, expected: tip },
        signal,
      )
      if (isOurs) {
        this.#tip = marker
        return carried === null ? null : { ...carried, commit: marker }
      }
      if (tries >= 5) throw new RemoteError(`${this.#ref} of ${this.#remote} keeps changing.`, true)
    }
  }

  async #addPrompt(records: Records, job: FleetJob): Promise<void> {
    const { goal, gates, limits, template, issue } = job
    await openPrompts(records.queue).add(goal, new Date(this.#place.world.clock.now()), {
      session: this.taken.id,
      gates,
      limits,
      ...(template === null ? {} : { template }),
      issue,
    })
  }

  /** Restores the carried session here, and returns its state. */
  async #settle(records: Records, carried: Carried, mirror: string): Promise<SessionState> {
    const { world, database, clones, name, say } = this.#place
    const { id, epoch, events } = this.taken
    const journal = await linesOf(database, id, events)
    const fetch = async (git: PrivateGit) => {
      await clones.fetchInto(git.gitDir, mirror, carried.commit, this.#gone.signal)
    }
    const to = { worker: name, epoch }
    await settleSession(world, records, { carried, journal, to }, fetch, warning => say(`${id}: ${warning}`))
    return stateOf(id, journal, world.templates)
  }

  /** Runs it until it has ended or is left, and returns its state. */
  async #play(records: Records, job: FleetJob, isNew: boolean): Promise<SessionState> {
    const { world, database, say } = this.#place
    const { taken } = this
    const over = new AbortController()
    const sender = new Sender({
      session: taken.id,
      journal: records.journal(taken.id),
      known: taken.events,
      templates: world.templates,
      clock: world.clock,
      append: async (first, lines, state) => void (await append(database, taken, first, lines, progressOf(state))),
      carry: standing => this.#carry(records, standing),
      isFinal: error => error instanceof Superseded,
      onEvent: event => this.#hear(event),
      onProblem: error => say(`${taken.id}: ${messageOf(error)} The events are sent later.`),
    })
    this.#sender = sender
    const sending = sender.run(over.signal, this.#gone.signal)
    sending.catch(error => this.#gone.abort(error))
    try {
      await this.#runOn(records, job, isNew)
    } finally {
      over.abort()
    }
    await sending
    return sender.state
  }

  #hear(event: Recorded): void {
    const { world, onLogin } = this.#place
    if (event.type !== 'limits' && event.type !== 'waiting') return
    onLogin(event)
    if (event.type !== 'waiting' || !waitsForLogin(event)) return
    if (Date.parse(event.until) - world.clock.now() > SHORT_WAIT_MS) this.leave('window')
  }

  async #runOn(records: Records, job: FleetJob, isNew: boolean): Promise<void> {
    const { say, rights, world, args } = this.#place
    const { id } = this.taken
    const given = giveRights(job, rights)
    for (const each of given.refused) say(`${id}: ${each}`)
    for (let falls = 0; this.#leaving === null; ) {
      // A killed runner may have finished the session.
      if (falls > 0 && (await hasEnded(records.journal(id), id, world.templates))) return
      const what = isNew && !(await pathExists(records.journal(id))) ? ['queue', 'run'] : ['resume', id]
      const typed = [...what, '-C', records.directory, '--plain', ...args, ...given.args]
      const { exitCode, said } = await this.#runOnce(typed, given.env)
      const hasFailed = exitCode === null || exitCode === 1 || exitCode === 2
      if (exitCode !== null && exitCode !== 0 && !(await pathExists(records.journal(id))))
        throw new PlaceProblem(said || 'it could not be started')
      // The journal shows a normal end. Exit code 1: a bug of codemachine; null: it was killed.
      if (this.#leaving !== null || !hasFailed) return
      falls += 1
      if (falls >= MOST_FALLS) throw new Error(`Its process crashed ${MOST_FALLS} times: ${said || 'it was killed'}`)
      say(`${id}: its process crashed; it starts again.`)
    }
  }

  async #runOnce(args: readonly string[], changes: NodeJS.ProcessEnv): Promise<Awaited<Runner['ended']>> {
    const { world, own } = this.#place
    const { signal } = this.#gone
    const runner = startRunner(world, { own, args, changes })
    const end = () => runner.end()
    this.#runner = runner
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
    this.#endRunner()
    const ended = await runner.ended
    signal.removeEventListener('abort', end)
    this.#runner = null
    signal.throwIfAborted()
    return ended
  }

  async #carry(records: Records, { round, events }: { round: number; events: number }): Promise<void> {
    const { world, say } = this.#place
    const { id: session, epoch } = this.taken
    const standing = { session, epoch, events, round, previous: this.#tip }
    const packed = await carrySession(world, records, standing, warning => say(`${session}: ${warning}`))
    if (packed === null) throw new Error('there is no savepoint yet')
    await this.#pushFrom(packed.git, this.#ref, packed.commit, this.#tip)
    this.#tip = packed.commit
    this.#packed = packed
  }

  /** Pushes a commit if this worker still owns the session; otherwise throws `Superseded`. */
  async #pushFrom(git: PrivateGit, ref: string, commit: string, expected: string | null): Promise<void> {
    const { clones } = this.#place
    const { signal } = this.#gone
    const tip = this.#tip
    const held = ref === this.#ref || tip === null ? undefined : { ref: this.#ref, commit: tip }
    const what = { remote: this.#remote, ref, commit, expected, held, objects: alternatesOf(git.setting) }
    if (await clones.push(git.gitDir, what, signal)) return
    // The push may have succeeded although its answer was lost.
    if ((await clones.remoteRef(this.#remote, ref, signal)) === commit) return
    if ((await clones.remoteRef(this.#remote, this.#ref, signal)) !== tip) throw new Superseded(this.taken.id)
    throw new RemoteError(`${ref} cannot be pushed to ${this.#remote}: another branch there blocks this name.`, true)
  }

  /** Closes a session: returns it to the queue, or ends it with its branch and report. */
  async #close(records: Records, state: SessionState): Promise<Came> {
    const { database, queue, say, name } = this.#place
    const { taken } = this
    const { id } = taken
    const outcome = state.ended?.outcome ?? null
    if (this.#leaving === 'cancelled' && (outcome === null || !isFinished(outcome))) {
      await this.#persist(() => finish(database, queue, taken, ended('cancelled', null)))
      say(`${id} is cancelled.`)
      return NOTHING
    }
    const { job, hindrance } = { job: readJob(taken.job), hindrance: hindranceOf(outcome) }
    if (this.#isToBeGivenBack(outcome) || hindrance !== null) {
      const reason = hindrance ?? REASONS[this.#leaving ?? 'stopped']
      const again = { reason: `${name}: ${reason}`, isFault: hindrance !== null }
      await this.#persist(() => giveBack(database, queue, taken, again))
      say(`${id} returns to the queue: ${reason}.`)
      const isOwn = job !== null && asksForIt(job, outcome)
      return hindrance === null || isOwn ? NOTHING : { problem: hindrance, isOf: 'worker' }
    }
    if (outcome === null) throw new Error('its process ended, but the session did not')
    const branch = await this.#persist(() => this.#publish(records, outcome.kind === 'done'), PUBLISH_MS)
    const certificate = await boundedText(join(records.sessionFolder(id), 'done.json'))
    const end: FleetEnd = {
      state: 'ended',
      reason: this.#leaving === 'deadline' ? REASONS.deadline : null,
      outcome,
      branch,
      report: await boundedText(join(records.directory, memoryRoot, 'projects', id, 'report.md')),
      certificate: certificate === null ? null : JSON.parse(certificate),
    }
    await this.#persist(() => finish(database, queue, taken, end))
    say(`${id} has ended: ${outcome.kind}.`)
    return NOTHING
  }

  /** True if it was only interrupted, so that another worker continues it. */
  #isToBeGivenBack(outcome: SessionOutcome | null): boolean {
    if (this.#leaving === 'deadline') return false
    if (outcome === null) return this.#leaving !== null
    return outcome.kind === 'interrupted' && (this.#leaving !== null || outcome.by !== 'stop')
  }

  /** Pushes the result branch, with uncommitted changes as a commit on top; if done also its bundle. */
  async #publish(records: Records, isDone: boolean): Promise<string | null> {
    const { clones, world } = this.#place
    const { id, epoch } = this.taken
    const { signal } = this.#gone
    const standing = { session: id, epoch, events: 0, round: Number.MAX_SAFE_INTEGER, previous: null }
    // At its end everything has been carried, unless an earlier worker saw the end.
    const packed = this.#packed ?? (await carrySession(world, records, standing, () => {}))
    if (packed === null) return null
    const { gitDir, setting } = packed.git
    const result = await clones.result(gitDir, packed.commit, alternatesOf(setting), id, signal)
    if (result === null) return null
    const ref = `refs/heads/${branchOf(id)}`
    const there = epoch === 1 ? null : await clones.remoteRef(this.#remote, ref, signal)
    if (there !== result) await this.#pushFrom(packed.git, ref, result, there)
    if (isDone) await this.#note(records, packed.git, result)
    return branchOf(id)
  }

  /** Adds the session's bundle to its result commit, as a git note on the remote. Only reports problems. */
  async #note(records: Records, git: PrivateGit, commit: string): Promise<void> {
    const { clones, world, say } = this.#place
    const { id } = this.taken
    const { signal } = this.#gone
    try {
      const { makeBundle } = await import('../../project/certificate/make.ts')
      const bundle = await makeBundle(world, records, { session: id, note: false, commit, say: () => {} })
      const note = {
        remote: this.#remote,
        ref: NOTES_REF,
        commit,
        text: bundle.text,
        objects: alternatesOf(git.setting),
      }
      for (let tries = 0; tries < MOST_TRIES; tries++) if (await clones.note(git.gitDir, note, signal)) return
      say(`${id}: its certificate is no git note, as others write notes at the same time.`)
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof UserError || error instanceof RemoteError)) throw error
      say(`${id}: its certificate is no git note: ${error.message}`)
    }
  }

  /** Runs an action that needs the database and the remote; retries while they are unreachable, up to `mostMs`. */
  async #persist<T>(work: () => Promise<T>, mostMs = Number.POSITIVE_INFINITY): Promise<T> {
    const { clock } = this.#place.world
    const { signal } = this.#gone
    const since = clock.monotonic()
    for (;;) {
      try {
        return await work()
      } catch (error) {
        signal.throwIfAborted()
        const isAway = error instanceof DatabaseAway || (error instanceof RemoteError && error.isAway)
        if (!isAway || clock.monotonic() - since > mostMs) throw error
        await clock.wait(RETRY_MS, signal)
        signal.throwIfAborted()
      }
    }
  }
}

/** Most attempts to add a note while other workers add theirs. */
const MOST_TRIES = 5

/** Replies without effect: repeat the request later or to the next worker. */
const NOT_YET: ReadonlySet<ReplyCode> = new Set(['no-session', 'not-taken', 'run-ended', 'not-heard', 'ending'])
const NOTHING: Came = { problem: null, isOf: 'any' }

/** Reasons to leave a session, as clauses. */
const REASONS: Readonly<Record<Leaving, string>> = {
  superseded: 'another worker has taken it over',
  cancelled: 'it was cancelled',
  stopped: 'the worker ends',
  full: 'the disk of the worker is full',
  window: "the usage limit of the worker's login is reached",
  drained: 'the worker is drained',
  deadline: 'its deadline was reached',
}

function ended(state: FleetEnd['state'], reason: string | null): FleetEnd {
  return { state, reason, outcome: null, branch: null, report: null, certificate: null }
}

function alternatesOf({ env }: GitSetting): string | undefined {
  return env.GIT_ALTERNATE_OBJECT_DIRECTORIES
}

async function boundedText(path: string): Promise<string | null> {
  const text = await readFile(path, 'utf8').catch(() => null)
  return text === null || text.length > REPORT_BYTES ? null : text
}
