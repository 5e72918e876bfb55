import { nullIfUserError, UserError } from '../../../base/errors.ts'
import { formatBytes, parseBytes, parseDuration } from '../../../base/text.ts'
import type { TreeChanges } from '../../../core/events/events.ts'
import { isFinished } from '../../../core/events/outcome.ts'
import { isCall } from '../../../core/state/state.ts'
import { OpenComparison } from '../../../project/diff/comparison.ts'
import { findSession } from '../../../project/find.ts'
import { settingsOf } from '../../../project/open-run.ts'
import {
  carryOutRewind,
  holdSavepoints,
  keptByRewind,
  lookAtSavepoints,
  type OpenSavepoints,
  planRewindTo,
  sumOfRewind,
} from '../../../project/savepoints.ts'
import { foldJournal, isReplayedSession, problemOfJournal } from '../../../session/records/journal.ts'
import { openRecords, type Records } from '../../../session/records/records.ts'
import { formatCount, formatDayAndTime } from '../../../tell/words/numbers.ts'
import { oneLine, safeText } from '../../../tell/words/safe-text.ts'
import type { PrivateGit } from '../../../workspace/git/private-git.ts'
import type { RewindPlan } from '../../../workspace/savepoints/rewind.ts'
import {
  deleteSavepoints,
  type NamedState,
  objectBytesOnDisk,
  type PruneRule,
  planPrune,
  type Savepoint,
  type SavepointGroup,
  savepointBytes,
} from '../../../workspace/savepoints/savepoint-store.ts'
import type { SavepointWriter } from '../../../workspace/savepoints/savepoint-writer.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { openTheme, type Role, type Theme } from '../../screen/terminal/theme.ts'
import { directoryOf, type LookFlags, printDone, wantsColour, wantsScreen } from '../flags.ts'
import { PacedOutput } from '../output.ts'
import { warnOn } from '../warn-on.ts'

/** A savepoint as `savepoints --json` shows it. */
interface ListedSavepoint {
  id: string
  session: string | null
  round: number
  commit: string
  tree: string
  /** ISO 8601 in UTC. */
  at: string
  head: string | null
  /** Against the one before it in its session; null for the first, and of what cannot be read. */
  changes: Omit<TreeChanges, 'paths'> | null
}

/** `codemachine savepoints`: what can be looked at and gone back to, the newest last. */
export async function savepoints(context: CliContext, session: string | undefined, flags: LookFlags): Promise<number> {
  const records = await openRecords({ ...context, directory: directoryOf(context, flags) })
  const wanted = session === undefined ? null : await findSession(records, session)
  await using open = await lookAtSavepoints(context, records, warnOn(context))
  const all = (await open?.savepoints.list()) ?? []
  const some = all.filter(each => wanted === null || each.session === wanted)
  const listed = open === null ? [] : await withChanges(open.savepoints, some)
  if (flags.json) context.stdout.write(`${JSON.stringify(listed)}\n`)
  else if (listed.length === 0) context.stdout.write(`There are no savepoints ${wanted ? `of ${wanted}` : 'here'}.\n`)
  else context.stdout.write(wantsColour(context) ? await tableOn(context, listed) : table(listed))
  return 0
}

async function withChanges(savepoints: SavepointWriter, some: readonly Savepoint[]): Promise<ListedSavepoint[]> {
  const listed: ListedSavepoint[] = []
  const newest = new Map<string, Savepoint>()
  for (const savepoint of some) {
    const { id, session, round, commit, tree, at, head } = savepoint
    const before = session === null ? undefined : newest.get(session)
    if (session !== null) newest.set(session, savepoint)
    const changes = before === undefined ? null : await changesOf(savepoints, before.tree, tree)
    listed.push({ id, session, round, commit, tree, at: new Date(at).toISOString(), head, changes })
  }
  return listed
}

async function changesOf(
  savepoints: SavepointWriter,
  before: string,
  after: string,
): Promise<ListedSavepoint['changes']> {
  const changes = await savepoints.changes(before, after, 0).catch(() => null)
  return changes === null ? null : { files: changes.files, added: changes.added, removed: changes.removed }
}

function table(listed: readonly ListedSavepoint[]): string {
  const width = Math.max(...listed.map(({ id }) => id.length))
  return listed.map(each => `${rowOf(each, width)}\n`).join('')
}

