import { isAbsolute } from 'node:path'
import { compileGlob } from '../base/glob.ts'
import { redactorOfEnvironment } from '../project/world.ts'

const MOST_CHARS = 2_000
const NO_ADDRESS = 'is not the address of a repository: use https://…, ssh://… or git@host:path'

/** Returns a clause on a problem of a repository's address; null: no option, no program, so safe for git. */
export function problemOfRepo(repo: string): string | null {
  if (repo.length > MOST_CHARS || /[\s\p{Cc}]/u.test(repo)) return NO_ADDRESS
  if (isLocal(repo)) return null
  if (/^[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9.-]+:(?!\/\/)[^-:][^:]*$/.test(repo)) return null
  let url: URL
  try {
    url = new URL(repo)
  } catch {
    return NO_ADDRESS
  }
  if (!['https:', 'ssh:', 'http:'].includes(url.protocol)) return `uses ${url.protocol.slice(0, -1)}: use https or ssh`
  if (url.protocol === 'http:' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname))
    return 'is not encrypted: use https or ssh'
  if (url.password !== '') return 'holds a password: each worker has its own credentials'
  // A token may replace the user.
  if (redactorOfEnvironment({ env: { repo } }).text(repo) !== repo)
    return 'holds a token: each worker has its own credentials'
  return url.hostname === '' || url.hostname.startsWith('-') ? NO_ADDRESS : null
}

/** True if it is on the disk of its reader. */
export function isLocal(repo: string): boolean {
  return isAbsolute(repo) || repo.startsWith('file:///')
}

/** Returns a clause on a problem of a branch, tag or commit name; null: safe for git. */
export function problemOfRef(ref: string): string | null {
  const isName = /^[\w@+][\w./@+-]{0,199}$/.test(ref) && !/\.\.|\/\/|@\{|\.lock$|[./]$/.test(ref)
  return isName ? null : 'is not the name of a branch, tag or commit'
}

/**
 * Returns a function that is true for repositories that match a pattern. One on a disk only matches a path pattern:
 * otherwise submitters could read the worker's disk.
 */
export function takesRepo(patterns: readonly string[]): (repo: string) => boolean {
  const all = patterns.map(pattern => ({
    isPath: isLocal(pattern),
    glob: compileGlob(pattern, { crossesParts: true, tooHard: false }),
  }))
  return repo =>
    patterns.length === 0
      ? !isLocal(repo)
      : all.some(({ isPath, glob }) => isPath === isLocal(repo) && glob.matches(repo))
}
