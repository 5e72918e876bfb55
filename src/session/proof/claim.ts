import { unreachable } from '../../base/errors.ts'
import type { SandboxProblem } from '../../core/engine.ts'
import type { RefusalReason } from '../../core/events/events.ts'
import type { SessionOutcome } from '../../core/events/outcome.ts'
import { judgeDone, nextProof, type ProofStep, type Verdict } from '../../core/rules/done-rule.ts'
import { refusalForAgent } from '../../core/rules/refusals.ts'
import type { ReviewCause } from '../../core/rules/review.ts'
import { stallStep } from '../../core/rules/stall.ts'
import type { MemorySnapshot } from '../../core/shapes/memory.ts'
import { inScope } from '../../core/state/scope.ts'
import type { Hooks } from '../hooks.ts'
import type { RunnerOptions } from '../options.ts'
import type { Scopes } from '../scope/scopes.ts'
import type { SessionLog } from '../session-log.ts'
import type { ContractTurn, ContractWork } from './contract/contract.ts'
import type { Proof } from './proof.ts'

/**
 * The result of one step.
 * - `tree`: the fingerprint now; null: take it again.
 * - `end`: null unless the session ends.
 * - `needs`: what comes first: the end of a pause, a review, or a turn of the contract.
 */
interface AfterStep {
  tree: string | null
  end: SessionOutcome | null
  needs?: 'hold' | { review: readonly ReviewCause[] } | { turn: ContractTurn }
}

/** The progress of one claim's proof. */
interface Passing {
  /** Number of the round that made the claim. */
  round: number
  /** Fingerprint of the claimed tree. */
  claimed: string
  pass: 1 | 2
  /** Fingerprint at the start of the pass, and the gates that have run in it. */
  from: string
  ran: ReadonlySet<string>
  /** True once the hooks have accepted it. */
  hooked: boolean
}

/** Parts of the session that prove a claim. */
interface ClaimMeans {
  proof: Proof
  scopes: Scopes
  contract: ContractWork
  hooks: Hooks
}

/** Steps that do not start once the session ends or pauses. */
const TAKES_TIME: ReadonlySet<ProofStep['kind']> = new Set(['gate', 'counter-proof', 'hook', 'review', 'contract'])

const TAKEN_BACK = 'MAIN.md and tasks.json no longer claim it.'
const REPLAYED = 'One of its rounds was replayed, and a replay never counts as done.'
const REFUSED_AFTER_ROUND = 'the hook after_round does not let this round pass.'
const CHANGED_SINCE = 'files were changed since it was claimed.'

/**
 * Proves a done claim step by step, from nominated to accepted, refused, or the session's end. A person can interrupt
 * between two steps, and a crash loses at most the proof so far.
 */
export class ClaimProof {
  readonly #options: RunnerOptions
  readonly #proof: Proof
  readonly #scopes: Scopes
  readonly #contract: ContractWork
  readonly #hooks: Hooks
  #passing: Passing | null = null

  constructor(options: RunnerOptions, { proof, scopes, contract, hooks }: ClaimMeans) {
    this.#options = options
    this.#proof = proof
    this.#scopes = scopes
    this.#contract = contract
    this.#hooks = hooks
  }

