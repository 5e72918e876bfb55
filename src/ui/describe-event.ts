import { unreachable } from '../base/errors.ts'
import type { Recorded, RecordedOf } from '../session/events.ts'
import type { SessionState } from '../session/state.ts'
import { clipLines } from './clip-lines.ts'
import { describeAgentItem } from './describe-agent-item.ts'
import { describeBuild } from './describe-build.ts'
import { describeItem } from './describe-item.ts'
import { describeOutcome } from './describe-outcome.ts'
import {
  describeInterrupt,
  describePaused,
  describeStopAsked,
  describeWaitEnd,
  describeWaiting,
} from './describe-pause.ts'
import { describePlan } from './describe-plan.ts'
import { describeProof } from './describe-proof.ts'
import { describeReplanAsked, describeReplanned } from './describe-replan.ts'
import { describeRequest } from './describe-request.ts'
import {
  describeError,
  describeRoundEnd,
  describeRoundStart,
  describeStuck,
  describeTurnContinued,
  describeWindingDown,
} from './describe-round.ts'
import { type Description, describe } from './description.ts'
import { formatCount } from './format-count.ts'
import { formatDuration } from './format-duration.ts'
import { formatSpan } from './format-span.ts'
import { formatTokens } from './format-tokens.ts'
import { type Hints, SHELL_HINTS } from './hints.ts'
import { isReviewAnswer, isReviewing } from './reviewer.ts'
import { oneLine } from './safe-text.ts'
import { agentLabel, isPlanShown, isToldOfAgent } from './words-for-build.ts'
import { wordsForLimits } from './words-for-limits.ts'
import { wordsForGates, wordsForQuestions, wordsForReviewTerms } from './words-for-proof.ts'

const NAME_CHARS = 200
const TEXT_CHARS = 2000
const STEERING_LINES = 40

/**
 * What a person is told of an event; null if nothing. Pure.
 * @param state the session after the event
 * @param hints how a person does there what may be done about it
 */
export function describeEvent(event: Recorded, state: SessionState, hints: Hints = SHELL_HINTS): Description | null {
  switch (event.type) {
    case 'session-created':
      return describeCreation(event)
    case 'session-resumed':
      return describeResumption(event, state, hints)
    case 'keep-awake':
      return describeKeepAwake(event)
    case 'round-started':
      return describeRoundStart(event, state)
    case 'item-completed':
      return describeItemOf(event, state)
    case 'plan-updated':
      return describe(`plan  ${describePlan(event.steps)}`)
    case 'model-rerouted':
      return describe(
        `codex changed the model: ${name(event.from)} → ${name(event.to)} (${text(event.reason)})`,
        'warning',
      )
    case 'request-answered':
      return describeRequest(event)
    case 'steered':
      return describe(
        `a person says${event.delivered ? '' : ', to the next round'}: ${clipLines(event.text, STEERING_LINES, 'the session has all of it')}`,
        'strong',
      )
    case 'warning':
      return describe(`warning: ${text(event.message)}`, 'warning')
    case 'error':
      return describeError(event, state)
    case 'turn-continued':
      return describeTurnContinued(event)
    case 'winding-down':
      return describeWindingDown(event, state)
    case 'machine-slept':
      return describe(`the machine slept for ${formatSpan(event.ms)}; nothing was lost`)
    case 'round-ended':
      return describeRoundEnd(event, state)
    case 'waiting':
      return describeWaiting(event, state, hints)
    case 'wait-ended':
      return describeWaitEnd(event)
    case 'stop-asked':
      return describeStopAsked(event, state)
    case 'paused':
      return describePaused(state)
    case 'held':
      return describe(
        isPlanShown(state) ? `the plan waits for you: ${hints.startBuild}` : `paused; ${hints.goOn}`,
        'strong',
      )
    case 'unpaused':
      return describe('unpaused by a person: going on', 'strong')
    case 'interrupt-asked':
      return describeInterrupt(state)
    case 'skip-asked':
      return describe('skip asked for: this session ends now, and the next in the queue has its turn', 'strong')
    case 'replan-asked':
      return describeReplanAsked(event)
    case 'replanned':
      return describeReplanned(event, hints)
    case 'stuck':
      return describeStuck(event)
    case 'memory-broken':
      return describeBrokenMemory(event)
    case 'repository-restored':
      return describe(
        `put back what the round changed in the repository's own settings: ${names(event.paths)}${event.setAside === null ? '' : ` (kept as ${text(event.setAside)})`}`,
        'warning',
      )
    case 'plan-refused':
    case 'plan-ready':
    case 'agent-started':
    case 'agent-ended':
    case 'task-judged':
    case 'tasks-judged':
      return describeBuild(event, state)
    case 'protected-changed':
    case 'gate-ended':
    case 'question-asked':
    case 'review-started':
    case 'review-ended':
    case 'done-nominated':
    case 'done-refused':
    case 'done-accepted':
      return describeProof(event, state, hints)
    case 'session-ended':
      return describeSessionEnd(event, state)
    // Told with the round's end (`usage`), or by `codemachine status` (`limits`, what is checked, what is kept);
    // `turn-started` follows its round at once.
    case 'turn-started':
    case 'usage':
    case 'limits':
    case 'savepoint':
    case 'gate-started':
      return null
    default:
      return unreachable(event)
  }
}

