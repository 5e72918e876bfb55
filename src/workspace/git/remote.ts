import { join } from 'node:path'
import { readBoundedText } from '../../platform/files.ts'
import type { PersonRepository } from './git.ts'

/** Where the commits of a repository can be looked at. */
export interface CommitPages {
  /** `github.com`, `gitlab.com`, `codeberg.org` or `bitbucket.org`. */
  host: string
  /** The address of a commit's page, without its hash: `https://github.com/owner/name/commit/`. */
  url: string
}

/** What stands between the address of a repository and the hash of a commit, by host. */
const HOSTS: Readonly<Record<string, string>> = {
  'github.com': 'commit',
  'gitlab.com': '-/commit',
  'codeberg.org': 'commit',
  'bitbucket.org': 'commits',
}

const CONFIG_BYTES = 256 * 1024

/**
 * Where the commits of a person's repository can be looked at, by its remote `origin`, else by its only remote; null if
 * that is on no host of the four, or cannot be read. Runs no git: the file of the configuration is read, and what it
 * includes is not.
 */
export async function commitPagesOf({ commonDir }: Pick<PersonRepository, 'commonDir'>): Promise<CommitPages | null> {
  const config = await readBoundedText(join(commonDir, 'config'), CONFIG_BYTES)
  if (config === 'missing' || !('text' in config)) return null
  const urls = remotesIn(config.text)
  const url = urls.get('origin') ?? (urls.size === 1 ? [...urls.values()][0] : undefined)
  return url === undefined ? null : commitPagesAt(url)
}

/** The first address of each remote, by its name. */
function remotesIn(config: string): Map<string, string> {
  const urls = new Map<string, string>()
  let remote: string | null = null
  for (const line of config.split(/\r?\n/)) {
    if (line.trimStart().startsWith('[')) remote = /^\s*\[remote "([^"\\\p{Cc}]+)"\]\s*$/iu.exec(line)?.[1] ?? null
    const url = remote === null ? undefined : /^\s*url\s*=\s*([^"\\#;\s]+)\s*$/i.exec(line)?.[1]
    if (remote !== null && url !== undefined && !urls.has(remote)) urls.set(remote, url)
  }
  return urls
}

/** The same of the address of a remote. A user, a password and a port in it are left out. */
export function commitPagesAt(remote: string): CommitPages | null {
  const found = placeAtHost(remote)
  const between = found !== null && Object.hasOwn(HOSTS, found.host) ? HOSTS[found.host] : undefined
  if (found === null || between === undefined) return null
  return { host: found.host, url: `https://${found.host}/${found.path}/${between}/` }
}

/**
 * The host and the path of a repository there, by the address of a remote: `https://…`, `ssh://…` or
 * `git@host:owner/name.git`; null if that names no host, or a path that needs escapes.
 */
export function placeAtHost(remote: string): { host: string; path: string } | null {
  const [, host = '', path = ''] = HTTPS_OR_SSH.exec(remote) ?? SCP_LIKE.exec(remote) ?? []
  const parts = path
    .replace(/\/$/, '')
    .replace(/\.git$/, '')
    .split('/')
  const isPlain = parts.length >= 2 && parts.length <= 20 && parts.every(part => PART.test(part))
  return isPlain ? { host: host.toLowerCase(), path: parts.join('/') } : null
}

const HTTPS_OR_SSH = /^(?:https|ssh):\/\/(?:[^/@\s]*@)?([a-z0-9.-]+)(?::\d{1,5})?\/([^\s?#]+)$/i
const SCP_LIKE = /^(?:[a-z0-9._-]+@)?([a-z0-9.-]+):([^\s?#:/][^\s?#:]*)$/i
/** A part of a path that needs no escape, and is neither `.` nor `..`. */
const PART = /^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,100}$/
