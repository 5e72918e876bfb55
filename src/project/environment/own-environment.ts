import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname, isAbsolute, join } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { bothNames, NOWHERE, pathsOf } from '../../platform/files.ts'
import { findProgram, personPath, runProcess, withOwnPath } from '../../platform/run-process.ts'
import { recordsOf, rootOf } from '../../session/records/records.ts'
import type { World } from '../world.ts'

/** The environment that our own programs have. */
export interface OwnEnvironment {
  env: NodeJS.ProcessEnv
  /** Variables of the git command that called codemachine, which are left out: they name its repository. */
  dropped: readonly string[]
}

/**
 * The environment of a command, made once where it begins: its PATH has no folder in which agents have worked, and no variable
 * leads git to another repository than the one around a directory. Commands of agents get the person's PATH (`personPath`).
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
 * Whether a folder of the PATH may be one in which agents have worked: it lies in a directory that has records, or in a work
 * tree of a repository. Most lie in neither, and then no records are read.
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

/** Null where `CODEMACHINE_HOME` is wrong, which each command that needs it says. */
function recordsRoot(places: Pick<World, 'env' | 'home'>): string | null {
  try {
    return rootOf(places)
  } catch (error) {
    if (error instanceof UserError) return null
    throw error
  }
}

/**
 * The variables that name the repository of a caller: those that git itself clears before it works in another one. Git is asked
 * for them where there is one that is not known.
 */
async function callersVariables(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): Promise<string[]> {
  const names = Object.keys(env).filter(name => /^GIT_/i.test(name))
  const isUnknown = (name: string) => !OF_REPOSITORY.has(name.toUpperCase()) && !OF_PERSON.test(name)
  const asked = names.some(isUnknown) ? await askGit(env, platform) : []
  const all = new Set([...OF_REPOSITORY, ...asked])
  return names.filter(name => all.has(name.toUpperCase()) || /^GIT_CONFIG_(?:KEY|VALUE)_\d+$/i.test(name)).sort()
}

/** What `git rev-parse --local-env-vars` says in 2.39 to 2.51, and what a hook that receives a push has. */
const OF_REPOSITORY: ReadonlySet<string> = new Set(
  `GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CONFIG GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT GIT_OBJECT_DIRECTORY GIT_DIR
  GIT_WORK_TREE GIT_IMPLICIT_WORK_TREE GIT_GRAFT_FILE GIT_INDEX_FILE GIT_NO_REPLACE_OBJECTS GIT_REPLACE_REF_BASE GIT_PREFIX
  GIT_INTERNAL_SUPER_PREFIX GIT_SHALLOW_FILE GIT_COMMON_DIR GIT_QUARANTINE_PATH`.split(/\s+/),
)

/** What says who a person is, how they use git, and how it reaches others. */
const OF_PERSON =
  /^GIT_(?:CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM|(?:KEY|VALUE)_\d+)|(?:AUTHOR|COMMITTER)_\w+|(?:SEQUENCE_)?EDITOR|PAGER|(?:SSH|SSL|HTTP|PROXY|PROTOCOL|TRACE)\w*|ASKPASS|TERMINAL_PROMPT|EXEC_PATH|TEMPLATE_DIR|CEILING_DIRECTORIES|OPTIONAL_LOCKS|PS1_\w+)$/i

async function askGit(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): Promise<string[]> {
  const { path } = await findProgram('git', { env, platform, where: NOWHERE })
  if (path === null) return []
  const limits = { encoding: 'utf8', outputLimit: 64 * 1024, timeoutMs: 10_000 } as const
  const { stdout } = await runProcess(path, ['rev-parse', '--local-env-vars'], { env, ...limits })
  return stdout.split('\n').filter(name => name.startsWith('GIT_'))
}
