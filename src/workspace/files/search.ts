import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { go, prepare } from 'fuzzysort'
import type { Clock } from '../../base/clock.ts'
import { hasInOrder } from '../../base/text.ts'
import type { BlockingFile } from '../git/blocking-files.ts'
import { findRepository, type GitSetting, watchGit } from '../git/git.ts'
import { openPrivateGit, type PrivateGit } from '../git/private-git.ts'

interface FileIndexOptions {
  /** Real path of the work directory. */
  directory: string
  /** A private git directory for this index only, where agents cannot write. The first search creates it. */
  gitDir: string
  env: NodeJS.ProcessEnv
  clock: Clock
  /** Called once if the files cannot be listed. */
  onProblem?: (error: unknown) => void
}

/** An index of a work directory's file names, for search during typing. Lists nothing before the first search. */
export interface FileIndex {
  /**
   * Returns the best matches, relative to the directory, with `/`. For an empty query, the files nearest the top, last
   * changed first. Names are as on disk and may have control characters. May use the old listing during a refresh. Without a
   * listing, there are no matches.
   */
  search(query: string, limit?: number): Promise<string[]>
  /** Makes the next search list the files again. */
  refresh(): void
}

/** Creates the index of a work directory without reading it. */
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
      if (files === null || now !== listing) files = prepareFilesForSearch(now)
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
/** Most files whose times are read; those nearest the top come first. */
const MOST_SHALLOW = 1_000

async function openGit({ directory, gitDir, env }: FileIndexOptions): Promise<PrivateGit> {
  return await openPrivateGit({ directory, gitDir, env, repository: await findRepository(directory) })
}

/** Sorts the last changed first. */
async function newestFirst(directory: string, paths: readonly string[]): Promise<string[]> {
  const stamped = await Promise.all(
    paths.map(async path => {
      const found = await lstat(join(directory, path)).catch(() => null)
      return { path, at: found?.mtimeMs ?? 0 }
    }),
  )
  return stamped.sort((a, b) => b.at - a.at).map(({ path }) => path)
}

/** Called after a cut listing, with the files at which git would have waited. */
type OnCut = (blocking: readonly BlockingFile[]) => void

/**
 * Lists a directory's files that are not ignored, and tracked ignored ones: relative paths, each followed by a NUL, in git's
 * order. Cuts a listing that is too long, too slow, blocked or aborted. Reads the person's index and writes none. Omits
 * names that are not UTF-8, because nobody could type them.
 */
export async function listFiles(git: PrivateGit, directory: string, onCut?: OnCut): Promise<string> {
  const setting = { ...git.setting, directory }
  const [present, kept] = await Promise.all([
    listUntracked(setting, onCut),
    git.repository === null ? '' : listTrackedButIgnored(setting, join(git.repository.gitDir, 'index')),
  ])
  const nested = present.includes('/\0')
    ? pathsOf(present)
        .filter(path => path.endsWith('/'))
        .slice(0, MOST_NESTED)
    : []
  const inNested = await Promise.all(nested.map(folder => listNested(setting, folder)))
  const all = [present, ...inNested, kept].join('')
  if (!UNWANTED.test(all)) return all
  return textOf(pathsOf(all).filter(path => !UNWANTED.test(`${path}\0`)))
}

/** Matches entries to omit: nested repositories themselves, codemachine's own files, and names that are not UTF-8. */
const UNWANTED = /\/\0|(?:^|\0)\.(?:codemachine|codex-flow\/runtime)\/|\uFFFD/

/** Lists every file as untracked, because git has no index here; a nested repository ends in `/`. */
function listUntracked(setting: GitSetting, onCut?: OnCut): Promise<string> {
  return listWithGit(setting, ['-o'], onCut)
}

/** Lists a nested repository as if it were a plain directory, but none nested in it. */
async function listNested(setting: GitSetting, folder: string): Promise<string> {
  const directory = join(setting.directory, folder)
  const inside = await listUntracked({ ...setting, directory, env: { ...setting.env, GIT_WORK_TREE: directory } })
  return textOf(pathsOf(inside).map(path => folder + path))
}

