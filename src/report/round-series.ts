import type { PointSums, ReportPoint } from './report-data.ts'

const MOST_POINTS = 120

/** The rounds of a session as so many points that a chart can show them: with more rounds a point stands for several. */
export class RoundSeries {
  #points: ReportPoint[] = []
  #roundsPerPoint = 1

  /** One more round. */
  add(round: ReportPoint): void {
    const last = this.#points.at(-1)
    if (last !== undefined && last.rounds < this.#roundsPerPoint) {
      this.#points[this.#points.length - 1] = joined(last, round)
      return
    }
    if (this.#points.length === MOST_POINTS) {
      this.#roundsPerPoint *= 2
      this.#points = inPairs(this.#points)
    }
    this.#points.push(round)
  }

  /** What is known of the last round once it has ended. */
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
    if (first !== undefined) pairs.push(second === undefined ? first : joined(first, second))
  }
  return pairs
}

function joined(a: ReportPoint, b: ReportPoint): ReportPoint {
  return {
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
