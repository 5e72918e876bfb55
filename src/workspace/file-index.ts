import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { listFiles } from './file-listing.ts'
import { type SearchableFiles, searchableFiles, searchFiles } from './file-search.ts'
import { findRepository } from './person-repository.ts'
import { openPrivateGit, type PrivateGit } from './private-git.ts'

export interface FileIndexOptions {
  /** Real path of the work directory. */
  directory: string
  /** A private git directory for this alone, outside of what agents can write; it is made by the first search. */
  gitDir: string
  env: NodeJS.ProcessEnv
  clock: Clock
  /** Told once why the files cannot be listed, if they cannot. */
  onProblem?: (error: unknown) => void
}

/** The files of a work directory, to be searched while somebody types. Does nothing before the first search. */
export interface FileIndex {
  /**
   * The best matches, relative to the directory, with `/`; for an empty query the shallow files, those changed last first.
   * Names are as they are on the disk: control characters and all. The first search lists the files, a later one may
   * answer from a listing that is being renewed; what cannot be listed has no files.
   */
  search(query: string, limit?: number): Promise<string[]>
  /** Says that files have come or gone: the next search has them listed again. */
  refresh(): void
}

/** Opens the index of a work directory, without looking at it. */
export function openFileIndex(options: FileIndexOptions): FileIndex {
  const { clock } = options
  let git: PrivateGit | null = null
  let listing = ''
  let files: SearchableFiles | null = null
  let listedAt = Number.NEGATIVE_INFINITY
  let renewing: Promise<void> | null = null
  let toldProblem = false

  const renew = async () => {
    listedAt = clock.monotonic()
    try {
      git ??= await openGit(options)
      const now = await listFiles(git, options.directory)
      if (files === null || now !== listing) files = searchableFiles(now)
      listing = now
    } catch (error) {
      files ??= { paths: [], lower: [] }
      if (!toldProblem) options.onProblem?.(error)
      toldProblem = true
    } finally {
      renewing = null
    }
  }

  return {
    search: async (query, limit = 50) => {
      if (clock.monotonic() - listedAt >= FRESH_MS) renewing ??= renew()
      if (files === null) await renewing
      if (files === null) return []
      if (query.trim() !== '') return searchFiles(files, query, limit)
      return (await newestFirst(options.directory, searchFiles(files, '', MOST_SHALLOW))).slice(0, limit)
    },
    refresh: () => {
      listedAt = Number.NEGATIVE_INFINITY
    },
  }
}

const FRESH_MS = 5_000
const MOST_SHALLOW = 200

async function openGit({ directory, gitDir, env }: FileIndexOptions): Promise<PrivateGit> {
  return await openPrivateGit({ directory, gitDir, env, repository: await findRepository(directory) })
}

/** A level of folders after the other, each with what was changed last at its head. */
async function newestFirst(directory: string, paths: readonly string[]): Promise<string[]> {
  const stamped = await Promise.all(
    paths.map(async path => {
      const found = await lstat(join(directory, path)).catch(() => null)
      return { path, depth: path.split('/').length, at: found?.mtimeMs ?? 0 }
    }),
  )
  return stamped.sort((a, b) => a.depth - b.depth || b.at - a.at).map(({ path }) => path)
}
