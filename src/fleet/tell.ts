import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { messageOf, systemErrorCode, UserError } from '../base/errors.ts'
import { REPLY_CODES, type Reply } from '../core/shapes/reply.ts'
import type { Ask } from '../project/library.ts'
import { describeOutcome } from '../tell/words/outcome.ts'
import { oneLine } from '../tell/words/safe-text.ts'
import type { Database } from './database.ts'
import { type FleetSession, findFleetSession, knownOutcome, sessionOf, wordsForFleetOutcome } from './look.ts'
import { problemOfRepo } from './repos.ts'
import { SCHEMA } from './schema.ts'
import { type FleetState, jsonb } from './store.ts'
import { branchOf, Clones } from './worker/clones.ts'

/** The result as a sentence, and the new state of the session. */
interface Told {
  session: string
  state: FleetState
  message: string
}

/**
 * Cancels a session: a waiting one at once, a running one when its worker hears of it. Throws a `UserError` if it has ended.
 * @param wanted its id, or what a person types for it
 */
export async function cancelSession({ sql }: Database, wanted: string): Promise<Told> {
  const { id } = await findFleetSession(sql, wanted)
  const [row] = await sql<{ state: FleetState; worker: string | null }>(`select * from ${SCHEMA}.cancel($1)`, [id])
  if (row === undefined) {
    const { state } = await sessionOf(sql, id)
    throw new UserError('CM1109', `${id} is neither waiting nor running: it ${howItStands(state)}.`)
  }
  const { state, worker } = row
  if (state === 'running')
    return {
      session: id,
      state,
      message: `${id} will be cancelled when ${worker ?? 'its worker'} hears of it, within seconds.`,
    }
  // A worker that takes it meanwhile finds it cancelled, so this is not part of the statement above.
  await sql(`select ${SCHEMA}.dequeue($1)`, [id])
  return { session: id, state, message: `${id} is cancelled.` }
}

function howItStands(state: FleetState): string {
  if (state === 'dead') return 'is dead'
  return state === 'cancelled' ? 'is cancelled already' : 'has ended'
}

/** Returns a session to the queue under its own id. Throws a `UserError` if there is nothing to continue. */
export async function retrySession({ sql }: Database, wanted: string): Promise<Told> {
  const session = await findFleetSession(sql, wanted)
  refuseRetry(session)
  const { id, after } = session
  const [row] = await sql<{ state: FleetState }>(`select ${SCHEMA}.retry($1) as state`, [id]).catch(error => {
    throw systemErrorCode(error) === NOT_AGAIN ? new UserError('CM1109', `${id} is already waiting again.`) : error
  })
  const state = row?.state ?? 'waiting'
  const message = state === 'held' ? `${id} waits until ${after} is done.` : `${id} waits for a worker again.`
  return { session: id, state, message }
}

/** Code of the function `retry` if there is nothing to retry: somebody was faster. */
const NOT_AGAIN = 'CM007'

function refuseRetry(session: FleetSession): void {
  const { id, state } = session
  const outcome = knownOutcome(session)
  if (state === 'running' || state === 'waiting' || state === 'held')
    throw new UserError(
      'CM1109',
      `${id} already ${state === 'running' ? 'runs' : 'waits'}, so there is nothing to retry.`,
    )
  if (state !== 'ended' || session.outcome == null) return
  if (outcome === null)
    throw new UserError(
      'CM1113',
      `${id} ended in a way that this codemachine does not know (${wordsForFleetOutcome(session)}).`,
      {
        hint: 'Update codemachine to try it again.',
      },
    )
  if (['done', 'answered', 'replayed', 'planned'].includes(outcome.kind))
    throw new UserError(
      'CM1109',
      `${id} has ended (${describeOutcome(outcome).short}) and cannot be retried; for more work, submit a new session.`,
    )
  if (outcome.kind === 'limit')
    throw new UserError('CM1109', `${id} has reached its limit (${describeOutcome(outcome).short}).`, {
      hint: 'A retry would end at once. Submit a new session with a higher limit.',
    })
}

/** Interval between two checks for a reply, ms. */
const LOOK_MS = 250

/** A request to a fleet session: one for local sessions, or the answer to an agent's question. */
type FleetAsk = Ask | { type: 'answer'; session: string; question: string; agent?: string; text: string }

