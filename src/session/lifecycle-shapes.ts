import type { Gate } from './gate.ts'
import type { LifecycleEvent } from './lifecycle-events.ts'
import type { SessionOutcome } from './outcome.ts'
import type { Said } from './said.ts'
import {
  type FieldsOf,
  fields,
  flag,
  listOf,
  missingOr,
  moment,
  nullOr,
  number,
  oneOf,
  type ShapesOf,
  text,
  variant,
} from './shape-checks.ts'
import { outcomeOfRound } from './value-shapes.ts'

const limits = fields({
  rounds: missingOr(nullOr(number)),
  timeMs: missingOr(nullOr(number)),
  tokens: missingOr(nullOr(number)),
})
const said = missingOr(
  fields({
    sandbox: missingOr(text),
    network: missingOr(flag),
    model: missingOr(text),
    effort: missingOr(text),
    maxUsage: missingOr(number),
    maxWaitMs: missingOr(number),
    keepAwake: missingOr(flag),
    verify: missingOr(listOf(text)),
    review: missingOr(flag),
  } satisfies FieldsOf<Said>),
)
const gates = missingOr(
  listOf(
    fields({
      name: text,
      run: text,
      timeoutMs: number,
      required: flag,
      network: flag,
      protect: listOf(text),
      everyRound: flag,
    } satisfies FieldsOf<Gate>),
  ),
)
const review = missingOr(nullOr(fields({ model: nullOr(text), effort: nullOr(text) })))
const why = oneOf('nothing-changed', 'same-refusal')

const OUTCOMES: { readonly [K in SessionOutcome['kind']]: FieldsOf<Extract<SessionOutcome, { kind: K }>> } = {
  done: { verified: flag },
  limit: { limit: oneOf('rounds', 'time', 'tokens') },
  'needs-person': { reason: text, hint: nullOr(text) },
  stalled: { rounds: number, why },
  interrupted: { by: text },
}

/** The shapes of the events of a session as a whole. */
export const LIFECYCLE_SHAPES: ShapesOf<LifecycleEvent> = {
  'session-created': {
    goal: text,
    template: text,
    directory: text,
    limits,
    sandbox: text,
    network: flag,
    model: nullOr(text),
    effort: nullOr(text),
    overrides: listOf(text),
    queued: nullOr(text),
    said,
    host: missingOr(text),
    gates,
    review,
    protectFrom: missingOr(text),
    asksPlan: missingOr(flag),
  },
  'session-resumed': { limits, said, gates, review, host: missingOr(text) },
  'keep-awake': { by: nullOr(text), problem: nullOr(text) },
  waiting: { cause: outcomeOfRound, until: moment },
  'wait-ended': { reason: oneOf('over', 'retry', 'stopped') },
  'stop-asked': { now: flag },
  paused: {},
  held: {},
  unpaused: {},
  'interrupt-asked': {},
  'skip-asked': {},
  'replan-asked': { text },
  replanned: { round: number, files: listOf(fields({ file: text, diff: text })) },
  stuck: { rounds: number, why, remedy: oneOf('another-way', 'more-effort') },
  'session-ended': {
    outcome: variant('kind', OUTCOMES),
    exitCode: number,
    rounds: number,
    tokens: number,
    durationMs: number,
  },
}
