/** Action while a provider is away: wait, use codex's default model, or end for a person. */
type WhenAway = 'wait' | 'remote' | 'stop'

/** A server that the person configured for rounds instead of codex's own. It speaks the Responses API. */
export interface Provider {
  name: string
  /** http or https, without credentials, query or final slash; `/models` and `/responses` are below it. */
  baseUrl: string
  /** Default model of threads; null: each thread must name one. */
  model: string | null
  /** Name of the environment variable with the key; null: none is sent. */
  keyEnv: string | null
  /** Tokens; null: codex's assumption for an unknown model. */
  contextWindow: number | null
  whenAway: WhenAway
}

/** All providers by name, without codex's own. */
export type ProvidersByName = ReadonlyMap<string, Provider>

/** The name of codex's configured provider, in settings and in `ThreadSpec.provider`. */
export const CODEX_PROVIDER = 'codex'

/**
 * Why a provider cannot answer a round. `away`: no answer, or not now, which may pass. `no-key`: its key's variable is not
 * set. `refused`: it rejects the key, or redirects. `no-model`: it lacks the model, or none is named. `message`: a sentence
 * for the person, without secrets.
 */
export interface ProviderProblem {
  kind: 'away' | 'no-key' | 'refused' | 'no-model'
  message: string
}

/** A session's providers, and a way to probe them. */
export interface Providers {
  byName: ProvidersByName
  /** Default provider of threads; `codex`: codex's configured one. */
  usual: string
  /** Model of a thread that continues without its provider; null: codex's choice. */
  remoteModel: string | null
  /**
   * Resolves with why a provider cannot work; null: no known problem. In bounded time; never rejects.
   * @param model the model that it must have; null: any
   */
  ask(provider: Provider, model: string | null, signal: AbortSignal): Promise<ProviderProblem | null>
}
