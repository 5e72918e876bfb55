import type { ThreadStartParams } from '../../protocol/codex.ts'
import { searchPathOutside } from '../platform/search-path.ts'
import { writableByAgents } from '../platform/writable-by-agents.ts'
import type { SandboxChoice } from './sandbox.ts'

/** What an app-server runs with, and what its agents' commands are to have instead. */
export interface ShieldedEnvironment {
  /** Of the app-server itself. */
  env: NodeJS.ProcessEnv
  /** Variables that are others in commands: the value, or null for one that they are not to see. */
  forCommands: Readonly<Record<string, string | null>>
}

/**
 * The environment of an app-server in `directory`. Codex runs git itself, outside of its sandbox, whenever a thread or a
 * turn starts, a sub-agent's too; git then runs the filters of a config that an agent may have written a second before,
 * and the program itself is the first `git` on the PATH. So codex finds no repository (no permission profile keeps an
 * agent from planting one: docs/codex.md), and no program where an agent can write.
 */
export function shieldEnvironment(
  env: Readonly<NodeJS.ProcessEnv>,
  directory: string,
  { mode, writable }: SandboxChoice,
): ShieldedEnvironment {
  if (mode === 'danger-full-access') return { env, forCommands: {} }
  const shielded: NodeJS.ProcessEnv = { ...env, GIT_DIR: NO_REPOSITORY }
  const forCommands: Record<string, string | null> = { GIT_DIR: env.GIT_DIR ?? null }
  const name = Object.keys(env).find(each => each.toUpperCase() === 'PATH')
  const path = name === undefined ? undefined : env[name]
  if (name !== undefined && path !== undefined) {
    const outside = searchPathOutside(path, writableByAgents(directory, env, writable))
    shielded[name] = outside
    if (outside !== path) forCommands[name] = path
  }
  return { env: shielded, forCommands }
}

/**
 * The settings of `thread/start` by which commands get `forCommands`.
 *
 * @param policy the `shell_environment_policy` in force (`policyIn`): what it says itself stands
 */
export function commandSettings(forCommands: ShieldedEnvironment['forCommands'], policy: unknown): Config {
  const { exclude, filters } = readPolicy(policy)
  const { hidden, given } = otherwise(forCommands, policy)
  const settings: Config = {}
  for (const [name, value] of Object.entries(given)) settings[`${POLICY}.set.${name}`] = value
  // Codex merges tables and replaces lists, and a list puts a table that was given before it out of force.
  if (filters) for (const name of hidden) settings[`${POLICY}.filters.${name}`] = 'exclude'
  else if (hidden.length > 0) settings[`${POLICY}.exclude`] = [...exclude, ...hidden]
  return settings
}

/**
 * The variables by which a command of `command/exec` gets `forCommands`; null: it does not see that one. Codex itself has
 * done there what the policy says.
 *
 * @param policy as for `commandSettings`
 */
export function commandVariables(
  forCommands: ShieldedEnvironment['forCommands'],
  policy: unknown,
): Record<string, string | null> {
  const { set } = readPolicy(policy)
  const { hidden, given } = otherwise(forCommands, policy)
  const unset = hidden.filter(name => !Object.hasOwn(set, name))
  return { ...Object.fromEntries(unset.map(name => [name, null])), ...given }
}

/** The `shell_environment_policy` in an answer to `config/read`; null if it has none. */
export function policyIn(answer: unknown): unknown {
  return memberOf(memberOf(answer, 'config'), POLICY)
}

type Config = NonNullable<ThreadStartParams['config']>

const POLICY = 'shell_environment_policy'
const NO_REPOSITORY = '/dev/null/no-repository'

/** What commands are not to see, and what they are to have of what they inherit and the person has not set. */
function otherwise(
  forCommands: ShieldedEnvironment['forCommands'],
  policy: unknown,
): { hidden: string[]; given: Record<string, string> } {
  const { set, inherit } = readPolicy(policy)
  const hidden: string[] = []
  const given: Record<string, string> = {}
  for (const [name, value] of Object.entries(forCommands)) {
    const isInherited = inherit === 'all' || (inherit === 'core' && name.toUpperCase() === 'PATH')
    if (value === null) hidden.push(name)
    else if (isInherited && !Object.hasOwn(set, name)) given[name] = value
  }
  return { hidden, given }
}

function readPolicy(policy: unknown): { exclude: string[]; filters: boolean; set: object; inherit: string } {
  const [exclude, set, inherit] = [memberOf(policy, 'exclude'), memberOf(policy, 'set'), memberOf(policy, 'inherit')]
  return {
    exclude: Array.isArray(exclude) ? exclude.filter(each => typeof each === 'string') : [],
    filters: isObject(memberOf(policy, 'filters')),
    set: isObject(set) ? set : {},
    inherit: typeof inherit === 'string' ? inherit : 'all',
  }
}

function memberOf(value: unknown, name: string): unknown {
  return isObject(value) ? Reflect.get(value, name) : null
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