  /** Does the next step of the proof. Refuses the claim if the memory files no longer make it. */
  async prove(tree: string, memory: MemorySnapshot): Promise<AfterStep> {
    const { log, asked } = this.#options
    const proof = this.#proof
    const { claim } = log.state
    if (asked.endedBy !== null && asked.ending.aborted) return { tree, end: this.#interrupted }
    if (log.state.scope === null ? log.state.replayed : log.state.scope.replayed) return await this.#replayed(tree)
    // The claimed tree includes the changes of its gates; any other change is somebody else's.
    if (claim.state !== 'nominated' || claim.tree !== tree) {
      return await this.#refused(tree, 'tree-changed', refusalForAgent('tree-changed', CHANGED_SINCE))
    }
    const stands = this.#stands(claim.by, memory)
    if (stands.kind === 'none') return await this.#refused(tree, 'progress-left', TAKEN_BACK)
    if (stands.kind === 'refused') return await this.#refused(tree, stands.reason, stands.detail)
    const { claimed, pass, from, ran, hooked } = this.#begun(tree)
    await proof.lookAtConfiguration(tree)
    const isProtectedChanged = await proof.isProtectedChanged(tree)
    const strayed = pass === 2 && tree !== from ? await proof.strayed(claimed, tree) : []
    // A person has asked for another plan meanwhile.
    if (log.state.claim.state !== 'nominated') return { tree, end: null }
    const hasHook = !hooked && log.state.scope === null && this.#hooks.has('on_claim')
    const step = nextProof(log.state, { tree, isProtectedChanged, ran, pass, from, strayed, hasHook })
    const takesTime = TAKES_TIME.has(step.kind)
    // After a request to stop after the round, still give a verdict that needs no gate or review.
    if (takesTime && asked.endedBy !== null) return { tree, end: this.#interrupted }
    if (takesTime && asked.isPaused) return { tree: null, end: null, needs: 'hold' }
    switch (step.kind) {
      case 'gate': {
        const after = await proof.run([step.gate], 'claim', tree)
        if (after.isComplete) this.#passing = { ...this.#begun(tree), ran: new Set([...ran, step.gate.name]) }
        const run = log.state.gateRuns.find(({ gate }) => gate === step.gate.name)
        return { tree: after.tree, end: await this.#endWithoutSandbox(run) }
      }
      case 'again':
        this.#passing = { ...this.#begun(tree), pass: 2, from: tree, ran: new Set() }
        return { tree, end: null }
      case 'hook':
        return await this.#askHooks(tree)
      case 'counter-proof':
        await proof.counterProve(step.gate, tree)
        return { tree, end: null }
      case 'review':
        return { tree: null, end: null, needs: { review: step.causes } }
      case 'contract':
        return await this.#proveContract(step.step, tree)
      case 'refuse':
        return await this.#refused(tree, step.reason, step.detail)
      case 'accept':
        return await this.#accepted(tree, step.verified)
      case 'end':
        return { tree, end: step.outcome }
      default:
        return unreachable(step)
    }
  }

  /** Runs the hooks for the claim. The next step sees their changes of files. */
  async #askHooks(tree: string): Promise<AfterStep> {
    const { refusal, isComplete } = await this.#hooks.run('on_claim', this.#round)
    if (refusal !== null) return await this.#refused(tree, 'hook-refused', refusal)
    if (isComplete) this.#passing = { ...this.#begun(tree), hooked: true }
    return { tree: null, end: null }
  }

  /** Does one step of the proof by the contract. */
  async #proveContract(step: Extract<ProofStep, { kind: 'contract' }>['step'], tree: string): Promise<AfterStep> {
    const contract = this.#contract
    switch (step.kind) {
      case 'check':
        await contract.check(step, tree)
        return { tree, end: await this.#endWithoutSandbox(contract.lastRun(step)) }
      case 'try':
        await contract.tryControl(step, tree)
        return { tree, end: null }
      case 'settle':
        contract.settle(step)
        return { tree, end: null }
      case 'controls':
        return { tree: null, end: null, needs: { turn: { role: 'control', sentence: step.sentence } } }
      case 'second':
        return {
          tree: null,
          end: null,
          needs: { turn: { role: 'second', sentence: step.sentence, control: step.control } },
        }
      default:
        return unreachable(step)
    }
  }

  /** Returns the outcome if the sandbox kept a gate or check from starting; the resumed session proves the claim. */
  async #endWithoutSandbox(run: { status: string } | null | undefined): Promise<SessionOutcome | null> {
    const { engines, asked } = this.#options
    return run?.status === 'not-started' ? endOfSandbox(await engines.trySandbox(asked.stopping)) : null
  }

  /** Accepts the claim. The claim of a scope ends the scope, not the session. */
  async #accepted(tree: string, verified: boolean): Promise<AfterStep> {
    const { log } = this.#options
    await this.#proof.keepAccepted(this.#round, tree)
    await this.#scopes.clear()
    if (log.state.claim.state !== 'nominated') return { tree, end: null }
    log.emit({ type: 'done-accepted', round: this.#round, tree, verified, ...inScope(log.state) })
    this.#scopes.leaveDone()
    return { tree, end: null }
  }

  /** Ends the session or scope as replayed: a replay never counts as done. */
  async #replayed(tree: string): Promise<AfterStep> {
    const { log } = this.#options
    if (log.state.scope === null) return { tree, end: { kind: 'replayed' } }
    await this.#scopes.giveUp(REPLAYED)
    return { tree, end: null }
  }

  /** Claims the goal for the files as they are after all processes have ended. Returns the fingerprint. */
  async nominate(step: number): Promise<string> {
    const { log, engines, workTree } = this.#options
    const { replansAsked } = log.state
    await engines.settle()
    const tree = await workTree.take(undefined, 'anew')
    // A person wants another plan: ask the template again.
    if (log.state.replansAsked !== replansAsked) return tree
    this.#passing = null
    log.emit({ type: 'done-nominated', step, round: this.#round, by: ['template'], tree })
    return tree
  }

  /** Returns if the claim is still made: by its files, or by the template whatever the files say. */
  #stands(
    by: readonly string[],
    memory: MemorySnapshot,
  ): { kind: 'nominated' } | Exclude<Verdict, { kind: 'nominated' }> {
    const { state } = this.#options.log
    const { last } = state
    if (by.includes('template')) return { kind: 'nominated' }
    return last === null ? { kind: 'none' } : judgeDone(memory, last, state)
  }

  get #round(): number {
    return this.#options.log.state.last?.round ?? 0
  }

  get #interrupted(): SessionOutcome | null {
    const by = this.#options.asked.endedBy
    return by === null ? null : { kind: 'interrupted', by }
  }

