import type { DynamicToolCallParams, DynamicToolCallResponse } from '../../protocol/codex.ts'
import type { Clock } from '../base/clock.ts'
import { messageOf } from '../base/errors.ts'
import type { RoundRun, ToolCall } from '../session/engine.ts'
import type { HostTool } from '../session/template.ts'
import { boundedText } from './bounded-text.ts'
import { callHostTool, toolCallResponse } from './host-tools.ts'
import type { RoundFeed } from './round-feed.ts'

export interface RoundToolsOptions {
  feed: RoundFeed
  /** The tools of ours that the thread was given. */
  tools: readonly HostTool[]
  /** What answers them now; undefined: nobody does. */
  onToolCall(): RoundRun['onToolCall'] | undefined
  clock: Clock
  /** How long a command may take, ms. */
  commandMs: number
  /** Aborted when the round is over. */
  over: AbortSignal
  log(message: string): void
}

/** How much of the time that a command may take a tool of ours may: its answer comes before codex counts as hung. */
const ANSWER_SHARE = 0.9

/** What the agent of a round asks of us by tools, and what codex asks in its own way. */
export class RoundTools {
  readonly #options: RoundToolsOptions

  constructor(options: RoundToolsOptions) {
    this.#options = options
  }

  /** Answers a call of a tool of ours. What is answered well shows as an item of codex's. */
  async call(params: DynamicToolCallParams): Promise<DynamicToolCallResponse> {
    const { feed, tools, onToolCall, clock, commandMs, over, log } = this.#options
    const answer = await callHostTool(params, {
      tools,
      onToolCall: over.aborted ? undefined : onToolCall(),
      clock,
      answerMs: commandMs * ANSWER_SHARE,
      over,
      log,
    })
    if (!answer.success)
      feed.requestAnswered('item/tool/call', { subject: boundedText(params.tool), answer: boundedText(answer.text) })
    return toolCallResponse(answer)
  }

  /** Keeps what codex asks in its own way; nobody waits for an answer. */
  keep(questions: readonly ToolCall[]): void {
    const { feed, onToolCall, over, log } = this.#options
    const failed = (error: unknown) => log(`A question of codex is not kept: ${messageOf(error)}`)
    for (const question of questions) feed.whenOpen(() => void onToolCall()?.(question, over).catch(failed))
  }
}
