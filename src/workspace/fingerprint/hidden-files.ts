import { lstat, readdir } from 'node:fs/promises'
import { systemErrorCode } from '../../base/errors.ts'
import { isTestRunnerConfig } from '../../core/rules/proof/gate-files.ts'
import { comparable } from '../../platform/files.ts'
import { fromLatin1, pathBytes, toLatin1 } from '../git/git.ts'
import type { PrivateGit } from '../git/private-git.ts'
import { isBelow, type ProtectedGlobs } from '../protected-files.ts'

interface HiddenFilesOptions {
  git: PrivateGit
  /** Ignored paths, latin1, relative to the top: a completely ignored folder ends in `/`. */
  ignored: readonly string[]
  /** Globs that gates protect. */
  globs: ProtectedGlobs
  /** Returns true for a path to omit. */
  isNever(path: string): boolean
  /** Called if there are more names than the limit. */
  onTooMany(): void
}

/**
 * Finds ignored files that can decide a gate's result: files that its globs name, and configuration files of test
 * runners below its globs. Latin1 paths relative to the top, without files in the index. Skips folders of installed
 * packages, and stops after 20,000 names.
 */
export async function findHiddenFiles(options: HiddenFilesOptions): Promise<string[]> {
  const { git, ignored, globs, isNever, onTooMany } = options
  const found: string[] = []
  let left = MOST_NAMES
  const nameOf = (path: string) => comparable(fromLatin1(path.slice(toLatin1(git.prefix).length)).normalize())
  const bases = globs.bases.map(base => base.replace(/\/$/, '').normalize())
  const counts = (path: string) => {
    const inside = nameOf(path)
    return globs.covers(inside) && (globs.isNamed(inside) || isTestRunnerConfig(inside))
  }
  const look = async (path: string): Promise<void> => {
    for (const { name, isFolder } of await namesIn(git, path)) {
      if (--left < 0) return
      const inner = `${path}/${name}`
      if (isNever(inner)) continue
      if (!isFolder) found.push(...(counts(inner) ? [inner] : []))
      else if (!PACKAGE_FOLDERS.has(name)) await look(inner)
    }
  }
  for (const entry of ignored) {
    const path = entry.replace(/\/$/, '')
    const name = nameOf(path)
    // A protected path may be deep in a completely ignored folder.
    const within = bases.filter(base => isBelow(comparable(base), name))
    if (!entry.endsWith('/')) found.push(...(counts(path) ? [path] : []))
    else if (within.length > 0) for (const base of within) await lookAt(toLatin1(git.prefix + base))
    else if (
      !PACKAGE_FOLDERS.has(path.slice(path.lastIndexOf('/') + 1)) &&
      bases.some(base => isBelow(`${name}/`, comparable(base)))
    )
      await look(path)
  }
  if (left < 0) onTooMany()
  return [...new Set(found)]

  async function lookAt(base: string): Promise<void> {
    const kind = await kindOf(git, base)
    if (kind === 'folder') await look(base)
    else if (kind === 'file' && counts(base)) found.push(base)
  }
}

/** Returns the entries of a folder; none if it is missing or unreadable. */
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

/** Folders to skip; git tracks nothing in a folder `.git`. */
const PACKAGE_FOLDERS: ReadonlySet<string> = new Set(['node_modules', 'venv', '.venv', '.tox', '.nox', '.git'])
const MOST_NAMES = 20_000
