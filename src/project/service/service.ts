import { uptime } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import { messageOf, systemErrorCode, UserError, withCode } from '../../base/errors.ts'
import { readBoundedText, writeWholeFile } from '../../platform/files.ts'
import { allRecords } from '../../session/records/records.ts'
import { takeRunLock } from '../../session/records/run-lock.ts'
import { directoryOfRecords } from '../environment/directory-of-records.ts'
import { placesOf, type World } from '../world.ts'
import { type Due, dueNow, type ServiceLimits } from './due.ts'
import { queueScheduled } from './schedules.ts'

/** A runner that the service started. */
interface StartedRunner {
  pid: number
  /** Resolves with its exit code; null: ended by a signal. */
  exited: Promise<number | null>
}

interface ServiceOptions {
  root: string
  /** Receives a line for each action. */
  say(line: string): void
  /** Starts a runner for due work. Throws a `UserError` if it fails. */
  start(due: Due): Promise<StartedRunner>
  /** Sends a runner SIGTERM. */
  end(runner: StartedRunner): void
}

/** Time between two looks, in ms. */
const LOOK_MS = 15_000
/** Most runners at one time. */
const MOST_RUNNERS = 4
/** How long to skip a directory after its runner failed, in ms, and how often to retry the same work. */
const HELD_MS = 15 * 60_000
const MOST_TRIES = 3
/** How long runners may take to end by themselves with the service, in ms. */
const END_MS = 75_000

const keptSchema = v.object({
  /** ISO 8601 in UTC. */
  since: v.pipe(v.string(), v.isoTimestamp()),
  stopped: v.array(v.string()),
})

type Kept = v.InferOutput<typeof keptSchema>

function keptPath(root: string): string {
  return join(root, 'service.json')
}

/** Returns the lock file of the service, held while one runs. */
export function serviceLock(root: string): string {
  return join(root, 'service.lock')
}

/** Reads the service's stored facts; null: never installed. */
export async function readKept(root: string): Promise<Kept | null> {
  const read = await readBoundedText(keptPath(root), 1024 * 1024)
  if (typeof read === 'string' || 'problem' in read) return null
  try {
    return v.parse(keptSchema, JSON.parse(read.text))
  } catch {
    return null
  }
}

/** Stores that work older than `since` (Unix time, ms) is the person's. An existing installation keeps its own time. */
export async function keepSince(root: string, since: number): Promise<Kept> {
  const kept = (await readKept(root)) ?? { since: new Date(since).toISOString(), stopped: [] }
  await writeWholeFile(keptPath(root), `${JSON.stringify(kept)}\n`)
  return kept
}

/** Returns the facts that decide what is due now. */
export function limitsOf({ since, stopped }: Kept, now: number): ServiceLimits {
  return { since: Date.parse(since), stopped: new Set(stopped), bootedAt: now - uptime() * 1000 }
}

/** A directory to skip for a while. */
interface Held {
  of: string
  tries: number
  /** Monotonic, ms. */
  until: number
}

/**
 * Resumes interrupted sessions and runs the queues in all directories of this person, until the world's signal aborts. Then
 * it ends its runners, to resume them next time. Throws a `UserError` with exit code 6 if a service runs.
 */
export async function runService(world: World, options: ServiceOptions): Promise<void> {
  const { root } = options
  const { clock, platform, pid } = world
  const now = new Date(clock.now())
  await using _ = await takeRunLock(serviceLock(root), { platform, pid, now, hint: ONE_IS_ENOUGH })
  await new Runners(world, options, await keepSince(root, clock.now())).run()
}

/** A directory that cannot be written does not end the service. */
function problemOf(error: unknown): { done: string[]; problems: string[] } {
  if (!(error instanceof UserError) && systemErrorCode(error) === null) throw error
  return { done: [], problems: [`its schedules: ${messageOf(error)}`] }
}

const ONE_IS_ENOUGH = 'One is enough for all directories: codemachine service status'

