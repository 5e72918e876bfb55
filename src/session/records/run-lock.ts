import { createHash, randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, dirname } from 'node:path'
import * as v from 'valibot'
import type { Clock } from '../../base/clock.ts'
import { Cleanup, UserError, writing } from '../../base/errors.ts'
import { readBoundedText, stageFile } from '../../platform/files.ts'
import {
  answerAt,
  bootId,
  isAnswered,
  isStillRunning,
  lifeSign,
  pidNamespace,
  startTimeOf,
} from '../../platform/processes.ts'

/** The lock of the runner in a work directory. Disposal releases it. */
export interface RunLock extends AsyncDisposable {
  readonly holder: LockHolder
  /** The killed holder that had left it; null: none. */
  readonly killed: LockHolder | null
}

const holderSchema = v.object({
  pid: v.pipe(v.number(), v.integer(), v.minValue(1)),
  /** Start time as of `startTimeOf`. */
  startTime: v.nullable(v.string()),
  host: v.string(),
  bootId: v.nullable(v.string()),
  /** Namespace as of `pidNamespace`. */
  pidNamespace: v.optional(v.nullable(v.string()), null),
  /** Time of the lock, ISO 8601 in UTC. */
  at: v.pipe(v.string(), v.isoTimestamp()),
  /** Distinguishes two locks of one process. */
  nonce: v.string(),
  /** Real path of the work directory; undefined in locks of an earlier version. */
  directory: v.optional(v.string()),
  /** True if it answers at the `lifeSign` of the nonce; undefined: not on Windows, or by an earlier version. */
  answers: v.optional(v.boolean()),
})

/** The process in a lock file. */
export type LockHolder = v.InferOutput<typeof holderSchema>

/**
 * The state of a lock file.
 * - `stale`: its holder no longer runs.
 * - `elsewhere`: held from another machine or container with invisible processes; only a person can end it.
 * Containers share their machine's boot id, so host name and pid namespace together identify one. A restarted container
 * keeps its name but gets a new namespace, and its old lock must not block it. So two containers with one name and shared
 * records count as one. Each sees the other's lock as `stale`: give them different names.
 */
export type LockState =
  | { state: 'free' }
  | { state: 'held' | 'stale' | 'elsewhere'; holder: LockHolder }
  | { state: 'unreadable'; problem: string }

export interface LockOptions {
  platform: NodeJS.Platform
  /** Id of this process. */
  pid: number
  now: Date
  /** Hint if somebody runs here; undefined: queue a goal. */
  hint?: string
  /** Real path of the work directory, for its lock. */
  directory?: string
}

/**
 * Takes the lock, also from a dead holder. Throws a `UserError` with exit code 6 if it is held. Of several processes at once
 * exactly one gets it.
 */
export async function takeRunLock(path: string, options: LockOptions): Promise<RunLock> {
  const nonce = randomUUID()
  const sign = lifeSign(nonce, options.platform)
  await using opened = new Cleanup()
  const answering = sign === null ? null : await answerAt(sign)
  if (answering !== null) opened.use(answering)
  const holder: LockHolder = {
    pid: options.pid,
    startTime: await startTimeOf(options.pid, options.platform),
    host: hostname(),
    bootId: await bootId(options.platform),
    pidNamespace: await pidNamespace(options.platform),
    at: options.now.toISOString(),
    nonce,
    ...(answering === null ? {} : { answers: true }),
    ...(options.directory === undefined ? {} : { directory: options.directory }),
  }
  const lock = await take(path, holder, options.platform, options.hint)
  const held = opened.move()
  const release = async () => {
    await lock[Symbol.asyncDispose]()
    await held[Symbol.asyncDispose]()
  }
  return { ...lock, [Symbol.asyncDispose]: release }
}

/**
 * Returns the holder in a copy of a lock. Anybody may have written it, so the very process must be alive and visible;
 * otherwise null.
 */
export async function holderAlive(text: string, platform: NodeJS.Platform): Promise<LockHolder | null> {
  const holder = parseHolder(text)
  if (holder === null || (holder.startTime === null && platform !== 'win32')) return null
  return (await stateOf(holder, platform)) === 'held' ? holder : null
}

/** Reads the state of the lock, without changing it. */
export async function readRunLock(path: string, platform: NodeJS.Platform): Promise<LockState> {
  const read = await readBoundedText(path, MOST_BYTES)
  if (read === 'missing') return { state: 'free' }
  if ('problem' in read) return { state: 'unreadable', problem: `${path} ${read.problem}` }
  const holder = parseHolder(read.text)
  if (holder === null) return { state: 'unreadable', problem: `${path} is not a lock of codemachine` }
  return { state: await stateOf(holder, platform), holder }
}

/** Returns when the run in these records took its lock; Unix time, ms. Infinity if there is no lock. */
export async function lockedSince({ lock }: { lock: string }, platform: NodeJS.Platform): Promise<number> {
  const found = await readRunLock(lock, platform)
  return 'holder' in found ? Date.parse(found.holder.at) : Number.POSITIVE_INFINITY
}

/** Returns the current runner in the work directory; null: none. An unreachable one on another machine counts. */
export async function readRunner(path: string, platform: NodeJS.Platform): Promise<LockHolder | null> {
  const runner = await askWhoRuns(path, platform, () => {})
  return runner === 'unknown' ? null : runner
}

/**
 * As `readRunner`, but `unknown` if the lock cannot be read.
 * @param onProblem told then why, and how to mend it, as a sentence
 */
