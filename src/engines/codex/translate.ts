import type { ServerNotification, ThreadTokenUsage } from '../../../protocol/codex.ts'
import { clipEnd } from '../../base/text.ts'
import type { EngineEvent, ModelInUse, UsageLimits } from '../../core/engine.ts'
import type { LiveEvent, TokenCounts } from '../../core/events/events.ts'
import type { UsageWindow } from '../../core/events/outcome.ts'
import { addTokens, isFullWindow, NO_TOKENS, tokensSince } from '../../core/rules/cost.ts'
import { boundedOrNull, boundedText, translateItem } from './translate-item.ts'
import { memberOf, numberMember } from './wire.ts'

/** The meaning of a notification. `ignored`: known, with nothing to show; `unknown`: unknown method. */
type Translation =
  | { kind: 'event'; event: EngineEvent }
  | { kind: 'live'; event: LiveEvent }
  | { kind: 'ignored' }
  | { kind: 'unknown' }

const IGNORED: Translation = { kind: 'ignored' }

/**
 * Translates from codex's open wire to closed unions. Pure.
 * @param inUse what codex said of the thread when it started
 */
export function translate(message: ServerNotification, round: number, inUse: ModelInUse = {}): Translation {
  switch (message.method) {
    case 'turn/started': {
      const { threadId, turn } = message.params
      return event({ type: 'turn-started', round, thread: threadId, turn: turn.id, ...inUse })
    }
    case 'item/started':
      return live({ type: 'item-started', round, item: translateItem(message.params.item) })
    case 'item/completed':
      return event({ type: 'item-completed', round, item: translateItem(message.params.item) })
    case 'item/agentMessage/delta':
      return textDelta(round, 'agent-message', message.params)
    case 'item/plan/delta':
      return textDelta(round, 'plan', message.params)
    case 'item/reasoning/summaryTextDelta':
      return textDelta(round, 'reasoning', message.params)
    case 'item/commandExecution/outputDelta':
      return live({ type: 'output-delta', round, item: message.params.itemId, text: message.params.delta })
    case 'turn/plan/updated': {
      const { explanation, plan } = message.params
      return event({ type: 'plan-updated', round, explanation: boundedOrNull(explanation), steps: planSteps(plan) })
    }
    case 'thread/tokenUsage/updated':
      return event(usage(round, message.params.threadId, message.params.tokenUsage))
    case 'account/rateLimits/updated': {
      const limits = usageLimits(message.params.rateLimits)
      return limits ? event({ type: 'limits', ...limits }) : IGNORED
    }
    case 'model/rerouted': {
      const { fromModel, toModel, reason } = message.params
      return event({ type: 'model-rerouted', round, from: fromModel, to: toModel, reason: String(reason) })
    }
    case 'error': {
      const { error, willRetry } = message.params
      return event({
        type: 'error',
        round,
        message: boundedText(error.message),
        details: boundedOrNull(error.additionalDetails),
        willRetry,
        waitsForNetwork: waitsForNetwork(message.params),
      })
    }
    case 'warning':
    case 'guardianWarning':
      return warning(round, message.params.message)
    case 'configWarning':
    case 'deprecationNotice':
      return warning(round, sentences(message.params.summary, message.params.details))
    case 'mcpServer/startupStatus/updated': {
      const { name, status, error } = message.params
      if (status !== 'failed') return IGNORED
      return warning(round, `The MCP server "${name}" did not start: ${error ?? 'no reason given'}`)
    }
    default:
      return isIgnored(message.method) ? IGNORED : { kind: 'unknown' }
  }
}

/** True if a notice says that codex retries until the network is back. */
export function waitsForNetwork({ willRetry, error }: { willRetry: boolean; error: { message: string } }): boolean {
  return willRetry && /waiting for network/i.test(error.message)
}

/** Known methods without news for a person: repeated by other events, or internal to codex. */
const IGNORED_METHODS: ReadonlySet<string> = new Set([
  'thread/started',
  'thread/status/changed',
  'thread/readState/changed',
  'thread/settings/updated',
  'thread/name/updated',
  'thread/compacted',
  'thread/closed',
  'turn/completed',
  'turn/diff/updated',
  'turn/moderationMetadata',
  'hook/started',
  'hook/completed',
  'item/reasoning/summaryPartAdded',
  'item/reasoning/textDelta',
  'item/commandExecution/terminalInteraction',
  'item/fileChange/outputDelta',
  'item/fileChange/patchUpdated',
  'item/mcpToolCall/progress',
  'rawResponseItem/completed',
  'rawResponse/completed',
  'serverRequest/resolved',
  'account/updated',
  'account/login/completed',
  'app/list/updated',
  'skills/changed',
  'remoteControl/status/changed',
  'model/verification',
  'model/safetyBuffering/updated',
  'modelProvider/authRecoveryStarted',
  'modelProvider/authRecoveryCompleted',
])

