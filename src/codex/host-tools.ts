import type {
  DynamicToolCallParams,
  DynamicToolCallResponse,
  DynamicToolSpec,
  JsonValue,
} from '../../protocol/codex.ts'
import type { Clock } from '../base/clock.ts'
import { messageOf } from '../base/errors.ts'
import type { RoundRun, ToolAnswer } from '../session/engine.ts'
import type { HostTool } from '../session/template.ts'
import { boundedText } from './bounded-text.ts'

/** Tools that codemachine answers itself, as `thread/start` takes them; measured from codex 0.120 on. */
export function dynamicTools(tools: readonly HostTool[]): DynamicToolSpec[] {
  return tools.map(({ name, description, inputSchema }) => {
    return { type: 'function', name, description, inputSchema: inputSchema as JsonValue }
  })
}

export interface ToolCallOptions {
  /** Those that the thread was started with. */
  tools: readonly HostTool[]
  /** Who answers; none: nobody does. */
  onToolCall: RoundRun['onToolCall']
  clock: Clock
  /** How long that may take, ms. */
  answerMs: number
  /** Aborted when nobody waits for the answer any more. */
  over: AbortSignal
  log(message: string): void
}

/** Has a tool of codemachine's called; resolves in any case, as a call without an answer would hold up the turn for ever. */
export async function callHostTool(
  { tool, arguments: args }: DynamicToolCallParams,
  options: ToolCallOptions,
): Promise<ToolAnswer> {
  const { tools, onToolCall, clock, answerMs, over, log } = options
  if (!tools.some(({ name }) => name === tool)) return failed(`There is no tool named "${tool}" here.`)
  if (onToolCall === undefined) return failed(`Nobody answers the tool "${tool}" now. Go on without it.`)
  using settled = ending(over)
  const late = clock.wait(answerMs, settled.signal).then(() => {
    return failed(`The tool "${tool}" has not answered within ${Math.round(answerMs / 1000)} s. Go on without it.`)
  })
  // `async`, so that what it throws at once is a rejection, too.
  const answer = (async () => onToolCall({ tool, arguments: args }, settled.signal))().catch((error: unknown) => {
    log(`The tool ${tool} failed: ${messageOf(error)}`)
    return failed(`The tool "${tool}" failed. Go on without it.`)
  })
  return await Promise.race([answer, late])
}

/** An answer as codex takes it. */
export function toolCallResponse({ text, success }: ToolAnswer): DynamicToolCallResponse {
  return { contentItems: [{ type: 'inputText', text: boundedText(text) }], success }
}

function failed(text: string): ToolAnswer {
  return { text, success: false }
}

/** A signal that is aborted with the other one, or when it is disposed of. */
function ending(over: AbortSignal): { signal: AbortSignal } & Disposable {
  const done = new AbortController()
  return { signal: AbortSignal.any([over, done.signal]), [Symbol.dispose]: () => done.abort() }
}
