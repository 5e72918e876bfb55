import type { Memory, MemorySnapshot } from '../workspace/memory.ts'
import type { RefusalReason } from './claim-events.ts'
import { judgeDone } from './done-rule.ts'
import type { Engine } from './engine.ts'
import type { SessionLog } from './session-log.ts'

/** What tells whether a round changed the work tree. */
export interface WorkTree {
  /** The fingerprint of the work tree now: a git tree hash. */
  take(): Promise<string>
  changed(before: string, after: string): Promise<{ paths: readonly string[]; count: number }>
}

export interface JudgeOptions {
  log: SessionLog
  memory: Memory
  engine: Engine
  workTree: WorkTree
}

/**
 * Judges the round that has just ended, however it ended: a claim must not outlive the round that made it. One that is
 * not refused stays nominated, to be proved. Returns the fingerprint of the work tree, if it was taken anew.
 */
export async function judgeClaim(snapshot: MemorySnapshot, options: JudgeOptions): Promise<string | null> {
  const { log, memory } = options
  const { last } = log.state
  if (!last) return null
  const verdict = judgeDone(snapshot, last)
  if (verdict.kind === 'none') return null
  const { round } = last
  const claimed = verdict.kind === 'refused' ? {} : { tree: verdict.tree }
  log.emit({ type: 'done-nominated', round, by: verdict.by, ...claimed })
  const { tree, refusal } =
    verdict.kind === 'refused' ? { tree: null, refusal: verdict } : await lookOnceMore(verdict.tree, options)
  if (refusal === null) return tree
  log.emit({ type: 'done-refused', round, reason: refusal.reason, detail: refusal.detail })
  await memory.withdrawClaim()
  return tree
}

/** Before a claim is believed, nothing may be left that could still change the tree that it is about. */
async function lookOnceMore(
  claimed: string,
  { engine, workTree }: JudgeOptions,
): Promise<{ tree: string; refusal: { reason: RefusalReason; detail: string } | null }> {
  await engine.settle()
  const tree = await workTree.take()
  if (tree === claimed) return { tree, refusal: null }
  const { paths } = await workTree.changed(claimed, tree)
  const detail = `something that was left running changed files (${paths.slice(0, 5).join('; ')}) after the round had ended. Look at the whole with fresh eyes.`
  return { tree, refusal: { reason: 'tree-changed', detail } }
}
