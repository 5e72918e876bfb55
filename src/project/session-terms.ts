import * as v from 'valibot'
import { UserError, unreachable } from '../base/errors.ts'
import type { RunOverrides } from '../core/events/events.ts'
import type { RunAllowance } from '../core/events/outcome.ts'
import { type Gate, limitReached, type SessionLimits } from '../core/events/outcome.ts'
import type { ProveTerms } from '../core/rules/contract.ts'
import { type ModelPrice, problemOfModel } from '../core/rules/cost.ts'
import type { ReviewTerms } from '../core/rules/review.ts'
import { allowanceAtResume, beyondRun, limitsInRun, NOTHING_USED, usedBy } from '../core/rules/run-limits.ts'
import type { AgentRoster } from '../core/shapes/agent.ts'
import { CODEX_PROVIDER, type Providers } from '../core/shapes/provider.ts'
import type { PromptTerms } from '../core/shapes/queue.ts'
import { hasChangedProof, withoutScope } from '../core/state/scope.ts'
import type { SessionState } from '../core/state/state.ts'
import type { TemplateKind } from '../core/template.ts'
import type { Redactor } from '../secrets/redactor.ts'
import type { RunnerPolicy } from '../session/options.ts'
import type { Records } from '../session/records/records.ts'
import { costAsTyped, countAsTyped, durationAsTyped, limitAsTyped } from '../tell/words/commands.ts'
import { formatCost, formatSpan, formatTokens } from '../tell/words/numbers.ts'
import { newestAtWork, readableState } from './find.ts'
import type { RunOptions } from './library.ts'
import { reachesNetwork, withVerified } from './settings/gates.ts'
import type { SettingSources } from './settings/load.ts'
import type { Settings } from './settings/schema.ts'

/**
 * Returns the options from the command line and the environment. On resume, files are read again so that a person can fix
 * them, except for gates and review (`gatesAtResume`, `reviewAtResume`).
 * @param verify the commands that `--verify` names
 */
export function runOverridesOf(
  settings: Settings,
  sources: SettingSources,
  verify: readonly string[] = [],
): RunOverrides {
  const isSaid = (key: keyof SettingSources) => ['flag', 'environment'].includes(sources[key].layer)
  const { sandbox, network, model, effort, provider, engine, fallback, maxUsage, maxWait, keepAwake, review, publish } =
    settings
  const limits = (['rounds', 'maxTime', 'maxTokens', 'maxCost'] as const).filter(isSaid)
  return {
    ...(isSaid('sandbox') ? { sandbox } : {}),
    ...(isSaid('network') ? { network } : {}),
    ...(isSaid('model') && model !== null ? { model } : {}),
    ...(isSaid('effort') && effort !== null ? { effort } : {}),
    ...(isSaid('provider') ? { provider } : {}),
    ...(isSaid('engine') ? { engine } : {}),
    ...(isSaid('fallback') ? { fallback } : {}),
    ...(isSaid('maxUsage') && maxUsage !== null ? { maxUsage } : {}),
    ...(isSaid('maxWait') ? { maxWaitMs: maxWait } : {}),
    ...(isSaid('keepAwake') ? { keepAwake } : {}),
    ...(isSaid('review') ? { review } : {}),
    ...(isSaid('publish') ? { publish } : {}),
    ...(verify.length === 0 ? {} : { verify: [...new Set(verify)] }),
    ...(limits.length === 0 ? {} : { limits }),
  }
}

/** Returns the allowance of a new run, by the settings. The default of `rounds` applies to each session. */
export function allowanceAtStart(settings: LimitSettings, sources: Pick<SettingSources, 'rounds'>): RunAllowance {
  const isDefault = sources.rounds.layer === 'defaults'
  const { rounds, maxTime: timeMs, maxTokens: tokens, maxCost: cost } = settings
  const limits = { rounds: isDefault ? null : rounds, timeMs, tokens, ...(cost === null ? {} : { cost }) }
  return { limits, used: NOTHING_USED }
}

type LimitSettings = Pick<Settings, 'rounds' | 'maxTime' | 'maxTokens' | 'maxCost'>

