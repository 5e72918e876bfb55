import { clipEnd } from '../../base/text.ts'
import { type AskCodex, type AskOptions, askAppServer, needsLogin } from './thread-start.ts'
import { memberOf, RequestFailure } from './wire.ts'

/** The models that codex offers with its current configuration and login. */
export interface OfferedModels {
  /** Their names, including hidden ones; `unknown`: why they are not known, as the start of a sentence. */
  names: ReadonlySet<string> | { unknown: string }
  /** Codex's default model; null: unknown. */
  usual: string | null
  /** False only if codex says that it needs a login and has none. */
  isLoggedIn: boolean
}

/** Asks a short-lived app-server for its models, in at most 10 s. Never rejects for what codex does. */
export async function askOfferedModels(options: AskOptions, signal: AbortSignal): Promise<OfferedModels> {
  let account: unknown = null
  const asked = await askAppServer(options, signal, async ask => {
    const [config, models] = await Promise.all([
      ask('config/read', {}),
      allModels(ask),
      // Its answer counts even if the others fail.
      ask('account/read', {}).then(
        answer => {
          account = answer
        },
        (error: unknown) => {
          if (!(error instanceof RequestFailure)) throw error
        },
      ),
    ])
    return { config, models }
  })
  const isLoggedIn = !needsLogin(account)
  if ('why' in asked) {
    const unknown = `Codex cannot say which models it offers: ${asked.why}`
    return { names: { unknown }, usual: null, isLoggedIn }
  }
  const { config, models } = asked.answer
  return { names: namesOf(models, memberOf(config, 'config')), usual: usualOf(config, models), isLoggedIn }
}

function usualOf(config: unknown, models: readonly unknown[]): string | null {
  const byDefault = models.find(each => memberOf(each, 'isDefault') === true)
  return textIn(memberOf(config, 'config'), 'model') ?? textIn(byDefault, 'model')
}

/** Returns codex's default model; null: unknown. Rejects only if codex ends or is silent. */
export async function askUsualModel(ask: AskCodex): Promise<string | null> {
  const orNull = (error: unknown) => {
    if (error instanceof RequestFailure) return null
    throw error
  }
  const [config, models] = await Promise.all([
    ask('config/read', {}).catch(orNull),
    allModels(ask).catch(error => orNull(error) ?? []),
  ])
  return usualOf(config, models)
}

/**
 * Returns the agents with null (codex's default) for each unavailable or unknown model. `remark`: one sentence about these;
 * null: none.
 */
export function withOfferedModels<T extends { model: string | null }>(
  agents: readonly T[],
  { names, usual }: Pick<OfferedModels, 'names' | 'usual'>,
): { agents: T[]; remark: string | null } {
  const isOffered = (model: string) => 'has' in names && names.has(model)
  const wanted = agents.flatMap(({ model }) =>
    // Do not report the default as its own replacement.
    model === null || model === usual || isOffered(model) ? [] : [model],
  )
  const fitted = agents.map(agent =>
    agent.model === null || isOffered(agent.model) ? agent : { ...agent, model: null },
  )
  if (wanted.length === 0) return { agents: fitted, remark: null }
  const models = [...new Set(wanted)].join(', ')
  const instead = usual === null ? "codex's default" : `codex's default, ${usual}`
  if (!('has' in names))
    return {
      agents: fitted,
      remark: `${withoutPeriod(names.unknown)}; the agents use ${instead} instead of ${models}.`,
    }
  return { agents: fitted, remark: `Codex does not offer ${models}, so the agents that need it use ${instead}.` }
}

/** Longest name, in characters. */
const NAME_CHARACTERS = 200
const MOST_PAGES = 10

async function allModels(ask: AskCodex): Promise<unknown[]> {
  const models: unknown[] = []
  let cursor: string | null = null
  for (let page = 0; page < MOST_PAGES; page++) {
    const answer = await ask('model/list', { includeHidden: true, ...(cursor === null ? {} : { cursor }) })
    const data = memberOf(answer, 'data')
    models.push(...(Array.isArray(data) ? data : []))
    cursor = textIn(answer, 'nextCursor')
    if (cursor === null) break
  }
  return models
}

function namesOf(models: readonly unknown[], configured: unknown): OfferedModels['names'] {
  const provider = textIn(configured, 'model_provider')
  // For another provider, codex lists its own known models without a request (measured with 0.169).
  if (provider !== null && provider !== 'openai' && textIn(configured, 'model_catalog_json') === null)
    return { unknown: `Codex does not know which models the provider ${provider} offers` }
  const names = models.flatMap(each => [textIn(each, 'model'), textIn(each, 'id')].filter(name => name !== null))
  return names.length === 0 ? { unknown: 'Codex names no model that it offers' } : new Set(names)
}

function withoutPeriod(text: string): string {
  return text.replace(/\.$/, '')
}

function textIn(value: unknown, name: string): string | null {
  const text = memberOf(value, name)
  return typeof text === 'string' ? clipEnd(text, NAME_CHARACTERS) : null
}
