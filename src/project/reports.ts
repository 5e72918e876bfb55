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

/** An ended session: `session-ended` is in its journal. */
interface EndedSession {
  records: Pick<Records, 'journal' | 'sessionFolder' | 'directory' | 'templates' | 'answer'>
  id: string
  /** The work directory as typed on the command line; null: not typed. */
  named: string | null
  /** Whether later commands can find the session. */
  resumable: boolean
  /** Source of diffs and links for its page; left out: none. */
  sources?: PageSources
}

/** Report at the end, for a person. */
export interface EndReport {
  /** Path of the page; null: it was not written. */
  html: string | null
  /** A sentence about failed writes; null: none failed. */
  problem: string | null
  /** Returns the card for a terminal of that many columns; empty without a report. `hasSlash`: commands are those of the screen. */
  card(place: Pick<CardOptions, 'columns' | 'isEndShown'> & { hasSlash?: boolean }): CardLine[]
}

/** Writes the reports of a session that has ended. Never rejects: a session does not fail for its report. */
export async function reportAtEnd({ records, id, named, resumable, sources }: EndedSession): Promise<EndReport> {
  try {
    // The run has already checked a snapshot from another process.
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
    // The command to resume comes after the card.
    const typed = commandsOf(data, commands).filter(({ command }) => resumable && command !== commands.resume)
    const slash = `/report · /diff · /sessions${resumable ? ' · /resume' : ''}`
    const onScreen = [{ command: slash, what: 'goes on here', isOnCard: true as const }]
    return {
      html,
      problem,
      card: ({ hasSlash, ...place }) => cardOf(data, { ...place, commands: hasSlash ? onScreen : typed, full: html }),
    }
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
    /** The work directory as typed on the command line; null: not typed. */
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

/** Sources of a page's parts that are not in the journal. */
interface PageSources {
  savepoints: Pick<SavepointStore, 'diff'> | null
  repository: PersonRepository | null
  /** Removes secrets from a text. */
  redact: (text: string) => string
}

/** Returns a page's parts outside of the journal: diffs from savepoints, and addresses of commits. Never rejects. */
async function pageExtrasOf(data: ReportData, sources: PageSources): Promise<PageExtras> {
  const { savepoints, repository, redact } = sources
  const [diffs, commits] = await Promise.all([
    savepoints === null ? null : diffsOf(data, savepoints, redact).catch(() => null),
    repository === null ? null : commitPagesOf(repository).catch(() => null),
  ])
  return { diffs, commits }
}

/**
 * Does the same for a session that does not run in this process.
 * @param areGone whether its savepoints have been pruned
 */
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

/** Read a file with more changed lines alone, so that it takes no space from others. */
const LARGE = 2_000
const TOGETHER_BYTES = 2 * 1024 * 1024
const ALONE_BYTES = 128 * 1024
const TREE = /^[0-9a-f]{40,64}$/

/** Returns the diffs of the report's files, by path; null if it names no two trees. */
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
    // The last diff may be incomplete.
    if (isCut && some.length > 1 && last !== undefined) diffs.delete(last)
    return diffs
  }
  const small = files.filter(({ added, removed }) => (added ?? 0) + (removed ?? 0) <= LARGE)
  const diffs = await read(small, TOGETHER_BYTES)
  // With long lines not all diffs fit: read the missing ones one by one.
  for (const file of files.filter(({ path }) => !diffs.has(path))) {
    for (const [path, diff] of await read([file], ALONE_BYTES)) diffs.set(path, diff)
  }
  return diffs
}