/** Returns the allowance of a resumed session's run; null if it was never stored. `options`: those given now. */
export function runAtResume({ run }: SessionState, options: LimitOptions, now: SessionLimits): RunAllowance | null {
  if (run === null) return null
  return allowanceAtResume(run, {
    ...(options.rounds === undefined ? {} : { rounds: now.rounds }),
    ...(options.maxTimeMs === undefined ? {} : { timeMs: now.timeMs }),
    ...(options.maxTokens === undefined ? {} : { tokens: now.tokens }),
    ...(options.maxCost === undefined || now.cost === undefined ? {} : { cost: now.cost }),
  })
}

type LimitOptions = Pick<RunOptions, 'rounds' | 'maxTimeMs' | 'maxTokens' | 'maxCost'>

/**
 * Returns limits, gates and options of a new session. The prompt's own terms come before the run's. Throws a `UserError` if
 * its options hold a secret, or it asks for more than the run has in total.
 * @param allowance what the run may take, and has used before it
 */
export function termsAtStart(
  run: { settings: Settings; sources: SettingSources; gates: readonly Gate[]; said: RunOverrides; redactor: Redactor },
  kind: Pick<TemplateKind, 'name' | 'defaultRounds'>,
  { gates: verify = [], limits = {}, options }: Omit<PromptTerms, 'template'> = {},
  allowance: RunAllowance = allowanceAtStart(run.settings, run.sources),
): { limits: SessionLimits; gates: readonly Gate[]; said: RunOverrides } {
  const { settings, gates, said, redactor } = run
  refuseSecretOptions(kind, options, redactor)
  refuseBeyondRun(allowance, limits)
  const own = limitsInRun(allowance, limits, kind.defaultRounds(options) ?? settings.rounds)
  if (verify.length === 0) return { limits: own, gates, said }
  return {
    limits: own,
    gates: withVerified(gates, verify, settings),
    said: { ...said, verify: [...new Set([...(said.verify ?? []), ...verify])] },
  }
}

/** Throws a `UserError` for a prompt's limits beyond the run's total. */
export function refuseBeyondRun(run: RunAllowance, wanted: NonNullable<PromptTerms['limits']>): void {
  const name = beyondRun(run, wanted)
  if (name === null) return
  const [more, most] = [limitAsTyped(name, wanted[name] ?? 0), limitAsTyped(name, run.limits[name] ?? 0)]
  throw new UserError('CM0403', `This session asks for ${more}; the run is limited to ${most} in total.`, {
    hint: `Give it a lower limit or none, or start the run with ${more}.`,
  })
}

/** Largest options of a template, in bytes as JSON. */
const MOST_OPTIONS_BYTES = 1024 * 1024

/** Returns a template's options, checked by its schema. Throws a `UserError` if they are invalid. */
export function optionsOf(
  { name, options: schema, hasOwnCommand }: Pick<TemplateKind, 'name' | 'options' | 'hasOwnCommand'>,
  told: unknown,
): unknown {
  if (told === undefined && schema === undefined) return undefined
  if (schema === undefined && !hasOwnCommand)
    throw new UserError('CM1011', `The template ${name} has no options; leave them out.`)
  const text = JSON.stringify(schema === undefined ? told : checkedOptions(name, schema, told))
  if (Buffer.byteLength(text) > MOST_OPTIONS_BYTES)
    throw new UserError('CM1011', `The options of the template ${name} are larger than 1 MiB.`)
  return JSON.parse(text)
}

function checkedOptions(name: string, schema: NonNullable<TemplateKind['options']>, told: unknown): unknown {
  const read = v.safeParse(schema, told ?? {})
  if (read.success) return read.output
  const [issue] = read.issues
  const place = ['options', v.getDotPath(issue)].filter(each => each !== null).join('.')
  throw new UserError('CM1011', `${place} of the template ${name}: ${issue.message}.`)
}

/**
 * Throws a `UserError` for options with a secret in a text or key name. They are journaled, and the template would get
 * `[secret NAME]` instead.
 */
