import { lstat, readdir } from 'node:fs/promises'
import { sep } from 'node:path'
import { systemErrorCode } from '../base/errors.ts'
import { GitError, runGit } from './git-command.ts'
import type { PrivateGit } from './private-git.ts'
import { configuresRunner, isBelow, type ProtectedGlobs } from './protected-globs.ts'

/** Where hidden files are looked for. */
export interface HiddenFilesOptions {
  git: PrivateGit
  /** What gates protect. */
  globs: ProtectedGlobs
  /** Paths that never count, relative to the top. */
  never: readonly string[]
  /** Told if there is more than is looked at. */
  onTooMany(): void
}

/**
 * The files that ignore rules hide and that decide what a gate says all the same: those that it names, and settings of
 * test runners where it protects. Latin1 paths relative to the top, without those that the index has. Nothing in folders
 * where packages are installed, and nothing of what comes after 20,000 names.
 */
export async function hiddenFiles({ git, globs, never, onTooMany }: HiddenFilesOptions): Promise<string[]> {
  const bases = globs.bases.map(base => `${git.prefix}${base}`.replace(/\/$/, '')).map(asLatin1)
  const found: string[] = []
  let left = MOST_NAMES
  const counts = (path: string) => {
    const inside = Buffer.from(path, 'latin1').toString('utf8').slice(git.prefix.length).normalize()
    return globs.covers(inside) && (globs.names.has(inside) || configuresRunner(inside))
  }
  const isNever = (path: string) => never.some(each => path === asLatin1(each) || isBelow(path, asLatin1(each)))
  const look = async (path: string): Promise<void> => {
    for (const { name, isFolder } of await namesIn(git, path)) {
      if (--left < 0) return
      const inner = `${path}/${name}`
      if (isNever(inner)) continue
      if (!isFolder) found.push(...(counts(inner) ? [inner] : []))
      else if (!PACKAGES.has(name)) await look(inner)
    }
  }
  for (const entry of await ignored(git, bases)) {
    const path = entry.replace(/\/$/, '')
    if (isNever(path)) continue
    // What is protected may lie deep in a folder that is ignored as a whole.
    const within = bases.filter(base => isBelow(base, path))
    if (!entry.endsWith('/')) found.push(...(counts(path) ? [path] : []))
    else if (within.length > 0) for (const base of within) await lookAt(base)
    else if (!PACKAGES.has(path.slice(path.lastIndexOf('/') + 1))) await look(path)
  }
  if (left < 0) onTooMany()
  return [...new Set(found)]

  async function lookAt(base: string): Promise<void> {
    const kind = await kindOf(git, base)
    if (kind === 'folder') await look(base)
    else if (kind === 'file' && counts(base)) found.push(base)
  }
}

/** A folder of which all is ignored is one entry, with a `/` at its end. */
async function ignored({ setting }: PrivateGit, bases: readonly string[]): Promise<string[]> {
  const within = bases.includes('') ? [] : ['--', ...bases]
  const args = ['ls-files', '-o', '-i', '--directory', '-z', '--exclude-standard', ...within]
  const result = await runGit(setting, args)
  if (!result.ok) throw new GitError(args, result)
  return result.stdout.split('\0').slice(0, -1)
}

/** Of a folder that is gone meanwhile, or cannot be read, none. */
async function namesIn(git: PrivateGit, path: string): Promise<{ name: string; isFolder: boolean }[]> {
  try {
    const entries = await readdir(onDisk(git, path), { withFileTypes: true, encoding: 'latin1' })
    return entries.map(entry => ({ name: entry.name, isFolder: entry.isDirectory() }))
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return []
  }
}

async function kindOf(git: PrivateGit, path: string): Promise<'folder' | 'file' | null> {
  try {
    return (await lstat(onDisk(git, path))).isDirectory() ? 'folder' : 'file'
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return null
  }
}

function onDisk({ setting }: PrivateGit, path: string): Buffer {
  return Buffer.concat([Buffer.from(setting.directory + sep), Buffer.from(path, 'latin1')])
}

function asLatin1(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}

/** Git keeps nothing in a folder called `.git`. */
const PACKAGES: ReadonlySet<string> = new Set(['node_modules', 'venv', '.venv', '.tox', '.nox', '.git'])
const MOST_NAMES = 20_000
