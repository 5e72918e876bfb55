import { endWithFailures } from '../../base/failure-lines.ts'
import { clipEnd } from '../../base/text.ts'
import type { Recorded, RecordedOf } from '../../core/events/events.ts'
import { type Gate, hasPassed, type SessionOutcome } from '../../core/events/outcome.ts'
import { wordsForDoubts } from '../../core/rules/proof/counter-proof.ts'
import { type Finding, findingKey } from '../../core/rules/review.ts'
import type { Claim } from '../../core/state/state.ts'
import { FirstAndLast, type KeptList } from './fold-rounds.ts'
import type { ProtectedFile, ReportGate, ReportGateRun, ReportProof, ReportReview, Shortened } from './report-data.ts'

const NAME_CHARS = 500
const TEXT_CHARS = 1000
const OUTPUT_CHARS = 2000
/** Of a gate that passed. */
const PASSED_OUTPUT_CHARS = 1000
const MOST_GATES = 100
const MOST_FINDINGS = 50
const MOST_FILES = 50

/** What `ProofSoFar` has collected, as data. */
interface KeptProof {
  gates: readonly (readonly [string, ReportGate])[]
  gateRuns: KeptList<ReportGateRun>
  reviews: KeptList<ReportReview>
  protected: readonly (readonly [string, ProtectedFile])[]
  protectedCount: number
  causes: readonly string[]
  findings: readonly Finding[]
  repeated: readonly string[]
  agreedTo: string | null
  settingsChangedIn: number | null
  whyNothing: string | null
  configuration: ReportProof['configuration']
  counterProofs: ReportProof['counterProofs']
}

/** Collects from a session's events what its report says of gates, reviews, and protected files. */
export class ProofSoFar {
  readonly #gates: Map<string, ReportGate>
  readonly #gateRuns: FirstAndLast<ReportGateRun>
  readonly #reviews: FirstAndLast<ReportReview>
  readonly #protected: Map<string, ProtectedFile>
  #protectedCount: number
  #causes: readonly string[]
  #findings: readonly Finding[]
  #repeated: ReadonlySet<string>
  #agreedTo: string | null
  #settingsChangedIn: number | null
  #whyNothing: string | null
  #configuration: ReportProof['configuration']
  #counterProofs: ReportProof['counterProofs']

  /** @param kept what it goes on from; left out: nothing */
  constructor(kept?: KeptProof) {
    this.#gates = new Map(kept?.gates)
    this.#gateRuns = new FirstAndLast({ first: 50, last: 150 }, undefined, kept?.gateRuns)
    this.#reviews = new FirstAndLast({ first: 10, last: 20 }, undefined, kept?.reviews)
    this.#protected = new Map(kept?.protected)
    this.#protectedCount = kept?.protectedCount ?? 0
    this.#causes = kept?.causes ?? []
    this.#findings = kept?.findings ?? []
    this.#repeated = new Set(kept?.repeated)
    this.#agreedTo = kept?.agreedTo ?? null
    this.#settingsChangedIn = kept?.settingsChangedIn ?? null
    this.#whyNothing = kept?.whyNothing ?? null
    this.#configuration = kept?.configuration ?? { files: [], count: 0 }
    this.#counterProofs = kept?.counterProofs ?? []
  }

