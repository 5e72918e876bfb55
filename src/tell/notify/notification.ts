import { basename } from 'node:path'
import { unreachable } from '../../base/errors.ts'
import { clipEnd } from '../../base/text.ts'
import type { EventOf, Recorded, RecordedOf, StallRemedy } from '../../core/events/events.ts'
import type { OutcomeHint, RoundOutcome, SessionOutcome, StallReason } from '../../core/events/outcome.ts'
import type { Cost } from '../../core/rules/cost.ts'
import { PLAN_DECISION } from '../../core/state/plan.ts'
import type { SessionState } from '../../core/state/state.ts'
import { wordsForCause } from '../words/names.ts'
import { formatCount, formatSpan, formatTokens } from '../words/numbers.ts'
import { describeOutcome, wordsForCost, wordsForRemedy, wordsForStall } from '../words/outcome.ts'
import { isPlanShown } from '../words/plan.ts'
import { plansOf, statusOfWork } from '../words/work.ts'

/**
 * Events to notify. A session that ended and needs a person is `needs-person`, not `ended`; so is a waiting plan, or a
 * parked task of a build.
 */
export type NotifyEvent = 'ended' | 'needs-person' | 'waiting' | 'stuck' | 'paused' | 'round-ended'

/** A notification, sent as JSON to a command's stdin or to a webhook. docs/reference/notifications.md documents it. */
export type Notification = NotificationHead & (NotificationFacts | { event: 'test' })

interface NotificationHead {
  v: 1
  /** When it happened; ISO 8601 in UTC. */
  at: string
  session: string
  host: string
  directory: string
  /** On one line, at most 500 characters. */
  goal: string
  /** On one line, without control characters, at most 120 characters; as are `message`, 1000, and `goal`. */
  title: string
  message: string
  /** Progress in the words of its template; left out: none. */
  work?: string
}

/** Facts of the event. Foreign texts in it are cut at 2000 characters, and may hold control characters. */
type NotificationFacts =
  | {
      event: 'ended' | 'needs-person'
      outcome: SessionOutcome
      exitCode: number
      rounds: number
      tokens: number
      /** Its cost, as in `status --json`; left out: there are no prices. */
      cost?: Cost
      durationMs: number
      /** Number of questions noted for the person. */
      questions: number
    }
  /** The plan of a build waits until the person has looked at it. */
  | { event: 'needs-person'; about: 'plan'; tasks: number }
  /** A plan version waits; once accepted it is cut into tasks; `until`: ISO 8601 in UTC. */
  | { event: 'needs-person'; about: 'plan'; version: number; question: string; until: string }
  /** A person is asked to decide; until then no round runs. */
  | {
      event: 'needs-person'
      about: 'decision'
      decision: string
      question: string
      choices: readonly { id: string; label: string }[]
      /** The choice at that time; null: none, and the session ends. */
      default: string | null
      /** ISO 8601 in UTC. */
      until: string
    }
  /** The session continues without its provider: its work goes to codex's default model. */
  | { event: 'needs-person'; about: 'remote'; provider: string; reason: string }
  /** An engine's usage window is full, and another engine continues; or it has room again. */
  | { event: 'waiting'; about: 'engine'; from: string; to: string; reason: string }
  /** A task of a build has failed too often; the others continue. */
  | { event: 'needs-person'; about: 'task'; task: string; name: string; reason: string; round: number }
  | {
      event: 'waiting'
      /** The round that starts when the wait is over. */
      round: number
      /** ISO 8601 in UTC. */
      until: string
      cause: RoundOutcome
    }
  | { event: 'stuck'; round: number; rounds: number; why: StallReason; remedy: StallRemedy }
  | {
      event: 'round-ended'
      round: number
      roundOutcome: RoundOutcome
      counts: boolean
      durationMs: number
      tokens: number | null
      changedCount: number
    }
  | {
      event: 'paused'
      /** When the pause ends by itself, ISO 8601 in UTC, and how: as in `hold-until`. */
      until: string
      how: EventOf<'hold-until'>['how']
    }

/**
 * The notification of an event; null if there is none. Pure.
 * @param state the session after the event
 */
