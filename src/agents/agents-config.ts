import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '../base/errors.ts'
import { writeFileInside } from '../workspace/inside-directory.ts'
import { makeMemoryFolder } from '../workspace/memory-home.ts'
import { readTextFile } from '../workspace/read-text-file.ts'
import type { Agent, Agents } from './agent.ts'
import { projectPaths } from './project-paths.ts'

const MOST_BYTES = 1024 * 1024

/**
 * Brings `.codemachine/agents/agents-config.json` up to date: the agents as data, for those who read it. What somebody
 * changed there is put back. Throws a `UserError` if there is no folder to write to.
 */
export async function writeAgentsConfig(directory: string, { main, sub }: Agents): Promise<void> {
  const root = await realpath(directory)
  const obstacle = await makeMemoryFolder(root, projectPaths.agentsFolder)
  if (obstacle !== null) {
    const what = obstacle.kind === 'link' ? 'is a link' : 'is not a folder'
    throw new UserError(
      `${join(root, obstacle.path)} ${what}; move it away, so that codemachine can keep the agents' prompts there.`,
    )
  }
  const text = `${JSON.stringify({ main: main.map(dataOf), sub: sub.map(dataOf) }, null, 2)}\n`
  const read = await readTextFile(join(root, projectPaths.agentsConfig), MOST_BYTES)
  if (read.kind === 'text' && read.text === text) return
  await writeFileInside(root, projectPaths.agentsConfig, text)
}

/** Without the model: which one counts is said by the settings and by the account. */
function dataOf({ name, displayName, description, modelReasoningEffort, enabled }: Agent) {
  return { name, displayName, description, effort: modelReasoningEffort, enabled }
}
