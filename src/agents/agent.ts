import { createRequire } from 'node:module'
import { join } from 'node:path'
import * as v from 'valibot'
import { messageOf, UserError } from '../base/errors.ts'
import { packageFile } from '../base/package.ts'
import { nearestName, truncate } from '../base/text.ts'
import type { Agent, AgentRoster } from '../core/shapes/agent.ts'
import { isFileName } from '../platform/files.ts'
import { agentMemoryFile } from './agent-memory.ts'

/** The names of the main agents that every build needs. */
export const MAIN_AGENT_NAMES = ['agents-builder', 'master-mind', 'project-summarizer'] as const

/** Names of agents that get no tasks: the main ones, and the one that works on goals. */
export const LEADING_AGENT_NAMES: readonly string[] = [...MAIN_AGENT_NAMES, 'goal-worker']

/** The name of a main agent that every build needs. */
export type MainAgentName = (typeof MAIN_AGENT_NAMES)[number]

/**
 * Reads `config/*.agents.js`. Throws a `UserError` with the file and the place if a file throws or is invalid. Also throws
 * if two agents share a name or a memory file.
 * @param options `folder`: folder of the files; left out: codemachine's own package
 */
export function loadAgents(options: { folder?: string } = {}): AgentRoster {
  const folder = options.folder ?? packageFile('config')
  const main = readAgents(join(folder, 'main.agents.js'))
  const sub = readAgents(join(folder, 'sub.agents.js'))
  const ofGoal = readAgents(join(folder, 'goal.agents.js'))
  refuseDuplicates([main, sub, ofGoal])
  for (const name of MAIN_AGENT_NAMES) {
    if (!main.agents.some(agent => agent.name === name)) {
      throw new UserError('CM0205', `${main.path} has no agent "${name}"; every build needs it, so add it.`)
    }
  }
  const [goal] = ofGoal.agents
  if (goal === undefined) throw new UserError('CM0205', `${ofGoal.path} has no agent; add the one that works on goals.`)
  return { main: main.agents, sub: sub.agents, goal }
}

/** Returns why another agent cannot have a name, the end of a sentence; null: it can. */
export function problemOfName(name: string, agents: readonly Agent[], platform?: NodeJS.Platform): string | null {
  if (!AGENT_NAME.test(name) || name.length > 40) {
    return `${JSON.stringify(name.slice(0, 60).toWellFormed())} cannot be the name of an agent; use lower-case letters, digits and single dashes, at most 40 characters.`
  }
  if (!isFileName(`${name}.md`, platform))
    return `"${name}" is the name of a device on this system, not of a file; give the agent another name.`
  const memory = agentMemoryFile(name)
  const other = agents.find(agent => agentMemoryFile(agent.name) === memory)
  return other === undefined
    ? null
    : `"${name}" would have the memory file of "${other.name}" (${memory}); give it another name.`
}

