import { isDiskFull } from '../../base/errors.ts'
import type { EventOf } from '../../core/events/events.ts'
import { type Gate, type GateResult, type GateTime, hasPassed } from '../../core/events/outcome.ts'
import { PROJECT_FILE } from '../../core/rules/notices.ts'
import { failedTestsOf } from '../../core/rules/proof/test-counts.ts'
import { failureOn, markFlaky } from '../../core/state/fold-claim.ts'
import { agreedBefore, inScope, withoutScope } from '../../core/state/scope.ts'
import type { EndedRound, SessionState } from '../../core/state/state.ts'
import { GitStopped } from '../../workspace/git/git.ts'
import type { Budget } from '../budget.ts'
import type { ProofEnvironment, RepositoryGuard, RunnerOptions } from '../options.ts'
import type { SessionLog } from '../session-log.ts'

type ProofOptions = Pick<RunnerOptions, 'log' | 'workTree' | 'guard' | 'asked' | 'means'>

const END_UNKEPT = 'Changes since the last savepoint are not saved: git failed, or there was no time left.'
const LAST_UNKEPT = 'The changes of the last rounds are not saved: git failed twice, see the warnings before.'
const unkeptSentence = (round: number) =>
  `Round ${round} has no savepoint: it could not be made after the round, and git cannot make it now.`
const NOT_RUN_AT_LIMIT = 'Not all gates ran again at the limit: git could not read all files in the remaining time.'
const UNKEPT =
  'codemachine could not save the files from the start of the session. It cannot restore them, and treats protected files as changed.'

/** Returns the tree to compare protected files with; null if unknown. */
export function protectedSince({ protectFrom, savepoint, scope }: SessionState): string | null {
  return scope?.since ?? protectFrom ?? savepoint?.start ?? null
}

/** True if a gate protects any file. */
function protects({ gates }: Pick<SessionState, 'gates'>): boolean {
  return gates.some(({ protect }) => protect.length > 0)
}

/** True if the gates' configuration is watched: a gate protects files, or passed at the start (no counter-proof). */
function isLookedAt({ gates, before }: Pick<SessionState, 'gates' | 'before'>): boolean {
  return protects({ gates }) || before.some(({ status }) => hasPassed(status))
}

/** True if the configuration is watched, or a later gate may require that. */
function mayBeLookedAt(state: Pick<SessionState, 'gates' | 'before' | 'kind'>): boolean {
  return isLookedAt(state) || state.kind?.addsGates === true
}

/** Guaranteed time of the search for the change that made a gate pass, ms. */
const LEAST_SEARCH_MS = 20_000

/** Returns the tree at the start of the session's work, or of its scope; null if it is not kept. */
function startOf({ scope, savepoint }: SessionState): string | null {
  return scope?.tree ?? savepoint?.start ?? null
}

/** Returns if a gate has failed in this session; null: it has not ended before this claim. */
function hasFailedEarlier({ before, gateFailures }: SessionState, name: string): boolean | null {
  if (gateFailures.some(({ gate }) => gate === name)) return true
  const first = before.find(({ gate }) => gate === name)
  return first === undefined || first.status === 'not-started' ? null : !hasPassed(first.status)
}

/** Returns the number of failed tests in the output of a passed gate; of a flaky gate, in its failed run. */
function failedTests(result: GateResult | undefined): { failed?: number } {
  const failed = result?.status === 'passed' ? failedTestsOf(result.output) : 0
  return failed === 0 ? {} : { failed }
}

/** Keeps savepoints and runs gates, before the first round and after each one. */
export class Proof {
  readonly #options: ProofOptions
  readonly #budget: Budget
  readonly #log: SessionLog
  #hasToldOfProject = false
  /** True if the savepoint of the session's start failed. */
  #isUnkept = false
  /** True if the savepoint of the last round failed. */
  #isLastUnkept = false
  #saving: Promise<unknown> = Promise.resolve()
  #breakingOff = new AbortController()

  constructor(options: ProofOptions, budget: Budget) {
    this.#options = options
    this.#budget = budget
    this.#log = options.log
  }