export function refuseSecretOptions({ name }: Pick<TemplateKind, 'name'>, options: unknown, redactor: Redactor): void {
  const told = JSON.stringify(options ?? null)
  const kept = redactor.line(told)
  if (kept === told) return
  const [, secret = 'one'] = kept.match(/\[secret ([\w .:-]+)\]/) ?? []
  throw new UserError(
    'CM0904',
    `The options of the template ${name} contain a secret (${secret}), which codemachine never stores; remove it.`,
  )
}

/** Returns the options of a resumed session: those given now, then those from its beginning. */
export function optionsAtResume(said: RunOverrides, overrides: readonly string[], now: RunOptions): RunOptions {
  const { network, keepAwake, sandbox, publish, model, effort, verify = [], limits: _, ...same } = said
  const { keepAwake: keepsAwakeNow = true, ...others } = now
  // A newly chosen sandbox does not inherit what the old one allowed.
  const keepsSandbox = now.sandbox === undefined
  // A new provider does not know the old one's models and efforts.
  const keepsProvider = now.provider === undefined || now.provider === (said.provider ?? CODEX_PROVIDER)
  return {
    ...same,
    ...(model === undefined || !keepsProvider ? {} : { model }),
    ...(effort === undefined || !keepsProvider ? {} : { effort }),
    // The settings check it again.
    ...(sandbox === undefined ? {} : { sandbox: sandbox as Settings['sandbox'] }),
    ...(network === undefined || !keepsSandbox ? {} : { network }),
    ...(publish === undefined ? {} : { publish: publish as Settings['publish'] }),
    config: [...overrides],
    ...others,
    ...(verify.length === 0 ? {} : { verify: [...new Set([...verify, ...(now.verify ?? [])])] }),
    // Read keep-awake again, like a value of a file.
    ...(keepsAwakeNow && keepAwake !== false ? {} : { keepAwake: false }),
  }
}

/**
 * Returns the total limits of a session that nobody runs: from `options`, else from its journal. `settings` are those of the
 * options. Throws a `UserError` if they are used up.
 */
export function limitsAtResume(state: SessionState, options: LimitOptions, settings: LimitSettings): SessionLimits {
  const limits: SessionLimits = {
    rounds: options.rounds === undefined ? state.limits.rounds : settings.rounds,
    timeMs: options.maxTimeMs === undefined ? state.limits.timeMs : settings.maxTime,
    tokens: options.maxTokens === undefined ? state.limits.tokens : settings.maxTokens,
    ...costAtResume(state, options, settings),
  }
  // Only its end is missing.
  const isEndWanted = state.ended === null || state.ended.outcome.kind === 'needs-person'
  if (state.claim.state === 'accepted' && isEndWanted) return limits
  const used = usedBy(state)
  const reached = limitReached(limits, used)
  switch (reached) {
    case null:
      return limits
    case 'rounds':
      throw new UserError(
        'CM0401',
        `${state.id} has used ${used.rounds} of its ${limits.rounds} rounds; raise the total with --rounds.`,
      )
    case 'time':
      throw new UserError(
        'CM0401',
        `${state.id} has worked for ${formatSpan(used.timeMs)}, which is all of its --max-time ${durationAsTyped(limits.timeMs ?? 0)}; raise the total with --max-time.`,
      )
    case 'tokens':
      throw new UserError(
        'CM0401',
        `${state.id} has used ${formatTokens(used.tokens)}, which is all of its --max-tokens ${countAsTyped(limits.tokens ?? 0)}; raise the total with --max-tokens.`,
      )
    case 'cost':
      throw new UserError(
        'CM0401',
        `${state.id} has cost ${formatCost(used.cost ?? 0)}, which is all of its --max-cost ${costAsTyped(limits.cost ?? 0)}; raise the total with --max-cost.`,
      )
    default:
      return unreachable(reached)
  }
}

