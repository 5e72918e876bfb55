import { UserError } from '../../base/errors.ts'
import { openRecords } from '../../session/records.ts'
import { formatCount } from '../../ui/format-count.ts'
import { openTheme } from '../../ui/open-theme.ts'
import { oneLine, safeText } from '../../ui/safe-text.ts'
import type { Role, Theme } from '../../ui/theme.ts'
import type { Resolved } from '../../workspace/savepoint.ts'
import type { TreeChanges } from '../../workspace/tree-changes.ts'
import type { CliContext } from '../context.ts'
import { lookAtSavepoints, type OpenSavepoints } from '../open-savepoints.ts'
import { PacedOutput } from '../paced-output.ts'
import { wantsColour } from '../wants-colour.ts'

export interface DiffCommand {
  directory: string
  /** Names of savepoints as typed; null: what the newest session began with, and the files as they are. */
  from: string | null
  to: string | null
  stat: boolean
  json: boolean
}

/** `codemachine diff`: what has become of the files between two savepoints, or since one. */
export async function diff(context: CliContext, command: DiffCommand): Promise<number> {
  const records = await openRecords({ ...context, directory: command.directory })
  await using open = await lookAtSavepoints(context, records)
  if (open === null)
    throw new UserError(`There are no savepoints in ${records.directory} yet: no session has made one.`)
  const before = await resolve(open, command.from ?? 'start')
  const after = await resolve(open, command.to ?? 'now')
  if (command.json || command.stat) {
    const changes = await open.savepoints.changes(before.tree, after.tree, mostPaths)
    if (command.json) context.stdout.write(`${JSON.stringify({ from: before.name, to: after.name, ...changes })}\n`)
    else context.stdout.write(statOf(changes))
    return 0
  }
  const { text, isCut } = await open.savepoints.diff(before.tree, after.tree, { mostBytes })
  if (text === '') context.stderr.write(`Nothing differs between ${before.name} and ${after.name}.\n`)
  await show(context, text)
  if (isCut) context.stderr.write(`codemachine: the diff is longer, and cut here; --stat shows all files.\n`)
  return 0
}

function resolve({ savepoints, fingerprints }: OpenSavepoints, name: string): Promise<Resolved> {
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
