import { clipEnd } from '../../base/text.ts'
import type { Recorded, RecordedOf, TokenCounts, TreeChanges } from '../../core/events/events.ts'
import type { RoundClass } from '../../core/events/outcome.ts'
import type { TaskPlan } from '../../core/state/plan.ts'
import { partOf, type SessionState } from '../../core/state/state.ts'
import { wordsForPart } from '../words/plan.ts'
import type { PointSums, ReportData, ReportPoint, ReportRound, Shortened } from './report-data.ts'

const MESSAGE_CHARS = 500
/** How a round counts in the charts. What a wait mends is `limited`, not `failed`. */
const CHART_CLASS: Readonly<Record<RoundClass, 'worked' | 'limited' | 'failed'>> = {
  worked: 'worked',
  interrupted: 'worked',
  window: 'limited',
  throttle: 'limited',
  network: 'limited',
  'context-full': 'failed',
  refused: 'failed',
  quota: 'failed',
  auth: 'failed',
  config: 'failed',
  silent: 'failed',
  crashed: 'failed',
}
const NOTHING: PointSums = { durationMs: 0, tokens: 0, files: 0 }
const MOST_ROUNDS = { first: 20, last: 180 }

/** What `RoundsSoFar` has collected, as data. */
type KeptRounds = ReturnType<RoundsSoFar['kept']>

/** Collects the rounds: a table of the first and the last ones, and a series of points for the charts. */
export class RoundsSoFar {
  attempts: number
  commands: number
  tokensByKind: TokenCounts
  readonly #sums: { durationMs: number; tokens: number; failed: number }
  readonly #rows: FirstAndLast<ReportRound>
  readonly #series: RoundSeries
  #row: ReportRound | null

  /** @param kept what it goes on from; left out: nothing */
  constructor(kept?: KeptRounds) {
    this.attempts = kept?.attempts ?? 0
    this.commands = kept?.commands ?? 0
    this.tokensByKind = kept?.tokensByKind ?? { input: 0, cachedInput: 0, output: 0, reasoning: 0, total: 0 }
    this.#sums = { ...(kept?.sums ?? { durationMs: 0, tokens: 0, failed: 0 }) }
    this.#rows = new FirstAndLast(MOST_ROUNDS, row => this.#leaveOut(row), kept?.rows)
    this.#series = new RoundSeries(kept?.series)
    this.#row = this.#rows.newest
  }

  /** The round that came last; null: none has. */
  get newest(): Readonly<ReportRound> | null {
    return this.#row
  }

