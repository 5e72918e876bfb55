import { createHash } from 'node:crypto'
import { type BigIntStats, lstatSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { formatBytes } from '../../base/text.ts'
import { kindOfSpecial } from '../git/blocking-files.ts'
import { fromLatin1, pathBytes, runGitOrThrow, splitAtNul, toLatin1 } from '../git/git.ts'
import { type PrivateGit, writeAttributes } from '../git/private-git.ts'
import { literal } from './well-known.ts'

/**
 * A file whose content is not read: larger than `max_file_size`, not a plain file, or hidden because of a secret. Its
 * fingerprint entry has the mode 160000 of a submodule, and a hash of size and times as id: git needs no object for it, and
 * a rewind keeps it.
 */
interface UnreadFile {
  /** Latin1, relative to git's top. */
  path: string
  id: string
}

/** Default size above which a file is not read, bytes: 2 GiB. */
export const MAX_FILE_SIZE = 2 * 1024 ** 3

/** Mode of an unread file in a tree. */
export const UNREAD_MODE = '160000'

/** Options that decide which files are not read. */
export interface UnreadOptions {
  /** Size of the largest file that is read, bytes; `MAX_FILE_SIZE` if left out. */
  maxFileSize?: number
  /** Returns files with a secret, relative to the work directory with `/`, which are not read. Undefined: none. */
  hidden?: () => readonly string[]
}

/** Tracks the unread files of a work directory and the warnings about them. */
export class UnreadFiles {
  readonly #most: number
  readonly #warn: (message: string) => void
  readonly #prefix: string
  readonly #options: UnreadOptions
  readonly #told = new Set<string>()
  /** Hidden files without content in the index. */
  #isOut = ''
  /** Ids of the unread files in the index, by path; null: unknown. */
  #inIndex: Map<string, string> | null = null

  constructor({ prefix }: PrivateGit, options: UnreadOptions, warn: (message: string) => void) {
    // The apparent size counts, even for a sparse file.
    this.#most = options.maxFileSize ?? MAX_FILE_SIZE
    this.#prefix = toLatin1(prefix)
    this.#options = options
    this.#warn = warn
  }

  /** The currently hidden files: latin1, relative to the work directory. */
  get hidden(): readonly string[] {
    return hiddenBy(this.#options)
  }

  /** Returns files that became hidden since the last call and have content in the index. */
  async newlyHidden(git: PrivateGit): Promise<readonly string[]> {
    const hidden = this.hidden.map(path => this.#prefix + path)
    const key = hidden.join('\0')
    if (key === this.#isOut) return []
    await hideInDiffs(git, this.#options)
    this.#isOut = key
    if (hidden.length === 0) return []
    const entries = splitAtNul(
      await runGitOrThrow(git.setting, ['ls-files', '--stage', '-z', '--', ...hidden.map(fromLatin1)]),
    )
    const read = entries.filter(entry => !entry.startsWith(UNREAD_MODE))
    return read.map(entry => entry.slice(entry.indexOf('\t') + 1))
  }

  /** Call it when the index may have changed. */
  forgetIndex(): void {
    this.#inIndex = null
  }

  /**
   * Divides paths into those that git may read, and unread ones, each reported once. Omits unread files that are unchanged
   * in the index.
   */
  async divide(git: PrivateGit, paths: readonly string[]): Promise<{ read: string[]; unread: UnreadFile[] }> {
    const read: string[] = []
    const unread: UnreadFile[] = []
    const hidden = new Set(this.hidden.map(path => this.#prefix + path))
    for (const [index, path] of paths.entries()) {
      if (index % PATHS_AT_ONCE === PATHS_AT_ONCE - 1) await setImmediate()
      const stat = statOf(git.setting.directory, path)
      const why = stat === null ? null : this.#whyUnread(stat, hidden.has(path))
      if (stat === null || why === null) read.push(path)
      else {
        this.#tell(path, why)
        const id = standIn(stat, git.objectFormat)
        if (this.#inIndex?.get(path) !== id) unread.push({ path, id })
      }
    }
    return { read, unread }
  }

  /** Adds unread files to the index. @param others paths at which others were added or removed */
  async stage(git: PrivateGit, others: readonly string[], files: readonly UnreadFile[]): Promise<void> {
    for (const path of others) this.#inIndex?.delete(path)
    if (files.length === 0) return
    const input = files.map(({ path, id }) => `${UNREAD_MODE} ${id} 0\t${path}\0`).join('')
    await runGitOrThrow(git.setting, ['update-index', '-z', '--index-info'], input)
    for (const { path, id } of files) this.#inIndex?.set(path, id)
  }

  /**
   * Removes unread files from the index that are folders now: git would take them for submodules and not look inside.
   * Returns true if there was one.
   */
  async forgetReplaced(git: PrivateGit): Promise<boolean> {
    this.#inIndex ??= await unreadIn(git)
    const replaced = [...this.#inIndex.keys()].filter(path => statOf(git.setting.directory, path)?.isDirectory())
    if (replaced.length === 0) return false
    const input = replaced.map(path => `${path}\0`).join('')
    await runGitOrThrow(git.setting, ['update-index', '--force-remove', '-z', '--stdin'], input)
    for (const path of replaced) this.#inIndex.delete(path)
    return true
  }

  #whyUnread(stat: BigIntStats, isHidden: boolean): string | null {
    if (isHidden && !stat.isDirectory()) return 'holds a secret'
    if (stat.isSymbolicLink() || stat.isDirectory()) return null
    if (!stat.isFile()) return `is ${kindOfSpecial(stat)}`
    return stat.size > this.#most ? `is larger than max_file_size (${formatBytes(this.#most)})` : null
  }

  #tell(path: string, why: string): void {
    if (this.#told.has(path) || this.#told.size > MOST_TOLD) return
    this.#told.add(path)
    const isLast = this.#told.size > MOST_TOLD
    const name = isLast ? 'This is true of more files' : `${fromLatin1(path)} ${why}`
    this.#warn(`${name}: only size and time are compared, and savepoints do not contain it.`)
  }
}

/** Keeps diffs from showing the earlier content of hidden files. Paths in trees are relative to the work directory. */
export async function hideInDiffs({ gitDir }: PrivateGit, options: UnreadOptions): Promise<void> {
  await writeAttributes(
    gitDir,
    hiddenBy(options)
      .map(path => `"/${inQuotes(literal(path))}" -diff\n`)
      .join(''),
  )
}

function hiddenBy({ hidden = () => [] }: UnreadOptions): string[] {
  return hidden().map(toLatin1)
}

function inQuotes(text: string): string {
  return text.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\r', '\\r')
}

async function unreadIn(git: PrivateGit): Promise<Map<string, string>> {
  const entries = splitAtNul(await runGitOrThrow(git.setting, ['ls-files', '--stage', '-z']))
  const unread = entries.filter(entry => entry.startsWith(UNREAD_MODE))
  return new Map(unread.map(entry => [entry.slice(entry.indexOf('\t') + 1), entry.split(' ')[1] ?? '']))
}

/** Returns the state of a file; null if missing or not readable. Synchronous: there may be a hundred thousand. */
function statOf(top: string, path: string): BigIntStats | null {
  try {
    return lstatSync(pathBytes(top, path), { bigint: true, throwIfNoEntry: false }) ?? null
  } catch {
    return null
  }
}

/**
 * Returns the id of an unread file. It includes the ctime, which no program can set: otherwise an agent could change the
 * content, reset the mtime, and get a claim accepted for other files. So a chmod or a new link also counts as a change: it
 * costs a round or a line of `verify`.
 */
function standIn({ mode, size, mtimeNs, ctimeNs }: BigIntStats, format: 'sha1' | 'sha256'): string {
  return createHash(format).update([mode, size, mtimeNs, ctimeNs].join(' ')).digest('hex')
}

const PATHS_AT_ONCE = 2_000
const MOST_TOLD = 20
