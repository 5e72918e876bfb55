import { TemplateError } from '../base/errors.ts'
import type { EngineEvent, PreparedRound, ThreadSpec } from '../core/engine.ts'
import { countsAsRound, type RoundOutcome } from '../core/events/outcome.ts'
import { WIND_DOWN, WIND_DOWN_ANSWER } from '../core/rules/notices.ts'
import type { ReviewCause } from '../core/rules/review.ts'
import type { MemorySnapshot } from '../core/shapes/memory.ts'
import { countTasks } from '../core/state/plan.ts'
import { partOf, roundTokens } from '../core/state/state.ts'
import { type BesideSpec, inEffect, inTemplate, type RoundSpec, type RoundStep } from '../core/template.ts'
import { findImages, mentionsImage } from '../workspace/files/images.ts'
import type { Answers } from './answers.ts'
import type { Budget } from './budget.ts'
import type { BesideTurn } from './delegation/agent-call.ts'
import type { AgentBook } from './delegation/agent-request.ts'
import { Delegation } from './delegation/delegation.ts'
import type { FilesAtHand } from './files-at-hand.ts'
import type { Hooks } from './hooks.ts'
import type { RunnerOptions } from './options.ts'
import type { PlanChange } from './plan/plan-change.ts'
import { type EndedTurn, playRound, type RoundPlayOptions } from './play-round.ts'
import { judgeClaim } from './proof/claim.ts'
import type { ContractTurn, ContractWork } from './proof/contract/contract.ts'
import { emitRestored, type Proof } from './proof/proof.ts'
import { reviewClaim } from './proof/review.ts'
import type { RoundProviders, Way } from './providers/round-providers.ts'
import { type SessionShell, shellTools, withoutSecrets } from './shell/session-shell.ts'
import { StepwiseRound } from './shell/stepwise.ts'
import type { ThreadAhead } from './thread-ahead.ts'
import { answerAskPerson, answerInTemplate, answerRunAgent, HostTools } from './tools.ts'

/** Parts of the session that its rounds use. */
interface RoundMeans {
  budget: Budget
  providers: RoundProviders
  ahead: ThreadAhead
  answers: Answers
  atHand: FilesAtHand
  proof: Proof
  planChange: PlanChange
  hooks: Hooks
  /** Runs commands with secrets for agents; null: no agent can ask for one. */
  sessionShell: SessionShell | null
}

/**
 * Plays the rounds and reviews of a session, one at a time, records them and judges their claims. A person can interrupt
 * each.
 */
export class Rounds {
  readonly #options: RunnerOptions
  readonly #means: RoundMeans
  /** Warnings already shown. */
  readonly #warnings = new Set<string>()
  /** Gives agents tasks for the running round, and lists the agents at work. */
  readonly delegation: Delegation
  readonly #tools: HostTools
  #current: PreparedRound | null = null
  #interrupting = new AbortController()
  /** Files into which a command of this turn wrote a secret, readable by its agent's own shell. */
  #leaked: readonly string[] = []
  /** Journals reports of agents as events of the running round. */
  #report: (event: EngineEvent) => void = () => {}
  #synced: Promise<void> = Promise.resolve()