/**
 * Sends a request to a session on any worker, and waits for the reply. Null: no reply in time; the request remains for its
 * current or next worker. Throws a `UserError` if the session has ended.
 * @param mostMs how long it is waited, while it runs
 */
export async function askSession(
  { sql }: Database,
  clock: Clock,
  id: string,
  ask: FleetAsk,
  { mostMs, signal }: { mostMs: number; signal: AbortSignal },
): Promise<Reply | null> {
  const [row] = await sql<{ ask: string; state: FleetState }>(
    `with s as (select id, state from ${SCHEMA}.session where id = $1),
       made as (insert into ${SCHEMA}.ask (session, ask) select id, $2::jsonb from s where state in ('held', 'waiting', 'running') returning id)
     select s.state, (select id from made)::text as ask from s`,
    [id, jsonb(ask)],
  )
  if (row === undefined) throw new UserError('CM1108', `There is no session ${oneLine(id, 60)} in the fleet any more.`)
  if (row.ask === null)
    throw new UserError('CM1109', `${id} ${howItStands(row.state)}, so no agent can receive this.`, {
      hint: `If it is not done, continue it: codemachine fleet retry ${id}`,
    })
  if (row.state !== 'running')
    return { code: 'kept', message: `${id} does not run now. The next worker that takes it will be told.` }
  const end = clock.monotonic() + mostMs
  for (;;) {
    const [asked] = await sql<{ reply: unknown }>(`select reply from ${SCHEMA}.ask where id = $1`, [row.ask])
    if (asked === undefined) throw new UserError('CM1108', `${id} is not in the fleet any more.`)
    if (asked.reply !== null) return replyOf(asked.reply)
    if (signal.aborted || clock.monotonic() >= end) return null
    await clock.wait(LOOK_MS, signal)
  }
}

/** Parses a worker's reply. */
function replyOf(reply: unknown): Reply {
  const { message, code } = { message: '', code: '', ...(reply as object) }
  return { code: REPLY_CODES.find(each => each === code) ?? 'refused', message: oneLine(String(message), 2_000) }
}

/** Makes a worker accept nothing more and end after its current rounds. Throws a `UserError` if none of that name runs. */
export async function drainWorker({ sql }: Database, name: string): Promise<string> {
  const drained = await sql(
    `update ${SCHEMA}.worker set drains = true where name = $1 and ended_at is null returning name`,
    [name],
  )
  if (drained.length > 0)
    return `${name} takes no more sessions, gives back its own after their current rounds, and ends.`
  const workers = await sql<{ name: string }>(
    `select name from ${SCHEMA}.worker where ended_at is null order by name limit 20`,
  )
  throw new UserError('CM1111', `No worker named ${oneLine(name, 80)} is running.`, {
    hint:
      workers.length === 0 ? 'No worker is running.' : `Running workers: ${workers.map(each => each.name).join(', ')}`,
  })
}

interface PruneOptions {
  /** Age since the end of the sessions to remove, seconds. */
  olderSeconds: number
  /** Remote of their savepoints; null: each repository. */
  remote: string | null
  /** True to remove the branches of their results too. */
  branches: boolean
  /** True to change nothing. */
  dryRun: boolean
}

/** What was or would be removed, and the failures, a sentence each. */
interface Pruned {
  sessions: string[]
  refs: string[]
  problems: string[]
}

const REFS_AT_ONCE = 100

/**
 * Removes ended sessions from the database, and their carried commits from the remotes. Deletes a reference only if it is
 * unchanged since the check. Keeps references on unreachable remotes, and sessions that others wait for.
 */
