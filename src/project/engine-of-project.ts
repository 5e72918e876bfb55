import { basename, join } from 'node:path'
import { readRoster } from '../agents/roster.ts'
import { UserError } from '../base/errors.ts'
import { packageRoot, version } from '../base/package.ts'
import { type EngineSetup, Engines } from '../core/engine.ts'
import type { Gate } from '../core/events/outcome.ts'
import { ownFilesOf } from '../core/rules/proof/gate-files.ts'
import type { ReviewTerms } from '../core/rules/review.ts'
import type { Agent, AgentRoster, AgentTables } from '../core/shapes/agent.ts'
import type { Provider, Providers } from '../core/shapes/provider.ts'
import { askPatiently } from '../engines/ask-provider.ts'
import {
  type CodexBinary,
  type CodexHome,
  chooseCodexHome,
  findCodex,
  isOlderCodex,
} from '../engines/codex/find-codex.ts'
import { askOfferedModels, type OfferedModels, withOfferedModels } from '../engines/codex/models.ts'
import { type AgentProfile, type UpdatedProfiles, updateProfiles } from '../engines/codex/profiles.ts'
import { networkLimit } from '../engines/codex/round-feed.ts'
import { shieldEnvironment, withoutLsbRelease } from '../engines/codex/sandbox.ts'
import type { SandboxCommandsOptions } from '../engines/codex/sandbox-commands.ts'
import { acpEngine } from '../engines/registry.ts'
import { openControlGroup } from '../platform/control-group.ts'
import { liesIn, writableByAgents } from '../platform/files.ts'
import { startTimeOf } from '../platform/processes.ts'
import { type LearningRedactor, openRedactor } from '../secrets/secrets.ts'
import type { Records } from '../session/records/records.ts'
import { writableIn } from '../workspace/git/find-git.ts'
import type { PersonRepository } from '../workspace/git/git.ts'
import type { PrivateGit } from '../workspace/git/private-git.ts'
import { unmatchedGlobs } from '../workspace/protected-files.ts'
import { agentFolders } from './environment/agent-folders.ts'
import { runsNow } from './hold-files.ts'
import { externalEngine } from './settings/engines.ts'
import type { LoadedSettings } from './settings/load.ts'
import type { Settings } from './settings/schema.ts'
import type { World } from './world.ts'

/** A codex to run, and the secrets that are kept from it. */
export interface ChosenCodex {
  binary: CodexBinary
  home: CodexHome
  redactor: LearningRedactor
}

/**
 * Returns the codex for a work directory, by `findCodex`. `flag`: the name from `--codex-bin` or the settings, null for
 * `CODEX_BIN`. `makesCopy`: set by commands that open the records.
 */
export async function codexFor(
  world: Pick<World, 'env' | 'home' | 'platform' | 'templates' | 'arch' | 'cwd'>,
  { folder, directory }: Pick<Records, 'folder' | 'directory'>,
  flag: string | null,
  { makesCopy }: { makesCopy: boolean },
): Promise<CodexBinary> {
  const { env, platform, arch, cwd } = world
  const where = await writableIn(directory, env, await agentFolders(world))
  const copies = { folder: join(folder, 'bin'), makes: makesCopy }
  const remembered = join(folder, 'codex.json')
  return await findCodex({ flag, env, platform, arch, directory: cwd, packageRoot, where, copies, remembered })
}

/** Returns the codex that the person named. The environment's is left out: `CODEX_BIN` names it. */
export function namedCodex({ settings, sources }: Pick<LoadedSettings, 'settings' | 'sources'>): string | null {
  return sources.codexBin.layer === 'environment' ? null : settings.codexBin
}

/** Returns the codex, its home and the person's secrets, by the settings. Throws a `UserError` if there is no codex. */
export async function chooseCodex(world: World, records: Records, loaded: LoadedSettings): Promise<ChosenCodex> {
  const { env, home, clock } = world
  const { settings, providers } = loaded
  const { root, secrets } = records
  const binary = await codexFor(world, records, namedCodex(loaded), { makesCopy: true })
  const codexHome = await chooseCodexHome({ setting: settings.codexHome, env, home, codemachineHome: root })
  const keys = [...providers.values()].flatMap(({ keyEnv }) => keyEnv ?? [])
  const redactor = openRedactor({ env, codexHome: codexHome.path, project: secrets, clock, keys })
  return { binary, home: codexHome, redactor }
}

