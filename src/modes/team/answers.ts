import { cleanText } from '../../base/text.ts'
import type { AskedAnswer } from '../../core/rules/answer.ts'
import type { Parsed } from '../../core/shapes/memory.ts'
import { STEP_ANSWER } from '../../core/shapes/shell-tools.ts'
import type { HowToTest, PlannedStep, TeamPlan, TeamReview } from './work.ts'

/** Most steps of a plan, and of a plan with all its repairs. */
export const MOST_STEPS = 50
export const MOST_ALL_STEPS = 200

const texts = { type: 'array', items: { type: 'string' } }

/** Answer of the planner: it should give `network` and `needs`, but may leave them out. */
export const PLAN_ANSWER: AskedAnswer = {
  name: 'plan',
  // The first request, and three repeats.
  mostRefusals: 4,
  schema: objectOf({
    goal: { type: 'string' },
    steps: listOf({
      id: { type: 'integer' },
      description: { type: 'string' },
      network: { type: 'boolean' },
      needs: { type: 'array', items: { type: 'integer' } },
    }),
  }),
  accepts: { ...objectOf({ goal: { type: 'string' }, steps: { type: 'array' } }), additionalProperties: true },
}

/** A step fails long before, after two tries, and the others continue. */
const NEVER_TOO_OFTEN = Number.MAX_SAFE_INTEGER

/** Answer of a worker. Each step has its own answer name, so that a refusal reaches only the next round of that step. */
export function workAnswer(id: number, stepwise: boolean): AskedAnswer {
  const name = `step-${id}`
  const said = { done: { type: 'boolean' }, thoughts: { type: 'string' } }
  const checks = { type: ['array', 'null'], items: { type: 'string' } }
  const accepts = { type: 'object', properties: { ...said, checks }, required: ['done', 'thoughts'] }
  const shape = stepwise ? STEP_ANSWER : { schema: objectOf({ ...said, checks: texts }), accepts }
  return { name, mostRefusals: NEVER_TOO_OFTEN, ...shape }
}

/** Answer of the tester. */
export const TEST_ANSWER: AskedAnswer = {
  name: 'test',
  schema: objectOf({
    commands: listOf({
      for: { type: 'string' },
      command: { type: 'string' },
      ends_by_itself: { type: 'boolean' },
      needs_network: { type: 'boolean' },
    }),
  }),
}

/** Answer of the reviewer. */
export const REVIEW_ANSWER: AskedAnswer = {
  name: 'assessment',
  schema: objectOf({
    overall_assessment: { type: 'string' },
    issues: listOf({
      type: { type: 'string' },
      description: { type: 'string' },
      severity: { type: 'string', enum: ['low', 'medium', 'high'] },
    }),
    suggestions: texts,
  }),
}

function objectOf(properties: Readonly<Record<string, object>>): Readonly<Record<string, unknown>> {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false }
}

function listOf(properties: Readonly<Record<string, object>>): object {
  return { type: 'array', items: objectOf(properties) }
}

/** Most stored characters of each text of an answer. */
const MOST_TEXT = 4_000

/** Most characters of an answer as JSON: less than an event holds, so its value is never left out. */
const MOST_ANSWER = 60 * 1024

/** Returns a sentence why an answer is too long; null: it is not. Pure. */
export function sizeProblem(value: unknown): string | null {
  const size = JSON.stringify(value).length
  return size > MOST_ANSWER
    ? `The answer has ${size} characters as JSON; ${MOST_ANSWER} are the most. Say it in fewer words.`
    : null
}

/**
 * Reads a plan from an answer. A problem has a line per mistake.
 * @param done finished steps: the plan may repeat them unchanged, and no other step may have their ids
 */
export function readPlan(value: unknown, done: readonly PlannedStep[]): Parsed<TeamPlan> {
  const { goal, steps } = fieldsOf(value)
  if (typeof goal !== 'string' || goal.trim() === '') return wrong('`goal` has to be a text that is not empty.')
  if (!Array.isArray(steps) || steps.length === 0) return wrong('`steps` has to be a list of at least one step.')
  if (steps.length > MOST_STEPS)
    return wrong(`\`steps\` has ${steps.length} steps; give at most ${MOST_STEPS}, and join what belongs together.`)
  const taken = new Map(done.map(each => [each.id, cleaned(each.description)]))
  const known = new Set(taken.keys())
  const seen = new Set<number>()
  const mistakes: string[] = []
  const read: PlannedStep[] = []
  for (const [at, step] of steps.entries()) {
    const problem = problemOfStep(step, { known, seen, taken })
    if (problem !== null) mistakes.push(`\`steps[${at}]\` ${problem}`)
    else {
      const { id, description, network, needs } = step as PlannedStep
      known.add(id)
      seen.add(id)
      read.push({
        id,
        description: cleaned(description),
        // A model that must fill every field leaves optional ones empty.
        ...(network == null ? {} : { network }),
        ...(needs == null ? {} : { needs: [...new Set(needs)] }),
      })
    }
  }
  if (mistakes.length > 0) return wrong(mistakes.slice(0, 10).join('\n'))
  return { ok: true, value: { goal: cleaned(goal), steps: read } }
}