  /** All that it has collected, as data. */
  kept(): KeptProof {
    return {
      gates: [...this.#gates],
      gateRuns: this.#gateRuns.kept(),
      reviews: this.#reviews.kept(),
      protected: [...this.#protected],
      protectedCount: this.#protectedCount,
      causes: this.#causes,
      findings: this.#findings,
      repeated: [...this.#repeated],
      agreedTo: this.#agreedTo,
      settingsChangedIn: this.#settingsChangedIn,
      whyNothing: this.#whyNothing,
      configuration: this.#configuration,
      counterProofs: this.#counterProofs,
    }
  }

  add(event: Recorded): void {
    if (event.type === 'gate-ended') this.#addGateRun(event)
    // What proves a part of the session proves nothing of the whole.
    if ('scope' in event) return
    switch (event.type) {
      case 'session-created':
      case 'session-resumed':
        this.#configure(event.gates ?? [], false)
        break
      case 'gates-added':
        this.#replaceAdded(event.gates)
        break
      case 'done-nominated':
        this.#whyNothing = event.whyNothing === undefined ? null : clipEnd(event.whyNothing, TEXT_CHARS)
        break
      case 'gate-ended':
        this.#endGate(event)
        break
      case 'review-started':
        this.#causes = event.causes
        break
      case 'review-ended':
        this.#endReview(event)
        break
      case 'settings-changed':
        this.#settingsChangedIn ??= event.round
        break
      case 'gate-configuration':
        this.#configuration = {
          files: event.files.slice(0, MOST_FILES).map(({ path, how }) => ({ path: clipEnd(path, NAME_CHARS), how })),
          count: event.count,
        }
        break
      case 'counter-proof':
        this.#counterProofs = [
          ...this.#counterProofs.filter(({ gate }) => gate !== clipEnd(event.gate, NAME_CHARS)),
          shortCounterProof(event),
        ].slice(-MOST_GATES)
        break
      case 'protected-changed':
        this.#changeProtected(event)
        break
      default:
        break
    }
  }

  /** @param isPutBack whether a path is at the end what it was at the start, as far as that is known */
  result(
    claim: Claim,
    outcome: SessionOutcome | null,
    isPutBack: (path: string) => boolean,
  ): Omit<ReportProof, 'would'> {
    const isDone = outcome?.kind === 'done'
    const gates = [...this.#gates.values()]
    const tree = claim.state === 'accepted' ? claim.tree : null
    return {
      claim: claim.state,
      verified: isDone ? outcome.verified : claim.state === 'accepted' && claim.verified,
      tree,
      gates: gates.map(gate => ({ ...gate })),
      reviews: this.#reviews.shortened(),
      findings: this.#findings.slice(0, MOST_FINDINGS).map(finding => ({
        ...finding,
        file: finding.file === null ? null : clipEnd(finding.file, NAME_CHARS),
        problem: clipEnd(finding.problem, TEXT_CHARS),
        mend: clipEnd(finding.mend, TEXT_CHARS),
        repeated: this.#repeated.has(findingKey(finding)),
      })),
      findingsCount: this.#findings.length,
      reviewed: tree !== null && tree === this.#agreedTo,
      protected: gates.some(({ protect }) => protect.length > 0),
      settingsChangedIn: this.#settingsChangedIn,
      whyNothing: claim.state === 'accepted' ? this.#whyNothing : null,
      configuration: this.#configuration,
      counterProofs: this.#counterProofs,
      protectedFiles: [...this.#protected.values()].map(file => ({ ...file, putBack: isPutBack(file.path) })),
      protectedCount: Math.max(this.#protectedCount, this.#protected.size),
    }
  }

  /** Each time that a gate ran to its end. */
  gateRuns(): Shortened<ReportGateRun> {
    return this.#gateRuns.shortened()
  }

  #addGateRun({ at, round, gate, when, status, durationMs }: RecordedOf<'gate-ended'>): void {
    if (status === 'broken-off') return
    const from = new Date(Math.max(0, Date.parse(at) - durationMs)).toISOString()
    this.#gateRuns.add({ gate: clipEnd(gate, NAME_CHARS), when, round, from, to: at, status })
  }

  /** These are all that the template has added; what a gate of the person runs is not added. */
  #replaceAdded(wanted: readonly Gate[]): void {
    const before = [...this.#gates.values()]
    const added = wanted.filter(({ run }) => !before.some(gate => !gate.added && gate.run === clipEnd(run, NAME_CHARS)))
    for (const { name } of before.filter(gate => gate.added && !added.some(({ run }) => run === gate.run))) {
      this.#gates.delete(name)
    }
    this.#configure(added, true)
  }

