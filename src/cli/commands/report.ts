import { dirname, join, resolve } from 'node:path'
import { findSessionAround } from '../../app/find.ts'
import { OpenProject } from '../../app/open-project.ts'
import { reportCard } from '../../app/reports.ts'
import { areSavepointsGone } from '../../app/savepoints.ts'
import { placesOf } from '../../app/world.ts'
import { messageOf, systemErrorCode, UserError } from '../../base/errors.ts'
import { pathExists, writeWholeFile } from '../../platform/files.ts'
import { openRecords, type Records } from '../../records/records.ts'
import { markdownOf } from '../../report/markdown.ts'
import type { ReportData } from '../../report/report-data.ts'
import { type CommandContext, commandsHere } from '../../report/words.ts'
import { jsonOf, pageOf, pagePath, writePage } from '../../report/write.ts'
import type { CliContext } from '../../tui/cli-context.ts'
import { paintTone } from '../../tui/plain-view.ts'
import { directoryOf, type LookFlags, wantsColour } from '../flags.ts'
import { openInBrowser, sayWorktree, warnOn } from '../output.ts'

export interface ReportFlags extends LookFlags {
  html?: true
  md?: true
  /** Show the page in a browser. */
  open?: boolean
  /** As typed: a file, or `-` for stdout; left out: where that format goes without it. */
  output?: string
}

/** `codemachine report`: what a session has done, by its journal alone. */
export async function report(context: CliContext, session: string | undefined, flags: ReportFlags): Promise<number> {
  const { stderr } = context
  const { output = null, cd = null } = flags
  const say = (problem: string) => stderr.write(`codemachine: ${problem}\n`)
  const own = await openRecords(placesOf(context, directoryOf(context, flags)))
  const found = await findSessionAround(own, session ?? null, { platform: context.platform, onProblem: say })
  const { records, worktree, id } = found
  const project = await OpenProject.open(context, { directory: records.directory })
  const data = await project.reportOf(id, say)
  sayWorktree(context, found)
  const named = worktree === null ? cd : records.directory
  const gone = !flags.json && (await areSavepointsGone(context, records, data, warnOn(context)))
  const commands = { ...commandsHere(data, named), areSavepointsGone: gone }
  const made: Made = { context, records, data, commands, named }
  if (flags.md) await put(made, output, markdownOf(data, commands))
  else if (flags.json) await put(made, output, jsonOf(data))
  else if (flags.html || flags.open || output !== null) await putPage(made, output, flags.open ?? false)
  else await showCard(made)
  return 0
}

interface Made {
  context: CliContext
  records: Records
  data: ReportData
  commands: CommandContext
  named: string | null
}

/** Of a file that the card goes to. */
const COLUMNS = 80

async function showCard({ context, records, data, named }: Made): Promise<void> {
  const { stdout } = context
  const paint = wantsColour(context) ? paintTone : (text: string) => text
  const lines = await reportCard(data, {
    world: context,
    records,
    columns: stdout.columns ?? COLUMNS,
    named,
    onWarning: warnOn(context),
  })
  stdout.write(`${lines.map(({ text, tone }) => paint(text, tone)).join('\n')}\n`)
}

/** The page's path goes to stdout, so that another command can be given it. */
async function putPage(made: Made, output: string | null, open: boolean): Promise<void> {
  const { context, data, commands } = made
  const page = await pageOf(data, commands)
  if (output === '-') return await put(made, output, page)
  const path = output === null ? await putInPlace(made, page, open) : resolve(context.cwd, output)
  if (output !== null) await put(made, output, page)
  context.stdout.write(`${path}\n`)
  if (open) await openInBrowser(context, path)
}

/**
 * While an agent is at work it could change a page in the work directory before the browser reads it. Where the
 * session's folder is gone, the page lies in the records.
 */
async function putInPlace({ records, data }: Made, page: string, isOpened: boolean): Promise<string> {
  const places = whereItLies(records, data)
  const isSafe = data.standing === 'ended' || data.standing === 'cut-off'
  const hasFolder = await pathExists(dirname(pagePath(places)))
  const path = (isOpened && !isSafe) || !hasFolder ? join(places.records, 'report.html') : pagePath(places)
  try {
    await (path === pagePath(places) ? writePage(page, places) : writeWholeFile(path, page))
  } catch (error) {
    const hint = '--output FILE writes it to another place.'
    throw new UserError(`The report cannot be written to ${path}: ${messageOf(error)}`, { hint, cause: error })
  }
  return path
}

/** Onto stdout, or into a file of the person's. */
async function put({ context }: Made, output: string | null, text: string): Promise<void> {
  if (output === null || output === '-') {
    context.stdout.write(text)
    return
  }
  const path = resolve(context.cwd, output)
  await writeWholeFile(path, text).catch((error: unknown) => {
    const code = systemErrorCode(error)
    const why = code === 'ENOENT' ? 'its folder is not there' : (code ?? messageOf(error))
    throw new UserError(`The report cannot be written to ${path}: ${why}; name another file.`, { cause: error })
  })
}

function whereItLies(records: Records, { session }: ReportData) {
  return { id: session, records: records.sessionFolder(session), directory: records.directory }
}
