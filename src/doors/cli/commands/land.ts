import { UserError, withCode } from '../../../base/errors.ts'
import {
  findLandingPlace,
  type Landed,
  type LandingPlace,
  type LandingTerms,
  landWorktree,
  MergeFails,
} from '../../../project/worktrees/land.ts'
import { type Candidate, landable, landQueue, type QueueEntry } from '../../../project/worktrees/land-queue.ts'
import { describeLanded, proofLine } from '../../../project/worktrees/land-words.ts'
import type { ProvedGate } from '../../../project/worktrees/prove-merge.ts'
import { safeText } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { type DirectoryFlags, directoryOf } from '../flags.ts'
import { askYesOrNo, inColumns } from '../output.ts'
import { listenersOn } from '../run-options.ts'
import { warnOn } from '../warn-on.ts'

interface LandFlags extends DirectoryFlags {
  queue?: true
  onto?: string
  /** Of the merge; left out: one that names the branch. */
  message?: string
  /** With what message what is not committed in the worktree is committed first; left out: it is not. */
  commit?: string
  verify: boolean
  yes?: true
  codexBin?: string
  json?: true
}

/**
 * `codemachine land`: merges what was done in a worktree into a branch, once the merge has passed the gates of both sides. 4 if it
 * conflicts or a gate fails, of any of them with `--queue`.
 * @param names left out: the only one that has something to land; with `--queue` all whose session is done
 */
export async function land(context: CliContext, names: readonly string[], flags: LandFlags): Promise<number> {
  const { message, commit, onto = null, verify, codexBin, json } = flags
  for (const flag of ['message', 'commit', 'onto'] as const) {
    if (flags[flag]?.trim() === '') throw new UserError('CM0103', `--${flag} is blank; use a text for git.`)
  }
  const say = warnOn(context)
  const { onDebug } = listenersOn(context, {})
  const terms: LandingTerms = { message, commit, verify, codexBin, say, onDebug }
  const [name, second] = names
  if (second !== undefined && !flags.queue)
    throw new UserError('CM0102', 'One worktree is landed at a time; use --queue for several.')
  if (flags.yes && !flags.queue) throw new UserError('CM0102', '--yes means something only with --queue.')
  const place = await findLandingPlace(context, directoryOf(context, flags), onto)
  if (flags.queue) return await queue(context, names, { flags, terms, place })
  try {
    const { record, ...landed } = await landWorktree(context, place, { name, ...terms })
    const told = { place, record, verify }
    if (json) printJson(context, [{ worktree: landed.worktree, landed, error: null }], { record, verify })
    else
      context.stdout.write(
        describeLanded(landed, told)
          .map(line => `${line}\n`)
          .join(''),
      )
    return 0
  } catch (error) {
    if (json && error instanceof UserError)
      printJson(context, [{ worktree: name ?? null, landed: null, error }], { record: null, verify })
    throw error
  }
}

async function queue(
  context: CliContext,
  names: readonly string[],
  { flags, terms, place }: { flags: LandFlags; terms: LandingTerms; place: LandingPlace },
): Promise<number> {
  const { stdout } = context
  const { json, verify } = flags
  const found = await landable(place, names.length === 0 ? null : names, terms.say)
  const chosen = names.length === 0 ? found.filter(({ session }) => session !== null) : found
  const left = found.filter(each => !chosen.includes(each))
  if (chosen.length > 0 && !(await isConfirmed(context, chosen, place.target.branch, flags))) return 0
  const { entries, record, interrupted } = await landQueue(
    context,
    place,
    chosen.map(({ name }) => name),
    terms,
  )
  const all = [...entries, ...left.map(({ name }): QueueEntry => ({ worktree: name, landed: null, error: null }))]
  if (json) printJson(context, all, { record, verify })
  else stdout.write(table(all, { record, verify, left }))
  if (interrupted !== null) throw interrupted
  return entries.some(({ error }) => error !== null) ? 4 : 0
}

async function isConfirmed(
  context: CliContext,
  chosen: readonly Candidate[],
  onto: string,
  { yes, json }: LandFlags,
): Promise<boolean> {
  const { stdin, stdout } = context
  if (yes) return true
  const canAsk = stdin.isTTY === true && stdout.isTTY === true && !json
  if (!canAsk) throw new UserError('CM0105', 'Nobody can confirm here what is to be landed; use --yes.')
  const rows = chosen.map(({ name, session, holds }) => [name, session ?? 'no session that is done', holds])
  stdout.write(`${inColumns(rows).join('\n')}\n`)
  return (await askYesOrNo(context, `Land them on ${onto}, in this order?`)) === true
}

/** A line for each worktree, and below it why one was not landed. */
function table(
  entries: readonly QueueEntry[],
  { record, verify, left }: { record: string | null; verify: boolean; left: readonly Candidate[] },
): string {
  if (entries.length === 0) return 'No worktree has anything to land.\n'
  const rows = entries.map(({ worktree, landed, error }) => [
    error !== null ? 'failed' : landed === null ? 'untouched' : 'landed',
    worktree,
    error !== null
      ? withCode(error)
      : landed !== null
        ? (landed.commit?.slice(0, 10) ?? 'nothing new')
        : left.some(({ name }) => name === worktree)
          ? 'no session of it is done'
          : 'interrupted before it landed',
  ])
  const outputs = entries.flatMap(({ worktree, error }) =>
    error === null || error.hint === null ? [] : [`${worktree}:\n  ${error.hint}`],
  )
  const last = entries.findLast(({ landed }) => landed?.commit != null)?.landed ?? null
  const proof = last === null ? [] : [proofLine(last, { record, verify })]
  return `${safeText([...inColumns(rows), ...outputs, ...proof].join('\n'))}\n`
}

/** What `--json` prints. */
function printJson(
  { stdout }: CliContext,
  entries: readonly (Omit<QueueEntry, 'worktree'> & { worktree: string | null })[],
  { record, verify }: { record: string | null; verify: boolean },
): void {
  const worktrees = entries.map(({ worktree, landed, error }) => ({
    worktree,
    state: error !== null ? 'failed' : landed === null ? 'untouched' : 'landed',
    ...(landed === null ? {} : landedJson(landed)),
    ...(error === null ? {} : { problem: error.message, code: error.code }),
    ...(error instanceof MergeFails ? { gates: error.gates.map(gateJson) } : {}),
  }))
  stdout.write(`${JSON.stringify({ v: 1, verified: verify, certificate: record, worktrees })}\n`)
}

function landedJson({ branch, into, commit, files, session, gates }: Landed): object {
  return { branch, into, commit, files, session, gates: gates.map(gateJson) }
}

function gateJson({ gate: { name, run }, folder, ran }: ProvedGate): object {
  const { gate: _, changedCount: __, ...rest } = ran
  return { name, run, folder, ...rest }
}
