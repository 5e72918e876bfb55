import { type Agent, type Agents, knownAgent, loadAgents } from '../../agents/agent.ts'
import { agentProblems } from '../../agents/agent-problems.ts'
import { agentInstructions, agentPrompt, shippedPrompt } from '../../agents/agent-prompt.ts'
import { agentOfPart, buildInstructions } from '../../agents/build-prompts.ts'
import { UserError } from '../../base/errors.ts'
import type { RoundPart } from '../../session/build-state.ts'
import { formatCount } from '../../ui/format-count.ts'
import { safeText } from '../../ui/safe-text.ts'
import { realWorkDirectory } from '../../workspace/real-work-directory.ts'
import type { CliContext } from '../context.ts'
import { settingsOf } from '../open-run.ts'

/** An agent as `agents list --json` shows it. */
interface ListedAgent {
  name: string
  /** `main`: runs builds; `sub`: is given tasks. */
  kind: 'main' | 'sub'
  displayName: string
  description: string
  /** What the settings say, or else `config/*.agents.js`, whether codex offers it or not; null: codex's own choice. */
  model: string | null
  effort: string | null
  enabled: boolean
  /** Whose prompt counts; null: there is none that can be used. */
  prompt: 'project' | 'shipped' | null
  /** Why there is none. */
  problem: string | null
}

/** `codemachine agents list`: the agents, as they would work in a directory. */
export async function agentsList(context: CliContext, options: { directory: string; json: boolean }): Promise<number> {
  const listed = await listAgents(context, await realWorkDirectory(options.directory))
  context.stdout.write(options.json ? `${JSON.stringify(listed)}\n` : tables(listed))
  return 0
}

/** `codemachine agents show`: the prompt of an agent, as it would get it in a directory. */
export async function agentsShow(context: CliContext, options: { directory: string; name: string }): Promise<number> {
  const directory = await realWorkDirectory(options.directory)
  const agents = loadAgents()
  // How a disabled one would work is looked at before it is enabled.
  const found = knownAgent([...agents.main, ...agents.sub], options.name)
  if ('problem' in found) throw new UserError(found.problem, { hint: 'codemachine agents list shows all of them.' })
  const prompt = await instructionsOf(found.agent, agents, directory)
  if ('problem' in prompt) throw new UserError(prompt.problem)
  const { stdout } = context
  stdout.write(`${(stdout.isTTY ? safeText(prompt.text) : prompt.text).trimEnd()}\n`)
  return 0
}

/** `codemachine agents validate`: what is wrong with the agents and their prompts; exit code 2 if anything is. */
export async function agentsValidate(context: CliContext, options: { directory: string }): Promise<number> {
  const problems = await agentProblems(await realWorkDirectory(options.directory))
  for (const problem of problems) context.stderr.write(`codemachine: ${safeText(problem)}\n`)
  if (problems.length > 0) return 2
  const { main, sub } = loadAgents()
  context.stdout.write(`${formatCount(main.length + sub.length, 'agent')}, and nothing is wrong with them.\n`)
  return 0
}

async function listAgents(context: CliContext, directory: string): Promise<ListedAgent[]> {
  const { settings } = await settingsOf(context, directory, {})
  const { main, sub } = loadAgents()
  const listed = async (agent: Agent, kind: 'main' | 'sub'): Promise<ListedAgent> => {
    const prompt = kind === 'main' ? await shippedPrompt(agent) : await agentPrompt(agent, directory)
    const { name, displayName, description, enabled } = agent
    return {
      name,
      kind,
      displayName,
      description,
      model: settings.model ?? agent.model,
      effort: settings.effort ?? agent.modelReasoningEffort,
      enabled,
      prompt: 'problem' in prompt ? null : prompt.from,
      problem: 'problem' in prompt ? prompt.problem : null,
    }
  }
  return await Promise.all([...main.map(each => listed(each, 'main')), ...sub.map(each => listed(each, 'sub'))])
}

function tables(listed: readonly ListedAgent[]): string {
  const rows = [HEADINGS, ...listed.map(rowOf)]
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const line = (row: readonly string[]) =>
    `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd()
  const of = (kind: ListedAgent['kind']) =>
    [HEADINGS, ...listed.filter(agent => agent.kind === kind).map(rowOf)].map(line)
  const lines = ['They run a build:', ...of('main'), '', 'They are given tasks:', ...of('sub')]
  return `${lines.map(safeText).join('\n')}\n`
}

/** Which models codex offers is not asked here, and a profile may name another one. */
const HEADINGS: readonly string[] = ['agent', 'model wanted', 'effort', 'prompt']

function rowOf({ name, model, effort, enabled, prompt }: ListedAgent): string[] {
  const words = { project: "the project's own prompt", shipped: 'the shipped prompt' }
  const how = prompt === null ? 'no usable prompt: codemachine agents validate says why' : words[prompt]
  return [name, model ?? "codex's model", effort ?? "the model's effort", enabled ? how : `disabled, ${how}`]
}

async function instructionsOf(
  agent: Agent,
  agents: Agents,
  directory: string,
): Promise<{ text: string } | { problem: string }> {
  const part = MAIN_PARTS.find(each => agentOfPart(each) === agent.name)
  if (part === undefined) return await agentInstructions(agent, directory)
  const places = { directory, main: '.codemachine/projects/<session>/MAIN.md' }
  return await buildInstructions(agent, part, places, agents.sub)
}

/** Of each main agent the round that it is for first of all. */
const MAIN_PARTS: readonly RoundPart[] = ['team-building', 'orchestration', 'summary']
