import { addedLines, type ChangedFile, changedFiles, filesOfTree } from './changed-files.ts'
import { GitError } from './git-command.ts'
import type { PrivateGit } from './private-git.ts'
import { configuresRunner, protectedGlobs } from './protected-globs.ts'
import { canMarkSkipped, marksSkipped } from './skip-marks.ts'

/** What a gate protects: globs relative to the work directory, or names of files and of folders with all in them. */
export interface ProtectingGate {
  name: string
  protect: readonly string[]
}

/** A file that gates protect, and what was done to it: `skipped` is one in which tests were marked to be skipped. */
interface ProtectedFile {
  path: string
  how: 'changed' | 'deleted' | 'skipped'
  /** Names of the gates. */
  gates: readonly string[]
}

/** The protected files that differ: at most 50 of them, in git's order, and how many there are. */
export interface ProtectedChanges {
  files: readonly ProtectedFile[]
  count: number
}

export interface ProtectedChangesOptions {
  gates: readonly ProtectingGate[]
  /** Trees that the private git directory holds. */
  before: string
  after: string
  git: PrivateGit
}

/**
 * The files that gates protect and that differ between two trees. A new file weakens no gate, and is none of them, unless
 * it marks tests to be skipped, is a configuration of a test runner, or is one that a gate names. Where the older tree
 * is gone, every protected file counts as changed.
 */
export async function protectedChanges({
  gates,
  before,
  after,
  git,
}: ProtectedChangesOptions): Promise<ProtectedChanges> {
  const protecting = gates.filter(({ protect }) => protect.length > 0)
  if (protecting.length === 0 || before === after) return { files: [], count: 0 }
  const named = protecting.map(({ name, protect }) => ({ name, ...protectedGlobs(protect) }))
  const { changes, isKnown } = await changesOf(git, before, after)
  const touched = changes.flatMap(file => {
    const path = file.path.normalize()
    const by = named.filter(({ covers }) => covers(path))
    return by.length === 0 ? [] : [{ file, by, isNamed: by.some(({ names }) => names.has(path)) }]
  })
  const looked = touched.map(({ file }) => file).filter(({ how, path }) => how !== 'deleted' && canMarkSkipped(path))
  const lines = isKnown ? await addedLines(git, looked) : new Map<string, string[]>()
  const files = touched.flatMap(({ file, by, isNamed }): ProtectedFile[] => {
    const isSkipping = marksSkipped(file.path, lines.get(file.path) ?? [])
    const counts = file.how !== 'added' || isSkipping || isNamed || !isKnown || configuresRunner(file.path)
    if (!counts) return []
    const how = file.how === 'deleted' ? 'deleted' : isSkipping ? 'skipped' : 'changed'
    return [{ path: file.path, how, gates: by.map(({ name }) => name) }]
  })
  return { files: files.slice(0, listed), count: files.length }
}

async function changesOf(
  git: PrivateGit,
  before: string,
  after: string,
): Promise<{ changes: ChangedFile[]; isKnown: boolean }> {
  const changes = await changedFiles(git, before, after)
  if (changes !== null) return { changes, isKnown: true }
  const all = await filesOfTree(git, after)
  if (all === null) throw new GitError(['ls-tree', after], { ok: false, stdout: '', stderr: `${after} is gone` })
  return { changes: all, isKnown: false }
}

const listed = 50
