import type { Clock } from '../../base/clock.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import type { RoundOutcome, SessionOutcome } from '../../core/events/outcome.ts'
import type { AfterRound } from '../../core/rules/after-round.ts'
import { CODEX_PROVIDER, type Provider, type ProviderProblem, type Providers } from '../../core/shapes/provider.ts'
import { CODEX_LOGIN, loginOfEngine } from '../../core/state/usage.ts'
import type { RunnerPolicy } from '../options.ts'
import type { SessionLog } from '../session-log.ts'

/** What a round is run on: the provider that it is meant for, or codex's default model in its place. */
export type Way = 'own' | 'remote'

/** What is done before a thread may run. `until`: Unix time, ms. */
type ProviderLook =
  | { kind: 'ready' }
  | { kind: 'wait'; cause: RoundOutcome; until: number; isBack(signal: AbortSignal): Promise<boolean> }
  | { kind: 'end'; outcome: SessionOutcome }

interface RoundProvidersOptions {
  log: SessionLog
  clock: Clock
  providers: Providers
  /** `maxWaitMs`: the longest that one may be waited for. */
  policy: Pick<RunnerPolicy, 'maxWaitMs'>
}

/** Which provider the threads of a session are of, whether it is there, and what is done while it is not. */
export class RoundProviders {
  readonly #options: RoundProvidersOptions
  /** What came of the last look, for the one round that is run next. */
  #looked: { key: string; way: Way } | null = null
  /** Since when one has been away; Unix time, ms. */
  #awaySince: number | null = null
  /** Those that cannot work for a reason that does not pass by itself. */
  readonly #unusable = new Set<string>()
  /** Those of which a person was told that the session goes on without them. */
  readonly #told = new Set<string>()

  constructor(options: RoundProvidersOptions) {
    this.#options = options
  }

  /** As `withProvider`. */
  complete(thread: ThreadSpec): ThreadSpec {
    return this.#onEngine(withProvider(thread, this.#options.providers))
  }

  /** As `reviewerWithProvider`. */
  completeReviewer(thread: ThreadSpec): ThreadSpec {
    return this.#onEngine(reviewerWithProvider(thread, this.#options.providers))
  }

  /** The same of an agent that works for a round: it goes the way of that round's own thread. */
  completeFor(round: ThreadSpec, thread: ThreadSpec): ThreadSpec {
    if (thread.engine !== undefined) return thread
    const { byName, usual } = this.#options.providers
    const { provider } = round
    if (provider === undefined || provider === usual)
      return this.complete({ provider: provider ?? CODEX_PROVIDER, ...thread })
    return { provider, ...thread, model: byName.get(provider)?.model ?? null }
  }

  /** How the thread, which is complete, may run; null if its provider has to be looked at first. Each look is good for one round. */
  take(thread: ThreadSpec): Way | null {
    if (thread.provider === undefined) return 'own'
    const looked = this.#looked
    this.#looked = null
    return looked?.key === keyOf(thread) ? looked.way : null
  }

  /** A complete thread that goes this way. */
  follow(thread: ThreadSpec, way: Way): ThreadSpec {
    if (way === 'own') return thread
    const { provider: _, ...rest } = thread
    return { ...rest, model: this.#options.providers.remoteModel }
  }

  /** Asks the provider of a complete thread whether it is there, and says what follows by its rule `when_away`. */
  async look(thread: ThreadSpec, signal: AbortSignal): Promise<ProviderLook> {
    const { providers } = this.#options
    const { provider: name = CODEX_PROVIDER, model } = thread
    const provider = providers.byName.get(name)
    if (provider === undefined) return { kind: 'end', outcome: needsPerson(`There is no provider "${name}".`, name) }
    const problem = this.#unusable.has(name) ? null : await this.#problemOf(provider, model, signal)
    if (problem === null) return this.#go(thread, this.#unusable.has(name) ? 'remote' : 'own')
    if (provider.whenAway === 'remote') {
      this.#tellRemote(name, problem.message)
      return this.#go(thread, 'remote')
    }
    // Neither a name nor a key mends itself.
    if (provider.whenAway === 'stop' || problem.kind !== 'away')
      return { kind: 'end', outcome: needsPerson(problem.message, name) }
    return this.#wait(problem, async over => (await providers.ask(provider, model, over)) === null)
  }

  /**
   * What follows a round on a provider that failed in a way that does not pass by itself; null where nothing else follows
   * than after any other round.
   */
  after({ class: end, message }: RoundOutcome, { provider: name }: ThreadSpec): AfterRound | null {
    if (name === undefined || (end !== 'config' && end !== 'auth' && end !== 'quota')) return null
    const why = message ?? `The provider ${name} cannot be used.`
    if (this.#options.providers.byName.get(name)?.whenAway !== 'remote')
      return { kind: 'end', outcome: needsPerson(why, name) }
    this.#unusable.add(name)
    this.#tellRemote(name, why)
    return { kind: 'ask-template' }
  }

  /** The thread on the engine that the session fell back on, which knows neither the models nor the efforts of the other. */
  #onEngine(thread: ThreadSpec): ThreadSpec {
    const { engine } = this.#options.log.state
    if (engine === null || thread.engine !== undefined || thread.provider !== undefined) return thread
    return { ...thread, engine, model: null, effort: null }
  }

  async #problemOf(provider: Provider, model: string | null, signal: AbortSignal): Promise<ProviderProblem | null> {
    const { name } = provider
    if (model !== null) return await this.#options.providers.ask(provider, model, signal)
    return {
      kind: 'no-model',
      message: `No model of the provider ${name} is named; name one with --model, or as model in the table [providers.${name}] of your config.toml.`,
    }
  }

