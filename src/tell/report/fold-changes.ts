import { clipEnd } from '../../base/text.ts'
import type { Recorded, RecordedOf, TreeChanges } from '../../core/events/events.ts'
import type { SessionState } from '../../core/state/state.ts'
import { FirstAndLast, type KeptList } from './fold-rounds.ts'
import type { ReportChanges } from './report-data.ts'

const MOST_PATHS = 50
const MOST_COUNTED = 5000
const PATH_CHARS = 500
const HASH_CHARS = 64
const MOST_SEEN = 200

/** What `ChangesSoFar` has collected, as data. */
interface KeptChanges {
  commits: KeptList<{ commit: string; subject: string }>
  /** Hashes of the newest ones: a savepoint may name those of the one before again. */
  seen: readonly string[]
  touched: readonly string[]
  byGates: readonly string[]
  start: ReportChanges['start']
  now: ReportChanges['now']
  changes: TreeChanges | null
  notLookedAt: ReportChanges['notLookedAt']
  /** Left out: nothing, or by an earlier version. */
  uncommitted?: ReportChanges['uncommitted']
  savepoints: number
  isWhole: boolean
  /** Left out: none, or by an earlier version. */
  ran?: readonly string[]
  wrote?: readonly string[]
}

/** Collects the changed files: by the savepoints, or, if none holds the session's start, by what the rounds reported. */
export class ChangesSoFar {
  readonly #commits: FirstAndLast<{ commit: string; subject: string }>
  readonly #seen: Set<string>
  readonly #touched: Set<string>
  readonly #byGates: Set<string>
  /** What commands of steps have changed since the last savepoint, and what steps have written, which may have been like that. */
  readonly #ran: Set<string>
  readonly #wrote: Set<string>
  #start: ReportChanges['start']
  #now: ReportChanges['now']
  #changes: TreeChanges | null
  #notLookedAt: ReportChanges['notLookedAt']
  #uncommitted: ReportChanges['uncommitted']
  #savepoints: number
  /** Whether the first savepoint holds what the session began with. */
  #isWhole: boolean

  /** @param kept what it goes on from; left out: nothing */
  constructor(kept?: KeptChanges) {
    this.#commits = new FirstAndLast({ first: 25, last: 25 }, undefined, kept?.commits)
    this.#seen = new Set(kept?.seen)
    this.#touched = new Set(kept?.touched)
    this.#byGates = new Set(kept?.byGates)
    this.#ran = new Set(kept?.ran)
    this.#wrote = new Set(kept?.wrote)
    this.#start = kept?.start ?? null
    this.#now = kept?.now ?? null
    this.#changes = kept?.changes ?? null
    this.#notLookedAt = kept?.notLookedAt ?? NO_PATHS
    this.#uncommitted = kept?.uncommitted ?? NO_PATHS
    this.#savepoints = kept?.savepoints ?? 0
    this.#isWhole = kept?.isWhole ?? true
  }

