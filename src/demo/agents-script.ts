import { loadPrompt } from '../base/package-root.ts'
import type { ModelRequest } from './model-request.ts'
import { type Script, type ScriptStep, turnsScript } from './script.ts'

/** What an agent plays in its nth conversation, counted from 0 among its own. */
export type AgentPart = (nth: number, request: ModelRequest) => readonly ScriptStep[]

/** Who speaks in a build, besides the agents that are given tasks. */
type MainPart = 'agents-builder' | 'master-mind' | 'project-summarizer' | 'last-look' | 'replan'

/** What each plays in a build: main agents by what their round is for, those that are given tasks by their names. */
type AgentParts = Readonly<Record<string, AgentPart>> & Readonly<Partial<Record<MainPart, AgentPart>>>

/**
 * Plays a build, in which agents work side by side: conversations are told apart by their developer instructions, not by
 * their order. A request of an agent that has no part fails.
 */
export function agentsScript(parts: AgentParts): Script {
  const seen = new Map<string, number[]>()
  return turnsScript(request => {
    const name = whoAsks(request.developerTexts.join('\n'), Object.keys(parts))
    const part = name === null ? undefined : parts[name]
    if (name === null || part === undefined) throw new Error('the developer instructions name no agent of this script')
    const own = seen.get(name) ?? []
    if (!own.includes(request.conversation)) own.push(request.conversation)
    seen.set(name, own)
    const step = part(own.indexOf(request.conversation), request)[request.step]
    return step
  })
}

/** Where the beginning of the instructions of a main agent stands. */
const PROMPTS: Readonly<Record<MainPart, string>> = {
  'agents-builder': 'agents/agents-builder',
  'master-mind': 'agents/master-mind',
  'project-summarizer': 'agents/project-summarizer',
  'last-look': 'controls/end',
  replan: 'replan',
}

/** An agent that was given a task is known by its memory file, the only one that its instructions name first. */
function whoAsks(instructions: string, names: readonly string[]): string | null {
  const main = Object.entries(PROMPTS).find(([, prompt]) => instructions.includes(beginningOf(loadPrompt(prompt))))
  if (main !== undefined) return main[0]
  const file = /\.codemachine\/memory\/\.([a-z0-9-]+)-memory\.md/.exec(instructions)?.[1]
  return names.find(name => name.replace(/-dev$/, '') === file) ?? null
}

/** Enough of a prompt to know it by, before anything in it is filled in. */
function beginningOf(prompt: string): string {
  return (prompt.split('{{')[0] ?? '').slice(0, 80)
}
