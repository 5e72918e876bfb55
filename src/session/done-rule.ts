import { claimsDone, type MemorySnapshot } from '../workspace/memory.ts'
import type { RefusalReason } from './claim-events.ts'
import type { EndedRound } from './state.ts'

/** What codemachine makes of the memory files after a round (docs/design.md, "When is a session done", parts 1 to 3). */
export type Verdict =
  | { kind: 'none' }
  | { kind: 'refused'; by: Nominators; reason: RefusalReason; detail: string }
  | { kind: 'nominated'; by: Nominators; tree: string }

type Nominators = readonly ('MAIN.md' | 'tasks.json')[]

/** Judges the done claim that the memory files make after `round`, if they make one. Pure. */
export function judgeDone(memory: MemorySnapshot, round: EndedRound): Verdict {
  const by = nominators(memory, round)
  if (by.length === 0) return { kind: 'none' }
  const refused = (reason: RefusalReason, detail: string): Verdict => ({ kind: 'refused', by, reason, detail })

  if (round.outcome.class !== 'worked') {
    return refused('round-not-completed', 'the round that claimed it did not come to its end. Look again.')
  }
  if (memory.problems.length > 0) {
    const files = memory.problems.map(problem => problem.file).join(' and ')
    return refused('memory-broken', `${files} could not be read. Write it anew and look again.`)
  }
  const left = memory.tasks.filter(task => !task.done)
  if (left.length > 0) {
    return refused(
      'tasks-left',
      `tasks.json still has ${count(left.length, 'task')} that ${left.length === 1 ? 'is' : 'are'} not done: ${some(left.map(task => `${task.id} ${task.name}`))}.`,
    )
  }
  if (memory.main.open.length > 0) {
    return refused(
      'progress-left',
      `MAIN.md still lists open work: ${some(memory.main.open)}. Finish it, or move it to Done if it is.`,
    )
  }
  if (round.treeBefore !== round.treeAfter) {
    return refused(
      'tree-changed',
      `the round that claimed it changed ${count(round.changedCount, 'file')} (${some(round.changed)}). Look at the whole with fresh eyes; claim done only if nothing needs to change.`,
    )
  }
  return { kind: 'nominated', by, tree: round.treeAfter }
}

/** In a build all tasks are done before a last look, so that only its own word is a claim. */
function nominators(memory: MemorySnapshot, { part }: EndedRound): Nominators {
  const by: ('MAIN.md' | 'tasks.json')[] = []
  if (claimsDone(memory.main)) by.push('MAIN.md')
  const isAllDone = memory.tasks.length > 0 && memory.tasks.every(task => task.done)
  if (isAllDone && (part === null || by.length > 0)) by.push('tasks.json')
  return by
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`
}

/** At most five of a list, as a sentence part. */
function some(entries: readonly string[]): string {
  const shown = entries.slice(0, 5).map(entry => entry.slice(0, 120))
  const more = entries.length - shown.length
  return more > 0 ? `${shown.join('; ')}; and ${more} more` : shown.join('; ')
}
