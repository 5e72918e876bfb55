import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../../base/errors.ts'
import { asSentence } from '../../base/text.ts'
import { type SessionState, sessionStatusOf } from '../../core/state/state.ts'
import { writeWholeFile } from '../../platform/files.ts'
import { eachEvent, JOURNAL_START } from '../../session/records/journal.ts'
import { readPersonAnswer } from '../../session/records/questions.ts'
import type { Records } from '../../session/records/records.ts'
import { readSnapshot, type Snapshot, type SnapshotCheck, writeSnapshot } from '../../session/records/snapshot.ts'
import { relativeInside, writeFileInside } from '../../workspace/files/inside-directory.ts'
import { sessionFolder } from '../../workspace/memory/memory-paths.ts'
import type { CommandContext } from './commands.ts'
import { type KeptReport, ReportFold } from './fold-report.ts'
import { markdownOf } from './markdown.ts'
import type { PageExtras } from './page/changes.ts'
import type { ReportData } from './report-data.ts'

/** Where the reports of a session go: its id, its folder in the records, and the work directory's real path. */
interface ReportPlaces {
  id: string
  records: string
  directory: string
}

/**
 * Writes `report.json` into the records, and `report.md` and `report.html` into the session's folder of the work
 * directory. Never rejects.
 * @returns `html`: the path of the page, null if it could not be written; `problems`: a sentence for each file that could not be
 */
export async function writeReports(
  data: ReportData,
  places: ReportPlaces,
  commands: CommandContext,
  extras?: PageExtras,
): Promise<{ html: string | null; problems: readonly string[] }> {
  const { folder } = sessionFolder(places)
  const attempt = async (path: string, write: () => Promise<void>) => {
    try {
      await write()
      return null
    } catch (error) {
      return asSentence(`The report could not be written to ${path}: ${messageOf(error)}`)
    }
  }
  const json = join(places.records, 'report.json')
  const md = join(folder, 'report.md')
  const page = pagePath(places)
  // Side by side: each waits for the disk, and the page is drawn meanwhile.
  const problems = await Promise.all([
    attempt(json, () => writeWholeFile(json, jsonOf(data))),
    attempt(md, () => writeInFolder(places.directory, md, markdownOf(data, commands))),
    attempt(page, async () => writePage(await pageOf(data, commands, extras), places)),
  ])
  return { html: problems[2] === null ? page : null, problems: problems.filter(problem => problem !== null) }
}

/** The files that a report is shared as. */
export type SharedFile = 'report.html' | 'report.png' | 'badge.svg'

/** Where such a file of a session lies in the work directory; left out: the page. */
export function pagePath(places: ReportPlaces, name: SharedFile = 'report.html'): string {
  return join(sessionFolder(places).folder, name)
}

/** Writes it there; a `UserError` if something is in the way. */
export async function writePage(
  content: string | Uint8Array,
  places: ReportPlaces,
  name: SharedFile = 'report.html',
): Promise<void> {
  await writeInFolder(places.directory, pagePath(places, name), content)
}

/** The report as the content of `report.json`. */
export function jsonOf(data: ReportData): string {
  return `${JSON.stringify(data)}\n`
}

/** The report as an HTML page. The modules that draw it are loaded at the first call. */
export async function pageOf(data: ReportData, commands: CommandContext, extras?: PageExtras): Promise<string> {
  const { htmlOf } = await import('./page/page.ts')
  return htmlOf(data, commands, extras)
}

/** The badge of a session (SVG), and the modules that draw it, which are loaded at the first call. */
export async function badgeOf(data: ReportData): Promise<string> {
  const badge = await import('./page/badge.ts')
  return badge.badgeOf(data)
}

async function writeInFolder(directory: string, path: string, content: string | Uint8Array): Promise<void> {
  await writeFileInside(directory, relativeInside(directory, path), content)
}

/**
 * The report of a session, by its journal and the answers of a person; null if the journal holds no session. Events are read
 * one by one: how much memory it takes does not depend on how many there are.
 * @param runner who runs in the work directory, as of `sessionStatusOf`, asked before this is called
 * @param check what is asked of a snapshot that stands for the beginning of the journal
 */
export async function readReport(
  records: ReportRecords,
  id: string,
  runner: Parameters<typeof sessionStatusOf>[1],
  check: SnapshotCheck = 'whole',
): Promise<ReportData | null> {
  const report = await foldReport(records, id, check)
  return await withAnswers(
    report.data(state => sessionStatusOf(state, runner)),
    records,
  )
}

type ReportRecords = Pick<Records, 'journal' | 'templates' | 'answer'>

/** The same of a session that nobody runs, with its state; null if its journal holds none. */
export async function readReportAndState(
  records: ReportRecords,
  id: string,
): Promise<{ data: ReportData; state: SessionState } | null> {
  const report = await foldReport(records, id, 'whole')
  const data = await withAnswers(
    report.data(state => sessionStatusOf(state, null)),
    records,
  )
  return data === null ? null : { data, state: report.state }
}

/** Marks the questions that were answered after the session: such an answer is in no journal. One that cannot be read is none. */
async function withAnswers(data: ReportData | null, records: ReportRecords): Promise<ReportData | null> {
  if (data === null) return null
  // The id becomes part of a file name.
  const isAnswered = async (id: string) =>
    /^Q\d{1,6}$/.test(id) && (await readPersonAnswer(records, data.session, id).catch(() => null)) !== null
  const entries = await Promise.all(
    data.questions.entries.map(async each =>
      (await isAnswered(each.id)) ? { ...each, answered: true as const } : each,
    ),
  )
  return { ...data, questions: { ...data.questions, entries } }
}

async function foldReport(
  records: Pick<Records, 'journal' | 'templates'>,
  id: string,
  check: SnapshotCheck,
): Promise<ReportFold> {
  const snapshot = await readSnapshot(records, id, check)
  const report = reportFrom(records, id, snapshot)
  const from = snapshot?.read ?? JOURNAL_START
  await eachEvent(records.journal(id), event => report.add(event), { from })
  return report
}

function reportFrom({ templates }: Pick<Records, 'templates'>, id: string, snapshot: Snapshot | null): ReportFold {
  // Whoever writes snapshots for this code has put it there.
  const from = snapshot && { state: snapshot.state, kept: snapshot.report() as KeptReport }
  return new ReportFold(id, templates, from ?? undefined)
}

/**
 * Writes the snapshot of a session anew where its journal has grown by as many bytes since the last one, so that whoever reads
 * it next reads no more than that. False where it has not, or its state is none that can be kept. Rejects if it cannot be written.
 * What the last one was made of is not read again: whoever runs the session has asked for all of it before (`whole`), or begun it.
 */
export async function renewSnapshot(
  records: Pick<Records, 'journal' | 'templates'>,
  id: string,
  leastBytes: number,
): Promise<boolean> {
  const path = records.journal(id)
  const { size } = await stat(path)
  if (size < leastBytes) return false
  const before = await readSnapshot(records, id, 'ends')
  const from = before?.read ?? JOURNAL_START
  if (size - from.bytes < leastBytes) return false
  const report = reportFrom(records, id, before)
  const read = await eachEvent(path, event => report.add(event), { from, wholeLines: true })
  const { state } = report
  const isLater = before !== null && state.events - before.state.events >= EVENTS_BETWEEN
  const earlier = isLater ? { state: before.state, read: before.read } : (before?.earlier() ?? null)
  return await writeSnapshot(records, id, { state, report: report.kept(), read, earlier }, before)
}

/** As many as are shown of what is past where a session is watched. */
const EVENTS_BETWEEN = 200
