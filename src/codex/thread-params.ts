import type { JsonValue, ThreadStartParams, TurnStartParams } from '../../protocol/codex.ts'
import type { ThreadSpec } from '../session/template.ts'
import { dynamicTools } from './host-tools.ts'
import type { SandboxTerms } from './sandbox.ts'

/** What `thread/start` is sent for a round in `directory`. */
export function threadStartParams(directory: string, thread: ThreadSpec, terms: SandboxTerms): ThreadStartParams {
  const { config, ...rights } = terms.thread
  return {
    cwd: directory,
    ...(thread.model === null ? {} : { model: thread.model }),
    ...rights,
    approvalPolicy: terms.approvalPolicy,
    developerInstructions: thread.developerInstructions,
    ...(thread.tools === undefined ? {} : { dynamicTools: dynamicTools(thread.tools) }),
    config: {
      ...config,
      ...(thread.effort === null ? {} : { model_reasoning_effort: thread.effort }),
      // A goal makes codex start turns by itself, and a round is one turn.
      features: { goals: false, ...(terms.shellSnapshot ? {} : { shell_snapshot: false }) },
      tools: { update_plan: { enabled: true }, experimental_request_user_input: { enabled: false } },
    },
  }
}

/**
 * What `turn/start` is sent for the turn of a round.
 * @param outputSchema JSON Schema that the last message of the turn has to fit; none: any text
 */
export function turnStartParams(
  threadId: string,
  input: string,
  terms: SandboxTerms,
  outputSchema?: object,
): TurnStartParams {
  return {
    threadId,
    input: [{ type: 'text', text: input, text_elements: [] }],
    approvalPolicy: terms.approvalPolicy,
    ...terms.turn,
    ...(outputSchema === undefined ? {} : { outputSchema: outputSchema as JsonValue }),
  }
}