/** The same with a head and colours. */
async function tableOn(context: CliContext, listed: readonly ListedSavepoint[]): Promise<string> {
  const { tableLines } = await import('../styled.ts')
  const heads = [
    { head: 'savepoint' },
    { head: 'kept' },
    { head: 'files', isNumber: true },
    COUNT,
    COUNT,
    { head: '' },
  ] as const
  const cells = listed.map(({ id, at, session, round, changes }) => {
    const isCounted = changes !== null && session !== null && round !== 0 && changes.files > 0
    return [
      [id, 'accent'],
      [formatDayAndTime(Date.parse(at)), 'dim'],
      [isCounted ? String(changes.files) : '', 'plain'],
      [isCounted ? `+${changes.added}` : '', 'added'],
      [isCounted ? `-${changes.removed}` : '', 'removed'],
      [isCounted ? '' : inWords(session, round, changes), 'dim'],
    ] as const
  })
  return tableLines(context, heads, cells)
}

const COUNT = { head: '', isNumber: true } as const

function rowOf({ id, at, session, round, changes }: ListedSavepoint, width: number): string {
  return `${id.padEnd(width)}  ${formatDayAndTime(Date.parse(at))}  ${inWords(session, round, changes)}`
}

function inWords(session: string | null, round: number, changes: ListedSavepoint['changes']): string {
  if (session === null) return 'before a rewind'
  if (round === 0) return 'the start of the session'
  if (changes === null) return ''
  const { files, added, removed } = changes
  return files === 0 ? 'nothing changed' : `${formatCount(files, 'file')}  +${added} -${removed}`
}

/**
 * `codemachine rewind`: makes the files of the work directory those of a savepoint. Nothing else changes: no branch,
 * index, stash or memory. What the files were is kept before.
 * @param to name of the savepoint as typed
 */
export async function rewind(context: CliContext, to: string, flags: LookFlags & { dryRun?: true }): Promise<number> {
  const { clock } = context
  const records = await openRecords({ ...context, directory: directoryOf(context, flags) })
  await using open = await holdSavepoints(context, records, warnOn(context))
  const planned = await planRewindTo(open, records, to)
  const { plan, target } = planned
  if (plan.write.length + plan.remove.length === 0) {
    const words = `The files are already as at ${target.name}; nothing was changed.\n${keptByRewind(plan)}`
    return printDone(context, flags, words.trimEnd())
  }
  if (flags.dryRun) {
    const sum = `Rewinding to ${target.name} would mean: ${sumOfRewind(plan)}.`
    return printDone(context, flags, `${listOf(plan)}${keptByRewind(plan)}${sum}`)
  }
  const id = await carryOutRewind(open, records, planned, clock.now())
  const [memory, git] = ['MAIN.md and tasks.json in .codemachine', 'your branch, index and stash']
  const untouched = open.fingerprints.git.repository === null ? memory : `${git}, and ${memory}`
  const words =
    `Rewound to ${target.name}: ${sumOfRewind(plan)}.\n${removedBy(plan, id)}${keptByRewind(plan)}` +
    `Only files were changed; ${untouched} are as they were.\n` +
    `Undo it with: codemachine rewind ${id}`
  return printDone(context, flags, words, { undo: id })
}

/** What is gone, by name, and where all of it is kept. */
function removedBy({ remove }: RewindPlan, undo: string): string {
  const shown = remove.slice(0, mostRemoved).map(path => `removed  ${nameOf(path)}\n`)
  const left = remove.length - shown.length
  return `${shown.join('')}${left > 0 ? `… and ${formatCount(left, 'more file')}: codemachine diff ${undo} --stat\n` : ''}`
}

const mostRemoved = 20

function nameOf(path: string): string {
  return oneLine(Buffer.from(path, 'latin1').toString('utf8'), 200)
}

function listOf({ write, remove }: RewindPlan): string {
  const all = [
    ...write.map(({ path, isKnown }) => ({ path, what: isKnown ? 'change ' : 'restore' })),
    ...remove.map(path => ({ path, what: 'remove ' })),
  ]
  const shown = all.slice(0, mostListed).map(({ path, what }) => `${what}  ${nameOf(path)}\n`)
  const left = all.length - shown.length
  return `${shown.join('')}${left > 0 ? `… and ${formatCount(left, 'more file')}\n` : ''}`
}

const mostListed = 1000

/**
 * `codemachine diff`: what has become of the files between two savepoints, or since one. Left out: what the newest
 * session began with, and the files as they are.
 */
export async function diff(
  context: CliContext,
  from: string | undefined,
  to: string | undefined,
  flags: LookFlags & { stat?: true; pager?: boolean },
): Promise<number> {
  const records = await openRecords({ ...context, directory: directoryOf(context, flags) })
  const asLines = flags.json === true || flags.stat === true || flags.pager === false
  if (!asLines && wantsScreen(context, {}) && (await showOnScreen(context, records, from, to))) return 0
  await using open = await lookAtSavepoints(context, records, warnOn(context))
  if (open === null) throw new UserError('CM0515', `No savepoints in ${records.directory} yet.`)
  const before = await resolve(open, from ?? 'start')
  const after = await resolve(open, to ?? 'now')
  if (flags.json || flags.stat) {
    const changes = await open.savepoints.changes(before.tree, after.tree, mostPaths)
    if (flags.json) context.stdout.write(`${JSON.stringify({ from: before.name, to: after.name, ...changes })}\n`)
    else context.stdout.write(statOf(changes))
    return 0
  }
  const { text, isCut } = await open.savepoints.diff(before.tree, after.tree, { mostBytes })
  if (text === '') context.stderr.write(`Nothing differs between ${before.name} and ${after.name}.\n`)
  await show(context, text)
  if (isCut) context.stderr.write(`codemachine: the diff is longer, and cut here; --stat shows all files.\n`)
  return 0
}

