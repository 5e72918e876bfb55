import type { Clock } from '../../base/clock.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import type { RoundOutcome, SessionOutcome } from '../../core/events/outcome.ts'
import type { AfterRound } from '../../core/rules/after-round.ts'
import { CODEX_PROVIDER, type Provider, type ProviderProblem, type Providers } from '../../core/shapes/provider.ts'
import { CODEX_LOGIN, loginOfEngine } from '../../core/state/usage.ts'
import type { RunnerPolicy } from '../options.ts'
import type { SessionLog } from '../session-log.ts'

/** The model of a round: its own provider, or codex's default model as the replacement. */
export type Way = 'own' | 'remote'

/** The result of a look at a provider. `until`: Unix time, ms. */
type ProviderLook =
  | { kind: 'ready' }
  | { kind: 'wait'; cause: RoundOutcome; until: number; isBack(signal: AbortSignal): Promise<boolean> }
  | { kind: 'end'; outcome: SessionOutcome }

interface RoundProvidersOptions {
  log: SessionLog
  clock: Clock
  providers: Providers
  /** `maxWaitMs`: longest wait for a provider. */
  policy: Pick<RunnerPolicy, 'maxWaitMs'>
}

/** Chooses the provider of each thread, probes it, and decides what to do while it is away. */
export class RoundProviders {
  readonly #options: RoundProvidersOptions
  /** Result of the last look, valid for the next round only. */
  #looked: { key: string; way: Way } | null = null
  /** Time since which a provider has been away; Unix time, ms. */
  #awaySince: number | null = null
  /** Providers with a lasting problem. */
  readonly #unusable = new Set<string>()
  /** Providers already reported to a person as replaced. */
  readonly #told = new Set<string>()

  constructor(options: RoundProvidersOptions) {
    this.#options = options
  }

  /** Completes a thread, as `withProvider` does. */
  complete(thread: ThreadSpec): ThreadSpec {
    return this.#onEngine(withProvider(thread, this.#options.providers))
  }

  /** Completes a reviewer's thread, as `reviewerWithProvider` does. */
  completeReviewer(thread: ThreadSpec): ThreadSpec {
    return this.#onEngine(reviewerWithProvider(thread, this.#options.providers))
  }

  /** Completes the thread of an agent that works for a round: it uses the same way as the round's thread. */
  completeFor(round: ThreadSpec, thread: ThreadSpec): ThreadSpec {
    if (thread.engine !== undefined) return thread
    const { byName, usual } = this.#options.providers
    const { provider } = round
    if (provider === undefined || provider === usual)
      return this.complete({ provider: provider ?? CODEX_PROVIDER, ...thread })
    return { provider, ...thread, model: byName.get(provider)?.model ?? null }
  }

  /** Returns the way of a complete thread; null if its provider must be probed first. Each probe is valid for one round. */
  take(thread: ThreadSpec): Way | null {
    if (thread.provider === undefined) return 'own'
    const looked = this.#looked
    this.#looked = null
    return looked?.key === keyOf(thread) ? looked.way : null
  }

  /** Returns a complete thread for this way. */
  follow(thread: ThreadSpec, way: Way): ThreadSpec {
    if (way === 'own') return thread
    const { provider: _, ...rest } = thread
    return { ...rest, model: this.#options.providers.remoteModel }
  }

  /** Probes the provider of a complete thread, and applies its rule `when_away`. */
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
    // A wrong name or key does not repair itself.
    if (provider.whenAway === 'stop' || problem.kind !== 'away')
      return { kind: 'end', outcome: needsPerson(problem.message, name) }
    return this.#wait(problem, async over => (await providers.ask(provider, model, over)) === null)
  }

  /** Returns the reaction to a provider's lasting failure; null: the common reaction applies. */
  after({ class: end, message }: RoundOutcome, { provider: name }: ThreadSpec): AfterRound | null {
    if (name === undefined || (end !== 'config' && end !== 'auth' && end !== 'quota')) return null
    const why = message ?? `The provider ${name} cannot be used.`
    if (this.#options.providers.byName.get(name)?.whenAway !== 'remote')
      return { kind: 'end', outcome: needsPerson(why, name) }
    this.#unusable.add(name)
    this.#tellRemote(name, why)
    return { kind: 'ask-template' }
  }

  /** Moves a thread to the fallback engine, which does not know the other's models and efforts. */
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
      message: `No model of the provider ${name} is set. Name one with --model, or as model in the table [providers.${name}] of your config.toml.`,
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

/** Returns the thread as it is started: with provider and model, or without a provider for codex's own. Pure. */
function withProvider(
  thread: ThreadSpec,
  { byName, usual, remoteModel }: Pick<Providers, 'byName' | 'usual' | 'remoteModel'>,
): ThreadSpec {
  // A replay uses no model, and another engine has its own login.
  const isOfCodex = thread.engine === undefined || loginOfEngine(thread.engine) === CODEX_LOGIN
  const { provider: name = thread.recording === undefined && isOfCodex ? usual : CODEX_PROVIDER, ...rest } = thread
  if (name !== CODEX_PROVIDER) return { ...rest, provider: name, model: rest.model ?? byName.get(name)?.model ?? null }
  // The agents of a session on a provider use its model.
  const isOfUsual = usual !== CODEX_PROVIDER && rest.model === byName.get(usual)?.model
  return isOfUsual ? { ...rest, model: remoteModel } : rest
}

/** Like `withProvider` for a reviewer: a model without a provider is codex's, and no other has it. Pure. */
export function reviewerWithProvider(
  thread: ThreadSpec,
  providers: Pick<Providers, 'byName' | 'usual' | 'remoteModel'>,
): ThreadSpec {
  // A different engine has its own login.
  if (thread.engine !== undefined) return thread
  const isOfUsual = thread.provider === undefined && providers.usual !== CODEX_PROVIDER
  return withProvider(isOfUsual ? { ...thread, model: null } : thread, providers)
}

/** Parses a model name: `provider/model`, `provider` for its own model, or a model of the usual provider. Pure. */
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
