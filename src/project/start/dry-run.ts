import { agentInstructions, compositePrompt, readAgentPrompt, writeAgentsConfig } from '../../agents/prompts.ts'
import { readRoster } from '../../agents/roster.ts'
import { UserError } from '../../base/errors.ts'
import { formatBytes } from '../../base/text.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import type { Agent, AgentRoster } from '../../core/shapes/agent.ts'
import { NO_KEPT_TEXTS, type TemplateKind } from '../../core/template.ts'
import type { Records } from '../../session/records/records.ts'
import { formatCount } from '../../tell/words/numbers.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import { scopeFolder, sessionFolder } from '../../workspace/memory/memory-paths.ts'
import { makeProjectFolders, specificationFile } from '../../workspace/memory/plan-files.ts'
import { readSpecification, type Specification } from '../../workspace/memory/specification.ts'
import { codexFor, namedCodex } from '../engine-of-project.ts'
import type { LoadedSettings } from '../settings/load.ts'
import type { Settings } from '../settings/schema.ts'
import type { World } from '../world.ts'
import { refuseUnusablePrompts } from './templates.ts'

/** A kind of round, as codex would get it. */
interface DryRound extends ReturnType<typeof asSet> {
  /** Null: the template has only one kind. */
  part: string | null
  developerInstructions: string
}

/** An agent for tasks, and its prompt for one of them. */
interface DryAgent extends ReturnType<typeof asSet> {
  /** Origin of its prompt. */
  from: 'person' | 'project' | 'shipped'
  /** Its instructions and the task together. */
  prompt: string
}

/** Everything that a session would pass to codex. */
export interface DryRun {
  rounds: readonly DryRound[]
  agents: readonly DryAgent[]
}

/** Returns a session's input for its codex; `codex`: version. Throws a `UserError` if there is no codex. */
export async function dryRunHere(
  world: World,
  records: Records,
  {
    sources,
    agentTables,
    ...options
  }: Pick<DryRunOptions, 'template'> & Pick<LoadedSettings, 'settings' | 'sources' | 'agentTables'>,
): Promise<DryRun & { codex: string }> {
  const { settings } = options
  const { directory } = records
  const codex = await codexFor(world, records, namedCodex({ settings, sources }), { makesCopy: false })
  const { roster: agents } = await readRoster(directory, agentTables)
  const run = await dryRun({ ...options, agents, directory })
  return { ...run, codex: codex.version }
}

interface DryRunOptions {
  template: TemplateKind
  /** Real path of the work directory. */
  directory: string
  settings: Pick<Settings, 'model' | 'effort'>
  agents: AgentRoster
}

/** Placeholder for a request that only the asking agent knows. */
const SOME_TASK = '<the task that it is given>'
/** Id of a session that does not exist. */
const SOME_SESSION = '<session>'

/** Returns what codex would get; reads prompts, and changes nothing. Throws a `UserError` for an unusable prompt. */
async function dryRun(options: DryRunOptions): Promise<DryRun> {
  const { template, directory, agents } = options
  const memory = sessionFolder({ directory, id: SOME_SESSION, records: SOME_SESSION, memory: template.memory })
  const setup = { directory, memory, scopeFolder: (name: string) => scopeFolder(memory, name), agents, tell: () => {} }
  const { threads } = await template.open({ ...setup, isPlanReady: false, kept: NO_KEPT_TEXTS })
  // A template with one kind of round lists it first; other threads without a part change the plan.
  const hasParts = Object.keys(template.parts).length > 0
  const working = hasParts ? threads.filter(({ part }) => part !== null) : threads.slice(0, 1)
  const rounds = working.map(({ part, thread }) => dryRound(part, thread, options))
  const team: DryAgent[] = []
  if (template.hasPlan) for (const agent of agents.sub) if (agent.enabled) team.push(await dryAgent(agent, options))
  return { rounds, agents: team }
}

function dryRound(part: string | null, thread: ThreadSpec, { settings }: DryRunOptions): DryRound {
  const { agent, model, effort, developerInstructions } = thread
  const set = { agent, model: settings.model ?? model, effort: settings.effort ?? effort }
  return { part, ...set, developerInstructions }
}

async function dryAgent(agent: Agent, options: DryRunOptions): Promise<DryAgent> {
  const prompt = await readAgentPrompt(agent, options.directory)
  if ('problem' in prompt) throw new UserError('CM0206', prompt.problem)
  const instructions = await agentInstructions(agent, options.directory)
  if ('problem' in instructions) throw new UserError('CM0206', instructions.problem)
  return { ...asSet(agent, options), from: prompt.from, prompt: compositePrompt(instructions.text, SOME_TASK) }
}

function asSet({ name, model, modelReasoningEffort }: Agent, { settings }: DryRunOptions) {
  return { agent: name, model: settings.model ?? model, effort: settings.effort ?? modelReasoningEffort }
}

/**
 * Returns the specification of a work directory, and creates its folders and `agents-config.json` first. Throws a
 * `UserError` if no build can use it, or not with these agents.
 */
export async function specificationOf(
  directory: string,
  template: TemplateKind,
  agents: AgentRoster,
): Promise<Specification> {
  await makeProjectFolders(directory)
  await writeAgentsConfig(directory, agents)
  return await usableSpecification(directory, template, agents)
}

/** Does the same with the agents of the directory. */
export async function specificationHere(
  directory: string,
  template: TemplateKind,
  { agentTables }: Pick<LoadedSettings, 'agentTables'>,
): Promise<Specification> {
  return await specificationOf(directory, template, (await readRoster(directory, agentTables)).roster)
}

/** Does the same for a look: creates nothing in the directory. */
export async function lookAtSpecification(
  directory: string,
  template: TemplateKind,
  { agentTables }: Pick<LoadedSettings, 'agentTables'>,
): Promise<Specification> {
  return await usableSpecification(directory, template, (await readRoster(directory, agentTables)).roster)
}

async function usableSpecification(
  directory: string,
  template: TemplateKind,
  agents: AgentRoster,
): Promise<Specification> {
  const specification = await readSpecification(directory)
  await refuseUnusablePrompts(directory, template, agents)
  return specification
}

/** Returns the goal of a session that builds a specification; its first line is a summary. */
export function goalOf({ text, title }: Specification): string {
  const file = specificationFile.replaceAll('\\', '/')
  return `Build ${oneLine(title, TITLE_CHARACTERS).replace(/[.:]+$/, '')}, as ${file} says.\n\n${text.trim()}`
}

/** Returns lines for a person who must confirm that the specification is complete. */
export function describeSpecification({ title, size, others, hasMore }: Specification): string[] {
  const shown = others.slice(0, MOST_SHOWN)
  const left = others.length - shown.length
  const more = hasMore ? 'and more' : left > 0 ? `and ${formatCount(left, 'more file')}` : null
  return [
    `${specificationFile}, ${formatBytes(size)}: ${oneLine(title, TITLE_CHARACTERS)}`,
    ...shown.map(file => `  beside it ${oneLine(file.name, NAME_CHARACTERS)}, ${formatBytes(file.size)}`),
    ...(more === null ? [] : [`  ${more}`]),
    ...(others.length === 0 ? ['  no files beside it'] : []),
  ]
}

/** Question to the person. */
export const IS_IT_COMPLETE = 'Is this all that the agents need to know?'

const MOST_SHOWN = 15
const TITLE_CHARACTERS = 80
const NAME_CHARACTERS = 100