export function notificationOf(event: Recorded, state: SessionState): Notification | null {
  const facts = factsOf(event, state)
  if (facts === null) return null
  const work = statusOfWork(state)
  const words = inWords(facts, event.at, state)
  return withWords(work === null ? facts : { ...facts, work: clip(work) }, words, event.at, state)
}

/** Returns the sample that `codemachine notify` sends. */
export function sampleNotification(at: string, host: string, directory: string): Notification {
  const words = { title: 'a test', message: 'Notifications arrive.' }
  return withWords({ event: 'test' }, words, at, {
    id: 'test',
    host,
    directory,
    goal: 'This is a test notification.',
  })
}

/** Shorter waits are not notified, ms. */
const LONG_WAIT_MS = 30 * 60_000
const GOAL_CHARS = 500
const TITLE_CHARS = 120
const MESSAGE_CHARS = 1000
const PLACE_CHARS = 40
const GOAL_IN_MESSAGE_CHARS = 160
const WORK_CHARS = 120
const TEXT_CHARS = 2000

function withWords(
  { work, ...facts }: (NotificationFacts | { event: 'test' }) & Pick<NotificationHead, 'work'>,
  { title, message }: { title: string; message: string },
  at: string,
  { id, host, directory, goal }: Pick<SessionState, 'id' | 'host' | 'directory' | 'goal'>,
): Notification {
  const place = plainLine(basename(directory) || directory, PLACE_CHARS)
  return {
    v: 1,
    at,
    session: id,
    host,
    directory,
    goal: plainLine(goal, GOAL_CHARS),
    title: plainLine(`codemachine in ${place}: ${title}`, TITLE_CHARS),
    message: plainLine(
      `${message}${work === undefined ? '' : ` It is at: ${plainLine(work, WORK_CHARS)}.`} Goal: ${plainLine(goal, GOAL_IN_MESSAGE_CHARS)}`,
      MESSAGE_CHARS,
    ),
    ...(work === undefined ? {} : { work }),
    ...facts,
  }
}

function factsOf(event: Recorded, state: SessionState): NotificationFacts | null {
  switch (event.type) {
    case 'session-ended':
      return sessionEnded(event, state)
    case 'waiting':
      return waiting(event, state)
    case 'engine-changed':
      return { event: 'waiting', about: 'engine', from: event.from, to: event.to, reason: clip(event.why) }
    case 'stuck':
      return stuck(event)
    case 'round-ended':
      return roundEnded(event)
    case 'hold-until':
      // A decision was already notified when it was asked.
      return state.decision === null ? { event: 'paused', until: event.until, how: event.how } : null
    case 'decision-asked':
      return decisionAsked(event, state)
    case 'task-judged':
      return taskParked(event)
    case 'warning':
      return goesRemote(event)
    // The person hears of other events, if at all, when the session ends or waits.
    default:
      return null
  }
}

function sessionEnded(event: RecordedOf<'session-ended'>, state: SessionState): NotificationFacts {
  const { exitCode, rounds, tokens, durationMs } = event
  const kind = event.outcome.kind === 'needs-person' ? 'needs-person' : 'ended'
  const cost = state.prices.length === 0 ? {} : { cost: state.cost }
  const { questions } = state
  return { event: kind, outcome: clipped(event.outcome), exitCode, rounds, tokens, ...cost, durationMs, questions }
}

function stuck({ round, rounds, why, remedy }: RecordedOf<'stuck'>): NotificationFacts {
  return { event: 'stuck', round, rounds, why, remedy }
}

/** Repeated short waits count as one if the rounds in between failed. */
function waiting(
  { at, round, until, cause }: RecordedOf<'waiting'>,
  { failures }: SessionState,
): NotificationFacts | null {
  const since = Math.min(Date.parse(at), failures.since ?? Number.POSITIVE_INFINITY)
  const isLong = Date.parse(until) - since > LONG_WAIT_MS
  return isLong ? { event: 'waiting', round, until, cause: clippedRound(cause) } : null
}

/** Returns whether an event is notified at once: a wait that is long by itself, not just together with earlier ones. */
export function isLongWait(event: Recorded): boolean {
  if (event.type === 'engine-changed') return true
  return event.type === 'waiting' && Date.parse(event.until) - Date.parse(event.at) > LONG_WAIT_MS
}

