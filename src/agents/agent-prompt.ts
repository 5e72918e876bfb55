import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { unreachable } from '../base/errors.ts'
import { fillPlaceholders } from '../base/fill-placeholders.ts'
import { loadPrompt, packageFile } from '../base/package-root.ts'
import { findObstacle } from '../workspace/inside-directory.ts'
import { readTextFile } from '../workspace/read-text-file.ts'
import type { Agent } from './agent.ts'
import { agentMemoryFile } from './agent-memory.ts'
import { projectPaths } from './project-paths.ts'

/** What stands before the request in a composite prompt. */
export const USER_REQUEST = 'User Request:'

/** The most that a prompt may take, in bytes. */
const MOST_PROMPT_BYTES = 64 * 1024

/** What is read before a file is said to be too long. */
const MOST_READ_BYTES = 1024 * 1024

/** A prompt and whose it is; or why there is none, a sentence. */
export type AgentPrompt = { text: string; from: 'project' | 'shipped' } | { problem: string }

/** A prompt of a project's own; or why it cannot be used, a sentence. */
export type OwnPrompt = { text: string } | { problem: string }

/**
 * The text of the prompt of an agent that others give tasks to: the project's own `.codemachine/agents/<name>.md` if
 * there is one, else the shipped one.
 */
export async function agentPrompt(agent: Agent, directory: string): Promise<AgentPrompt> {
  const own = await projectPrompt(directory, agent.name)
  if (own === null) return await shippedPrompt(agent)
  return 'problem' in own ? own : { text: own.text, from: 'project' }
}

/** The prompt that the project has for an agent; null if it has none, or why it cannot be used. */
export async function projectPrompt(directory: string, name: string): Promise<OwnPrompt | null> {
  const root = await realpath(directory)
  const obstacle = await findObstacle(root, projectPaths.agentsFolder)
  if (obstacle?.kind === 'missing') return null
  if (obstacle !== null) {
    const what = obstacle.kind === 'link' ? 'is a link' : 'is not a folder'
    return { problem: `${obstacle.path} ${what}, so no prompt is read there; put a folder in its place.` }
  }
  const file = join(projectPaths.agentsFolder, `${name}.md`)
  return await readPrompt(join(root, file), file)
}

/** The prompt that codemachine ships for an agent. */
export async function shippedPrompt(agent: Agent): Promise<AgentPrompt> {
  const path = packageFile(agent.promptPath)
  const read = await readPrompt(path, path)
  if (read === null) return { problem: `The prompt of ${agent.name} is missing: there is no file ${path}.` }
  return 'problem' in read ? read : { text: read.text, from: 'shipped' }
}

/**
 * The developer instructions of an agent that was given a task: its prompt, and where its memory lies.
 * @param prompt left out: what `agentPrompt` answers
 */
export async function agentInstructions(
  agent: Agent,
  directory: string,
  prompt?: AgentPrompt,
): Promise<{ text: string } | { problem: string }> {
  const counts = prompt ?? (await agentPrompt(agent, directory))
  if ('problem' in counts) return counts
  return { text: `${counts.text.trimEnd()}\n\n${memoryControl(agent, directory)}` }
}

/** All in one text, for an engine that takes a single prompt. */
export function compositePrompt(instructions: string, request: string): string {
  return `${instructions.trimEnd()}\n\n${USER_REQUEST}\n${request}`
}

function memoryControl({ name }: Agent, directory: string): string {
  return fillPlaceholders(loadPrompt('controls/memory'), {
    directory,
    memory: agentMemoryFile(name),
    ...projectPaths,
  }).trimEnd()
}

async function readPrompt(path: string, shown: string): Promise<OwnPrompt | null> {
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
