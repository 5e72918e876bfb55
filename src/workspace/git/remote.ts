import { join } from 'node:path'
import { readBoundedText } from '../../platform/files.ts'
import type { PersonRepository } from './git.ts'

/** Web pages of a repository's commits. */
export interface CommitPages {
  /** `github.com`, `gitlab.com`, `codeberg.org` or `bitbucket.org`. */
  host: string
  /** Address of a commit's page without its hash: `https://github.com/owner/name/commit/`. */
  url: string
}

/** Path between the address of a repository and the hash of a commit, by host. */
const HOSTS: Readonly<Record<string, string>> = {
  'github.com': 'commit',
  'gitlab.com': '-/commit',
  'codeberg.org': 'commit',
  'bitbucket.org': 'commits',
}

const CONFIG_BYTES = 256 * 1024

/**
 * Returns the commit pages of a person's repository, by its remote `origin` or its only remote; null if that is on none of
 * the four hosts or unreadable. Runs no git: reads the configuration file without its includes.
 */
export async function commitPagesOf({ commonDir }: Pick<PersonRepository, 'commonDir'>): Promise<CommitPages | null> {
  const config = await readBoundedText(join(commonDir, 'config'), CONFIG_BYTES)
  if (config === 'missing' || !('text' in config)) return null
  const urls = remotesIn(config.text)
  const url = urls.get('origin') ?? (urls.size === 1 ? [...urls.values()][0] : undefined)
  return url === undefined ? null : commitPagesAt(url)
}

/** Returns the first address of each remote, by name. */
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

/** Returns the commit pages for the address of a remote, without user, password and port. */
export function commitPagesAt(remote: string): CommitPages | null {
  const found = placeAtHost(remote)
  const between = found !== null && Object.hasOwn(HOSTS, found.host) ? HOSTS[found.host] : undefined
  if (found === null || between === undefined) return null
  return { host: found.host, url: `https://${found.host}/${found.path}/${between}/` }
}

/**
 * Returns host and path of a repository from the address of a remote: `https://…`, `ssh://…` or `git@host:owner/name.git`;
 * null without a host, or if the path needs escapes.
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
/** Matches a part of a path that needs no escape and is neither `.` nor `..`. */
const PART = /^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,100}$/
