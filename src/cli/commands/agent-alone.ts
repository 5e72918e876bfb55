import { runAgentAlone } from '../../app/agents/agent-alone.ts'
import type { CliContext } from '../../tui/cli-context.ts'
import { safeText } from '../../words/cells.ts'
import { type RunFlags, readText } from '../flags.ts'
import { listenersOn, runOptionsOf } from '../run-options.ts'

/** What is asked of an agent on the command line. */
export interface AgentCall {
  /** Name of the agent. */
  agent: string
  /** As typed; `-` stands for standard input. */
  task: string
  /** Whether what codex shows is shown while it works, in the place of the result alone. */
  stream: boolean
  flags: RunFlags
}

/**
 * `codemachine --agent NAME "task"` where no session runs: one task of one agent, through `codex exec`, in the project
 * around the directory. Resolves with 0, 130 or 143; throws a `UserError` for what a person has to mend (2) and for a task
 * that codex did not get to its end (4).
 */
export async function agentAlone(context: CliContext, call: AgentCall): Promise<number> {
  const { stdout, stderr, signal } = context
  let isShown = false
  const show = (text: string) => {
    isShown = true
    stdout.write(safeText(text))
  }
  const end = await runAgentAlone(context, {
    agent: call.agent,
    readTask: () => readText(context, call.task),
    options: runOptionsOf(call.flags),
    onText: call.stream ? show : null,
    onRemark: remark => void stderr.write(`${safeText(remark)}\n`),
    onDebug: listenersOn(context, call.flags).onDebug,
  })
  if (end.kind === 'terminated') return signal.reason === 'SIGTERM' ? 143 : 130
  if (!isShown) stdout.write(`${stdout.isTTY ? safeText(end.result) : end.result}\n`)
  if (end.problem !== null) stderr.write(`${safeText(end.problem)}\n`)
  return 0
}
