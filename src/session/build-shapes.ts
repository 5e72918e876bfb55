import type { BuildEvent } from './build-events.ts'
import { fields, listOf, nullOr, number, oneOf, type ShapesOf, text } from './shape-checks.ts'
import { counts } from './value-shapes.ts'

/** The shapes of the events of a build. */
export const BUILD_SHAPES: ShapesOf<BuildEvent> = {
  'plan-refused': { round: number, problem: text },
  'plan-ready': { round: number, tasks: listOf(fields({ id: text, name: text, phase: text })), agents: listOf(text) },
  'agent-started': {
    round: number,
    instance: text,
    agent: text,
    tasks: listOf(text),
    request: text,
    door: oneOf('tool', 'command-line'),
    parent: nullOr(text),
    model: nullOr(text),
    effort: nullOr(text),
    paths: nullOr(listOf(text)),
  },
  'agent-ended': {
    round: number,
    instance: text,
    status: oneOf('completed', 'error', 'terminated'),
    result: text,
    durationMs: number,
    tokens: nullOr(counts),
  },
  'task-judged': {
    round: number,
    task: text,
    name: text,
    phase: nullOr(text),
    verdict: oneOf(
      'done',
      'refused',
      'failed',
      'reopened',
      'parked',
      'added',
      'removed',
      'put-back',
      'changed',
      'edited',
    ),
    detail: nullOr(text),
  },
  'tasks-judged': { round: number },
}
