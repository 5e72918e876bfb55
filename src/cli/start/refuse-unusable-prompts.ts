import type { Agent, Agents } from '../../agents/agent.ts'
import { projectPrompt, shippedPrompt } from '../../agents/agent-prompt.ts'
import { UserError } from '../../base/errors.ts'
import type { TemplateName } from './templates.ts'

/**
 * Throws a `UserError` if an agent that a session of this template needs has no prompt. One of the project's own that cannot
 * be used is for the team builder to mend.
 */
export async function refuseUnusablePrompts(directory: string, template: TemplateName, agents: Agents): Promise<void> {
  if (template === 'goal') return
  const own = await Promise.all(agents.sub.map(({ name }) => projectPrompt(directory, name)))
  const shipped = [...agents.main, ...agents.sub.filter((_, index) => own[index] === null)]
  for (const agent of shipped) await refuseUnusable(agent)
}

async function refuseUnusable(agent: Agent): Promise<void> {
  if (!agent.enabled) return
  const prompt = await shippedPrompt(agent)
  if ('problem' in prompt) throw new UserError(prompt.problem)
}
