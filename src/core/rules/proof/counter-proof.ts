import type { EventOf } from '../../events/events.ts'

/** Result of a gate without the work: the event `counter-proof` without round and scope. */
export type CounterProof = Omit<EventOf<'counter-proof'>, 'type' | 'round' | 'scope'>

/** Reason why a passed gate needs an agreeing review. */
type Doubt = CounterProof['doubts'][number]

/** A file that the work changed. */
export interface WorkChange {
  /** Relative to the work directory. */
  path: string
  /** True if the gate may use it: a test, settings, a script in its command. All other files are work. */
  isRunThrough: boolean
  /** For an added file: true if only the gate can need it (its settings, for example). True for all other files. */
  isNoAddition: boolean
}

/** Result of the gate on one set of files. `unknown`: it could not run; `problem` says why, a sentence part. */
export interface CounterRun {
  status: 'passed' | 'failed' | 'unknown'
  problem: string | null
  durationMs: number
  /** Files below the work directory that it read; null: not known. */
  read: ReadonlySet<string> | null
}

/** The changed files, and a way to run the gate on some of them. */
export interface CounterSearch<Change extends WorkChange> {
  changes: readonly Change[]
  /** True if the gate failed earlier in the session; null: it never ran. */
  failedBefore: boolean | null
  /** Files that gates themselves changed before the work; they do not count as work. */
  ofGates: readonly string[]
  /** Time limit of the search for the smallest set, ms. */
  mostMs: number
  /** Runs the gate on the files of the start plus these changes. */
  run(changes: readonly Change[]): Promise<CounterRun>
}

type Found = Pick<
  CounterProof,
  'result' | 'problem' | 'made' | 'madeCount' | 'isSmallest' | 'through' | 'unread' | 'doubts' | 'runs'
>

/** Run limit of one gate's counter-proof. */
const MOST_RUNS = 8
const MOST_PATHS = 50

/**
 * Tests if a passing gate fails without the work. Also finds the smallest set of changed files that makes it pass.
 *
 * 1. Files of the start, with all changes that the gate may run through: it must fail. If it passes, it is blind.
 * 2. Files of the start, with the work alone: if it passes, no changed test or setting makes it pass.
 * 3. By halves, within `MOST_RUNS` and `mostMs`, the smallest set that makes it pass.
 *
 * A gate that passed before the work proves nothing; for it, the changed files that it reads are found.
 */
export async function counterProve<Change extends WorkChange>(search: CounterSearch<Change>): Promise<Found> {
  const { changes, failedBefore } = search
  const runs = new Runs(search)
  if (changes.length === 0) return withoutWork(failedBefore)
  if (failedBefore === false) return await readsChanged(runs, search)
  const through = changes.filter(({ isRunThrough }) => isRunThrough)
  if (failedBefore === null) {
    const start = await runs.on([])
    if (start.status === 'unknown') return notTried(start.problem, changes, runs.count)
    if (start.status === 'passed') return await readsChanged(runs, search)
  }
  const without = await runs.on(through)
  if (without.status === 'unknown') return notTried(without.problem, changes, runs.count)
  if (without.status === 'passed') return found('blind', await smallest(through, runs), [], runs)
  const work = changes.filter(({ isRunThrough }) => !isRunThrough)
  const alone = await runs.on(work)
  if (alone.status === 'passed')
    return found('stands', await smallest(work, runs), unread(without, alone, search), runs)
  const whole = await runs.on(changes)
  if (whole.status !== 'passed') return notTried(whole.problem ?? FAILS_THERE, changes, runs.count)
  return found('stands', await smallest(changes, runs), unread(without, whole, search), runs)
}

/** Returns the result if the work changed no file. What makes a gate pass that failed earlier is then elsewhere. */
export function withoutWork(failedBefore: boolean | null): Found {
  if (failedBefore === true) return { ...NOTHING_MADE, result: 'blind', problem: null, doubts: ['blind'], runs: 0 }
  return notTried('no file has changed since the start of the work', [])
}

const FAILS_THERE = 'it fails in a fresh checkout, even of the claimed files'

/**
 * Returns the changed files that a gate reads which passed before the work. Added tests and work do not count as changes.
 * But it must still read each unchanged file that it read before.
 */
