import { unreachable } from '../base/errors.ts'
import type { ThreadSpec } from '../core/engine.ts'
import type { EventOf, SessionEvent } from '../core/events/events.ts'
import {
  exitCodeOf,
  isFinished,
  type RoundOutcome,
  renewalOf,
  type SessionOutcome,
  type WaitReason,
} from '../core/events/outcome.ts'
import { type AfterRound, afterRenewal, afterRound, waitAtMost } from '../core/rules/after-round.ts'
import type { AskedAnswer } from '../core/rules/answer.ts'
import type { ContractStep } from '../core/rules/contract.ts'
import { engineWithRoom, fallbackCause, NOT_IN_THIS_RUN } from '../core/rules/fallback.ts'
import type { ReviewCause } from '../core/rules/review.ts'
import type { MemorySnapshot } from '../core/shapes/memory.ts'
import { isCall, partOf, type SessionState, sessionTokens } from '../core/state/state.ts'
import { usageOf } from '../core/state/usage.ts'
import { inTemplate, type OwnStep, type RoundStep, type Step } from '../core/template.ts'
import { GitStopped } from '../workspace/git/git.ts'
import { Answers, endOfRefusals } from './answers.ts'
import { Budget } from './budget.ts'
import { FilesAtHand } from './files-at-hand.ts'
import { Hooks } from './hooks.ts'
import type { RunnerOptions } from './options.ts'
import { PlanChange } from './plan/plan-change.ts'
import { PlanCheck } from './plan/plan-check.ts'
import { ClaimProof, endOfSandbox, followStall } from './proof/claim.ts'
import { type ContractTurn, ContractWork } from './proof/contract/contract.ts'
import { emitRestored, Proof } from './proof/proof.ts'
import { RoundProviders, type Way } from './providers/round-providers.ts'
import { emitWarnings, Rounds, restorePersonsFiles } from './round.ts'
import { Scopes } from './scope/scopes.ts'
import type { SessionLog } from './session-log.ts'
import { SessionShell, withoutSecrets } from './shell/session-shell.ts'
import { OwnSteps } from './steps.ts'
import { ThreadAhead } from './thread-ahead.ts'
import { Waits } from './waits.ts'

/** Conditions that may keep a step from its start, in addition to a person who ends the session. */
interface Guards {
  /** True: a pause delays it. */
  pauses: boolean
  /** The answer that its round asks for. After too many refusals, the session asks no more. */
  answer?: AskedAnswer | undefined
  /** Number of used rounds to check against the limits; null: no limit delays the step. */
  rounds: number | null
  /** The complete thread that it starts; undefined: none. */
  thread?: ThreadSpec
  /** True until a round has run: then a full usage window is not tried either. */
  isFirst?: boolean
}

/**
 * Runs one session from its journal to its end: take the fingerprint, prove a claim, ask the template, carry out its step,
 * repeat. Start and resume are the same: the state is the fold of the journal.
 */
export class Session {
  readonly #options: RunnerOptions
  readonly #log: SessionLog
  readonly #budget: Budget
  readonly #providers: RoundProviders
  readonly #ahead: ThreadAhead
  readonly #answers: Answers
  readonly #atHand: FilesAtHand
  readonly #proof: Proof
  readonly #scopes: Scopes
  readonly #claim: ClaimProof
  readonly #contract: ContractWork
  readonly #hooks: Hooks
  /** Changes the plan of the session, and undoes the last change. */
  readonly planChange: PlanChange
  readonly #planCheck: PlanCheck
  readonly #waits: Waits
  readonly #rounds: Rounds
  readonly #steps: OwnSteps
  #isFirst = true
  /** True once the hooks before the next round have run. */
  #isHooked = false
  #stage: 'running' | 'ending' | 'over' = 'running'

