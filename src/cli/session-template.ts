import { relative } from 'node:path'
import type { Agent, Agents } from '../agents/agent.ts'
import { agentOfPart, buildInstructions, retryInput } from '../agents/build-prompts.ts'
import { UserError } from '../base/errors.ts'
import { loadPrompt } from '../base/package-root.ts'
import { askPersonTool } from '../session/ask-person.ts'
import type { RoundPart } from '../session/build-state.ts'
import { runAgentTool } from '../session/run-agent-tool.ts'
import type { Template, ThreadSpec } from '../session/template.ts'
import { buildTemplate } from '../templates/build.ts'
import { goalTemplate } from '../templates/goal.ts'
import { goalInstructions } from '../templates/goal-prompt.ts'
import type { SessionFolder } from '../workspace/session-folder.ts'

/** The template of a session in a work directory, by the name that its journal has; `place`: its memory. */
export async function templateOf(
  directory: string,
  agents: Agents,
  name: string,
  place: SessionFolder,
): Promise<Template> {
  const replanning = goalInstructions(loadPrompt('replan'), { ...place, directory })
  if (name !== 'build') {
    const thread = threadOf(agents.goal, goalInstructions(loadPrompt('goal'), { ...place, directory }))
    return goalTemplate({ ...thread, tools: [askPersonTool] }, { ...thread, developerInstructions: replanning })
  }
  const main = relative(directory, place.main)
  const thread = async (part: RoundPart, more: Partial<ThreadSpec>) => {
    const agent = mainAgent(agents, part)
    const found = await buildInstructions(agent, part, { directory, main }, agents.sub)
    if ('problem' in found) throw new UserError(found.problem)
    return { ...threadOf(agent, found.text), ...more }
  }
  return buildTemplate(
    {
      teamBuilder: await thread('team-building', { tools: [askPersonTool] }),
      masterMind: await thread('orchestration', { tools: [runAgentTool, askPersonTool] }),
      lastLook: await thread('last-look', { tools: [askPersonTool] }),
      summarizer: await thread('summary', { readOnly: true }),
      replan: threadOf(mainAgent(agents, 'orchestration'), replanning),
    },
    retryInput,
  )
}

function mainAgent({ main }: Agents, part: RoundPart): Agent {
  const name = agentOfPart(part)
  const agent = main.find(each => each.name === name)
  if (agent === undefined) throw new Error(`There is no agent ${name}.`)
  return agent
}

function threadOf({ name, model, modelReasoningEffort }: Agent, developerInstructions: string): ThreadSpec {
  return { agent: name, developerInstructions, model, effort: modelReasoningEffort }
}
