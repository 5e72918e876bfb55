import { unreachable } from '../base/errors.ts'
import type { ThreadSpec } from '../core/engine.ts'
import type { EventOf, SessionEvent } from '../core/events/events.ts'
import {
  exitCodeOf,
  isFinished,
  type RoundOutcome,
  type SessionOutcome,
  type WaitReason,
} from '../core/events/outcome.ts'
import type { AfterRound } from '../core/rules/after-round.ts'
import type { ReviewCause } from '../core/rules/review.ts'
import type { MemorySnapshot } from '../core/shapes/memory.ts'
import { isCall, partOf, type SessionState, sessionTokens } from '../core/state/state.ts'
import { inTemplate, type OwnStep, type RoundScope, type RoundStep, type Step } from '../core/template.ts'
import { GitStopped } from '../workspace/git/git.ts'
import { Answers, endOfRefusals } from './answers.ts'
import { CurrentTurn } from './current-turn.ts'
import { Decisions } from './decisions.ts'
import { Holds } from './holds.ts'
import type { RunnerOptions, WorkTree } from './options.ts'
import { PlanChange } from './plan/plan-change.ts'
import { PlanCheck } from './plan/plan-check.ts'
import { ClaimProof, followStall, lookingNoLongerThan } from './proof/claim.ts'
import { emitRestored, Proof } from './proof/gates.ts'
import { RoundProviders } from './providers/round-providers.ts'
import { Budget, RetryPolicy, refusedBySandbox } from './retry-policy.ts'
import { MemoryAtHand, Rounds, ThreadAhead } from './rounds.ts'
import { Scopes } from './scope/scopes.ts'
import type { SessionLog } from './session-log.ts'
import { SessionShell, withoutSecrets } from './shell/session-shell.ts'
import { OwnSteps } from './steps.ts'

/**
 * Runs one session from where its log stands to its end: asks the template, runs the round, judges what it left, and
 * again. Start and resume are the same: the state is the fold of the journal.
 */
export class SessionRunner {
  readonly #options: RunnerOptions
  readonly #log: SessionLog
  readonly #budget: Budget
  readonly #retryPolicy: RetryPolicy
  readonly #providers: RoundProviders
  readonly #ahead: ThreadAhead
  readonly #answers: Answers
  readonly #turns: CurrentTurn
  /** The changes of its plan, and the way back from the last one. */
  readonly planChange: PlanChange
  readonly #memory: MemoryAtHand
  readonly #proof: Proof
  readonly #scopes: Scopes
  readonly #claim: ClaimProof
  readonly #planCheck: PlanCheck
  readonly #holds: Holds
  readonly #decisions: Decisions
  readonly #rounds: Rounds
  readonly #steps: OwnSteps
  /** The fingerprint that the last round left, while nothing but time can have passed since. */
  #tree: string | null = null
  #isFirst = true
  #stage: 'running' | 'ending' | 'over' = 'running'