/** Returns an agent defined only by a prompt: its first heading is the title, its first text line the description. */
export function agentOfPrompt(name: string, prompt: string): Agent {
  const lines = prompt
    .split('\n')
    .map(line => line.replace(/[\p{Cc}\p{Cf}]+/gu, ' ').trim())
    .filter(line => /[\p{L}\p{N}]/u.test(line))
  const heading = lines.find(line => line.startsWith('#'))?.replace(/^[#\s]+/, '')
  const text = lines.find(line => !line.startsWith('#'))
  return {
    name,
    displayName: truncate(heading ?? name, 80),
    description: truncate(text ?? heading ?? name, 400),
    promptPath: '',
    model: null,
    modelReasoningEffort: null,
    enabled: true,
  }
}

/** Returns the enabled agent of a name, or why there is none, a sentence that lists the others. */
export function findEnabledAgent(agents: readonly Agent[], name: string): { agent: Agent } | { problem: string } {
  const found = findAnyAgent(agents, name)
  if ('problem' in found || found.agent.enabled) return found
  const { source } = found.agent
  const where = source === undefined ? '' : ` (${source.disabledAt ?? source.place})`
  return { problem: `The agent "${name}" is disabled${where}; ${suggestNames(enabledNames(agents))}` }
}

/** Returns the agent of a name, enabled or not; or a sentence that it is missing, with a suggestion. */
export function findAnyAgent(agents: readonly Agent[], name: string): { agent: Agent } | { problem: string } {
  const agent = agents.find(each => each.name === name)
  if (agent !== undefined) return { agent }
  const enabled = enabledNames(agents)
  if (LEADING_AGENT_NAMES.includes(name)) {
    const why = `${name === 'goal-worker' ? 'works on goals' : 'runs builds'}; it is given no tasks, and a project has no prompt of its own for it`
    return { problem: `The agent "${name}" ${why}: ${suggestNames(enabled)}` }
  }
  const near = nearestName(name, enabled) ?? onlyNameStartingWith(name, enabled)
  const shown = name.length > 60 ? `${name.slice(0, 60).toWellFormed()}…` : name
  if (near !== null) return { problem: `There is no agent ${JSON.stringify(shown)}; did you mean "${near}"?` }
  return { problem: `There is no agent ${JSON.stringify(shown)}; ${suggestNames(enabled)}` }
}

function enabledNames(agents: readonly Agent[]): readonly string[] {
  return agents.filter(each => each.enabled).map(each => each.name)
}

/** Returns the only name that begins with a typed one (`qa`); null: none or several. */
function onlyNameStartingWith(name: string, enabled: readonly string[]): string | null {
  const begun = enabled.filter(each => name !== '' && each.startsWith(`${name}-`))
  return begun.length === 1 ? (begun[0] ?? null) : null
}

function suggestNames(names: readonly string[]): string {
  return names.length === 0 ? 'none is enabled.' : `use one of ${names.join(', ')}.`
}

/** Allowed names of agents, at most 40 characters. */
const AGENT_NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/

const oneLine = (most: number, mend = 'use a text') =>
  v.pipe(
    v.string(mend),
    v.regex(/^[^\p{Cc}]*\S[^\p{Cc}]*$/u, 'use a text of one line'),
    v.maxLength(most, `use at most ${most} characters`),
  )

const agentsSchema = v.array(
  v.strictObject(
    {
      name: v.pipe(
        v.string('use a text'),
        v.regex(AGENT_NAME, 'use lower-case letters, digits and single dashes'),
        v.maxLength(40, 'use at most 40 characters'),
      ),
      displayName: oneLine(80),
      description: oneLine(400),
      promptPath: v.pipe(
        oneLine(200),
        v.check(
          path => !/^([\\/]|[a-z]:)/i.test(path) && !path.split(/[\\/]/).includes('..'),
          'use a path from the root of the package, such as "prompts/goal.md"',
        ),
      ),
      model: v.nullable(oneLine(200, 'use a text or null')),
      modelReasoningEffort: v.nullable(oneLine(40, 'use a text or null')),
      enabled: v.boolean('use true or false'),
    },
    'use an object with name, displayName, description, promptPath, model, modelReasoningEffort and enabled',
  ),
  'use a list of agents',
)

interface AgentsFile {
  path: string
  agents: readonly Agent[]
}

function readAgents(path: string): AgentsFile {
  const result = v.safeParse(agentsSchema, loadModule(path))
  if (result.success) return { path, agents: result.output }
  const [issue] = result.issues
  const place = (issue.path ?? []).map(({ key }) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('')
  throw new UserError('CM0205', `${path}: ${place === '' ? 'what it exports' : `agents${place}`} ${problemOf(issue)}.`)
}

function problemOf(issue: v.InferIssue<typeof agentsSchema>): string {
  if (issue.type === 'strict_object' && issue.expected === 'never') return 'is not a field of an agent; remove it'
  if (issue.received === 'undefined') return 'is missing; add it'
  return `is ${issue.received.slice(0, 80)}; ${issue.message}`
}

function loadModule(path: string): unknown {
  try {
    return createRequire(import.meta.url)(path)
  } catch (error) {
    throw new UserError(
      'CM0205',
      `${path} cannot be loaded${describeLine(path, error)}: ${firstLine(messageOf(error))}`,
      {
        hint: 'Correct the file, or install codemachine again.',
        cause: error,
      },
    )
  }
}

/** Returns the file's line in the error's stack, as ` (line 3)`; else empty. */
function describeLine(path: string, error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  const at = stack.indexOf(`${path}:`)
  const number = at === -1 ? null : /^\d+/.exec(stack.slice(at + path.length + 1))
  return number === null ? '' : ` (line ${number[0]})`
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? ''
}

function refuseDuplicates(files: readonly AgentsFile[]): void {
  const seen = new Map<string, string>()
  const ofMemory = new Map<string, string>()
  for (const { path, agents } of files) {
    for (const [index, { name }] of agents.entries()) {
      const before = seen.get(name)
      if (before !== undefined) {
        const where = before === path ? 'another agent there' : `one in ${before}`
        throw new UserError(
          'CM0205',
          `${path}: agents[${index}].name is "${name}", the same as ${where}; give each agent its own name.`,
        )
      }
      seen.set(name, path)
      const memory = agentMemoryFile(name)
      const other = ofMemory.get(memory)
      if (other !== undefined) {
        throw new UserError(
          'CM0205',
          `${path}: agents[${index}].name is "${name}", but an agent of this name would use the memory file of "${other}" (${memory}); choose another name.`,
        )
      }
      ofMemory.set(memory, name)
    }
  }
}
