import type { GateRun, SessionState } from '../session/state.ts'

/** What the proof of a session's work stands on. Times are ISO 8601 in UTC. */
export interface ProofReport {
  /** What codemachine checks between two rounds just now; null if it does not. */
  checking: { kind: 'gate'; gate: string; since: string } | { kind: 'review'; review: number; since: string } | null
  /** What has to pass before done, and how each came out the last time; `round`: after which that was, 0 before the first. */
  gates: readonly { name: string; run: string; required: boolean; last: GateReport | null }[]
  /** `answered`: how many reviews gave an answer; the rest is of the last of them: the tree that it agreed to, and what it found; `repeated`: found before, and left to the person. */
  reviews: { answered: number; agreedTo: string | null; findings: number; repeated: number }
  /** The savepoint made last; `round` 0: what the session began with. */
  savepoint: { round: number; commit: string } | null
  /** How many questions were noted for the person. */
  questions: number
}

type GateReport = Omit<GateRun, 'gate'>

/** That of a session; `isRunning`: whether somebody runs it. Pure. */
export function proofReport(state: SessionState, isRunning: boolean): ProofReport {
  const { checking, gates, reviews, savepoint, questions } = state
  return {
    checking: checking === null || !isRunning ? null : withTime(checking),
    gates: gates.map(({ name, run, required }) => ({ name, run, required, last: lastOf(name, state) })),
    reviews: {
      answered: reviews.answered,
      agreedTo: reviews.agreedTo,
      findings: reviews.last?.findings.length ?? 0,
      repeated: reviews.repeated.length,
    },
    savepoint: savepoint && { round: savepoint.round, commit: savepoint.commit },
    questions,
  }
}

function withTime(check: NonNullable<SessionState['checking']>): NonNullable<ProofReport['checking']> {
  const since = new Date(check.since).toISOString()
  return check.kind === 'gate'
    ? { kind: check.kind, gate: check.gate, since }
    : { kind: check.kind, review: check.review, since }
}

function lastOf(name: string, { gateRuns }: SessionState): GateReport | null {
  const run = gateRuns.find(({ gate }) => gate === name)
  if (run === undefined) return null
  const { gate: _, ...rest } = run
  return rest
}
