import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../base/clock.ts'
import type { Engines, PreparedRound, ThreadSpec } from '../core/engine.ts'
import { countsAsRound, type RoundOutcome } from '../core/events/outcome.ts'
import { higherEffort } from '../core/rules/stall.ts'
import type { Memory, MemorySnapshot, PersonsFiles } from '../core/shapes/memory.ts'
import { countTasks } from '../core/state/plan.ts'
import { partOf, roundTokens } from '../core/state/state.ts'
import { inEffect, inTemplate, type RoundStep, type Template } from '../core/template.ts'
import type { Answers } from './answers.ts'
import type { CurrentTurn } from './current-turn.ts'
import type { RepositoryGuard, RunnerOptions, WorkTree } from './options.ts'
import type { PersonAsked } from './person.ts'
import type { PlanChange } from './plan/plan-change.ts'
import { judgeClaim } from './proof/claim.ts'
import type { Proof } from './proof/gates.ts'
import { emitRestored } from './proof/gates.ts'
import type { RoundProviders } from './providers/round-providers.ts'
import type { Budget } from './retry-policy.ts'
import type { SessionLog } from './session-log.ts'
import { withoutSecrets } from './shell/session-shell.ts'

export interface RoundsOptions extends RunnerOptions {
  ahead: ThreadAhead
  turns: CurrentTurn
  answers: Answers
  planChange: PlanChange
  atHand: MemoryAtHand
  proof: Proof
  /** Journals warnings that have come up meanwhile. */
  tellRemarks(): void
}

/** The rounds of a session, one after the other: each is played, recorded, and what it claims is judged. */
export class Rounds {
  readonly #options: RoundsOptions
  #synced: Promise<void> = Promise.resolve()

  constructor(options: RoundsOptions) {
    this.#options = options
  }

