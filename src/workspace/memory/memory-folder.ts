import { join } from 'node:path'
import { diskFull, isNoRoom, messageOf, systemErrorCode, UserError } from '../../base/errors.ts'
import { pathExists } from '../../platform/files.ts'
import {
  fileState,
  findObstacle,
  makeFolderInside,
  type Obstacle,
  readTextFile,
  renameAsBroken,
  whatIsThere,
  writeFileInside,
} from '../files/inside-directory.ts'
import { memoryRoot } from './memory-paths.ts'

/**
 * Creates a private folder below `.codemachine`, and a missing `.gitignore` that keeps all of `.codemachine` out of git.
 * `root`: real path of the work directory, `folder`: relative to it. Returns the obstacle; `null` on success.
 */
export async function makeMemoryFolder(root: string, folder: string): Promise<Obstacle | null> {
  const obstacle = await makeFolderInside(root, folder)
  if (obstacle !== null) return obstacle
  await writeIfMissing(root, RULES_FILE, ALL)
  return null
}

/**
 * As `makeMemoryFolder`, but throws a `UserError` if something else is in the folder's place. `purpose`: purpose of the
 * folder, the end of the sentence.
 */
export async function makeMemoryFolderOrRefuse(root: string, folder: string, purpose: string): Promise<void> {
  const obstacle = await makeMemoryFolder(root, folder)
  if (obstacle === null) return
  throw new UserError(
    'CM0210',
    `${join(root, obstacle.path)} ${whatIsThere(obstacle)}; move it away, so that codemachine can ${purpose}.`,
  )
}

/** Writes a file below `root` if its path is free; never follows a link there. A crash leaves the whole file or none. */
export async function writeIfMissing(root: string, file: string, text: string): Promise<void> {
  if (!(await pathExists(join(root, file)))) await writeFileInside(root, file, text)
}

/**
 * Runs a write in the work directory. A system error becomes a `UserError`: `diskFull(place)`, or `sentence` with its code.
 */
export async function writingInside<T>(
  place: string,
  write: () => Promise<T>,
  sentence: (code: string) => string,
  exitCode: 2 | 4 = 2,
): Promise<T> {
  try {
    return await write()
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null) throw error
    if (isNoRoom(error)) throw diskFull(place, error)
    throw new UserError('CM0211', sentence(code), { exitCode, cause: error })
  }
}

/**
 * Watches the `.gitignore` of `.codemachine`: if an agent removes or changes it, the next `git add -A` would commit the
 * memory.
 */
export class IgnoreRules {
  readonly #root: string
  /** Its text at the first check: a person may have written it. */
  #rules: string | null = null
  #seen: string | null = null

  /** `root` is the work directory's real path. */
  constructor(root: string) {
    this.#root = root
  }

  /** Restores the file if it is missing or changed. Returns the problem as one sentence; `null`: none. */
  async keep(): Promise<string | null> {
    const path = join(this.#root, RULES_FILE)
    const state = await fileState(path)
    if (state !== null && state.key === this.#seen) return null
    const found = await readTextFile(path, MOST_RULES_BYTES)
    if (found.kind === 'text') this.#rules ??= found.text
    const isKept = found.kind === 'text' && found.text === this.#rules
    // Without the folder, git has nothing to commit.
    if (!isKept && !(await isFolderInside(this.#root, memoryRoot))) return null
    const problem = isKept ? null : await this.#putBack(found.kind)
    this.#seen = (await fileState(path))?.key ?? null
    return problem
  }

  async #putBack(found: 'text' | 'gone' | 'broken'): Promise<string> {
    const was = { text: 'was changed', gone: 'was gone', broken: 'was no file of text' }[found]
    try {
      const aside = found === 'broken' ? await renameAsBroken(this.#root, RULES_FILE) : null
      await writeFileInside(this.#root, RULES_FILE, this.#rules ?? ALL)
      const kept = aside === null ? '' : ` What was in its place is now ${aside}.`
      return `${RULES_FILE} ${was}, so git could commit the memory; codemachine restored it.${kept} ${MEND}`
    } catch (error) {
      if (isNoRoom(error)) throw diskFull(join(this.#root, RULES_FILE), error)
      if (!(error instanceof UserError) && systemErrorCode(error) === null) throw error
      return `${RULES_FILE} ${was}, so git can commit the memory, and codemachine cannot restore it: ${messageOf(error)}. ${MEND}`
    }
  }
}

function isFolderInside(root: string, folder: string): Promise<boolean> {
  return findObstacle(root, folder).then(
    obstacle => obstacle === null,
    (error: unknown) => {
      if (systemErrorCode(error) === null) throw error
      return false
    },
  )
}

const RULES_FILE = join(memoryRoot, '.gitignore')
const ALL = '*\n'
const MOST_RULES_BYTES = 1024 * 1024
const MEND = `If a commit has it already, git rm -r --cached ${memoryRoot} removes it from the next one.`
