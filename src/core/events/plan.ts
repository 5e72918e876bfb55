import { about, fields, listOf, nullOr, number, oneOf, optional, text, variant } from './schema.ts'
import { asAskedFor, roundOutcome, tokenCounts } from './shapes.ts'

/** Events of a plan: its checks, its tasks, and the agents that get them. */
export const planEvent = variant('type', {
  'plan-refused': {
    round: about(number, 'the one that wrote it'),
    problem: about(text, 'problem and file, one sentence per line'),
  },
  'plan-ready': {
    round: number,
    tasks: about(
      listOf(fields({ id: text, name: text, phase: text })),
      'of the plan, in their order: `[{ id, name, phase }]`',
    ),
    agents: about(listOf(text), "names of those that have a prompt of this project's own"),
  },
  'agent-started': {
    round: number,
    instance: about(text, 'its name in the session: `<agent>-<time>`, or the id of a step of a workflow'),
    agent: about(text, 'its name'),
    tasks: about(
      listOf(text),
      'ids of the tasks of the plan that it is about, as they were named: `T3.1` for a part of `T3`',
    ),
    request: about(text, 'its task or input, at most 4,000 characters'),
    door: about(
      oneOf('tool', 'command-line', 'template'),
      '`tool`: by the tool of another agent; `command-line`: by `codemachine --agent`; `template`: a step of a workflow, beside the one of the round',
    ),
    parent: about(nullOr(text), "the instance that asked; `null`: the round's own agent, or a person"),
    engine: about(optional(text), 'the engine; left out: the engine of the round'),
    reaches: about(optional(listOf(text)), 'hosts of an engine named here, as in `round-started`'),
    model: asAskedFor,
    effort: asAskedFor,
    paths: about(
      nullOr(listOf(text)),
      'paths that it may write, relative to the work directory; `null`: the whole directory',
    ),
  },
  'agent-ended': {
    round: about(number, 'as in `agent-started`'),
    instance: about(text, 'as in `agent-started`'),
    status: about(
      oneOf('completed', 'error', 'terminated'),
      '`completed`, `error` (it failed) or `terminated` (somebody ended it)',
    ),
    result: about(text, 'its last message, or why it failed; at most 4,000 characters'),
    durationMs: number,
    tokens: about(nullOr(tokenCounts), 'TokenCounts of its threads; `null` if none were reported'),
    outcome: about(optional(roundOutcome), 'how its turn ended, as in `round-ended`, for the door `template`'),
  },
  'task-judged': {
    round: about(number, 'the one that ended last'),
    task: about(text, 'its id and name, the new one where that changed'),
    name: about(text, 'its id and name, the new one where that changed'),
    phase: about(nullOr(text), '`null` if it has none'),
    verdict: about(
      oneOf('done', 'refused', 'failed', 'reopened', 'parked', 'added', 'removed', 'put-back', 'changed', 'edited'),
      '`done`: an agent worked on it, and the gates pass; `refused`: the file calls it done, but codemachine does not accept that; `failed`: an agent worked on it, but it is not done; `reopened`: it is no longer done; `parked`: it failed five times, and the rest continues without it; `added`: it is new in the plan; `removed`: a person removed it; `put-back`: a round removed it, and codemachine restored it; `changed`: a round changed its name, details, acceptance criteria or phase; `edited`: its name or phase is another, and no round changed it: a person did, or had it changed',
    ),
    detail: about(nullOr(text), 'why, a sentence; `null` if the verdict says it all'),
  },
  'tasks-judged': { round: number },
})
