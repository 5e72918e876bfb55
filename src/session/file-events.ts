import type { MemoryProblem } from '../workspace/memory.ts'
import type { TreeChanges } from '../workspace/tree-changes.ts'

/** What happens to the files: those of the memory, of the repository, of the work tree. */
export type FileEvent =
  | { type: 'memory-broken'; problem: MemoryProblem }
  | { type: 'repository-restored'; round: number; paths: readonly string[]; setAside: string | null }
  | {
      type: 'savepoint'
      /** The round after which it was made; 0: before the first. */
      round: number
      /** In codemachine's private git directory. */
      commit: string
      tree: string
      /** Since the session began; at most 50 paths. */
      changes: TreeChanges
      /** Where the person's own branch stands; null if there is none. */
      head: string | null
      /** Commits on that branch that were not there at the savepoint before, the oldest first, at most 20. */
      commits: readonly { commit: string; subject: string }[]
    }
  | {
      type: 'protected-changed'
      round: number
      /** At most 50 files that gates protect and that this round changed, deleted, or marked to be skipped. */
      files: readonly { path: string; how: 'changed' | 'deleted' | 'skipped'; gates: readonly string[] }[]
      count: number
    }
