import { clipEnd } from '../base/clip.ts'
import type { BuildState } from '../session/build-state.ts'
import type { Recorded, RecordedOf } from '../session/events.ts'
import type { RoundClass } from '../session/outcome.ts'
import type { SessionState } from '../session/state.ts'
import type { TokenCounts } from '../session/token-counts.ts'
import type { TreeChanges } from '../workspace/tree-changes.ts'
import { FirstAndLast } from './first-and-last.ts'
import type { PointSums, ReportData, ReportRound } from './report-data.ts'
import { RoundSeries } from './round-series.ts'

const MESSAGE_CHARS = 500
/** What a round's end says of it: what waiting mends is no failure. */
const HOW_IT_WENT: Readonly<Record<RoundClass, 'worked' | 'limited' | 'failed'>> = {
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

/** What a report says of the rounds: a table of the first and the last ones, and a series of all of them. */
export class RoundsSoFar {
  attempts = 0
  commands = 0
  tokensByKind: TokenCounts = { input: 0, cachedInput: 0, output: 0, reasoning: 0, total: 0 }
  readonly #sums = { durationMs: 0, tokens: 0, failed: 0 }
  readonly #rows = new FirstAndLast<ReportRound>(MOST_ROUNDS, ({ durationMs, tokens, outcome }) => {
    this.#sums.durationMs += durationMs
    this.#sums.tokens += tokens ?? 0
    this.#sums.failed += outcome === 'worked' ? 0 : 1
  })
  readonly #series = new RoundSeries()
  #row: ReportRound | null = null

  /** @param after the session after the event */
  add(event: Recorded, after: SessionState): void {
    switch (event.type) {
      case 'round-started':
        // A summary is no attempt at the work.
        if (event.part !== 'summary') this.attempts += 1
        this.#row = {
          round: event.round,
          startedAt: event.at,
          agent: clipEnd(event.agent, 100),
          part: event.part ?? null,
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
      case 'item-completed':
        if (event.item.kind === 'command') this.commands += 1
        this.#lasts(event.at)
        break
      case 'usage':
        this.#lasts(event.at)
        break
      case 'round-ended':
        this.#endRound(event, after)
        break
      case 'plan-ready':
      case 'task-judged':
      case 'tasks-judged':
        this.#believe(after)
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

  /** How the tasks of a build stand after the round that ended last, as codemachine believes it. */
  #believe({ build }: SessionState): void {
    if (build === null || this.#row === null || this.#row.outcome === null) return
    const tasks = believed(build)
    this.#row.tasks = tasks
    this.#series.amend({ tasks })
  }

  /** What is known of the round that ended last. */
  afterRound({ changed: { files, added, removed } }: { changed: TreeChanges }): void {
    this.#series.amend({ changed: { files, added, removed } })
  }

  result(): Pick<ReportData, 'rounds' | 'series'> {
    return { rounds: { ...this.#rows.shortened(), leftOutSums: { ...this.#sums } }, series: this.#series.points() }
  }

  /** As long as a round has not ended, it has lasted until the last that is known of it. */
  #lasts(at: string): void {
    if (this.#row?.outcome === null)
      this.#row.durationMs = Math.max(0, Date.parse(at) - Date.parse(this.#row.startedAt))
  }

  #endRound(event: RecordedOf<'round-ended'>, { build }: SessionState): void {
    const { round, outcome, durationMs, tokens, changedCount, counts } = event
    // Of a build that is no more than a claim, which is judged after it.
    const { tasks: said } = event
    const tasks = build !== null ? believed(build) : said === undefined ? null : { done: said.done, total: said.total }
    this.#count(tokens)
    if (this.#row !== null) {
      const message = outcome.message === null ? null : clipEnd(outcome.message, MESSAGE_CHARS)
      const files = changedCount
      Object.assign(this.#row, { durationMs, tokens: tokens?.total ?? null, files, counts, tasks, message })
      this.#row.outcome = outcome.class
    }
    const sums = { durationMs, tokens: tokens?.total ?? 0, files: changedCount }
    const end = HOW_IT_WENT[outcome.class]
    this.#series.add({
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

/** How many tasks of a build are done; null as long as it has none. */
function believed({ tasks }: BuildState): ReportRound['tasks'] {
  return tasks.length === 0 ? null : { done: tasks.filter(({ done }) => done).length, total: tasks.length }
}
