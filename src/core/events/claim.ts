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
      '`before`: before round 1; `after-round`; `tasks`: tasks of a build are said to be done; `claim`: done was claimed; `counter-proof`: without the work, in a checkout of its own; `limit`: a limit ends the session',
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
    round: about(number, 'the one whose claim is looked at'),
    gate: about(text, 'its name'),
    tree: about(text, 'fingerprint of the work tree that was claimed'),
    result: about(
      oneOf('stands', 'blind', 'passed-before', 'not-tried'),
      '`stands`: the gate fails without the work; `blind`: it passes without the work; `passed-before`: it passed before the work, so nothing follows; `not-tried`: see `problem`',
    ),
    problem: about(nullOr(text), 'why it was not tried; `null` if it was'),
    made: about(
      listOf(text),
      'the smallest set of changed files found that makes the gate pass, laid on the files of the start; at most 50 paths',
    ),
    madeCount: about(number, 'how many in all'),
    isSmallest: about(flag, '`false`: the bound of runs or time was reached first'),
    through: about(
      listOf(text),
      'those of `made` that the gate runs through; of `passed-before`, the changed files that it reads. At most 50 paths',
    ),
    unread: about(listOf(text), 'files that the gate read before the work and does not read now; at most 50 paths'),
    tests: about(
      optional(fields({ now: nullOr(number), most: nullOr(number), failed: optional(number) })),
      'how many tests the gate says it ran, and the most that it ran earlier in the session; `null`: it did not say. `failed`: how many failed, by what it says; left out: none. Left out: it never said',
    ),
    doubts: about(
      listOf(oneOf('blind', 'runs-through', 'unread', 'reads-changed', 'fewer-tests', 'no-tests', 'failed-tests')),
      'why done needs a review that agrees; none: it needs none for this gate. `blind`: see `result`; `runs-through`: it does not pass without changed files that it runs through; `unread`: see `unread`; `reads-changed`: it passed before the work, and reads changed files; `fewer-tests`: than earlier in the session; `no-tests`: it ran none; `failed-tests`: it says that some failed',
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
      'what claims it: the files `MAIN.md`, `tasks.json`; `template`: the template does, by a step',
    ),
    tree: about(
      optional(text),
      'fingerprint of the work tree of which it is claimed; left out if the claim was refused at once',
    ),
    whyNothing: about(
      optional(text),
      'of a session in which nothing was done: what `MAIN.md` says why nothing is needed; left out: something was done',
    ),
    scope: optional(ofScope),
  },
  'review-started': {
    round: about(unchecked(number), 'the one whose claim is looked at'),
    review: about(
      number,
      'its number in the session, from 1. One that gave no answer is made again with the same number',
    ),
    causes: about(
      checkedAs(listOf(text), listOf(oneOf('asked', 'protected', 'configuration', 'counter-proof'))),
      'why: `asked` (a person wants one before done), `protected` (files that gates protect are not what they were), `configuration` (nor is configuration that gates run through), `counter-proof` (it left doubts about a gate)',
    ),
    engine: about(optional(text), 'the engine; left out: that of the rounds'),
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
    repeated: about(
      listOf(finding),
      'those of the findings that a review before this one had, too: they are left to the person',
    ),
    tree: about(text, 'fingerprint of what was reviewed'),
    durationMs: number,
    tokens: about(nullOr(tokenCounts), 'TokenCounts of its threads; `null` if none were reported'),
    scope: optional(ofScope),
  },
  'done-refused': {
    round,
    reason: about(
      checkedAs(text, refusalReason),
      '`tasks-left`; `progress-left`: also if the memory files no longer claim it; `tree-changed`; `memory-broken`; `round-not-completed`; `gate-failed`; `review-findings`: those that are new; `person-said-more`: while it was looked at; `nothing-done`: no file was changed, and there is no task; `goal-changed`: the words of the person were changed in its round; `contract-failed`: a sentence of the contract does not hold',
    ),
    detail: about(text, 'the same as a sentence; the next round is told it'),
    scope: optional(ofScope),
  },
  'done-accepted': {
    round,
    tree: about(text, 'fingerprint of the work tree that was accepted'),
    verified: about(
      optional(flag),
      'whether gates had to pass, and did; `false`: there were none; left out by older versions, as `false`',
    ),
    scope: optional(ofScope),
  },
})
