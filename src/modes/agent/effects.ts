import { findEnabledAgent } from '../../agents/agent.ts'
import { agentInstructions, USER_REQUEST } from '../../agents/prompts.ts'
import { UserError } from '../../base/errors.ts'
import type { Template, TemplateSetup } from '../../core/template.ts'
import { nextOfCall } from './agent.ts'

/** Makes a call ready: the thread of its agent, whose prompt is as it is now. */
export async function openAgent({ directory, agents, call }: TemplateSetup): Promise<Template> {
  if (call === undefined) throw new Error('There is no agent to be called.')
  const found = findEnabledAgent(agents.sub, call.agent)
  if ('problem' in found) throw new UserError(found.problem)
  const { name, model, modelReasoningEffort } = found.agent
  const instructions = await agentInstructions(found.agent, directory)
  if ('problem' in instructions) throw new UserError(instructions.problem)
  const own = call.instructions === undefined ? '' : `${call.instructions.trimEnd()}\n\n`
  const thread = {
    agent: name,
    developerInstructions: `${own}${instructions.text}`,
    model,
    effort: modelReasoningEffort,
  }
  return { threads: [{ part: 'task', thread }], ...nextOfCall(thread, `${USER_REQUEST}\n${call.task}`) }
}
