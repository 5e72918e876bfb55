import { lstat, readdir } from 'node:fs/promises'
import { systemErrorCode } from '../../base/errors.ts'
import { isTestRunnerConfig } from '../../core/rules/proof/gate-files.ts'
import { fromLatin1, pathArguments, pathBytes, runGitOrThrow, splitAtNul, toLatin1 } from '../git/git.ts'
import type { PrivateGit } from '../git/private-git.ts'
import { isBelow, type ProtectedGlobs } from '../protected-files.ts'

interface HiddenFilesOptions {
  git: PrivateGit
  /** The globs that gates protect. */
  globs: ProtectedGlobs
  /** Paths to leave out, relative to the top. */
  never: readonly string[]
  /** Called if there are more names than are read. */
  onTooMany(): void
}

/**
 * Finds ignored files that can decide a gate's result: files that its globs name, and configuration files of test
 * runners below its globs. Latin1 paths relative to the top, without files in the index. Skips folders of installed
 * packages, and stops after 20,000 names.
 */
export async function findHiddenFiles({ git, globs, never, onTooMany }: HiddenFilesOptions): Promise<string[]> {
  const bases = globs.bases.map(base => `${git.prefix}${base}`.replace(/\/$/, '')).map(toLatin1)
  const found: string[] = []
  let left = MOST_NAMES
  const counts = (path: string) => {
    const inside = fromLatin1(path).slice(git.prefix.length).normalize()
    return globs.covers(inside) && (globs.names.has(inside) || isTestRunnerConfig(inside))
  }
  const isNever = (path: string) => never.some(each => path === toLatin1(each) || isBelow(path, toLatin1(each)))
  const look = async (path: string): Promise<void> => {
    for (const { name, isFolder } of await namesIn(git, path)) {
      if (--left < 0) return
      const inner = `${path}/${name}`
      if (isNever(inner)) continue
      if (!isFolder) found.push(...(counts(inner) ? [inner] : []))
      else if (!PACKAGE_FOLDERS.has(name)) await look(inner)
    }
  }
  for (const entry of await listIgnored(git, bases)) {
    const path = entry.replace(/\/$/, '')
    if (isNever(path)) continue
    // A protected path may lie deep in a folder that is ignored as a whole.
    const within = bases.filter(base => isBelow(base, path))
    if (!entry.endsWith('/')) found.push(...(counts(path) ? [path] : []))
    else if (within.length > 0) for (const base of within) await lookAt(base)
    else if (!PACKAGE_FOLDERS.has(path.slice(path.lastIndexOf('/') + 1))) await look(path)
  }
  if (left < 0) onTooMany()
  return [...new Set(found)]

  async function lookAt(base: string): Promise<void> {
    const kind = await kindOf(git, base)
    if (kind === 'folder') await look(base)
    else if (kind === 'file' && counts(base)) found.push(base)
  }
}

/** Lists ignored paths. A folder that is ignored as a whole is one entry that ends in `/`. */
async function listIgnored({ setting }: PrivateGit, bases: readonly string[]): Promise<string[]> {
  const within = bases.includes('') ? [] : ['--', ...pathArguments(bases.map(fromLatin1))]
  const args = ['ls-files', '-o', '-i', '--directory', '-z', '--exclude-standard', ...within]
  return splitAtNul(await runGitOrThrow(setting, args))
}

/** The entries of a folder; none if it is gone or cannot be read. */
async function namesIn(git: PrivateGit, path: string): Promise<{ name: string; isFolder: boolean }[]> {
  try {
    const entries = await readdir(pathBytes(git.setting.directory, path), { withFileTypes: true, encoding: 'latin1' })
    return entries.map(entry => ({ name: entry.name, isFolder: entry.isDirectory() }))
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return []
  }
}

async function kindOf(git: PrivateGit, path: string): Promise<'folder' | 'file' | null> {
  try {
    return (await lstat(pathBytes(git.setting.directory, path))).isDirectory() ? 'folder' : 'file'
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return null
  }
}

/** Git keeps nothing in a folder called `.git`. */
const PACKAGE_FOLDERS: ReadonlySet<string> = new Set(['node_modules', 'venv', '.venv', '.tox', '.nox', '.git'])
const MOST_NAMES = 20_000
