import type { ClaimEvent } from './claim-events.ts'
import type { GateResult } from './gate.ts'
import type { Finding, ReviewAnswer } from './review.ts'
import {
  type FieldsOf,
  fields,
  flag,
  listOf,
  missingOr,
  nullOr,
  number,
  oneOf,
  type ShapesOf,
  text,
} from './shape-checks.ts'
import { counts, outcomeOfRound } from './value-shapes.ts'

const when = oneOf('before', 'after-round', 'tasks', 'claim')
const gateResult = {
  gate: text,
  status: oneOf('passed', 'flaky', 'failed', 'timed-out', 'not-started', 'broken-off'),
  exitCode: nullOr(number),
  durationMs: number,
  output: text,
  problem: nullOr(text),
  tree: text,
  changed: listOf(text),
  changedCount: number,
} satisfies FieldsOf<GateResult>
const findings = listOf(
  fields({
    severity: oneOf('critical', 'major', 'minor'),
    file: nullOr(text),
    line: nullOr(number),
    problem: text,
    mend: text,
  } satisfies FieldsOf<Finding>),
)

/** The shapes of the events of a done claim. */
export const CLAIM_SHAPES: ShapesOf<ClaimEvent> = {
  'gate-started': { round: number, when, gate: text },
  'gate-ended': { round: number, when, treeAfter: missingOr(text), ...gateResult },
  'done-nominated': { by: listOf(text), tree: missingOr(text) },
  'review-started': { review: number, causes: listOf(text), model: nullOr(text), effort: nullOr(text) },
  'review-ended': {
    review: number,
    outcome: outcomeOfRound,
    answer: nullOr(
      fields({ verdict: oneOf('agreed', 'findings'), summary: text, findings } satisfies FieldsOf<ReviewAnswer>),
    ),
    repeated: findings,
    tree: text,
    durationMs: number,
    tokens: nullOr(counts),
  },
  'done-refused': { reason: text, detail: text },
  'done-accepted': { tree: text, verified: missingOr(flag) },
}
