import { constants } from 'node:fs'
import { access, lstat, opendir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { systemErrorCode, UserError, writing } from '../../../base/errors.ts'
import { packageFile } from '../../../base/package.ts'
import { schemaLine } from '../../../base/schemas.ts'
import { formatBytes, utf8Text } from '../../../base/text.ts'
import { realWorkDirectory } from '../../../platform/files.ts'
import {
  findObstacle,
  makeFolderInside,
  readRegularFile,
  writeFileInside,
} from '../../../workspace/files/inside-directory.ts'
import { FLOW_FOLDER } from './prompts.ts'

interface InitOptions {
  /** Folder for the new `.codex-flow`. Absolute. */
  directory: string
  /** Folder with files instead of the shipped ones; null: the shipped ones. Absolute. */
  templates: string | null
  /** Whether to replace existing files. */
  force: boolean
}

/** A created or existing file. `path`: from the folder of `.codex-flow`, with `/`. */
interface LaidFile {
  path: string
  state: 'made' | 'kept' | 'replaced'
}

/** A file to create. `path`: within `.codex-flow`, with `/`. */
interface TemplateFile {
  path: string
  text: string
}

/** Shipped templates. npm packs no `.gitignore`, so that of `runtime/` is here. */
const SHIPPED = 'prompts/flow'
const IGNORE: TemplateFile = { path: 'runtime/.gitignore', text: '*\n' }

/** Limits of a templates folder: files, bytes per file, total bytes, folder depth. */
const MOST_FILES = 1_000
const MOST_BYTES = 1024 * 1024
const MOST_ALL_BYTES = 16 * 1024 * 1024
const MOST_LEVELS = 16

/**
 * Creates a first workflow with its prompts in `.codex-flow`. Existing files stay unless `force` is set; a second call
 * creates missing ones. Throws a `UserError` before it writes if a link, a file or a missing right blocks it.
 */
export async function initFlow({ directory, templates, force }: InitOptions): Promise<readonly LaidFile[]> {
  const root = await realWorkDirectory(directory)
  const found = await readTemplates(templates ?? packageFile(SHIPPED))
  const isOurs = (path: string) => templates === null && path.endsWith('.toml')
  const files = [...found, IGNORE]
    .map(({ path, text }) => ({
      path: `${FLOW_FOLDER}/${path}`,
      text: isOurs(path) ? `${schemaLine('workflow')}${text}` : text,
    }))
    .sort((a, b) => (a.path < b.path ? -1 : 1))
  const states: LaidFile['state'][] = []
  for (const file of files) states.push(await stateFor(root, file, force))
  for (const [at, { path, text }] of files.entries()) {
    if (states[at] !== 'kept') await writeOne(root, path, text)
  }
  return files.map(({ path }, at) => ({ path, state: states[at] ?? 'kept' }))
}

/** Returns what will happen to a file. Throws if it is not writable. */
async function stateFor(root: string, { path, text }: TemplateFile, force: boolean): Promise<LaidFile['state']> {
  const obstacle = await findObstacle(root, dirname(path)).catch((error: unknown) => refuse(root, path, error))
  if (obstacle !== null && obstacle.kind !== 'missing') {
    const what = obstacle.kind === 'link' ? 'a link' : 'a file'
    throw new UserError(
      'CM1004',
      `${join(root, obstacle.path)} is ${what}; move it away: the workflow needs a folder there.`,
    )
  }
  const there = join(root, path)
  const stat = await lstat(there).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return null
    return refuse(root, path, error)
  })
  if (stat?.isDirectory())
    throw new UserError('CM1004', `${there} is a folder; move it away: the workflow needs a file there.`)
  if (stat !== null && !force) return 'kept'
  if (stat !== null && !stat.isFile()) {
    const what = stat.isSymbolicLink() ? 'a link' : 'no regular file'
    throw new UserError(
      'CM1004',
      `${there} is ${what}, which codemachine does not replace; remove it, or leave --force out.`,
    )
  }
  if (stat !== null) {
    const read = await readRegularFile(there, MOST_BYTES)
    if (read.kind === 'bytes' && read.bytes.equals(Buffer.from(text))) return 'kept'
  }
  await refuseUnwritable(root, obstacle === null ? dirname(path) : dirname(obstacle.path))
  return stat === null ? 'made' : 'replaced'
}