  /** All that it has collected, as data. */
  kept() {
    const { attempts, commands, tokensByKind } = this
    const [sums, rows, series] = [this.#sums, this.#rows.kept(), this.#series.kept()] as const
    return { attempts, commands, tokensByKind, sums, rows, series }
  }

  /** @param after the session after the event */
  add(event: Recorded, after: SessionState): void {
    switch (event.type) {
      case 'round-started': {
        const { part = null } = event
        const { free: isFree } = partOf(after.kind, part)
        // A round that only looks is no attempt at the work.
        if (!isFree) this.attempts += 1
        this.#row = {
          round: event.round,
          startedAt: event.at,
          agent: clipEnd(event.agent, 100),
          engine: clipEnd(event.engine, 100),
          provider: event.provider === undefined ? null : clipEnd(event.provider, 100),
          model: event.model === null ? null : clipEnd(event.model, 300),
          part,
          purpose: part === null ? null : wordsForPart(after, part),
          isFree,
          changesPlan: after.running?.replan != null,
          durationMs: 0,
          tokens: null,
          files: 0,
          outcome: null,
          message: null,
          counts: false,
          claim: null,
          tasks: null,
        }
        this.#rows.add(this.#row)
        break
      }
      case 'item-completed':
        if (event.item.kind === 'command') this.commands += 1
        this.#extendTo(event.at)
        break
      case 'usage':
        this.#extendTo(event.at)
        break
      case 'round-ended':
        this.#endRound(event, after)
        break
      case 'plan-ready':
      case 'task-judged':
      case 'tasks-judged':
        this.#correctTasks(after)
        break
      case 'review-ended':
        this.#count(event.tokens)
        break
      case 'done-refused':
        if (this.#row !== null) this.#row.claim = 'refused'
        break
      case 'done-accepted':
        if (this.#row !== null) this.#row.claim = 'accepted'
        break
      default:
        break
    }
  }

  /** Corrects the tasks of the last round once codemachine has judged them: at the round's end they are a claim. */
  #correctTasks({ taskPlan }: SessionState): void {
    if (taskPlan === null || this.#row === null || this.#row.outcome === null) return
    const tasks = taskCounts(taskPlan)
    this.#row.tasks = tasks
    this.#series.amend({ tasks })
  }

  /** Adds to the last round how far the files differ from the start after it. */
  afterRound({ changed: { files, added, removed } }: { changed: TreeChanges }): void {
    this.#series.amend({ changed: { files, added, removed } })
  }

  result(): Pick<ReportData, 'rounds' | 'series'> {
    return { rounds: { ...this.#rows.shortened(), leftOutSums: { ...this.#sums } }, series: this.#series.points() }
  }

  /** A round that has not ended has lasted until its last event. */
  #extendTo(at: string): void {
    if (this.#row?.outcome === null)
      this.#row.durationMs = Math.max(0, Date.parse(at) - Date.parse(this.#row.startedAt))
  }

  #endRound(event: RecordedOf<'round-ended'>, { taskPlan }: SessionState): void {
    const { round, outcome, durationMs, tokens, changedCount, counts } = event
    // Of a plan that is no more than a claim, which is judged after it.
    const { tasks: said } = event
    const tasks =
      taskPlan !== null ? taskCounts(taskPlan) : said === undefined ? null : { done: said.done, total: said.total }
    this.#count(tokens)
    if (this.#row !== null) {
      const message = outcome.message === null ? null : clipEnd(outcome.message, MESSAGE_CHARS)
      const files = changedCount
      Object.assign(this.#row, { durationMs, tokens: tokens?.total ?? null, files, counts, tasks, message })
      this.#row.outcome = outcome.class
      if (outcome.status !== undefined) this.#row.status = outcome.status
    }
    const sums = { durationMs, tokens: tokens?.total ?? 0, files: changedCount }
    const end = CHART_CLASS[outcome.class]
    this.#series.add({
      isFree: this.#row !== null && (this.#row.isFree || this.#row.changesPlan),
      from: round,
      to: round,
      rounds: 1,
      ...sums,
      failed: end === 'failed' ? 1 : 0,
      limited: end === 'limited' ? 1 : 0,
      ofFailed: end === 'failed' ? sums : NOTHING,
      ofLimited: end === 'limited' ? sums : NOTHING,
      tasks,
      changed: null,
    })
  }

  #leaveOut({ durationMs, tokens, outcome }: ReportRound): void {
    this.#sums.durationMs += durationMs
    this.#sums.tokens += tokens ?? 0
    this.#sums.failed += outcome === 'worked' ? 0 : 1
  }

  #count(tokens: TokenCounts | null): void {
    if (tokens === null) return
    const sum = this.tokensByKind
    this.tokensByKind = {
      input: sum.input + tokens.input,
      cachedInput: sum.cachedInput + tokens.cachedInput,
      output: sum.output + tokens.output,
      reasoning: sum.reasoning + tokens.reasoning,
      total: sum.total + tokens.total,
    }
  }
}

/** How many tasks of a plan are done; null as long as it has none. */
function taskCounts({ tasks }: TaskPlan): ReportRound['tasks'] {
  return tasks.length === 0 ? null : { done: tasks.filter(({ done }) => done).length, total: tasks.length }
}

/** What a `FirstAndLast` holds. */
export interface KeptList<T> {
  first: readonly T[]
  last: readonly T[]
  leftOut: number
}

/** A list that keeps its first and its last entries, and counts those between them. */
export class FirstAndLast<T> {
  readonly #first: T[]
  readonly #last: T[]
  readonly #most: { first: number; last: number }
  readonly #onLeftOut: (entry: T) => void
  #leftOut: number