/** Tokens without a known price would count as free. */
function costAtResume({ id, limits, cost }: SessionState, { maxCost }: LimitOptions, now: LimitSettings) {
  const most = maxCost === undefined ? limits.cost : (now.maxCost ?? undefined)
  if (most === undefined) return {}
  if (cost.unpriced === 0) return { cost: most }
  throw new UserError(
    'CM0402',
    `${id} has used ${formatTokens(cost.unpriced)} without a known price, so --max-cost cannot be enforced. Use --max-tokens.`,
  )
}

/**
 * Throws a `UserError` for a cost limit without prices, or without a price for a model that the session will use. A model
 * that codex chooses itself is checked when a thread starts.
 */
export async function refuseUnpriced(
  run: {
    settings: Settings
    prices: readonly ModelPrice[]
    providers: Pick<Providers, 'byName' | 'usual'>
    askForModels(): Promise<{ agents: AgentRoster }>
  },
  kind: Pick<TemplateKind, 'parts'>,
  { cost }: SessionLimits,
): Promise<void> {
  if (cost === undefined) return
  const { settings, prices, providers } = run
  refuseWithoutPrices(prices)
  const isTeam = Object.values(kind.parts).some(({ delegates }) => delegates)
  const { main, sub } = isTeam ? (await run.askForModels()).agents : { main: [], sub: [] }
  const models = [
    settings.model ?? providers.byName.get(providers.usual)?.model ?? null,
    settings.reviewer.model,
    ...[...main, ...sub].map(agent => (agent.enabled ? agent.model : null)),
  ]
  for (const model of models) refuseUnpricedModel(prices, model)
}

/** Throws like `refuseUnpriced`, for one agent that works alone; `model` null: unknown. */
export function refuseUnpricedAgent(
  prices: readonly ModelPrice[],
  model: string | null,
  { cost }: Pick<SessionLimits, 'cost'>,
): void {
  if (cost === undefined) return
  refuseWithoutPrices(prices)
  refuseUnpricedModel(prices, model)
}

/** Throws a `UserError` for a cost limit if there are no prices. */
export function refuseWithoutPrices(prices: readonly ModelPrice[]): void {
  if (prices.length > 0) return
  throw new UserError(
    'CM0402',
    'Your settings have no prices, so --max-cost cannot be enforced. Add a table to your config.toml, such as [prices."gpt-5.5"], with in, cached and out per million tokens.',
  )
}

function refuseUnpricedModel(prices: readonly ModelPrice[], model: string | null): void {
  const problem = model === null ? null : problemOfModel(prices, model)
  if (problem !== null) throw new UserError('CM0402', problem)
}

/** Sources of a resumed session's gates. */
interface GatesAtResume {
  /** The session's gates until now. */
  journaled: readonly Gate[]
  /** Gates from the files and `--verify` now. */
  loaded: readonly Gate[]
  /** Commands of `--verify` now. */
  verify: readonly string[]
  /** Whether to read the files again (`--reread-gates`). */
  reread: boolean
}

/**
 * Returns the gates from now on: the old ones, because the rounds could have written the files, and those of `--verify`. No
 * gate has network if the rounds lost it.
 */
export function gatesAtResume(
  { journaled, loaded, verify, reread }: GatesAtResume,
  settings: Pick<Settings, 'sandbox' | 'network'>,
): readonly Gate[] {
  const gates = reread ? loaded : withVerified(journaled, verify, settings)
  return reachesNetwork(settings) ? gates : gates.map(gate => ({ ...gate, network: false }))
}

/** Sources of a resumed session's review. */
interface ReviewAtResume {
  /** Review terms of every claim until now; null: review only claims that touch protected files. */
  journaled: ReviewTerms | null
  /** Settings now, and their places. */
  settings: Pick<Settings, 'review' | 'reviewer'>
  sources: Pick<SettingSources, 'review' | 'reviewer.model' | 'reviewer.effort'>
  /** Whether to read the files again (`--reread-gates`). */
  reread: boolean
}

/** Returns the review terms of every claim by these settings; null: review only claims that touch protected files. */
export function reviewIn({ review, reviewer }: ReviewAtResume['settings']): ReviewTerms | null {
  if (!review) return null
  const { engine, ...terms } = reviewer
  return engine === null ? terms : { ...terms, engine }
}

