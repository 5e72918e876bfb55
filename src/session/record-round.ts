import type { Clock } from '../base/clock.ts'
import type { Memory, MemorySnapshot } from '../workspace/memory.ts'
import { countTasks } from './count-tasks.ts'
import type { WorkTree } from './judge-claim.ts'
import type { RoundOutcome } from './outcome.ts'
import { type RepositoryGuard, tellRestored } from './repository-check.ts'
import type { SessionLog } from './session-log.ts'
import { roundTokens } from './session-tokens.ts'

/** A round that has played, of which nothing runs any more. */
export interface PlayedRound {
  round: number
  outcome: RoundOutcome
  counts: boolean
  /** On the monotonic clock, ms. */
  startedAt: number
  treeBefore: string
}

export interface RecordRoundOptions {
  log: SessionLog
  clock: Clock
  workTree: WorkTree
  guard: RepositoryGuard
  memory: Memory
}

/** Looks at what a round has left, and journals its end. Answers the files as they are now. */
export async function recordRound(
  { round, outcome, counts, startedAt, treeBefore }: PlayedRound,
  { log, clock, workTree, guard, memory }: RecordRoundOptions,
): Promise<{ tree: string; memory: MemorySnapshot }> {
  const [tree, restored, left] = await Promise.all([workTree.take(), guard.check(), memory.read()])
  const { paths, count } = treeBefore === tree ? { paths: [], count: 0 } : await workTree.changed(treeBefore, tree)
  log.emit({
    type: 'round-ended',
    round,
    outcome,
    counts,
    durationMs: Math.round(clock.monotonic() - startedAt),
    tokens: roundTokens(log.state),
    treeBefore,
    treeAfter: tree,
    changed: paths,
    changedCount: count,
    memory: left.fingerprint,
    ...countTasks(left),
  })
  tellRestored(log, restored)
  return { tree, memory: left }
}