/** The providers of a run. */
interface ProvidersOfRun {
  providers: Providers
  /** Provider of its rounds; undefined: codex's own configuration. */
  provider: Provider | undefined
  /** Settings, with the model of the rounds at that provider. */
  settings: Settings
}

/** Returns the providers of a run. Throws a `UserError` if that of its rounds has no model. */
export function providersOf(
  { env, clock }: Pick<World, 'env' | 'clock'>,
  { settings, sources, providers: byName }: Pick<LoadedSettings, 'settings' | 'sources' | 'providers'>,
): ProvidersOfRun {
  const usual = settings.provider
  const ask: Providers['ask'] = (provider, model, signal) => askPatiently(provider, model, { env, clock, signal })
  const isSaid = ['flag', 'environment'].includes(sources.model.layer)
  const remoteModel = isSaid ? null : settings.model
  const named = byName.get(usual)
  if (named === undefined) return { providers: { byName, usual, remoteModel, ask }, provider: named, settings }
  const model = isSaid ? settings.model : named.model
  if (model === null) {
    throw new UserError(
      'CM0307',
      `${sources.provider.place}: the provider ${usual} has no model; name one with --model, or as model in a table [providers.${usual}] of your own config.toml.`,
    )
  }
  const provider = { ...named, model }
  return {
    providers: { byName: new Map(byName).set(usual, provider), usual, remoteModel, ask },
    provider,
    settings: { ...settings, model },
  }
}

/** The person's choices for codex. */
interface CodexSaid {
  settings: Settings
  /** `key=value` pairs that the person passes to it. */
  overrides: readonly string[]
  /** Receives each debug line, without secrets, if `logging.level` is `debug`. */
  onDebug?: ((line: string) => void) | undefined
  /** Receives a sentence for the person, without secrets, for each leftover process that cannot be ended. */
  onWarning(sentence: string): void
  /** Receives the command lines of ended leftover processes of rounds, without secrets. */
  endedCommands?: string[]
}

/** Returns the options with which codex runs for a work directory. */
export async function codexOptionsOf(
  { pid, platform, clock, ownsProcess }: World,
  { key, root, folder }: Records,
  { binary, home, redactor }: ChosenCodex,
  { settings, overrides, onDebug, onWarning, endedCommands }: CodexSaid,
): Promise<Omit<SandboxCommandsOptions, 'directory' | 'sandbox' | 'binary'> & { binary: CodexBinary }> {
  const endMs = settings.endSeconds * 1000
  const otherRuns = async () => (await runsNow(root, platform)).map(run => run.pid).filter(run => run !== pid)
  const isOpen = settings.sandbox === 'danger-full-access'
  const group = { platform, self: pid, clock, graceMs: endMs, otherRuns }
  return {
    binary,
    overrides: [...(isOlderCodex(binary.version, '0.160.0') ? [WITHOUT_SNAPSHOT] : []), ...overrides],
    env: home.env,
    firstOnPath: await withoutLsbRelease(folder, platform),
    key,
    owner: { pid, startTime: await startTimeOf(pid, platform) },
    // In a sandbox no process outlives its round.
    controlGroup: isOpen && ownsProcess === true ? await openControlGroup(group) : null,
    platform,
    clock,
    codemachineVersion: version,
    requestMs: settings.requestSeconds * 1000,
    endMs,
    log: message => {
      if (settings.logging.level === 'debug') onDebug?.(redactor.text(message))
    },
    onWarning: sentence => onWarning(redactor.text(sentence)),
    onEnded: commands => void endedCommands?.push(...commands.map(command => redactor.text(command))),
  }
}

/**
 * Before 0.160, login shells got variables that are hidden from commands, from codex's shell snapshot (measured with 0.157
 * and 0.160).
 */
const WITHOUT_SNAPSHOT = 'features.shell_snapshot=false'

/** Returns what rounds and gates may write apart from the work directory. */
export function writableGit(directory: string, repository: PersonRepository | null): string[] {
  // Without a repository, `git init` works only if codex does not close `.git` (measured).
  if (repository === null) return [join(directory, '.git')]
  return [...new Set([repository.gitDir, repository.commonDir])]
}

/** The person's choice for all agents. */
type Chosen = Pick<Settings, 'model' | 'effort'>