  constructor(given: RunnerOptions) {
    const { asked, clock, policy } = given
    this.#budget = new Budget(given)
    const mostMs = () => {
      const { savepoint, running, last } = given.log.state
      const isFirst = savepoint === null && running === null && last === null
      // What a round or a gate has left is looked at even when the time is over.
      return isFirst ? this.#budget.timeLeftMs : Math.max(this.#budget.timeLeftMs, policy.graceMs)
    }
    const bounded = lookingNoLongerThan({ clock, ending: () => asked.ending, mostMs })
    const workTree: WorkTree = {
      take: (_, how) => bounded(signal => given.workTree.take(signal, how)),
      changed: (before, after) => given.workTree.changed(before, after),
    }
    const options = { ...given, workTree }
    this.#options = options
    this.#log = options.log
    this.#retryPolicy = new RetryPolicy(options)
    this.#providers = new RoundProviders(options)
    this.#ahead = new ThreadAhead({ ...options, budget: this.#budget, providers: this.#providers })
    this.#answers = new Answers(options)
    // A claim is not left unproved for a limit that is reached in the middle of it.
    const mostGateMs = () => Math.max(this.#budget.timeLeftMs, options.policy.graceMs)
    const sessionShell = options.shell && new SessionShell({ ...options, ...options.shell, leftMs: mostGateMs })
    this.#turns = new CurrentTurn({
      ...options,
      sessionShell,
      answers: this.#answers,
      budget: this.#budget,
      retryPolicy: this.#retryPolicy,
      providers: this.#providers,
      onRoundBegun: () => this.#ahead.startNext(),
    })
    this.planChange = new PlanChange(options)
    this.#memory = new MemoryAtHand(options)
    this.#proof = new Proof({ ...options, bounded, mostGateMs })
    this.#rounds = new Rounds({
      ...options,
      ahead: this.#ahead,
      turns: this.#turns,
      answers: this.#answers,
      planChange: this.planChange,
      atHand: this.#memory,
      proof: this.#proof,
      tellRemarks: () => this.#tellRemarks(),
    })
    this.#planCheck = new PlanCheck({ ...options, proof: this.#proof, hold: () => this.#hold() })
    this.#holds = new Holds({ ...options, budget: this.#budget })
    this.#decisions = new Decisions({ ...options, budget: this.#budget, holds: this.#holds })
    this.#scopes = new Scopes({ ...options, proof: this.#proof, answers: this.#answers })
    this.#claim = new ClaimProof({
      ...options,
      proof: this.#proof,
      scopes: this.#scopes,
      hold: () => this.#hold(),
      review: (causes, tree) => this.#review(causes, tree),
    })
    const byItself = { claim: this.#claim, scopes: this.#scopes, answers: this.#answers }
    this.#steps = new OwnSteps({ ...options, ...byItself, sessionShell, mostCommandMs: mostGateMs })
  }

  /** The state of the session: the fold of its journal. */
  get state(): SessionState {
    return this.#log.state
  }

  /** Answers how it ended; of a call with the hint that its journal does not have. */
  async run(): Promise<SessionOutcome> {
    try {
      this.#tellRemarks(this.#unhidden())
      const worked = refusedBySandbox(this.#options).then(refusal => refusal ?? this.#workThrough())
      const outcome = await worked.then(this.#unlessFull, this.#unlessStopped)
      // Where anything was replayed, nothing was brought to its end.
      return await this.#end(this.#log.state.replayed && isFinished(outcome) ? { kind: 'replayed' } : outcome)
    } finally {
      this.#stage = 'over'
      this.#options.asked.forgetSession()
      this.#ahead.discard()
      await this.#log.sync()
    }
  }

  /** A session that got nowhere because there is no room for its files needs a person; one whose rounds are used up says so. */
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

  /** Of a look at the files that was ended because the session is to end. */
  readonly #unlessStopped = (error: unknown): SessionOutcome => {
    if (!(error instanceof GitStopped)) throw error
    const { asked, agents } = this.#options
    if (asked.endedBy !== null) return { kind: 'interrupted', by: asked.endedBy }
    this.#log.emit({ type: 'warning', round: null, message: wordsForEndedLook(agents.directory) })
    return { kind: 'limit', limit: 'time' }
  }

  /** Adds text to the running turn; if none takes it, the next round is told. `over`: there will be no next round. `answers`: the question that it answers. */
  async steer(text: string, answers?: string): Promise<'delivered' | 'kept' | 'over'> {
    if (this.#isOver) return 'over'
    const delivered = await this.#turns.steer(text)
    if (this.#isOver && !delivered) return 'over'
    const round = this.#log.state.running?.round ?? null
    this.tell({ type: 'steered', round, text, delivered, ...(answers && { answers }) })
    return delivered ? 'delivered' : 'kept'
  }

  /** Gives agents tasks, on behalf of the running round, and knows those that are at work. */
  get delegation(): CurrentTurn['delegation'] {
    return this.#turns.delegation
  }

  /** Whether no round can be told anything any more. */
  get #isOver(): boolean {
    const { claim, running } = this.#log.state
    return this.#stage !== 'running' || (claim.state === 'accepted' && running === null)
  }

  /** True once only the end of the session follows. */
  get isEnding(): boolean {
    return this.#stage !== 'running'
  }

  /** The limit that is reached, so that no round can change the plan; null if one can. */
  get limitOfPlan(): ReturnType<Budget['limitReached']> {
    // It uses up none of the rounds, so it needs none that is left.
    return this.#budget.limitReached(0)
  }

  /** Ends the running turn early, if there is one. */
  interrupt(): void {
    this.#turns.interrupt()
    this.#proof.interrupt()
    this.#steps.interrupt()
    this.#holds.wake()
  }

  /** Makes the decision that is asked for, as a person; false if the session is over. */
  decide(choice: string, text: string | null): boolean {
    return this.#stage === 'running' && this.#decisions.make(choice, text)
  }

  /** Journals what happened beside the rounds, unless the session is over. */
  tell(event: SessionEvent): boolean {
    const isOver = this.#stage === 'over'
    if (!isOver) this.#log.emit(event)
    return !isOver
  }

  async #workThrough(): Promise<SessionOutcome> {
    const { template, workTree } = this.#options
    await this.#begin()
    for (;;) {
      const tree = this.#tree ?? (await workTree.take())
      this.#tellRemarks()
      const memory = await this.#memory.now()
      this.#tree = null
      if (this.#log.state.claim.state === 'nominated' && this.#log.state.replan === null) {
        const { tree: after, end: came } = await this.#claim.prove(tree, memory)
        const end = await this.#scopes.unlessStalled(came)
        if (end) return end
        this.#tree = after
        continue
      }
      if (!this.#proof.hasBegun && this.#options.asked.endedBy === null && !this.#options.asked.isPaused) {
        this.#tree = await this.#proof.begin(tree)
        continue
      }
      await this.#options.takeSettings(this.#log)
      this.#tellRemarks()
      if (await this.#ahead.waitForUsage()) continue
      // From here until the round has started nothing is awaited: what a person says or asks now is not passed over.
      const { state } = this.#log
      const step = inTemplate(state.template, 'next', () => template.next(state, memory))
      if (this.planChange.passOver(step.kind)) continue
      if (step.kind === 'end') return this.#steps.checkedEnd(step.outcome)
      const end = await this.#scopes.unlessStalled(await this.#carryOut(step, tree, memory))
      if (end) return end
    }
  }

  /** Does what the template wants next; an outcome if the session ends. */
  async #carryOut(
    step: Exclude<Step, { kind: 'end' }>,
    tree: string,
    memory: MemorySnapshot,
  ): Promise<SessionOutcome | null> {
    if (step.kind !== 'round' && step.kind !== 'replan') this.#steps.count()
    switch (step.kind) {
      case 'check': {
        const looked = await this.#planCheck.look(step.check, tree, memory)
        this.#tree = looked.tree
        return looked.end
      }
      case 'decide':
        this.#leaveAlone()
        return await this.#decisions.ask(step.decision)
      case 'round':
      case 'replan':
        return await this.#roundWithMaterials(step, tree, memory)
      default:
        return await this.#ownStep(step, tree)
    }
  }

  /** What was waited for when the session was left is waited for first. */
  async #begin(): Promise<void> {
    await this.#proof.keepLate()
    await this.#rounds.restoreFiles()
    const { waiting } = this.#log.state
    // From the session before it.
    if (this.#options.asked.isPaused) this.#log.emit({ type: 'paused' })
    if (waiting?.reason === 'provider-away') this.#retryPolicy.endProviderWait()
    else if (waiting !== null && this.#options.asked.endedBy === null) {
      await this.#retryPolicy.waitOn(waiting.until, this.#budget.timeLeftMs)
    }
    if (this.#log.state.claim.state !== 'nominated') this.#ahead.lookAtUsage()
  }

  /** The round once all is read that it is given to work with: after that wait it is asked for anew. */
  async #roundWithMaterials(step: RoundStep, tree: string, memory: MemorySnapshot): Promise<SessionOutcome | null> {
    const scope = this.#scopes.toEnter(step)
    if (scope !== null) return await this.#enterScope(scope)
    if (this.#answers.isReadyFor(step.round)) return await this.#tryRound(step, tree, memory)
    await this.#answers.makeReady(step.round)
    this.#tree = tree
    return null
  }

  /** Enters a scope, if nothing is in the way of its first round; an outcome if the session ends first. */
  async #enterScope(scope: RoundScope): Promise<SessionOutcome | null> {
    const { asked } = this.#options
    if (asked.endedBy !== null) return { kind: 'interrupted', by: asked.endedBy }
    if (asked.isPaused) return await this.#hold()
    const limit = this.#budget.limitReached(this.#log.state.roundsUsed)
    if (limit !== null) return { kind: 'limit', limit }
    await this.#scopes.enter(scope)
    this.#memory.forget()
    return null
  }

  /** A step that is no round, if nothing is in its way; an outcome if the session ends first. */
  async #ownStep(step: OwnStep, tree: string): Promise<SessionOutcome | null> {
    const { asked } = this.#options
    if (asked.endedBy !== null) return { kind: 'interrupted', by: asked.endedBy }
    if (asked.isPaused && this.#log.state.replan === null && this.#steps.waits(step)) return await this.#hold()
    // A claim is not left unproved for a limit, but after one that was refused another one is.
    const isFirstClaim = step.kind === 'claim' && this.#log.state.claim.state !== 'refused'
    const limit = isFirstClaim ? null : this.limitOfPlan
    if (limit !== null) return { kind: 'limit', limit }
    this.#tree = await this.#steps.carryOut(step, tree)
    const leavesMemory = step.kind === 'note' || step.kind === 'enter' || (step.kind === 'look' && !step.keep)
    if (!leavesMemory) this.#memory.forget()
    return null
  }

  /** The round, if nothing is in its way, and what follows; an outcome if the session ends. */
  async #tryRound(step: RoundStep, tree: string, memory: MemorySnapshot): Promise<SessionOutcome | null> {
    const { asked } = this.#options
    const isReplan = step.kind === 'replan'
    if (asked.endedBy !== null) return { kind: 'interrupted', by: asked.endedBy }
    if (asked.isPaused && !isReplan) return await this.#hold()
    const refused = endOfRefusals(this.#log.state, step.round.answer)
    if (refused !== null) return refused
    const limit = isReplan ? this.limitOfPlan : this.#budget.limitReached(this.#roundsBefore(step))
    if (limit !== null) return { kind: 'limit', limit }
    const wanted = this.#providers.complete(step.round.thread)
    const usage = wanted.provider === undefined ? this.#retryPolicy.beforeRound(this.#isFirst) : null
    if (usage !== null) return await this.#follow(usage.cause, usage.after, usage.reason)
    const way = this.#providers.take(wanted)
    // The template is asked anew: a person may have said something meanwhile.
    if (way === null) return await this.#lookAtProvider(wanted)
    const thread = this.#providers.follow(wanted, way)
    if (thread.provider === undefined) this.#isFirst = false
    if (isReplan) this.planChange.begin(memory)
    this.#planCheck.beforeRound(memory)
    const played = await this.#rounds.play({ ...step, round: { ...step.round, thread } }, tree)
    const { outcome, isShown } = played
    this.#tree = played.tree
    const isOver = isReplan && this.#log.state.replan === null
    // How the turn of a recording once ended calls for nothing now.
    if (asked.ending.aborted || isOver || isShown) return null
    const follows = this.#afterRound(outcome, thread)
    const isReplay = this.#options.engines.of(thread).replays === true
    return await this.#follow(outcome, isReplay ? withoutHint(follows) : follows, 'round-failed')
  }

  #afterRound(outcome: RoundOutcome, thread: ThreadSpec): AfterRound {
    return this.#providers.after(outcome, thread) ?? this.#retryPolicy.after(outcome, thread)
  }

  /** Asks the provider of the next thread whether it is there; an outcome if the session ends for it. */
  async #lookAtProvider(thread: ThreadSpec): Promise<SessionOutcome | null> {
    const look = await this.#providers.look(thread, this.#options.asked.stopping)
    if (look.kind === 'end') return look.outcome
    if (look.kind === 'wait') {
      this.#leaveAlone()
      await this.#retryPolicy.waitForProvider(look, this.#budget.timeLeftMs)
    }
    return null
  }

  /** How many rounds have been used up as far as this one is concerned: a free one needs none that is left. */
  #roundsBefore({ round }: RoundStep): number {
    const { roundsUsed, kind } = this.#log.state
    return partOf(kind, round.part ?? null).free ? Math.max(0, roundsUsed - 1) : roundsUsed
  }

  /** As `Holds.hold`. */
  async #hold(): Promise<SessionOutcome | null> {
    this.#leaveAlone()
    return await this.#holds.hold()
  }

  /** A review of what is claimed, if nothing is in its way; an outcome if the session ends. */
  async #review(causes: readonly ReviewCause[], tree: string): Promise<SessionOutcome | null> {
    const { asked } = this.#options
    if (asked.endedBy !== null) return { kind: 'interrupted', by: asked.endedBy }
    const limit = this.limitOfPlan
    if (limit !== null) return { kind: 'limit', limit }
    const thread = this.#providers.completeReviewer({ ...REVIEWER, model: this.#log.state.review?.model ?? null })
    const usage = thread.provider === undefined ? this.#retryPolicy.beforeRound(false) : null
    if (usage !== null) return await this.#follow(usage.cause, usage.after, usage.reason)
    const way = this.#providers.take(thread)
    if (way === null) return await this.#lookAtProvider(thread)
    const outcome = await this.#turns.review(causes, tree, way)
    const after = this.#afterRound(outcome, this.#providers.follow(thread, way))
    return asked.ending.aborted ? null : await this.#follow(outcome, after, 'round-failed')
  }

  /** While nothing runs for long, no codex is kept waiting, and anybody may change files. */
  #leaveAlone(): void {
    this.#ahead.discard()
    this.#tree = null
    this.#memory.forget()
    this.#answers.forgetFile()
  }

  /**
   * What comes after a round that ended so; an outcome if the session ends with it.
   * @param reason of the wait, if time may mend it
   */
  async #follow(outcome: RoundOutcome, after: AfterRound, reason: WaitReason): Promise<SessionOutcome | null> {
    switch (after.kind) {
      case 'end':
        return after.outcome
      case 'wait':
        this.#leaveAlone()
        await this.#retryPolicy.wait(reason, outcome, after.until, this.#budget.timeLeftMs)
        return null
      case 'ask-template':
        // What is to be done about it would be said of a round that never comes.
        if (this.#budget.limitReached(this.#log.state.roundsUsed) !== null) return null
        return followStall(this.#log, this.#options.policy.stallRounds)
      default:
        return unreachable(after)
    }
  }

  /** What threads are not to read and nothing keeps them from, in a sentence; none where all is kept from them. */
  #unhidden(): string[] {
    const { template, engines, closed } = this.#options
    const paths = template.threads.flatMap(({ thread }) =>
      engines.of(thread).hidesFiles ? [] : (withoutSecrets(thread, closed()).unreadable ?? []),
    )
    if (paths.length === 0) return []
    const [first, ...others] = new Set(paths)
    const files = others.length === 0 ? first : `${first}, and ${others.length} more`
    return [`Nothing keeps the agents of this session from reading what they are not to see (${files}): ${IT_TAKES}`]
  }

  /** Those of the start in one event, so that views can tell them in one line; what comes up later is told one by one. */
  #tellRemarks(ofStart: readonly string[] | null = null): void {
    const remarks = [...this.#options.takeRemarks(), ...(ofStart ?? [])]
    for (const [message, ...more] of ofStart === null ? remarks.map(each => [each]) : [remarks])
      if (message !== undefined)
        this.#log.emit({ type: 'warning', round: null, message, ...(more.length > 0 && { more }) })
  }

  async #end(came: SessionOutcome): Promise<SessionOutcome> {
    // What a person does about it ends with going on, which a call never does.
    const outcome = came.kind === 'needs-person' && isCall(this.#log.state) ? { ...came, hint: null } : came
    this.#stage = 'ending'
    this.#ahead.discard()
    await this.#options.engines.settle()
    if (outcome.kind === 'limit') await this.#proof.atLimit()
    emitRestored(this.#log, await this.#options.guard.check())
    await this.#proof.finish()
    this.#tellRemarks()
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
}

function wordsForEndedLook(directory: string): string {
  return `git did not come to the end of its look at ${directory} in the time of the session: give it more with --max-time, have git ignore what is large there, or see whether a disk hangs.`
}

function wordsForFullDisk(directory: string): string {
  return `No room is left on the disk of ${directory}, and the last rounds left everything as it was: free some before the session goes on.`
}

const IT_TAKES = 'that takes the sandbox workspace-write.'
const FREE_SPACE = { do: 'free-disk-space' } as const

/** A recording that cannot be played says itself what to mend; codex has nothing to do with it. */
function withoutHint(after: AfterRound): AfterRound {
  if (after.kind !== 'end' || after.outcome.kind !== 'needs-person') return after
  return { ...after, outcome: { ...after.outcome, hint: null } }
}

/** What is known of a reviewer's thread before its input is made up. */
const REVIEWER = { agent: 'reviewer', developerInstructions: '', effort: null } as const
