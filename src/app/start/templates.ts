import { realpath } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { Agent, AgentRoster } from '../../agents/agent.ts'
import { agentForRound, buildInstructions, readOwnPrompt, readShippedPrompt, retryInput } from '../../agents/prompts.ts'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import { loadPrompt } from '../../base/package.ts'
import type { Template, ThreadSpec } from '../../core/contracts/template.ts'
import { askPersonTool, runAgentTool } from '../../core/contracts/tools.ts'
import type { RoundPart } from '../../core/state/plan.ts'
import { parseToml, topLevel } from '../../platform/toml.ts'
import { buildTemplate } from '../../templates/build/build.ts'
import { goalInstructions, goalTemplate } from '../../templates/goal/goal.ts'
import { readTextFile, writeFileInside } from '../../workspace/files/inside-directory.ts'
import type { SessionFolder } from '../../workspace/memory/session-folder.ts'
import type { RunOptions } from '../library.ts'
import { settingsOf } from '../open-run.ts'
import type { World } from '../world.ts'
import { TEMPLATES, type TemplateName } from './template-names.ts'

/** The template of a session in a work directory, by the name that its journal has; `place`: its memory. */
export async function templateOf(
  directory: string,
  agents: AgentRoster,
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

/** The agent that leads rounds of this part. */
export function mainAgent({ main }: Pick<AgentRoster, 'main'>, part: RoundPart): Agent {
  const name = agentForRound(part)
  const agent = main.find(each => each.name === name)
  if (agent === undefined) throw new Error(`There is no agent ${name}.`)
  return agent
}

function threadOf({ name, model, modelReasoningEffort }: Agent, developerInstructions: string): ThreadSpec {
  return { agent: name, developerInstructions, model, effort: modelReasoningEffort }
}

/**
 * Throws a `UserError` if an agent that a session of this template needs has no prompt. One of the project's own that cannot
 * be used is for the team builder to mend.
 */
export async function refuseUnusablePrompts(
  directory: string,
  template: TemplateName,
  agents: AgentRoster,
): Promise<void> {
  if (template === 'goal') return
  const own = await Promise.all(agents.sub.map(({ name }) => readOwnPrompt(directory, name)))
  const shipped = [...agents.main, ...agents.sub.filter((_, index) => own[index] === null)]
  for (const agent of shipped) await refuseUnusable(agent)
}

async function refuseUnusable(agent: Agent): Promise<void> {
  if (!agent.enabled) return
  const prompt = await readShippedPrompt(agent)
  if ('problem' in prompt) throw new UserError(prompt.problem)
}

const FILE = 'codemachine.toml'
const MOST_BYTES = 1024 * 1024
/** A person commits it. */
const MODE = 0o644

/**
 * Writes into the project's `codemachine.toml` that this template is what `start` starts, and changes nothing else there.
 * Answers with a sentence for the person. Throws a `UserError` if the file, or what else is set, is not valid.
 */
export async function chooseTemplate(
  world: Pick<World, 'env' | 'configHome'>,
  directory: string,
  name: TemplateName,
  options: RunOptions = {},
): Promise<string> {
  const root = await realpath(directory)
  const before = await settingsOf(world, directory, options).catch(async error => {
    if (!(await isWrongMode(root))) throw error
    return null
  })
  const source = before?.sources.mode
  if (before?.settings.mode === name && source?.layer !== 'environment') {
    return `${name} is chosen already (${source?.place}).`
  }
  await writeMode(root, name)
  const now = await settingsOf(world, directory, options)
  if (now.settings.mode === name) return `${FILE} says so now: start starts a session of the template ${name}.`
  return `${FILE} says ${name} now, but ${now.sources.mode.place} says ${now.settings.mode}, which counts more.`
}

async function writeMode(root: string, name: TemplateName): Promise<void> {
  const path = join(root, FILE)
  const read = await readTextFile(path, MOST_BYTES)
  if (read.kind === 'broken') throw new UserError(`${FILE}: ${read.problem}`)
  const text = read.kind === 'gone' ? '' : read.text
  try {
    await writeFileInside(root, FILE, withMode(text, name), read.kind === 'text' ? read.state.mode : MODE)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null) throw error
    throw new UserError(`${path} cannot be written to (${code}); make its folder one that you can write to.`, {
      cause: error,
    })
  }
}

/** Whether the file has a `mode` that is none: what is chosen mends it. */
async function isWrongMode(root: string): Promise<boolean> {
  const read = await readTextFile(join(root, FILE), MOST_BYTES)
  if (read.kind !== 'text') return false
  const { toml, mode } = partsOf(read.text)
  return mode !== undefined && !TEMPLATES.some(({ name }) => toml.slice(...mode.value.range).slice(1, -1) === name)
}

function partsOf(text: string) {
  const [mark = ''] = /^\uFEFF?/.exec(text) ?? []
  const toml = text.slice(mark.length)
  const keys = topLevel(parseToml(toml, { name: FILE })).filter(node => node.type === 'TOMLKeyValue')
  const mode = keys.find(({ key: { keys: names } }) => names.length === 1 && nameOf(names[0]) === 'mode')
  return { mark, toml, keys, mode }
}

/** The text of a TOML file with that `mode`; a `UserError` if it is not valid. */
function withMode(text: string, name: TemplateName): string {
  const { mark, toml, keys, mode } = partsOf(text)
  const value = `"${name}"`
  if (mode !== undefined) {
    const [start, end] = mode.value.range
    return mark + toml.slice(0, start) + value + toml.slice(end)
  }
  const newline = toml.includes('\r\n') ? '\r\n' : '\n'
  // Before the first table: behind one the key would be its own.
  const last = keys.at(-1)
  if (last === undefined) return `${mark}mode = ${value}${newline}${toml === '' ? '' : newline}${toml}`
  const lineEnd = toml.indexOf('\n', last.range[1])
  const at = lineEnd === -1 ? toml.length : lineEnd + 1
  const before = lineEnd === -1 ? newline : ''
  return `${mark}${toml.slice(0, at)}${before}mode = ${value}${newline}${toml.slice(at)}`
}

function nameOf(key: { type: 'TOMLBare'; name: string } | { type: 'TOMLQuoted'; value: string } | undefined) {
  if (key === undefined) return null
  return key.type === 'TOMLBare' ? key.name : key.value
}