/** The agents as this run uses them. */
export interface AgentsAtStart {
  /** `model` and `modelReasoningEffort` start a thread. Null: codex's default. */
  agents: AgentRoster
  profiles: UpdatedProfiles
  /** Models that codex offers; null: not asked. */
  offered: OfferedModels | null
  /** Sentences for the person. */
  remarks: readonly string[]
}

/**
 * Applies the person's model and effort to the agents, and updates their profiles. Throws a `UserError` if a person must fix
 * agents or configuration.
 *
 * - `asks`: whether to ask codex which models it offers (up to 10 s). If not, existing profiles keep their models.
 * - `inProfiles`: model and effort for the profiles, without choices for this run alone.
 * - `provider`: its model replaces every other. Its efforts are unknown, so only the person's effort applies.
 */
export async function agentsAtStart(
  world: Pick<World, 'clock' | 'platform' | 'signal'>,
  records: Pick<Records, 'folder' | 'directory'>,
  codex: Pick<ChosenCodex, 'binary' | 'home'>,
  options: {
    /** The agents before the person's choice for all of them. */
    roster: AgentRoster
    settings: Chosen
    inProfiles: Chosen
    overrides: readonly string[]
    asks: boolean
    provider?: Provider | undefined
    /** Whether codex runs the rounds: the package's agents name its models. */
    isCodex: boolean
  },
): Promise<AgentsAtStart> {
  const { roster: agents, settings, inProfiles, overrides, asks, provider, isCodex } = options
  const offered =
    asks && isCodex && provider === undefined ? await modelsAtHand(world, records, codex, overrides) : null
  // Other engines have neither codex's models nor its profiles.
  const ofCodex = allOf(agents).filter(({ engine }) => engine === undefined)
  const { agents: fitted, remark } = asChosen(ofCodex, offered, settings)
  const profiled = asChosen(inAllProjects(ofCodex), offered, inProfiles)
  const keepModels = offered === null && inProfiles.model === null
  const profiles = await profilesAtStart(codex.home, profiled.agents, { keepModels })
  const byName = new Map(fitted.map(agent => [agent.name, agent]))
  const asItRuns = (agent: Agent): Agent => {
    if (agent.engine !== undefined) return agent
    if (provider !== undefined) return { ...agent, model: provider.model, modelReasoningEffort: settings.effort }
    if (!isCodex) return { ...agent, model: settings.model, modelReasoningEffort: settings.effort }
    const byHand = profiles.byHand.get(agent.name)
    return byHand === undefined ? (byName.get(agent.name) ?? agent) : asSet({ ...agent, ...byHand }, settings)
  }
  return {
    agents: { main: agents.main.map(asItRuns), sub: agents.sub.map(asItRuns), goal: asItRuns(agents.goal) },
    profiles,
    offered,
    remarks: [...(remark === null ? [] : [remark]), ...profiles.remarks],
  }
}

/** Returns the agents with available models, and a remark on the unavailable ones. */
function asChosen(
  agents: readonly Agent[],
  offered: OfferedModels | null,
  chosen: Chosen,
): { agents: Agent[]; remark: string | null } {
  // Keep a model that the person named, even if codex does not list it.
  const isAsked = offered !== null && chosen.model === null
  const { agents: found, remark } = isAsked ? withOfferedModels(agents, offered) : { agents, remark: null }
  return { agents: found.map(agent => asSet(agent, chosen)), remark }
}

function asSet<T extends AgentProfile>(agent: T, { model, effort }: Chosen): T {
  return { ...agent, model: model ?? agent.model, modelReasoningEffort: effort ?? agent.modelReasoningEffort }
}

function allOf({ main, sub, goal }: AgentRoster): Agent[] {
  return [...main, ...sub, goal]
}

/** Asks the run's codex which models it offers, within 10 s. Never rejects because of codex. */
async function modelsAtHand(
  { clock, platform, signal }: Pick<World, 'clock' | 'platform' | 'signal'>,
  { folder, directory }: Pick<Records, 'folder' | 'directory'>,
  { binary, home }: Pick<ChosenCodex, 'binary' | 'home'>,
  overrides: readonly string[],
): Promise<OfferedModels> {
  const choice = { mode: 'workspace-write', network: false, writable: [] } as const
  const firstOnPath = await withoutLsbRelease(folder, platform)
  return await askOfferedModels(
    {
      path: binary.path,
      args: overrides.flatMap(pair => ['-c', pair]),
      env: shieldEnvironment(home.env, directory, choice, firstOnPath).env,
      directory: folder,
      clock,
      platform,
    },
    signal,
  )
}