export async function askWhoRuns(
  path: string,
  platform: NodeJS.Platform,
  onProblem: (problem: string) => void,
): Promise<Runner> {
  const lock = await readRunLock(path, platform)
  if (lock.state === 'held' || lock.state === 'elsewhere') return lock.holder
  if (lock.state !== 'unreadable') return null
  onProblem(unreadableInWords(lock.problem))
  return 'unknown'
}

/** The current runner, null for none; `unknown`: the lock cannot be read. */
export type Runner = LockHolder | null | 'unknown'

/** Longest time until the end of a run is noticed, ms. */
const LOOK_MS = 1000

/** Returns a function for the current runner, read at most once a second. Reports a problem once, as a sentence. */
export function lookout(
  path: string,
  { platform, clock, onProblem }: { platform: NodeJS.Platform; clock: Clock; onProblem: (problem: string) => void },
): () => Promise<Runner> {
  let lookedAt = Number.NEGATIVE_INFINITY
  let runner: Runner = null
  let isTold = false
  const tell = (problem: string) => {
    if (!isTold) onProblem(problem)
    isTold = true
  }
  return async () => {
    const now = clock.monotonic()
    if (now - lookedAt < LOOK_MS) return runner
    lookedAt = now
    runner = await askWhoRuns(path, platform, tell)
    return runner
  }
}

const MOST_BYTES = 64 * 1024

const TO_WAIT = 'codemachine status shows its work; codemachine queue add "…" queues this as its next session.'

async function take(path: string, holder: LockHolder, platform: NodeJS.Platform, hint = TO_WAIT): Promise<RunLock> {
  await using staged = await writing(dirname(path), () => stageFile(dirname(path), `${JSON.stringify(holder)}\n`))
  let killed: LockHolder | null = null
  while (!(await staged.linkAs(basename(path)))) {
    const found = await readRunLock(path, platform)
    if (found.state === 'free') continue
    if (found.state !== 'stale') throw refusal(path, found, hint)
    killed = found.holder
    await removeStale(path, found.holder, holder, platform)
  }
  return { holder, killed, [Symbol.asyncDispose]: () => release(path, holder, platform) }
}

/**
 * Removes a stale lock under an inner lock that is named by its content. So nobody else removes it during the second check,
 * and a newer lock of another process stays. The inner lock follows the same rule if its holder dies.
 */
async function removeStale(
  path: string,
  stale: LockHolder,
  holder: LockHolder,
  platform: NodeJS.Platform,
): Promise<void> {
  const name = createHash('sha256').update(stale.nonce).digest('hex').slice(0, 12)
  await using _ = await take(`${path}.takeover-${name}`, holder, platform)
  const found = await readRunLock(path, platform)
  if (found.state === 'stale' && found.holder.nonce === stale.nonce) await rm(path, { force: true })
}

/**
 * Releases the lock, unless somebody deleted it and another process has taken it. If the system refuses the removal, the
 * lock is stale.
 */
async function release(path: string, holder: LockHolder, platform: NodeJS.Platform): Promise<void> {
  const found = await readRunLock(path, platform)
  if ('holder' in found && found.holder.nonce === holder.nonce) await rm(path, { force: true }).catch(() => undefined)
}

async function stateOf(holder: LockHolder, platform: NodeJS.Platform): Promise<'held' | 'stale' | 'elsewhere'> {
  const boot = await bootId(platform)
  // A laptop's host name changes with its network, its boot id does not.
  const sameMachine = boot !== null && boot === holder.bootId && (await seesPidsOf(holder, platform))
  if (!sameMachine && holder.host !== hostname()) return 'elsewhere'
  if (boot !== holder.bootId) return 'stale'
  return (await isStillRunning(holder, platform)) && (await stillAnswers(holder, platform)) ? 'held' : 'stale'
}

/** True if the holder answers at its life sign, in case another process has its pid now. */
async function stillAnswers({ nonce, answers }: LockHolder, platform: NodeJS.Platform): Promise<boolean> {
  const sign = answers === true ? lifeSign(nonce, platform) : null
  return sign === null || (await isAnswered(sign))
}

/** True if the holder shares this pid namespace, or does not name one (earlier version). */
async function seesPidsOf({ pidNamespace: theirs }: LockHolder, platform: NodeJS.Platform): Promise<boolean> {
  return theirs === null || theirs === (await pidNamespace(platform))
}

function parseHolder(text: string): LockHolder | null {
  try {
    return v.parse(holderSchema, JSON.parse(text))
  } catch {
    return null
  }
}

function refusal(path: string, found: Exclude<LockState, { state: 'free' }>, hint: string): UserError {
  if (found.state === 'unreadable') return unreadableLock(found)
  const { pid, host, at } = found.holder
  // This locale writes `2026-11-20 23:00:00`, in local time.
  const since = new Date(at).toLocaleString('sv-SE')
  if (found.state === 'elsewhere')
    return new UserError('CM0601', `Another codemachine (pid ${pid} on ${host}) is running here since ${since}.`, {
      hint: `codemachine cannot look at another machine or container; if it no longer runs there, delete ${path}.`,
      exitCode: 6,
    })
  return new UserError('CM0601', `Another codemachine (pid ${pid}) is running here since ${since}.`, {
    hint,
    exitCode: 6,
  })
}

/** Returns the error for a lock that cannot be read; exit code 6. */
export function unreadableLock({ problem }: { problem: string }): UserError {
  return new UserError('CM0602', unreadableInWords(problem), { exitCode: 6 })
}

function unreadableInWords(problem: string): string {
  return `${problem}; if no codemachine runs here, delete it.`
}