function roundEnded(event: RecordedOf<'round-ended'>): NotificationFacts {
  const { round, outcome, counts, durationMs, changedCount } = event
  const tokens = event.tokens?.total ?? null
  return { event: 'round-ended', round, roundOutcome: clippedRound(outcome), counts, durationMs, tokens, changedCount }
}

function taskParked({ verdict, round, task, name, detail }: RecordedOf<'task-judged'>): NotificationFacts | null {
  if (verdict !== 'parked') return null
  const reason = clip(detail ?? '')
  return { event: 'needs-person', about: 'task', task: clip(task), name: clip(name), reason, round }
}

/** A warning is notified only if code goes elsewhere. */
function goesRemote({ remote, message }: RecordedOf<'warning'>): NotificationFacts | null {
  if (remote === undefined) return null
  return { event: 'needs-person', about: 'remote', provider: clip(remote), reason: clip(message) }
}

/** Notifies a decision while the person may be away; null if nobody is asked, and for a plan that they have just changed. */
function decisionAsked(event: RecordedOf<'decision-asked'>, state: SessionState): NotificationFacts | null {
  const { at, id, title, choices, default: usual, until } = event
  if (Date.parse(until) <= Date.parse(at)) return null
  if (isPlanShown(state)) {
    const isChanged = (state.last?.part ?? null) === null
    return isChanged ? null : { event: 'needs-person', about: 'plan', tasks: state.taskPlan?.tasks.length ?? 0 }
  }
  const version = id === PLAN_DECISION ? plansOf(state).at(-1)?.version : undefined
  if (version !== undefined) return { event: 'needs-person', about: 'plan', version, question: clip(title), until }
  const shown = choices.map(choice => ({ id: choice.id, label: clip(choice.label) }))
  return {
    event: 'needs-person',
    about: 'decision',
    decision: id,
    question: clip(title),
    choices: shown,
    default: usual,
    until,
  }
}

function clip(text: string): string {
  return clipEnd(text, TEXT_CHARS)
}

function clipped(outcome: SessionOutcome): SessionOutcome {
  if (outcome.kind !== 'needs-person') return outcome
  const { reason, hint } = outcome
  return { ...outcome, reason: clip(reason), hint: hint === null ? null : clippedHint(hint) }
}

function clippedHint(hint: OutcomeHint): OutcomeHint {
  if (hint.do === 'say') return { ...hint, text: clip(hint.text) }
  if (hint.do === 'secret') return { ...hint, keys: hint.keys.slice(0, 10) }
  return hint.do === 'mend-plan' ? { ...hint, files: hint.files.map(clip) } : hint
}

function clippedRound(outcome: RoundOutcome): RoundOutcome {
  return outcome.message === null ? outcome : { ...outcome, message: clipEnd(outcome.message, TEXT_CHARS) }
}

/**
 * Cuts a foreign text to one line of at most `limit` characters. It removes control characters, line separators and
 * reordering characters, and never splits a character.
 */
