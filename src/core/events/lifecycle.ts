import { proveTerms } from './contract.ts'
import {
  about,
  addedLater,
  anyValue,
  checkedAs,
  fields,
  flag,
  listOf,
  literal,
  moment,
  nullOr,
  number,
  oneOf,
  optional,
  text,
  unchecked,
  variant,
} from './schema.ts'
import {
  asAskedFor,
  gate,
  modelPrice,
  output,
  roundOutcome,
  runAllowance,
  sessionLimits,
  sessionOutcome,
  stallReason,
  waitReason,
} from './shapes.ts'

/** Settings given by flag or environment. They outlive the process: `resume` applies them again. */
const runOverrides = fields({
  sandbox: optional(text),
  network: optional(flag),
  model: optional(text),
  effort: optional(text),
  provider: optional(text),
  engine: optional(text),
  fallback: optional(listOf(text)),
  maxUsage: about(optional(number), 'per cent'),
  maxWaitMs: optional(number),
  keepAwake: optional(flag),
  publish: optional(text),
  verify: about(optional(listOf(text)), 'commands that must pass before done, from `--verify`'),
  review: optional(flag),
  limits: about(optional(listOf(text)), 'names of the limits that were said, as in `limits`'),
})

const reviewTerms = fields({ model: nullOr(text), effort: nullOr(text), engine: optional(nullOr(text)) })

/** Remedies when rounds make no progress. */
const stallRemedy = oneOf('another-way', 'more-effort')

/** A possible answer to a decision. */
const choice = fields({
  id: text,
  label: text,
  hint: optional(text),
  text: optional(oneOf('may', 'must')),
  opensFile: optional(literal(true)),
})