/** @param folder an existing one, relative to `root` */
async function refuseUnwritable(root: string, folder: string): Promise<void> {
  try {
    await access(join(root, folder), constants.W_OK | constants.X_OK)
  } catch (error) {
    refuse(root, folder, error)
  }
}

async function writeOne(root: string, path: string, text: string): Promise<void> {
  const there = join(root, path)
  try {
    const obstacle = await writing(there, () => makeFolderInside(root, dirname(path), { mode: 0o777 }))
    if (obstacle !== null)
      throw new UserError('CM1004', `${join(root, obstacle.path)} is not a folder any more; run init again.`)
    await writing(there, () => writeFileInside(root, path, text, 0o644))
  } catch (error) {
    refuse(root, path, error)
  }
}

function refuse(root: string, path: string, error: unknown): never {
  const code = systemErrorCode(error)
  if (code === null) throw error
  throw new UserError(
    'CM1004',
    `${join(root, path)} cannot be written (${code}); make it writable, and run init again.`,
    {
      cause: error,
    },
  )
}

/** Returns the files of a templates folder, in no order. */
async function readTemplates(folder: string): Promise<TemplateFile[]> {
  const files: TemplateFile[] = []
  let bytes = 0
  for (const path of await pathsIn(folder)) {
    const read = await readRegularFile(join(folder, path), MOST_BYTES)
    const wrong = (problem: string) =>
      new UserError('CM1004', `The template ${join(folder, path)} cannot be used: ${problem}.`)
    if (read.kind === 'gone') throw wrong('it has just been removed')
    if (read.kind === 'too-large') throw wrong(`it is longer than ${formatBytes(MOST_BYTES)}; make it shorter`)
    if (read.kind === 'broken') throw wrong(read.problem.replace(/\.$/, ''))
    bytes += read.bytes.length
    if (bytes > MOST_ALL_BYTES) throw wrong(`the files before it and it have more than ${formatBytes(MOST_ALL_BYTES)}`)
    const text = utf8Text(read.bytes, true)
    if (text === null) throw wrong('it is not text (UTF-8); a template is a text file')
    files.push({ path, text })
  }
  if (files.some(({ path }) => path === 'flow.toml' || /^workflows\/.+\.workflow\.toml$/.test(path))) return files
  throw new UserError(
    'CM1004',
    `${folder} contains no workflow; put a flow.toml or a workflows/<name>.workflow.toml into it.`,
  )
}

/** Returns the paths of a folder's files, with `/`, except git's own and runs' leftovers other than recordings. */
async function pathsIn(folder: string): Promise<string[]> {
  const paths: string[] = []
  const walk = async (within: string, level: number): Promise<void> => {
    if (level > MOST_LEVELS)
      throw new UserError(
        'CM1004',
        `${join(folder, within)} lies more than ${MOST_LEVELS} folders deep; move it up, or name another folder.`,
      )
    for await (const entry of await opendir(join(folder, within))) {
      const path = within === '' ? entry.name : `${within}/${entry.name}`
      if (entry.name === '.git' || /^runtime\/(?!debug$|debug\/[^/]+\.json$)/.test(path)) continue
      if (entry.isDirectory()) await walk(path, level + 1)
      else paths.push(path)
      if (paths.length > MOST_FILES) {
        throw new UserError(
          'CM1004',
          `${folder} contains more than ${MOST_FILES} files; name a folder that contains only templates.`,
        )
      }
    }
  }
  try {
    await walk('', 0)
    return paths
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null) throw error
    const why = code === 'ENOENT' ? 'there is no such folder' : code === 'ENOTDIR' ? 'it is not a folder' : `(${code})`
    throw new UserError('CM1004', `The templates in ${folder} cannot be read: ${why}.`, { cause: error })
  }
}
