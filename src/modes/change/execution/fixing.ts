import { stripVTControlCharacters } from 'node:util'
import { clipEnd } from '../../../base/text.ts'
import type { EventOf } from '../../../core/events/events.ts'
import type { ChangeWork, ExecutionWork, FixingWork, TaskRecord } from '../work.ts'
import { taskInHand } from './queue.ts'

/** How many attempts in a row may leave the same failure, or change nothing, before the planner's model takes over. */
const SAME_BEFORE_PLANNER = 2
/** Most characters about an earlier attempt. */
const MOST_EARLIER = 2_000
/** Most output characters of a command: of the last result, and of earlier ones. */
export const TAIL_CHARACTERS = 4_000
const EARLIER_TAIL_CHARACTERS = 400
const MOST_RESULTS = 6

type Result = TaskRecord['results'][number]

/** Returns how often the current verification, or the claim, was fixed. */
export function attemptsOf(execution: ExecutionWork): number {
  return taskInHand(execution)?.attempts ?? execution.claim.attempts
}

/** Returns whether another attempt is allowed. */
export function hasAttempts({ options, execution }: ChangeWork): boolean {
  return attemptsOf(execution) < options.fixAttempts
}

/** Returns the next attempt: who makes it, and the facts of earlier ones. Pure. */
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

/** Returns a sentence why the planner's model makes this attempt. */
export function whyPlanner({ options }: ChangeWork, { attempt, sameFailures }: FixingWork): string {
  if (sameFailures === SAME_BEFORE_PLANNER)
    return `${sameFailures} attempts changed nothing, or left the same failure. From now on the planner's model fixes it.`
  if (attempt >= options.fixAttempts) return `This is the last attempt: the planner's model makes it.`
  return `The planner's model continues to fix it.`
}

/** Returns the attempt after its round. Pure. */
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

/** Adds a result of a command: the last six, of which only the newest keeps its whole output. Pure. */
export function withResult(results: readonly Result[], result: Result): readonly Result[] {
  const earlier = results.slice(-MOST_RESULTS + 1)
  return [...earlier.map(each => ({ ...each, tail: each.tail.slice(-EARLIER_TAIL_CHARACTERS) })), result]
}

/** Returns a key of the current failure: its end and output, without parts that differ from run to run. */
function failureOf(execution: ExecutionWork): string {
  const record = taskInHand(execution)
  if (record === null) return sameness(execution.claim.refused ?? '')
  const last = record.results.at(-1)
  return last === undefined ? '' : `${last.status} ${last.exitCode} ${sameness(last.tail)}`
}

/** Removes colours, times, dates, durations and addresses from a text, and joins its spaces. Pure. */
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