  /** @param kept what it goes on from */
  constructor(
    most: { first: number; last: number },
    onLeftOut: (entry: T) => void = () => {},
    { first, last, leftOut }: KeptList<T> = { first: [], last: [], leftOut: 0 },
  ) {
    this.#most = most
    this.#onLeftOut = onLeftOut
    this.#first = [...first]
    this.#last = [...last]
    this.#leftOut = leftOut
  }

  /** The entry that was added last; null before the first one, and where no last ones are kept. */
  get newest(): T | null {
    return this.#last.at(-1) ?? this.#first.at(-1) ?? null
  }

  kept(): KeptList<T> {
    return { first: this.#first, last: this.#last, leftOut: this.#leftOut }
  }

  add(entry: T): void {
    if (this.#first.length < this.#most.first) {
      this.#first.push(entry)
      return
    }
    this.#last.push(entry)
    if (this.#last.length <= this.#most.last) return
    const dropped = this.#last.shift()
    this.#leftOut += 1
    if (dropped !== undefined) this.#onLeftOut(dropped)
  }

  /** Puts others in the place of those entries that are kept, where `by` returns one. */
  replace(by: (entry: T) => T): void {
    for (const entries of [this.#first, this.#last])
      for (const [at, entry] of entries.entries()) entries[at] = by(entry)
  }

  shortened(): Shortened<T> {
    const entries = [...this.#first, ...this.#last]
    return {
      entries,
      count: entries.length + this.#leftOut,
      leftOut: this.#leftOut,
      leftOutAfter: this.#leftOut === 0 ? 0 : this.#first.length,
    }
  }
}

const MOST_POINTS = 120

/** The rounds as at most 120 points for the charts: with more rounds a point is the sum of 2, 4, 8 … of them. */
class RoundSeries {
  #points: ReportPoint[]
  #roundsPerPoint: number

  /** @param kept what it goes on from */
  constructor({ points, roundsPerPoint }: ReturnType<RoundSeries['kept']> = { points: [], roundsPerPoint: 1 }) {
    this.#points = [...points]
    this.#roundsPerPoint = roundsPerPoint
  }

  kept(): { points: readonly ReportPoint[]; roundsPerPoint: number } {
    return { points: this.#points, roundsPerPoint: this.#roundsPerPoint }
  }

  /** One more round. */
  add(round: ReportPoint): void {
    const last = this.#points.at(-1)
    if (last !== undefined && last.rounds < this.#roundsPerPoint) {
      this.#points[this.#points.length - 1] = mergedPoints(last, round)
      return
    }
    if (this.#points.length === MOST_POINTS) {
      this.#roundsPerPoint *= 2
      this.#points = inPairs(this.#points)
    }
    this.#points.push(round)
  }

  /** Adds to the last point what became known after its last round. */
  amend(facts: Partial<Pick<ReportPoint, 'changed' | 'tasks'>>): void {
    const last = this.#points.at(-1)
    if (last !== undefined) this.#points[this.#points.length - 1] = { ...last, ...facts }
  }

  points(): ReportPoint[] {
    return [...this.#points]
  }
}

function inPairs(points: readonly ReportPoint[]): ReportPoint[] {
  const pairs: ReportPoint[] = []
  for (let at = 0; at < points.length; at += 2) {
    const [first, second] = [points[at], points[at + 1]]
    if (first !== undefined) pairs.push(second === undefined ? first : mergedPoints(first, second))
  }
  return pairs
}

function mergedPoints(a: ReportPoint, b: ReportPoint): ReportPoint {
  return {
    isFree: a.isFree && b.isFree,
    from: a.from,
    to: b.to,
    rounds: a.rounds + b.rounds,
    durationMs: a.durationMs + b.durationMs,
    tokens: a.tokens + b.tokens,
    files: a.files + b.files,
    failed: a.failed + b.failed,
    limited: a.limited + b.limited,
    ofFailed: sumOf(a.ofFailed, b.ofFailed),
    ofLimited: sumOf(a.ofLimited, b.ofLimited),
    tasks: b.tasks ?? a.tasks,
    changed: b.changed ?? a.changed,
  }
}

function sumOf(a: PointSums, b: PointSums): PointSums {
  return { durationMs: a.durationMs + b.durationMs, tokens: a.tokens + b.tokens, files: a.files + b.files }
}
