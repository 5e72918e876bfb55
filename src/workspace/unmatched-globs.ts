import { GitError, runGit } from './git-command.ts'
import type { PrivateGit } from './private-git.ts'
import { isBelow, type ProtectedGlobs, protectedGlobs } from './protected-globs.ts'

/** Those of some protecting globs that no file matches. Of what git ignores, only what a glob names is looked for. */
export async function unmatchedGlobs(git: PrivateGit, globs: readonly string[]): Promise<ReadonlySet<string>> {
  if (globs.length === 0) return new Set()
  const left = new Map([...new Set(globs)].map(glob => [glob, protectedGlobs([glob])]))
  const { prefix } = git
  for (const entry of await filesBelow(git, protectedGlobs(globs).bases)) {
    const path = Buffer.from(entry, 'latin1').toString('utf8').slice(prefix.length).normalize()
    for (const [glob, one] of left) if (mayMatch(one, path)) left.delete(glob)
    if (left.size === 0) break
  }
  return new Set(left.keys())
}

/** A folder that git does not look into, for it is another repository, may hold anything. */
function mayMatch({ covers, bases }: ProtectedGlobs, path: string): boolean {
  if (!path.endsWith('/')) return covers(path)
  const folder = path.slice(0, -1)
  return bases.some(base => base === folder || isBelow(base, folder) || isBelow(folder, base))
}

async function filesBelow({ setting, prefix }: PrivateGit, bases: readonly string[]): Promise<string[]> {
  const folders = bases.map(base => `${prefix}${base}`.replace(/\/$/, '')).filter(base => base !== '')
  const within = folders.length < bases.length ? [] : ['--', ...folders.map(latin1)]
  const listed: string[] = []
  for (const which of [
    ['-c', '-o', '--exclude-standard'],
    ['-o', '-i', '--exclude-standard', '--directory'],
  ]) {
    const args = ['ls-files', '-z', ...which, ...within]
    const { ok, stdout, stderr } = await runGit(setting, args)
    if (!ok) throw new GitError(args, { ok, stdout, stderr })
    listed.push(...stdout.split('\0').slice(0, -1))
  }
  return listed
}

function latin1(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}
