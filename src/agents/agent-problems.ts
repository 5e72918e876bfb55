import { UserError } from '../base/errors.ts'
import { type Agents, loadAgents, MAIN_NAMES } from './agent.ts'
import { shippedPrompt } from './agent-prompt.ts'
import { problemsWith, readProjectPrompts } from './project-prompts.ts'

/**
 * What keeps agents from working in a directory, a sentence each: in `config/*.agents.js`, the shipped prompts, and the
 * project's own.
 * @param options `folder`: as of `loadAgents`
 */
export async function agentProblems(directory: string, options: { folder?: string } = {}): Promise<readonly string[]> {
  try {
    const agents = loadAgents(options)
    const ofProject = problemsWith(await readProjectPrompts(directory, agents.sub))
    return [...disabledMain(agents), ...(await unusablePrompts(agents)), ...ofProject]
  } catch (error) {
    if (error instanceof UserError) return [error.message]
    throw error
  }
}

function disabledMain({ main }: Agents): string[] {
  return main
    .filter(({ name, enabled }) => !enabled && MAIN_NAMES.some(each => each === name))
    .map(({ name }) => `The agent "${name}" is disabled, and every build needs it; enable it in main.agents.js.`)
}

async function unusablePrompts({ main, sub, goal }: Agents): Promise<string[]> {
  const read = await Promise.all([...main, ...sub, goal].map(shippedPrompt))
  return read.flatMap(prompt => ('problem' in prompt ? [prompt.problem] : []))
}
