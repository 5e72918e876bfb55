import * as v from 'valibot'
import { problemOfPrompt } from '../base/text.ts'
import { MOST_GATES } from '../core/events/outcome.ts'
import { SANDBOX_MODES } from '../core/shapes/sandbox.ts'

const MOST_COMMAND = 10_000

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(1))

/** Pattern of a template or model name. */
export const JOB_NAME = /^[\w.:/-]{1,100}$/
/** Pattern of a tag that a session requires and a worker has. */
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
 * The job of a fleet's session. It grants no rights: a worker gives at most what its own settings allow. `template`: null
 * for one agent, round after round. `gates`: required commands in addition to the repository's. Omitted fields come from the
 * worker.
 */
export type FleetJob = v.InferOutput<typeof jobSchema>

/** Version of written jobs. A worker leaves newer ones to others. */
export const JOB_VERSION = 1

/** Parses a job of the database, by anybody who may submit; null if invalid. */
export function readJob(value: unknown): FleetJob | null {
  const read = v.safeParse(jobSchema, value)
  return read.success ? read.output : null
}

/** A submitted session. */
export interface Submission {
  /** Repository address for git; never begins with `-`. */
  repo: string
  /** A branch, tag or commit. */
  ref: string
  job: FleetJob
  /** Priority, -1,000 to 1,000; higher ones start first. */
  priority: number
  /** Required tags of its worker. */
  tags: readonly string[]
  /** Earliest and latest start; null: no limit. */
  notBefore: Date | null
  deadline: Date | null
  /** Session that must be done first: its id, or its index in the same submission, from 0; null: none. */
  after: string | number | null
  team: string
}
