import { clipEnd } from '../base/clip.ts'
import type { Recorded, RecordedOf } from '../session/events.ts'
import type { TreeChanges } from '../workspace/tree-changes.ts'
import { FirstAndLast } from './first-and-last.ts'
import type { ReportChanges } from './report-data.ts'

const MOST_PATHS = 50
const MOST_COUNTED = 5000
const PATH_CHARS = 500

/** What a report says of the files: by the savepoints, or, where none holds its beginning, by what the rounds say. */
export class ChangesSoFar {
  readonly #commits = new FirstAndLast<{ commit: string; subject: string }>({ first: 25, last: 25 })
  readonly #touched = new Set<string>()
  readonly #byGates = new Set<string>()
  #start: ReportChanges['start'] = null
  #now: ReportChanges['now'] = null
  #changes: TreeChanges | null = null
  #savepoints = 0
  /** Whether the first savepoint holds what the session began with. */
  #isWhole = true

  add(event: Recorded): void {
    if (event.type === 'savepoint') this.#addSavepoint(event)
    if (event.type === 'gate-ended') note(this.#byGates, event.changed)
    if (event.type === 'round-ended') note(this.#touched, event.changed)
  }

  result(): ReportChanges {
    const changes = this.#isWhole ? this.#changes : null
    return {
      from: changes === null ? 'rounds' : 'savepoints',
      ...(changes ?? touchedOnly(this.#touched)),
      start: this.#isWhole ? this.#start : null,
      now: this.#now,
      byGates: (changes?.paths ?? []).map(({ path }) => path).filter(path => this.#isByGate(path)),
      savepoints: this.#savepoints,
      commits: this.#commits.shortened(),
    }
  }

  #isByGate(path: string): boolean {
    return this.#byGates.has(path) && !this.#touched.has(path)
  }

  #addSavepoint({ round, commit, tree, head, changes, commits }: RecordedOf<'savepoint'>): void {
    this.#savepoints += 1
    if (this.#start === null && round > 0) this.#isWhole = false
    this.#start ??= { tree, commit, head }
    this.#now = { tree, commit, head, round }
    const paths = changes.paths.slice(0, MOST_PATHS)
    this.#changes = { ...changes, paths: paths.map(each => ({ ...each, path: clipEnd(each.path, PATH_CHARS) })) }
    for (const each of commits) this.#commits.add({ commit: each.commit, subject: clipEnd(each.subject, PATH_CHARS) })
  }
}

function note(paths: Set<string>, changed: readonly string[]): void {
  for (const path of changed) if (paths.size < MOST_COUNTED) paths.add(clipEnd(path, PATH_CHARS))
}

function touchedOnly(touched: ReadonlySet<string>): TreeChanges {
  const paths = [...touched].slice(0, MOST_PATHS).map(path => ({ path, added: null, removed: null }))
  return { files: touched.size, added: 0, removed: 0, paths }
}