export async function pruneSessions(
  { sql }: Database,
  { env, signal }: { env: NodeJS.ProcessEnv; signal: AbortSignal },
  { olderSeconds, remote, branches, dryRun }: PruneOptions,
): Promise<Pruned> {
  const rows = await sql<{ id: string; repo: string; hasRefs: boolean }>(
    `select id, repo, has_refs as "hasRefs" from ${SCHEMA}.prunable($1) limit 100000`,
    [olderSeconds],
  )
  const pruned: Pruned = { sessions: [], refs: [], problems: [] }
  const folder = await mkdtemp(join(tmpdir(), 'codemachine-prune-'))
  try {
    const remotes = new Remotes(await Clones.open({ root: folder, env, keep: 1 }), join(folder, 'empty.git'), signal)
    for (const [place, own] of Map.groupBy(rows, ({ repo }) => remote ?? repo)) {
      const taken = await takeOff(remotes, place, own, { branches, dryRun })
      pruned.refs.push(...taken.refs)
      pruned.problems.push(...taken.problems)
      const ids = own.map(({ id }) => id).filter(id => !taken.stays.has(id))
      if (!dryRun) await sql(`select ${SCHEMA}.prune($1)`, [ids])
      pruned.sessions.push(...ids)
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return pruned
}

async function takeOff(
  remotes: Remotes,
  place: string,
  rows: readonly { id: string; hasRefs: boolean }[],
  { branches, dryRun }: Pick<PruneOptions, 'branches' | 'dryRun'>,
): Promise<{ refs: string[]; stays: ReadonlySet<string>; problems: string[] }> {
  const ids = rows.flatMap(({ id, hasRefs }) => (hasRefs ? [id] : []))
  const refsOf = (id: string) => [`refs/codemachine/${id}/state`, ...(branches ? [`refs/heads/${branchOf(id)}`] : [])]
  if (ids.length === 0) return { refs: [], stays: new Set(), problems: [] }
  try {
    const there = await remotes.refs(place)
    const refs = ids.flatMap(refsOf).filter(ref => there.has(ref))
    if (dryRun) return { refs, stays: new Set(), problems: [] }
    for (let at = 0; at < refs.length; at += REFS_AT_ONCE)
      await remotes.remove(place, refs.slice(at, at + REFS_AT_ONCE), there)
    const left = refs.length === 0 ? there : await remotes.refs(place)
    const stays = new Set(ids.filter(id => refsOf(id).some(ref => refs.includes(ref) && left.has(ref))))
    const problems = stays.size === 0 ? [] : [`${place} did not delete ${[...stays].slice(0, 8).join(', ')}.`]
    return { refs: refs.filter(ref => !left.has(ref)), stays, problems }
  } catch (error) {
    const count = ids.length === 1 ? '1 session' : `${ids.length} sessions`
    return { refs: [], stays: new Set(ids), problems: [`${place}: ${messageOf(error)}; ${count} of it stay.`] }
  }
}

/** Lists and removes the references of sessions on remotes. */
class Remotes {
  readonly #clones: Clones
  readonly #gitDir: string
  readonly #signal: AbortSignal

  constructor(clones: Clones, gitDir: string, signal: AbortSignal) {
    this.#clones = clones
    this.#gitDir = gitDir
    this.#signal = signal
  }

  /** Returns the sessions' references with their targets. */
  async refs(place: string): Promise<ReadonlyMap<string, string>> {
    const problem = problemOfRepo(place)
    if (problem !== null) throw new UserError('CM1112', `it ${problem}`)
    const patterns = ['refs/codemachine/*', 'refs/heads/codemachine/*']
    const listed = await this.#clones.remote(['ls-remote', '--quiet', place, ...patterns], this.#signal)
    return new Map(
      listed.split('\n').flatMap(line => {
        const [, hash, ref] = /^([0-9a-f]{40,64})\t(\S+)$/.exec(line) ?? []
        return hash === undefined || ref === undefined ? [] : [[ref, hash] as const]
      }),
    )
  }

  /** Deletes the unchanged references; the next listing shows the others. */
  async remove(place: string, refs: readonly string[], known: ReadonlyMap<string, string>): Promise<void> {
    await this.#clones.local(['init', '--quiet', '--bare', '--template=', this.#gitDir], this.#signal)
    const leases = refs.map(ref => `--force-with-lease=${ref}:${known.get(ref) ?? ''}`)
    await this.#clones.run(
      ['--git-dir', this.#gitDir, 'push', '--quiet', '--no-verify', ...leases, place, ...refs.map(ref => `:${ref}`)],
      { signal: this.#signal, timeoutMs: PUSH_MS },
    )
    this.#signal.throwIfAborted()
  }
}

const PUSH_MS = 10 * 60_000