/** Events of the whole session: start, waits, pauses, resumes, end. */
export const lifecycleEvent = variant('type', {
  'session-created': {
    goal: about(text, 'the whole prompt'),
    template: about(
      text,
      'the template that decides the next step: `goal`, …; `agent`: a [call](../inside/design.md), which is never the session of its work directory',
    ),
    directory: about(text, 'the work directory; absolute, links resolved'),
    limits: sessionLimits,
    run: about(
      optional(runAllowance),
      'the limits of its run, `{ limits, used }`: for all sessions of the run together, and what earlier ones used. Left out by older versions',
    ),
    sandbox: about(text, '`read-only`, `workspace-write` or `danger-full-access`'),
    network: about(flag, 'whether commands in the sandbox reach the network'),
    overrides: about(listOf(text), '`key=value` pairs handed to codex'),
    gates: about(
      optional(listOf(gate)),
      'gates: `[{ name, run, timeoutMs, required, network, protect, everyRound }]`. `run`: a shell line; `required`: done waits for it; `protect`: globs of its own files; `everyRound`: it also runs after each round. Left out by older versions: none',
    ),
    review: about(
      optional(nullOr(reviewTerms)),
      '`{ model, effort, engine }` if a review must agree before done (`null` in it: as the rounds); `null` or left out: only if a protected file has changed',
    ),
    prove: about(
      optional(proveTerms),
      "settings of the session's [contract](../guides/prove.md); left out: it has none",
    ),
    tests: about(
      optional(fields({ run: text, from: text, others: listOf(text) })),
      "`{ run, from, others }`: the command that seems to run the project's own tests, the file that names it, and what else was found. Only if `--verify auto` took it, or if nothing else proves the goal; left out: codemachine found none, or did not look",
    ),
    protectFrom: about(
      optional(text),
      'fingerprint to compare protected files with, if an earlier session changed some and was not done; left out: the fingerprint of the start',
    ),
    prices: about(
      optional(listOf(modelPrice)),
      "the person's prices per million tokens of input, cached input and output: `[{ model, in, cached, out }]`; left out: none",
    ),
    maxUsage: about(
      optional(number),
      "the percent of the account's usage window that may be used; left out: all, or not known",
    ),
    said: about(
      addedLater(runOverrides),
      '`sandbox`, `network`, `model`, `effort`, `provider`, `engine`, `fallback`, `maxUsage` (per cent), `maxWaitMs`, `keepAwake`, `publish`, `verify` (commands) and `review` from command line and environment. `limits`: names of the limits given there. A resumed session keeps them',
    ),
    model: asAskedFor,
    effort: asAskedFor,
    asksPlan: about(
      optional(flag),
      'of a build, whether a person wants to see the plan before it is carried out; left out: no',
    ),
    options: about(optional(unchecked(anyValue)), 'further input of the template, in its own shape; left out: none'),
    follows: about(
      optional(text),
      'id of the session that it continues from; an output keeps the result of that one (`output-kept`, by the name `follows`). Left out: none',
    ),
    adopted: about(
      optional(fields({ maker: text, id: text, at: moment })),
      '`{ maker, id, at }`: the [conversation](../guides/adopt.md) with an agent that it continues. `maker`: `codex`, `claude` or `opencode`; `at`: when it was last written. Left out: none',
    ),
    issue: about(
      optional(fields({ url: text, number, title: text })),
      '`{ url, number, title }`: the [issue](../guides/publish.md) that it works on; `title`: in the words of who wrote it. Left out: none',
    ),
    kept: about(
      optional(listOf(fields({ name: text, bytes: number, sha256: text }))),
      'copies of its first texts, `[{ name, bytes, sha256 }]`: `sha256` of the file `kept/<name>` in its records; left out: none',
    ),
    outputs: about(
      optional(listOf(output)),
      'outputs of the earlier session that it continues, as `output` of `output-kept`; left out: none',
    ),
    replayed: about(
      optional(literal(true)),
      'it only replays recordings: it leaves no work, cannot be resumed, and does not count as the newest session. Left out: its rounds tell',
    ),
    queued: about(nullOr(text), 'id of its queued prompt; `null` if a person typed it'),
    host: about(addedLater(text), 'name of the machine'),
    codemachine: about(unchecked(text), 'version of codemachine'),
  },
  'session-resumed': {
    limits: about(sessionLimits, 'its limits from now on, which include the use so far; as in `session-created`'),
    run: about(optional(runAllowance), 'as in `session-created`, from now on; left out: as before'),
    prices: about(optional(listOf(modelPrice)), 'as in `session-created`, from now on'),
    maxUsage: about(optional(number), 'as in `session-created`, from now on'),
    said: about(addedLater(runOverrides), 'as in `session-created`, from now on'),
    network: about(
      optional(flag),
      'whether commands reach the network from now on, in the sandbox or without one; left out: as before',
    ),
    gates: about(optional(listOf(gate)), 'as in `session-created`, from now on; left out: as before'),
    review: about(optional(nullOr(reviewTerms)), 'as in `session-created`, from now on; left out: as before'),
    prove: about(optional(proveTerms), 'as in `session-created`, from now on; left out: as before'),
    host: about(addedLater(text), 'name of the machine'),
    codemachine: about(unchecked(text), 'version of codemachine'),
  },
  'session-moved': {
    directory: about(text, 'the work directory from now on; absolute'),
    host: about(text, 'name of the machine from now on'),
    worker: about(text, 'the [worker](../guides/fleet.md) of the fleet that resumes it'),
    epoch: about(number, 'number of the takeover, from 1; the fleet refuses data from the worker of an earlier one'),
  },
  'settings-taken': {
    round: about(number, 'the first round that uses them'),
    changes: about(
      listOf(fields({ setting: text, from: nullOr(text), to: nullOr(text), place: text })),
      'changed settings: `[{ setting, from, to, place }]`, with the TOML name and the values as typed (`null`: none, or not shown; for a prompt the beginning of its hash). `place`: the file, and the line if the file sets it',
    ),
    limits: about(sessionLimits, 'as in `session-created`, from now on'),
    run: about(optional(runAllowance), 'as in `session-created`, from now on'),
    maxUsage: about(optional(number), 'as in `session-created`, from now on'),
  },
  'keep-awake': {
    by: about(
      nullOr(text),
      'the program that keeps the machine awake: `systemd-inhibit`, `caffeinate`, …; `null`: none',
    ),
    problem: about(nullOr(text), 'why nothing does, a sentence; `null`: something does, or nobody asked for it'),
  },
  waiting: {
    round: about(unchecked(number), 'the round that starts when the wait is over'),
    reason: about(
      unchecked(waitReason),
      '`round-failed`: a round or a review failed. `usage-limit`: the usage limit was used up before a round. `max-usage`: the allowed part was used up. `provider-away`: the [provider](../guides/local-model.md) of the next round does not answer; the wait ends once it does. Earlier versions did not write it; then `cause` tells',
    ),
    cause: about(roundOutcome, 'why it waits, as `outcome` of `round-ended`'),
    until: about(moment, "when the wait ends, unless the session's time ends first; ISO 8601 in UTC"),
  },
  'wait-ended': {
    round: about(unchecked(number), 'as in `waiting`'),
    reason: about(
      oneOf('over', 'retry', 'stopped'),
      '`over`; `retry`: a person ended it with `codemachine retry`; `stopped`: the session ends; a resume continues the wait',
    ),
  },
  'engine-changed': {
    round: about(unchecked(number), 'the round that starts with it'),
    from: about(text, 'the engine until now'),
    to: about(text, 'the engine from now on'),
    isUsual: about(flag, 'whether that is the engine that the session began with'),
    until: about(
      nullOr(moment),
      'when the full usage window of `from` resets; `null`: it is not full, or unknown. ISO 8601 in UTC',
    ),
    fault: about(
      optional(oneOf('window', 'quota', 'login', 'credit')),
      'why `from` cannot go on: `window`, `quota`, `login` or `credit`. Without `until` a resume tries it again. Left out: `to` is used again, or an older version',
    ),
    why: about(text, 'the cause, in a sentence'),
  },
  'stop-asked': {
    now: about(flag, '`true`: interrupts the round; `false`: stops after the round, or immediately if none runs'),
    agent: about(
      optional(text),
      'the only agent that ends, as in `agent-started`: round and session continue; left out: the session stops',
    ),
  },
  paused: {},
  held: {},
  'hold-until': {
    until: about(moment, 'when that is; ISO 8601 in UTC'),
    how: about(
      oneOf('goes-on', 'limit', 'needs-person'),
      '`goes-on`: codemachine takes the default. `limit`, `needs-person`: the session ends so, because its time is used up, or nobody answered',
    ),
  },
  unpaused: {
    by: about(optional(literal('default')), 'nobody answered in time; left out: a person'),
  },
  'interrupt-asked': {},
  'skip-asked': {},
  'replan-asked': {
    text: about(text, "what to change, in the person's words"),
    goesOn: about(optional(literal(true)), 'the session continues once the plan is changed; left out: it holds'),
  },
  replanned: {
    round: about(number, 'the round that made it'),
    files: about(
      listOf(fields({ file: checkedAs(text, oneOf('MAIN.md', 'tasks.json')), diff: text })),
      "what is different, `[{ file: 'MAIN.md' | 'tasks.json', diff }]`: unified diffs of at most 16 KiB each, which then say how many characters are missing; without the file that did not change. Instead of what changed stands `[… written anew]` for a file that is nearly all different or has more than 20,000 lines, and `[… only a secret is different]`",
    ),
    tasks: about(
      optional(
        fields({
          changes: listOf(
            fields({
              id: text,
              name: text,
              how: listOf(oneOf('added', 'removed', 'renamed', 'rewritten', 'moved', 'reopened', 'done')),
              was: optional(text),
              fields: optional(listOf(text)),
              behind: optional(nullOr(text)),
            }),
          ),
          count: number,
        }),
      ),
      'changed tasks: `{ changes: [{ id, name, how, was, fields, behind }], count }`, at most 100 of `count`, in their new order, the removed ones last. `how`: one or more of `added`, `removed`, `renamed`, `rewritten`, `moved`, `reopened`, `done`. `was`: the earlier name. `fields`: names of changed fields, at most 10. `behind`: id of the task before it, `null`: none. Left out: `tasks.json` did not change, or by an older version',
    ),
    main: about(
      optional(fields({ added: number, removed: number })),
      'added and removed lines of `MAIN.md`, `{ added, removed }`; left out: no change, too many changes to count, or by an older version',
    ),
    kept: about(optional(literal(true)), 'codemachine kept the old files, and can restore them; left out: it did not'),
    putBack: about(optional(literal(true)), 'a person reverted an earlier change; left out: an agent made this one'),
  },
  'decision-asked': {
    id: about(
      text,
      'a word that identifies it; the same decision may come again later. `plan`: may the plan be executed? `contract`: does the contract count? `contract-behind`: is the contract kept although the person changed the plan?',
    ),
    title: about(text, 'the question, in one line'),
    body: about(text, 'details, at most 16,000 characters; empty if the title says all'),
    choices: about(
      listOf(choice),
      'possible answers, at most 20: `[{ id, label, hint, text, opensFile }]`. `text`: the person `may` or `must` add a text; left out: no text. `opensFile`: the file opens in their editor first',
    ),
    default: about(nullOr(text), 'the id of the choice if nobody answers; `null`: none'),
    file: about(optional(text), 'a file that it is about, relative to the work directory'),
    secret: about(
      optional(fields({ key: about(text, 'its name') })),
      'the secret that it is about: `{ key }`. Who chooses `give` has stored it before; the answer has no value',
    ),
    until: about(
      moment,
      'when codemachine takes the default (immediately, if no person can be asked). Without a default: when the session ends as `needs-person`, at the latest when its time is used up. ISO 8601 in UTC',
    ),
  },
  'decision-made': {
    id: about(text, 'as in `decision-asked`'),
    choice: about(text, 'the id of the choice'),
    text: about(nullOr(text), "the person's text; `null`: none"),
    by: about(oneOf('person', 'default'), '`person`, by whatever door; `default`: nobody has answered in time'),
  },
  stuck: {
    round: about(unchecked(number), 'the last round without progress'),
    rounds: about(number, 'how many in a row'),
    why: about(
      stallReason,
      '`nothing-changed`: the rounds left work tree and memory files as before; `same-refusal`: a claim was refused again for the same reason',
    ),
    remedy: about(
      stallRemedy,
      '`another-way`: the next round must try another approach; `more-effort`: it also gets more reasoning effort',
    ),
  },
  'session-ended': {
    outcome: about(sessionOutcome, 'how it ended: see [Outcomes](#outcomes)'),
    exitCode: about(number, 'the exit code that stands for it'),
    rounds: about(number, 'rounds that counted, over the whole session'),
    tokens: about(number, 'tokens of all threads, over the whole session'),
    cost: about(
      optional(number),
      'cost of the tokens of models with a price, over the whole session, in the currency of the prices; left out: there are no prices',
    ),
    durationMs: about(number, 'how long it has been worked on, before it was resumed too'),
  },
  published: {
    pushedTo: about(nullOr(text), 'name of the remote; `null`: none was found'),
    branch: about(nullOr(text), 'the branch there; `null`: nothing was pushed'),
    commit: about(nullOr(text), 'its commit; `null`: nothing was pushed'),
    url: about(nullOr(text), 'the page of its pull or merge request; `null`: none was opened'),
    draft: about(flag, 'whether that is a draft'),
    problem: about(nullOr(text), 'the failure, a sentence; `null`: none. The outcome does not change'),
  },
})
