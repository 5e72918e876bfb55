import { createHash } from 'node:crypto'
import { type BigIntStats, lstatSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { formatBytes } from '../base/text.ts'
import { kindOfSpecial } from './git/blocking-files.ts'
import { fromLatin1, pathBytes, runGitOrThrow, splitAtNul } from './git/git.ts'
import type { PrivateGit } from './git/private-git.ts'

/**
 * A file whose content is not read: larger than `max_file_size`, or no plain file. In a fingerprint it is an entry of mode
 * 160000, as of a submodule, whose id is a hash of size and times: git wants no object for it, and a rewind leaves it alone.
 */
export interface UnreadFile {
  /** Latin1, relative to git's top. */
  path: string
  id: string
}

/** What is larger is not read, if nothing else is set: 2 GiB. */
export const MAX_FILE_SIZE = 2 * 1024 ** 3

/** The mode of an unread file in a tree. */
export const UNREAD_MODE = '160000'

/** The unread files of a work directory, and what was said of them. */
export class UnreadFiles {
  readonly #most: number
  readonly #warn: (message: string) => void
  readonly #told = new Set<string>()

  /** @param most the size of the largest file that is read, bytes; the apparent size counts, also of a sparse file */
  constructor(most: number, warn: (message: string) => void) {
    this.#most = most
    this.#warn = warn
  }

  /**
   * Divides paths into those that git may read, and the others, which are said once each.
   * @param known the ids of unread files in the index, by path; those that are as they were come in neither
   */
  async divide(
    git: PrivateGit,
    paths: readonly string[],
    known: ReadonlyMap<string, string>,
  ): Promise<{ read: string[]; unread: UnreadFile[] }> {
    const read: string[] = []
    const unread: UnreadFile[] = []
    for (const [index, path] of paths.entries()) {
      if (index % PATHS_AT_ONCE === PATHS_AT_ONCE - 1) await setImmediate()
      const stat = statOf(git.setting.directory, path)
      const why = stat === null ? null : this.#whyUnread(stat)
      if (stat === null || why === null) read.push(path)
      else {
        this.#tell(path, why)
        const id = standIn(stat, git.objectFormat)
        if (known.get(path) !== id) unread.push({ path, id })
      }
    }
    return { read, unread }
  }

  #whyUnread(stat: BigIntStats): string | null {
    if (stat.isSymbolicLink() || stat.isDirectory()) return null
    if (!stat.isFile()) return `is ${kindOfSpecial(stat)}`
    return stat.size > this.#most ? `is larger than max_file_size (${formatBytes(this.#most)})` : null
  }

  #tell(path: string, why: string): void {
    if (this.#told.has(path) || this.#told.size > MOST_TOLD) return
    this.#told.add(path)
    const isLast = this.#told.size > MOST_TOLD
    const name = isLast ? 'There are more files of which that is true' : `${fromLatin1(path)} ${why}`
    this.#warn(`${name}: only size and time are looked at, and no savepoint has the content.`)
  }
}

/** Puts unread files into the index. */
export async function stageUnread(git: PrivateGit, files: readonly UnreadFile[]): Promise<void> {
  if (files.length === 0) return
  const input = files.map(({ path, id }) => `${UNREAD_MODE} ${id} 0\t${path}\0`).join('')
  await runGitOrThrow(git.setting, ['update-index', '-z', '--index-info'], input)
}

/**
 * Takes unread files out of the index in whose place there is a folder now: git would take it for a submodule, and not
 * look into it. Answers how many were `replaced` so, and how many are `left`.
 */
export async function forgetReplaced(git: PrivateGit): Promise<{ replaced: number; left: number }> {
  const entries = splitAtNul(await runGitOrThrow(git.setting, ['ls-files', '--stage', '-z']))
  const paths = entries
    .filter(entry => entry.startsWith(UNREAD_MODE))
    .map(entry => entry.slice(entry.indexOf('\t') + 1))
  const replaced = paths.filter(path => statOf(git.setting.directory, path)?.isDirectory())
  const counts = { replaced: replaced.length, left: paths.length - replaced.length }
  if (replaced.length === 0) return counts
  const input = replaced.map(path => `${path}\0`).join('')
  await runGitOrThrow(git.setting, ['update-index', '--force-remove', '-z', '--stdin'], input)
  return counts
}

/** Null if there is nothing, or nothing that may be looked at. Not through a promise: there may be a hundred thousand. */
function statOf(top: string, path: string): BigIntStats | null {
  try {
    return lstatSync(pathBytes(top, path), { bigint: true, throwIfNoEntry: false }) ?? null
  } catch {
    return null
  }
}

/**
 * By the time at which the inode changed too, which no program can set: an agent can write over the content and set the
 * time of writing back, and a claim would be believed of files that are not those that were proved. So a mere chmod, or
 * another link to it, counts as a change as well: that costs a round more, or a line of `verify`.
 */
function standIn({ mode, size, mtimeNs, ctimeNs }: BigIntStats, format: 'sha1' | 'sha256'): string {
  return createHash(format).update([mode, size, mtimeNs, ctimeNs].join(' ')).digest('hex')
}

const PATHS_AT_ONCE = 2_000
const MOST_TOLD = 20
