import { createHash } from 'node:crypto'
import { lstat, opendir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { systemErrorCode, UserError, unreachable } from '../base/errors.ts'
import { loadPrompt, packageFile } from '../base/package.ts'
import { clipEnd, fillPlaceholders } from '../base/text.ts'
import type { RoundPart } from '../core/state/plan.ts'
import { findObstacle, readTextFile, writeFileInside } from '../workspace/files/inside-directory.ts'
import { makeMemoryFolder } from '../workspace/memory/session-memory.ts'
import {
  type Agent,
  type AgentRoster,
  findEnabledAgent,
  loadAgents,
  MAIN_AGENT_NAMES,
  type MainAgentName,
} from './agent.ts'
import { agentMemoryFile, promptPaths } from './agent-memory.ts'

/** What stands before the request in a composite prompt. */
export const USER_REQUEST = 'User Request:'

/** The most that a prompt may take, in bytes. */
const MOST_PROMPT_BYTES = 64 * 1024

/** What is read before a file is said to be too long. */
const MOST_READ_BYTES = 1024 * 1024

/** A prompt and whose it is; or why there is none, a sentence. */
export type AgentPrompt = { text: string; from: 'project' | 'shipped' } | { problem: string }

/** A prompt of a project's own; or why it cannot be used, a sentence. */
export type PromptText = { text: string } | { problem: string }

/**
 * The text of the prompt of an agent that others give tasks to: the project's own `.codemachine/agents/<name>.md` if
 * there is one, else the shipped one.
 */
export async function readAgentPrompt(agent: Agent, directory: string): Promise<AgentPrompt> {
  const own = await readOwnPrompt(directory, agent.name)
  if (own === null) return await readShippedPrompt(agent)
  return 'problem' in own ? own : { text: own.text, from: 'project' }
}

/** The prompt that the project has for an agent; null if it has none, or why it cannot be used. */
export async function readOwnPrompt(directory: string, name: string): Promise<PromptText | null> {
  const root = await realpath(directory)
  const obstacle = await findObstacle(root, promptPaths.agentsFolder)
  if (obstacle?.kind === 'missing') return null
  if (obstacle !== null) {
    const what = obstacle.kind === 'link' ? 'is a link' : 'is not a folder'
    return { problem: `${obstacle.path} ${what}, so no prompt is read there; put a folder in its place.` }
  }
  const file = join(promptPaths.agentsFolder, `${name}.md`)
  return await readPrompt(join(root, file), file)
}

/** The prompt that codemachine ships for an agent. */
export async function readShippedPrompt(agent: Agent): Promise<AgentPrompt> {
  const path = packageFile(agent.promptPath)
  const read = await readPrompt(path, path)
  if (read === null) return { problem: `The prompt of ${agent.name} is missing: there is no file ${path}.` }
  return 'problem' in read ? read : { text: read.text, from: 'shipped' }
}

/**
 * The developer instructions of an agent that was given a task: its prompt, and where its memory lies.
 * @param prompt left out: what `readAgentPrompt` answers
 */
export async function agentInstructions(
  agent: Agent,
  directory: string,
  prompt?: AgentPrompt,
): Promise<{ text: string } | { problem: string }> {
  const counts = prompt ?? (await readAgentPrompt(agent, directory))
  if ('problem' in counts) return counts
  return { text: `${counts.text.trimEnd()}\n\n${memoryInstructions(agent, directory)}` }
}

/** All in one text, for an engine that takes a single prompt. */
export function compositePrompt(instructions: string, request: string): string {
  return `${instructions.trimEnd()}\n\n${USER_REQUEST}\n${request}`
}

function memoryInstructions({ name }: Agent, directory: string): string {
  return fillPlaceholders(loadPrompt('controls/memory'), {
    directory,
    memory: agentMemoryFile(name),
    ...promptPaths,
  }).trimEnd()
}

async function readPrompt(path: string, shown: string): Promise<PromptText | null> {
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

/** Where a build works. */
export interface BuildPlaces {
  /** The work directory, absolute. */
  directory: string
  /** The session's `MAIN.md`, from the work directory. */
  main: string
}

/** Which agent has a round of a build. */
export function agentForRound(part: RoundPart): MainAgentName {
  switch (part) {
    case 'team-building':
      return 'agents-builder'
    case 'orchestration':
    case 'last-look':
      return 'master-mind'
    case 'summary':
      return 'project-summarizer'
    default:
      return unreachable(part)
  }
}

/**
 * The developer instructions of a main agent in a round of a build; or why there are none, a sentence. Never a prompt of
 * the project's own: agents could write it.
 * @param team those who may be given tasks
 */
export async function buildInstructions(
  agent: Agent,
  part: RoundPart,
  places: BuildPlaces,
  team: readonly Agent[],
): Promise<{ text: string } | { problem: string }> {
  const prompt = part === 'last-look' ? { text: loadPrompt('controls/end') } : await readShippedPrompt(agent)
  if ('problem' in prompt) return prompt
  const values = placeholderValues(places, team)
  const parts = part === 'orchestration' ? [prompt.text, loadPrompt('templates/build')] : [prompt.text]
  return { text: parts.map(text => fillPlaceholders(text, values).trimEnd()).join('\n\n') }
}

/**
 * What a round of master-mind that goes on is told first. `lastTask`: the one that was finished last; null: none. The
 * summary stands between two lines that it cannot contain, for they hold its hash.
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

function placeholderValues({ directory, main }: BuildPlaces, team: readonly Agent[]): Record<string, string> {
  return {
    directory,
    main,
    agents: team
      .filter(each => each.enabled)
      .map(({ name, description }) => `- \`${name}\`: ${description}`)
      .join('\n'),
    ...promptPaths,
  }
}

/** A file among the prompts of a project that is no prompt of an enabled agent. */
interface UnexpectedFile {
  /** Which file it is, and as it is now: another one once it has been changed. */
  stamp: string
  /** What is wrong with it, a sentence. */
  problem: string
}

/** What a project has in `.codemachine/agents`. */
export interface PromptFolder {
  /** The prompts of enabled agents, by their names. */
  own: ReadonlyMap<string, PromptText>
  strange: readonly UnexpectedFile[]
}

const FOLDER = promptPaths.agentsFolder

/** The most files that are looked at. */
const MOST_FILES = 200

/** Looks at every `.codemachine/agents/*.md`: whose it is (an enabled one of `team`), and whether it can be used. */
export async function readPromptFolder(directory: string, team: readonly Agent[]): Promise<PromptFolder> {
  const root = await realpath(directory)
  const own = new Map<string, PromptText>()
  for (const { name, enabled } of team) {
    const prompt = enabled ? await readOwnPrompt(root, name) : null
    if (prompt !== null) own.set(name, prompt)
  }
  // What is in the way of the folder is said of each prompt.
  const isThere = (await findObstacle(root, FOLDER)) === null
  return { own, strange: isThere ? await findUnexpectedFiles(join(root, FOLDER), team) : [] }
}

/** The agents whose own prompt can be used. */
export function agentsWithOwnPrompt({ own }: PromptFolder): readonly string[] {
  return [...own].flatMap(([name, prompt]) => ('problem' in prompt ? [] : [name])).sort()
}

/** What is wrong with the prompts of a project, a sentence each. */
export function promptProblems({ own, strange }: PromptFolder): readonly string[] {
  const unusable = [...own.values()].flatMap(prompt => ('problem' in prompt ? [prompt.problem] : []))
  return [...new Set([...strange.map(({ problem }) => problem), ...unusable])]
}

async function findUnexpectedFiles(path: string, team: readonly Agent[]): Promise<readonly UnexpectedFile[]> {
  const { names, isCut } = await promptNames(path)
  const strange: UnexpectedFile[] = []
  if (isCut)
    strange.push({ stamp: '', problem: `${FOLDER} has more than ${MOST_FILES} files; keep only the prompts there.` })
  for (const name of names) {
    const found = findEnabledAgent(team, name)
    if ('agent' in found) continue
    const problem = `${FOLDER}/${JSON.stringify(name).slice(1, -1)}.md: ${found.problem}`
    strange.push({ stamp: `${name} ${await stampOf(join(path, `${name}.md`))}`, problem })
  }
  return strange
}

/** Of the files of a folder those that are prompts, without their ending. */
async function promptNames(path: string): Promise<{ names: readonly string[]; isCut: boolean }> {
  const names: string[] = []
  let files = 0
  try {
    for await (const { name } of await opendir(path)) {
      files += 1
      if (files > MOST_FILES) return { names: names.sort(), isCut: true }
      // A hidden one is what a write was cut off at.
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

export interface BuildPromptsOptions {
  /** The work directory. */
  directory: string
  /** Those who may be given tasks. */
  team: readonly Agent[]
  /** Whether there is a plan already: then the prompts count as they are now. */
  isPlanReady: boolean
  /** Told what a person should know, a sentence each; every one is told once. */
  tell(remark: string): void
}

/** The prompts of a project's own while it is built: they count as they were when the plan was taken. */
export interface BuildPrompts {
  /** Looks at them as they are now. Files that are no prompts and were there before are told and left out. */
  look(): Promise<PromptFolder>
  /** From now on these count, whoever changes the files. */
  keep(prompts: PromptFolder): void
  /** The prompt that an agent works by. */
  promptOf(agent: Agent): Promise<AgentPrompt>
}

/** To be opened before the first round, so that what is a person's is told from what agents write. */
export async function openBuildPrompts({
  directory,
  team,
  isPlanReady,
  tell,
}: BuildPromptsOptions): Promise<BuildPrompts> {
  const first = await readPromptFolder(directory, team)
  const before = new Set(first.strange.map(({ stamp }) => stamp))
  const told = new Set<string>()
  const tellOnce = (remark: string) => {
    if (!told.has(remark)) tell(remark)
    told.add(remark)
  }
  let kept = isPlanReady ? first.own : null
  return {
    async look() {
      const prompts = await readPromptFolder(directory, team)
      const isNew = ({ stamp }: { stamp: string }) => !before.has(stamp)
      for (const { problem } of prompts.strange.filter(each => !isNew(each)))
        tellOnce(`${problem} It is left as it is.`)
      return { ...prompts, strange: prompts.strange.filter(isNew) }
    },
    keep({ own }) {
      kept = own
    },
    async promptOf(agent) {
      const now = await readOwnPrompt(directory, agent.name)
      const counts = kept === null ? now : (kept.get(agent.name) ?? null)
      if (!isSame(now, counts)) tellOnce(describeChange(agent.name))
      if (counts === null) return await readShippedPrompt(agent)
      return 'problem' in counts ? counts : { text: counts.text, from: 'project' }
    },
  }
}

function isSame(one: PromptText | null, other: PromptText | null): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

function describeChange(name: string): string {
  const file = `${promptPaths.agentsFolder}/${name}.md`
  return `${file} was changed during the build; ${name} goes on by what it was told before, until the next build or codemachine resume.`
}

/**
 * What keeps agents from working in a directory, a sentence each: in `config/*.agents.js`, the shipped prompts, and the
 * project's own.
 * @param options `FOLDER`: as of `loadAgents`
 */
export async function findAgentProblems(
  directory: string,
  options: { folder?: string } = {},
): Promise<readonly string[]> {
  try {
    const agents = loadAgents(options)
    const ofProject = promptProblems(await readPromptFolder(directory, agents.sub))
    return [...disabledMain(agents), ...(await unusableShippedPrompts(agents)), ...ofProject]
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

async function unusableShippedPrompts({ main, sub, goal }: AgentRoster): Promise<string[]> {
  const read = await Promise.all([...main, ...sub, goal].map(readShippedPrompt))
  return read.flatMap(prompt => ('problem' in prompt ? [prompt.problem] : []))
}

const MOST_BYTES = 1024 * 1024

/**
 * Brings `.codemachine/agents/agents-config.json` up to date: the agents as data, for those who read it. What somebody
 * changed there is put back. Throws a `UserError` if there is no folder to write to.
 */
export async function writeAgentsConfig(directory: string, { main, sub }: AgentRoster): Promise<void> {
  const root = await realpath(directory)
  const obstacle = await makeMemoryFolder(root, promptPaths.agentsFolder)
  if (obstacle !== null) {
    const what = obstacle.kind === 'link' ? 'is a link' : 'is not a folder'
    throw new UserError(
      `${join(root, obstacle.path)} ${what}; move it away, so that codemachine can keep the agents' prompts there.`,
    )
  }
  const text = `${JSON.stringify({ main: main.map(configData), sub: sub.map(configData) }, null, 2)}\n`
  const read = await readTextFile(join(root, promptPaths.agentsConfig), MOST_BYTES)
  if (read.kind === 'text' && read.text === text) return
  await writeFileInside(root, promptPaths.agentsConfig, text)
}

/** Without the model: which one counts is said by the settings and by the account. */
function configData({ name, displayName, description, modelReasoningEffort, enabled }: Agent) {
  return { name, displayName, description, effort: modelReasoningEffort, enabled }
}
