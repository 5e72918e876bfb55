import { lstat, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { systemErrorCode, UserError } from '../base/errors.ts'
import { setAside, writeFileInside } from '../workspace/inside-directory.ts'
import { makeMemoryFolder } from '../workspace/memory-home.ts'
import { readTextFile } from '../workspace/read-text-file.ts'
import { addEntry, type MemoryEntry } from './fold-memory.ts'
import { projectPaths } from './project-paths.ts'

/** The memory file of an agent, from the work directory: `.codemachine/memory/.frontend-memory.md` of `frontend-dev`. */
export function agentMemoryFile(name: string): string {
  return join(projectPaths.memoryFolder, `.${name.replace(/-dev$/, '')}-memory.md`)
}

/**
 * Appends what an agent has done to its memory file, and folds the oldest entries so that the file keeps to its size.
 * Within one process one writes after the other; of two processes that write at the same moment, the later one counts.
 * Answers what was in the way (a sentence); null if nothing was.
 */
export async function rememberResult(directory: string, name: string, entry: MemoryEntry): Promise<string | null> {
  const root = await realpath(directory)
  const path = join(root, agentMemoryFile(name))
  const before = writing.get(path) ?? Promise.resolve()
  const written = before.then(() => writeOrSay(root, name, entry))
  writing.set(path, written)
  try {
    return await written
  } finally {
    if (writing.get(path) === written) writing.delete(path)
  }
}

/** What is being written, by file. */
const writing = new Map<string, Promise<unknown>>()

/** A file has at most 64 KiB unless somebody else wrote into it. */
const MOST_READ_BYTES = 1024 * 1024

/** An agent that did its work is not failed for want of a place to note it. */
async function writeOrSay(root: string, name: string, entry: MemoryEntry): Promise<string | null> {
  try {
    return await write(root, name, entry)
  } catch (error) {
    if (error instanceof UserError) return error.message
    const code = systemErrorCode(error)
    if (code === null) throw error
    return `${agentMemoryFile(name)} cannot be written (${code}), so what ${name} did is not kept there.`
  }
}

async function write(root: string, name: string, entry: MemoryEntry): Promise<string | null> {
  const obstacle = await makeMemoryFolder(root, projectPaths.memoryFolder)
  if (obstacle !== null) {
    const what = obstacle.kind === 'link' ? 'is a link' : 'is not a folder'
    return `${obstacle.path} ${what}, so ${name} has no memory; put a folder in its place.`
  }
  const file = agentMemoryFile(name)
  const kind = await kindOf(join(root, file))
  if (kind === 'other') return `${file} is a link or no file, so what ${name} did is not kept there; remove it.`
  const read = kind === 'missing' ? null : await readTextFile(join(root, file), MOST_READ_BYTES)
  const aside = read?.kind === 'broken' ? await setAside(root, file) : null
  await writeFileInside(root, file, addEntry(read?.kind === 'text' ? read.text : '', name, entry))
  if (read?.kind !== 'broken') return null
  return `${file} could not be read and was set aside as ${aside}: ${read.problem}`
}

async function kindOf(path: string): Promise<'missing' | 'file' | 'other'> {
  try {
    return (await lstat(path)).isFile() ? 'file' : 'other'
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return 'missing'
    throw error
  }
}