async function readsChanged<Change extends WorkChange>(
  runs: Runs<Change>,
  search: CounterSearch<Change>,
): Promise<Found> {
  const { changes, ofGates } = search
  const whole = await runs.on(changes)
  if (whole.status !== 'passed') return notTried(whole.problem ?? FAILS_THERE, changes, runs.count)
  const { read } = whole
  const counting = changes.filter(({ path, isNoAddition }) => isNoAddition && !ofGates.includes(path))
  // Without access times, each file that it may run through may be read.
  const isRead = ({ path, isRunThrough }: Change) => (read === null ? isRunThrough : read.has(path))
  const through = counting.filter(isRead).map(({ path }) => path)
  const left = through.length > 0 ? [] : unread(await runs.on([]), whole, search)
  const ofRead: Doubt = read === null ? 'runs-through' : 'reads-changed'
  const doubts: Doubt[] = through.length > 0 ? [ofRead] : left.length > 0 ? ['unread'] : []
  return {
    ...NOTHING_MADE,
    result: 'passed-before',
    problem: null,
    through: through.slice(0, MOST_PATHS),
    unread: left.slice(0, MOST_PATHS),
    doubts,
    runs: runs.count,
  }
}

const NOTHING_MADE = { made: [], madeCount: 0, isSmallest: false, through: [], unread: [], doubts: [] } as const

/**
 * Returns the result if the work cannot be removed: each change of a file that the gate runs through is a doubt.
 * @param problem why, part of a sentence
 * @param changes null: what the work changed is not known, or the work itself is the reason; that is a doubt of its own
 */
export function notTried(problem: string | null, changes: readonly WorkChange[] | null, runs = 0): Found {
  if (changes === null) return { ...NOTHING_MADE, result: 'not-tried', problem, doubts: ['not-tried'], runs }
  const through = changes
    .filter(({ isRunThrough, isNoAddition }) => isRunThrough && isNoAddition)
    .map(({ path }) => path)
  const doubts: Doubt[] = through.length > 0 ? ['runs-through'] : []
  return { ...NOTHING_MADE, result: 'not-tried', problem, through: through.slice(0, MOST_PATHS), doubts, runs }
}

interface Smallest {
  made: readonly WorkChange[]
  isSmallest: boolean
}

function found(
  result: 'stands' | 'blind',
  { made, isSmallest }: Smallest,
  unreadNow: readonly string[],
  runs: { count: number },
): Found {
  const through = made.filter(({ isRunThrough }) => isRunThrough).map(({ path }) => path)
  const doubts: Doubt[] = []
  if (result === 'blind') doubts.push('blind')
  else if (through.length > 0) doubts.push('runs-through')
  if (unreadNow.length > 0) doubts.push('unread')
  return {
    result,
    problem: null,
    made: made.slice(0, MOST_PATHS).map(({ path }) => path),
    madeCount: made.length,
    isSmallest,
    through: through.slice(0, MOST_PATHS),
    unread: unreadNow.slice(0, MOST_PATHS),
    doubts,
    runs: runs.count,
  }
}

/** Returns unchanged files that the gate read when it failed, but not when it passed: it no longer checks them. */
function unread<Change extends WorkChange>(
  failed: CounterRun,
  passed: CounterRun,
  { changes }: CounterSearch<Change>,
): string[] {
  const { read } = passed
  if (failed.read === null || read === null) return []
  const changed = new Set(changes.map(({ path }) => path))
  return [...failed.read].filter(path => !read.has(path) && !changed.has(path)).sort()
}

/** Finds a smallest set of changes that makes the gate pass: no half of it, and no rest without one part, is enough. */
async function smallest<Change extends WorkChange>(passing: readonly Change[], runs: Runs<Change>): Promise<Smallest> {
  let made = passing
  let parts = 2
  while (made.length > 1) {
    const split = inParts(made, parts)
    const tries = parts === 2 ? split : [...split, ...split.map(part => made.filter(each => !part.includes(each)))]
    let smaller: readonly Change[] | null = null
    for (const some of tries) {
      if (!runs.mayGoOn) return { made, isSmallest: false }
      if ((await runs.on(some)).status !== 'passed') continue
      smaller = some
      break
    }
    if (smaller !== null) {
      parts = 2
      made = smaller
    } else if (parts >= made.length) break
    else parts = Math.min(parts * 2, made.length)
  }
  return { made, isSmallest: true }
}

