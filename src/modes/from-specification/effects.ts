import { createHash } from 'node:crypto'
import { relative } from 'node:path'
import type { MainAgentName } from '../../agents/agent.ts'
import {
  agentsWithOwnPrompt,
  fillPrompt,
  openProjectPrompts,
  promptProblems,
  readUsualPrompt,
  withoutFolder,
} from '../../agents/prompts.ts'
import { UserError } from '../../base/errors.ts'
import { loadPrompt } from '../../base/package.ts'
import { clipEnd, fillPlaceholders } from '../../base/text.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import type { Agent } from '../../core/shapes/agent.ts'
import { askPersonTool, runAgentTool } from '../../core/shapes/tools.ts'
import type { Template, TemplateSetup } from '../../core/template.ts'
import { replanInstructions } from '../../session/round-input.ts'
import { checkPlanFiles, specificationFile, writePlanSummary } from '../../workspace/memory/plan-files.ts'
import { type BuildPart, nextOfBuild, summaryOfEnd, workOf } from './next.ts'

/** The main agent that runs each kind of round. */
const LEADS: Readonly<Record<BuildPart, MainAgentName>> = {
  'team-building': 'agents-builder',
  orchestration: 'master-mind',
  'last-look': 'master-mind',
  summary: 'project-summarizer',
}

/** Prepares a build: its threads, and the project's own prompts, which are stored once there is a plan. */
export async function openBuild(setup: TemplateSetup): Promise<Template> {
  const { directory, agents, isPlanReady, tell } = setup
  const team = withoutFolder(agents.sub)
  const prompts = await openProjectPrompts({ directory, team, isPlanReady, tell })
  const thread = (part: BuildPart, more: Partial<ThreadSpec>) =>
    threadOf(setup, part, [...team, ...prompts.agents()], more)
  const masterMind = () => thread('orchestration', { tools: [runAgentTool, askPersonTool] })
  const threads = {
    teamBuilder: await thread('team-building', { tools: [askPersonTool] }),
    masterMind: await masterMind(),
    summarizer: await thread('summary', { readOnly: true }),
    lastLook: await thread('last-look', { tools: [askPersonTool] }),
    replan: specOf(leadOf(setup, 'orchestration'), replanInstructions(setup)),
  }
  return {
    threads: [
      { part: 'team-building', thread: threads.teamBuilder },
      { part: 'orchestration', thread: threads.masterMind },
      { part: 'summary', thread: threads.summarizer },
      { part: 'last-look', thread: threads.lastLook },
      { part: null, thread: threads.replan },
    ],
    ...nextOfBuild(threads, retryInput),
    async afterRound(session) {
      const { summary } = workOf(session)
      return session.last?.part === 'summary' && summary !== null ? await keepSummary(directory, summary) : null
    },
    beforeEnd: async session => await keepSummary(directory, summaryOfEnd(session)),
    async checkPlan() {
      const found = await prompts.look()
      const checked = await checkPlanFiles(directory, {
        agents: agentsWithOwnPrompt(found),
        problems: promptProblems(found),
      })
      if (!checked.ok) return checked
      prompts.keep(found)
      threads.masterMind = await masterMind()
      return checked
    },
    personsFiles: () => [specificationFile],
    promptOf: agent => prompts.promptOf(agent),
    ownAgents: () => prompts.agents(),
  }
}

/** Returns the thread of one kind of round. It never uses a prompt of the project, because agents could have written it. */
async function threadOf(
  setup: TemplateSetup,
  part: BuildPart,
  team: readonly Agent[],
  more: Partial<ThreadSpec>,
): Promise<ThreadSpec> {
  const { directory, memory } = setup
  const agent = leadOf(setup, part)
  const prompt = part === 'last-look' ? { text: loadPrompt('controls/end') } : await readUsualPrompt(agent)
  if ('problem' in prompt) throw new UserError('CM0206', prompt.problem)
  const texts = part === 'orchestration' ? [prompt.text, loadPrompt('templates/build')] : [prompt.text]
  const values = { directory, main: relative(directory, memory.main), team }
  return { ...specOf(agent, texts.map(text => fillPrompt(text, values)).join('\n\n')), ...more }
}

function leadOf({ agents: { main } }: Pick<TemplateSetup, 'agents'>, part: BuildPart): Agent {
  const agent = main.find(({ name }) => name === LEADS[part])
  if (agent === undefined) throw new Error(`There is no agent ${LEADS[part]}.`)
  return agent
}

function specOf({ name, model, modelReasoningEffort }: Agent, developerInstructions: string): ThreadSpec {
  return { agent: name, developerInstructions, model, effort: modelReasoningEffort }
}

/**
 * The input of a later master-mind round. `lastTask`: the task finished last; `null` if none. The summary is put
 * between two lines with its hash, which it cannot contain itself.
 */
export function retryInput({ lastTask, summary }: { lastTask: string | null; summary: string | null }): string {
  const shown = clipEnd(summary?.trim() || 'There is none.', MOST_SUMMARY)
  return fillPlaceholders(loadPrompt('controls/retry'), {
    lastTask: lastTask ?? 'none yet',
    summary: shown,
    mark: createHash('sha256').update(shown).digest('hex').slice(0, 16),
  }).trimEnd()
}

/** In characters. */
const MOST_SUMMARY = 20_000

async function keepSummary(directory: string, text: string): Promise<string | null> {
  try {
    await writePlanSummary(directory, text)
    return null
  } catch (error) {
    if (error instanceof UserError) return error.message
    throw error
  }
}
