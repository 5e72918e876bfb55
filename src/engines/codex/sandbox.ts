import { existsSync } from 'node:fs'
import { access, mkdir, readlink, symlink } from 'node:fs/promises'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import type { AskForApproval, SandboxPolicy, ThreadStartParams, TurnStartParams } from '../../../protocol/codex.ts'
import { unreachable } from '../../base/errors.ts'
import type { ThreadSpec } from '../../core/engine.ts'
import type { ExternalEngine } from '../../core/shapes/external-engine.ts'
import type { SandboxChoice } from '../../core/shapes/sandbox.ts'
import { pathInside, writableByAgents } from '../../platform/files.ts'
import {
  NO_CURRENT_DIRECTORY,
  pathVariable,
  personPath,
  searchPathOutside,
  withPersonPath,
} from '../../platform/run-process.ts'
import { tomlInline } from '../../platform/toml.ts'
import { memberOf } from './wire.ts'

/** A sandbox in codex's terms: parameters of `thread/start` and `turn/start`. */
export interface SandboxTerms {
  thread: Pick<ThreadStartParams, 'sandbox' | 'permissions' | 'config'>
  turn: Pick<TurnStartParams, 'sandboxPolicy' | 'permissions'>
}

/**
 * The policy of every thread. Codex refuses every way out of the sandbox by itself, and asks only about commands that its
 * rules stop (`rm -f` and the like), which then run inside. Before 0.167 it refuses these too.
 */
export const APPROVAL_POLICY: AskForApproval = {
  granular: {
    sandbox_approval: false,
    rules: true,
    skill_approval: false,
    request_permissions: false,
    mcp_elicitations: false,
  },
}

/**
 * The terms for a sandbox in `directory`. A thread is always started read-only, and gets its rights with the turn:
 * started with more, codex would write the directory into the person's config.toml as trusted, and then read the
 * directory's own configuration (measured, docs/inside/codex.md).
 */
export function sandboxTerms(directory: string, choice: SandboxChoice): SandboxTerms {
  if (choice.mode !== 'read-only')
    return { thread: { sandbox: 'read-only' }, turn: { sandboxPolicy: commandPolicy(choice, true) } }
  return withProfile(MEMORY_ONLY, { filesystem: { ':root': 'read', [join(directory, '.codemachine')]: 'write' } })
}

/** The terms of a thread that can write nothing, not even its memory, and has no network, whatever the rounds have. */
const READ_ONLY_TERMS: SandboxTerms = {
  thread: { sandbox: 'read-only' },
  turn: { sandboxPolicy: { type: 'readOnly', networkAccess: false } },
}

/**
 * As `sandboxTerms`, for a thread that may write only in these folders, relative to `directory`, and the temporary ones:
 * nothing else of the work directory, and no repository's git directory. They have to be there. It narrows the sandbox
 * `workspace-write` alone: with full access nothing is enforced, and in read-only there is nothing to narrow.
 */
function writableTerms(directory: string, folders: readonly string[], choice: SandboxChoice): SandboxTerms {
  if (choice.mode !== 'workspace-write') return sandboxTerms(directory, choice)
  return withProfile(SOME_FOLDERS, profileOfFolders(directory, folders, choice))
}

/** Whether a thread is kept from reading what is named: by permission profiles, in the sandbox `workspace-write` alone. */
export function hidesFiles({ mode }: Pick<SandboxChoice, 'mode'>): boolean {
  return mode === 'workspace-write'
}

type ThreadRights = Pick<ThreadSpec, 'readOnly' | 'writable' | 'unreadable' | 'noShell'>

/**
 * As `READ_ONLY_TERMS`, `writableTerms` or `sandboxTerms`, for a thread that may not read the paths: absolute ones, and globs.
 * Where that is not enforced (`hidesFiles`) they are those terms.
 */
export function threadTerms(
  { noShell, readOnly = noShell, writable, unreadable = [] }: ThreadRights,
  directory: string,
  choice: SandboxChoice,
): SandboxTerms {
  if (unreadable.length === 0 || !hidesFiles(choice)) {
    if (readOnly) return READ_ONLY_TERMS
    return writable ? writableTerms(directory, writable, choice) : sandboxTerms(directory, choice)
  }
  const profile = readOnly
    ? READS_ALL
    : writable
      ? profileOfFolders(directory, writable, choice)
      : profileOfAll(directory, choice)
  const permissions = { [READING]: READS_ALL, [HIDING]: withoutReading(profile, unreadable) }
  return { thread: { permissions: READING, config: { permissions } }, turn: { permissions: HIDING } }
}

