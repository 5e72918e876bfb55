import { liesIn, writableByAgents } from '../platform/writable-by-agents.ts'

/** Where an agent can write in every sandbox that may write; null: it cannot, in the sandbox `workspace-write`. */
export type Reach = 'the work directory' | 'the git directory' | 'a temporary directory' | null

/**
 * Whether agents that work in `directory` reach a path.
 *
 * @param gitDirectories those of the repository around it, which can lie elsewhere
 */
export async function reachOf(
  path: string,
  directory: string,
  env: NodeJS.ProcessEnv,
  gitDirectories: readonly string[] = [],
): Promise<Reach> {
  const where = writableByAgents(directory, env, gitDirectories)
  if (liesIn(path, where.workDirectory)) return 'the work directory'
  if (liesIn(path, where.gitDirectories)) return 'the git directory'
  return liesIn(path, where.temporary) ? 'a temporary directory' : null
}

/** What that means for the records, as a sentence; null if they are out of reach. */
export function recordsInReach(root: string, reach: Reach): string | null {
  if (reach === null) return null
  return `The records of codemachine (${root}) lie inside ${reach}, where the agent can write: what it says of its work is then no proof.`
}

/** What that means for the folder of codemachine itself, as a sentence; null if it is out of reach. */
export function codemachineInReach(packageRoot: string, reach: Reach): string | null {
  if (reach === null) return null
  return `codemachine itself (${packageRoot}) lies inside ${reach}, where the agent can write; install it elsewhere: \`npm pack\` in a checkout of it, then \`npm install --global ./codemachine-*.tgz\``
}