function isIgnored(method: string): boolean {
  return IGNORED_METHODS.has(method) || method.startsWith('codex/event/')
}

function event(value: EngineEvent): Translation {
  return { kind: 'event', event: value }
}

function live(value: LiveEvent): Translation {
  return { kind: 'live', event: value }
}

function warning(round: number, message: string): Translation {
  return event({ type: 'warning', round, message: boundedText(message) })
}

function textDelta(
  round: number,
  source: 'agent-message' | 'reasoning' | 'plan',
  params: { itemId: string; delta: string },
): Translation {
  return live({ type: 'text-delta', round, item: params.itemId, source, text: params.delta })
}

type Plan = Extract<ServerNotification, { method: 'turn/plan/updated' }>['params']['plan']
type Steps = Extract<EngineEvent, { type: 'plan-updated' }>['steps']

const MOST_STEPS = 200
const STEP_CHARACTERS = 1000

/** Returns the first 200 steps, and one more for all others. */
function planSteps(plan: Plan): Steps {
  const steps = plan
    .slice(0, MOST_STEPS)
    .map(({ step, status }) => ({ step: clipEnd(step, STEP_CHARACTERS), status: stepStatus(status) }))
  const left = plan.length - steps.length
  return left > 0 ? [...steps, { step: `[… ${left} more steps]`, status: 'pending' }] : steps
}

function stepStatus(status: string): 'pending' | 'in-progress' | 'completed' {
  if (status === 'completed') return 'completed'
  return status === 'inProgress' ? 'in-progress' : 'pending'
}

function usage(round: number, thread: string, usage: ThreadTokenUsage): EngineEvent {
  return {
    type: 'usage',
    round,
    thread,
    total: counts(usage.total),
    last: counts(usage.last),
    contextWindow: usage.modelContextWindow ?? null,
  }
}

function counts(tokens: ThreadTokenUsage['total']): TokenCounts {
  return {
    input: tokens.inputTokens,
    cachedInput: tokens.cachedInputTokens,
    output: tokens.outputTokens,
    reasoning: tokens.reasoningOutputTokens,
    total: tokens.totalTokens,
  }
}

/** Converts codex's token counts of a thread to used tokens: after a full context, codex counts on from the whole window. */
export class UsedTokens {
  /** Tokens used before the last full context, and codex's count at that time. */
  #before = NO_TOKENS
  #from = NO_TOKENS
  #used = NO_TOKENS

  /** Returns the report with the tokens used so far. In a full context, the last answer filled the window. */
  count<R extends { total: TokenCounts; last: TokenCounts; contextWindow: number | null }>(report: R): R {
    const { total, contextWindow } = report
    if (isFullWindow(report)) {
      this.#before = this.#used
      this.#from = total
      return { ...report, total: this.#used, last: { ...NO_TOKENS, total: contextWindow ?? 0 } }
    }
    this.#used = addTokens(this.#before, tokensSince(total, this.#from))
    return { ...report, total: this.#used }
  }
}

function sentences(summary: string, details: string | null | undefined): string {
  return details ? `${summary} ${details}` : summary
}

/** Id of codex's own usage limit; some models have another one. */
const CODEX_LIMIT = 'codex'

/** Converts codex's `RateLimitSnapshot` of a notification; null if it is empty or about another limit. */
function usageLimits(snapshot: unknown): UsageLimits | null {
  const limit = memberOf(snapshot, 'limitId')
  if (typeof limit === 'string' && limit !== CODEX_LIMIT) return null
  const primary = usageWindow(memberOf(snapshot, 'primary'))
  const secondary = usageWindow(memberOf(snapshot, 'secondary'))
  if (!primary && !secondary) return null
  const credits = memberOf(snapshot, 'credits')
  if (typeof credits !== 'object' || credits === null) return { primary, secondary }
  const hasCredits = memberOf(credits, 'hasCredits') === true || memberOf(credits, 'unlimited') === true
  return { primary, secondary, credits: hasCredits }
}

/** Converts the answer to `account/rateLimits/read`, which may have several limits. */
export function parseUsageLimits(answer: unknown): UsageLimits | null {
  const own = memberOf(memberOf(answer, 'rateLimitsByLimitId'), CODEX_LIMIT)
  return usageLimits(own ?? memberOf(answer, 'rateLimits'))
}

function usageWindow(window: unknown): UsageWindow | null {
  const usedPercent = numberMember(window, 'usedPercent')
  if (usedPercent === null) return null
  const resetsAt = numberMember(window, 'resetsAt')
  return {
    usedPercent,
    windowMinutes: numberMember(window, 'windowDurationMins'),
    resetsAt: resetsAt === null ? null : resetsAt * 1000,
  }
}