/** Returns the terms for a new session's contract; null: it has none. */
export function proveIn({ prove }: Pick<Settings, 'prove'>, { only, wanted }: { only: boolean; wanted: boolean }) {
  const { on, require: required, author, authorEngine, control, controlEngine, holdOut, controls } = prove
  if (!on && !required && !only && !wanted) return null
  const engines = {
    ...(authorEngine === null ? {} : { authorEngine }),
    ...(controlEngine === null ? {} : { controlEngine }),
  }
  return { author, control, holdOut, controls, required, only, ...engines }
}

/** Returns the same for a resumed session; undefined: unchanged. Only options given now change it. */
export function proveAtResume(
  { contract }: Pick<SessionState, 'contract'>,
  {
    settings,
    sources,
  }: { settings: Pick<Settings, 'prove'>; sources: Pick<SettingSources, 'prove.on' | 'prove.require'> },
): ProveTerms | undefined {
  const isSaid = (key: 'prove.on' | 'prove.require') => ['flag', 'environment'].includes(sources[key].layer)
  if (contract === null) {
    const isWanted = isSaid('prove.on') || isSaid('prove.require')
    return (isWanted && proveIn(settings, { only: false, wanted: false })) || undefined
  }
  if (!isSaid('prove.require')) return undefined
  return { ...contract.terms, only: false, required: settings.prove.require }
}

/**
 * Returns the review terms of every claim from now on. A flag or the environment decides. Otherwise a file may add a review,
 * but never remove it: the rounds could have written the project's file. For the same reason that file cannot choose the
 * reviewer.
 */
export function reviewAtResume({ journaled, settings, sources, reread }: ReviewAtResume): ReviewTerms | null {
  const isSaid = ['flag', 'environment'].includes(sources.review.layer)
  const now = reviewIn(settings)
  if (reread || journaled === null || (isSaid && now === null)) return now
  const isFromPerson = (key: 'reviewer.model' | 'reviewer.effort') =>
    ['person', 'environment'].includes(sources[key].layer)
  // A project's file cannot name an engine.
  const { engine = null } = now ?? journaled
  return {
    ...(engine === null ? {} : { engine }),
    model: isFromPerson('reviewer.model') ? settings.reviewer.model : journaled.model,
    effort: isFromPerson('reviewer.effort') ? settings.reviewer.effort : journaled.effort,
  }
}

/** Returns the runner's policy from the settings. */
export function policyOf(settings: PolicySettings): RunnerPolicy {
  return {
    get graceMs() {
      return settings.graceMinutes * 60_000
    },
    get maxWaitMs() {
      return settings.maxWait
    },
    get decideAfterMs() {
      return settings.decideAfter
    },
    get maxUsage() {
      return settings.maxUsage
    },
    get stallRounds() {
      return settings.stallRounds
    },
    fallback: { engines: settings.fallback, afterMs: settings.fallbackAfter, on: settings.fallbackOn },
  }
}

type PolicySettings = Pick<
  Settings,
  'fallback' | 'fallbackAfter' | 'fallbackOn' | 'graceMinutes' | 'maxWait' | 'decideAfter' | 'maxUsage' | 'stallRounds'
>

/**
 * Returns an older tree to compare a new session's protected files with; null: the tree at its start. It is older if the
 * last session changed some and was not done: nobody agreed to that change.
 */
export async function protectFrom(
  records: Pick<Records, 'sessions' | 'journal' | 'templates'>,
): Promise<string | null> {
  const newest = await newestAtWork(records)
  if (newest === null) return null
  // The list of sessions reports an unreadable one.
  const newestState = await readableState(records, newest)
  if (newestState === null || newestState.ended?.outcome.kind === 'done') return null
  const state = withoutScope(newestState)
  // Nobody agreed either to a scope's changes of files that its own gates protect.
  const hasChanged = hasChangedProof(newestState) || hasChangedProof(state) || state.givenUp.length > 0
  if (state.protectFrom !== null || !hasChanged) return state.protectFrom
  return state.savepoint?.start ?? null
}
