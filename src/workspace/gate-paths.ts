import { posix } from 'node:path'
import type { Gate } from '../core/events/outcome.ts'
import type { WorkChange } from '../core/rules/proof/counter-proof.ts'
import {
  executedBy,
  includedBy,
  isGateConfiguration,
  isGateMatter,
  isTestByName,
  namesFoundBy,
  ownFilesOf,
} from '../core/rules/proof/gate-files.ts'
import { comparable } from '../platform/files.ts'
import { fromLatin1, GitError, runGitOrThrow, toLatin1 } from './git/git.ts'
import { entriesBetween, type TreeEntry } from './git/objects.ts'
import type { PrivateGit } from './git/private-git.ts'
import { readBlobs, TREE_LIST, treeEntries } from './git/trees.ts'
import { protectedGlobs } from './protected-files.ts'

/** How a gate may use a changed file. `isNoAddition`: as in `WorkChange`. */
type PathKind = Pick<WorkChange, 'isRunThrough' | 'isNoAddition'>

/** Returns that for a path relative to the work directory. `isNew`: the work has added it. */
type KindOf = (path: string, isNew: boolean) => PathKind

/**
 * Returns a function that tells the files that a gate runs through from the work that it checks. These are protected files,
 * tests, settings, files that its line executed before the work, and their includes. Also the entry that now replaces a file
 * named in its line. A link's target counts like the link.
 * @param start the tree that the work began with
 */
export async function gatePathsOf(
  git: PrivateGit,
  start: string,
  gate: Pick<Gate, 'run' | 'protect'>,
  platform?: NodeJS.Platform,
): Promise<KindOf> {
  const { run, protect } = gate
  const keyOf = (path: string) => comparable(path, platform)
  const { covers } = protectedGlobs(protect, platform)
  const names = new Set(namesFoundBy(run).map(keyOf))
  const entries = await entriesOf(git, start)
  const executed = new Set(executedBy(run).map(keyOf))
  const included = await followIncludes(git, entries, [...executed, ...ownFilesOf(run)], keyOf)
  const aliases = await aliasesOf(git, entries, keyOf)
  const kindOf = (given: string, isNew: boolean): PathKind => {
    const path = keyOf(given)
    const [top = ''] = path.split('/')
    const isProtected = covers(path)
    // A program that the line names and that did not exist is a result of the work.
    if (executed.has(path) && !isProtected) return { isRunThrough: !isNew, isNoAddition: !isNew }
    const isNamed = names.has(top) || names.has(top.replace(/\.\w+$/, ''))
    const isOfGate = isNamed || included.has(path) || isGateConfiguration(path) || (isProtected && !isTestByName(given))
    return { isRunThrough: isOfGate || isProtected || isGateMatter(given), isNoAddition: !isNew || isOfGate }
  }
  return (path, isNew) => {
    const kinds = [path, ...aliases(path)].map(each => kindOf(each, isNew))
    return {
      isRunThrough: kinds.some(({ isRunThrough }) => isRunThrough),
      isNoAddition: kinds.some(({ isNoAddition }) => isNoAddition),
    }
  }
}

/** A changed file with its entry after the work. */
interface LaidChange extends WorkChange {
  entry: TreeEntry
}

/**
 * Returns the files that the work has changed between two trees, and how a gate may use each. A problem is a clause: the
 * earlier files are gone.
 */
export async function workChanges(
  git: PrivateGit,
  { start, tree, gate }: { start: string; tree: string; gate: Pick<Gate, 'run' | 'protect'> },
): Promise<LaidChange[] | { problem: string }> {
  const prefix = toLatin1(git.prefix)
  try {
    const kindOf = await gatePathsOf(git, start, gate)
    return (await entriesBetween(git, start, tree)).map(entry => {
      const path = fromLatin1(entry.path.slice(prefix.length))
      return { path, entry, ...kindOf(path, entry.isNew) }
    })
  } catch (error) {
    return { problem: unreadThen(error) }
  }
}

/** Returns a clause on why earlier files cannot be read. Throws errors that are not git's. */
export function unreadThen(error: unknown): string {
  if (error instanceof GitError) return `the files of then cannot be read (${error.reason})`
  throw error
}

interface Entry {
  path: string
  hash: string
  isLink: boolean
}

async function entriesOf(git: PrivateGit, tree: string): Promise<ReadonlyMap<string, Entry>> {
  const entries = treeEntries(await runGitOrThrow(git.setting, [...TREE_LIST, tree]))
  const files = entries.filter(({ mode }) => mode !== '160000')
  return new Map(
    files.map(({ path: name, mode, id }) => {
      const path = fromLatin1(name)
      return [path, { path, hash: id, isLink: mode === '120000' }]
    }),
  )
}

const MOST_FOLLOWED = 200
const MOST_LINKS = 1_000

/** Returns all files that scripts and makefiles include, transitively; a missing file counts by name. */
async function followIncludes(
  git: PrivateGit,
  entries: ReadonlyMap<string, Entry>,
  from: readonly string[],
  keyOf: (path: string) => string,
): Promise<ReadonlySet<string>> {
  const files = new Map([...entries].map(([path, entry]) => [keyOf(path), entry]))
  const included = new Set<string>()
  const seen = new Set<string>()
  let next = from.map(keyOf)
  while (next.length > 0 && seen.size < MOST_FOLLOWED) {
    const found = next.flatMap(path => (seen.has(path) ? [] : (files.get(path) ?? []))).slice(0, MOST_FOLLOWED)
    for (const path of next) seen.add(path)
    const texts = await readBlobs(
      git,
      found.map(({ hash }) => hash),
    )
    next = found.flatMap(({ path, hash }) => {
      const folder = posix.dirname(path)
      // Search beside the file, and in the directory of the gate.
      return includedBy(texts.get(hash) ?? '').flatMap(name => [name, posix.join(folder, name)].map(keyOf))
    })
    for (const path of next) included.add(path)
  }
  return included
}

/** Returns a function from a path to the paths of links in the tree that lead to it. */
async function aliasesOf(
  git: PrivateGit,
  entries: ReadonlyMap<string, Entry>,
  keyOf: (path: string) => string,
): Promise<(path: string) => string[]> {
  const links = [...entries.values()].filter(({ isLink }) => isLink).slice(0, MOST_LINKS)
  if (links.length === 0) return () => []
  const texts = await readBlobs(
    git,
    links.map(({ hash }) => hash),
  )
  const pairs = links.map(({ path, hash }) => ({
    link: keyOf(path),
    target: keyOf(posix.normalize(posix.join(posix.dirname(path), fromLatin1(texts.get(hash) ?? '')))),
  }))
  return path => {
    const known = new Set([keyOf(path)])
    for (const each of known) {
      for (const { link, target } of pairs) {
        if (each === target) known.add(link)
        else if (each.startsWith(`${target}/`)) known.add(`${link}${each.slice(target.length)}`)
      }
      if (known.size > MOST_LINKS) break
    }
    known.delete(keyOf(path))
    return [...known]
  }
}
