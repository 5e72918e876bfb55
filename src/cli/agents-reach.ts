import { realpath } from 'node:fs/promises'
import { isWithin } from '../platform/path-within.ts'

/** Where an agent can write in every sandbox that may write; null: it cannot, in the sandbox `workspace-write`. */
export type Reach = 'the work directory' | 'a temporary directory' | null

/** Whether agents that work in `directory` reach a path. Both are real paths. */
export async function reachOf(path: string, directory: string, env: NodeJS.ProcessEnv): Promise<Reach> {
  if (isWithin(directory, path)) return 'the work directory'
  for (const folder of ['/tmp', env.TMPDIR]) {
    if (folder && isWithin(await realpath(folder).catch(() => folder), path)) return 'a temporary directory'
  }
  return null
}

/** What that means for the records, as a sentence; null if they are out of reach. */
export function recordsInReach(root: string, reach: Reach): string | null {
  if (reach === null) return null
  return `The records of codemachine (${root}) lie inside ${reach}, where the agent can write: what it says of its work is then no proof.`
}
