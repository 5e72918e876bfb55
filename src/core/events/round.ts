import {
  about,
  addedLater,
  anyValue,
  fields,
  flag,
  listOf,
  literal,
  nullOr,
  number,
  oneOf,
  optional,
  text,
  unchecked,
  variant,
} from './schema.ts'
import { asAskedFor, item, output, roundOutcome, tokenCounts, usageWindow, windDownLimit } from './shapes.ts'

const round = unchecked(number)
const windowOfLimits =
  '`{ usedPercent, windowMinutes, resetsAt }`, or `null`. `usedPercent` is 0 to 100, `resetsAt` is Unix time in **ms**'
const tasksDone =
  'how many tasks of `tasks.json` were done then, and how many there were; `tasks` is left out if it has none'
const fingerprints =
  'fingerprints of the work tree: git tree hashes; empty in a call of an agent, which does not compare files'
const worksWith =
  "the model and effort that codex names; `effort` `null`: the model's own default. Left out: this codex does not name them"

/** Events of a round, from its start to its end. */
export const roundEvent = variant('type', {
  'round-started': {
    round: about(number, 'its number, from 1. A round that did not count starts again under the same number'),
    agent: about(text, 'name of the agent'),
    engine: about(text, "the engine (`codex`, `exec`, `replay` or one of a program's own), and its version"),
    codex: about(text, "the engine (`codex`, `exec`, `replay` or one of a program's own), and its version"),
    replayed: about(
      optional(literal(true)),
      'the round replays a recording: codemachine asks no model and runs nothing; left out otherwise',
    ),
    reaches: about(
      optional(listOf(text)),
      'hosts that its agent and commands can reach, such as `api.anthropic.com`; `*`: all. Left out: `network` of the session decides',
    ),
    provider: about(
      optional(text),
      "the [provider](../guides/local-model.md) of its model; left out: the provider in codex's configuration",
    ),
    model: asAskedFor,
    input: about(unchecked(text), 'the user input of its turn'),
    keepsClaim: about(
      optional(literal(true)),
      'the round only looks: an accepted claim stays accepted if the files stay the same. Left out: no claim stays accepted',
    ),
    part: about(
      optional(text),
      'its purpose. In a build: `team-building`, `orchestration`, `summary`, or `last-look`, the only one that may claim done. In a workflow: `step`, or `work` for a step of several rounds. In a change: `plan`, `decompose`, `gather`, `act`, `fix` or `summary`. In a team: `plan`, `work`, `test` or `review`; in a call `task`; left out otherwise',
    ),
  },
  'turn-started': {
    round,
    thread: about(text, "codex's ids"),
    turn: about(text, "codex's ids"),
    model: about(optional(text), worksWith),
    effort: about(optional(nullOr(text)), worksWith),
  },
  'item-completed': {
    round,
    item: about(
      item,
      'its action: see [Items](#items). Ids are unique per agent: with `instance`, they may occur twice',
    ),
    instance: about(optional(text), "of a build, the agent at work that did it; left out: the round's own"),
  },
  'plan-updated': {
    round,
    explanation: about(unchecked(nullOr(text)), "why, in the agent's words; `null` if it gave none"),
    steps: about(
      listOf(fields({ step: text, status: oneOf('pending', 'in-progress', 'completed') })),
      "the whole plan: `[{ step, status: 'pending' | 'in-progress' | 'completed' }]`, at most 200 steps; the last one counts the rest",
    ),
  },
  usage: {
    round,
    thread: about(text, "the round's own thread, or one of its sub-agents"),
    total: about(tokenCounts, 'TokenCounts of the thread so far'),
    last: about(tokenCounts, 'TokenCounts of the last answer; its `total` fills the context now'),
    model: about(optional(text), 'the model of the thread; left out: there are no prices'),
    instance: about(
      optional(text),
      "the agent at work whose thread it is; left out: the round's own, or by an older version",
    ),
    contextWindow: about(nullOr(number), 'tokens that the context holds; `null` if unknown'),
  },
  limits: {
    primary: about(nullOr(usageWindow), windowOfLimits),
    secondary: about(nullOr(usageWindow), windowOfLimits),
    credits: about(
      optional(flag),
      'whether the account has credits to continue with when a window is full; missing: codex did not say',
    ),
    engine: about(optional(text), 'the engine whose login they belong to; left out: codex'),
  },
  'model-rerouted': {
    round,
    from: about(text, 'models'),
    to: about(text, 'models'),
    reason: about(text, "in codex's words"),
  },
  'request-answered': {
    round,
    method: about(text, "codex's name for the request"),
    subject: about(text, 'its subject: a command, a file'),
    answer: about(text, "codemachine's answer"),
  },
  'question-asked': {
    round: number,
    question: about(text, 'its name in the session: `Q1`, `Q2`, …'),
    text,
    options: about(listOf(text), 'answers to choose from; none: any'),
    assumption: about(text, "the agent's assumption until then"),
    agent: about(optional(text), "the agent that asked, as in `agent-started`; left out: the round's own"),
  },
  'answer-given': {
    round: about(number, 'the round with this last message; for a review: the round whose claim is checked'),
    name: about(text, 'the request; `review`: the answer of a reviewer'),
    value: about(
      optional(anyValue),
      'the value, which fits the schema; left out if it has more than 65,536 characters as JSON',
    ),
    output,
    judged: about(
      optional(literal(true)),
      'the template accepted it by its own rules; left out: it has none, or a version that judged later wrote it',
    ),
  },
  'answer-refused': {
    round: about(number, 'as in `answer-given`; of a plan, the one that wrote it'),
    name: about(text, 'as in `answer-given`; `plan`: the files that are to be the plan of a build'),
    problem: about(text, 'the problem, for the agent that fixes it: a sentence, or a line for each place'),
    kind: about(
      optional(text),
      'of a change `no-tasks-left`: its changed plan needs more tasks than are still allowed; left out otherwise',
    ),
  },
  'output-kept': {
    round: about(number, 'the round with this last message'),
    output,
  },
  steered: {
    round: about(unchecked(nullOr(number)), '`null`: between two rounds'),
    text: about(text, "the person's text"),
    delivered: about(flag, '`true`: the running turn took it; `false`: the next round reads it'),
    agent: about(optional(text), "the agent whose turn took it, as in `agent-started`; left out: the round's own"),
    answers: about(optional(text), 'the question of this session that it answers: `Q1`; left out: none'),
  },
  warning: {
    round: about(unchecked(nullOr(number)), '`null`: not of one round'),
    message: text,
    more: about(optional(listOf(text)), 'further warnings of the start; left out: none'),
    remote: about(
      optional(text),
      "name of a provider that is away: because of its `when_away`, codex's default model gets the code from now on, and the person is notified. Left out: another warning",
    ),
    ended: about(
      optional(listOf(text)),
      'detached commands that the round left running; codemachine ended them and tells the next round. Left out: another warning',
    ),
  },
  error: {
    round,
    message: about(text, "codex's words; `details` may be `null`"),
    details: about(nullOr(text), "codex's words; `details` may be `null`"),
    willRetry: about(flag, 'whether codex tries again by itself'),
    waitsForNetwork: about(addedLater(flag), '`true`: codex tries again until the network is back. Repeats meanwhile'),
  },
  'turn-continued': { round, cause: about(roundOutcome, 'how the turn ended, as `outcome` of `round-ended`') },
  'winding-down': {
    round,
    limit: about(
      windDownLimit,
      "`time` or `tokens`: the session ends after this round. `usage`: the account's usage limit, or the allowed part, is used up, and the session waits for its reset. `round`: the template allows no more time",
    ),
    graceMs: about(number, 'how long it has'),
  },
  'machine-slept': {
    round: about(unchecked(nullOr(number)), '`null`: between two rounds'),
    ms: about(number, 'for how long'),
  },
  'round-ended': {
    round: number,
    outcome: roundOutcome,
    counts: about(flag, "whether it uses up one of the person's rounds"),
    durationMs: number,
    tokens: about(nullOr(tokenCounts), 'TokenCounts of all its threads; `null` if none were reported'),
    treeBefore: about(text, fingerprints),
    treeAfter: about(text, fingerprints),
    changed: about(listOf(text), 'paths that differ between the two, relative to the work directory, at most 50'),
    changedCount: about(number, 'how many differ'),
    memory: about(addedLater(text), 'fingerprint of the memory files that it left: a hash'),
    tasks: optional(
      fields({
        done: about(number, tasksDone),
        total: about(number, tasksDone),
        left: about(optional(listOf(text)), 'the names of at most 20 that were not done; may be left out'),
      }),
    ),
  },
})