/** Opens the view of what changed; false where lines do: nothing differs, or the settings are for a screen reader, or broken. */
async function showOnScreen(context: CliContext, records: Records, from = 'start', to = 'now'): Promise<boolean> {
  const loaded = await settingsOf(context, records.directory, {}).catch(nullIfUserError)
  if (loaded === null || loaded.settings.screen.reader || context.env.INK_SCREEN_READER === 'true') return false
  const warnings: string[] = []
  {
    const states = { kind: 'between', from, to } as const
    await using source = new OpenComparison(context, records, states, warning => warnings.push(warning))
    const read = await source.read(context.signal)
    if (read.count === 0) return false
    const { openDiffScreen } = await import('../../screen/host/diff-screen.ts')
    await openDiffScreen(context, records, loaded, { source, read })
  }
  for (const warning of new Set(warnings)) warnOn(context)(warning)
  return true
}

function resolve({ savepoints, fingerprints }: OpenSavepoints, name: string): Promise<NamedState> {
  return savepoints.resolve(name, () => fingerprints.take())
}

/** Line by line, so that a reader that leaves early is not waited for. */
async function show(context: CliContext, text: string): Promise<void> {
  using output = new PacedOutput(context.stdout, context.signal)
  const theme = wantsColour(context) ? openTheme({ theme: 'auto', env: context.env, reader: false }) : null
  for (let at = 0; at < text.length && !output.ended.aborted; ) {
    const end = text.indexOf('\n', at + chunk)
    const part = text.slice(at, end === -1 ? text.length : end + 1)
    output.write(theme === null ? safeText(part) : paint(part, theme))
    await output.ready()
    at += part.length
  }
}

function paint(part: string, theme: Theme): string {
  return part
    .split('\n')
    .map(line => theme.paint(roleOf(line), safeText(line)))
    .join('\n')
}

function roleOf(line: string): Role {
  if (
    /^(?:diff --git |index |--- |\+\+\+ |similarity |rename |new file |deleted file |old mode |new mode )/.test(line)
  ) {
    return 'strong'
  }
  if (line.startsWith('@@')) return 'hunk'
  if (line.startsWith('+')) return 'added'
  return line.startsWith('-') ? 'removed' : 'plain'
}

function statOf({ files, added, removed, paths }: TreeChanges): string {
  const shown = paths.map(each => ({ name: oneLine(each.path, 200), ...each }))
  const width = Math.min(80, Math.max(0, ...shown.map(({ name }) => name.length)))
  const rows = shown.map(({ name, added, removed }) => {
    const lines = added === null || removed === null ? 'not text, or over 4 MiB' : `+${added} -${removed}`
    return `${name.padEnd(width)}  ${lines}\n`
  })
  const left = files - paths.length
  const more = left > 0 ? `… and ${formatCount(left, 'more file')}\n` : ''
  return `${rows.join('')}${more}${formatCount(files, 'file')}, +${added} -${removed}\n`
}

const mostBytes = 64 * 1024 * 1024
const mostPaths = 1000
const chunk = 64 * 1024

/** Texts as typed. */
interface PruneFlags extends LookFlags {
  olderThan?: string
  largerThan?: string
  all?: boolean
  dryRun?: true
}