  constructor(options: RunnerOptions, means: RoundMeans) {
    this.#options = options
    this.#means = means
    const { log, redactor, template, agents, engines, clock, roundsDirectory, policy } = options
    const book: AgentBook = {
      ...agents.book,
      thread: async name => this.#onProvider(await agents.book.thread(name)),
    }
    const { directory, platform, atOnce } = agents
    const onRoundEvent = (event: EngineEvent) => this.#report(event)
    const of = { log, engines, clock, redactor, roundsDirectory, policy }
    this.delegation = new Delegation({ ...of, book, directory, platform, atOnce, onRoundEvent })
    this.#tools = new HostTools([
      answerAskPerson({ log, redact: text => redactor.text(text) }),
      answerRunAgent((task, over) => {
        return this.delegation.run({ ...task, door: 'tool', thread: log.state.running?.thread ?? null }, over)
      }),
      ...this.#shellTools(),
      ...(template.tools ?? []).map(tool => answerInTemplate(log.state.template, tool)),
    ])
  }

  /**
   * Plays the next round. `isShown`: it was a turn of a recording. `tree`: the fingerprint afterwards; null: take it again.
   */
  async play(
    { kind, round: spec }: RoundStep,
    treeBefore: string,
  ): Promise<{ outcome: RoundOutcome; isShown: boolean; tree: string | null }> {
    const { template, log, personsFiles, engines, clock } = this.#options
    const { ahead, answers, atHand, proof, planChange, hooks } = this.#means
    const round = log.state.roundsUsed + 1
    const prepared = ahead.take(spec.thread)
    const { thread } = prepared
    const engine = engines.of(thread)
    const inputs = answers.inputsOf(spec)
    const startedAt = clock.monotonic()
    const files = inTemplate(log.state.template, 'personsFiles', () => template.personsFiles?.(log.state) ?? [])
    personsFiles?.before(files)
    this.#begin({ kind, round: spec }, { round, thread, input: inputs.own.input, treeBefore })
    const { state: begun } = log
    const { outcome: came, message } = await this.#turn(prepared, round, inputs, spec)
    const isStale = () => begun.kind?.replansItself === true && log.state.replansAsked !== begun.replansAsked
    // A person asked for another plan before the end was journaled: the round does not count.
    const outcomeNow = (): RoundOutcome =>
      came.class === 'worked' && isStale() ? { class: 'interrupted', message: null } : came
    const outcome = outcomeNow()
    // Settle the engines if leftover processes could write at a wrong time:
    // - The round did not work: they must not write during the look at the files.
    // - There is a plan: changes of it between two rounds count as a person's.
    // - Without a sandbox, a command may outlive its round; the next round is told that it was ended.
    // - A hook runs: they must not change the files that a person's hook executes.
    const { taskPlan, sandbox } = log.state
    const isHooked = !this.#options.asked.ending.aborted && engine.replays !== true && hooks.has('after_round')
    if (outcome.class !== 'worked' || taskPlan !== null || sandbox === FULL_ACCESS || isHooked) await engines.settle()

    const refusal = isHooked ? (await hooks.run('after_round', round, outcome.class)).refusal : null
    await this.#synced
    if (outcome.class === 'worked' && kind === 'round') await answers.take(spec, round, message, isStale)
    // A round that changes the plan must not claim anything.
    if (kind === 'replan') await this.#options.memory.withdrawClaim()
    const { state } = log
    const part = partOf(state.kind, spec.part ?? null)
    // Each shown turn of a replay counts, or it would be shown again forever.
    const isShown = engine.replays === true && state.running?.turn != null
    const counts =
      kind === 'round' && !part.free && ((isShown && outcome.class !== 'interrupted') || this.#counts(outcome))
    const recorded = { round, outcomeNow, counts, startedAt, treeBefore }
    const { tree, memory } = await recordRound(recorded, this.#options)
    this.#syncSoon()
    this.#tellEnded(round)
    emitWarnings(this.#options)
    atHand.leave(memory)
    const { last } = log.state
    if (last !== null) await proof.afterRound(last)
    const ended = last?.outcome ?? outcome
    const played = { outcome: ended, isShown }
    if (kind === 'round') {
      const judges = part.claims && !this.#isOffPlan(memory)
      const after = judges ? this.#judge(memory, ended, tree, refusal !== null) : this.#goOn(spec, ended, tree)
      return { ...played, tree: await after }
    }
    await planChange.end(ended.class, memory, state)
    return { ...played, tree }
  }

  /** Journals the processes that the round left running and codemachine ended. */
  #tellEnded(round: number): void {
    const ended = this.#options.takeEnded?.() ?? []
    if (ended.length === 0) return
    const message = `Round ${round} left this running, and codemachine ended it: ${ended.join('; ')}`
    this.#options.log.emit({ type: 'warning', round, message, ended: [...ended] })
  }

  /** Journals the start of a round. */
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
      ...(engine.reaches && { reaches: [...engine.reaches] }),
      ...(thread.provider === undefined ? {} : { provider: thread.provider }),
      model: thread.model,
      input,
      ...(keepsClaim && { keepsClaim: true as const }),
      ...(spec.part === undefined ? {} : { part: spec.part }),
    })
  }

  /** True if there is a plan whose tasks are not exactly the known done ones: then no claim counts yet. */
  #isOffPlan({ tasks }: MemorySnapshot): boolean {
    const { taskPlan } = this.#options.log.state
    if (taskPlan === null) return false
    const done = new Set(taskPlan.tasks.filter(task => task.done).map(({ id }) => id))
    return tasks.length !== taskPlan.tasks.length || !tasks.every(({ id }) => done.has(id))
  }

  /** Withdraws the claim of a round that may not claim anything. Resolves with the fingerprint afterwards. */
  async #goOn({ part }: RoundStep['round'], outcome: RoundOutcome, tree: string): Promise<string> {
    const { memory, template, log } = this.#options
    await memory.withdrawClaim()
    this.#means.atHand.forget()
    if (outcome.class !== 'worked') return tree
    const { state } = log
    const problem = (await inEffect(state.template, 'afterRound', () => template.afterRound?.(state))) ?? null
    if (problem !== null) log.emit({ type: 'warning', round: null, message: problem })
    return partOf(log.state.kind, part ?? null).free ? tree : await this.#means.proof.runEachRound(tree)
  }

  /** Judges the round's claim; without one, runs the gates of every round. Resolves with the fingerprint. */
  async #judge(memory: MemorySnapshot, outcome: RoundOutcome, tree: string, isRefused: boolean): Promise<string> {
    const { log } = this.#options
    const after = (await judgeClaim(memory, this.#options, isRefused)) ?? tree
    if (log.state.claim.state === 'nominated' || outcome.class !== 'worked') return after
    return await this.#means.proof.runEachRound(after)
  }

  /** True for a round that counts against `--rounds`; one that the session's end interrupted does not. */
  #counts(outcome: RoundOutcome): boolean {
    if (outcome.class === 'interrupted' && this.#options.asked.ending.aborted) return false
    return countsAsRound(outcome.class, this.#options.log.state.running?.hasWorked ?? false)
  }

  /** Syncs the journal without waiting. The next round throws the error when it ends. */
  #syncSoon(): void {
    this.#synced = this.#options.log.sync()
    this.#synced.catch(() => {})
  }

  /** Plays the turn of a round as its template wants it; `asked`: the template's part of the input. */
  async #turn(
    prepared: PreparedRound,
    round: number,
    { own: { input, asked: wanted }, beside: others }: ReturnType<Answers['inputsOf']>,
    {
      answer,
      timeoutMs,
      stepwise,
      goalText,
      beside = [],
    }: Pick<RoundSpec, 'answer' | 'timeoutMs' | 'stepwise' | 'goalText' | 'beside'>,
  ): Promise<EndedTurn> {
    this.#current = prepared
    this.#leaked = []
    this.#interrupting = new AbortController()
    const asked = answer === undefined ? {} : { outputSchema: answer.schema }
    const windDown = answer === undefined ? WIND_DOWN : WIND_DOWN_ANSWER
    const images = await this.#imagesOf(goalText === undefined ? wanted : `${goalText}\n${wanted}`, round)
    const turns = await Promise.all(
      others.map(async each => ({ input: each.input, ...(await this.#imagesOf(each.asked, round)) })),
    )
    const usual = this.#terms(prepared.thread)
    let working: Promise<unknown> = Promise.resolve()
    const terms: RoundPlayOptions = {
      ...usual,
      windDown,
      roundMs: timeoutMs,
      nextInput: stepwise && this.#stepwise(stepwise, prepared.thread),
      onRecord: (line: string) => this.#options.onRecord?.(round, line),
      onOpen: report => {
        usual.onOpen?.(report)
        working = this.#workBeside(beside, turns, round)
      },
      untilOthersEnd: (outcome, over) => this.#untilAgentsEnd(outcome, over, beside.length > 0),
    }
    const ended = await playRound(prepared, { round, input, ...images, ...asked }, terms)
    await working
    this.#current = null
    return this.#afterLeak(ended)
  }

  /** Plays the work beside a round's own turn. Resolves when all of it has ended, and is journaled. */
  #workBeside(
    specs: readonly BesideSpec[],
    turns: readonly Pick<BesideTurn, 'input' | 'images'>[],
    round: number,
  ): Promise<unknown> {
    const { answers, providers } = this.#means
    const ofOther = this.#current?.thread.engine !== undefined
    // Outputs are numbered, so they are kept one after the other.
    let kept = Promise.resolve()
    const working = Promise.all(
      specs.map(async (spec, at) => {
        const { name, answer } = spec
        const turn: BesideTurn = {
          input: '',
          ...turns[at],
          ...(answer && { outputSchema: answer.schema }),
          onRecord: line => this.#options.onRecord?.(round, line, name),
          take: message => {
            kept = kept.then(() => answers.take(spec, round, message, () => false))
            return kept
          },
        }
        // The provider of another engine's round says nothing of this one.
        const thread = this.#forRound(ofOther ? providers.complete(spec.thread) : spec.thread)
        await this.delegation.beside(name, thread, turn)
      }),
    )
    // The caller awaits it later.
    working.catch(() => {})
    return working
  }

  /** Has a claimed tree reviewed. Words of a person do not reach the reviewer. */
  async review(causes: readonly ReviewCause[], tree: string, way: Way): Promise<RoundOutcome> {
    const { means, log, engines, clock } = this.#options
    const { providers, answers } = this.#means
    if (means === null) throw new Error('Nothing of this session is proved.')
    this.#interrupting = new AbortController()
    return await reviewClaim(causes, tree, {
      log,
      engines,
      clock,
      answers,
      means,
      threadOf: thread => providers.follow(providers.completeReviewer(this.#hiding(thread)), way),
      playOf: thread => this.#terms(thread),
    })
  }

  /** Plays a turn of the contract's author, or of the agent that writes wrong versions. */
  async contractTurn(contract: ContractWork, turn: ContractTurn, tree: string, way: Way): Promise<RoundOutcome> {
    const { providers } = this.#means
    this.#interrupting = new AbortController()
    return await contract.play(turn, tree, {
      threadOf: thread => providers.follow(providers.completeReviewer(this.#hiding(thread)), way),
      playOf: thread => this.#terms(thread),
    })
  }

  /** Adds text to the running turn. Resolves with false if no turn takes it. */
  async steer(text: string): Promise<boolean> {
    const current = this.#current
    if (current === null) return false
    const { images } = await this.#imagesOf(text, this.#options.log.state.running?.round ?? null)
    return await current.steer(text, images)
  }

  interrupt(): void {
    this.#interrupting.abort()
  }

  /** True if a warning should be shown: it is new, unusual, and the cap is not reached. */
  #isNews(warning: string): boolean {
    const { size } = this.#warnings
    return size < MOST_WARNINGS && !this.#options.isUsual(warning) && this.#warnings.add(warning).size > size
  }

  /** Returns the pictures that a text names. Journals once per run why another picture is unusable. */
  async #imagesOf(text: string, round: number | null): Promise<{ images?: readonly string[] }> {
    if (!mentionsImage(text)) return {}
    const { agents, deniedPaths, log } = this.#options
    const { paths, problem } = await findImages(agents.directory, text, [
      ...deniedPaths(),
      ...(this.#current?.thread.unreadable ?? []),
    ])
    if (problem !== null && this.#isNews(problem)) log.emit({ type: 'warning', round, message: problem })
    return paths.length === 0 ? {} : { images: paths }
  }

  #shellTools(): ReturnType<typeof shellTools> {
    const { sessionShell } = this.#means
    if (sessionShell === null) return []
    const thread = () => this.#current?.thread ?? {}
    return shellTools(sessionShell, thread, files => this.#leave(files))
  }

  /** Returns the function that gives the next input in a round without tools. */
  #stepwise(terms: NonNullable<RoundSpec['stepwise']>, thread: ThreadSpec): RoundPlayOptions['nextInput'] {
    const { log } = this.#options
    const { sessionShell } = this.#means
    if (sessionShell === null)
      throw new TemplateError(`the template "${log.state.template}" has a round without tools, and no \`usesShell\``)
    const round = new StepwiseRound({ ...terms, shell: sessionShell, thread, onLeak: files => this.#leave(files) })
    return (message, over) => round.next(message, over)
  }

  /** Ends the turn of an agent whose own shell could read these files: its unreadable paths are fixed at its start. */
  #leave(files: readonly string[]): void {
    if (this.#current === null || this.#current.thread.noShell) return
    this.#leaked = files
    this.interrupt()
  }

  /** Adds the reason to a turn that ended because of a leaked secret, not because of a person. */
  #afterLeak(ended: EndedTurn): EndedTurn {
    const [first] = this.#leaked
    if (first === undefined || ended.outcome.class !== 'interrupted' || this.#options.asked.ending.aborted) return ended
    const message = `A command wrote a secret into ${first}, and its agent may have read it.`
    return { ...ended, outcome: { ...ended.outcome, message } }
  }

  /** Waits until the agents and the commands of the round have ended. */
  async #untilAgentsEnd(outcome: RoundOutcome, ending: AbortSignal, isBeside = false): Promise<void> {
    await this.#means.sessionShell?.settled()
    const isEnd = outcome.class !== 'worked' && !isBeside
    if (isEnd || ending.aborted) return await this.delegation.end()
    const end = () => void this.delegation.end()
    ending.addEventListener('abort', end, { once: true })
    await this.delegation.settled()
    ending.removeEventListener('abort', end)
  }

  /** Completes an agent's thread with the provider of its round, and hides the same paths from it. */
  #onProvider(found: Awaited<ReturnType<AgentBook['thread']>>): Awaited<ReturnType<AgentBook['thread']>> {
    return 'problem' in found ? found : { thread: this.#forRound(found.thread) }
  }

  #forRound(wanted: ThreadSpec): ThreadSpec {
    const round = this.#current?.thread
    if (round === undefined) return wanted
    const thread = this.#means.providers.completeFor(round, wanted)
    return round.unreadable === undefined ? thread : { ...thread, unreadable: round.unreadable }
  }

  /** Hides from a reviewer all paths that any thread of the session may not read. */
  #hiding(thread: ThreadSpec): ThreadSpec {
    const unreadable = new Set(this.#options.template.threads.flatMap(each => each.thread.unreadable ?? []))
    const hiding = unreadable.size === 0 ? thread : { ...thread, unreadable: [...unreadable] }
    return withoutSecrets(hiding, this.#options.deniedPaths())
  }

  #terms(thread: ThreadSpec): Omit<RoundPlayOptions, 'windDown'> {
    const { provider } = thread
    const { log, asked, policy, clock, roundsDirectory, redactor, engines } = this.#options
    const isReplay = engines.of(thread).replays === true
    const { budget, ahead } = this.#means
    return {
      log,
      clock,
      roundsDirectory,
      redactLine: line => redactor.line(line),
      graceMs: policy.graceMs,
      maxUsage: provider === undefined ? budget.maxUsage : null,
      login: engines.loginOf(thread),
      timeLeftMs: budget.timeLeftMs,
      ending: AbortSignal.any([asked.ending, this.#interrupting.signal]),
      onEvent: event => {
        if (event.type === 'warning' && !this.#isNews(event.message)) return
        // The tokens of a recording are not used now.
        if (event.type === 'usage' && isReplay) return
        log.emit(engines.reported(event, thread))
        // During a review it is unknown if another round follows.
        if (event.type === 'turn-started' && log.state.running !== null) ahead.startNext()
      },
      onToolCall: (call, over) => this.#tools.answer(call, over),
      onOpen: report => {
        this.#report = report
      },
      onWindDown: () => this.delegation.windDown(),
      untilOthersEnd: (outcome, over) => this.#untilAgentsEnd(outcome, over),
    }
  }
}

const FULL_ACCESS = 'danger-full-access'

/** A round that has been played and has no process left. */
interface PlayedRound {
  round: number
  /** Returns the outcome, as far as it is known when the end is journaled. */
  outcomeNow(): RoundOutcome
  counts: boolean
  /** Start on the monotonic clock, ms. */
  startedAt: number
  treeBefore: string
}

type RecordRoundOptions = Pick<RunnerOptions, 'log' | 'clock' | 'workTree' | 'guard' | 'memory' | 'personsFiles'>

/** Restores the person's files that the round changed, and journals each. */
export async function restorePersonsFiles({ log, personsFiles }: RecordRoundOptions): Promise<void> {
  const changes = (await personsFiles?.after()) ?? []
  const round = log.state.last?.round ?? 0
  for (const change of changes) log.emit({ type: 'goal-restored', round, ...change })
}

/** Records the files after a round, and journals its end. Returns the fingerprint and the memory. */
async function recordRound(
  { round, outcomeNow, counts, startedAt, treeBefore }: PlayedRound,
  options: RecordRoundOptions,
): Promise<{ tree: string; memory: MemorySnapshot }> {
  const { log, clock, workTree, guard, memory } = options
  // Check the guard first: a nested repository may be one of its folders.
  const restored = await guard.check()
  // Read one after the other: if the memory cannot be read, no git may be left running.
  const left = await memory.read()
  const tree = await workTree.take()
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
  await restorePersonsFiles(options)
  return { tree, memory: left }
}

/** Most different codex warnings that one session shows: codex repeats them in every round. */
const MOST_WARNINGS = 100

/** Journals pending warnings; those of the start in one event, so that views can show one line. */
export function emitWarnings(
  { log, takeRemarks }: Pick<RunnerOptions, 'log' | 'takeRemarks'>,
  ofStart: readonly string[] | null = null,
): void {
  const remarks = [...takeRemarks(), ...(ofStart ?? [])]
  for (const [message, ...more] of ofStart === null ? remarks.map(each => [each]) : [remarks])
    if (message !== undefined) log.emit({ type: 'warning', round: null, message, ...(more.length > 0 && { more }) })
}
