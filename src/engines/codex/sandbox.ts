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
 * Approval policy of every thread. Codex refuses every way out of the sandbox. It only asks about commands that its rules
 * stop (such as `rm -f`), which then run inside. Before 0.167 it refuses these too.
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
 * Returns the terms of a sandbox in `directory`. A thread always starts read-only and gets its rights with the turn.
 * Otherwise codex would mark the directory as trusted in the person's config.toml. Then it would read the directory's own
 * configuration (measured, docs/inside/codex.md).
 */
export function sandboxTerms(directory: string, choice: SandboxChoice): SandboxTerms {
  if (choice.mode !== 'read-only')
    return { thread: { sandbox: 'read-only' }, turn: { sandboxPolicy: commandPolicy(choice, true) } }
  return withProfile(MEMORY_ONLY, { filesystem: { ':root': 'read', [join(directory, '.codemachine')]: 'write' } })
}

/** Terms of a thread that can write nothing, not even its memory, and has no network, regardless of the rounds. */
const READ_ONLY_TERMS: SandboxTerms = {
  thread: { sandbox: 'read-only' },
  turn: { sandboxPolicy: { type: 'readOnly', networkAccess: false } },
}

/**
 * As `sandboxTerms`, for a thread that may only write in the temporary folders and in these. They must exist, and are
 * relative to `directory`. The rest of the work directory and all git directories are read-only. Only narrows
 * `workspace-write`: full access enforces nothing, and read-only needs no limit.
 */
function writableTerms(directory: string, folders: readonly string[], choice: SandboxChoice): SandboxTerms {
  if (choice.mode !== 'workspace-write') return sandboxTerms(directory, choice)
  return withProfile(SOME_FOLDERS, profileOfFolders(directory, folders, choice))
}

/** True if permission profiles can hide files from a thread: only in the sandbox `workspace-write`. */
export function hidesFiles({ mode }: Pick<SandboxChoice, 'mode'>): boolean {
  return mode === 'workspace-write'
}

type ThreadRights = Pick<ThreadSpec, 'readOnly' | 'writable' | 'unreadable' | 'noShell'>

/**
 * Returns `READ_ONLY_TERMS`, `writableTerms` or `sandboxTerms` for a thread that may not read these absolute paths and
 * globs. Without `hidesFiles`, the paths have no effect.
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

/** A permission profile that an app-server gets at its start, for its commands. */
export interface HidingProfile {
  name: string
  /** `key=value` pairs for codex's `-c`. */
  overrides: readonly string[]
}

/** Differences of a profile from the rights of the rounds. */
interface HidingOptions {
  /** True: they may write nothing; undefined: as the rounds. */
  readOnly?: boolean | undefined
  /** A writable folder that replaces the usual temporary ones; null or undefined: the usual ones. */
  temporary?: string | null
}

/**
 * Returns the profile of commands with the rounds' rights that may neither read nor create these absolute paths (no globs).
 * Null without `hidesFiles`, or if the rounds' rights suffice: none of the paths can be read or created, and the temporary
 * folders are the usual ones.
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
 * Returns the `key=value` pairs for codex's `-c` that limit a whole program under `codex sandbox` to a thread's rights. It
 * may also write its own folders. It reaches its model's hosts through codex's proxy, as do its commands: the sandbox cannot
 * separate them. Not for full access, which is no sandbox.
 * @param own `home`: absolute paths that are there, which it may write; `configuration`: what it may not, relative to
 *   `directory`; `network`: the hosts, or true for all
 */