/** A permission profile that is defined where an app-server is started, for the commands that it runs. */
export interface HidingProfile {
  name: string
  /** `key=value` pairs for codex's `-c`. */
  overrides: readonly string[]
}

/** What commands under a profile may do beside what rounds may. */
interface HidingOptions {
  /** Whether they may write nothing at all; left out: what the rounds may. */
  readOnly?: boolean | undefined
  /** A folder that they may write to in the place of the usual temporary ones; null, or left out: those. */
  temporary?: string | null
}

/**
 * The profile of commands with the rights of the rounds that may neither read nor make these paths: absolute ones, no
 * globs. Null where that is not enforced (`hidesFiles`), or where the rights of the rounds are all that is wanted: no path of them
 * could be read or made, and the temporary folders are the usual ones.
 */
export function hidingProfile(
  unreadable: readonly string[],
  directory: string,
  choice: SandboxChoice,
  { readOnly = false, temporary = null }: HidingOptions = {},
): HidingProfile | null {
  if (!hidesFiles(choice)) return null
  const profile = readOnly ? READS_ALL : profileOfAll(directory, choice, temporary)
  const hiding = withoutReading(profile, [...new Set(unreadable)].sort())
  const hidesNone = Object.keys(hiding.filesystem).length === Object.keys(profile.filesystem).length
  if (hidesNone && temporary === null) return null
  const overrides = [`permissions=${tomlInline({ [HIDING]: hiding })}`, `default_permissions="${HIDING}"`]
  return { name: HIDING, overrides }
}

/**
 * The `key=value` pairs for codex's `-c` by which `codex sandbox` holds a whole program to the rights of a thread; beside these
 * it may write in folders of its own. It reaches the hosts of its model through a proxy of codex's: of a program and its
 * commands the sandbox makes no difference. Not for full access, which is no box.
 * @param own `home`: absolute paths that are there, which it may write; `configuration`: what it may not, relative to
 *   `directory`; `network`: the hosts, or true for all
 */
export function boxOverrides(
  { readOnly, writable, unreadable = [] }: ThreadRights,
  directory: string,
  choice: SandboxChoice,
  { home, configuration, network }: Pick<ExternalEngine, 'home' | 'configuration' | 'network'>,
): readonly string[] {
  // It may lie below a temporary folder.
  const readsAll = { ':root': 'read', [directory]: 'read' }
  const rights = readOnly
    ? { filesystem: readsAll }
    : choice.mode === 'read-only'
      ? { filesystem: { ...readsAll, [join(directory, '.codemachine')]: 'write' } }
      : writable
        ? profileOfFolders(directory, writable, choice)
        : profileOfAll(directory, choice)
  const own = Object.fromEntries(home.map(path => [path, 'write']))
  const temporary = { ':tmpdir': 'write', ':slash_tmp': 'write' }
  const hosts = choice.network || network === true ? null : network
  const open = {
    filesystem: { ...temporary, ...rights.filesystem, ...own },
    network: { enabled: true, ...(hosts !== null && onlyTo(hosts)) },
  }
  const closed = configuration.map(path => join(directory, path)).filter(path => mayBeThere(path, open))
  const filesystem = { ...open.filesystem, ...Object.fromEntries(closed.map(path => [path, 'read'])) }
  const box = withoutReading({ ...open, filesystem }, [...new Set(unreadable)].sort())
  const proxy = hosts === null ? [] : ['features.network_proxy=true']
  return [`permissions=${tomlInline({ [BOX]: box })}`, `default_permissions="${BOX}"`, ...proxy]
}

/**
 * The network of a profile that reaches these hosts alone, through codex's proxy. Its loopback is its own, so that tests can
 * open a port; unless a host is this machine, which codex reaches only where it does not count loopback as the box's own.
 */
function onlyTo(hosts: readonly string[]): Partial<Profile['network']> {
  const domains = Object.fromEntries(hosts.map(host => [host, 'allow'] as const))
  return { domains, allow_local_binding: !hosts.some(host => LOOPBACK.test(host)) }
}

