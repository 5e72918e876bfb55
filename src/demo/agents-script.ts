import { loadPrompt } from '../base/package.ts'
import { type ModelRequest, type Script, type ScriptStep, turnsScript } from './model/reply.ts'

/** The steps of an agent in its nth conversation, counted from 0 among its own. */
export type AgentPart = (nth: number, request: ModelRequest) => readonly ScriptStep[]

/** Those who are told apart by their prompt: rounds of a goal and of a build's main agents, author and control of a contract. */
type MainPart =
  | 'goal'
  | 'contract'
  | 'control'
  | 'agents-builder'
  | 'master-mind'
  | 'project-summarizer'
  | 'last-look'
  | 'replan'

/** The parts of a script: by prompt, and of agents that are given tasks by name. */
type AgentParts = Readonly<Record<string, AgentPart>> & Readonly<Partial<Record<MainPart, AgentPart>>>

/**
 * A script in which agents work side by side: conversations are assigned by their developer instructions, not by their
 * order. A request of an agent without a part fails.
 */
export function agentsScript(parts: AgentParts): Script {
  const seen = new Map<string, number[]>()
  return turnsScript(request => {
    const name = findAgentName(request.developerTexts.join('\n'), Object.keys(parts))
    const part = name === null ? undefined : parts[name]
    if (name === null || part === undefined) throw new Error('the developer instructions name no agent of this script')
    const own = seen.get(name) ?? []
    if (!own.includes(request.conversation)) own.push(request.conversation)
    seen.set(name, own)
    const step = part(own.indexOf(request.conversation), request)[request.step]
    return step
  })
}

/** The prompt file with which the instructions of each main part begin. */
const PROMPTS: Readonly<Record<MainPart, string>> = {
  goal: 'goal',
  contract: 'contract',
  control: 'control',
  'agents-builder': 'agents/agents-builder',
  'master-mind': 'agents/master-mind',
  'project-summarizer': 'agents/project-summarizer',
  'last-look': 'controls/end',
  replan: 'replan',
}

/**
 * Finds the agent by its instructions: one of the main parts by its prompt, others by the first memory file named; else `null`.
 */
function findAgentName(instructions: string, names: readonly string[]): string | null {
  const main = Object.entries(PROMPTS).find(([, prompt]) => instructions.includes(beginningOf(loadPrompt(prompt))))
  if (main !== undefined) return main[0]
  const file = /\.codemachine\/memory\/\.([a-z0-9-]+)-memory\.md/.exec(instructions)?.[1]
  return names.find(name => name.replace(/-dev$/, '') === file) ?? null
}

/** Enough of a prompt to recognize it, before its first placeholder. */
function beginningOf(prompt: string): string {
  return (prompt.split('{{')[0] ?? '').slice(0, 80)
}
