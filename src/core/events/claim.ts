import {
  about,
  checkedAs,
  fields,
  flag,
  listOf,
  nullOr,
  number,
  oneOf,
  optional,
  text,
  unchecked,
  variant,
} from './schema.ts'
import { asAskedFor, finding, gateResult, gateTime, ofScope, roundOutcome, tokenCounts } from './shapes.ts'

const refusalReason = oneOf(
  'tasks-left',
  'progress-left',
  'tree-changed',
  'memory-broken',
  'round-not-completed',
  'gate-failed',
  'review-findings',
  'person-said-more',
  'nothing-done',
  'goal-changed',
  'contract-failed',
  'hook-refused',
)

const reviewAnswer = fields({ verdict: oneOf('agreed', 'findings'), summary: text, findings: listOf(finding) })

const round = unchecked(number)
const asInReview = 'as in `review-started`'

/** Events of a claim that the goal is reached: gates, reviews, and the decision. */
export const claimEvent = variant('type', {
  'gate-started': {
    round: about(number, 'the one that ended last; `0`: none has'),
    when: about(
      gateTime,
      '`before`: before round 1; `after-round`; `tasks`: `tasks.json` of a build calls tasks done; `claim`: a round claimed done; `counter-proof`: without the work, in its own checkout; `limit`: a limit ends the session',
    ),
    gate: about(text, 'its name'),
    scope: optional(ofScope),
  },
  'gate-ended': {
    round: about(number, 'as in `gate-started`'),
    when: about(gateTime, 'as in `gate-started`'),
    ...gateResult,
    gate: about(text, 'as in `gate-started`'),
    treeAfter: about(optional(text), 'fingerprint of the work tree that it left; left out: not known'),
    scope: optional(ofScope),
  },
  'counter-proof': {
    round: about(number, 'the round whose claim is checked'),
    gate: about(text, 'its name'),
    tree: about(text, 'fingerprint of the work tree that was claimed'),
    result: about(
      oneOf('stands', 'blind', 'passed-before', 'not-tried'),
      '`stands`: the gate fails without the work; `blind`: it passes without the work; `passed-before`: it passed before the work, so nothing follows; `not-tried`: see `problem`',
    ),
    problem: about(nullOr(text), 'why it was not tried; `null` if it was'),
    made: about(
      listOf(text),
      'the smallest set of changed files that makes the gate pass, on top of the files of the start; at most 50 paths',
    ),
    madeCount: about(number, 'how many in all'),
    isSmallest: about(flag, '`false`: the bound of runs or time was reached first'),
    through: about(
      listOf(text),
      'the files of `made` that the gate uses; with `passed-before`, the changed files that it reads. At most 50 paths',
    ),
    unread: about(listOf(text), 'files that the gate read before the work and does not read now; at most 50 paths'),
    tests: about(
      optional(fields({ now: nullOr(number), most: nullOr(number), failed: optional(number) })),
      '`now`: how many tests the gate reports; `most`: the most that it reported earlier in the session; `null`: no report. `failed`: how many it reports as failed; left out: none. Left out: it never reported any',
    ),
    doubts: about(
      listOf(
        oneOf(
          'blind',
          'runs-through',
          'not-tried',
          'unread',
          'reads-changed',
          'fewer-tests',
          'no-tests',
          'failed-tests',
        ),
      ),
      'why done needs a review that agrees; none: this gate needs none. `blind`: see `result`. `runs-through`: it passes only with changed files that it runs through, or may. `not-tried`: see `problem`; what the work changed is not known, or made it impossible. `unread`: see `unread`. `reads-changed`: it passed before the work, and reads changed files. `fewer-tests`: fewer than earlier in the session. `no-tests`: it ran none. `failed-tests`: it reports failed tests',
    ),
    runs: about(number, 'how often the gate was run for this'),
    durationMs: number,
    scope: optional(ofScope),
  },
  'done-nominated': {
    round,
    step: about(optional(number), 'the step that claims it; left out if files do'),
    by: about(
      checkedAs(listOf(text), listOf(oneOf('MAIN.md', 'tasks.json', 'template'))),
      'who claims it: the files `MAIN.md` and `tasks.json`, or `template`, by a step',
    ),
    tree: about(
      optional(text),
      'fingerprint of the claimed work tree; left out if codemachine refused the claim without a check',
    ),
    whyNothing: about(
      optional(text),
      'of a session without work: why `MAIN.md` says that nothing is needed; left out: there was work',
    ),
    scope: optional(ofScope),
  },
  'review-started': {
    round: about(unchecked(number), 'the round whose claim is checked'),
    review: about(
      number,
      'its number in the session, from 1. One that gave no answer is made again with the same number',
    ),
    causes: about(
      checkedAs(listOf(text), listOf(oneOf('asked', 'protected', 'configuration', 'counter-proof'))),
      'why: `asked` (a person wants a review before done), `protected` (protected files differ), `configuration` (configuration that gates run through differs), `counter-proof` (it left doubts about a gate)',
    ),
    engine: about(optional(text), 'the engine; left out: the engine of the rounds'),
    reaches: about(optional(listOf(text)), 'hosts of an engine named here, as in `round-started`'),
    provider: about(optional(text), 'as in `round-started`'),
    model: asAskedFor,
    effort: asAskedFor,
    scope: optional(ofScope),
  },
  'review-ended': {
    round: about(unchecked(number), asInReview),
    review: about(number, asInReview),
    outcome: about(roundOutcome, 'how its turn ended, as in `round-ended`; only one that `worked` gives an answer'),
    answer: about(
      nullOr(reviewAnswer),
      '`{ verdict, summary, findings }`; `null` if it gave none that can be read. `verdict`: `agreed` or `findings`; `findings`: `[{ severity, file, line, problem, mend }]` with `severity` `critical`, `major` or `minor`, and `null` for a `file` or `line` that it is not about',
    ),
    repeated: about(listOf(finding), 'findings that an earlier review had, too: the person decides about them'),
    tree: about(text, 'fingerprint of the reviewed work tree'),
    durationMs: number,
    tokens: about(nullOr(tokenCounts), 'TokenCounts of its threads; `null` if none were reported'),
    scope: optional(ofScope),
  },
  'done-refused': {
    round,
    reason: about(
      checkedAs(text, refusalReason),
      "`tasks-left`; `progress-left`: also if the memory files no longer claim it; `tree-changed`; `memory-broken`; `round-not-completed`; `gate-failed`; `review-findings`: new ones; `person-said-more`: during the proof; `nothing-done`: no file changed, and there is no task; `goal-changed`: its round changed the person's words; `contract-failed`: a sentence of the contract does not hold; `hook-refused`: a hook does not let it pass",
    ),
    detail: about(text, 'the same as a sentence, which the next round reads'),
    scope: optional(ofScope),
  },
  'done-accepted': {
    round,
    tree: about(text, 'fingerprint of the work tree that was accepted'),
    verified: about(
      optional(flag),
      'whether required gates passed; `false`: there were none; left out by older versions: `false`',
    ),
    scope: optional(ofScope),
  },
})