/** What codex takes for the box's own loopback. On Linux, `127.0.0.2` is not, and leads to this machine. */
const LOOPBACK = /^(?:localhost|127\.0\.0\.1|::1|\[::1\])$/i

function withoutReading(profile: Profile, unreadable: readonly string[]): Profile {
  const denied = unreadable.filter(path => mayBeThere(path, profile))
  return {
    ...profile,
    filesystem: { ...profile.filesystem, ...Object.fromEntries(denied.map(path => [path, 'deny'])) },
  }
}

/**
 * Whether a path is there, or could be made by a command under this profile. Codex lays a file where a denied one is
 * missing, and runs no command at all where it cannot; where its folder is missing, in the place of the folder.
 */
function mayBeThere(path: string, { filesystem }: Profile): boolean {
  if (GLOB.test(path) || existsSync(path)) return true
  if (!existsSync(dirname(path))) return false
  return Object.entries(filesystem).some(([place, right]) => right === 'write' && pathInside(place, path) !== null)
}

const GLOB = /[*?[{]/

const READS_ALL: Profile = { filesystem: { ':root': 'read' }, network: { enabled: false } }

/** The profile of a thread that may write in these folders only. */
function profileOfFolders(directory: string, folders: readonly string[], { network, roots }: SandboxChoice): Profile {
  const writable = [...folders.map(folder => join(directory, folder)), ...(roots ?? [])]
  const own = Object.fromEntries(writable.map(path => [path, 'write']))
  const filesystem = { ':root': 'read', ':tmpdir': 'write', ':slash_tmp': 'write', [directory]: 'read', ...own }
  return { filesystem, network: { enabled: network } }
}

/**
 * The profile that lets a thread write what the sandbox `workspace-write` does.
 * @param temporary in the place of the usual temporary folders; null: those
 */
function profileOfAll(directory: string, choice: SandboxChoice, temporary: string | null = null): Profile {
  const own = Object.fromEntries([directory, ...besidesDirectory(choice)].map(path => [path, 'write']))
  const usual = { ':tmpdir': 'write', ':slash_tmp': 'write' }
  const filesystem = { ':root': 'read', ...(temporary === null ? usual : { [temporary]: 'write' }), ...own }
  return { filesystem, network: { enabled: choice.network } }
}

/** What is writable beside the work directory. */
export function besidesDirectory({ writable, roots = [] }: SandboxChoice): string[] {
  return [...new Set([...writable, ...roots])]
}

/** What a permission profile lets commands do; `filesystem`: by absolute path or glob, the more specific one counts. */
type Profile = {
  filesystem: Record<string, string>
  network?: { enabled: boolean; domains?: Record<string, 'allow'>; allow_local_binding?: boolean }
}

/** A permission profile, which is defined where it is used. */
function withProfile(name: string, profile: Profile): SandboxTerms {
  return { thread: { permissions: name, config: { permissions: { [name]: profile } } }, turn: {} }
}

/** Name of the permission profile of an agent that may write in some folders only. */
const SOME_FOLDERS = 'codemachine-folders'
/** Name of the permission profile of an agent that may not read everything, and of the one that its thread starts with. */
const HIDING = 'codemachine-hiding'
const READING = 'codemachine-reading'
/** Name of the permission profile that leaves a read-only agent its memory. */
const MEMORY_ONLY = 'codemachine-memory'
/** Name of the permission profile of a whole program, with its commands. */
const BOX = 'codemachine-box'

/**
 * The sandbox of a command that codemachine runs through codex: that of the rounds, without network unless wanted.
 * @param temporary in the place of the usual temporary folders; null: those
 */
export function commandPolicy(
  choice: SandboxChoice,
  wantsNetwork: boolean,
  temporary: string | null = null,
): SandboxPolicy {
  switch (choice.mode) {
    case 'read-only':
      return { type: 'readOnly', networkAccess: false }
    case 'workspace-write':
      return {
        type: 'workspaceWrite',
        writableRoots: [...besidesDirectory(choice), ...(temporary === null ? [] : [temporary])],
        networkAccess: choice.network && wantsNetwork,
        excludeTmpdirEnvVar: temporary !== null,
        excludeSlashTmp: temporary !== null,
      }
    case 'danger-full-access':
      return { type: 'dangerFullAccess' }
    default:
      return unreachable(choice.mode)
  }
}

/** The environment of an app-server, and the variables that its agents' commands get instead. */
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
 * agent from planting one: docs/inside/codex.md), and no program where an agent can write.
 *
 * @param firstOnPath a folder that codex searches first for programs, and commands do not; null: none
 */
export function shieldEnvironment(
  env: Readonly<NodeJS.ProcessEnv>,
  directory: string,
  choice: SandboxChoice,
  firstOnPath: string | null = null,
): ShieldedEnvironment {
  if (choice.mode === 'danger-full-access') return { env: withPersonPath(env), forCommands: {} }
  const shielded: NodeJS.ProcessEnv = { ...withPersonPath(env), GIT_DIR: NO_REPOSITORY }
  const forCommands: Record<string, string | null> = { GIT_DIR: null }
  const [noCurrent, ours] = NO_CURRENT_DIRECTORY
  if (env[noCurrent] === ours) {
    shielded[noCurrent] = ours
    forCommands[noCurrent] = null
  }
  const name = pathVariable(env)
  const path = env[name]
  if (path !== undefined) {
    const outside = searchPathOutside(path, writableByAgents(directory, env, besidesDirectory(choice)))
    const whole = firstOnPath === null ? outside : `${firstOnPath}${delimiter}${outside}`
    shielded[name] = whole
    const persons = personPath(env)
    if (persons !== undefined && whole !== persons) forCommands[name] = persons
  }
  return { env: shielded, forCommands }
}

/**
 * A folder in which `lsb_release` fails, for the front of an app-server's PATH; it is made if it is missing. Codex asks
 * `lsb_release` twice at each start, a script of twelve programs on Debian and Ubuntu; what it sends about the system is the same
 * (docs/inside/codex.md). Null on other platforms, without /etc/os-release, and where the folder cannot be made.
 *
 * @param records the folder of the records, where agents cannot write
 */
export async function withoutLsbRelease(records: string, platform: NodeJS.Platform): Promise<string | null> {
  if (platform !== 'linux') return null
  const folder = join(records, 'codex-path')
  const link = join(folder, 'lsb_release')
  try {
    await access(OS_RELEASE)
    if ((await readlink(link).catch(() => null)) === FAILS) return folder
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await symlink(FAILS, link)
    return folder
  } catch {
    return null
  }
}

/** Where codex reads the name of the system if no `lsb_release` answers. */
const OS_RELEASE = '/etc/os-release'
/** A program that fails and starts nothing. */
const FAILS = '/bin/false'

/**
 * The settings of `thread/start` by which commands get `forCommands`.
 *
 * @param policy the `shell_environment_policy` in force (`CommandConfig`): what it says itself stands
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
 * done there what the policy says. Only the PATH of a round gets codex's own folder by itself, so here it is put first.
 *
 * @param policy as for `commandSettings`
 * @param binary the native codex
 */
export function commandVariables(
  forCommands: ShieldedEnvironment['forCommands'],
  policy: unknown,
  binary: string,
): Record<string, string | null> {
  const { set } = readPolicy(policy)
  const { hidden, given } = otherwise(forCommands, policy)
  const unset = hidden.filter(name => !Object.hasOwn(set, name))
  const own = join(dirname(dirname(binary)), 'codex-path')
  for (const name of Object.keys(given)) {
    if (name.toUpperCase() === 'PATH' && existsSync(own)) given[name] = `${own}${delimiter}${given[name]}`
  }
  return { ...Object.fromEntries(unset.map(name => [name, null])), ...given }
}

/** What the person's configuration of codex says of all commands. */
export interface CommandConfig {
  /** `shell_environment_policy`; null if there is none. */
  policy: unknown
  /** `sandbox_workspace_write.writable_roots`: absolute paths. */
  roots: readonly string[]
}

/** What is said where codex says nothing. */
export const NO_CONFIG: CommandConfig = { policy: null, roots: [] }

/** The same in a response to `config/read`. */
export function commandConfigIn(answer: unknown): CommandConfig {
  const config = memberOf(answer, 'config')
  const roots = memberOf(memberOf(config, 'sandbox_workspace_write'), 'writable_roots')
  return {
    policy: memberOf(config, POLICY) ?? null,
    roots: Array.isArray(roots) ? roots.filter(each => typeof each === 'string' && isAbsolute(each)) : [],
  }
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

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