export function plainLine(text: string, limit: number): string {
  const line = text
    .slice(0, LOOK_AHEAD * limit)
    .toWellFormed()
    .replace(STEERING, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  if (line.length <= limit) return line
  return `${line.slice(0, limit - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}

/** How much of a text to read, in limits: most of it could be blanks. */
const LOOK_AHEAD = 4

const STEERING = /[\p{Cc}\u2028\u2029\p{Bidi_Control}]/gu

/** Title and message; not safe to show yet. */
function inWords(facts: NotificationFacts, at: string, state: SessionState): { title: string; message: string } {
  switch (facts.event) {
    case 'ended':
    case 'needs-person': {
      if ('about' in facts) return inWordsAbout(facts, at)
      const { title, message } = outcomeInWords(facts.outcome, state)
      const spent = [formatCount(facts.rounds, 'round'), formatSpan(facts.durationMs), formatTokens(facts.tokens)]
      if (facts.cost !== undefined) spent.push(wordsForCost(facts.cost, {}))
      return { title, message: `${message} ${spent.join(', ')}.${questionsInWords(facts.questions)}` }
    }
    case 'waiting': {
      if ('about' in facts) return inWordsAbout(facts, at)
      const until = Date.parse(facts.until)
      const message = `The session continues in ${formatSpan(until - Date.parse(at))} (${wordsForCause(facts.cause)}).`
      return { title: `waiting until ${timeOf(until)}`, message }
    }
    case 'stuck': {
      const why = sentence(wordsForStall(facts.why, facts.rounds))
      return { title: 'stuck', message: `${why} The next round is ${wordsForRemedy(facts.remedy)}.` }
    }
    case 'round-ended': {
      const tokens = facts.tokens === null ? '' : `, ${formatTokens(facts.tokens)}`
      const changed = `${formatSpan(facts.durationMs)}${tokens}, ${formatCount(facts.changedCount, 'file')} changed.`
      return { title: `round ${facts.round} ended`, message: `${wordsForCause(facts.roundOutcome)}; ${changed}` }
    }
    case 'paused':
      return {
        title: 'paused',
        message: `The session is paused. To continue, type: codemachine unpause.${pauseEnd(facts)}`,
      }
    default:
      return unreachable(facts)
  }
}

function pauseEnd({ until, how }: Extract<NotificationFacts, { event: 'paused' }>): string {
  const at = timeOf(Date.parse(until))
  return how === 'goes-on' ? ` Without that, it continues by itself at ${at}.` : ` Without that, it ends at ${at}.`
}

const REASON_CHARS = 500
const NAME_CHARS = 120

function inWordsAbout(
  facts: Extract<NotificationFacts, { about: string }>,
  at: string,
): { title: string; message: string } {
  switch (facts.about) {
    case 'plan':
      if ('version' in facts) {
        const question = plainLine(facts.question, REASON_CHARS)
        const left = formatSpan(Date.parse(facts.until) - Date.parse(at))
        const how = `To see the plan, type: codemachine plan. To accept it: codemachine plan accept --version ${facts.version}.`
        return {
          title: 'the plan waits for you',
          message: `${question} ${how} The session waits at most ${left} for you.`,
        }
      }
      return {
        title: 'the plan waits for you',
        message: `The plan has ${formatCount(facts.tasks, 'task')}. To start the build, type: codemachine decide accept.`,
      }
    case 'decision': {
      const ids = facts.choices.map(({ id }) => id).join('|')
      const left = formatSpan(Date.parse(facts.until) - Date.parse(at))
      const then =
        facts.default === null
          ? `The session waits at most ${left} for you.`
          : `After ${left}, codemachine chooses "${facts.default}".`
      const question = plainLine(facts.question, REASON_CHARS)
      return { title: 'you decide', message: `${question} To answer, type: codemachine decide ${ids}. ${then}` }
    }
    case 'task':
      return {
        title: `task ${plainLine(facts.task, NAME_CHARS)} is parked`,
        message: `${plainLine(facts.name, NAME_CHARS)}: ${plainLine(facts.reason, REASON_CHARS)} The other tasks continue.`,
      }
    case 'engine':
      return {
        title: `${plainLine(facts.to, NAME_CHARS)} continues instead of ${plainLine(facts.from, NAME_CHARS)}`,
        message: plainLine(facts.reason, REASON_CHARS),
      }
    case 'remote':
      return {
        title: `${plainLine(facts.provider, NAME_CHARS)} does not answer, so a remote model continues and gets your code`,
        message: `${plainLine(facts.reason, REASON_CHARS)} To stop that, type: codemachine stop --now. With when_away = "wait", codemachine waits for the server instead.`,
      }
    default:
      return unreachable(facts)
  }
}

function questionsInWords(questions: number): string {
  if (questions === 0) return ''
  return ` It asked ${formatCount(questions, 'question')}.`
}

function outcomeInWords(outcome: SessionOutcome, state: SessionState): { title: string; message: string } {
  const { short, text, hint } = describeOutcome(outcome, state)
  const what = outcome.kind === 'needs-person' ? plainLine(outcome.reason, REASON_CHARS) : sentence(text)
  return { title: short, message: hint === null ? what : `${what} ${plainLine(hint, REASON_CHARS)}` }
}

function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`
}

/** `2026-11-21 05:02 UTC`: the person may be in another time zone than the machine. */
function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}
