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

/** Who runs in a work directory. Disposing it lets the next one in. */
export interface RunLock extends AsyncDisposable {
  readonly holder: LockHolder
  /** Whether it was still there from a holder that no longer runs: one that was killed. */
  readonly wasStale: boolean
}

const holderSchema = v.object({
  pid: v.pipe(v.number(), v.integer(), v.minValue(1)),
  /** As of `startTimeOf`. */
  startTime: v.nullable(v.string()),
  host: v.string(),
  bootId: v.nullable(v.string()),
  /** As of `pidNamespace`. */
  pidNamespace: v.optional(v.nullable(v.string()), null),
  /** Since when; ISO 8601 in UTC. */
  at: v.pipe(v.string(), v.isoTimestamp()),
  /** Tells two locks of one process apart. */
  nonce: v.string(),
  /** The real path of the work directory; a lock of an earlier version does not say. */
  directory: v.optional(v.string()),
  /** Whether it answers at the `lifeSign` of the nonce; left out: not on Windows, or by an earlier version. */
  answers: v.optional(v.boolean()),
})

/** What a lock file says of the process that took it. */
export type LockHolder = v.InferOutput<typeof holderSchema>

/**
 * A lock file as it is found. `stale`: its holder no longer runs. `elsewhere`: held from another machine or container,
 * whose processes cannot be seen from here; only a person can say that it is over.
 *
 * Containers share the boot id of their machine, so two of them are told apart by name and pid namespace together. The
 * namespace alone says too little: a container that is started again keeps its name and gets a new one, and what it
 * ran before must not stand in its way. So two containers of one name that share the records are taken for one, and the
 * lock of one is `stale` to the other: give them names of their own.
 */
export type LockState =
  | { state: 'free' }
  | { state: 'held' | 'stale' | 'elsewhere'; holder: LockHolder }
  | { state: 'unreadable'; problem: string }

export interface LockOptions {
  platform: NodeJS.Platform
  /** This process. */
  pid: number
  now: Date
  /** What a person is told to do where somebody runs here; left out: to have a goal wait. */
  hint?: string
  /** The real path of the work directory, for a lock of one. */
  directory?: string
}

/**
 * Takes the lock, from a holder that no longer runs too; a `UserError` with exit code 6 if it is held. Of any number
 * of processes that try at once exactly one gets it.
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
 * The holder that a copy of a lock names, where anybody may have written it: believed only if that very process lives, and can
 * be seen from here. Null otherwise.
 */
export async function holderAlive(text: string, platform: NodeJS.Platform): Promise<LockHolder | null> {
  const holder = parseHolder(text)
  if (holder === null || (holder.startTime === null && platform !== 'win32')) return null
  return (await stateOf(holder, platform)) === 'held' ? holder : null
}

/** Looks who holds the lock, without touching it. */
export async function readRunLock(path: string, platform: NodeJS.Platform): Promise<LockState> {
  const read = await readBoundedText(path, MOST_BYTES)
  if (read === 'missing') return { state: 'free' }
  if ('problem' in read) return { state: 'unreadable', problem: `${path} ${read.problem}` }
  const holder = parseHolder(read.text)
  if (holder === null) return { state: 'unreadable', problem: `${path} is not a lock of codemachine` }
  return { state: await stateOf(holder, platform), holder }
}

/** When the run that works in these records took its lock; Unix time, ms. Infinity if it has none. */
export async function lockedSince({ lock }: { lock: string }, platform: NodeJS.Platform): Promise<number> {
  const found = await readRunLock(lock, platform)
  return 'holder' in found ? Date.parse(found.holder.at) : Number.POSITIVE_INFINITY
}

/** Who runs in the work directory now; null if nobody. One on another machine counts: it cannot be asked. */
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

/** Who runs; `unknown`: that cannot be told. */
export type Runner = LockHolder | null | 'unknown'

/** A run that goes away is noticed within this time, ms. */
const LOOK_MS = 1000

/** Tells who runs, looked up at most once a second. Why it cannot be known is told once, as a sentence. */
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
  let wasStale = false
  while (!(await staged.linkAs(basename(path)))) {
    const found = await readRunLock(path, platform)
    if (found.state === 'free') continue
    if (found.state !== 'stale') throw refusal(path, found, hint)
    wasStale = true
    await removeStale(path, found.holder, holder, platform)
  }
  return { holder, wasStale, [Symbol.asyncDispose]: () => release(path, holder, platform) }
}

/**
 * Who wants to remove a stale lock has to hold the lock on removing that very one, named by its content. So while it
 * is looked at once more nobody else removes it, and a lock that another has taken meanwhile is never removed. The
 * inner lock is taken by the same rule, should its holder have died right then.
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
 * Not if someone has deleted it by hand, and another process has its own there now. One that the system does not let go is
 * stale: nobody answers for it any more.
 */
async function release(path: string, holder: LockHolder, platform: NodeJS.Platform): Promise<void> {
  const found = await readRunLock(path, platform)
  if ('holder' in found && found.holder.nonce === holder.nonce) await rm(path, { force: true }).catch(() => undefined)
}

async function stateOf(holder: LockHolder, platform: NodeJS.Platform): Promise<'held' | 'stale' | 'elsewhere'> {
  const boot = await bootId(platform)
  // A laptop changes its name with its network, but not its boot id.
  const sameMachine = boot !== null && boot === holder.bootId && (await seesPidsOf(holder, platform))
  if (!sameMachine && holder.host !== hostname()) return 'elsewhere'
  if (boot !== holder.bootId) return 'stale'
  return (await isStillRunning(holder, platform)) && (await stillAnswers(holder, platform)) ? 'held' : 'stale'
}

/** Where its pid may be another's by now, and nothing but this tells. */
async function stillAnswers({ nonce, answers }: LockHolder, platform: NodeJS.Platform): Promise<boolean> {
  const sign = answers === true ? lifeSign(nonce, platform) : null
  return sign === null || (await isAnswered(sign))
}

/** A lock of an earlier version does not say. */
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
  if (found.state === 'unreadable') return new UserError('CM0602', unreadableInWords(found.problem), { exitCode: 6 })
  const { pid, host, at } = found.holder
  // This locale writes `2026-11-20 23:00:00`, in local time.
  const since = new Date(at).toLocaleString('sv-SE')
  if (found.state === 'elsewhere')
    return new UserError('CM0601', `Another codemachine (pid ${pid} on ${host}) is running here since ${since}.`, {
      hint: `That is another machine or container, so this cannot be checked; if it no longer runs there, delete ${path}.`,
      exitCode: 6,
    })
  return new UserError('CM0601', `Another codemachine (pid ${pid}) is running here since ${since}.`, {
    hint,
    exitCode: 6,
  })
}

function unreadableInWords(problem: string): string {
  return `${problem}; if no codemachine runs here, delete it.`
}