  #go(thread: ThreadSpec, way: Way): ProviderLook {
    if (way === 'own') {
      this.#awaySince = null
      this.#told.delete(thread.provider ?? '')
    }
    this.#looked = { key: keyOf(thread), way }
    return { kind: 'ready' }
  }

  #wait({ message }: ProviderProblem, isBack: (signal: AbortSignal) => Promise<boolean>): ProviderLook {
    const { clock, log, policy } = this.#options
    const now = clock.now()
    const since = log.state.failures.since ?? this.#awaySince ?? now
    this.#awaySince ??= now
    const until = since + policy.maxWaitMs
    if (until > now) return { kind: 'wait', cause: { class: 'network', message }, until, isBack }
    const hint = { do: 'mend-cause', since: new Date(since).toISOString() } as const
    return { kind: 'end', outcome: { kind: 'needs-person', reason: message, hint } }
  }

  #tellRemote(name: string, why: string): void {
    if (this.#told.has(name)) return
    this.#told.add(name)
    const { log } = this.#options
    const message = `${why} Codex's default model works in its place, as when_away of ${name} says.`
    log.emit({ type: 'warning', round: null, message, remote: name })
  }
}

/** The thread as it is started: with its provider and model, or without a provider where that is codex's own. Pure. */
function withProvider(
  thread: ThreadSpec,
  { byName, usual, remoteModel }: Pick<Providers, 'byName' | 'usual' | 'remoteModel'>,
): ThreadSpec {
  // What is replayed asks no model, and another engine has a login of its own.
  const isOfCodex = thread.engine === undefined || loginOfEngine(thread.engine) === CODEX_LOGIN
  const { provider: name = thread.recording === undefined && isOfCodex ? usual : CODEX_PROVIDER, ...rest } = thread
  if (name !== CODEX_PROVIDER) return { ...rest, provider: name, model: rest.model ?? byName.get(name)?.model ?? null }
  // The agents of a session on a provider have that one's model.
  const isOfUsual = usual !== CODEX_PROVIDER && rest.model === byName.get(usual)?.model
  return isOfUsual ? { ...rest, model: remoteModel } : rest
}

/** The same of a reviewer: a model that is set without its provider is one of codex's, and no other provider has it. Pure. */
export function reviewerWithProvider(
  thread: ThreadSpec,
  providers: Pick<Providers, 'byName' | 'usual' | 'remoteModel'>,
): ThreadSpec {
  // Another engine than that of the rounds has a login of its own.
  if (thread.engine !== undefined) return thread
  const isOfUsual = thread.provider === undefined && providers.usual !== CODEX_PROVIDER
  return withProvider(isOfUsual ? { ...thread, model: null } : thread, providers)
}

/** Whose model a name means: `provider/model`, `provider` for its own model, else a model of the usual provider. Pure. */
export function namedModel(name: string, byName: Providers['byName']): { model: string | null; provider?: string } {
  const [first = '', ...rest] = name.split('/')
  const isProvider = first === CODEX_PROVIDER || byName.has(first)
  return isProvider ? { provider: first, model: rest.length === 0 ? null : rest.join('/') } : { model: name }
}

function keyOf({ provider, model }: ThreadSpec): string {
  return JSON.stringify([provider, model])
}

function needsPerson(reason: string, provider: string): SessionOutcome {
  return { kind: 'needs-person', reason, hint: { do: 'mend-provider', provider } }
}
