import { isUtf8 } from 'node:buffer'
import { lstat, opendir, realpath } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import { findObstacle, readRegularFile, whatIsThere } from '../files/inside-directory.ts'
import { withoutComments } from './main-file.ts'
import { projectFolders } from './memory-paths.ts'
import { specificationFile, specificationGuide } from './plan-files.ts'

/** A person's specification of what to build. */
export interface Specification {
  text: string
  /** Absolute path. */
  path: string
  /** Size in bytes. */
  size: number
  /** First heading or line written by the person, on one line. */
  title: string
  /** Other files in the folder of the specification. */
  others: readonly InputFile[]
  /** True if there are more files than in `others`. */
  hasMore: boolean
}

/** Largest specification, in bytes; it becomes part of the goal. */
const MOST_BYTES = 512 * 1024
const TITLE_CHARACTERS = 100

/**
 * Reads a work directory's specification. A missing, unchanged, too large, binary or linked file throws a `UserError` with
 * the file and a fix.
 */
export async function readSpecification(directory: string): Promise<Specification> {
  const root = await realpath(directory)
  const path = join(root, specificationFile)
  const obstacle = await findObstacle(root, projectFolders.inputs)
  if (obstacle !== null && obstacle.kind !== 'missing') {
    const what = `${join(root, obstacle.path)} ${whatIsThere(obstacle)}`
    throw new UserError('CM0207', `${what}; replace it with a folder that contains specifications.md.`)
  }
  const read = await readRegularFile(path, MOST_BYTES)
  switch (read.kind) {
    case 'gone':
      throw new UserError('CM0207', `${path} does not exist; write a description of the thing to build into it.`)
    case 'broken':
      throw new UserError('CM0207', `${path}: ${read.problem}`)
    case 'too-large':
      throw new UserError(
        'CM0207',
        `${path} has ${read.size} bytes, but at most ${MOST_BYTES} (512 KiB) are allowed; move details into other files, and name these files in it.`,
      )
  }
  const text = textOf(read.bytes, path)
  const own = linesOfPerson(text)
  if (text.trim() === '') throw unusable(path, 'is empty')
  if (own.every(isHeading)) throw unusable(path, 'says nothing yet: it is still the guide, or has headings only')
  const { files, hasMore } = await listInputs(root)
  return { text, path, size: read.bytes.length, title: titleOf(own), others: files, hasMore }
}

function unusable(path: string, what: string): UserError {
  return new UserError('CM0207', `${path} ${what}; write a description of the thing to build into it.`)
}

function textOf(bytes: Buffer, path: string): string {
  const zero = bytes.indexOf(0)
  if (zero !== -1) {
    throw new UserError('CM0207', `${path} is no text: byte ${zero + 1} is a NUL; write it as plain text or Markdown.`)
  }
  if (isUtf8(bytes)) return new TextDecoder().decode(bytes)
  // The decoder replaces a bad byte, unless it is the last one.
  const decoded = Buffer.from(bytes.toString('utf8'))
  const bad = bytes.findIndex((byte, at) => byte !== decoded[at])
  const place = bad === -1 ? bytes.length : bad + 1
  throw new UserError('CM0207', `${path} is no text: byte ${place} is not UTF-8; save it as UTF-8 text.`)
}

/** Returns the lines that are not part of the guide, a comment or empty. */
function linesOfPerson(text: string): string[] {
  const guide = new Set(withoutComments(specificationGuide(), '\n').split('\n').map(squeezed))
  const lines = withoutComments(text, '\n').split('\n').map(squeezed)
  return lines.filter(line => line !== '' && !guide.has(line) && !/^(?:[-*+]|\d+[.)])(?: \[.?\])?$/.test(line))
}

function squeezed(line: string): string {
  return line.replace(/\s+/g, ' ').trim()
}

function isHeading(line: string): boolean {
  return /^#{1,6}(?: |$)/.test(line)
}

function titleOf(own: readonly string[]): string {
  const line = own.find(each => /^# \S/.test(each)) ?? own[0] ?? ''
  return line
    .replace(/^(?:#{1,6}|[-*+>]) /, '')
    .slice(0, TITLE_CHARACTERS)
    .toWellFormed()
}

/** Another file in the folder of the specification. */
interface InputFile {
  /** Path relative to the inputs folder. */
  name: string
  /** Size in bytes. */
  size: number
}

const MOST_FILES = 50
const MOST_LOOKED_AT = 2_000
const MOST_LEVELS = 5

/**
 * Lists the files in the inputs folder and below, by name: at most 50, and if there are more. Omits links and names that
 * begin with a dot. `root`: real path of the work directory.
 */
async function listInputs(root: string): Promise<{ files: readonly InputFile[]; hasMore: boolean }> {
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
