/** What a session does while a provider is away: waits for it, goes on with codex's default model, or ends for a person. */
type WhenAway = 'wait' | 'remote' | 'stop'

/** A server that the person has named for rounds, in the place of the one that codex uses by itself. It speaks the Responses API. */
export interface Provider {
  name: string
  /** http or https, without credentials, query or a slash at its end; `/models` and `/responses` lie below it. */
  baseUrl: string
  /** The model of threads that name none; null: they have to. */
  model: string | null
  /** Name of the environment variable with the key; null: none is sent. */
  keyEnv: string | null
  /** Tokens; null: what codex assumes of a model that it does not know. */
  contextWindow: number | null
  whenAway: WhenAway
}

/** The providers that there are, by name. Codex's own is not among them. */
export type ProvidersByName = ReadonlyMap<string, Provider>

/** The name that stands for what codex is configured with itself, in settings and in `ThreadSpec.provider`. */
export const CODEX_PROVIDER = 'codex'

/**
 * Why a provider cannot answer a round. `away`: it did not answer, or answered that it cannot now, which may pass;
 * `no-key`: the variable of its key is not set; `refused`: it does not take the key, or leads elsewhere; `no-model`: it does
 * not have the model, or none is named. `message`: a sentence for the person, without secrets.
 */
export interface ProviderProblem {
  kind: 'away' | 'no-key' | 'refused' | 'no-model'
  message: string
}

/** What a session knows of providers, and how it asks them. */
export interface Providers {
  byName: ProvidersByName
  /** That of threads that name none; `codex`: what codex is configured with. */
  usual: string
  /** The model of a thread that goes on without its provider; null: codex's own choice. */
  remoteModel: string | null
  /**
   * Why a provider cannot work, or null if nothing speaks against it. In bounded time; never rejects.
   * @param model that it has to have; null: any
   */
  ask(provider: Provider, model: string | null, signal: AbortSignal): Promise<ProviderProblem | null>
}
