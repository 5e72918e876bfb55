import { stripVTControlCharacters } from 'node:util'
import { clipEnd } from '../../../base/text.ts'
import type { EventOf } from '../../../core/events/events.ts'
import type { ChangeWork, ExecutionWork, FixingWork, TaskRecord } from '../work.ts'
import { taskInHand } from './queue.ts'

/** How often in a row an attempt may leave the same failure, or change nothing, before the planner's model mends. */
const SAME_BEFORE_PLANNER = 2
/** The most that is known of what an earlier attempt did, characters. */
const MOST_EARLIER = 2_000
/** The most of what a command printed: of the last result, and of those before it. */
export const TAIL_CHARACTERS = 4_000
const EARLIER_TAIL_CHARACTERS = 400
const MOST_RESULTS = 6

type Result = TaskRecord['results'][number]

/** How often what is in hand, a verification or the claim, was mended. */
export function attemptsOf(execution: ExecutionWork): number {
  return taskInHand(execution)?.attempts ?? execution.claim.attempts
}

/** Whether it may be mended once more. */
export function hasAttempts({ options, execution }: ChangeWork): boolean {
  return attemptsOf(execution) < options.fixAttempts
}

/** The next attempt at mending what is in hand: who makes it, and what is known of those before it. Pure. */
export function nextAttempt({ options, execution }: ChangeWork): FixingWork {
  const attempt = attemptsOf(execution) + 1
  const failure = failureOf(execution)
  const before = execution.fixing
  const isSame = before !== null && (before.failure === failure || !before.hasChanged)
  const sameFailures = isSame ? before.sameFailures + 1 : 0
  const isLast = attempt >= options.fixAttempts
  const by = isLast || sameFailures >= SAME_BEFORE_PLANNER || before?.by === 'planner' ? 'planner' : 'executor'
  return { attempt, by, earlier: before?.earlier ?? [], sameFailures, failure, hasChanged: false }
}

/** Why the planner's model makes this attempt, a sentence. */
export function whyPlanner({ options }: ChangeWork, { attempt, sameFailures }: FixingWork): string {
  if (sameFailures === SAME_BEFORE_PLANNER)
    return `${sameFailures} attempts changed nothing, or left the same failure. From now on the planner's model fixes it.`
  if (attempt >= options.fixAttempts) return `This is the last attempt: the planner's model makes it.`
  return `The planner's model continues to fix it.`
}

/** What is being mended, once a round has tried it. Pure. */
export function afterAttempt(
  fixing: FixingWork,
  { changed, changedCount, treeBefore, treeAfter, outcome }: EventOf<'round-ended'>,
  words: string | null,
): FixingWork {
  const hasChanged = treeBefore !== treeAfter
  const more = changedCount > changed.length ? `, and ${changedCount - changed.length} more` : ''
  const files = hasChanged ? `changed ${changed.slice(0, MOST_NAMED).join(', ')}${more}` : 'changed nothing'
  const how = outcome.class === 'worked' ? '' : ` It was cut off (${outcome.class}).`
  const said = words === null || words.trim() === '' ? '' : ` It said: ${clipEnd(words.trim(), MOST_EARLIER)}`
  const entry = `Attempt ${fixing.attempt} ${files}.${how}${said}`
  return { ...fixing, hasChanged, earlier: [...fixing.earlier, entry] }
}

const MOST_NAMED = 20

/** The results of a command after one more: the last six, of which only the last one keeps all that it printed. Pure. */
export function withResult(results: readonly Result[], result: Result): readonly Result[] {
  const earlier = results.slice(-MOST_RESULTS + 1)
  return [...earlier.map(each => ({ ...each, tail: each.tail.slice(-EARLIER_TAIL_CHARACTERS) })), result]
}

/** By what the failure in hand is known to be the same: how it ended and what was printed, without what differs from run to run. */
function failureOf(execution: ExecutionWork): string {
  const record = taskInHand(execution)
  if (record === null) return sameness(execution.claim.refused ?? '')
  const last = record.results.at(-1)
  return last === undefined ? '' : `${last.status} ${last.exitCode} ${sameness(last.tail)}`
}

/** A text without colours, times, dates, durations and addresses, and with its spaces made one. Pure. */
export function sameness(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/\b\d{4}-\d{2}-\d{2}(?:[T ][\d:.]+Z?)?/g, '<date>')
    .replace(/\b\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?\b/g, '<time>')
    .replace(/\b0x[0-9a-f]+\b/gi, '<address>')
    .replace(/\bduration_ms:?\s+[\d.]+/g, '<duration>')
    .replace(/\b\d+(?:\.\d+)?\s?(?:ns|µs|ms|s|sec|seconds|m|min|minutes)\b/g, '<duration>')
    .replace(/(?:\/[\w.-]+)*\/(?:tmp|T)\/[\w./-]+/g, '<path>')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(-TAIL_CHARACTERS)
}
