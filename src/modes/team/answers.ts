import { cleanText } from '../../base/text.ts'
import type { AskedAnswer } from '../../core/rules/answer.ts'
import type { Parsed } from '../../core/shapes/memory.ts'
import { STEP_ANSWER } from '../../core/shapes/shell-tools.ts'
import type { HowToTest, PlannedStep, TeamPlan, TeamReview } from './work.ts'

/** The most steps of a plan, and of all that repairs add to it. */
export const MOST_STEPS = 50
export const MOST_ALL_STEPS = 200

const texts = { type: 'array', items: { type: 'string' } }

/** The answer of the planner: `network` and `needs` are asked for, and may be left out. */
export const PLAN_ANSWER: AskedAnswer = {
  name: 'plan',
  // Asked for once, and again three times.
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

/** A step has failed long before, after two tries, and the others go on. */
const NEVER_TOO_OFTEN = Number.MAX_SAFE_INTEGER

/** The answer of a worker: of each step by a name of its own, for a refusal is told to the next round of that step alone. */
export function workAnswer(id: number, stepwise: boolean): AskedAnswer {
  const name = `step-${id}`
  const said = { done: { type: 'boolean' }, thoughts: { type: 'string' } }
  const checks = { type: ['array', 'null'], items: { type: 'string' } }
  const accepts = { type: 'object', properties: { ...said, checks }, required: ['done', 'thoughts'] }
  const shape = stepwise ? STEP_ANSWER : { schema: objectOf({ ...said, checks: texts }), accepts }
  return { name, mostRefusals: NEVER_TOO_OFTEN, ...shape }
}

/** The answer of the tester. */
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

/** The answer of the reviewer. */
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

/** The most that is kept of each text of an answer, in characters. */
const MOST_TEXT = 4_000

/** The most of any answer as JSON, in characters: less than an event holds, so that its value is never left out. */
const MOST_ANSWER = 60 * 1024

/** Why an answer is too long for any part, a sentence; null if it is not. Pure. */
export function sizeProblem(value: unknown): string | null {
  const size = JSON.stringify(value).length
  return size > MOST_ANSWER
    ? `The answer has ${size} characters as JSON; ${MOST_ANSWER} are the most. Say it in fewer words.`
    : null
}

/**
 * Reads an answer that is to be a plan. A problem has a line for each mistake.
 * @param done steps that are done already: they may be named again as they are, and no other step may have their ids
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
        // What a model leaves empty that has to name every field is as though it were left out.
        ...(network == null ? {} : { network }),
        ...(needs == null ? {} : { needs: [...new Set(needs)] }),
      })
    }
  }
  if (mistakes.length > 0) return wrong(mistakes.slice(0, 10).join('\n'))
  return { ok: true, value: { goal: cleaned(goal), steps: read } }
}

interface KnownSteps {
  /** Ids that a step may need; of these, those of the plan itself. */
  known: ReadonlySet<number>
  seen: ReadonlySet<number>
  /** The steps that are done: their descriptions, by their ids. */
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

/** The highest id of a planned step; those of repairs follow it. */
const MOST_ID = 1_000_000

/** Why what a worker says cannot be used, a sentence; null if it can. Pure. */
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

/** What a worker says at the end of a round; with a command that is to be run, or a question, it is not done. `checks`: lines that have to pass. */
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

/** The ways to test it that a tester names: each with why it is not run here, or null. */
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

/** What a reviewer says; texts are cut at their bounds. */
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

/** A text without blanks around it and what steers a terminal, cut at its bound. */
function cleaned(text: string): string {
  return cleanText(text).slice(0, MOST_TEXT)
}
