import { join } from 'node:path'
import type { Records } from '../../session/records.ts'
import { memoryHome } from '../../workspace/memory-home.ts'
import { makeProjectFolders } from '../../workspace/project-folders.ts'

/** Makes the folders in which a person may write a specification before anything is started, and the list of agents. */
export async function makeFirstFolders({ directory, root }: Records): Promise<void> {
  // In a home directory that is where the records lie.
  if (join(directory, memoryHome) === root) return
  await makeProjectFolders(directory)
  const { loadAgents } = await import('../../agents/agent.ts')
  const { writeAgentsConfig } = await import('../../agents/agents-config.ts')
  await writeAgentsConfig(directory, loadAgents())
}
