import { TemplateError } from '../base/errors.ts'
import type { EngineEvent, PreparedRound, ThreadSpec } from '../core/engine.ts'
import type { RoundOutcome } from '../core/events/outcome.ts'
import { WIND_DOWN, WIND_DOWN_ANSWER } from '../core/rules/notices.ts'
import type { ReviewCause } from '../core/rules/review.ts'
import type { RoundSpec } from '../core/template.ts'
import { findImages, mentionsImage } from '../workspace/files/images.ts'
import type { Answers } from './answers.ts'
import { type AgentBook, Delegation } from './delegation/delegation.ts'
import type { RunnerOptions } from './options.ts'
import { type EndedTurn, playRound, type RoundPlayOptions } from './play-round.ts'
import { reviewClaim } from './proof/review.ts'
import type { RoundProviders, Way } from './providers/round-providers.ts'
import type { Budget, RetryPolicy } from './retry-policy.ts'
import { type SessionShell, shellTools, withoutSecrets } from './shell/session-shell.ts'
import { StepwiseRound } from './shell/stepwise.ts'
import { answerAskPerson, answerInTemplate, answerRunAgent, HostTools } from './tools.ts'

export interface CurrentTurnOptions extends Omit<RunnerOptions, 'providers'> {
  /** Runs the commands that agents want run with secrets; null: none of them can. */
  sessionShell: SessionShell | null
  budget: Budget
  retryPolicy: RetryPolicy
  answers: Answers
  providers: RoundProviders
  /** Called when the turn of a round has begun. */
  onRoundBegun(): void
}

/** Plays the turns of rounds and reviews, one at a time; a person can break each of them off. */
export class CurrentTurn {
  readonly #options: CurrentTurnOptions
  readonly #warnings: KnownWarnings
  #current: PreparedRound | null = null
  #interrupting = new AbortController()
  readonly #delegation: Delegation
  readonly #tools: HostTools
  /** Files in which a command of this turn has left a secret that its agent's own shell could read. */
  #leaked: readonly string[] = []
  /** What agents report is of the round that runs. */
  #report: (event: EngineEvent) => void = () => {}