  #begun(tree: string): Passing {
    const round = this.#round
    if (this.#passing?.round !== round) {
      this.#passing = { round, claimed: tree, pass: 1, from: tree, ran: new Set(), hooked: false }
    }
    return this.#passing
  }

  async #refused(tree: string, reason: RefusalReason, detail: string): Promise<AfterStep> {
    const { log, memory, policy } = this.#options
    log.emit({ type: 'done-refused', round: this.#round, reason, detail, ...inScope(log.state) })
    await memory.withdrawClaim()
    return { tree, end: followStall(log, policy.stallRounds) }
  }
}

/** Returns the outcome if the sandbox cannot start anything; null if the session can continue. */
export function endOfSandbox(found: SandboxProblem | null): SessionOutcome | null {
  if (found === null) return null
  return { kind: 'needs-person', reason: found.problem, hint: { do: 'mend-sandbox', mend: found.mend } }
}

/** Journals the remedy for rounds without progress. Returns an outcome if none is left. */
export function followStall(log: SessionLog, stallRounds: number): SessionOutcome | null {
  const { claim, last, stall } = log.state
  // The proof of a claim comes first.
  if (claim.state === 'accepted' || claim.state === 'nominated' || last === null) return null
  const step = stallStep(stall, stallRounds)
  if (step === null) return null
  if (step.kind === 'end') return { kind: 'stalled', rounds: step.rounds, why: step.why }
  const { remedy, why, rounds } = step
  log.emit({ type: 'stuck', round: last.round, rounds, why, remedy })
  return null
}

/**
 * Judges the round that has just ended, however it ended: a claim must not outlive its round. A claim that is not refused
 * stays nominated for its proof. Returns the fingerprint if it was taken again, otherwise null.
 * @param isRefusedByHook whether a hook after the round refuses what it claims
 */
export async function judgeClaim(
  snapshot: MemorySnapshot,
  options: Pick<RunnerOptions, 'log' | 'memory' | 'engines' | 'workTree'>,
  isRefusedByHook: boolean,
): Promise<string | null> {
  const { log, memory } = options
  const { last } = log.state
  if (!last) return null
  const verdict = judgeDone(snapshot, last, log.state)
  if (verdict.kind === 'none') return null
  const { round } = last
  const claimed = verdict.kind === 'refused' ? {} : { tree: verdict.tree, ...whyNothingOf(verdict) }
  log.emit({ type: 'done-nominated', round, by: verdict.by, ...claimed, ...inScope(log.state) })
  const { tree, refusal } =
    verdict.kind === 'refused'
      ? { tree: null, refusal: verdict }
      : isRefusedByHook
        ? { tree: null, refusal: { reason: 'hook-refused' as const, detail: REFUSED_AFTER_ROUND } }
        : await lookOnceMore(verdict.tree, options)
  if (refusal === null) return tree
  log.emit({ type: 'done-refused', round, reason: refusal.reason, detail: refusal.detail, ...inScope(log.state) })
  await memory.withdrawClaim()
  return tree
}

function whyNothingOf({ whyNothing }: Extract<Verdict, { kind: 'nominated' }>): { whyNothing?: string } {
  return whyNothing === null ? {} : { whyNothing }
}

/** Settles the engines and takes the fingerprint again. Refuses the claim if leftover processes changed files. */
async function lookOnceMore(
  claimed: string,
  { engines, workTree }: Pick<RunnerOptions, 'engines' | 'workTree'>,
): Promise<{ tree: string; refusal: { reason: RefusalReason; detail: string } | null }> {
  await engines.settle()
  const tree = await workTree.take(undefined, 'anew')
  if (tree === claimed) return { tree, refusal: null }
  const { paths } = await workTree.changed(claimed, tree)
  const fact = `something that was left running changed files (${paths.slice(0, 5).join('; ')}) after the round had ended.`
  return { tree, refusal: { reason: 'tree-changed', detail: refusalForAgent('tree-changed', fact) } }
}
