import type { FileEvent } from './file-events.ts'
import { fields, flag, listOf, nullOr, number, oneOf, type ShapesOf, text } from './shape-checks.ts'

/** The shapes of the events of the files. */
export const FILE_SHAPES: ShapesOf<FileEvent> = {
  'memory-broken': {
    problem: fields({ file: text, problem: text, setAside: nullOr(text), restored: flag }),
  },
  'repository-restored': { paths: listOf(text), setAside: nullOr(text) },
  savepoint: {
    round: number,
    commit: text,
    tree: text,
    changes: fields({
      files: number,
      added: number,
      removed: number,
      paths: listOf(fields({ path: text, added: nullOr(number), removed: nullOr(number) })),
    }),
    head: nullOr(text),
    commits: listOf(fields({ commit: text, subject: text })),
  },
  'protected-changed': {
    round: number,
    files: listOf(fields({ path: text, how: oneOf('changed', 'deleted', 'skipped'), gates: listOf(text) })),
    count: number,
  },
}
