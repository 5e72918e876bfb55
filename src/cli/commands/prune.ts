import { UserError } from '../../base/errors.ts'
import { foldJournal } from '../../session/fold-journal.ts'
import { problemOfJournal } from '../../session/journal.ts'
import { openRecords, type Records } from '../../session/records.ts'
import { parseDuration } from '../../settings/duration.ts'
import { formatCount } from '../../ui/format-count.ts'
import { oneLine } from '../../ui/safe-text.ts'
import type { PrivateGit } from '../../workspace/private-git.ts'
import { type Batch, bytesOf, bytesOnDisk, type PruneRule, planPrune, prune } from '../../workspace/prune-savepoints.ts'
import type { Savepoint } from '../../workspace/savepoint.ts'
import { formatBytes, parseBytes } from '../byte-count.ts'
import type { CliContext } from '../context.ts'
import { findSession } from '../find-session.ts'
import { holdSavepoints } from '../open-savepoints.ts'

/** Texts as typed. */
export interface PruneCommand {
  directory: string
  /** Null: by age and size. */
  session: string | null
  olderThan: string | null
  largerThan: string | null
  all: boolean
  dryRun: boolean
}

/** `codemachine prune`: lets old savepoints go, or those of one session, and gives their room back. */
export async function pruneSavepoints(context: CliContext, command: PruneCommand): Promise<number> {
  const { stdout, stderr } = context
  const records = await openRecords({ ...context, directory: command.directory })
  const rule = await ruleOf(context, records, command)
  await using open = await holdSavepoints(context, records)
  const { git } = open.fingerprints
  const savepoints = await open.savepoints.list()
  const batches = await batchesToGo(git, savepoints, rule)
  const gone = new Set(batches.flatMap(batch => batch.savepoints.map(({ id }) => id)))
  const rest = savepoints.filter(({ id }) => !gone.has(id))
  // Not for nothing: an older git cannot say it, nor can any of what is broken.
  const needed =
    command.dryRun || rule.mostBytes !== null ? await bytesOf(git, [{ name: '', savepoints: rest, at: 0 }]) : 0
  if (command.dryRun) {
    const freed = Math.max(0, (await bytesOnDisk(git)) - needed)
    if (batches.length > 0) stdout.write(`${inWords(batches)} would go, and about ${formatBytes(freed)} be free.\n`)
    else stdout.write(`No savepoint has to go: ${whatStays(rest.length)}${alsoFree(freed, 'would be')}\n`)
  } else {
    const freed = await prune(git, batches)
    if (batches.length > 0) stdout.write(`${inWords(batches)} went; ${formatBytes(freed)} are free.\n`)
    else stdout.write(`No savepoint has to go: ${whatStays(rest.length)}${alsoFree(freed, 'are')}\n`)
  }
  const stays = rest.some(({ session }) => session !== null && session === rule.spare)
  if (stays && rule.all) stderr.write(`${whySpared(rule.spare)}\n`)
  else if (rule.mostBytes !== null && needed > rule.mostBytes) stderr.write(`${stillLarge(needed)}\n`)
  return 0
}

type Rule = PruneRule & { only: string | null }

async function ruleOf(context: CliContext, records: Records, command: PruneCommand): Promise<Rule> {
  const { session, olderThan, largerThan, all } = command
  if (session !== null) {
    if (olderThan !== null || largerThan !== null || all) {
      throw new UserError('Name a session, or say with --older-than, --larger-than or --all what may go; not both.')
    }
    return { before: null, mostBytes: null, all: true, only: await findSession(records, session) }
  }
  const age = olderThan === null ? null : read(parseDuration, olderThan, '--older-than', '30d or 12h')
  const mostBytes = largerThan === null ? null : read(parseBytes, largerThan, '--larger-than', '2G or 500M')
  const ageMs = age ?? (mostBytes === null ? defaultAgeMs : null)
  const before = ageMs === null ? null : context.clock.now() - ageMs
  return { before, mostBytes, all, only: null, spare: await newestUnfinished(records) }
}

async function batchesToGo(git: PrivateGit, savepoints: readonly Savepoint[], rule: Rule): Promise<Batch[]> {
  const batches = await planPrune(git, savepoints, rule)
  return rule.only === null ? batches : batches.filter(({ name }) => name === rule.only)
}

/** The session that `codemachine resume` would go on with, which needs its savepoints; null if there is none. */
async function newestUnfinished(records: Records): Promise<string | null> {
  for (const id of (await records.sessions()).reverse()) {
    if ((await problemOfJournal(records.journal(id))) !== null) continue
    const state = await foldJournal(records.journal(id), id)
    if (state !== null && state.ended?.outcome.kind !== 'done') return id
  }
  return null
}

function whySpared(session: string | null | undefined): string {
  return `Those of ${session} stay: it is not done, and codemachine resume goes on with it. To let them go: codemachine prune ${session}`
}

function stillLarge(bytes: number): string {
  return `What stays takes ${formatBytes(bytes)}: those of the newest session always stay; --all lets every one go.`
}

/** What an earlier one that was broken off, and fingerprints, have left. */
function alsoFree(bytes: number, verb: string): string {
  return bytes < worthSaying ? '' : ` ${formatBytes(bytes)} that nothing needed ${verb} free.`
}

function whatStays(count: number): string {
  if (count === 0) return 'there is none here.'
  const stay = count === 1 ? 'stays' : 'stay'
  return `${formatCount(count, 'savepoint')} ${stay}. Those of the newest session always do; --all lets every one go.`
}

function inWords(batches: readonly Batch[]): string {
  const count = batches.reduce((sum, { savepoints }) => sum + savepoints.length, 0)
  const names = batches.slice(0, mostNamed).map(({ name }) => name)
  const more = batches.length > mostNamed ? ` and ${batches.length - mostNamed} more` : ''
  return `${formatCount(count, 'savepoint')} (${names.join(', ')}${more})`
}

function read(parse: (text: string) => number | null, text: string, flag: string, example: string): number {
  const value = parse(text)
  if (value !== null) return value
  throw new UserError(`${flag} is "${oneLine(text, 40)}"; use something like ${example}.`)
}

const defaultAgeMs = 30 * 24 * 3_600_000
const mostNamed = 8
const worthSaying = 1024 * 1024
