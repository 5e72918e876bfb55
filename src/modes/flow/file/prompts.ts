import { lstat, opendir, realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { messageOf, systemErrorCode } from '../../../base/errors.ts'
import { formatBytes, nearestName, utf8Text } from '../../../base/text.ts'
import { isWithin, pathInside, sha256Of } from '../../../platform/files.ts'
import { readRegularFile } from '../../../workspace/files/inside-directory.ts'
import type { FlowPlan } from './plan.ts'

/** Name of the folder of a project's workflows. */
export const FLOW_FOLDER = '.codex-flow'

/** Where to search the files that a workflow file names. Absolute real paths. */
export interface SearchPath {
  root: string
  /** In order: the folder of the file, the nearest `.codex-flow` above it, the project's root. */
  folders: readonly string[]
}

/** A text of a workflow. `found`: from the project's root with `/`, absolute if outside. `sha256`: of its bytes, hex. */
export interface ReadText {
  found: string
  text: string
  sha256: string
}

export interface KindOfText {
  /** Such as `prompt`. */
  what: string
  /** The most bytes. */
  limit: number
  mayBeEmpty?: boolean
}

/** Returns where to search the files that the workflow file at `path` names; both absolute, and `root` a real path. */
export async function searchPathOf(path: string, root: string): Promise<SearchPath> {
  const folder = await realpath(dirname(path))
  const near = await nearestFlowFolder(folder, root)
  return { root, folders: [...new Set([folder, ...(near === null ? [] : [near]), root])] }
}

/** Returns a path relative to the project's root, with `/`; absolute if outside. */
export function shownPath(root: string, path: string): string {
  return pathInside(root, path) ?? path
}

/**
 * Reads a text that a workflow file names by `written`: never one outside of the project, but beside a workflow file that lies
 * outside itself. `problem`: a sentence without its end.
 */
export async function readNear(
  written: string,
  where: SearchPath,
  kind: KindOfText,
): Promise<ReadText | { problem: string }> {
  const named = JSON.stringify(written)
  const wrong = problemOfPath(written)
  if (wrong !== null) return { problem: `${named} ${wrong}` }
  const inside = where.folders.filter(folder => isAllowed(join(folder, written), folder, where))
  for (const folder of inside) {
    const path = join(folder, written)
    if (!(await isThere(path))) continue
    const real = await realpath(path).catch((error: unknown) => error)
    if (typeof real !== 'string') {
      return { problem: `${named} cannot be followed (${systemErrorCode(real) ?? messageOf(real)}); put a file there` }
    }
    if (!isAllowed(real, folder, where)) {
      return { problem: `${named} leads out of the project by a link; put the file into the project` }
    }
    return await readText(real, named, where, kind)
  }
  if (inside.length === 0) return { problem: `${named} leads out of the project; put the file into the project` }
  return { problem: await notThere(written, inside, where, kind) }
}

/** Returns the missing or changed files of a plan. `path` as in the plan; `root`: of its project. */
export async function changedSources(
  sources: FlowPlan['sources'],
  root: string,
): Promise<readonly { path: string; kind: 'changed' | 'gone' }[]> {
  const changed: { path: string; kind: 'changed' | 'gone' }[] = []
  for (const { path, sha256 } of sources) {
    const read = await readRegularFile(resolve(root, path), MOST_OF_SOURCE)
    if (read.kind === 'gone') changed.push({ path, kind: 'gone' })
    else if (read.kind !== 'bytes' || sha256Of(read.bytes) !== sha256) changed.push({ path, kind: 'changed' })
  }
  return changed
}

/** A longer plan, in bytes, reads no file. */
const MOST_OF_SOURCE = 1024 * 1024

async function nearestFlowFolder(folder: string, root: string): Promise<string | null> {
  for (let above = folder; ; above = dirname(above)) {
    if (basename(above) === FLOW_FOLDER) return above
    // Beside the folders above a file elsewhere may lie what others have put there.
    if (isWithin(root, above) && (await isFolder(join(above, FLOW_FOLDER)))) return join(above, FLOW_FOLDER)
    if (above === root || above === dirname(above)) return null
  }
}

/** Returns whether it is a folder, and no link to one. */
async function isFolder(path: string): Promise<boolean> {
  const stat = await lstat(path).catch(() => null)
  return stat?.isDirectory() ?? false
}

function problemOfPath(written: string): string | null {
  if (written.trim() === '') return 'names no file; write its path'
  if (/\p{Cc}/u.test(written)) return 'has a control character; write a plain path'
  if (/^(?:[/\\~]|[a-z]:)/i.test(written)) {
    return `is an absolute path, which works on one machine only. Write it relative to this file, or to the project's root`
  }
  return null
}

/** Returns whether a file found in a folder may be read. */
function isAllowed(path: string, folder: string, { root }: SearchPath): boolean {
  return isWithin(root, path) || isWithin(folder, path)
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return false
    // It exists; the reader reports why it is unreadable.
    if (code !== null) return true
    throw error
  }
}

async function readText(
  path: string,
  named: string,
  { root }: SearchPath,
  { what, limit, mayBeEmpty = false }: KindOfText,
): Promise<ReadText | { problem: string }> {
  const found = shownPath(root, path)
  const at = JSON.stringify(found) === named ? named : `${named} (${found})`
  const read = await readRegularFile(path, limit)
  switch (read.kind) {
    case 'gone':
      return { problem: `${at} has just been removed; restore it` }
    case 'too-large':
      return {
        problem: `${at} has ${formatBytes(read.size)}, and a ${what} may have at most ${formatBytes(limit)}; make it shorter`,
      }
    case 'broken':
      return { problem: `${at} cannot be read as a ${what}: ${read.problem.replace(/\.$/, '')}` }
    case 'bytes': {
      const text = utf8Text(read.bytes)
      if (text === null || text.includes('\0'))
        return { problem: `${at} is not text (UTF-8); a ${what} is a text file` }
      if (!mayBeEmpty && text.trim() === '') return { problem: `${at} is empty; write the ${what}` }
      return { found, text, sha256: sha256Of(read.bytes) }
    }
  }
}

async function notThere(
  written: string,
  folders: readonly string[],
  { root }: SearchPath,
  { what }: KindOfText,
): Promise<string> {
  const places = folders.map(folder => (folder === root ? "the project's root" : shownPath(root, folder)))
  const near = await nearestFile(written, folders)
  const mend = near === null ? `write it, or correct the path` : `the nearest is ${JSON.stringify(near)}`
  return `there is no ${what} ${JSON.stringify(written)} in ${listed(places)}; ${mend}`
}

function listed(words: readonly string[]): string {
  return words.length === 1 ? `${words[0]}` : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}

/** Most files of a folder to compare with a name. */
const MOST_COMPARED = 500

/** Returns the path of a file with a similar name in the same folder. */
async function nearestFile(written: string, folders: readonly string[]): Promise<string | null> {
  for (const folder of folders) {
    const near = nearestName(basename(written), await filesIn(dirname(join(folder, written))))
    if (near !== null) return join(dirname(written), near).replaceAll('\\', '/')
  }
  return null
}

async function filesIn(folder: string): Promise<string[]> {
  const names: string[] = []
  try {
    for await (const entry of await opendir(folder)) {
      if (entry.isFile() && names.push(entry.name) >= MOST_COMPARED) break
    }
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
  }
  return names
}
