import { lstat } from 'node:fs/promises'
import { messageOf } from '../base/errors.ts'
import { asSentence } from '../base/text.ts'
import type { Records } from '../session/records/records.ts'
import { type CardLine, type CardOptions, cardOf } from '../tell/report/card.ts'
import { commandsHere, commandsOf } from '../tell/report/commands.ts'
import { type FileDiff, fileDiffsOf } from '../tell/report/file-diffs.ts'
import type { PageExtras } from '../tell/report/page/changes.ts'
import type { ReportData } from '../tell/report/report-data.ts'
import { pagePath, readReport, writeReports } from '../tell/report/write.ts'
import { findRepository, type PersonRepository } from '../workspace/git/git.ts'
import { commitPagesOf } from '../workspace/git/remote.ts'
import type { SavepointStore } from '../workspace/savepoints/savepoint-store.ts'
import { areSavepointsGone, lookAtSavepoints } from './savepoints.ts'
import { redactorOfProject } from './secrets/redactor.ts'
import type { World } from './world.ts'

/** A session that has ended: `session-ended` is in its journal. */
interface EndedSession {
  records: Pick<Records, 'journal' | 'sessionFolder' | 'directory' | 'templates'>
  id: string
  /** The work directory as it was named on the command line; null if it was not. */
  named: string | null
  /** Whether commands that are typed later find the session. */
  resumable: boolean
  /** Where its page has diffs and links from; left out: it has none. */
  sources?: PageSources
}

/** What a person is shown at the end. */
export interface EndReport {
  /** Where the page lies; null if it could not be written. */
  html: string | null
  /** What could not be written, a sentence; null if all was. */
  problem: string | null
  /** The card for a terminal of so many columns; none if there is no report. */
  card(place: Pick<CardOptions, 'columns' | 'isEndShown'>): CardLine[]
}

/** Writes the reports of a session that has ended. Never rejects: a session does not fail for its report. */
export async function reportAtEnd({ records, id, named, resumable, sources }: EndedSession): Promise<EndReport> {
  try {
    // Who ran it has looked at all of a snapshot that another process has left.
    const data = await readReport(records, id, null, 'ends')
    if (data === null) return noReport(`The journal of ${id} has no session.`)
    const commands = commandsHere(data, named)
    const places = { id, records: records.sessionFolder(id), directory: records.directory }
    const { html, problems } = await writeReports(
      data,
      places,
      commands,
      sources && (await pageExtrasOf(data, sources)),
    )
    const problem = problems.length === 0 ? null : problems.join(' ')
    // How to go on is said after the card.
    const typed = commandsOf(data, commands).filter(({ command }) => resumable && command !== commands.resume)
    return { html, problem, card: place => cardOf(data, { ...place, commands: typed, full: html }) }
  } catch (error) {
    return noReport(asSentence(`The report could not be made: ${messageOf(error)}`))
  }
}

function noReport(problem: string): EndReport {
  return { html: null, problem, card: () => [] }
}

const NARROWEST = 40
const WIDEST = 120

/** The card of a report for a person who asks for it. It names the page's path, or the command that makes the page if there is none. */
export async function reportCard(
  data: ReportData,
  {
    world,
    records,
    columns,
    named,
    onWarning,
  }: {
    world: World
    records: Records
    columns: number
    /** The work directory as it was named on the command line; null if it was not. */
    named: string | null
    onWarning: (warning: string) => void
  },
): Promise<CardLine[]> {
  const { session } = data
  const page = pagePath({ id: session, records: records.sessionFolder(session), directory: records.directory })
  const gone = await areSavepointsGone(world, records, data, onWarning)
  const commands = { ...commandsHere(data, named), areSavepointsGone: gone }
  const full = (await isFile(page)) ? page : `codemachine report ${session} --open${commands.here}`
  return cardOf(data, {
    commands: commandsOf(data, commands),
    columns: Math.max(NARROWEST, Math.min(WIDEST, columns)),
    full,
    areSavepointsGone: gone,
  })
}

async function isFile(path: string): Promise<boolean> {
  return await lstat(path).then(
    stat => stat.isFile(),
    () => false,
  )
}

/** Where what a page has beside the journal comes from. */
interface PageSources {
  savepoints: Pick<SavepointStore, 'diff'> | null
  repository: PersonRepository | null
  /** Takes secrets out of a text. */
  redact: (text: string) => string
}

/** What the page of a report has beside the journal: diffs by the savepoints, and where commits are looked at. Never rejects. */
async function pageExtrasOf(data: ReportData, sources: PageSources): Promise<PageExtras> {
  const { savepoints, repository, redact } = sources
  const [diffs, commits] = await Promise.all([
    savepoints === null ? null : diffsOf(data, savepoints, redact).catch(() => null),
    repository === null ? null : commitPagesOf(repository).catch(() => null),
  ])
  return { diffs, commits }
}

/** The same of a session that nobody runs in this process. @param areGone whether its savepoints have been pruned */
export async function lookForPage(
  world: World,
  records: Records,
  data: ReportData,
  { areGone, onWarning }: { areGone: boolean; onWarning: (warning: string) => void },
): Promise<PageExtras> {
  const redactor = redactorOfProject(world, records)
  const redact = (text: string) => redactor.text(text)
  const repository = await findRepository(records.directory).catch(() => null)
  if (areGone || data.changes.start === null) return await pageExtrasOf(data, { savepoints: null, repository, redact })
  try {
    await using open = await lookAtSavepoints(world, records, onWarning)
    return await pageExtrasOf(data, { savepoints: open?.savepoints ?? null, repository, redact })
  } catch (error) {
    onWarning(`The page has no diffs: ${messageOf(error)}`)
    return await pageExtrasOf(data, { savepoints: null, repository, redact })
  }
}

/** A file with more changed lines is read by itself, so that it takes no room from the others. */
const LARGE = 2_000
const TOGETHER_BYTES = 2 * 1024 * 1024
const ALONE_BYTES = 128 * 1024
const TREE = /^[0-9a-f]{40,64}$/

/** By path, the diffs of the files that the report names; null where it names no two trees. */
async function diffsOf(
  { changes }: ReportData,
  savepoints: Pick<SavepointStore, 'diff'>,
  redact: (text: string) => string,
): Promise<Map<string, FileDiff> | null> {
  const [before, after] = [changes.start?.tree ?? '', changes.now?.tree ?? '']
  if (changes.from !== 'savepoints' || !TREE.test(before) || !TREE.test(after)) return null
  const files = changes.paths
  const read = async (some: typeof files, mostBytes: number) => {
    if (some.length === 0) return new Map<string, FileDiff>()
    const paths = some.map(({ path }) => path)
    const { text, isCut } = await savepoints.diff(before, after, { mostBytes, paths, renames: false })
    const diffs = fileDiffsOf(redact(text), some, files.length)
    const last = [...diffs.keys()].at(-1)
    // It may have been cut in the middle.
    if (isCut && some.length > 1 && last !== undefined) diffs.delete(last)
    return diffs
  }
  const small = files.filter(({ added, removed }) => (added ?? 0) + (removed ?? 0) <= LARGE)
  const diffs = await read(small, TOGETHER_BYTES)
  // Where lines are long not all have fit: then these one by one, too.
  for (const file of files.filter(({ path }) => !diffs.has(path))) {
    for (const [path, diff] of await read([file], ALONE_BYTES)) diffs.set(path, diff)
  }
  return diffs
}
