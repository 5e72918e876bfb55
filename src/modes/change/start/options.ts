import { UserError } from '../../../base/errors.ts'
import { isOnThisMachine } from '../../../engines/ask-provider.ts'
import type { Run } from '../../../project/open-run.ts'
import { checkProvider } from '../../../project/settings/providers.ts'
import type { ChangeOptions } from '../work.ts'

/** Name of the template of a change. */
export const CHANGE = 'change'

/** Options said for one change, which win over the settings. Left out: the settings. */
export interface ChangeSaid {
  /** Whether to accept its plan without a question. */
  auto?: true
  /** Whether the session ends once a plan is accepted. */
  planOnly?: true
  /** Attempts to fix one verification. */
  fixAttempts?: number
  /** Provider for the tasks; null: that of the rounds. */
  executor?: string | null
  plannerModel?: string
  plannerEffort?: string
  plannerEngine?: string
  executorEngine?: string
}

/** Sources of a change's terms. */
type Known = Pick<Run, 'settings' | 'sources'> & { providers: Pick<Run['providers'], 'byName' | 'usual'> }

/** With fewer attempts, the person hears that a change gives up early. */
const USUAL_ATTEMPTS = 5

/**
 * Returns the terms of a change, from its options and the settings. Throws a `UserError` if its executor is no provider, or
 * has no model.
 */
export function changeTerms(known: Known, said: ChangeSaid = {}): ChangeOptions {
  const { settings, sources, providers } = known
  const { change } = settings
  const place = said.executor === undefined ? sources['change.executor'].place : '--executor'
  const executor = said.executor === undefined ? change.executor : said.executor
  // The default effort is for codex's own models: other servers reject unknown efforts.
  const engine = said.plannerEngine ?? change.plannerEngine
  const isOfOthers = providers.byName.has(providers.usual) || engine !== null
  const isMeant = sources['change.plannerEffort'].layer !== 'defaults' || !isOfOthers
  const usualEffort = engine === null ? settings.effort : null
  const effort = said.plannerEffort ?? (isMeant ? change.plannerEffort : usualEffort)
  const executorEngine = said.executorEngine ?? (said.executor === undefined ? change.executorEngine : null)
  return {
    review: said.auto ? 'auto' : change.review,
    planOnly: said.planOnly ?? false,
    fixAttempts: said.fixAttempts ?? change.fixAttempts,
    executor: executor === null || executorEngine !== null ? null : executorNamed(executor, place, known),
    ...(executorEngine === null ? {} : { executorEngine }),
    planner: { model: said.plannerModel ?? change.plannerModel, effort, ...(engine === null ? {} : { engine }) },
  }
}

function executorNamed(name: string, place: string, { providers }: Known): ChangeOptions['executor'] {
  const { byName, usual } = providers
  checkProvider(name, place, byName)
  if (name === usual) return null
  const provider = byName.get(name)
  // Codex's own configuration, if the rounds use a provider.
  if (provider === undefined) return { provider: name, model: null, contextWindow: null, isLocal: false }
  const { model, contextWindow, baseUrl } = provider
  if (model !== null) return { provider: name, model, contextWindow, isLocal: isOnThisMachine(new URL(baseUrl)) }
  throw new UserError(
    'CM0307',
    `${place}: the provider ${name} has no model; add model = "…" to the table [providers.${name}] of your own config.toml.`,
    { hint: `Such as:\n  [providers.${name}]\n  model = "qwen3-coder:30b"\n  context_window = 32768` },
  )
}

/** Returns the options of a new change: the given ones, then the settings. Adds remarks for the person to the run. */
export function optionsAtBegin(run: Run, told: unknown): unknown {
  const isTable = typeof told === 'object' && told !== null && !Array.isArray(told)
  if (told !== undefined && !isTable) return told
  // A program's own executor replaces that of the settings.
  const usual = changeTerms(run, told !== undefined && 'executor' in told ? { executor: null } : {})
  const options: ChangeOptions = { ...usual, ...told }
  const { fixAttempts, executorEngine, planner } = options
  if (planner.engine !== undefined) run.engines.check(planner.engine, '--planner-engine')
  if (executorEngine !== undefined) run.engines.check(executorEngine, '--executor-engine')
  if (fixAttempts < USUAL_ATTEMPTS) {
    const times = fixAttempts === 1 ? 'once' : `${fixAttempts} times`
    run.remarks.push(
      `codemachine tries to fix a failed verification only ${times}; ${USUAL_ATTEMPTS} to 10 is usual (change.fix_attempts).`,
    )
  }
  return options
}
