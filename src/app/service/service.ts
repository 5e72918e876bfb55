import { uptime } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import { UserError } from '../../base/errors.ts'
import { readBoundedText, writeWholeFile } from '../../platform/files.ts'
import { takeRunLock } from '../../records/run-lock.ts'
import type { World } from '../world.ts'
import { type Due, type DueTerms, dueNow } from './due.ts'

/** A runner that the service has started. */
export interface StartedRunner {
  pid: number
  /** Resolves with its exit code; null: a signal has ended it. */
  exited: Promise<number | null>
}

export interface ServiceOptions {
  root: string
  /** Told a line of what it does. */
  say(line: string): void
  /** Starts a runner for what is due. A `UserError` if it cannot. */
  start(due: Due): Promise<StartedRunner>
  /** Sends a runner SIGTERM. */
  end(runner: StartedRunner): void
}

/** Between two looks, ms. */
const LOOK_MS = 15_000
/** How many runners there are at one time. */
const MOST_RUNNERS = 4
/** How long a directory is left alone whose runner has failed, ms, and how often the same is tried. */
const HELD_MS = 15 * 60_000
const MOST_TRIES = 3
/** How long runners may take to end by themselves when the service is ended, ms. */
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

/** The lock of the service; it is held while one runs. */
export function serviceLock(root: string): string {
  return join(root, 'service.lock')
}

/** What the service keeps between two times that it runs; null: it was never installed. */
export async function readKept(root: string): Promise<Kept | null> {
  const read = await readBoundedText(keptPath(root), 1024 * 1024)
  if (typeof read === 'string' || 'problem' in read) return null
  try {
    return v.parse(keptSchema, JSON.parse(read.text))
  } catch {
    return null
  }
}

/** What was left before `since`, Unix time in ms, is the person's. An installation that is there keeps its own time. */
export async function keepSince(root: string, since: number): Promise<Kept> {
  const kept = (await readKept(root)) ?? { since: new Date(since).toISOString(), stopped: [] }
  await writeWholeFile(keptPath(root), `${JSON.stringify(kept)}\n`)
  return kept
}

/** By what is told what is due now. */
export function termsOf({ since, stopped }: Kept, now: number): DueTerms {
  return { since: Date.parse(since), stopped: new Set(stopped), bootedAt: now - uptime() * 1000 }
}

/** A directory that is left alone for a while. */
interface Held {
  of: string
  tries: number
  /** Monotonic, ms. */
  until: number
}

/**
 * Goes on with what was cut off, and works the queues off, in every directory of this person, until the world's signal is
 * aborted; its runners are ended then, and gone on with the next time. A `UserError` with exit code 6 if a service runs.
 */
export async function runService(world: World, options: ServiceOptions): Promise<void> {
  const { root, say, start, end } = options
  const { clock, signal, platform, pid } = world
  const now = new Date(clock.now())
  await using _ = await takeRunLock(serviceLock(root), { platform, pid, now, hint: ONE_IS_ENOUGH })
  const kept = await keepSince(root, clock.now())
  const terms = termsOf(kept, clock.now())
  const running = new Map<string, StartedRunner & { ended: Promise<void> }>()
  const held = new Map<string, Held>()
  const seen = new Set<string>()
  let changed = new AbortController()
  const isHeld = ({ records: { key }, of }: Due) => {
    const found = held.get(key)
    return found?.of === of && (found.tries >= MOST_TRIES || clock.monotonic() < found.until)
  }
  const begin = async (due: Due) => {
    const { key, directory } = due.records
    say(`${directory}: ${due.what}`)
    terms.stopped.delete(key)
    const tries = held.get(key)?.of === due.of ? (held.get(key)?.tries ?? 0) : 0
    const hold = () => held.set(key, { of: due.of, tries: tries + 1, until: clock.monotonic() + HELD_MS })
    try {
      const runner = await start(due)
      const ended = runner.exited.then(exitCode => {
        say(`${directory}: ${exitCode === null ? 'was killed' : `ended with exit code ${exitCode}`}`)
        running.delete(key)
        // Looked at once more: it may have been cut off.
        seen.delete(key)
        if (exitCode !== 0) hold()
        changed.abort()
      })
      running.set(key, { ...runner, ended })
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      hold()
      say(`${directory}: ${error.message}`)
    }
  }
  while (!signal.aborted) {
    changed = new AbortController()
    const isLookedAt = (key: string, wasCutOff: boolean) => {
      const isNew = !seen.has(key)
      seen.add(key)
      return isNew || wasCutOff
    }
    for await (const due of dueNow(world, root, terms, isLookedAt)) {
      if (signal.aborted) break
      if (running.has(due.records.key) || isHeld(due)) continue
      if (running.size < MOST_RUNNERS) await begin(due)
      else seen.delete(due.records.key)
    }
    await clock.wait(LOOK_MS, AbortSignal.any([signal, changed.signal]))
  }
  // Before they end: of what is ended with this process they must be told apart later.
  await writeWholeFile(keptPath(root), `${JSON.stringify({ ...kept, stopped: [...running.keys()] })}\n`)
  for (const runner of running.values()) end(runner)
  const over = new AbortController()
  const all = Promise.all([...running.values()].map(({ ended }) => ended)).then(() => over.abort())
  await Promise.race([all, clock.wait(END_MS, over.signal)])
}

const ONE_IS_ENOUGH = 'One is enough for all directories: codemachine service status'