interface KnownSteps {
  /** Ids that a step may need, and the plan's own ids among them. */
  known: ReadonlySet<number>
  seen: ReadonlySet<number>
  /** Descriptions of the finished steps, by id. */
  taken: ReadonlyMap<number, string>
}

function problemOfStep(step: unknown, { known, seen, taken }: KnownSteps): string | null {
  const { id, description, network, needs } = fieldsOf(step)
  if (!Number.isInteger(id) || (id as number) < 1 || (id as number) > MOST_ID)
    return `needs an \`id\`, a whole number from 1 to ${MOST_ID}.`
  if (seen.has(id as number)) return `has the id ${id} of a step before it; use each id once.`
  if (typeof description !== 'string' || description.trim() === '') return 'needs a `description`.'
  if (description.length > MOST_TEXT)
    return `has a \`description\` of ${description.length} characters; ${MOST_TEXT} are the most. Make several steps of it.`
  const before = taken.get(id as number)
  if (before !== undefined && before !== cleaned(description))
    return `has the id ${id} of a step that is done, and is another one; use ids from ${Math.max(...taken.keys()) + 1} on.`
  if (network != null && typeof network !== 'boolean') return 'has a `network` that is neither true nor false.'
  if (needs == null) return null
  if (!Array.isArray(needs)) return 'has `needs` that are no list of ids.'
  const unknown = needs.filter(each => !known.has(each))
  if (unknown.length === 0) return null
  return `needs ${unknown.slice(0, 10).map(shown).join(', ')}, and no step before it has such an id.`
}

function shown(value: unknown): string {
  return JSON.stringify(value).slice(0, 40)
}

/** Highest id of a planned step; repair steps follow it. */
const MOST_ID = 1_000_000

/** Returns a sentence why a worker's answer is unusable; null: usable. Pure. */
export function workProblem(value: unknown): string | null {
  const { checks } = fieldsOf(value)
  if (!Array.isArray(checks)) return null
  if (checks.length > MOST_CHECKS)
    return `\`checks\` has ${checks.length} commands; give at most ${MOST_CHECKS}, those that show the most.`
  const long = checks.find(each => String(each).length > MOST_CHECK)
  return long === undefined ? null : `A command of \`checks\` has more than ${MOST_CHECK} characters; make it shorter.`
}

const MOST_CHECKS = 5
const MOST_CHECK = 1_000

/** Reads a worker's answer. With a command to run, or a question, the step is not done. `checks`: lines that must pass. */
export function readWork(value: unknown): { done: boolean; thoughts: string; checks: string[] } {
  const { done, thoughts, checks, command, ask_human: asked } = fieldsOf(value)
  const isLast = (typeof command !== 'string' || command.trim() === '') && asked == null
  const lines = Array.isArray(checks) ? checks.filter(each => typeof each === 'string') : []
  return {
    done: done === true && isLast,
    thoughts: typeof thoughts === 'string' ? cleaned(thoughts) : '',
    checks: lines
      .map(line => line.trim())
      .filter(line => line !== '')
      .slice(0, MOST_CHECKS),
  }
}

const MOST_WAYS = 10

/** Reads a tester's ways to test: each with the reason why it does not run here, or null. */
export function readTest(value: unknown, hasNetwork: boolean): HowToTest[] {
  const { commands } = fieldsOf(value)
  const list = Array.isArray(commands) ? commands : []
  return list.slice(0, MOST_WAYS).flatMap(each => {
    const { for: purpose, command, ends_by_itself: ends, needs_network: network } = fieldsOf(each)
    if (typeof command !== 'string' || command.trim() === '') return []
    const why = network === true && !hasNetwork ? NEEDS_NETWORK : ends === false ? RUNS_ON : null
    return [{ for: cleaned(String(purpose ?? '')), command: command.trim().slice(0, MOST_TEXT), ran: null, why }]
  })
}

const NEEDS_NETWORK = 'needs the network'
const RUNS_ON = 'does not end by itself'

/** Reads a reviewer's answer; texts are cut at their bounds. */
export function readReview(value: unknown): TeamReview {
  const { overall_assessment: overall, issues, suggestions } = value as TeamReview
  return {
    overall_assessment: cleaned(overall),
    issues: issues.slice(0, MOST_STEPS).map(({ type, description, severity }) => ({
      type: cleaned(type).slice(0, 200),
      description: cleaned(description),
      severity,
    })),
    suggestions: suggestions.slice(0, MOST_STEPS).map(cleaned),
  }
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function wrong(problem: string): Parsed<never> {
  return { ok: false, problem }
}

/** Trims a text, removes terminal control characters, and cuts it at its bound. */
function cleaned(text: string): string {
  return cleanText(text).slice(0, MOST_TEXT)
}