  constructor(options: CurrentTurnOptions) {
    this.#options = options
    const { agents, policy } = options
    const book: AgentBook = {
      ...agents.book,
      thread: async name => this.#onProvider(await agents.book.thread(name)),
    }
    this.#warnings = new KnownWarnings(options.isUsual)
    this.#delegation = new Delegation({
      ...options,
      ...agents,
      book,
      get graceMs() {
        return policy.graceMs
      },
      onRoundEvent: event => this.#report(event),
    })
    const { log, redactor, template } = options
    this.#tools = new HostTools([
      answerAskPerson({ log, redact: text => redactor.text(text) }),
      answerRunAgent((task, over) => {
        return this.#delegation.run({ ...task, door: 'tool', thread: log.state.running?.thread ?? null }, over)
      }),
      ...this.#shellTools(),
      ...(template.tools ?? []).map(tool => answerInTemplate(log.state.template, tool)),
    ])
  }

  /** Plays the turn of a round, as its template wants it; `asked`: what of its input is that of the template. */
  async round(
    prepared: PreparedRound,
    round: number,
    { input, asked: wanted }: { input: string; asked: string },
    { answer, timeoutMs, stepwise, beside }: Pick<RoundSpec, 'answer' | 'timeoutMs' | 'stepwise' | 'beside'>,
  ): Promise<EndedTurn> {
    this.#current = prepared
    this.#leaked = []
    this.#interrupting = new AbortController()
    const asked = answer === undefined ? {} : { outputSchema: answer.schema }
    const windDown = answer === undefined ? WIND_DOWN : WIND_DOWN_ANSWER
    const terms = {
      ...this.#terms(prepared.thread),
      windDown,
      roundMs: timeoutMs,
      nextInput: stepwise && this.#stepwise(stepwise, prepared.thread),
      onRecord: (line: string) => this.#options.onRecord?.(round, line),
    }
    const images = await this.#imagesOf(beside === undefined ? wanted : `${beside}\n${wanted}`, round)
    const ended = await playRound(prepared, { round, input, ...images, ...asked }, terms)
    this.#current = null
    return this.#afterLeak(ended)
  }

  /** Has agents do something for the round that runs, and knows those that are at work. */
  get delegation(): Pick<Delegation, 'run' | 'agents'> {
    return this.#delegation
  }

  /** Has a tree reviewed that is claimed to be done. What a person says meanwhile is not for the reviewer. */
  async review(causes: readonly ReviewCause[], tree: string, way: Way): Promise<RoundOutcome> {
    const { means, providers } = this.#options
    if (means === null) throw new Error('Nothing of this session is proved.')
    this.#interrupting = new AbortController()
    return await reviewClaim(causes, tree, {
      ...this.#options,
      means,
      threadOf: thread => providers.follow(providers.completeReviewer(this.#hiding(thread)), way),
      playOf: thread => this.#terms(thread),
    })
  }

  /** Adds text to the turn of the round that runs; false if there is none that takes it. */
  async steer(text: string): Promise<boolean> {
    const current = this.#current
    if (current === null) return false
    const { images } = await this.#imagesOf(text, this.#options.log.state.running?.round ?? null)
    return await current.steer(text, images)
  }

  interrupt(): void {
    this.#interrupting.abort()
  }

  /** The pictures that a text names; what is wrong with others is journaled, once in a run. */
  async #imagesOf(text: string, round: number | null): Promise<{ images?: readonly string[] }> {
    if (!mentionsImage(text)) return {}
    const { agents, closed, log } = this.#options
    const { paths, problem } = await findImages(agents.directory, text, [
      ...closed(),
      ...(this.#current?.thread.unreadable ?? []),
    ])
    if (problem !== null && this.#warnings.add(problem)) log.emit({ type: 'warning', round, message: problem })
    return paths.length === 0 ? {} : { images: paths }
  }

  #shellTools(): ReturnType<typeof shellTools> {
    const { sessionShell } = this.#options
    if (sessionShell === null) return []
    const thread = () => this.#current?.thread ?? {}
    return shellTools(sessionShell, thread, files => this.#leave(files))
  }

  /** What follows a turn of a round without tools. */
  #stepwise(terms: NonNullable<RoundSpec['stepwise']>, thread: ThreadSpec): RoundPlayOptions['nextInput'] {
    const { sessionShell, log } = this.#options
    if (sessionShell === null)
      throw new TemplateError(`the template "${log.state.template}" has a round without tools, and no \`usesShell\``)
    const round = new StepwiseRound({ ...terms, shell: sessionShell, thread, onLeak: files => this.#leave(files) })
    return (message, over) => round.next(message, over)
  }

  /** Ends the turn of an agent whose own shell could read these files: what it may not read is said when it starts. */
  #leave(files: readonly string[]): void {
    if (this.#current === null || this.#current.thread.noShell) return
    this.#leaked = files
    this.interrupt()
  }

  /** Says why a turn was ended that no person has ended. */
  #afterLeak(ended: EndedTurn): EndedTurn {
    const [first] = this.#leaked
    if (first === undefined || ended.outcome.class !== 'interrupted' || this.#options.asked.ending.aborted) return ended
    const message = `A command has left a secret in ${first}, which its agent could still have read.`
    return { ...ended, outcome: { ...ended.outcome, message } }
  }

  /** A round is over when those who were given tasks in it are, and its commands. */
  async #untilAgentsEnd(outcome: RoundOutcome, ending: AbortSignal): Promise<void> {
    await this.#options.sessionShell?.settled()
    if (outcome.class !== 'worked' || ending.aborted) return await this.#delegation.end()
    const end = () => void this.#delegation.end()
    ending.addEventListener('abort', end, { once: true })
    await this.#delegation.settled()
    ending.removeEventListener('abort', end)
  }

  /** An agent is of the provider of the round that it works for, and may not read what that may not. */
  #onProvider(found: Awaited<ReturnType<AgentBook['thread']>>): Awaited<ReturnType<AgentBook['thread']>> {
    const round = this.#current?.thread
    if ('problem' in found || round === undefined) return found
    const thread = this.#options.providers.completeFor(round, found.thread)
    return { thread: round.unreadable === undefined ? thread : { ...thread, unreadable: round.unreadable } }
  }

  /** A reviewer may not read what some thread of the session may not. */
  #hiding(thread: ThreadSpec): ThreadSpec {
    const unreadable = new Set(this.#options.template.threads.flatMap(each => each.thread.unreadable ?? []))
    const hiding = unreadable.size === 0 ? thread : { ...thread, unreadable: [...unreadable] }
    return withoutSecrets(hiding, this.#options.closed())
  }

  #terms(thread: ThreadSpec): Omit<RoundPlayOptions, 'windDown'> {
    const { provider } = thread
    const isReplay = this.#options.engines.of(thread).replays === true
    const { log, asked, policy, clock, roundsDirectory, redactor, retryPolicy, budget, onRoundBegun } = this.#options
    return {
      log,
      clock,
      roundsDirectory,
      redactLine: line => redactor.line(line),
      graceMs: policy.graceMs,
      maxUsage: provider === undefined ? retryPolicy.maxUsage : null,
      timeLeftMs: budget.timeLeftMs,
      ending: AbortSignal.any([asked.ending, this.#interrupting.signal]),
      onEvent: event => {
        if (event.type === 'warning' && !this.#warnings.add(event.message)) return
        // What a recording once used, nobody uses now.
        if (event.type === 'usage' && isReplay) return
        log.emit(event)
        // While a claim is reviewed, nobody knows whether another round follows.
        if (event.type === 'turn-started' && log.state.running !== null) onRoundBegun()
      },
      onToolCall: (call, over) => this.#tools.answer(call, over),
      onOpen: report => {
        this.#report = report
      },
      onWindDown: () => this.#delegation.windDown(),
      untilOthersEnd: (outcome, over) => this.#untilAgentsEnd(outcome, over),
    }
  }
}

/** Different warnings of codex that one session shows. */
const MOST_WARNINGS = 100

/** The warnings that a session has shown: codex gives the same ones in every round. */
export class KnownWarnings {
  readonly #known = new Set<string>()
  readonly #isUsual: (warning: string) => boolean

  /** @param isUsual whether a warning is about what codemachine itself has brought about */
  constructor(isUsual: (warning: string) => boolean) {
    this.#isUsual = isUsual
  }

  /** Whether to show it: it is new, and there were not too many. */
  add(warning: string): boolean {
    if (this.#known.has(warning) || this.#isUsual(warning) || this.#known.size >= MOST_WARNINGS) return false
    this.#known.add(warning)
    return true
  }
}