function describeCreation(event: RecordedOf<'session-created'>): Description {
  const { gates, none } = gatesInWords(event)
  const facts = `${event.template}, ${event.sandbox}, ${wordsForLimits(event.limits)}${none}`
  return describe(`session ${event.session}  ${name(event.goal)}  (${facts})${gates}`, 'strong')
}

/** What was waited for when it was left is waited for first. */
function describeResumption(event: RecordedOf<'session-resumed'>, state: SessionState, hints: Hints): Description {
  const wait = describeWaiting(event, state, hints)
  const { gates, none } = gatesInWords(event)
  return describe(
    `session ${event.session} goes on  ${name(state.goal)}  (${wordsForLimits(event.limits)}${none})${gates}${wait ? `\n${wait.text}` : ''}`,
    'strong',
  )
}

/** Which gates a session has, and whether a review has to agree, on a line of their own; that there is neither, among the facts. */
function gatesInWords({ gates, review }: RecordedOf<'session-created' | 'session-resumed'>): {
  gates: string
  none: string
} {
  const known = wordsForGates(gates)
  const terms = wordsForReviewTerms(review)
  const isNone = gates?.length === 0
  const lines = [isNone ? null : known, terms].filter(words => words !== null)
  return { gates: lines.length === 0 ? '' : `\n${lines.join('; ')}`, none: isNone ? ', no gates' : '' }
}

/** What codex did, in a round or as the reviewer of one. */
function describeItemOf(event: RecordedOf<'item-completed'>, state: SessionState): Description | null {
  const { item, session, instance } = event
  if (isToldOfAgent(event, state)) return null
  if (instance !== undefined) {
    const told = describeAgentItem(item, { session, directory: state.directory })
    return told && { ...told, text: `${agentLabel(instance, state)}  ${told.text}` }
  }
  const description = describeItem(item, { session, directory: state.directory })
  if (description === null || !isReviewing(state)) return description
  if (item.kind === 'agent-message' && isReviewAnswer(item.text)) return null
  return { ...description, text: `reviewer  ${description.text}` }
}

function describeKeepAwake({ by, problem }: RecordedOf<'keep-awake'>): Description {
  const why = problem === null ? '' : `: ${text(problem)}`
  if (by === null) return describe(`this machine may fall asleep${why}`, problem === null ? 'quiet' : 'warning')
  return describe(`kept awake by ${name(by)}${why}`, problem === null ? 'quiet' : 'warning')
}

function describeBrokenMemory({ problem }: RecordedOf<'memory-broken'>): Description {
  const kept = problem.setAside === null ? '' : ` What it held was kept as ${name(problem.setAside)}.`
  const restored = problem.restored ? ' The last good version has been put back.' : ''
  return describe(`${name(problem.file)} could not be used: ${text(problem.problem)}${kept}${restored}`, 'warning')
}

function describeSessionEnd(event: RecordedOf<'session-ended'>, state: SessionState): Description {
  const { text, hint, tone } = describeOutcome(event.outcome, state)
  const facts = `${formatCount(event.rounds, 'round')}, ${formatDuration(event.durationMs)}, ${formatTokens(event.tokens)}`
  const more = [hint, wordsForQuestions(state.questions)].filter(line => line !== null)
  return describe([`session ${event.session} ended: ${text}  (${facts})`, ...more].join('\n'), tone)
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
