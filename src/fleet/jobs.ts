import * as v from 'valibot'
import { problemOfPrompt } from '../base/text.ts'
import { MOST_GATES } from '../core/events/outcome.ts'
import { SANDBOX_MODES } from '../core/shapes/sandbox.ts'

const MOST_COMMAND = 10_000

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(1))

/** The name of a template or model. */
export const JOB_NAME = /^[\w.:/-]{1,100}$/
/** What a session may want of its worker, and a worker has. */
export const TAG = /^[a-z0-9][a-z0-9_.-]{0,31}$/

const name = v.pipe(v.string(), v.regex(JOB_NAME))

const jobSchema = v.object({
  goal: v.pipe(
    v.string(),
    v.check(goal => problemOfPrompt(goal) === null),
  ),
  template: v.nullable(name),
  gates: v.pipe(v.array(v.pipe(v.string(), v.nonEmpty(), v.maxLength(MOST_COMMAND))), v.maxLength(MOST_GATES)),
  limits: v.object({
    rounds: v.optional(count),
    timeMs: v.optional(count),
    tokens: v.optional(count),
    cost: v.optional(v.pipe(v.number(), v.finite(), v.minValue(0.01))),
  }),
  sandbox: v.optional(v.picklist(SANDBOX_MODES)),
  network: v.optional(v.boolean()),
  model: v.optional(name),
  effort: v.optional(v.pipe(v.string(), v.regex(/^[a-z]{1,40}$/))),
  maxUsage: v.optional(v.pipe(v.number(), v.minValue(1), v.maxValue(100))),
  maxWaitMs: v.optional(count),
  review: v.optional(v.boolean()),
  issue: v.optional(
    v.object({
      url: v.pipe(v.string(), v.maxLength(2_000)),
      number: count,
      title: v.pipe(v.string(), v.maxLength(300)),
    }),
  ),
})

/**
 * What a session of a fleet is asked to do. Nothing in it is a right: a worker gives what its own settings allow, or less.
 * `template`: null for one agent, round after round. `gates`: commands that have to pass before done, on top of those of the
 * repository. What is left out is as the worker has it.
 */
export type FleetJob = v.InferOutput<typeof jobSchema>

/** The version of jobs that is written. A worker leaves those of a newer one to others. */
export const JOB_VERSION = 1

/** A job as the database has it, which anybody may have written who may submit; null: it is none. */
export function readJob(value: unknown): FleetJob | null {
  const read = v.safeParse(jobSchema, value)
  return read.success ? read.output : null
}

/** A session as it is submitted. */
export interface Submission {
  /** As git takes it; it never begins with `-`. */
  repo: string
  /** A branch, tag or commit. */
  ref: string
  job: FleetJob
  /** -1,000 to 1,000; the higher, the sooner. */
  priority: number
  /** What its worker has to have. */
  tags: readonly string[]
  /** It does not begin before, and is not begun after; null: whenever. */
  notBefore: Date | null
  deadline: Date | null
  /** What has to be done before: the id of a session, or where one stands in the same submission, from 0; null: nothing. */
  after: string | number | null
  team: string
}
