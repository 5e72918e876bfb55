import { ITEM_SHAPES } from './item-shapes.ts'
import type { RoundEvent } from './round-events.ts'
import { fields, flag, listOf, missingOr, nullOr, number, oneOf, type ShapesOf, text, variant } from './shape-checks.ts'
import { counts, outcomeOfRound } from './value-shapes.ts'

const window = fields({ usedPercent: number, windowMinutes: nullOr(number), resetsAt: nullOr(number) })
const part = missingOr(oneOf('team-building', 'orchestration', 'summary', 'last-look'))

/** The shapes of the events of a round. */
export const ROUND_SHAPES: ShapesOf<RoundEvent> = {
  'round-started': { round: number, agent: text, engine: text, codex: text, model: nullOr(text), part },
  'turn-started': { thread: text, turn: text, model: missingOr(text), effort: missingOr(nullOr(text)) },
  'item-completed': { item: variant('kind', ITEM_SHAPES), instance: missingOr(text) },
  'plan-updated': { steps: listOf(fields({ step: text, status: oneOf('pending', 'in-progress', 'completed') })) },
  usage: { thread: text, total: counts, last: counts, contextWindow: nullOr(number) },
  limits: { primary: nullOr(window), secondary: nullOr(window), credits: missingOr(flag) },
  'model-rerouted': { from: text, to: text, reason: text },
  'request-answered': { method: text, subject: text, answer: text },
  'question-asked': { round: number, question: text, text, options: listOf(text), assumption: text },
  steered: { text, delivered: flag },
  warning: { message: text },
  error: { message: text, details: nullOr(text), willRetry: flag, waitsForNetwork: missingOr(flag) },
  'turn-continued': { cause: outcomeOfRound },
  'winding-down': { limit: oneOf('time', 'tokens', 'usage'), graceMs: number },
  'machine-slept': { ms: number },
  'round-ended': {
    round: number,
    outcome: outcomeOfRound,
    counts: flag,
    durationMs: number,
    tokens: nullOr(counts),
    treeBefore: text,
    treeAfter: text,
    changed: listOf(text),
    changedCount: number,
    memory: missingOr(text),
    tasks: missingOr(fields({ done: number, total: number, left: missingOr(listOf(text)) })),
  },
}