  /** True once the first savepoint is kept and all gates before round 1 and all added gates have run. */
  get hasBegun(): boolean {
    if (this.#options.means === null) return true
    const { savepoint, last, gateConfiguration } = withoutScope(this.#log.state)
    if (last !== null) return this.#due.length === 0
    const hasLooked = gateConfiguration !== null || !mayBeLookedAt(withoutScope(this.#log.state))
    return (savepoint !== null || this.#isUnkept) && this.#due.length === 0 && hasLooked
  }

  /** Saves the start of the session, and runs the gates before round 1. Resolves with the fingerprint afterwards. */
  async begin(tree: string): Promise<string> {
    const { state } = this.#log
    const isKept = state.savepoint !== null || this.#isUnkept || state.last !== null
    const { workTree } = this.#options
    if (!isKept && !(await this.#budget.bounded(signal => this.#save(0, tree, signal)))) {
      // Borrowed git objects may be broken, so read the files again.
      const again = await workTree.take()
      this.#isUnkept = !(await this.#budget.bounded(signal => this.#save(0, again, signal)))
      if (this.#isUnkept) this.#log.emit({ type: 'warning', round: null, message: UNKEPT })
      return again
    }
    if (!isKept) await this.#tellProtected(0, state.protectFrom ?? tree, tree, withoutScope(state))
    await this.#tellAdded(tree)
    const { tree: after } = await this.run(this.#due, 'before', tree)
    // The gates have installed their programs by now.
    const now = withoutScope(this.#log.state)
    if (this.#due.length > 0 || !mayBeLookedAt(now)) return after
    const isFirst = now.gateConfiguration === null && now.last === null
    await this.#lookAt(after, now, isFirst ? await this.#means.programs() : undefined)
    return after
  }

  /** Saves the trees of rounds that had no savepoint at an interrupt; warns for each that it cannot save. */
  async keepLate(): Promise<void> {
    const { means, workTree } = this.#options
    if (means === null) return
    for (const { round, tree } of this.#log.state.unkept) {
      const save = () => this.#budget.bounded(signal => this.#save(round, tree, signal))
      if (await save()) continue
      // Read the files again after git failed, if they are still the same.
      const isKept = (await workTree.take()) === tree && (await save())
      if (!isKept) this.#log.emit({ type: 'warning', round, message: unkeptSentence(round) })
    }
  }

  /** Starts the round's savepoint, and journals its changes of protected files and project settings. */
  async afterRound(round: EndedRound): Promise<void> {
    if (this.#options.means === null) return
    await this.#saving
    this.#saving = this.#save(round.round, round.treeAfter).then(isKept => {
      this.#isLastUnkept = !isKept
    })
    this.#saving.catch(() => {})
    if (round.treeBefore !== round.treeAfter) await this.#lookAtProtected(round)
    // Without protected files, a check at the claim is enough: the check walks through all packages.
    for (const of of this.#sides) if (protects(of)) await this.#lookAt(round.treeAfter, of)
  }

  /** Runs the gates for every round. Resolves with the fingerprint afterwards. */
  async runEachRound(tree: string): Promise<string> {
    const { gates } = this.#log.state
    const { tree: after } = await this.run(
      gates.filter(({ everyRound }) => everyRound),
      'after-round',
      tree,
    )
    return after
  }

  /**
   * Runs the gates that have not run since the last round when a limit ends the session. They show the state of the work,
   * and together get the time of one gate.
   */
  async atLimit(): Promise<void> {
    const { gates, gateRuns, last, replayed } = withoutScope(this.#log.state)
    if (this.#options.means === null || last === null || replayed) return
    await this.#saving
    const due = gates.filter(({ name }) => !gateRuns.some(({ gate, round }) => gate === name && round === last.round))
    if (due.length === 0) return
    const ran = await unlessStopped(async () => await this.run(due, 'limit', await this.#options.workTree.take()))
    if (ran === null) this.#log.emit({ type: 'warning', round: last.round, message: NOT_RUN_AT_LIMIT })
  }

  /** Runs gates one at a time; `isComplete` is false if a person interrupted them. */
  async run(gates: readonly Gate[], when: GateTime, tree: string): Promise<{ tree: string; isComplete: boolean }> {
    const { asked, workTree, guard } = this.#options
    if (gates.length === 0) return { tree, isComplete: true }
    const means = this.#means
    this.#breakingOff = new AbortController()
    const signal = AbortSignal.any([asked.ending, this.#breakingOff.signal])
    let after = tree
    let isComplete = true
    let leftMs = when === 'limit' ? this.#budget.leastMs : Number.POSITIVE_INFINITY
    for (const gate of gates) {
      if (signal.aborted || asked.endedBy !== null || leftMs <= 0) {
        isComplete = false
        break
      }
      const round = this.#log.state.last?.round ?? 0
      // At these moments the session's own gates run, even inside of a scope.
      const side = when === 'before' || when === 'limit' ? withoutScope(this.#log.state) : this.#log.state
      const of = inScope(side)
      this.#log.emit({ type: 'gate-started', round, when, gate: gate.name, ...of })
      const timeoutMs = Math.min(gate.timeoutMs, this.#budget.leastMs, leftMs)
      const { treeAfter, ...ran } = await means.runGate(
        { ...gate, timeoutMs },
        {
          when,
          workTree,
          tree: after,
          start: startOf(side),
          signal,
          hasFailedHere: failureOn(after, gate, side.gateFailures) !== undefined,
          hasPassedAtStart: side.before.some(({ gate: name, status }) => name === gate.name && hasPassed(status)),
        },
      )
      const result = markFlaky(ran, gate, side.gateFailures)
      after = treeAfter
      this.#log.emit({ type: 'gate-ended', round, when, ...result, treeAfter, ...of })
      isComplete = result.status !== 'broken-off'
      leftMs -= result.durationMs
    }
    emitRestored(this.#log, await guard.check())
    return { tree: after, isComplete: isComplete && !signal.aborted }
  }

  /** Runs a required gate that passed for the claim without the work; false if a person interrupted it. */
  async counterProve(gate: Gate, tree: string): Promise<boolean> {
    const { asked } = this.#options
    const { state } = this.#log
    const round = state.last?.round ?? 0
    const result =
      state.claim.state === 'nominated' ? state.claim.results.find(each => each.gate === gate.name) : undefined
    this.#breakingOff = new AbortController()
    this.#log.emit({ type: 'gate-started', round, when: 'counter-proof', gate: gate.name, ...inScope(state) })
    const proof = await this.#means.counterProof(
      { ...gate, timeoutMs: Math.min(gate.timeoutMs, this.#budget.leastMs) },
      {
        start: startOf(state),
        tree,
        failedBefore: hasFailedEarlier(state, gate.name),
        ofGates: withoutScope(state).before.flatMap(({ changed }) => changed),
        tests: {
          now: result?.tests ?? null,
          most: state.testCounts.find(each => each.gate === gate.name)?.most ?? null,
          ...failedTests(result),
        },
        mostMs: Math.max(2 * (result?.durationMs ?? 0), LEAST_SEARCH_MS),
        signal: AbortSignal.any([asked.ending, this.#breakingOff.signal]),
      },
    )
    if (proof === null) return false
    this.#log.emit({ type: 'counter-proof', round, ...proof, ...inScope(state) })
    return true
  }

  /** True if protected files differ from the start of the session, or if that is unknown. */
  async isProtectedChanged(tree: string): Promise<boolean> {
    const { gates } = this.#log.state
    if (!protects({ gates })) return false
    // A savepoint remains comparable whatever happens to the person's repository.
    await this.#saving
    const start = protectedSince(this.#log.state)
    if (start === null) return true
    return (await this.#means.changedProtected(gates, start, tree)).count > 0
  }

  /** Checks the gates' configuration for a claim, and journals it if it has changed since the last check. */
  async lookAtConfiguration(tree: string): Promise<void> {
    for (const of of this.#sides) if (isLookedAt(of)) await this.#lookAt(tree, of)
  }

  /** Returns the baseline for a scope that begins now with these gates; empty if they protect nothing. */
  async comparedWith({
    name,
    gates,
  }: Pick<EventOf<'scope-entered'>, 'name' | 'gates'>): Promise<{ protectFrom?: string; programs?: string }> {
    if (!protects({ gates })) return {}
    const known = agreedBefore(this.#log.state, name)
    const programs = known?.programs ?? (await this.#means.programs())
    return { ...(known === null ? {} : { protectFrom: known.tree }), programs }
  }

  /** Journals the protected files that already differ when the session enters a scope. */
  async tellAtEntry(): Promise<void> {
    const { state } = this.#log
    if (state.scope === null) return
    await this.#tellProtected(state.last?.round ?? 0, state.scope.since, state.scope.tree, state)
  }

  /** Returns the files of the claimed tree that have changed since, except those that gates changed before any work. */
  async strayed(claimed: string, tree: string): Promise<readonly string[]> {
    const lost = await this.#means.lost(claimed, tree)
    if (lost === null) return ['files that are not known']
    const usual = new Set(withoutScope(this.#log.state).before.flatMap(({ changed }) => changed))
    return lost.filter(path => !usual.has(path))
  }

  /** Saves the accepted tree unless it is in the last savepoint. */
  async keepAccepted(round: number, tree: string): Promise<void> {
    await this.#saving
    if (this.#log.state.savepoint?.tree !== tree) await this.#save(round, tree)
  }

  /** Interrupts the running gate, if there is one. */
  interrupt(): void {
    this.#breakingOff.abort()
  }

  /**
   * Saves everything since the last savepoint, also changes of steps and gates. Retries a failed savepoint once from freshly
   * read files.
   */
  async finish(): Promise<void> {
    await this.#saving
    const { last, savepoint, replayed, steps, gateRuns } = withoutScope(this.#log.state)
    const isLate = savepoint !== null && !replayed && (steps > 0 || gateRuns.length > 0)
    if (this.#options.means === null || (!this.#isLastUnkept && !isLate)) return
    const round = last?.round ?? 0
    const isKept = await unlessStopped(async () => {
      const tree = await this.#options.workTree.take()
      return (tree === savepoint?.tree && !this.#isLastUnkept) || (await this.#save(round, tree))
    }).catch(unlessFull)
    if (isKept) return
    const message = this.#isLastUnkept ? LAST_UNKEPT : END_UNKEPT
    this.#log.emit({ type: 'warning', round: last === null ? null : round, message })
  }

  /** Gates that still have to run before round 1, or since the template added them. */
  get #due(): readonly Gate[] {
    const { gates, addedGates, before, last } = withoutScope(this.#log.state)
    const done = new Set(before.map(({ gate }) => gate))
    return (last === null ? gates : addedGates).filter(({ name }) => !done.has(name))
  }

  /** Journals the files protected by added gates that differ from the start of the session. */
  async #tellAdded(tree: string): Promise<void> {
    const state = withoutScope(this.#log.state)
    const gates = this.#due.filter(({ name }) => state.addedGates.some(added => added.name === name))
    const start = protectedSince(state)
    if (start !== null) await this.#tellProtected(state.last?.round ?? 0, start, tree, { ...state, gates })
  }

  /** The session; inside of a scope, the session without the scope first. Each is checked separately. */
  get #sides(): readonly SessionState[] {
    const { state } = this.#log
    return state.scope === null ? [state] : [withoutScope(state), state]
  }

  /** @param state a side of the session */
  async #lookAt(tree: string, state: SessionState, programs?: string): Promise<void> {
    const { last, gates, gateConfiguration: known } = state
    const start = protectedSince(state) ?? tree
    const found = await this.#means.configuration(gates, start, tree, programs ?? known?.programs ?? null)
    // No earlier check exists in sessions of an older version, or if gates protect files only since the resume.
    const isFirst = known === null && (programs !== undefined || found.digest !== null)
    if (!isFirst && (known?.digest ?? null) === found.digest) return
    const noted = programs === undefined ? {} : { programs }
    this.#log.emit({ type: 'gate-configuration', round: last?.round ?? 0, ...found, ...noted, ...inScope(state) })
  }

  get #means(): ProofEnvironment {
    const { means } = this.#options
    if (means === null) throw new Error('Nothing of this session is proved.')
    return means
  }

  /** Creates a savepoint and journals it; false if that failed. */
  async #save(round: number, tree: string, signal?: AbortSignal): Promise<boolean> {
    const of = { session: this.#log.state.id, round, tree, ...(signal === undefined ? {} : { signal }) }
    const kept = await this.#means.keepSavepoint(of)
    if (kept !== null) this.#log.emit({ type: 'savepoint', round, ...kept })
    return kept !== null
  }

  async #lookAtProtected(ended: EndedRound): Promise<void> {
    const { round, treeBefore, treeAfter } = ended
    if (!this.#hasToldOfProject && (await this.#hasChangedProject(ended))) {
      this.#hasToldOfProject = true
      this.#log.emit({ type: 'settings-changed', round })
    }
    for (const of of this.#sides) await this.#tellProtected(round, treeBefore, treeAfter, of)
  }

  async #tellProtected(round: number, before: string, after: string, of: SessionState): Promise<void> {
    const { gates } = of
    if (before === after || !protects(of)) return
    const { files, count } = await this.#means.changedProtected(gates, before, after)
    if (count > 0) this.#log.emit({ type: 'protected-changed', round, files, count, ...inScope(of) })
  }

  /** Returns true if the round changed the project file. */
  async #hasChangedProject({ changed, changedCount, treeBefore, treeAfter }: EndedRound): Promise<boolean> {
    if (changed.includes(PROJECT_FILE)) return true
    // The event of a large round lists only some of the changed files.
    if (changedCount <= changed.length) return false
    return (await this.#means.lost(treeBefore, treeAfter))?.includes(PROJECT_FILE) ?? false
  }
}

/** Returns the result of an action at the session's end; null if its look at the files was aborted. */
async function unlessStopped<T>(action: () => Promise<T>): Promise<T | null> {
  try {
    return await action()
  } catch (error) {
    if (error instanceof GitStopped) return null
    throw error
  }
}

/** Ignores a full disk: the session ends all the same. */
function unlessFull(error: unknown): null {
  if (isDiskFull(error)) return null
  throw error
}

/** Journals what was restored and what could not be. `round`: the last that ended, if left out. */
export function emitRestored(
  log: SessionLog,
  restored: Awaited<ReturnType<RepositoryGuard['check']>>,
  round = log.state.last?.round ?? 0,
): void {
  if (!restored) return
  const { restored: paths, setAside, problems } = restored
  if (paths.length > 0) log.emit({ type: 'repository-restored', round, paths, setAside })
  for (const message of problems) log.emit({ type: 'warning', round, message })
}