  constructor(given: RunnerOptions) {
    const budget = new Budget(given)
    const options = { ...given, workTree: budget.bounding(given.workTree) }
    const { shell, log, template, redactor, clock } = options
    this.#options = options
    this.#log = log
    this.#budget = budget
    this.#providers = new RoundProviders(options)
    this.#ahead = new ThreadAhead(options, budget, this.#providers)
    this.#answers = new Answers(options)
    this.#atHand = new FilesAtHand(options)
    const parts = { budget, ahead: this.#ahead, atHand: this.#atHand, answers: this.#answers }
    this.#waits = new Waits(options, parts)
    this.#proof = new Proof(options, budget)
    this.#scopes = new Scopes(options, this.#proof, this.#answers)
    this.#contract = new ContractWork(options, budget)
    this.#hooks = new Hooks(options, budget)
    this.#claim = new ClaimProof(options, {
      proof: this.#proof,
      scopes: this.#scopes,
      contract: this.#contract,
      hooks: this.#hooks,
    })
    this.planChange = new PlanChange(options)
    this.#planCheck = new PlanCheck(options, this.#proof)
    const leftMs = () => budget.leastMs
    const sessionShell = shell && new SessionShell({ ...shell, log, template, redactor, clock, leftMs })
    this.#rounds = new Rounds(options, {
      ...parts,
      providers: this.#providers,
      proof: this.#proof,
      planChange: this.planChange,
      hooks: this.#hooks,
      sessionShell,
    })
    this.#steps = new OwnSteps(options, {
      budget,
      answers: this.#answers,
      claim: this.#claim,
      scopes: this.#scopes,
      sessionShell,
    })
  }

  /** The state of the session: the fold of its journal. */
  get state(): SessionState {
    return this.#log.state
  }

  /** Resolves with the outcome. For a call, the outcome keeps the hint that the journal omits. */
  async run(): Promise<SessionOutcome> {
    try {
      emitWarnings(this.#options, this.#unhidden())
      const outcome = await this.#work().then(this.#unlessFull, this.#unlessStopped)
      // A session with a replayed round is never done.
      return await this.#end(this.#log.state.replayed && isFinished(outcome) ? { kind: 'replayed' } : outcome)
    } finally {
      this.#stage = 'over'
      this.#options.asked.forgetSession()
      this.#ahead.discard()
      await this.#log.sync()
    }
  }

  async #work(): Promise<SessionOutcome> {
    const { template, workTree, takeSettings } = this.#options
    const refused = await this.#refusedBySandbox()
    if (refused !== null) return refused
    await this.#begin()
    for (;;) {
      const tree = this.#atHand.tree ?? (await workTree.take())
      emitWarnings(this.#options)
      const memory = await this.#atHand.now()
      this.#atHand.tree = null
      const first = await this.#proofFirst(tree, memory)
      if (first === 'again') continue
      if (first !== null) return first
      await takeSettings(this.#log)
      emitWarnings(this.#options)
      if (await this.#ahead.waitForUsage()) continue
      this.#returnToEngine()
      // Await nothing from here to the start of the round, so that no words of a person are missed.
      const { state } = this.#log
      const step = inTemplate(state.template, 'next', () => template.next(state, memory))
      if (this.planChange.passOver(step.kind)) continue
      if (step.kind === 'end') return this.#steps.checkedEnd(step.outcome)
      const end = await this.#scopes.unlessStalled(await this.#carryOut(step, tree, memory))
      if (end) return end
    }
  }

  /** Returns the outcome if the sandbox cannot start anything before the first round; null if the session can begin. */
  async #refusedBySandbox(): Promise<SessionOutcome | null> {
    const { template, engines, asked } = this.#options
    // A recording needs no sandbox. Without agents, each command reports on its own that it could not run.
    const hasAgents = template.threads.some(({ thread }) => engines.of(thread).replays !== true)
    if (asked.endedBy !== null || !hasAgents) return null
    return endOfSandbox(await engines.trySandbox(asked.stopping))
  }

  /** Begins or resumes the session. Finishes first a wait that the previous run did not finish. */
  async #begin(): Promise<void> {
    await this.#proof.keepLate()
    await restorePersonsFiles(this.#options)
    await this.#contract.tellRounds()
    const { waiting, roundsUsed } = this.#log.state
    // The pause comes from the previous session.
    if (this.#options.asked.isPaused) this.#log.emit({ type: 'paused' })
    // A provider is probed again, so its wait ends here.
    if (waiting?.reason === 'provider-away')
      this.#log.emit({ type: 'wait-ended', round: roundsUsed + 1, reason: 'over' })
    else if (waiting !== null && this.#options.asked.endedBy === null) await this.#waits.waitUntil(waiting.until)
    if (this.#log.state.claim.state !== 'nominated') this.#ahead.lookAtUsage()
  }

  /** Does one step of the proof of the claim. Returns an outcome if the session ends. */
  async #prove(tree: string, memory: MemorySnapshot): Promise<SessionOutcome | null> {
    const proved = await this.#claim.prove(tree, memory)
    if (proved.needs === 'hold') return await this.#waits.hold()
    if (proved.needs !== undefined && 'turn' in proved.needs) return await this.#contractTurn(proved.needs.turn, tree)
    if (proved.needs !== undefined) return await this.#review(proved.needs.review, tree)
    this.#atHand.tree = proved.tree
    return proved.end
  }

  /** Carries out the next step of the template. Returns an outcome if the session ends. */
  async #carryOut(
    step: Exclude<Step, { kind: 'end' }>,
    tree: string,
    memory: MemorySnapshot,
  ): Promise<SessionOutcome | null> {
    if (step.kind !== 'round' && step.kind !== 'replan') this.#steps.count()
    switch (step.kind) {
      case 'round':
      case 'replan':
        return await this.#roundStep(step, tree, memory)
      case 'decide':
        return await this.#waits.decide(step.decision)
      case 'check': {
        const pauses = this.#log.state.replan === null && this.#planCheck.takesTime(step.check, tree, memory)
        return await this.#unlessKept({ pauses, rounds: null }, async () => {
          this.#atHand.tree = await this.#planCheck.look(step.check, tree, memory)
          return null
        })
      }
      default:
        return await this.#ownStep(step, tree)
    }
  }

  /** Calls `begin` unless something keeps the step from its start. Returns an outcome if the session ends. */
  async #unlessKept(
    { pauses, answer, rounds, thread, isFirst = false }: Guards,
    begin: (way: Way) => Promise<SessionOutcome | null>,
  ): Promise<SessionOutcome | null> {
    const { asked } = this.#options
    if (asked.endedBy !== null) return { kind: 'interrupted', by: asked.endedBy }
    if (pauses && asked.isPaused) return await this.#waits.hold()
    const refused = endOfRefusals(this.#log.state, answer)
    if (refused !== null) return refused
    const limit = rounds === null ? null : this.#budget.limitReached(rounds)
    if (limit !== null) return { kind: 'limit', limit }
    if (thread === undefined) return await begin('own')
    const usage = this.#usageReached(thread, isFirst)
    if (usage !== null) return await this.#follow(usage.cause, usage.after, usage.reason, thread)
    const way = this.#providers.take(thread)
    // Ask the template again afterwards: a person may have said something meanwhile.
    if (way === null) return await this.#lookAtProvider(thread)
    return await begin(way)
  }

  /** Carries out a step that is not a round. Returns an outcome if the session ends first. */
  async #ownStep(step: OwnStep, tree: string): Promise<SessionOutcome | null> {
    const { replan, claim } = this.#log.state
    // A limit never keeps the first claim from its proof. It does stop a claim that follows a refused one.
    const isFirstClaim = step.kind === 'claim' && claim.state !== 'refused'
    const guards = { pauses: replan === null && this.#steps.waits(step), rounds: isFirstClaim ? null : 0 }
    return await this.#unlessKept(guards, async () => {
      this.#atHand.tree = await this.#steps.carryOut(step, tree)
      const leavesMemory = step.kind === 'note' || step.kind === 'enter' || (step.kind === 'look' && !step.keep)
      if (!leavesMemory) this.#atHand.forget()
      return null
    })
  }

  /** Plays the round if its materials and its scope are ready; otherwise prepares them first. */
  async #roundStep(step: RoundStep, tree: string, memory: MemorySnapshot): Promise<SessionOutcome | null> {
    const scope = this.#scopes.toEnter(step)
    const { roundsUsed, kind } = this.#log.state
    if (scope !== null)
      return await this.#unlessKept({ pauses: true, rounds: roundsUsed }, async () => {
        await this.#scopes.enter(scope)
        this.#atHand.forget()
        return null
      })
    if (!this.#answers.isReadyFor(step.round)) {
      await this.#answers.makeReady(step.round)
      this.#atHand.tree = tree
      return null
    }
    const isReplan = step.kind === 'replan'
    // A free round needs no round left.
    const isFree = partOf(kind, step.round.part ?? null).free
    const rounds = isReplan ? 0 : isFree ? Math.max(0, roundsUsed - 1) : roundsUsed
    const thread = this.#providers.complete(step.round.thread)
    const guards = { pauses: !isReplan, answer: step.round.answer, rounds, thread, isFirst: this.#isFirst }
    const isReplay = this.#options.engines.of(thread).replays === true
    if (!isReplay && !this.#isHooked && this.#hooks.has('before_round'))
      return await this.#unlessKept(guards, async () => await this.#askHooks())
    return await this.#unlessKept(guards, async way => {
      return await this.#round(step, this.#providers.follow(thread, way), tree, memory)
    })
  }

  /** Runs the hooks before a round. They may change files. Returns an outcome if one refuses the round. */
  async #askHooks(): Promise<SessionOutcome | null> {
    const round = this.#log.state.roundsUsed + 1
    const { refusal, isComplete } = await this.#hooks.run('before_round', round)
    this.#atHand.forget()
    this.#isHooked = isComplete
    if (refusal === null) return null
    const reason = `A hook before_round does not let round ${round} begin.`
    return { kind: 'needs-person', reason, hint: { do: 'say', text: 'Do what it asks for, then resume the session.' } }
  }

  /** Plays the round and acts on its outcome. Returns an outcome if the session ends. */
  async #round(
    step: RoundStep,
    thread: ThreadSpec,
    tree: string,
    memory: MemorySnapshot,
  ): Promise<SessionOutcome | null> {
    if (thread.provider === undefined) this.#isFirst = false
    this.#isHooked = false
    if (step.kind === 'replan') this.planChange.begin(memory)
    this.#planCheck.beforeRound(memory)
    const played = await this.#rounds.play({ ...step, round: { ...step.round, thread } }, tree)
    this.#atHand.tree = played.tree
    const isOver = step.kind === 'replan' && this.#log.state.replan === null
    // The recorded end of a replayed turn needs no reaction now.
    if (this.#options.asked.ending.aborted || isOver || played.isShown) return null
    const unbounded = this.#endOfUnknownUsage(thread)
    if (unbounded !== null) return unbounded
    const follows = this.#afterRound(played.outcome, thread)
    const isReplay = this.#options.engines.of(thread).replays === true
    return await this.#follow(played.outcome, isReplay ? withoutHint(follows) : follows, 'round-failed', thread)
  }

  /** Returns the outcome if the last round hid its usage, so that a limit is not enforceable; null: it continues. */
  #endOfUnknownUsage(thread: ThreadSpec): SessionOutcome | null {
    const { limits, last } = this.#log.state
    const { name, mayHideUsage } = this.#options.engines.of(thread)
    if (!mayHideUsage || last?.outcome.class !== 'worked' || last.tokens !== null) return null
    const limit = limits.tokens !== null ? '--max-tokens' : limits.cost === undefined ? null : '--max-cost'
    if (limit === null) return null
    const reason = `The engine ${name} does not report the tokens that it uses, so ${limit} cannot be enforced.`
    const text = `Use --rounds or --max-time instead of ${limit}, or another engine.`
    return { kind: 'needs-person', reason, hint: { do: 'say', text } }
  }

  /** Has a reviewer check the claim. Returns an outcome if the session ends. */
  async #review(causes: readonly ReviewCause[], tree: string): Promise<SessionOutcome | null> {
    const { model = null, engine = null } = this.#log.state.review ?? {}
    const wanted = { ...REVIEWER, model, ...(engine === null ? {} : { engine }) }
    const thread = this.#providers.completeReviewer(wanted)
    return await this.#unlessKept({ pauses: false, rounds: 0, thread }, async way => {
      const outcome = await this.#rounds.review(causes, tree, way)
      const after = this.#afterRound(outcome, this.#providers.follow(thread, way))
      return this.#options.asked.ending.aborted ? null : await this.#follow(outcome, after, 'round-failed', thread)
    })
  }

  /** Does the work that a claim, the first gates or the contract need before the next round; null: there is none. */
  async #proofFirst(tree: string, memory: MemorySnapshot): Promise<SessionOutcome | 'again' | null> {
    const { asked } = this.#options
    await this.#contract.takeEdit()
    if (this.#log.state.claim.state === 'nominated' && this.#log.state.replan === null)
      return (await this.#scopes.unlessStalled(await this.#prove(tree, memory))) ?? 'again'
    if (!this.#proof.hasBegun && asked.endedBy === null && !asked.isPaused) {
      this.#atHand.tree = await this.#proof.begin(tree)
      return 'again'
    }
    const step = this.#log.state.replan === null ? this.#contract.next(tree) : null
    if (step === null) return this.#contract.end
    return (await this.#contractStep(step, tree)) ?? 'again'
  }

  /** Does the next contract step before the rounds continue. Returns an outcome if the session ends. */
  async #contractStep(step: ContractStep, tree: string): Promise<SessionOutcome | null> {
    switch (step.kind) {
      case 'author':
        return this.#contract.giveUp() ? null : await this.#contractTurn({ role: 'author' }, tree)
      case 'check':
        return await this.#unlessKept({ pauses: true, rounds: 0 }, async () => {
          await this.#contract.check(step, tree)
          this.#atHand.tree = tree
          return null
        })
      case 'freeze':
        await this.#contract.freeze('person')
        return null
      case 'decide-behind':
        return await this.#waits.decide(this.#contract.decisionBehind())
      case 'decide': {
        const { decided: before } = this.#log.state
        const end = await this.#waits.decide(await this.#contract.decision())
        const { decided, replan } = this.#log.state
        if (end === null && replan === null && decided !== null && decided !== before)
          await this.#contract.decided(decided.choice, decided.by)
        return end
      }
      default:
        return unreachable(step)
    }
  }

  /** Plays a turn of the contract's author, or of the agent that writes wrong versions. */
  async #contractTurn(turn: ContractTurn, tree: string): Promise<SessionOutcome | null> {
    const thread = this.#providers.completeReviewer(this.#contract.threadOf(turn))
    const guards = { pauses: turn.role === 'author', rounds: 0, thread, isFirst: this.#isFirst }
    return await this.#unlessKept(guards, async way => {
      if (thread.provider === undefined) this.#isFirst = false
      const outcome = await this.#rounds.contractTurn(this.#contract, turn, tree, way)
      const after = this.#afterRound(outcome, this.#providers.follow(thread, way))
      return this.#options.asked.ending.aborted ? null : await this.#follow(outcome, after, 'round-failed', thread)
    })
  }

  /** Returns the reaction to the outcome of a round or review: the provider's rule, or else the common one. */
  #afterRound(outcome: RoundOutcome, thread: ThreadSpec): AfterRound {
    const { state } = this.#log
    const known = { ...state, ...usageOf(state, this.#options.engines.loginOf(thread)) }
    return this.#providers.after(outcome, thread) ?? afterRound(outcome, known, this.#moment())
  }

  /** Returns the wait or the end if the login has used up its share of a usage window; null if not. */
  #usageReached(
    thread: ThreadSpec,
    isFirst: boolean,
  ): { reason: WaitReason; cause: RoundOutcome; after: AfterRound } | null {
    const { clock, policy, engines } = this.#options
    const { state } = this.#log
    const { primaryWindow, secondaryWindow, hasCredits } = usageOf(state, engines.loginOf(thread))
    const share = policy.maxUsage ?? (isFirst && !hasCredits ? 100 : null)
    if (share === null) return null
    const windows = [primaryWindow, secondaryWindow]
    const renewedAt = renewalOf(windows, share, clock.now())
    if (renewedAt === null || renewedAt <= state.waivedUntil) return null
    const used = Math.max(...windows.map(window => window?.usedPercent ?? 0))
    const message =
      share === 100 ? 'The usage limit is reached.' : `${used} % of it are used, and --max-usage is ${share} %.`
    const cause: RoundOutcome = { class: 'window', message }
    const moment = this.#moment()
    const after = waitAtMost(cause, state, afterRenewal(renewedAt, moment.random), moment)
    return { reason: share === 100 ? 'usage-limit' : 'max-usage', cause, after }
  }

  #moment() {
    const { clock, random, policy } = this.#options
    return { now: clock.now(), random: random(), maxWaitMs: policy.maxWaitMs }
  }

  /** Probes the provider of the next thread, and waits if it is away. Returns an outcome if the session ends. */
  async #lookAtProvider(thread: ThreadSpec): Promise<SessionOutcome | null> {
    const look = await this.#providers.look(thread, this.#options.asked.stopping)
    if (look.kind === 'end') return look.outcome
    if (look.kind === 'wait') await this.#waits.wait('provider-away', look.cause, look.until, look.isBack)
    return null
  }

  /**
   * Reacts to the end of a round. Returns an outcome if the session ends.
   * @param reason of the wait, if time may mend it
   * @param thread that it is about
   */
  async #follow(
    outcome: RoundOutcome,
    after: AfterRound,
    reason: WaitReason,
    thread: ThreadSpec,
  ): Promise<SessionOutcome | null> {
    switch (after.kind) {
      case 'end':
        return this.#fallsBack(thread, outcome, resumableAt(after.outcome)) ? null : after.outcome
      case 'wait':
        if (this.#fallsBack(thread, outcome, after.until)) return null
        await this.#waits.wait(reason, outcome, Math.min(after.until, ...this.#otherResets(thread, outcome)))
        return null
      case 'ask-template':
        // Name no remedy for a stall if no further round can use it.
        if (this.#budget.limitReached(this.#log.state.roundsUsed) !== null) return null
        return followStall(this.#log, this.#options.policy.stallRounds)
      default:
        return unreachable(after)
    }
  }

  /**
   * Switches to another engine if this one cannot work. Returns true if it did.
   * @param until when its usage window resets, Unix time in ms; null: nobody knows
   */
  #fallsBack(thread: ThreadSpec, outcome: RoundOutcome, until: number | null): boolean {
    const { policy, engines, clock } = this.#options
    const { fullUntil } = this.#log.state
    const { on, afterMs } = policy.fallback
    const from = thread.engine ?? engines.usual
    const cause = fallbackCause(outcome)
    const now = clock.now()
    if (cause === null || !this.#isOfRounds(thread) || (until !== null && until - now <= afterMs)) return false
    if (cause !== 'window' && !on.includes(cause)) return false
    const to = engineWithRoom(engines.usual, policy.fallback, { ...fullUntil, [from]: until ?? NOT_IN_THIS_RUN }, now)
    if (to === null) return false
    const why = outcome.message ?? 'The usage window is full.'
    this.#changeEngine({ from, to, until: until === null ? null : new Date(until).toISOString(), fault: cause, why })
    return true
  }

  /** True if a thread uses the engine of the rounds. The session waits for an engine that was named for a role. */
  #isOfRounds({ engine, provider }: ThreadSpec): boolean {
    const { usual } = this.#options.engines
    return provider === undefined && (engine ?? usual) === (this.#log.state.engine ?? usual)
  }

  /** Returns the reset times of full windows of other engines; Unix time, ms. */
  #otherResets(thread: ThreadSpec, { class: end }: RoundOutcome): number[] {
    if (end !== 'window' || !this.#isOfRounds(thread)) return []
    return Object.values(this.#log.state.fullUntil).filter(until => until > this.#options.clock.now())
  }

  /** Switches back to the first engine that has room again. */
  #returnToEngine(): void {
    const { policy, engines, clock } = this.#options
    const { engine, fullUntil } = this.#log.state
    if (engine === null) return
    const room = engineWithRoom(engines.usual, policy.fallback, fullUntil, clock.now())
    // A person who resumes without this fallback engine no longer wants it.
    const to = room ?? (policy.fallback.engines.includes(engine) ? null : engines.usual)
    if (to === null || to === engine) return
    const why = to in fullUntil ? `The usage window of ${to} has been reset.` : `The session tries ${to} again.`
    this.#changeEngine({ from: engine, to, until: null, why })
  }

  #changeEngine(change: Omit<EventOf<'engine-changed'>, 'type' | 'round' | 'isUsual'>): void {
    this.#waits.releaseIdle()
    const round = this.#log.state.roundsUsed + 1
    this.#log.emit({ type: 'engine-changed', round, isUsual: change.to === this.#options.engines.usual, ...change })
  }

  /** Returns *needs a person* for a stalled session whose disk is full. If its rounds are used up, only warns. */
  readonly #unlessFull = async (outcome: SessionOutcome): Promise<SessionOutcome> => {
    const { lacksRoom, agents } = this.#options
    const isLimit = outcome.kind === 'limit' && outcome.limit === 'rounds' && this.#log.state.stall.idleRounds > 1
    if ((outcome.kind !== 'stalled' && !isLimit) || !(await lacksRoom())) return outcome
    if (isLimit) {
      this.#log.emit({ type: 'warning', round: null, message: wordsForFullDisk(agents.directory) })
      return outcome
    }
    return { kind: 'needs-person', reason: `No room left on the disk of ${agents.directory}.`, hint: FREE_SPACE }
  }

  /** Returns the outcome for a look at the files that was aborted; other errors are thrown again. */
  readonly #unlessStopped = (error: unknown): SessionOutcome => {
    if (!(error instanceof GitStopped)) throw error
    const { asked, agents } = this.#options
    if (asked.endedBy !== null) return { kind: 'interrupted', by: asked.endedBy }
    this.#log.emit({ type: 'warning', round: null, message: wordsForEndedLook(agents.directory) })
    return { kind: 'limit', limit: 'time' }
  }

  /** Returns a warning that names the files that agents can read but should not; empty: all are hidden. */
  #unhidden(): string[] {
    const { template, engines, deniedPaths } = this.#options
    const paths = template.threads.flatMap(({ thread }) =>
      engines.of(thread).hidesFiles ? [] : (withoutSecrets(thread, deniedPaths()).unreadable ?? []),
    )
    if (paths.length === 0) return []
    const [first, ...others] = new Set(paths)
    const files = others.length === 0 ? first : `${first}, and ${others.length} more`
    return [`Agents of this session can read files that should be hidden from them (${files}): ${IT_TAKES}`]
  }

  async #end(came: SessionOutcome): Promise<SessionOutcome> {
    // The hint ends in a resume, and a call cannot be resumed.
    const outcome = came.kind === 'needs-person' && isCall(this.#log.state) ? { ...came, hint: null } : came
    this.#stage = 'ending'
    this.#ahead.discard()
    await this.#options.engines.settle()
    if (outcome.kind === 'limit') await this.#proof.atLimit()
    emitRestored(this.#log, await this.#options.guard.check())
    await this.#proof.finish()
    const round = this.#log.state.last?.round ?? 0
    if (outcome.kind === 'done') await this.#hooks.run('on_done', round, outcome.kind)
    await this.#hooks.run('on_end', round, outcome.kind)
    if (this.#hooks.ofProject) emitRestored(this.#log, await this.#options.guard.check())
    emitWarnings(this.#options)
    const { state } = this.#log
    const end: EventOf<'session-ended'> = {
      type: 'session-ended',
      outcome,
      exitCode: exitCodeOf(outcome),
      rounds: state.roundsUsed,
      tokens: sessionTokens(state),
      ...(state.prices.length === 0 ? {} : { cost: state.cost.amount }),
      durationMs: Math.round(this.#budget.elapsedMs),
    }
    const instead = await this.#options.beforeEnd(this.#log.stateAfter(end))
    this.#stage = 'over'
    this.#log.emit(instead == null ? end : { ...end, outcome: instead, exitCode: exitCodeOf(instead) })
    return instead ?? came
  }

  /** Adds text to the running turn; `kept`: for the next round; `over`: too late. `answers`: id of the question. */
  async steer(text: string, answers?: string): Promise<'delivered' | 'kept' | 'over'> {
    if (this.#isOver) return 'over'
    const delivered = await this.#rounds.steer(text)
    if (this.#isOver && !delivered) return 'over'
    const round = this.#log.state.running?.round ?? null
    this.tell({ type: 'steered', round, text, delivered, ...(answers && { answers }) })
    // Kept words must survive a power cut.
    await this.#log.sync()
    return delivered ? 'delivered' : 'kept'
  }

  /** Gives agents tasks for the running round, and lists the agents at work. */
  get delegation(): Rounds['delegation'] {
    return this.#rounds.delegation
  }

  /** True if no round can receive words any more: none follows, or a person has ended the session at once. */
  get #isOver(): boolean {
    const { claim, running } = this.#log.state
    return (
      this.#stage !== 'running' ||
      this.#options.asked.ending.aborted ||
      (claim.state === 'accepted' && running === null)
    )
  }

  /** True once only the end of the session follows. */
  get isEnding(): boolean {
    return this.#stage !== 'running'
  }

  /** The limit that prevents a round from changing the plan; null: none. */
  get limitOfPlan(): ReturnType<Budget['limitReached']> {
    // Such a round is free, so it needs no round left.
    return this.#budget.limitReached(0)
  }

  /** Ends the running turn early, if there is one. */
  interrupt(): void {
    this.#rounds.interrupt()
    this.#proof.interrupt()
    this.#contract.interrupt()
    this.#hooks.interrupt()
    this.#steps.interrupt()
    this.#waits.wake()
  }

  /** As `Waits.attend`. */
  attend(isThere: boolean): boolean {
    return this.#waits.attend(isThere)
  }

  /** Makes the open decision for a person; `text` null: they added nothing. Returns false if no decision is open. */
  decide(choice: string, text: string | null): boolean {
    const { decision, ended } = this.#log.state
    if (this.#stage !== 'running' || decision === null || ended !== null) return false
    this.#log.emit({ type: 'decision-made', id: decision.id, choice, text, by: 'person' })
    this.#waits.wake()
    return true
  }

  /** Journals an event from outside of the rounds. Returns false once the session is over. */
  tell(event: SessionEvent): boolean {
    const isOver = this.#stage === 'over'
    if (!isOver) this.#log.emit(event)
    return !isOver
  }
}

function wordsForEndedLook(directory: string): string {
  return `git could not read all files in ${directory} in the time of the session. Raise --max-time, let git ignore large files, or check the disk.`
}

function wordsForFullDisk(directory: string): string {
  return `The disk of ${directory} is full, and the last rounds changed nothing: free some space before the session continues.`
}

const IT_TAKES = 'only the sandbox workspace-write hides them.'
const FREE_SPACE = { do: 'free-disk-space' } as const

/** Removes the hint of a replayed end: the recording names its own fix, and codex is not involved. */
function withoutHint(after: AfterRound): AfterRound {
  if (after.kind !== 'end' || after.outcome.kind !== 'needs-person') return after
  return { ...after, outcome: { ...after.outcome, hint: null } }
}

/** Returns when a session that ended because of a too long wait can be resumed, Unix time in ms; null: unknown. */
function resumableAt(outcome: SessionOutcome): number | null {
  const hint = outcome.kind === 'needs-person' ? outcome.hint : null
  return hint?.do === 'resume' ? Date.parse(hint.at) : null
}

/** Fields of a reviewer's thread that do not depend on its input. */
const REVIEWER = { agent: 'reviewer', developerInstructions: '', effort: null } as const