export function boxOverrides(
  { readOnly, writable, unreadable = [] }: ThreadRights,
  directory: string,
  choice: SandboxChoice,
  { home, configuration, network }: Pick<ExternalEngine, 'home' | 'configuration' | 'network'>,
): readonly string[] {
  // The directory may be below a temporary folder.
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
 * Returns a profile's network that only reaches these hosts, through codex's proxy. Its loopback is separate, so that tests
 * can open a port. Not so if a host is this machine: codex reaches it only on a shared loopback.
 */
function onlyTo(hosts: readonly string[]): Partial<Profile['network']> {
  const domains = Object.fromEntries(hosts.map(host => [host, 'allow'] as const))
  return { domains, allow_local_binding: !hosts.some(host => LOOPBACK.test(host)) }
}

/** Matches the sandbox's own loopback for codex. On Linux, `127.0.0.2` is not part of it and leads to this machine. */
const LOOPBACK = /^(?:localhost|127\.0\.0\.1|::1|\[::1\])$/i

function withoutReading(profile: Profile, unreadable: readonly string[]): Profile {
  const denied = unreadable.filter(path => mayBeThere(path, profile))
  return {
    ...profile,
    filesystem: { ...profile.filesystem, ...Object.fromEntries(denied.map(path => [path, 'deny'])) },
  }
}

/**
 * True if a path exists or could be created under this profile. Codex puts a file in place of a missing denied path, or of
 * its missing folder. If it cannot, it runs no command.
 */
function mayBeThere(path: string, { filesystem }: Profile): boolean {
  if (GLOB.test(path) || existsSync(path)) return true
  if (!existsSync(dirname(path))) return false
  return Object.entries(filesystem).some(([place, right]) => right === 'write' && pathInside(place, path) !== null)
}

const GLOB = /[*?[{]/

const READS_ALL: Profile = { filesystem: { ':root': 'read' }, network: { enabled: false } }

/** Returns the profile of a thread that may only write in these folders. */
function profileOfFolders(directory: string, folders: readonly string[], { network, roots }: SandboxChoice): Profile {
  const writable = [...folders.map(folder => join(directory, folder)), ...(roots ?? [])]
  const own = Object.fromEntries(writable.map(path => [path, 'write']))
  const filesystem = { ':root': 'read', ':tmpdir': 'write', ':slash_tmp': 'write', [directory]: 'read', ...own }
  return { filesystem, network: { enabled: network } }
}

/**
 * Returns the profile with the write access of the sandbox `workspace-write`.
 * @param temporary in the place of the usual temporary folders; null: those
 */
function profileOfAll(directory: string, choice: SandboxChoice, temporary: string | null = null): Profile {
  const own = Object.fromEntries([directory, ...besidesDirectory(choice)].map(path => [path, 'write']))
  const usual = { ':tmpdir': 'write', ':slash_tmp': 'write' }
  const filesystem = { ':root': 'read', ...(temporary === null ? usual : { [temporary]: 'write' }), ...own }
  return { filesystem, network: { enabled: choice.network } }
}

/** Returns the writable paths outside of the work directory. */
export function besidesDirectory({ writable, roots = [] }: SandboxChoice): string[] {
  return [...new Set([...writable, ...roots])]
}

/** The rights of a permission profile; `filesystem`: by absolute path or glob, the more specific one counts. */
type Profile = {
  filesystem: Record<string, string>
  network?: { enabled: boolean; domains?: Record<string, 'allow'>; allow_local_binding?: boolean }
}

/** Returns terms that define and use a permission profile. */
function withProfile(name: string, profile: Profile): SandboxTerms {
  return { thread: { permissions: name, config: { permissions: { [name]: profile } } }, turn: {} }
}

/** Permission profile of an agent that may only write some folders. */
const SOME_FOLDERS = 'codemachine-folders'
/** Permission profiles of an agent with hidden files: of its turns, and of the start of its thread. */
const HIDING = 'codemachine-hiding'
const READING = 'codemachine-reading'
/** Permission profile that leaves a read-only agent its memory. */
const MEMORY_ONLY = 'codemachine-memory'
/** Permission profile of a whole program with its commands. */
const BOX = 'codemachine-box'

/**
 * Returns the sandbox of a command that codemachine runs through codex: that of the rounds, without network unless wanted.
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

/** The environment of an app-server, and the different variables of its agents' commands. */
export interface ShieldedEnvironment {
  /** Environment of the app-server itself. */
  env: NodeJS.ProcessEnv
  /** Variables that differ in commands: the value, or null to remove it. */
  forCommands: Readonly<Record<string, string | null>>
}

/**
 * Returns the environment of an app-server in `directory`. Codex runs git itself, outside of its sandbox, at each start of a
 * thread or turn, also of a sub-agent. That git runs filters of a config that an agent may just have written. The program is
 * the first `git` on the PATH. So codex must find no repository (no permission profile stops an agent from creating one:
 * docs/inside/codex.md) and no program where an agent can write.
 * @param firstOnPath a folder that codex searches first for programs, and commands do not; null: none
 */
export function shieldEnvironment(
  env: Readonly<NodeJS.ProcessEnv>,
  directory: string,
  choice: SandboxChoice,
  firstOnPath: string | null = null,
): ShieldedEnvironment {
  const known = withoutExporter(withPersonPath(env))
  if (choice.mode === 'danger-full-access') return { env: known, forCommands: {} }
  const shielded: NodeJS.ProcessEnv = { ...known, GIT_DIR: NO_REPOSITORY }
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

/** Removes the variables of codemachine's own OpenTelemetry exporter: their headers and addresses hold secrets. */
function withoutExporter(env: Readonly<NodeJS.ProcessEnv>): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^OTEL_EXPORTER_/i.test(name)))
}

/**
 * Creates a folder with a failing `lsb_release` for the front of an app-server's PATH. Codex runs `lsb_release` twice at
 * each start, a script of twelve programs on Debian and Ubuntu; the data that it sends is the same (docs/inside/codex.md).
 * Null on other platforms, without /etc/os-release, and if the folder cannot be created.
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

/** Codex's source of the system's name without `lsb_release`. */
const OS_RELEASE = '/etc/os-release'
/** A program that only fails. */
const FAILS = '/bin/false'

/**
 * Returns the settings of `thread/start` that give commands `forCommands`.
 * @param policy the `shell_environment_policy` in force (`CommandConfig`): what it says itself stands
 */
export function commandSettings(forCommands: ShieldedEnvironment['forCommands'], policy: unknown): Config {
  const { exclude, filters } = readPolicy(policy)
  const { hidden, given } = otherwise(forCommands, policy)
  const settings: Config = {}
  for (const [name, value] of Object.entries(given)) settings[`${POLICY}.set.${name}`] = value
  // Codex merges tables and replaces lists, and a list disables an earlier table.
  if (filters) for (const name of hidden) settings[`${POLICY}.filters.${name}`] = 'exclude'
  else if (hidden.length > 0) settings[`${POLICY}.exclude`] = [...exclude, ...hidden]
  return settings
}

/**
 * Returns the variables that give a command of `command/exec` `forCommands`; null removes one. Codex has already applied the
 * policy there. Codex adds its own folder to the PATH of rounds only, so put it first here.
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

/** The person's codex configuration for all commands. */
export interface CommandConfig {
  /** `shell_environment_policy`; null if there is none. */
  policy: unknown
  /** `sandbox_workspace_write.writable_roots`: absolute paths. */
  roots: readonly string[]
}

/** Used if codex reports no configuration. */
export const NO_CONFIG: CommandConfig = { policy: null, roots: [] }

/** Parses the configuration in a response to `config/read`. */
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

/** Returns the variables to hide from commands, and those to give that they inherit and the person has not set. */
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