  /**
   * Plays the next round. `isShown`: it was a turn of a recording; `tree`: the fingerprint afterwards, null if it has to be
   * taken again.
   */
  async play(
    { kind, round: spec }: RoundStep,
    treeBefore: string,
  ): Promise<{ outcome: RoundOutcome; isShown: boolean; tree: string | null }> {
    const { engines, clock, answers } = this.#options
    const round = this.#options.log.state.roundsUsed + 1
    const prepared = this.#options.ahead.take(spec.thread)
    const { thread } = prepared
    const engine = engines.of(thread)
    const { input, asked } = answers.inputOf(spec)
    const startedAt = clock.monotonic()
    const { template, log, personsFiles } = this.#options
    const files = inTemplate(log.state.template, 'personsFiles', () => template.personsFiles?.(log.state) ?? [])
    personsFiles?.before(files)
    this.#begin({ kind, round: spec }, { round, thread, input, treeBefore })
    const { state: begun } = this.#options.log
    const { outcome: came, message } = await this.#options.turns.round(prepared, round, { input, asked }, spec)
    const isStale = () =>
      begun.kind?.replansItself === true && this.#options.log.state.replansAsked !== begun.replansAsked
    // A person wanted another plan before its end was journaled: nothing of it counts.
    const outcomeNow = (): RoundOutcome =>
      came.class === 'worked' && isStale() ? { class: 'interrupted', message: null } : came
    const outcome = outcomeNow()
    // What a round left running that did not come to its end must not write while the files are looked at; nor, where
    // there is a plan, when they have been: a change of it between two rounds is a person's.
    // Without a sandbox a command may outlive its round: it is ended before the next one is told of it.
    const { taskPlan, sandbox } = this.#options.log.state
    if (outcome.class !== 'worked' || taskPlan !== null || sandbox === FULL_ACCESS) await engines.settle()

    await this.#synced
    if (outcome.class === 'worked' && kind === 'round') await answers.take(spec, round, message, isStale)
    // A round that changes the plan makes no claim.
    if (kind === 'replan') await this.#options.memory.withdrawClaim()
    const { state } = this.#options.log
    const part = partOf(state.kind, spec.part ?? null)
    // Of a replay each turn that was shown counts: it would be shown again for ever.
    const isShown = engine.replays === true && state.running?.turn != null
    const counts =
      kind === 'round' && !part.free && ((isShown && outcome.class !== 'interrupted') || this.#counts(outcome))
    const played = { round, outcomeNow, counts, startedAt, treeBefore }
    const { tree, memory } = await recordRound(played, this.#options)
    this.#syncSoon()
    this.#tellEnded(round)
    this.#options.tellRemarks()
    this.#options.atHand.leave(memory)
    const { last } = this.#options.log.state
    if (last !== null) await this.#options.proof.afterRound(last)
    const ended = last?.outcome ?? outcome
    if (kind === 'replan') await this.#options.planChange.end(ended.class, memory, state)
    else if (!part.claims || this.#isOffPlan(memory))
      return { outcome: ended, isShown, tree: await this.#goOn(spec, ended, tree) }
    else return { outcome: ended, isShown, tree: await this.#judge(memory, ended, tree) }
    return { outcome: ended, isShown, tree }
  }

  /** Puts back what a round has changed of the person's files that was cut off with codemachine. */
  async restoreFiles(): Promise<void> {
    await restorePersonsFiles(this.#options)
  }

  /** Journals what the round had left running and was ended. */
  #tellEnded(round: number): void {
    const ended = this.#options.takeEnded?.() ?? []
    if (ended.length === 0) return
    const message = `Round ${round} had left this running, which was ended with it: ${ended.join('; ')}`
    this.#options.log.emit({ type: 'warning', round, message, ended: [...ended] })
  }

  /** Journals that a round begins. */
  #begin(
    { kind, round: spec }: RoundStep,
    { round, thread, input, treeBefore }: { round: number; thread: ThreadSpec; input: string; treeBefore: string },
  ): void {
    const { log, engines } = this.#options
    const engine = engines.of(thread)
    const { claim, kind: template } = log.state
    const onlyLooks = kind === 'round' && thread.readOnly === true && partOf(template, spec.part ?? null).free
    const keepsClaim = onlyLooks && claim.state === 'accepted' && claim.tree === treeBefore
    log.emit({
      type: 'round-started',
      round,
      agent: thread.agent,
      engine: engine.name,
      codex: engine.version,
      ...(engine.replays && { replayed: true as const }),
      ...(thread.provider === undefined ? {} : { provider: thread.provider }),
      model: thread.model,
      input,
      ...(keepsClaim && { keepsClaim: true as const }),
      ...(spec.part === undefined ? {} : { part: spec.part }),
    })
  }

  /** True if there is a plan whose tasks are not exactly those known to be done: then nothing can be claimed yet. */
  #isOffPlan({ tasks }: MemorySnapshot): boolean {
    const { taskPlan } = this.#options.log.state
    if (taskPlan === null) return false
    const done = new Set(taskPlan.tasks.filter(task => task.done).map(({ id }) => id))
    return tasks.length !== taskPlan.tasks.length || !tasks.every(({ id }) => done.has(id))
  }

  /** Goes on after a round that may not claim anything; resolves with the fingerprint afterwards. */
  async #goOn({ part }: RoundStep['round'], outcome: RoundOutcome, tree: string): Promise<string> {
    const { memory, template, log, proof } = this.#options
    await memory.withdrawClaim()
    this.#options.atHand.forget()
    if (outcome.class !== 'worked') return tree
    const { state } = log
    const problem = (await inEffect(state.template, 'afterRound', () => template.afterRound?.(state))) ?? null
    if (problem !== null) log.emit({ type: 'warning', round: null, message: problem })
    return partOf(log.state.kind, part ?? null).free ? tree : await proof.runEachRound(tree)
  }

  /** Judges the claim of the round; without one, runs the gates of every round. Resolves with the fingerprint afterwards. */
  async #judge(memory: MemorySnapshot, outcome: RoundOutcome, tree: string): Promise<string> {
    const { log, proof } = this.#options
    const after = (await judgeClaim(memory, this.#options)) ?? tree
    if (log.state.claim.state === 'nominated' || outcome.class !== 'worked') return after
    return await proof.runEachRound(after)
  }

  /** True for a round that counts against `--rounds`; one that the end of the session cut off does not. */
  #counts(outcome: RoundOutcome): boolean {
    if (outcome.class === 'interrupted' && this.#options.asked.ending.aborted) return false
    return countsAsRound(outcome.class, this.#options.log.state.running?.hasWorked ?? false)
  }

  /** The next round need not wait for the disk; what fails is thrown when that round has ended. */
  #syncSoon(): void {
    this.#synced = this.#options.log.sync()
    this.#synced.catch(() => {})
  }
}

const FULL_ACCESS = 'danger-full-access'

/** The memory files between two rounds: as the last round left them, or read again. */
export class MemoryAtHand {
  readonly #log: SessionLog
  readonly #memory: Memory
  #left: MemorySnapshot | null = null

  constructor({ log, memory }: { log: SessionLog; memory: Memory }) {
    this.#log = log
    this.#memory = memory
  }

  /** Keeps what a round has left, which spares a second read until something else may have written. */
  leave(memory: MemorySnapshot): void {
    this.#tell(memory)
    this.#left = memory
  }

  /** Drops what is kept: something else may have written since. */
  forget(): void {
    this.#left = null
  }

  /** The memory before a round. A claim is taken back first if the round changes the plan. */
  async now(): Promise<MemorySnapshot> {
    for (;;) {
      const { replan } = this.#log.state
      if (replan !== null) await this.#memory.withdrawClaim()
      const memory = (replan === null ? this.#left : null) ?? (await this.#read())
      this.#left = null
      if (replan !== null || this.#log.state.replan === null) return memory
    }
  }

  async #read(): Promise<MemorySnapshot> {
    const memory = await this.#memory.read()
    this.#tell(memory)
    return memory
  }

  #tell({ problems, warning, goalChange }: MemorySnapshot): void {
    for (const problem of problems) this.#log.emit({ type: 'memory-broken', problem })
    const round = this.#log.state.last?.round ?? 0
    if (goalChange !== undefined) this.#log.emit({ type: 'goal-restored', round, ...goalChange })
    if (warning !== undefined) this.#log.emit({ type: 'warning', round: null, message: warning })
  }
}

/** A round that has played, of which nothing runs any more. */
interface PlayedRound {
  round: number
  /** How it has ended, as far as is known when that is journaled. */
  outcomeNow(): RoundOutcome
  counts: boolean
  /** On the monotonic clock, ms. */
  startedAt: number
  treeBefore: string
}

interface RecordRoundOptions {
  log: SessionLog
  clock: Clock
  workTree: WorkTree
  guard: RepositoryGuard
  memory: Memory
  personsFiles?: PersonsFiles
}

/** Puts back what was changed of the person's files, and journals it. */
async function restorePersonsFiles({
  log,
  personsFiles,
}: Pick<RecordRoundOptions, 'log' | 'personsFiles'>): Promise<void> {
  const changes = (await personsFiles?.after()) ?? []
  const round = log.state.last?.round ?? 0
  for (const change of changes) log.emit({ type: 'goal-restored', round, ...change })
}

/** Looks at what a round has left, and journals its end. Answers the files as they are now. */
async function recordRound(
  { round, outcomeNow, counts, startedAt, treeBefore }: PlayedRound,
  { log, clock, workTree, guard, memory, personsFiles }: RecordRoundOptions,
): Promise<{ tree: string; memory: MemorySnapshot }> {
  // First, for a repository in the work tree may be one of its folders.
  const restored = await guard.check()
  const [tree, left] = await Promise.all([workTree.take(), memory.read()])
  const { paths, count } = treeBefore === tree ? { paths: [], count: 0 } : await workTree.changed(treeBefore, tree)
  log.emit({
    type: 'round-ended',
    round,
    outcome: outcomeNow(),
    counts,
    durationMs: Math.round(clock.monotonic() - startedAt),
    tokens: roundTokens(log.state),
    treeBefore,
    treeAfter: tree,
    changed: paths,
    changedCount: count,
    memory: left.fingerprint,
    ...countTasks(left),
  })
  emitRestored(log, restored)
  await restorePersonsFiles({ log, ...(personsFiles && { personsFiles }) })
  return { tree, memory: left }
}

/** The most that the first round waits for what is used of the account, ms. What codex does after that, the round shows. */
const USAGE_MS = 15_000
/** After how long a look at the files is not believed any more before a round, ms. */
const STALE_MS = 1_000

export interface ThreadAheadOptions {
  log: SessionLog
  clock: Clock
  providers: Pick<RoundProviders, 'complete'>
  template: Template
  engines: Engines
  asked: PersonAsked
  budget: Budget
  closed: RunnerOptions['closed']
}

/** The threads of a session's rounds, and of these at most one ahead: started while the present one works. */
export class ThreadAhead {
  readonly #options: ThreadAheadOptions
  #ahead: PreparedRound | null = null
  #usage: Promise<void> = Promise.resolve()

  constructor(options: ThreadAheadOptions) {
    this.#options = options
  }

  /** Starts that of the round after the one that runs, if there may be one. */
  startNext(): void {
    const { log, template, asked, budget } = this.#options
    if (asked.endedBy !== null || asked.isPaused) return
    if (budget.limitReached(log.state.roundsUsed + 1) !== null) return
    const next = aheadOf(log, template)
    if (next) this.#start(this.#options.providers.complete(next))
  }

  /** Begins to have codex say what is used of the account, for the first round: it may have been used up elsewhere. */
  lookAtUsage(): void {
    this.#usage = this.#lookAtUsage()
    // Whoever waits for it is told.
    this.#usage.catch(() => {})
  }

  /** Waits until that is known, if it was asked for; true if it took so long that files may have changed meanwhile. */
  async waitForUsage(): Promise<boolean> {
    const { clock } = this.#options
    const from = clock.monotonic()
    await this.#usage
    return clock.monotonic() - from > STALE_MS
  }

  async #lookAtUsage(): Promise<void> {
    const { log, clock, template, asked, budget, providers } = this.#options
    if (asked.endedBy !== null || asked.isPaused || budget.limitReached(log.state.roundsUsed) !== null) return
    const wanted = aheadOf(log, template)
    const thread = wanted && providers.complete(wanted)
    // Other providers have nothing to do with the account.
    if (thread === null || thread.provider !== undefined) return
    const answered = new AbortController()
    const late = clock.wait(USAGE_MS, AbortSignal.any([answered.signal, asked.stopping])).then(() => null)
    const prepared = this.#start(thread)
    const limits = await Promise.race([prepared.limits(), late])
    answered.abort()
    // The session may have ended meanwhile.
    if (limits !== null && this.#ahead === prepared) log.emit({ type: 'limits', ...limits })
  }

  /** The one that was started, if it is what is wanted; else another. From now on it is the caller's. */
  take(wanted: ThreadSpec): PreparedRound {
    const thread = this.#asNow(wanted)
    const ahead = this.#ahead
    this.#ahead = null
    if (ahead && isDeepStrictEqual(ahead.thread, thread)) return ahead
    ahead?.discard()
    return this.#prepare(thread)
  }

  /** Ends what was started ahead, also before its thread was known. */
  discard(): void {
    this.#ahead?.discard()
    this.#ahead = null
    this.#options.engines.cool()
  }

  #start(thread: ThreadSpec): PreparedRound {
    this.#ahead ??= this.#prepare(this.#asNow(thread))
    return this.#ahead
  }

  /** What was started before a thread was known, and is not for the first one, is for none: it would wait all night. */
  #prepare(thread: ThreadSpec): PreparedRound {
    const { engines } = this.#options
    const prepared = engines.prepare(thread)
    engines.cool()
    return prepared
  }

  /** As it is started now: what it may not read changes while the session runs. */
  #asNow(thread: ThreadSpec): ThreadSpec {
    return withoutSecrets(this.#withEffort(thread), this.#options.closed())
  }

  /** A session that gets nowhere thinks harder; not so on a provider, of which nobody knows whether its model can. */
  #withEffort(thread: ThreadSpec): ThreadSpec {
    if (thread.provider !== undefined && thread.effort === null) return thread
    if (this.#options.log.state.stall.remedy !== 'more-effort') return thread
    return { ...thread, effort: higherEffort(thread.effort) }
  }
}

function aheadOf({ state }: SessionLog, template: Template): ThreadSpec | null {
  return inTemplate(state.template, 'ahead', () => template.ahead(state))
}
