import { realpath } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import { systemErrorCode, UserError } from '../base/errors.ts'
import type { Agent, AgentRoster, AgentTable, AgentTables } from '../core/shapes/agent.ts'
import { findObstacle, whatIsThere } from '../workspace/files/inside-directory.ts'
import { agentOfPrompt, LEADING_AGENT_NAMES, loadAgents, problemOfName } from './agent.ts'
import { readPrompt, readPromptFolder } from './prompts.ts'

/** The agents of a work directory. `remarks`: which of the project's are ignored, and why, a sentence each. */
interface RosterHere {
  roster: AgentRoster
  remarks: readonly string[]
}

/**
 * Reads all agents of a work directory: shipped ones, those of the settings, and those with only a prompt in
 * `.codemachine/agents`. Throws a `UserError` of one sentence, with the place, for a mistake in the person's settings.
 * Ignores a project's agent that is unusable, or whose name is taken.
 * @param directory null: no project yet
 */
export async function readRoster(
  directory: string | null,
  { tables, remarks: before }: AgentTables,
  options: Parameters<typeof loadAgents>[0] = {},
): Promise<RosterHere> {
  const shipped = loadAgents(options)
  const reserved = [...shipped.main.map(({ name }) => name), shipped.goal.name, ...LEADING_AGENT_NAMES]
  const remarks = [...before]
  let sub = shipped.sub
  for (const table of tables) {
    try {
      sub = await withTable(sub, table, reserved)
    } catch (error) {
      if (table.of === 'person' || !(error instanceof UserError)) throw error
      remarks.push(`${error.message} codemachine ignores it.`)
    }
  }
  const { agents } = directory === null ? { agents: [] } : await readPromptFolder(directory, sub)
  return { roster: { ...shipped, sub: [...sub, ...agents] }, remarks }
}

/** Returns the agents with one table applied. Throws a `UserError` if the table is invalid. */
async function withTable(
  agents: readonly Agent[],
  table: AgentTable,
  reserved: readonly string[],
): Promise<readonly Agent[]> {
  const { name, of, place } = table
  if (reserved.includes(name)) {
    throw new UserError(
      'CM0205',
      `${place}: "${name}" is an agent of codemachine, and you cannot replace it; give yours another name.`,
    )
  }
  const before = agents.find(agent => agent.name === name)
  if (before === undefined) return [...agents, await newAgent(agents, table)]
  if (of === 'project') {
    const whose = before.source === undefined ? 'one that ships with codemachine' : `yours (${before.source.place})`
    throw new UserError(
      'CM0205',
      `${place}: codemachine already uses another agent "${name}", ${whose}; give yours another name.`,
    )
  }
  const prompt = await promptOf(table)
  return agents.map(agent =>
    agent === before ? { ...agent, ...fieldsOf(table), source: sourceOf(table, prompt) } : agent,
  )
}

async function newAgent(agents: readonly Agent[], table: AgentTable): Promise<Agent> {
  const { name, place } = table
  const problem = problemOfName(name, agents)
  if (problem !== null) throw new UserError('CM0205', `${place}: ${problem}`)
  const prompt = await promptOf(table)
  if (prompt === undefined) {
    throw new UserError(
      'CM0205',
      `${place}: the agent "${name}" has no prompt; name its file, such as prompt = "agents/${name}.md".`,
    )
  }
  return { ...agentOfPrompt(name, prompt.text), ...fieldsOf(table), source: sourceOf(table, prompt) }
}

type ReadPrompt = { path: string; place: string; text: string }

/** Resolves with the prompt that a table names; undefined: none. Throws a `UserError` if it is unusable. */
export async function promptOf({ name, prompt, places, folder }: AgentTable): Promise<ReadPrompt | undefined> {
  if (prompt === undefined) return undefined
  const place = places.prompt ?? ''
  const refuse = (why: string): never => {
    throw new UserError('CM0206', `${place}: agents.${name}.prompt: ${why}`)
  }
  const root = await realpath(folder).catch((error: unknown) => {
    if (systemErrorCode(error) === null) throw error
    return folder
  })
  const path = join(root, normalize(prompt))
  const read = await readBelow(root, normalize(prompt), path).catch((error: unknown) => {
    const code = systemErrorCode(error)
    if (code === null) throw error
    return refuse(`${path} cannot be read (${code}); name another file.`)
  })
  if (read === null) return refuse(`there is no file ${path}; write it, or name another.`)
  return 'problem' in read ? refuse(read.problem) : { path, place, text: read.text }
}

async function readBelow(root: string, prompt: string, path: string): ReturnType<typeof readPrompt> {
  const obstacle = await findObstacle(root, dirname(prompt))
  if (obstacle === null || obstacle.kind === 'missing') return await readPrompt(path, path)
  return { problem: `${join(root, obstacle.path)} ${whatIsThere(obstacle)}; replace it by a folder.` }
}

function fieldsOf({ model, effort, engine, enabled, description }: AgentTable): Partial<Agent> {
  return {
    // Shipped models and efforts are codex's.
    ...(engine === undefined ? {} : { engine, model: null, modelReasoningEffort: null }),
    ...(model === undefined ? {} : { model }),
    ...(effort === undefined ? {} : { modelReasoningEffort: effort }),
    ...(enabled === undefined ? {} : { enabled }),
    ...(description === undefined ? {} : { description }),
  }
}

function sourceOf({ of, place, places }: AgentTable, prompt: ReadPrompt | undefined): NonNullable<Agent['source']> {
  const { enabled: disabledAt } = places
  return { of, place, ...(disabledAt === undefined ? {} : { disabledAt }), ...(prompt === undefined ? {} : { prompt }) }
}