  /** All that it has collected, as data. */
  kept(): KeptChanges {
    return {
      commits: this.#commits.kept(),
      seen: [...this.#seen],
      touched: [...this.#touched],
      byGates: [...this.#byGates],
      start: this.#start,
      now: this.#now,
      changes: this.#changes,
      notLookedAt: this.#notLookedAt,
      uncommitted: this.#uncommitted,
      savepoints: this.#savepoints,
      isWhole: this.#isWhole,
      ran: [...this.#ran],
      wrote: [...this.#wrote],
    }
  }

  add(event: Recorded): void {
    if (event.type === 'savepoint') this.#addSavepoint(event)
    if (event.type === 'gate-ended') addPaths(this.#byGates, event.changed)
    if (event.type === 'round-ended') addPaths(this.#touched, event.changed)
    if (event.type === 'command-ran') this.#addCommand(event)
    if (event.type === 'wrote')
      addPaths(
        this.#wrote,
        event.files.map(({ path }) => path),
      )
  }

  /** @param state the session after the last event */
  result({ unkept, ended }: Pick<SessionState, 'unkept' | 'ended'>): ReportChanges {
    const changes = this.#isWhole ? this.#changes : null
    // Once it has ended, what was written and is in no savepoint was like that before.
    const bySteps = new Set([...this.#ran, ...(ended === null ? this.#wrote : [])]).size
    const left = unkept.filter(({ files }) => files > 0)
    return {
      from: changes === null ? 'rounds' : 'savepoints',
      unkept: changes === null ? [] : left.map(({ round, files }) => ({ round, files })),
      ...(changes === null || bySteps === 0 ? {} : { unkeptSteps: bySteps }),
      ...(changes ?? touchedOnly(this.#touched)),
      start: this.#isWhole ? this.#start : null,
      now: this.#now,
      byGates: (changes?.paths ?? []).map(({ path }) => path).filter(path => this.#isByGate(path)),
      savepoints: this.#savepoints,
      uncommitted: this.#uncommitted,
      notLookedAt: this.#notLookedAt,
      commits: this.#commits.shortened(),
    }
  }

  #addCommand({ changed, treeAfter }: RecordedOf<'command-ran'>): void {
    addPaths(this.#touched, changed)
    if (treeAfter === this.#now?.tree) this.#ran.clear()
    else addPaths(this.#ran, changed)
  }

  #isByGate(path: string): boolean {
    return this.#byGates.has(path) && !this.#touched.has(path)
  }

  #addSavepoint(savepoint: RecordedOf<'savepoint'>): void {
    const { round, commit, tree, head, changes, commits, notLookedAt, uncommitted } = savepoint
    this.#savepoints += 1
    this.#ran.clear()
    this.#wrote.clear()
    if (this.#start === null && round > 0) this.#isWhole = false
    this.#start ??= { tree, commit, head }
    this.#now = { tree, commit, head, round }
    const paths = changes.paths.slice(0, MOST_PATHS)
    this.#changes = { ...changes, paths: paths.map(each => ({ ...each, path: clipEnd(each.path, PATH_CHARS) })) }
    this.#notLookedAt = shortenedPaths(notLookedAt)
    this.#uncommitted = shortenedPaths(uncommitted)
    for (const { commit, subject } of commits)
      this.#addCommit(clipEnd(commit, HASH_CHARS), clipEnd(subject, PATH_CHARS))
  }

  #addCommit(commit: string, subject: string): void {
    if (this.#seen.has(commit)) return
    this.#seen.add(commit)
    const [oldest] = this.#seen
    if (this.#seen.size > MOST_SEEN && oldest !== undefined) this.#seen.delete(oldest)
    this.#commits.add({ commit, subject })
  }
}

function shortenedPaths({ paths, count }: ReportChanges['notLookedAt'] = NO_PATHS): ReportChanges['notLookedAt'] {
  return { paths: paths.slice(0, MOST_PATHS).map(path => clipEnd(path, PATH_CHARS)), count }
}

const NO_PATHS: ReportChanges['notLookedAt'] = { paths: [], count: 0 }

/** Whether a path is at the end what it was at the start: as far as savepoints say so, whose list has room for every change. */
export function isAsAtStart({ from, files, paths, unkept, unkeptSteps = 0 }: ReportChanges, path: string): boolean {
  const isComplete = from === 'savepoints' && files === paths.length && unkept.length + unkeptSteps === 0
  return isComplete && paths.every(each => each.path !== path)
}

function addPaths(paths: Set<string>, changed: readonly string[]): void {
  for (const path of changed) if (paths.size < MOST_COUNTED) paths.add(clipEnd(path, PATH_CHARS))
}

function touchedOnly(touched: ReadonlySet<string>): TreeChanges {
  const paths = [...touched].slice(0, MOST_PATHS).map(path => ({ path, added: null, removed: null }))
  return { files: touched.size, added: 0, removed: 0, paths }
}
