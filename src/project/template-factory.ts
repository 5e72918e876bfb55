import { join } from 'node:path'
import { findEnabledAgent } from '../agents/agent.ts'
import { cleanResult, rememberResult } from '../agents/agent-memory.ts'
import { agentInstructions, withoutFolder } from '../agents/prompts.ts'
import { UserError } from '../base/errors.ts'
import type { Agent, AgentPrompt, AgentRoster } from '../core/shapes/agent.ts'
import type { Memory } from '../core/shapes/memory.ts'
import { askPersonTool } from '../core/shapes/tools.ts'
import type { SessionState } from '../core/state/state.ts'
import { inEffect, type TemplateSetup } from '../core/template.ts'
import type { AgentBook } from '../session/delegation/agent-request.ts'
import type { RunnerOptions } from '../session/options.ts'
import { openKeptTexts } from '../session/records/kept-texts.ts'
import { openOutputs } from '../session/records/outputs.ts'
import { GitError } from '../workspace/git/git.ts'
import { treeChanges } from '../workspace/git/trees.ts'
import { type SessionFolder, scopeFolder } from '../workspace/memory/memory-paths.ts'
import type { Run } from './open-run.ts'
import { unknownTemplate } from './start/templates.ts'
import type { World } from './world.ts'

/** Creates templates and agents for a run's sessions. */
export class TemplateFactory {
  readonly #run: Run
  readonly #world: Pick<World, 'platform' | 'env'>
  /** Remarks on the agents that were already made. */
  readonly #told = new Set<string>()

  constructor(run: Run, world: Pick<World, 'platform' | 'env'>) {
    this.#run = run
    this.#world = world
  }

  /** Creates those of one session; `place`: folder of its memory. */
  async createFor(
    { id, template: name, taskPlan, kept }: SessionState,
    place: SessionFolder,
    memory: Memory,
  ): Promise<Pick<RunnerOptions, 'template' | 'agents'>> {
    const { records, settings, remarks, fingerprints, redactor } = this.#run
    const { directory } = records
    const kind = records.templates.get(name)
    if (kind === undefined) throw new UserError('CM1010', unknownTemplate(name))
    // Unpark in the file, too, what a person retried.
    const tried = taskPlan?.tasks.filter(({ parked }) => parked === null) ?? []
    if (tried.length > 0) await memory.markTasks(tried.map(({ id }) => ({ id, parked: null })))
    const agents = taskPlan === null ? this.#run.agents : await this.#agents()
    const template = await inEffect(name, 'open', () =>
      kind.open({
        directory,
        memory: place,
        scopeFolder: scope => scopeFolder(place, scope),
        agents,
        isPlanReady: taskPlan?.state === 'ready',
        tell: remark => void remarks.push(remark),
        ...(settings.network || settings.sandbox === 'danger-full-access' ? { network: true as const } : {}),
        kept: openKeptTexts(records.sessionFolder(id)).of(kept),
        readOutput: openOutputs(records.sessionFolder(id)).whole,
        linesChanged: (before, after, signal) => linesChanged(fingerprints, before, after, signal),
        looks: {
          gitDir: join(records.folder, 'looks'),
          env: this.#world.env,
          redact: text => redactor.text(text),
        },
      }),
    )
    return {
      template,
      agents: {
        book: openAgentBook({
          agents: async () => withOwnAgents(await this.#agents(), template.ownAgents?.(), settings),
          directory,
          promptOf: agent => inEffect(name, 'promptOf', () => template.promptOf?.(agent)),
        }),
        directory,
        platform: this.#world.platform,
        atOnce: settings.agents.atOnce,
      },
    }
  }

  /** Returns the agents with models that codex offers. */
  async #agents(): Promise<AgentRoster> {
    const { agents, remarks } = await this.#run.askForModels()
    const { live } = this.#run
    this.#run.remarks.push(...remarks.filter(remark => !this.#told.has(remark)))
    for (const remark of remarks) this.#told.add(remark)
    return { ...agents, sub: agents.sub.map(agent => live.withPrompt(agent)) }
  }
}

/** Returns the agents, with a template's own ones added: these use the person's model and effort for all. */
function withOwnAgents(
  roster: AgentRoster,
  own: readonly Agent[] | undefined,
  { model, effort }: Run['settings'],
): AgentRoster {
  if (own === undefined) return roster
  const set = own.map(agent => ({ ...agent, model, modelReasoningEffort: effort }))
  return { ...roster, sub: [...withoutFolder(roster.sub), ...set] }
}

const MOST_FILES = 500

/** See `TemplateSetup.linesChanged`. */
async function linesChanged(
  fingerprints: Run['fingerprints'],
  before: string,
  after: string,
  signal: AbortSignal,
): ReturnType<NonNullable<TemplateSetup['linesChanged']>> {
  try {
    return (await fingerprints.mending(git => treeChanges(git, before, after, MOST_FILES), signal)).paths
  } catch (error) {
    // This tree is no longer stored.
    if (error instanceof GitError) return []
    throw error
  }
}

interface AgentBookOptions {
  /** Returns the agents with their models and efforts; called when one gets work. */
  agents(): Promise<AgentRoster>
  /** The work directory. */
  directory: string
  /** Returns an agent's fixed prompt; undefined, or left out: the current one. */
  promptOf?(agent: Agent): Promise<AgentPrompt | undefined>
}

/** Returns the agents that can get work in a session, and their memory. */
export function openAgentBook({ agents, directory, promptOf }: AgentBookOptions): AgentBook {
  return {
    async thread(name) {
      const { main, sub } = await agents()
      if (main.some(agent => agent.name === name)) {
        return { problem: `${name} leads the work, and cannot be given a task.` }
      }
      const found = findEnabledAgent(sub, name)
      if ('problem' in found) return found
      const { agent } = found
      const instructions = await agentInstructions(agent, directory, await promptOf?.(agent))
      if ('problem' in instructions) return instructions
      const thread = {
        agent: name,
        developerInstructions: instructions.text,
        model: agent.model,
        effort: agent.modelReasoningEffort,
        ...(agent.engine === undefined ? {} : { engine: agent.engine }),
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
