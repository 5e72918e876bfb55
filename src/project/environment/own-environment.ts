import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname, isAbsolute, join } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { bothNames, NOWHERE, pathsOf } from '../../platform/files.ts'
import { findProgram, personPath, runProcess, withOwnPath } from '../../platform/run-process.ts'
import { recordsOf, rootOf } from '../../session/records/records.ts'
import type { World } from '../world.ts'

/** Environment of our own programs. */
export interface OwnEnvironment {
  env: NodeJS.ProcessEnv
  /** Removed variables of the git command that called codemachine: they name its repository. */
  dropped: readonly string[]
}

/**
 * Returns the environment of a command, made once at its start. Its PATH has no folder of agents, and no variable leads git
 * to another repository. Agents' commands get the person's PATH (`personPath`).
 */
export async function ownEnvironment(
  world: Pick<World, 'env' | 'home' | 'platform' | 'templates'>,
): Promise<OwnEnvironment> {
  const isSuspicious = await mayLeadToAgents(world)
  const folders = isSuspicious ? await (await import('./agent-folders.ts')).agentFolders(world) : []
  const env = withOwnPath(world.env, folders, world.platform)
  const dropped = await callersVariables(env, world.platform)
  for (const name of dropped) delete env[name]
  return { env, dropped }
}

/**
 * Returns whether a PATH folder may be one of agents: it is in a directory with records, or in a repository's worktree. Most
 * are in neither, so the records stay unread.
 */
async function mayLeadToAgents({
  env,
  home,
  platform,
  templates,
}: Parameters<typeof ownEnvironment>[0]): Promise<boolean> {
  const root = recordsRoot({ env, home })
  const keys = new Set(root === null ? [] : await readdir(join(root, 'state')).catch(() => []))
  if (root === null || keys.size === 0) return false
  const seen = new Set<string>()
  const entries = (personPath(env) ?? '').split(pathsOf(platform).delimiter).filter(entry => isAbsolute(entry))
  for (const entry of bothNames(entries)) {
    for (let at = entry; !seen.has(at); at = dirname(at)) {
      seen.add(at)
      if (keys.has(recordsOf({ root, templates }, at).key) || existsSync(join(at, '.git'))) return true
    }
  }
  return false
}

/** Null if `CODEMACHINE_HOME` is wrong; each command that needs it reports that. */
function recordsRoot(places: Pick<World, 'env' | 'home'>): string | null {
  try {
    return rootOf(places)
  } catch (error) {
    if (error instanceof UserError) return null
    throw error
  }
}

/**
 * Returns the variables that name a caller's repository: those that git clears before it works in another one. It asks git
 * only about unknown names.
 */
async function callersVariables(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): Promise<string[]> {
  const names = Object.keys(env).filter(name => /^GIT_/i.test(name))
  const isUnknown = (name: string) => !OF_REPOSITORY.has(name.toUpperCase()) && !OF_PERSON.test(name)
  const asked = names.some(isUnknown) ? await askGit(env, platform) : []
  const all = new Set([...OF_REPOSITORY, ...asked])
  return names.filter(name => all.has(name.toUpperCase()) || /^GIT_CONFIG_(?:KEY|VALUE)_\d+$/i.test(name)).sort()
}

/** Output of `git rev-parse --local-env-vars` in 2.39 to 2.51, plus the variables of a hook for received pushes. */
const OF_REPOSITORY: ReadonlySet<string> = new Set(
  `GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CONFIG GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT GIT_OBJECT_DIRECTORY GIT_DIR
  GIT_WORK_TREE GIT_IMPLICIT_WORK_TREE GIT_GRAFT_FILE GIT_INDEX_FILE GIT_NO_REPLACE_OBJECTS GIT_REPLACE_REF_BASE GIT_PREFIX
  GIT_INTERNAL_SUPER_PREFIX GIT_SHALLOW_FILE GIT_COMMON_DIR GIT_QUARANTINE_PATH`.split(/\s+/),
)

/** Variables for the person's identity, their use of git, and its connections. */
const OF_PERSON =
  /^GIT_(?:CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM|(?:KEY|VALUE)_\d+)|(?:AUTHOR|COMMITTER)_\w+|(?:SEQUENCE_)?EDITOR|PAGER|(?:SSH|SSL|HTTP|PROXY|PROTOCOL|TRACE)\w*|ASKPASS|TERMINAL_PROMPT|EXEC_PATH|TEMPLATE_DIR|CEILING_DIRECTORIES|OPTIONAL_LOCKS|PS1_\w+)$/i

async function askGit(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): Promise<string[]> {
  const { path } = await findProgram('git', { env, platform, where: NOWHERE })
  if (path === null) return []
  const limits = { encoding: 'utf8', outputLimit: 64 * 1024, timeoutMs: 10_000 } as const
  const { stdout } = await runProcess(path, ['rev-parse', '--local-env-vars'], { env, ...limits })
  return stdout.split('\n').filter(name => name.startsWith('GIT_'))
}
