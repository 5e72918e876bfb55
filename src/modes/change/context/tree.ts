import { oneLine } from '../../../workspace/context/sections.ts'

/** The files of a project as an indented tree. */
interface ProjectTree {
  text: string
  /** Whether something is left out. */
  isShortened: boolean
}

/**
 * Draws the tree of these paths, folders first. Entries near the top come first; a folder without space for its content
 * shows its number of files.
 * @param most entries, and bytes of UTF-8
 */
export function drawTree(paths: readonly string[], most: { entries: number; bytes: number }): ProjectTree {
  const root = plant(paths)
  for (let entries = most.entries; ; entries = Math.floor(entries * 0.8)) {
    const isWhole = choose(root, entries)
    const lines: string[] = []
    write(root, 0, lines)
    const text = lines.join('\n')
    if (Buffer.byteLength(text) <= most.bytes || entries < 1) return { text, isShortened: !isWhole }
  }
}

/**
 * Returns folders that are bare git repositories, by their content, relative to the top.
 * @param paths all files
 */
export function bareRepositories(paths: readonly string[]): string[] {
  const heads = paths.filter(path => path.endsWith('/HEAD')).map(path => path.slice(0, -'/HEAD'.length))
  if (heads.length === 0) return []
  const known = new Set(paths)
  return heads.filter(
    folder => known.has(`${folder}/config`) && (folder.endsWith('.git') || known.has(`${folder}/description`)),
  )
}

/** Returns the paths outside of all these folders. */
export function pathsOutside(paths: readonly string[], folders: readonly string[]): readonly string[] {
  if (folders.length === 0) return paths
  const left = new Set(folders)
  return paths.filter(path => {
    for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1))
      if (left.has(path.slice(0, end))) return false
    return true
  })
}

interface Folder {
  name: string
  folders: Map<string, Folder>
  files: string[]
  /** Number of files below it. */
  count: number
  /** Number of its shown folders and files, folders first. */
  shown: number
}

function folderOf(name: string): Folder {
  return { name, folders: new Map(), files: [], count: 0, shown: 0 }
}

function plant(paths: readonly string[]): Folder {
  const root = folderOf('')
  for (const path of paths.toSorted()) {
    const parts = path.split('/')
    const file = parts.pop() ?? ''
    let folder = root
    folder.count += 1
    for (const part of parts) {
      const inner = folder.folders.get(part) ?? folderOf(part)
      folder.folders.set(part, inner)
      folder = inner
      folder.count += 1
    }
    folder.files.push(file)
  }
  return root
}

/** Decides how much of each folder to show, outer ones first. Returns whether everything is shown. */
function choose(root: Folder, most: number): boolean {
  let left = most
  let isWhole = true
  const folders = [root]
  // The list grows during this loop.
  for (const folder of folders) {
    const { folders: inner, files } = folder
    const size = inner.size + files.length
    const room = folder === root ? MOST_AT_TOP : MOST_IN_FOLDER
    folder.shown = Math.min(size, left, room)
    isWhole &&= folder.shown === size
    left -= folder.shown
    const chosen = [...inner.values()].slice(0, folder.shown)
    folders.push(...chosen.map(each => chainEnd(each).folder))
  }
  return isWhole
}

/** Returns the end of a chain of folders with only one folder each, and the joined name. */
function chainEnd(folder: Folder): { folder: Folder; name: string } {
  const names = [folder.name]
  let end = folder
  while (end.folders.size === 1 && end.files.length === 0) {
    const [only] = end.folders.values()
    if (only === undefined) break
    end = only
    names.push(only.name)
  }
  return { folder: end, name: names.join('/') }
}

function write(folder: Folder, depth: number, lines: string[]): void {
  const indent = ' '.repeat(Math.min(depth, MOST_INDENT) * 2)
  const inner = [...folder.folders.values()].slice(0, folder.shown)
  for (const each of inner) {
    const { folder: end, name } = chainEnd(each)
    const note = end.shown === 0 ? ` (${filesOf(end.count)})` : ''
    lines.push(`${indent}${oneLine(name, MOST_NAME)}/${note}`)
    if (end.shown > 0) write(end, depth + 1, lines)
  }
  for (const file of folder.files.slice(0, folder.shown - inner.length))
    lines.push(`${indent}${oneLine(file, MOST_NAME)}`)
  const left = folder.folders.size + folder.files.length - folder.shown
  if (left > 0 && folder.shown > 0) lines.push(`${indent}… and ${left} more here`)
}

function filesOf(count: number): string {
  return count === 1 ? '1 file' : `${count} files`
}

const MOST_AT_TOP = 400
const MOST_IN_FOLDER = 120
const MOST_INDENT = 12
const MOST_NAME = 160
