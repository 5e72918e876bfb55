import { UserError } from '../../../base/errors.ts'
import { parseDuration } from '../../../base/text.ts'
import { isTaken } from '../../../core/shapes/reply.ts'
import { readyDatabase } from '../../../fleet/fleet.ts'
import { findFleetSession } from '../../../fleet/look.ts'
import { problemOfRepo } from '../../../fleet/repos.ts'
import { askSession, cancelSession, drainWorker, pruneSessions, retrySession } from '../../../fleet/tell.ts'
import type { Ask } from '../../../project/library.ts'
import { formatCount } from '../../../tell/words/numbers.ts'
import { oneLine, safeText } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { type FleetFlags, readText } from '../flags.ts'
import { warnOn } from '../warn-on.ts'

interface TellFlags extends FleetFlags {
  json?: true
}

/** `codemachine fleet cancel`. */
export async function fleetCancel(context: CliContext, ids: readonly string[], flags: TellFlags): Promise<number> {
  return await changeEach(context, ids, flags, cancelSession)
}

/** `codemachine fleet retry`. */
export async function fleetRetry(context: CliContext, ids: readonly string[], flags: TellFlags): Promise<number> {
  return await changeEach(context, ids, flags, retrySession)
}

/** One after the other; what the first that is refused comes to is the end of it. */
async function changeEach(
  context: CliContext,
  ids: readonly string[],
  { queue, json }: TellFlags,
  change: typeof cancelSession,
): Promise<number> {
  await using database = await readyDatabase(context, queue)
  for (const id of ids) {
    const told = await change(database, id)
    context.stdout.write(json ? `${JSON.stringify(told)}\n` : `${safeText(told.message)}\n`)
  }
  return 0
}

/** `codemachine fleet steer`. */
export async function fleetSteer(
  context: CliContext,
  session: string,
  words: readonly string[],
  flags: TellFlags,
): Promise<number> {
  const text = await readText(context, words.join(' '))
  return await tell(context, session, () => ({ type: 'steer', text }), flags)
}

/** `codemachine fleet answer`: makes the decision that a session waits for. */
export async function fleetAnswer(
  context: CliContext,
  session: string,
  choice: string,
  words: readonly string[],
  flags: TellFlags,
): Promise<number> {
  const text = words.length === 0 ? null : await readText(context, words.join(' '))
  const more = text === null ? {} : { text }
  return await tell(context, session, id => ({ type: 'decide', choice, session: id, ...more }), flags)
}

/** How long a worker may take to reply: it looks every two seconds, and the session is asked then. */
const REPLY_MS = 30_000

async function tell(
  context: CliContext,
  wanted: string,
  ask: (id: string) => Ask,
  { queue, json }: TellFlags,
): Promise<number> {
  const { clock, signal, stdout } = context
  await using database = await readyDatabase(context, queue)
  const { id } = await findFleetSession(database.sql, wanted)
  const reply = (await askSession(database, clock, id, ask(id), { mostMs: REPLY_MS, signal })) ?? {
    code: 'no-answer' as const,
    message: `Its worker has not answered within ${REPLY_MS / 1000} s; ${id} is told once it looks again, or another one has it.`,
  }
  if (json) stdout.write(`${JSON.stringify({ session: id, ...reply })}\n`)
  else if (isTaken(reply) || reply.code === 'no-answer') stdout.write(`${reply.message}\n`)
  else throw new UserError('CM0617', reply.message, { hint: `What it is doing: codemachine fleet show ${id}` })
  return isTaken(reply) ? 0 : 2
}

/** `codemachine fleet drain`. */
export async function fleetDrain(context: CliContext, name: string, { queue, json }: TellFlags): Promise<number> {
  await using database = await readyDatabase(context, queue)
  const message = await drainWorker(database, name)
  context.stdout.write(json ? `${JSON.stringify({ worker: name, message })}\n` : `${message}\n`)
  return 0
}

interface PruneFlags extends TellFlags {
  older: string
  remote?: string
  branches?: true
  dryRun?: true
}

/** `codemachine fleet prune`; 4 where something stays for a remote that is away. */
export async function fleetPrune(context: CliContext, flags: PruneFlags): Promise<number> {
  const { queue, json, remote = null, branches = false, dryRun = false } = flags
  const { stdout } = context
  const olderSeconds = ageOf(flags.older)
  const problem = remote === null ? null : problemOfRepo(remote)
  if (problem !== null) throw new UserError('CM1112', `--remote ${oneLine(remote ?? '', 200)} ${problem}.`)
  await using database = await readyDatabase(context, queue)
  const pruned = await pruneSessions(database, context, { olderSeconds, remote, branches, dryRun })
  const { sessions, refs, problems } = pruned
  if (json) stdout.write(`${JSON.stringify({ ...pruned, dryRun })}\n`)
  else {
    const taken = `${formatCount(sessions.length, 'session')} and ${formatCount(refs.length, 'reference')}`
    stdout.write(dryRun ? `${taken} would go.\n` : `${taken} are gone.\n`)
    if (dryRun) for (const id of sessions) stdout.write(`  ${oneLine(id, 60)}\n`)
    for (const each of problems) warnOn(context)(each)
  }
  return problems.length === 0 ? 0 : 4
}

/** How long ago, as typed; seconds. */
function ageOf(typed: string): number {
  const ms = parseDuration(typed)
  if (ms !== null) return ms / 1000
  throw new UserError('CM0103', `--older ${oneLine(typed, 60)} is not a duration; use one such as 30d or 12h.`)
}