function inParts<T>(list: readonly T[], parts: number): T[][] {
  const size = Math.ceil(list.length / parts)
  return Array.from({ length: Math.ceil(list.length / size) }, (_, at) => list.slice(at * size, (at + 1) * size))
}

/** The runs so far; repeats are cached. */
class Runs<Change extends WorkChange> {
  readonly #search: CounterSearch<Change>
  readonly #known = new Map<string, CounterRun>()
  #spentMs = 0
  count = 0

  constructor(search: CounterSearch<Change>) {
    this.#search = search
  }

  /** True if one more run is allowed. */
  get mayGoOn(): boolean {
    return this.count < MOST_RUNS && this.#spentMs < this.#search.mostMs
  }

  async on(changes: readonly Change[]): Promise<CounterRun> {
    const key = JSON.stringify(changes.map(({ path }) => path).sort())
    const known = this.#known.get(key)
    if (known !== undefined) return known
    this.count += 1
    const run = await this.#search.run(changes)
    this.#spentMs += run.durationMs
    this.#known.set(key, run)
    return run
  }
}

/** Returns why a passing gate needs a review: it ran fewer tests than earlier, none, or some failed. */
export function doubtsOfTests({ now, most, failed = 0 }: NonNullable<CounterProof['tests']>): Doubt[] {
  const isFewer = most !== null && (now === null || now < most)
  return [
    ...(now === 0 ? (['no-tests'] as const) : isFewer ? (['fewer-tests'] as const) : []),
    ...(failed > 0 ? (['failed-tests'] as const) : []),
  ]
}

/**
 * Describes why a review is needed: one sentence for each doubt. Paths are as agents wrote them.
 * @param most limit of paths from each list
 */
export function wordsForDoubts(
  { gate, result, problem, doubts, made, madeCount, through, unread: left, tests }: CounterProof,
  most: number,
): string[] {
  return doubts.map(doubt => {
    switch (doubt) {
      case 'blind':
        return madeCount === 0
          ? `The check \`${gate}\` failed earlier, but now passes even without the changed files. So an ignored file, or something on this machine, makes it pass.`
          : `The check \`${gate}\` failed earlier, but now passes without the work. These files make it pass: ${listed(made, madeCount, most)}.`
      case 'runs-through':
        if (result === 'not-tried')
          return `The check \`${gate}\` was not run without the work (${problem}). The work changed files that it runs: ${listed(through, through.length, most)}.`
        if (result === 'passed-before')
          return `The check \`${gate}\` already passed before the work, and codemachine cannot find out which files it reads. The work changed files that it may run: ${listed(through, through.length, most)}.`
        return `The check \`${gate}\` runs these changed files, and passes only with them: ${listed(through, through.length, most)}.`
      case 'not-tried':
        return `The check \`${gate}\` was not run without the work (${problem}), so it may prove nothing.`
      case 'unread':
        return `The check \`${gate}\` no longer reads these files, which it read before the work: ${listed(left, left.length, most)}.`
      case 'reads-changed':
        return `The check \`${gate}\` already passed before the work, so it proves nothing. The work changed files that it reads: ${listed(through, through.length, most)}.`
      case 'fewer-tests':
        return `The check \`${gate}\` ran ${wordsForTests(tests?.now ?? null)}; earlier in the session it ran ${wordsForTests(tests?.most ?? null)}.`
      case 'no-tests':
        return `The check \`${gate}\` passes, but ran no test.`
      case 'failed-tests':
        return `The check \`${gate}\` passes, but reports that ${wordsForTests(tests?.failed ?? null)} failed.`
      // A doubt of another version.
      default:
        return `The check \`${gate}\` may prove nothing (${doubt}).`
    }
  })
}

function wordsForTests(count: number | null): string {
  return count === null ? 'an unknown number of tests' : `${count} test${count === 1 ? '' : 's'}`
}

function listed(paths: readonly string[], count: number, most: number): string {
  const shown = paths.slice(0, most)
  const more = count - shown.length
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ')
}