  /** A session that goes on may have other gates. */
  #configure(gates: readonly Gate[], areAdded: boolean): void {
    for (const { name, run, required, network, protect } of gates.slice(0, MOST_GATES)) {
      const { added: _, ...known } = this.#gates.get(name) ?? unknownGate(name)
      this.#gates.set(name, {
        ...known,
        run: clipEnd(run, NAME_CHARS),
        required,
        network,
        ...(areAdded ? { added: true } : {}),
        protect: protect.slice(0, 20).map(glob => clipEnd(glob, NAME_CHARS)),
      })
    }
  }

  #endGate({ when, round, ...result }: RecordedOf<'gate-ended'>): void {
    const { gate: name, status, exitCode, durationMs, changed } = result
    if (status === 'broken-off' || (!this.#gates.has(name) && this.#gates.size >= MOST_GATES)) return
    const gate = this.#gates.get(name) ?? unknownGate(name)
    const problem = result.problem === null ? null : clipEnd(result.problem, TEXT_CHARS)
    const facts = { status, exitCode, durationMs, problem }
    const paths = [...new Set([...gate.changed, ...changed.map(path => clipEnd(path, NAME_CHARS))])]
    const most = status === 'passed' ? PASSED_OUTPUT_CHARS : OUTPUT_CHARS
    const output =
      status === 'passed' ? result.output.slice(-most).toWellFormed() : endWithFailures(result.output, most)
    this.#gates.set(name, {
      ...gate,
      ...(when === 'before' ? { before: facts } : { last: { ...facts, when, round, output } }),
      runs: gate.runs + 1,
      flaky: gate.flaky + (status === 'flaky' ? 1 : 0),
      failed: gate.failed + (hasPassed(status) ? 0 : 1),
      changed: paths.slice(0, MOST_FILES),
      changedCount: Math.max(gate.changedCount, result.changedCount, paths.length),
    })
  }

  #endReview({ at, round, review, answer, repeated, durationMs, tokens, tree }: RecordedOf<'review-ended'>): void {
    this.#reviews.add({
      review,
      round,
      at,
      causes: this.#causes.slice(0, 5),
      verdict: answer?.verdict ?? null,
      summary: clipEnd(answer?.summary ?? '', TEXT_CHARS),
      findings: answer?.findings.length ?? 0,
      repeated: repeated.length,
      durationMs,
      tokens: tokens?.total ?? 0,
    })
    if (answer === null) return
    this.#agreedTo = answer.verdict === 'agreed' ? tree : null
    this.#findings = answer.verdict === 'agreed' ? [] : answer.findings
    this.#repeated = new Set(repeated.map(findingKey))
  }

  #changeProtected({ round, files, count }: RecordedOf<'protected-changed'>): void {
    for (const { path, how } of files) {
      this.#protected.delete(path)
      this.#protected.set(path, { path: clipEnd(path, NAME_CHARS), how, round })
      const [oldest] = this.#protected.keys()
      if (this.#protected.size > MOST_FILES && oldest !== undefined) this.#protected.delete(oldest)
    }
    this.#protectedCount = Math.max(this.#protectedCount, count)
  }
}

function shortCounterProof(proof: RecordedOf<'counter-proof'>): ReportProof['counterProofs'][number] {
  const { gate, result, problem, made, madeCount, isSmallest } = proof
  return {
    gate: clipEnd(gate, NAME_CHARS),
    result,
    problem: problem === null ? null : clipEnd(problem, TEXT_CHARS),
    made: made.slice(0, MOST_FILES).map(path => clipEnd(path, NAME_CHARS)),
    madeCount,
    isSmallest,
    doubts: wordsForDoubts(proof, MOST_NAMED).map(text => clipEnd(text, TEXT_CHARS)),
  }
}

/** Of the files of one doubt. */
const MOST_NAMED = 5

function unknownGate(name: string): ReportGate {
  return {
    name: clipEnd(name, NAME_CHARS),
    run: null,
    required: false,
    network: false,
    protect: [],
    before: null,
    last: null,
    runs: 0,
    flaky: 0,
    failed: 0,
    changed: [],
    changedCount: 0,
  }
}
