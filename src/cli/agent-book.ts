import { type Agents, findAgent } from '../agents/agent.ts'
import { rememberResult } from '../agents/agent-memory.ts'
import { agentInstructions } from '../agents/agent-prompt.ts'
import { cleanResult } from '../agents/clean-result.ts'
import type { PromptsInBuild } from '../agents/prompts-in-build.ts'
import { askPersonTool } from '../session/ask-person.ts'
import type { AgentBook } from '../session/delegation.ts'

export interface AgentBookOptions {
  /** With the models and efforts that they work with; asked for when one is given work. */
  agents(): Promise<Agents>
  /** The work directory. */
  directory: string
  /** Of a build; null: each agent works by its prompt as it is at that moment. */
  prompts: PromptsInBuild | null
}

/** The agents that can be given work in a session, and their memory. */
export function openAgentBook({ agents, directory, prompts }: AgentBookOptions): AgentBook {
  return {
    async thread(name) {
      const { main, sub } = await agents()
      if (main.some(agent => agent.name === name)) {
        return { problem: `${name} leads the work, and cannot be given a task.` }
      }
      const found = findAgent(sub, name)
      if ('problem' in found) return found
      const { agent } = found
      const instructions = await agentInstructions(agent, directory, await prompts?.promptOf(agent))
      if ('problem' in instructions) return instructions
      const thread = {
        agent: name,
        developerInstructions: instructions.text,
        model: agent.model,
        effort: agent.modelReasoningEffort,
        tools: [askPersonTool],
      }
      return { thread }
    },
    async remember(agent, { at, ...entry }) {
      return await rememberResult(directory, agent, { ...entry, at: new Date(at).toISOString() })
    },
    clean: cleanResult,
  }
}