async function listTrackedButIgnored(setting: GitSetting, index: string): Promise<string> {
  const env = { ...setting.env, GIT_INDEX_FILE: index, GIT_OPTIONAL_LOCKS: '0' }
  const paths = pathsOf(await listWithGit({ ...setting, env }, ['-c', '-i'])).slice(0, MOST_KEPT)
  const there = await Promise.all(paths.map(path => isFile(join(setting.directory, path))))
  return textOf(paths.filter((_, index) => there[index]))
}

async function isFile(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => null)
  return found !== null && !found.isDirectory()
}

/** Runs `git ls-files`; empty if git fails, such as for an unreadable index or a missing directory. */
async function listWithGit(setting: GitSetting, which: readonly string[], onCut?: OnCut): Promise<string> {
  const args = ['ls-files', '-z', '--exclude-standard', ...which]
  const options = { encoding: 'utf8', outputLimit: MOST_BYTES, timeoutMs: LISTING_MS } as const
  const { stdout, failure, exitCode, blocking } = await watchGit(setting, args, options)
  if (exitCode !== 0 && failure === null) return ''
  if (failure !== null) onCut?.(blocking)
  // The text after the last NUL is a cut path.
  return stdout.slice(0, stdout.lastIndexOf('\0') + 1)
}

function pathsOf(text: string): string[] {
  return text.split('\0').slice(0, -1)
}

function textOf(paths: readonly string[]): string {
  return paths.map(path => `${path}\0`).join('')
}

const MOST_BYTES = 32 * 1024 * 1024
const LISTING_MS = 15_000
const MOST_NESTED = 20
const MOST_KEPT = 1_000

/** File paths prepared for search, sorted by depth, then by length. */
interface SearchableFiles {
  paths: readonly string[]
  /** The paths in lower case. */
  lower: readonly string[]
}

/** Prepares the paths of a listing (each followed by a NUL) for search; at most 300,000. */
export function prepareFilesForSearch(listing: string): SearchableFiles {
  const paths = listing.split('\0', MOST_PATHS)
  const lower = listing.toLowerCase().split('\0', MOST_PATHS)
  if (paths.at(-1) === '') paths.pop()
  const order = Float64Array.from(paths, (path, index) => rankOf(path) * INDEXES + index).sort()
  const inOrder = (texts: readonly string[]) => Array.from(order, key => texts[key % INDEXES] ?? '')
  return { paths: inOrder(paths), lower: inOrder(lower) }
}

/**
 * Returns the best matches: first paths with the query in the file name, then in the path, then with its letters in order;
 * fuzzysort ranks within each. Words may be in any order. Of very many matches, ranks those nearest the top.
 */
export function searchFiles({ paths, lower }: SearchableFiles, query: string, limit: number): string[] {
  const wanted = query.trim().toLowerCase().slice(0, QUERY_CHARS)
  if (wanted === '') return paths.slice(0, limit)
  const words = wanted.split(/\s+/)
  const tiers: string[][] = [[], [], []]
  for (const [index, path] of lower.entries()) {
    const tier = tiers[tierOf(path, wanted, words)]
    if (tier !== undefined && tier.length < MOST_RANKED) tier.push(paths[index] ?? '')
    if (tiers[0]?.length === MOST_RANKED) break
  }
  const found: string[] = []
  for (const tier of tiers) {
    if (found.length >= limit) break
    const ranked = go(wanted, tier.map(prepare), { limit: limit - found.length, threshold: 0 })
    found.push(...ranked.map(({ target }) => target))
  }
  return found
}

const MOST_PATHS = 300_000
/** More than the number of paths; a rank (depth and length) times this remains a whole number. */
const INDEXES = 2 ** 20
const MOST_RANKED = 2_000
const QUERY_CHARS = 200

function rankOf(path: string): number {
  let depth = 0
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) depth += 1
  return Math.min(depth, 4095) * 4096 + Math.min(path.length, 4095)
}

function tierOf(path: string, wanted: string, words: readonly string[]): number {
  const at = path.lastIndexOf(wanted)
  if (at !== -1) return at > path.lastIndexOf('/') ? 0 : 1
  return words.every(word => hasInOrder(path, word)) ? 2 : -1
}