/** `codemachine prune`: lets old savepoints go, by age and size, or those of one session, and gives their room back. */
export async function pruneSavepoints(
  context: CliContext,
  session: string | undefined,
  flags: PruneFlags,
): Promise<number> {
  const { stderr } = context
  const say = (words: string) => printDone(context, flags, words, { savepoints: [...gone] })
  const records = await openRecords({ ...context, directory: directoryOf(context, flags) })
  const rule = await ruleOf(context, records, session, flags)
  await using open = await holdSavepoints(context, records, warnOn(context))
  const { git } = open.fingerprints
  const savepoints = await open.savepoints.list()
  const newest = await open.savepoints.newestSession(savepoints)
  const batches = await batchesToGo(git, savepoints, { ...rule, newest })
  const gone = new Set(batches.flatMap(batch => batch.savepoints.map(({ id }) => id)))
  const rest = savepoints.filter(({ id }) => !gone.has(id))
  // Not for nothing: an older git cannot say it, nor can any of what is broken.
  const needed =
    flags.dryRun || rule.mostBytes !== null ? await savepointBytes(git, [{ name: '', savepoints: rest, at: 0 }]) : 0
  if (flags.dryRun) {
    const freed = Math.max(0, (await objectBytesOnDisk(git)) - needed)
    if (batches.length > 0)
      say(`${inWordsOfPrune(batches)} would be deleted; about ${formatBytes(freed)} would be free.`)
    else say(`No savepoints to delete: ${whatStays(rest.length)}${alsoFree(freed, 'would be')}`)
  } else {
    const freed = await deleteSavepoints(git, batches)
    if (batches.length > 0) say(`${inWordsOfPrune(batches)} deleted; ${formatBytes(freed)} are free.`)
    else say(`No savepoints to delete: ${whatStays(rest.length)}${alsoFree(freed, 'are')}`)
  }
  const stays = rest.some(({ session }) => session !== null && session === rule.spare)
  if (stays && rule.all) stderr.write(`${whySpared(rule.spare)}\n`)
  else if (rule.mostBytes !== null && needed > rule.mostBytes) stderr.write(`${stillLarge(needed)}\n`)
  return 0
}

type Rule = PruneRule & { only: string | null }

async function ruleOf(
  context: CliContext,
  records: Records,
  session: string | undefined,
  { olderThan, largerThan, all = false }: PruneFlags,
): Promise<Rule> {
  if (session !== undefined) {
    if (olderThan !== undefined || largerThan !== undefined || all) {
      throw new UserError(
        'CM0102',
        'Name a session, or use --older-than, --larger-than or --all; a session and these options cannot be combined.',
      )
    }
    return { before: null, mostBytes: null, all: true, only: await findSession(records, session) }
  }
  const age = olderThan === undefined ? null : read(parseDuration, olderThan, '--older-than', '30d or 12h')
  const mostBytes = largerThan === undefined ? null : read(parseBytes, largerThan, '--larger-than', '2G or 500M')
  const ageMs = age ?? (mostBytes === null ? defaultAgeMs : null)
  const before = ageMs === null ? null : context.clock.now() - ageMs
  return { before, mostBytes, all, only: null, spare: await newestUnfinished(records) }
}

async function batchesToGo(git: PrivateGit, savepoints: readonly Savepoint[], rule: Rule): Promise<SavepointGroup[]> {
  const batches = await planPrune(git, savepoints, rule)
  return rule.only === null ? batches : batches.filter(({ name }) => name === rule.only)
}

/** The session that `codemachine resume` would go on with, which needs its savepoints; null if there is none. */
async function newestUnfinished(records: Records): Promise<string | null> {
  for (const id of (await records.sessions()).reverse()) {
    if ((await problemOfJournal(records.journal(id))) !== null) continue
    const state = await foldJournal(records, id)
    const isOpen = state !== null && !isCall(state) && !(state.ended && isFinished(state.ended.outcome))
    if (isOpen && !(await isReplayedSession(records, id))) return id
  }
  return null
}

function whySpared(session: string | null | undefined): string {
  return `Those of ${session} stay: it is not done, and codemachine resume continues it. To delete them: codemachine prune ${session}`
}

function stillLarge(bytes: number): string {
  return `The rest takes ${formatBytes(bytes)}. The newest session keeps its savepoints; --all deletes them, too.`
}

/** What an earlier one that was broken off, and fingerprints, have left. */
function alsoFree(bytes: number, verb: string): string {
  return bytes < worthSaying ? '' : ` ${formatBytes(bytes)} of unused data ${verb} free.`
}

function whatStays(count: number): string {
  if (count === 0) return 'there are none here.'
  const stay = count === 1 ? 'stays' : 'stay'
  return `${formatCount(count, 'savepoint')} ${stay}. The newest session keeps its savepoints; --all deletes them, too.`
}

function inWordsOfPrune(batches: readonly SavepointGroup[]): string {
  const count = batches.reduce((sum, { savepoints }) => sum + savepoints.length, 0)
  const names = batches.slice(0, mostNamedOfPrune).map(({ name }) => name)
  const more = batches.length > mostNamedOfPrune ? ` and ${batches.length - mostNamedOfPrune} more` : ''
  return `${formatCount(count, 'savepoint')} (${names.join(', ')}${more})`
}

function read(parse: (text: string) => number | null, text: string, flag: string, example: string): number {
  const value = parse(text)
  if (value !== null) return value
  throw new UserError('CM0103', `${flag} is "${oneLine(text, 40)}"; use something like ${example}.`)
}

const defaultAgeMs = 30 * 24 * 3_600_000
const mostNamedOfPrune = 8
const worthSaying = 1024 * 1024
