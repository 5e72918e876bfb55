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
  return request => {
    switch (request.kind) {
      case 'compaction':
        return reply(message('Summary: the work so far is in the files.'))
      case 'other':
        return reply(message('{}'))
      case 'turn':
        break
      default:
        unreachable(request.kind)
    }
    if (request.isSubAgent) return play(options.subAgent ?? nothingMore, request)
    return play(rounds[request.conversation]?.[request.step] ?? nothingMore, request)
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