/** The service's runners, at most one for each directory. */
class Runners {
  readonly #world: World
  readonly #options: ServiceOptions
  readonly #kept: Kept
  readonly #limits: ServiceLimits
  /** All by the key of their directory's records. */
  readonly #running = new Map<string, StartedRunner & { ended: Promise<void> }>()
  readonly #held = new Map<string, Held>()
  /** Run that was cut off there at the last look; null: none. */
  readonly #seen = new Map<string, string | null>()
  /** Problems of schedules, each said once. */
  readonly #told = new Set<string>()
  #changed = new AbortController()

  constructor(world: World, options: ServiceOptions, kept: Kept) {
    this.#world = world
    this.#options = options
    this.#kept = kept
    this.#limits = limitsOf(kept, world.clock.now())
  }

  /** Resolves once the world's signal is aborted and all runners have ended. */
  async run(): Promise<void> {
    const { clock, signal } = this.#world
    while (!signal.aborted) {
      this.#changed = new AbortController()
      await this.#look()
      await clock.wait(LOOK_MS, AbortSignal.any([signal, this.#changed.signal]))
    }
    await this.#end()
  }

  async #look(): Promise<void> {
    await this.#queueScheduled()
    const isLookedAt = (key: string, left: string | null) => {
      const isNew = this.#seen.get(key) !== left
      this.#seen.set(key, left)
      return isNew
    }
    for await (const due of dueNow(this.#world, this.#options.root, this.#limits, isLookedAt)) {
      if (this.#world.signal.aborted) break
      const { key } = due.records
      if (this.#running.has(key)) continue
      const held = this.#held.get(key)
      const tries = held?.of === due.of ? held.tries : 0
      if (tries >= MOST_TRIES) continue
      const isToWait = tries > 0 && this.#world.clock.monotonic() < (held?.until ?? 0)
      if (isToWait || this.#running.size >= MOST_RUNNERS) this.#seen.delete(key)
      else await this.#begin(due, tries)
    }
  }

  async #queueScheduled(): Promise<void> {
    const { root, say } = this.#options
    const now = this.#world.clock.now()
    for (const found of await allRecords(placesOf(this.#world, root))) {
      const { done, problems } = await queueScheduled(found, now).catch(problemOf)
      if (done.length === 0 && problems.length === 0) continue
      const ids = await found.sessions()
      const where = (await directoryOfRecords(found, ids, this.#world.platform)) ?? found.folder
      for (const line of done) say(`${where}: ${line}`)
      for (const problem of problems) {
        if (!this.#told.has(problem)) say(`${where}: ${problem}`)
        this.#told.add(problem)
      }
    }
  }

  async #begin(due: Due, tries: number): Promise<void> {
    const { say, start } = this.#options
    const { key, directory } = due.records
    say(`${directory}: ${due.what}`)
    this.#limits.stopped.delete(key)
    const hold = () => {
      this.#held.set(key, { of: due.of, tries: tries + 1, until: this.#world.clock.monotonic() + HELD_MS })
      this.#seen.delete(key)
    }
    try {
      const runner = await start(due)
      const ended = runner.exited.then(exitCode => {
        say(`${directory}: ${exitCode === null ? 'was killed' : `ended with exit code ${exitCode}`}`)
        this.#running.delete(key)
        // Look at it again: it may have been cut off.
        this.#seen.delete(key)
        if (exitCode !== 0) hold()
        this.#changed.abort()
      })
      this.#running.set(key, { ...runner, ended })
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      hold()
      say(`${directory}: ${withCode(error)}`)
    }
  }

  async #end(): Promise<void> {
    const running = [...this.#running.values()]
    // Store this before they end: later it tells them apart from other interrupted sessions.
    const stopped = [...this.#limits.stopped, ...this.#running.keys()]
    await writeWholeFile(keptPath(this.#options.root), `${JSON.stringify({ ...this.#kept, stopped })}\n`)
    for (const runner of running) this.#options.end(runner)
    const over = new AbortController()
    const all = Promise.all(running.map(({ ended }) => ended)).then(() => over.abort())
    await Promise.race([all, this.#world.clock.wait(END_MS, over.signal)])
  }
}
