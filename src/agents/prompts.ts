import { lstat, opendir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { systemErrorCode, UserError, unreachable } from '../base/errors.ts'
import { loadPrompt, ownCommandLine, packageFile } from '../base/package.ts'
import { fillPlaceholders } from '../base/text.ts'
import type { Agent, AgentPrompt, AgentRoster } from '../core/shapes/agent.ts'
import { findObstacle, readTextFile, whatIsThere, writeFileInside } from '../workspace/files/inside-directory.ts'
import { makeMemoryFolderOrRefuse } from '../workspace/memory/memory-folder.ts'
import { agentOfPrompt, findEnabledAgent, LEADING_AGENT_NAMES, MAIN_AGENT_NAMES, problemOfName } from './agent.ts'
import { agentMemoryFile, promptPaths } from './agent-memory.ts'

/** The line before the request in a composite prompt. */
export const USER_REQUEST = 'User Request:'

/** Maximum size of a prompt in bytes. */
const MOST_PROMPT_BYTES = 64 * 1024

/** Maximum bytes read from a prompt's file. */
const MOST_READ_BYTES = 1024 * 1024

/** The text of a prompt; or why it cannot be used, a sentence. */
type PromptText = { text: string } | { problem: string }

/**
 * Reads the prompt of an agent that gets tasks: the person's if they have one, else the project's own
 * `.codemachine/agents/<name>.md` if it exists, else the default one.
 */
export async function readAgentPrompt(agent: Agent, directory: string): Promise<AgentPrompt> {
  const own = hasPersonsPrompt(agent) ? null : await readOwnPrompt(directory, agent.name)
  if (own === null) return await readUsualPrompt(agent)
  return 'problem' in own ? own : { text: own.text, from: 'project' }
}

/** Reads a project's own prompt for an agent; `null` if there is none; or why it cannot be used. */
export async function readOwnPrompt(directory: string, name: string): Promise<PromptText | null> {
  const root = await realpath(directory)
  const obstacle = await findObstacle(root, promptPaths.agentsFolder)
  if (obstacle?.kind === 'missing') return null
  if (obstacle !== null) {
    const what = `${obstacle.path} ${whatIsThere(obstacle)}`
    return { problem: `${what}, so codemachine reads no prompts there; replace it by a folder.` }
  }
  const file = join(promptPaths.agentsFolder, `${name}.md`)
  return await readPrompt(join(root, file), file)
}

/** Returns true if the person set the agent's prompt, which no project replaces. */
function hasPersonsPrompt({ source }: Agent): boolean {
  return source?.of === 'person' && source.prompt !== undefined
}

/** Reads an agent's prompt from the settings, else the shipped one. */
export async function readUsualPrompt(agent: Agent): Promise<AgentPrompt> {
  const { source } = agent
  if (source?.prompt !== undefined)
    return { text: source.prompt.text, from: source.of === 'person' ? 'person' : 'project' }
  if (source?.of === 'folder')
    return { problem: `The prompt of ${agent.name} was deleted: there is no file ${source.place}.` }
  const path = packageFile(agent.promptPath)
  const read = await readPrompt(path, path)
  if (read === null) return { problem: `The prompt of ${agent.name} is missing: there is no file ${path}.` }
  return 'problem' in read ? read : { text: read.text, from: 'shipped' }
}

/**
 * Returns the developer instructions of an agent that gets a task: its prompt, and the path of its memory file.
 * @param prompt the result of `readAgentPrompt` if left out
 */
export async function agentInstructions(agent: Agent, directory: string, prompt?: AgentPrompt): Promise<PromptText> {
  const counts = prompt ?? (await readAgentPrompt(agent, directory))
  if ('problem' in counts) return counts
  return { text: `${counts.text.trimEnd()}\n\n${memoryInstructions(agent, directory)}` }
}

/** Joins instructions and request, for an engine with a single prompt. */
export function compositePrompt(instructions: string, request: string): string {
  return `${instructions.trimEnd()}\n\n${USER_REQUEST}\n${request}`
}

function memoryInstructions({ name }: Agent, directory: string): string {
  const values = { directory, memory: agentMemoryFile(name), ...promptPaths }
  return fillPlaceholders(loadPrompt('controls/memory'), values).trimEnd()
}

/** Reads a prompt; null if there is no file. `shown`: its path for messages. */
export async function readPrompt(path: string, shown: string): Promise<PromptText | null> {
  const read = await readTextFile(path, MOST_READ_BYTES)
  switch (read.kind) {
    case 'gone':
      return null
    case 'broken':
      return { problem: `${shown} cannot be used as a prompt: ${read.problem}` }
    case 'text': {
      if (Buffer.byteLength(read.text) > MOST_PROMPT_BYTES) {
        return { problem: `${shown} is larger than ${MOST_PROMPT_BYTES / 1024} KiB; keep the prompt short.` }
      }
      if (read.text.trim() === '') return { problem: `${shown} is empty; write the prompt, or remove the file.` }
      return { text: read.text }
    }
    default:
      return unreachable(read)
  }
}

/** Fills the placeholders of a main agent's prompt; `main`: the session's `MAIN.md`, relative to the work directory. */
export function fillPrompt(
  prompt: string,
  { directory, main, team }: { directory: string; main: string; team: readonly Agent[] },
): string {
  const agents = team
    .filter(each => each.enabled)
    .map(({ name, description }) => `- \`${name}\`: ${description}`)
    .join('\n')
  return fillPlaceholders(prompt, { directory, main, agents, door: ownCommandLine(), ...promptPaths }).trimEnd()
}

/** A file in a project's prompt folder that belongs to no enabled agent. */
interface UnexpectedFile {
  /** Identifies the file and its present state; changes with the file. */
  stamp: string
  /** Its problem, a sentence. */
  problem: string
}

/** The content of a project's prompt folder, `.codemachine/agents`. */
interface PromptFolder {
  /** Prompts of enabled agents, by agent name. */
  own: ReadonlyMap<string, PromptText>
  /** Agents defined only by their prompt. */
  agents: readonly Agent[]
  unexpected: readonly UnexpectedFile[]
}

const FOLDER = promptPaths.agentsFolder

/** Maximum number of files read in the folder. */
const MOST_FILES = 200

/**
 * Reads every `.codemachine/agents/*.md`: the prompt of an enabled agent of `given`, or an agent of its own with a new name.
 * Agents of `given` from that folder are read again.
 */
export async function readPromptFolder(directory: string, given: readonly Agent[]): Promise<PromptFolder> {
  const root = await realpath(directory)
  const team = withoutFolder(given)
  const own = new Map<string, PromptText>()
  for (const agent of team) {
    const prompt = agent.enabled && !hasPersonsPrompt(agent) ? await readOwnPrompt(root, agent.name) : null
    if (prompt !== null) own.set(agent.name, prompt)
  }
  // An obstacle in place of the folder is reported with each prompt.
  const isThere = (await findObstacle(root, FOLDER)) === null
  const found = isThere ? await findOtherFiles(root, team) : NOTHING_ELSE
  for (const { agent, prompt } of found.added) own.set(agent.name, prompt)
  return { own, agents: found.added.map(({ agent }) => agent), unexpected: found.unexpected }
}

/** Returns the agents without those defined only by a prompt in the folder. */
export function withoutFolder(agents: readonly Agent[]): readonly Agent[] {
  return agents.filter(({ source }) => source?.of !== 'folder')
}

interface OtherFiles {
  added: readonly { agent: Agent; prompt: PromptText }[]
  unexpected: readonly UnexpectedFile[]
}

const NOTHING_ELSE: OtherFiles = { added: [], unexpected: [] }

/** Returns the sorted names of agents with a usable prompt of the project. */
export function agentsWithOwnPrompt({ own }: PromptFolder): readonly string[] {
  return [...own].flatMap(([name, prompt]) => ('problem' in prompt ? [] : [name])).sort()
}

/** Returns the problems of a project's prompts, one sentence each. */
export function promptProblems({ own, unexpected }: PromptFolder): readonly string[] {
  const unusable = [...own.values()].flatMap(prompt => ('problem' in prompt ? [prompt.problem] : []))
  return [...new Set([...unexpected.map(({ problem }) => problem), ...unusable])]
}

/** Finds the folder's files other than the team's prompts. */
async function findOtherFiles(root: string, team: readonly Agent[]): Promise<OtherFiles> {
  const path = join(root, FOLDER)
  const { names, isCut } = await promptNames(path)
  const unexpected: UnexpectedFile[] = []
  const added: { agent: Agent; prompt: PromptText }[] = []
  if (isCut)
    unexpected.push({ stamp: '', problem: `${FOLDER} has more than ${MOST_FILES} files; keep only the prompts there.` })
  for (const name of names) {
    const problem = problemOfFile(name, team)
    if (problem === null && team.some(agent => agent.name === name)) continue
    const prompt = problem === null ? await ownAgent(root, name, [...team, ...added.map(({ agent }) => agent)]) : null
    if (prompt !== null && 'agent' in prompt) {
      added.push(prompt)
      continue
    }
    const why = prompt?.problem ?? `${FOLDER}/${JSON.stringify(name).slice(1, -1)}.md: ${problem}`
    unexpected.push({ stamp: `${name} ${await stampOf(join(path, `${name}.md`))}`, problem: why })
  }
  return { added, unexpected }
}

/** Returns why a prompt of this name is ignored, the end of a sentence; null: it is used. */
function problemOfFile(name: string, team: readonly Agent[]): string | null {
  const agent = team.find(each => each.name === name)
  if (agent !== undefined && hasPersonsPrompt(agent)) {
    return `"${name}" is an agent of the person (${agent.source?.place}), and that prompt is used; use another name.`
  }
  if (agent === undefined && !LEADING_AGENT_NAMES.includes(name)) {
    const near = team.find(each => agentMemoryFile(each.name) === agentMemoryFile(name))
    return near ? `There is no agent "${name}"; did you mean "${near.name}"?` : problemOfName(name, team)
  }
  const found = findEnabledAgent(team, name)
  return 'problem' in found ? found.problem : null
}

/** Resolves with the agent of a prompt in the folder, or why there is none. */
async function ownAgent(
  root: string,
  name: string,
  others: readonly Agent[],
): Promise<{ agent: Agent; prompt: PromptText } | { problem: string }> {
  const file = `${FOLDER}/${name}.md`
  const own = others.filter(({ source }) => source?.of === 'folder').length
  if (own >= MOST_OWN) return { problem: `${file}: a project has at most ${MOST_OWN} agents of its own there.` }
  const prompt = (await readOwnPrompt(root, name)) ?? { problem: `${file} is gone.` }
  if ('problem' in prompt) return prompt
  return { agent: { ...agentOfPrompt(name, prompt.text), source: { of: 'folder', place: file } }, prompt }
}

/** Limit of agents defined only by prompts: the leading agents get a description of each. */
const MOST_OWN = 30

/** Resolves with the names of the `.md` files in a folder, without the ending. */
async function promptNames(path: string): Promise<{ names: readonly string[]; isCut: boolean }> {
  const names: string[] = []
  let files = 0
  try {
    for await (const { name } of await opendir(path)) {
      files += 1
      if (files > MOST_FILES) return { names: names.sort(), isCut: true }
      // A hidden file is the rest of an unfinished write.
      if (name.endsWith('.md') && !name.startsWith('.')) names.push(name.slice(0, -'.md'.length))
    }
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error
  }
  return { names: names.sort(), isCut: false }
}

async function stampOf(path: string): Promise<string> {
  try {
    const { ino, size, mtimeMs } = await lstat(path)
    return `${ino} ${size} ${mtimeMs}`
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return 'gone'
  }
}

interface ProjectPromptsOptions {
  /** The work directory. */
  directory: string
  /** Agents that may get tasks. */
  team: readonly Agent[]
  /** True if a plan exists already: then the current prompts are fixed at once. */
  isPlanReady: boolean
  /** Called with each remark for the person, once per sentence. */
  tell(remark: string): void
}

/** The project's own prompts during a session with a plan. They are fixed when the plan is accepted; later changes do not apply. */
interface ProjectPrompts {
  /** Reads the folder. Reports unexpected files from before the session to `tell`, and returns only newer ones. */
  look(): Promise<PromptFolder>
  /** Fixes the prompts for the rest of the session. */
  keep(prompts: PromptFolder): void
  /** Agents defined only by their prompt, as fixed; none before that. */
  agents(): readonly Agent[]
  /** Resolves with an agent's current prompt. */
  promptOf(agent: Agent): Promise<AgentPrompt>
}

/** Opens the prompts of a session. Call it before the first round, to tell the person's files from agents' files. */
export async function openProjectPrompts(options: ProjectPromptsOptions): Promise<ProjectPrompts> {
  const { directory, team, isPlanReady, tell } = options
  const first = await readPromptFolder(directory, team)
  const before = new Set(first.unexpected.map(({ stamp }) => stamp))
  const told = new Set<string>()
  const tellOnce = (remark: string) => {
    if (!told.has(remark)) tell(remark)
    told.add(remark)
  }
  let kept = isPlanReady ? first : null
  return {
    async look() {
      const prompts = await readPromptFolder(directory, team)
      const isNew = ({ stamp }: { stamp: string }) => !before.has(stamp)
      for (const { problem } of prompts.unexpected.filter(each => !isNew(each)))
        tellOnce(`${problem} It is left as it is.`)
      return { ...prompts, unexpected: prompts.unexpected.filter(isNew) }
    },
    keep(prompts) {
      kept = prompts
    },
    agents: () => kept?.agents ?? [],
    async promptOf(agent) {
      if (hasPersonsPrompt(agent)) return await readUsualPrompt(agent)
      const now = await readOwnPrompt(directory, agent.name)
      const counts = kept === null ? now : (kept.own.get(agent.name) ?? null)
      if (!isSame(now, counts)) tellOnce(describeChange(agent.name))
      if (counts === null) return await readUsualPrompt(agent)
      return 'problem' in counts ? counts : { text: counts.text, from: 'project' }
    },
  }
}

function isSame(one: PromptText | null, other: PromptText | null): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

function describeChange(name: string): string {
  const file = `${promptPaths.agentsFolder}/${name}.md`
  return `${file} was changed during the build; ${name} keeps its earlier prompt until the next build or codemachine resume.`
}

/**
 * Finds problems that prevent agents from working in a directory, one sentence each: in `config/*.agents.js`, the
 * settings, the shipped prompts, and the project's own.
 */
export async function findAgentProblems(
  directory: string,
  read: () => Promise<{ roster: AgentRoster; remarks: readonly string[] }>,
): Promise<readonly string[]> {
  try {
    const { roster, remarks } = await read()
    const ofProject = promptProblems(await readPromptFolder(directory, roster.sub))
    return [...disabledMain(roster), ...(await unusablePrompts(roster)), ...remarks, ...ofProject]
  } catch (error) {
    if (error instanceof UserError) return [error.message]
    throw error
  }
}

function disabledMain({ main }: AgentRoster): string[] {
  return main
    .filter(({ name, enabled }) => !enabled && MAIN_AGENT_NAMES.some(each => each === name))
    .map(({ name }) => `The agent "${name}" is disabled, and every build needs it; enable it in main.agents.js.`)
}

async function unusablePrompts({ main, sub, goal }: AgentRoster): Promise<string[]> {
  const read = await Promise.all([...main, ...withoutFolder(sub), goal].map(readUsualPrompt))
  return read.flatMap(prompt => ('problem' in prompt ? [prompt.problem] : []))
}

const MOST_BYTES = 1024 * 1024

/**
 * Writes the agents as data to `.codemachine/agents/agents-config.json`, for agents and people to read; changes made
 * there are overwritten. Throws a `UserError` if the folder cannot be made.
 */
export async function writeAgentsConfig(directory: string, { main, sub }: AgentRoster): Promise<void> {
  const root = await realpath(directory)
  await makeMemoryFolderOrRefuse(root, promptPaths.agentsFolder, "keep the agents' prompts there")
  const text = `${JSON.stringify({ main: main.map(configData), sub: sub.map(configData) }, null, 2)}\n`
  const read = await readTextFile(join(root, promptPaths.agentsConfig), MOST_BYTES)
  if (read.kind === 'text' && read.text === text) return
  await writeFileInside(root, promptPaths.agentsConfig, text)
}

/** Leaves out the model, which depends on settings and account. */
function configData({ name, displayName, description, modelReasoningEffort, enabled }: Agent) {
  return { name, displayName, description, effort: modelReasoningEffort, enabled }
}
