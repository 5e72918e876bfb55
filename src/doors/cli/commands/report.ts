import { stat, writeFile } from 'node:fs/promises'
import { dirname, extname, join, resolve } from 'node:path'
import { Interrupted, messageOf, systemErrorCode, UserError } from '../../../base/errors.ts'
import { pathExists, writeWholeFile } from '../../../platform/files.ts'
import { agentFolders } from '../../../project/environment/agent-folders.ts'
import { OpenProject } from '../../../project/open-project.ts'
import { lookForPage, reportCard } from '../../../project/reports.ts'
import { areSavepointsGone } from '../../../project/savepoints.ts'
import { findSessionAround } from '../../../project/worktrees/find.ts'
import { placesOf } from '../../../project/world.ts'
import { openRecords, type Records } from '../../../session/records/records.ts'
import { type CommandContext, commandsHere } from '../../../tell/report/commands.ts'
import { markdownOf } from '../../../tell/report/markdown.ts'
import type { ReportData } from '../../../tell/report/report-data.ts'
import { badgeOf, jsonOf, pageOf, pagePath, type SharedFile, writePage } from '../../../tell/report/write.ts'
import { writableIn } from '../../../workspace/git/find-git.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { paintTone } from '../../screen/plain-view.ts'
import { directoryOf, type LookFlags, wantsColour } from '../flags.ts'
import { openInBrowser, sayWorktree } from '../output.ts'
import { warnOn } from '../warn-on.ts'

export interface ReportFlags extends LookFlags {
  html?: true
  md?: true
  /** Show the page in a browser. */
  open?: boolean
  /** A picture of the page: the file as typed, `true` where none was. */
  png?: string | true
  /** A badge, likewise. */
  badge?: string | true
  /** As typed: a file, or `-` for stdout; left out: where that format goes without it. */
  output?: string
}

/** `codemachine report`: what a session has done, by its journal alone. */
export async function report(context: CliContext, session: string | undefined, flags: ReportFlags): Promise<number> {
  const { output = null, cd = null, png, badge } = flags
  for (const [flag, file] of [['png', png] as const, ['badge', badge] as const]) refuseName(flag, file)
  const say = warnOn(context)
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
  else if (png !== undefined) await putPicture(made, png)
  else if (badge !== undefined) await putShared(made, await badgeOf(data), badge, 'badge.svg')
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
  const { context } = made
  const page = await drawPage(made)
  if (output === '-') return await put(made, output, page)
  const path = output === null ? await putInPlace(made, page, 'report.html', open) : resolve(context.cwd, output)
  if (output !== null) await put(made, output, page)
  context.stdout.write(`${path}\n`)
  if (open) await openInBrowser(context, path, made.records.directory)
}

/**
 * While an agent is at work it could change a page in the work directory before the browser reads it. Where the
 * session's folder is gone, the page lies in the records.
 */
async function putInPlace(
  { records, data }: Made,
  content: string | Buffer,
  name: SharedFile,
  isOpened: boolean,
): Promise<string> {
  const places = whereItLies(records, data)
  const isSafe = data.standing === 'ended' || data.standing === 'cut-off'
  const usual = pagePath(places, name)
  const hasFolder = await pathExists(dirname(usual))
  const path = (isOpened && !isSafe) || !hasFolder ? join(places.records, name) : usual
  try {
    await (path === usual ? writePage(content, places, name) : writeWholeFile(path, content))
  } catch (error) {
    const hint = name === 'report.html' ? '--output FILE writes it to another place.' : 'Name another file.'
    throw new UserError('CM0110', `The report cannot be written to ${path}: ${messageOf(error)}`, {
      hint,
      cause: error,
    })
  }
  return path
}

/** The page with its diffs and links. */
async function drawPage({ context, records, data, commands }: Made): Promise<string> {
  const areGone = commands.areSavepointsGone ?? false
  const extras = await lookForPage(context, records, data, { areGone, onWarning: warnOn(context) })
  return await pageOf(data, commands, extras)
}

const ENDINGS = { png: '.png', badge: '.svg' } as const

/** A session that stands behind the flag would be taken for the file. */
function refuseName(flag: keyof typeof ENDINGS, file: string | true | undefined): void {
  if (file === undefined || file === true || file === '-') return
  const ending = ENDINGS[flag]
  if (extname(file).toLowerCase() === ending) return
  const hint = `Name a file that ends in ${ending}. The session comes first: codemachine report ${file} --${flag}`
  throw new UserError('CM0103', `The file of --${flag} must end in ${ending}, but ${file} does not.`, { hint })
}

/** Like a page: its path goes to stdout. */
async function putShared(made: Made, content: string | Buffer, file: string | true, name: SharedFile): Promise<void> {
  if (file !== true) await put(made, file, content)
  const path = file === true ? await putInPlace(made, content, name, false) : resolve(made.context.cwd, file)
  if (file !== '-') made.context.stdout.write(`${path}\n`)
}

const PICTURE = { width: 1280, mostHeight: 8_000, scale: 2, timeoutMs: 60_000 }

/** The page is written, too: without a browser it is what there is. */
async function putPicture(made: Made, file: string | true): Promise<void> {
  const { context, records } = made
  const { env, platform, home, signal } = context
  const page = await drawPage(made)
  const hint = `The report is ${await putInPlace(made, page, 'report.html', false)}`
  const { BROWSER_VARIABLE, findBrowser, takePicture } = await import('../../../platform/headless-browser.ts')
  const where = await writableIn(records.directory, env, await agentFolders(context))
  const { path, wrong } = await findBrowser({ env, platform, home, where })
  const none = `The picture needs Chromium, Chrome or Edge, and none was found; install one, or name it in ${BROWSER_VARIABLE}.`
  if (path === null) throw new UserError('CM0110', wrong === null ? none : `${wrong}.`, { hint })
  const picture = await takePicture(path, page, { env, signal, temporary: records.folder, ...PICTURE })
  if (signal.aborted) throw new Interrupted(signal.reason)
  if (typeof picture === 'string') throw new UserError('CM0110', `The picture could not be drawn: ${picture}`, { hint })
  await putShared(made, picture.png, file, 'report.png')
  if (picture.whole > picture.height)
    warnOn(context)(`the picture shows the first ${picture.height} of ${picture.whole} pixels of the page. ${hint}`)
}

/** Onto stdout, or into a file of the person's. */
async function put({ context }: Made, output: string | null, text: string | Buffer): Promise<void> {
  if (output === null || output === '-') {
    context.stdout.write(text)
    return
  }
  const path = resolve(context.cwd, output)
  await writeTo(path, text).catch((error: unknown) => {
    const code = systemErrorCode(error)
    const why = code === 'ENOENT' ? 'its folder does not exist' : (code ?? messageOf(error))
    throw new UserError('CM0110', `The report cannot be written to ${path}: ${why}; name another file.`, {
      cause: error,
    })
  })
}

/** A device or a pipe, such as /dev/stdout, is written to; a file gives way to a whole one. */
async function writeTo(path: string, text: string | Buffer): Promise<void> {
  const found = await stat(path).catch(() => null)
  if (found === null || found.isFile()) await writeWholeFile(path, text)
  else await writeFile(path, text)
}

function whereItLies(records: Records, { session }: ReportData) {
  return { id: session, records: records.sessionFolder(session), directory: records.directory }
}
