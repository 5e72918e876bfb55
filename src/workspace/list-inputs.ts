import { lstat, opendir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { systemErrorCode } from '../base/errors.ts'
import { projectFolders, specificationFile } from './project-folders.ts'

/** A file that a person has put beside the specification. */
export interface InputFile {
  /** Relative to the folder of the inputs. */
  name: string
  /** In bytes. */
  size: number
}

const MOST_FILES = 50
const MOST_LOOKED_AT = 2_000
const MOST_LEVELS = 5

/**
 * The files beside the specification, and below, by name: at most 50 of them, and whether there are more. Links are not
 * followed and not listed, nor is what begins with a dot. `root` is the work directory's real path.
 */
export async function listInputs(root: string): Promise<{ files: readonly InputFile[]; hasMore: boolean }> {
  const inputs = join(root, projectFolders.inputs)
  const found: InputFile[] = []
  let looked = 0
  const folders = [{ folder: inputs, level: 1 }]
  for (let next = folders.shift(); next !== undefined; next = folders.shift()) {
    for (const entry of await entriesOf(next.folder, MOST_LOOKED_AT - looked)) {
      looked += 1
      const path = join(next.folder, entry.name)
      if (entry.name.startsWith('.') || path === join(root, specificationFile)) continue
      if (entry.isDirectory() && next.level < MOST_LEVELS) folders.push({ folder: path, level: next.level + 1 })
      const size = entry.isFile() ? await sizeOf(path) : null
      if (size !== null) found.push({ name: relative(inputs, path), size })
    }
  }
  const files = found.sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, MOST_FILES)
  return { files, hasMore: files.length < found.length || looked >= MOST_LOOKED_AT }
}

async function entriesOf(folder: string, most: number) {
  const entries = []
  try {
    for await (const entry of await opendir(folder)) {
      if (entries.length >= most) break
      entries.push(entry)
    }
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
  }
  return entries
}

async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await lstat(path)).size
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return null
  }
}