/**
 * Updates the agents' profiles if codemachine owns codex's home. It writes nothing into a person's home, where no profile is
 * usable then. `keepModels`: as for `updateProfiles`.
 */
async function profilesAtStart(
  home: Pick<CodexHome, 'path' | 'owner'>,
  agents: readonly Agent[],
  { keepModels }: { keepModels: boolean },
): Promise<UpdatedProfiles> {
  if (home.owner === 'person') return { remarks: [], byHand: new Map(), usable: new Set(), unreadable: new Map() }
  return await updateProfiles({
    codexHome: home.path,
    agents: agents.filter(({ enabled }) => enabled),
    without: agents.flatMap(({ name, enabled }) => (enabled ? [] : [name])),
    keepModels,
  })
}

/** Returns the agents that no project made: all projects share the profiles. */
function inAllProjects(agents: readonly Agent[]): readonly Agent[] {
  return agents.filter(({ source }) => source === undefined || source.of === 'person')
}

/**
 * Updates the profiles without a session: after a login into codemachine's own codex home, or when a screen opens. It does
 * not ask codex for its models. Throws a `UserError` if a person must fix agents or configuration.
 */
export async function profilesWithoutStart(
  codexHome: string,
  { settings, agentTables }: { settings: Chosen; agentTables: AgentTables },
): Promise<void> {
  const { roster } = await readRoster(null, agentTables)
  const { agents } = asChosen(inAllProjects(allOf(roster)), null, settings)
  await profilesAtStart({ path: codexHome, owner: 'codemachine' }, agents, { keepModels: settings.model === null })
}

/** Place where an agent can write in every writing sandbox; null: none, in the sandbox `workspace-write`. */
type Reach = 'the work directory' | 'the git directory' | 'a temporary directory' | null

/**
 * Returns whether agents in `directory` can write to a path.
 * @param gitDirectories those of the repository around it, which can be elsewhere
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

/** Returns a warning for records within an agent's reach; null if they are out of reach. */
export function recordsInReach(root: string, reach: Reach): string | null {
  if (reach === null) return null
  return `The records of codemachine (${root}) are inside ${reach}, where the agent can write, so they prove nothing.`
}

/** Returns a warning for a codemachine folder within an agent's reach; null if it is out of reach. */
export function codemachineInReach(packageRoot: string, reach: Reach): string | null {
  if (reach === null) return null
  return `codemachine itself (${packageRoot}) lies inside ${reach}, where the agent can write; install it elsewhere: \`npm pack\` in a checkout of it, then \`npm install --global ./codemachine-cli-*.tgz\``
}

/** Warns of things that the run relies on and agents can write. */
export async function remarksOnReach(
  { env, isDemo }: World,
  { root, folder, directory }: Records,
  codex: CodexBinary,
): Promise<string[]> {
  if (isDemo) return []
  const inReach = recordsInReach(root, await reachOf(folder, directory, env))
  const warnings = [...codex.remarks, ...(inReach === null ? [] : [inReach])]
  if ((await reachOf(codex.path, directory, env)) !== null) {
    warnings.push(`The codex in use (${codex.path}) lies where the agent can write; name another one with --codex-bin.`)
  }
  const own = codemachineInReach(packageRoot, await reachOf(packageRoot, directory, env))
  if (own !== null) warnings.push(own)
  return warnings
}

const SANDBOX_IS_OFF =
  'The sandbox is off: a process that a round starts without its environment (`env -i setsid …`) is'

/** Warns of what the chosen sandbox cannot do, and of what is missing without one. */
export function remarksOnSandbox(
  { sandbox, network }: Pick<Settings, 'sandbox' | 'network'>,
  { platform, controlGroup }: Pick<SandboxCommandsOptions, 'platform' | 'controlGroup'>,
): string[] {
  if (sandbox === 'danger-full-access') {
    const mend = platform === 'linux' ? ' Start codemachine with systemd-run --user --scope to find it.' : ''
    const isFound = 'found by the control group of codemachine, and ended once no round works.'
    const isNotFound = `not found when the round ends, and may keep writing, even after done.${mend}`
    return [`${SANDBOX_IS_OFF} ${controlGroup ? isFound : isNotFound}`]
  }
  return sandbox === 'read-only' && network ? ['--network has no effect in the sandbox read-only.'] : []
}

