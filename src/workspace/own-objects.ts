import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { GitError, runGit, runGitOrThrow } from './git-command.ts'
import { onOwnObjects, type PrivateGit, withoutIndex } from './private-git.ts'

/**
 * Copies into the private git directory what a tree needs, in one pack, which is on the disk when this resolves. Then the
 * person's `git gc` cannot take anything of it away.
 * @param base a tree that is whole already; null if there is none
 */
export async function ownObjects(git: PrivateGit, tree: string, base: string | null): Promise<void> {
  if (tree === base) return
  const needed = base === null ? [tree] : [tree, ...(await newObjects(git, base, tree))]
  const kept = (await ownPacks(git)).map(name => `--keep-pack=${name}`)
  const args = [
    ...fast,
    'pack-objects',
    '-q',
    '--non-empty',
    '--delta-base-offset',
    '--window=0',
    ...(base === null ? ['--revs'] : []),
    ...kept,
    join(git.gitDir, 'objects', 'pack', 'pack'),
  ]
  const packs = await runGitOrThrow(withoutIndex(git), args, needed.map(id => `${id}\n`).join(''))
  for (const name of packs.split('\n')) if (name !== '') await verify(git, `pack-${name}`)
}

/**
 * An agent can write into the repository that objects are borrowed from, also something else under the hash of what it
 * has in its files; git itself does not look.
 */
async function verify(git: PrivateGit, pack: string): Promise<void> {
  const path = join(git.gitDir, 'objects', 'pack', pack)
  const args = ['index-pack', '--verify', `${path}.pack`]
  const result = await runGit(onOwnObjects(git), args)
  if (result.ok) return
  for (const ending of ['idx', 'rev', 'pack']) await rm(`${path}.${ending}`, { force: true })
  throw new GitError(args, result)
}

/** Puts small packs and single objects together where there are many; what is there stays there, whoever needs it. */
export async function tidyObjects(git: PrivateGit): Promise<void> {
  if ((await ownPacks(git)).length <= mostPacks) return
  const setting = onOwnObjects(git)
  const { ok } = await runGit(setting, [...synced, ...gentle, 'repack', '-d', '-q', '--geometric=2'])
  // git before 2.32.
  if (!ok) await runGit(setting, [...synced, ...gentle, 'repack', '-a', '-d', '-k', '-q'])
}

/** Throws away what no reference leads to. The caller has dropped the index, which knows of other objects. */
export async function throwAwayObjects(git: PrivateGit): Promise<void> {
  const setting = onOwnObjects(git)
  await runGitOrThrow(setting, [...synced, ...gentle, 'repack', '-a', '-d', '-q'])
  await runGitOrThrow(setting, ['prune', '--expire=now'])
}

/** The ids of the files and folders of a tree that another one has not, at the same path. */
async function newObjects(git: PrivateGit, before: string, after: string): Promise<string[]> {
  const args = ['diff-tree', '-r', '-t', '-z', '--raw', '--no-renames', '--no-abbrev', before, after]
  const fields = (await runGitOrThrow(withoutIndex(git), args)).split('\0')
  const ids = new Set<string>()
  for (const field of fields) {
    const [, mode, id] = field.match(/^:\d{6} (\d{6}) [0-9a-f]+ ([0-9a-f]+) /) ?? []
    if (id !== undefined && mode !== deleted && mode !== submodule) ids.add(id)
  }
  return [...ids]
}

async function ownPacks({ gitDir }: PrivateGit): Promise<string[]> {
  const names = await readdir(join(gitDir, 'objects', 'pack')).catch(() => [])
  return names.filter(name => name.endsWith('.pack'))
}

/** What a reference is to lead to is on the disk before the reference is. */
export const synced = ['-c', 'core.fsync=all']
const gentle = ['-c', 'pack.threads=1']
const fast = [...synced, ...gentle, '-c', 'pack.writeReverseIndex=false', '-c', 'pack.compression=1']
const mostPacks = 12
const deleted = '000000'
const submodule = '160000'
