import { runGit, runGitOrThrow } from './git-command.ts'
import { treeAt } from './head-holds.ts'
import type { PrivateGit } from './private-git.ts'

/** One file as git knows it. `mode` 000000: it is not there. Paths are latin1, relative to git's top. */
export interface TreeEntry {
  mode: string
  hash: string
  path: string
}

/**
 * What was not committed at a commit and so lay in the work directory through the commits after it, until one of them
 * touched it.
 */
export interface CarriedChanges {
  /** What still lies there at the nth of the commits, from 0. */
  at(index: number): readonly TreeEntry[]
  /** The first submodule that has been set to another commit by then; null if there is none. */
  submoduleChanged(index: number): string | null
}

/** What `tree` (a fingerprint) has beside `from`, carried through `commits`, which follow it one after the other. */
export async function carriedChanges(
  git: PrivateGit,
  { from, tree, commits }: { from: string; tree: string; commits: readonly string[] },
): Promise<CarriedChanges> {
  const changes = await uncommitted(git, from, tree)
  const pairs = commits.map((commit, index) => `${commit} ${index === 0 ? from : commits[index - 1]}\n`).join('')
  const args = ['diff-tree', '--stdin', '-r', '-z', '--raw', '--no-renames']
  const touched = new Map<string, number>()
  let submodule = { path: '', index: Number.POSITIVE_INFINITY }
  let index = -1
  for (const field of records(pairs === '' ? '' : await runGitOrThrow(git.setting, args, pairs))) {
    if (field.kind === 'commit') index = commits.indexOf(field.commit, index + 1)
    else {
      if (!touched.has(field.path)) touched.set(field.path, index)
      if (field.isSubmodule && index < submodule.index) submodule = { path: field.path, index }
    }
  }
  return {
    at: index => changes.filter(({ path }) => (touched.get(path) ?? Number.POSITIVE_INFINITY) > index),
    submoduleChanged: index => (submodule.index <= index ? submodule.path : null),
  }
}

/** What goes first: a folder may stand where a submodule was. */
async function uncommitted(git: PrivateGit, from: string, tree: string): Promise<TreeEntry[]> {
  const { setting, prefix } = git
  const known = await runGit(setting, ['rev-parse', '--verify', '--quiet', treeAt(git, from)])
  const before = known.ok
    ? known.stdout.trim()
    : (await runGitOrThrow(setting, ['hash-object', '-t', 'tree', '--stdin'], '')).trim()
  const args = ['diff-tree', '-r', '-z', '--raw', '--no-renames', '--end-of-options', before, tree]
  const entries: TreeEntry[] = []
  for (const record of records(await runGitOrThrow(setting, args))) {
    if (record.kind === 'file')
      entries.push({ mode: record.mode, hash: record.hash, path: latin1(prefix) + record.path })
  }
  return entries.sort((a, b) => Number(b.mode === ABSENT) - Number(a.mode === ABSENT))
}

type DiffRecord =
  | { kind: 'commit'; commit: string }
  | { kind: 'file'; path: string; mode: string; hash: string; isSubmodule: boolean }

/** Of `diff-tree -z --raw`: `:<mode> <mode> <hash> <hash> <status>`, then the path; a commit stands alone. */
function* records(output: string): Generator<DiffRecord> {
  const fields = output.split('\0')
  for (let index = 0; index < fields.length; index += 1) {
    const field = fields[index] ?? ''
    if (field === '') continue
    if (!field.startsWith(':')) {
      yield { kind: 'commit', commit: field.trim() }
      continue
    }
    const [before = '', mode = '', , hash = ''] = field.slice(1).split(' ')
    index += 1
    const path = fields[index] ?? ''
    yield { kind: 'file', path, mode, hash, isSubmodule: before === SUBMODULE || mode === SUBMODULE }
  }
}

function latin1(path: string): string {
  return Buffer.from(path, 'utf8').toString('latin1')
}

const ABSENT = '000000'
const SUBMODULE = '160000'