/**
 * Returns whether codex warns about an unused project configuration that does not exist. Its own sandbox created only empty
 * folders there (`SandboxTraces.isTrace`).
 */
export function isTraceWarning(warning: string, isTrace: (path: string) => boolean): boolean {
  if (!warning.startsWith('Project-local config')) return false
  const listed = [...warning.matchAll(/^\s*\d+\. (.+)$/gm)].map(([, path = '']) => path.trim())
  return listed.length > 0 && listed.every(path => basename(path) === '.codex' && isTrace(path))
}

/** Efforts of codex's own models. Other models may have more. */
const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', 'ultra']

/** Warns of proof settings that may not work as meant, one sentence each, before the work begins. */
export async function remarksOnProof(
  git: PrivateGit,
  { gates, reviewer }: { gates: readonly Gate[]; reviewer: ReviewTerms },
): Promise<string[]> {
  const unmatched = await unmatchedGlobs(
    git,
    gates.flatMap(({ protect }) => protect),
  )
  const remarks = gates.flatMap(({ name, run, protect }) =>
    protect
      .filter(glob => unmatched.has(glob) && !ownFilesOf(run).includes(glob))
      .map(glob => `gate ${name}: protect "${glob}" matches no file.`),
  )
  const { effort } = reviewer
  if (effort === null || EFFORTS.includes(effort)) return remarks
  return [...remarks, `reviewer.effort is "${effort}", but no model of codex has this effort; reviews may fail.`]
}

/** Returns whether codex warns of missing sandbox parts on this machine that it can do without. */
export function isAboutSandbox(warning: string): boolean {
  return /bubblewrap|bwrap|sandbox prerequisites/i.test(warning)
}

/** Returns how long a round may be silent, run a command, and be offline, in ms. */
export function timesOf(settings: Settings): Pick<EngineSetup, 'silenceMs' | 'commandMs' | 'networkMs'> {
  return {
    silenceMs: settings.silenceMinutes * 60_000,
    commandMs: settings.commandMinutes * 60_000,
    networkMs: networkLimit(settings.maxWait),
  }
}

/** Returns the engines that settings name for the rounds and the roles, each with its place. */
export function enginesNamed({
  settings,
  sources,
  agentTables,
}: Pick<LoadedSettings, 'settings' | 'sources' | 'agentTables'>): { name: string; place: string }[] {
  const { engine, fallback, reviewer, prove, change, team } = settings
  const wanted = {
    engine,
    'reviewer.engine': reviewer.engine,
    'prove.authorEngine': prove.authorEngine,
    'prove.controlEngine': prove.controlEngine,
    'change.plannerEngine': change.plannerEngine,
    'change.executorEngine': change.executorEngine,
    'team.plannerEngine': team.plannerEngine,
    'team.workerEngine': team.workerEngine,
    'team.reviewerEngine': team.reviewerEngine,
  }
  const ofRoles = Object.entries(wanted).flatMap(([key, name]) =>
    name === null ? [] : [{ name, place: sources[key as keyof typeof wanted].place }],
  )
  const ofAgents = agentTables.tables.flatMap(({ engine: name, places }) =>
    name === undefined ? [] : [{ name, place: places.engine ?? '' }],
  )
  return [...ofRoles, ...fallback.map(name => ({ name, place: sources.fallback.place })), ...ofAgents]
}

/**
 * Opens the engines of a run: all built-in kinds, and other makers' engines from the settings. Throws a `UserError` with the
 * place of an unknown name.
 */
export async function openEngines(
  { engines, home, env }: Pick<World, 'engines' | 'home' | 'env'>,
  { settings, sources, engines: written, agentTables }: Omit<LoadedSettings, 'providers'>,
  { root }: Pick<Records, 'root'>,
  setup: EngineSetup,
): Promise<Engines> {
  const external = [...written.values()].filter(({ name }) => !engines.has(name))
  const kinds = [...engines.values(), ...external.map(each => acpEngine(externalEngine(each, { home, root, env })))]
  const opened = await Promise.all(kinds.map(async kind => [kind.name, await kind.open(setup)] as const))
  const run = new Engines(Object.fromEntries(opened), settings.engine)
  for (const { name, place } of enginesNamed({ settings, sources, agentTables })) run.check(name, place)
  return run
}
