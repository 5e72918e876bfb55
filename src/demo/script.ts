import { unreachable } from '../base/errors.ts'
import type { ModelRequest } from './model-request.ts'
import type { Reply } from './reply.ts'
import { reply } from './reply.ts'
import { message } from './reply-items.ts'

/**
 * Says what the model answers. It may wait for a promise first: codex then waits for the headers. What it throws
 * reaches codex as a status 400, which ends the turn.
 */
export type Script = (request: ModelRequest) => Reply | Promise<Reply>

/** A reply, or a script for this one step. */
export type ScriptStep = Reply | Script

/**
 * Conversation n plays `rounds[n]`, step by step, and answers plainly once that is over. A step that codex did not get
 * to its end is played again. Sub-agents play `subAgent`; a compaction is answered with a summary.
 */
export function roundsScript(
  rounds: readonly (readonly ScriptStep[])[],
  options: { subAgent?: ScriptStep } = {},
): Script {
  return turnsScript(request => {
    if (request.isSubAgent) return options.subAgent
    return rounds[request.conversation]?.[request.step]
  })
}

/** Plays the step that is found for a request, and answers plainly if there is none; a compaction is answered with a summary. */
export function turnsScript(stepFor: (request: ModelRequest) => ScriptStep | undefined): Script {
  return request => {
    switch (request.kind) {
      case 'compaction':
        return reply(message('Summary: the work so far is in the files.'))
      case 'other':
        return reply(message('{}'))
      case 'turn':
        return play(stepFor(request) ?? nothingMore, request)
      default:
        return unreachable(request.kind)
    }
  }
}

/** A step that goes through these on codex's retries; the last one stays. */
export function attempts(...steps: readonly [ScriptStep, ...ScriptStep[]]): Script {
  return request => play(steps[Math.min(request.attempt, steps.length - 1)] ?? steps[0], request)
}

const nothingMore = reply(message('Nothing more to do.', { phase: 'final_answer' }))

function play(step: ScriptStep, request: ModelRequest): Reply | Promise<Reply> {
  return typeof step === 'function' ? step(request) : step
}
