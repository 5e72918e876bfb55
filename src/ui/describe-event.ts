import { unreachable } from '../base/errors.ts'
import type { Recorded } from '../session/events.ts'
import type { SessionState } from '../session/state.ts'
import { clipLines } from './clip-lines.ts'
import { describeItem } from './describe-item.ts'
import { describeOutcome } from './describe-outcome.ts'
import { describePlan } from './describe-plan.ts'
import { type Description, describe } from './description.ts'
import { formatCount } from './format-count.ts'
import { formatDuration } from './format-duration.ts'
import { formatMoment } from './format-time.ts'
import { formatTokens } from './format-tokens.ts'
import { oneLine } from './safe-text.ts'

const NAME_CHARS = 200
const TEXT_CHARS = 2000
const STEERING_LINES = 40

/**
 * What a person is told of an event; null if nothing. Pure.
 * @param state the session after the event
 */
export function describeEvent(event: Recorded, state: SessionState): Description | null {
  switch (event.type) {
    case 'session-created':
      return describe(
        `session ${event.session}  ${oneLine(event.goal, NAME_CHARS)}  (${event.template}, ${event.sandbox}, at most ${formatCount(event.limits.rounds, 'round')})`,
        'strong',
      )
    case 'session-resumed':
      return describe(
        `session ${event.session} goes on  ${name(state.goal)}  (at most ${formatCount(event.limits.rounds, 'round')})`,
        'strong',
      )
    case 'round-started':
      return describeRoundStart(event)
    case 'item-completed':
      return describeItem(event.item, { session: event.session, directory: state.directory })
    case 'plan-updated':
      return describe(`plan  ${describePlan(event.steps)}`)
    case 'model-rerouted':
      return describe(
        `codex changed the model: ${name(event.from)} → ${name(event.to)} (${text(event.reason)})`,
        'warning',
      )
    case 'request-answered':
      return describe(`codex asked (${name(event.method)}): ${text(event.subject)}  → ${text(event.answer)}`)
    case 'steered':
      return describe(
        `a person says${event.delivered ? '' : ', to the next round'}: ${clipLines(event.text, STEERING_LINES, 'the session has all of it')}`,
        'strong',
      )
    case 'warning':
      return describe(`warning: ${text(event.message)}`, 'warning')
    case 'error':
      return describeError(event)
    case 'round-ended':
      return describeRoundEnd(event)
    case 'waiting':
      return describe(
        `waiting until ${formatMoment(Date.parse(event.until), Date.parse(event.at))} (${cause(event.cause)})`,
        'warning',
      )
    case 'memory-broken':
      return describeBrokenMemory(event)
    case 'repository-restored':
      return describe(
        `put back what the round changed in the repository's own settings: ${names(event.paths)}${event.setAside === null ? '' : ` (kept as ${text(event.setAside)})`}`,
        'warning',
      )
    case 'done-nominated':
      return describe(`claimed done by ${event.by.join(' and ')}`)
    case 'done-refused':
      return describe(`claim refused (${event.reason}): ${text(event.detail)}`, 'warning')
    case 'done-accepted':
      return describe(`claim accepted: the tree is ${event.tree.slice(0, 12)}`, 'good')
    case 'session-ended':
      return describeSessionEnd(event)
    // Told with the round's end (`usage`) or by `codemachine status` (`limits`); `turn-started` follows its round at once.
    case 'turn-started':
    case 'usage':
    case 'limits':
      return null
    default:
      return unreachable(event)
  }
}

type EventOf<T extends Recorded['type']> = Extract<Recorded, { type: T }>

function describeRoundStart(event: EventOf<'round-started'>): Description {
  const model = event.model === null ? '' : `, model ${name(event.model)}`
  return describe(
    `round ${event.round}  ${name(event.agent)}, ${name(event.engine)} ${name(event.codex)}${model}`,
    'strong',
  )
}

function describeError(event: EventOf<'error'>): Description {
  const details = event.details === null ? '' : `: ${text(event.details)}`
  return describe(
    `error: ${text(event.message)}${details}${event.willRetry ? ' (codex tries again)' : ''}`,
    event.willRetry ? 'warning' : 'bad',
  )
}

function describeRoundEnd(event: EventOf<'round-ended'>): Description {
  const facts = [
    `round ${event.round} ended: ${cause(event.outcome)}`,
    formatDuration(event.durationMs),
    ...(event.tokens === null ? [] : [formatTokens(event.tokens.total)]),
    `${event.changedCount === 0 ? 'no files' : formatCount(event.changedCount, 'file')} changed`,
  ]
  return describe(facts.join(', '), event.outcome.class === 'worked' ? 'strong' : 'warning')
}

function describeBrokenMemory({ problem }: EventOf<'memory-broken'>): Description {
  const kept = problem.setAside === null ? '' : ` What it held was kept as ${name(problem.setAside)}.`
  const restored = problem.restored ? ' The last good version has been put back.' : ''
  return describe(`${name(problem.file)} could not be used: ${text(problem.problem)}${kept}${restored}`, 'warning')
}

function describeSessionEnd(event: EventOf<'session-ended'>): Description {
  const { text, hint, tone } = describeOutcome(event.outcome)
  const facts = `${formatCount(event.rounds, 'round')}, ${formatDuration(event.durationMs)}, ${formatTokens(event.tokens)}`
  return describe(`session ${event.session} ended: ${text}  (${facts})${hint === null ? '' : `\n${hint}`}`, tone)
}

function cause(outcome: EventOf<'waiting'>['cause']): string {
  return outcome.message === null ? outcome.class : `${outcome.class}: ${text(outcome.message)}`
}

function names(paths: readonly string[]): string {
  return paths.map(name).join(', ')
}

function name(value: string): string {
  return oneLine(value, NAME_CHARS)
}

function text(value: string): string {
  return oneLine(value, TEXT_CHARS)
}
