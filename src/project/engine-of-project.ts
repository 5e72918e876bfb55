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
import { type EndOptions, endLeftovers, endUnfinishedSandboxes } from '../platform/end-processes.ts'
import { liesIn, writableByAgents } from '../platform/files.ts'
import { startTimeOf } from '../platform/processes.ts'
import { type LearningRedactor, openRedactor } from '../secrets/secrets.ts'
import type { Records } from '../session/records/records.ts'
import { formatCount } from '../tell/words/numbers.ts'
import type { KilledWrite } from '../workspace/files/write-all.ts'
import { writableIn } from '../workspace/git/find-git.ts'
import type { PersonRepository } from '../workspace/git/git.ts'
import type { PrivateGit } from '../workspace/git/private-git.ts'
import type { RestoreReport } from '../workspace/guard/repository-guard.ts'
import { unmatchedGlobs } from '../workspace/protected-files.ts'
import type { NotedRewind } from '../workspace/savepoints/rewind.ts'
import { agentFolders } from './environment/agent-folders.ts'
import { runsNow } from './hold-files.ts'
import { externalEngine } from './settings/engines.ts'
import type { LoadedSettings } from './settings/load.ts'
import type { Settings } from './settings/schema.ts'
import type { World } from './world.ts'

/** A codex to be run, and what is kept from it. */
export interface ChosenCodex {
  binary: CodexBinary
  home: CodexHome
  redactor: LearningRedactor
}

/**
 * The codex that runs in a work directory, for every command: as `findCodex` has it. `flag`: what `--codex-bin` or the settings
 * name, null for what `CODEX_BIN` does. `makesCopy`: for what opens the records.
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

/** The codex that a person has named, but for one in the environment, which is named as that. */
export function namedCodex({ settings, sources }: Pick<LoadedSettings, 'settings' | 'sources'>): string | null {
  return sources.codexBin.layer === 'environment' ? null : settings.codexBin
}

/** The codex, its home, and the person's secrets, as the settings have it; a `UserError` if there is no codex. */
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

/** Of which providers a run is. */
interface ProvidersOfRun {
  providers: Providers
  /** That of its rounds; undefined: what codex is configured with. */
  provider: Provider | undefined
  /** With the model that the rounds have there. */
  settings: Settings
}

/** The providers of a run. Throws a `UserError` if that of its rounds is to have no model. */
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

/** What a person wants of the codex that is run. */
interface CodexSaid {
  settings: Settings
  /** `key=value` pairs that the person hands to it. */
  overrides: readonly string[]
  /** Told each line for debugging, without secrets, where `logging.level` is `debug`. */
  onDebug?: ((line: string) => void) | undefined
  /** Told a sentence that a person should know, without secrets: what was left running and cannot be ended. */
  onWarning(sentence: string): void
  /** Gets the command lines of what rounds had left running and was ended, without secrets. */
  endedCommands?: string[]
}

/** With what codex is run for a work directory. */
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
    // In a sandbox nothing outlives its round.
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
 * Before 0.160 login shells take the variables that commands are not to see from codex's snapshot of a shell (measured
 * with 0.157 and 0.160).
 */
const WITHOUT_SNAPSHOT = 'features.shell_snapshot=false'

/** What rounds and gates may write beside the work directory. */
export function writableGit(directory: string, repository: PersonRepository | null): string[] {
  // Where there is no repository yet, `git init` works only if codex does not close `.git` (measured).
  if (repository === null) return [join(directory, '.git')]
  return [...new Set([repository.gitDir, repository.commonDir])]
}

/** What the person has set for all agents. */
type Chosen = Pick<Settings, 'model' | 'effort'>

/** The agents as they run here. */
export interface AgentsAtStart {
  /** `model` and `modelReasoningEffort`: what a thread is started with. Null: codex's default. */
  agents: AgentRoster
  profiles: UpdatedProfiles
  /** What codex said of its models; null if it was not asked. */
  offered: OfferedModels | null
  /** Sentences for the person. */
  remarks: readonly string[]
}

/**
 * Lays the person's model and effort over those of the agents, and brings their profiles up to date. `asks`: whether
 * codex is asked which models it offers, which takes up to 10 s; without it the models in profiles that are there stay.
 * `inProfiles`: what the profiles get, for what is said for this run alone is not for the next one to find. `provider`: whose
 * model they have in the place of any other; nobody knows what effort it takes, so it gets that of the person alone.
 * Throws a `UserError` for agents or a configuration that a person has to mend.
 */
export async function agentsAtStart(
  world: Pick<World, 'clock' | 'platform' | 'signal'>,
  records: Pick<Records, 'folder' | 'directory'>,
  codex: Pick<ChosenCodex, 'binary' | 'home'>,
  options: {
    /** As they are without the person's choice for all of them. */
    roster: AgentRoster
    settings: Chosen
    inProfiles: Chosen
    overrides: readonly string[]
    asks: boolean
    provider?: Provider | undefined
    /** Whether the rounds run on codex, whose models the agents of the package name. */
    isCodex: boolean
  },
): Promise<AgentsAtStart> {
  const { roster: agents, settings, inProfiles, overrides, asks, provider, isCodex } = options
  const offered =
    asks && isCodex && provider === undefined ? await modelsAtHand(world, records, codex, overrides) : null
  // Another engine has neither codex's models nor its profiles.
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

/** The agents with the models that they can have, and what there is to say of those that they cannot. */
function asChosen(
  agents: readonly Agent[],
  offered: OfferedModels | null,
  chosen: Chosen,
): { agents: Agent[]; remark: string | null } {
  // A model that the person has named is theirs, whatever codex lists.
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

/** Asks the codex of a run which models it offers, in at most 10 s. Never rejects for what codex does. */
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
 * Brings the agents' profiles up to date, where codex's home is codemachine's own; writes nothing into a person's home, in
 * which no profile is usable then. `keepModels`: as for `updateProfiles`.
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

/** Those that a project has not made: profiles lie where all projects find them. */
function inAllProjects(agents: readonly Agent[]): readonly Agent[] {
  return agents.filter(({ source }) => source === undefined || source.of === 'person')
}

/**
 * The same where no session starts: for a home of codex's, codemachine's own, that has just got a login, or that a screen opens with.
 * Codex is not asked for its models. Throws a `UserError` for agents or a configuration that a person has to mend.
 */
export async function profilesWithoutStart(
  codexHome: string,
  { settings, agentTables }: { settings: Chosen; agentTables: AgentTables },
): Promise<void> {
  const { roster } = await readRoster(null, agentTables)
  const { agents } = asChosen(inAllProjects(allOf(roster)), null, settings)
  await profilesAtStart({ path: codexHome, owner: 'codemachine' }, agents, { keepModels: settings.model === null })
}

/** Where an agent can write in every sandbox that may write; null: it cannot, in the sandbox `workspace-write`. */
type Reach = 'the work directory' | 'the git directory' | 'a temporary directory' | null

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
  return `The records of codemachine (${root}) are inside ${reach}, where the agent can write, so they prove nothing.`
}

/** What that means for the folder of codemachine itself, as a sentence; null if it is out of reach. */
export function codemachineInReach(packageRoot: string, reach: Reach): string | null {
  if (reach === null) return null
  return `codemachine itself (${packageRoot}) lies inside ${reach}, where the agent can write; install it elsewhere: \`npm pack\` in a checkout of it, then \`npm install --global ./codemachine-cli-*.tgz\``
}

/** Ends what a codemachine that was killed left running here, and says so. */
export async function endWhatWasLeft(world: World, records: Records): Promise<string[]> {
  const { ended, left } = await endLeftovers(records.key, endOptions(world))
  return [
    ...ended.map(each => `Ended what an earlier run had left running: ${named(each)}.`),
    ...left.map(each => `An earlier run left this running, and codemachine cannot end it: ${named(each)}.`),
  ]
}

/** Ends what codex has left here of sandboxes when codemachine was killed: no work of an agent, so nobody needs to know of it. */
export async function endSandboxesLeft(world: World, { directory }: Pick<Records, 'directory'>): Promise<void> {
  await endUnfinishedSandboxes(directory, endOptions(world))
}

function endOptions({ clock, platform, pid }: World): EndOptions {
  return { clock, platform, self: pid, graceMs: 2_000 }
}

const COMMAND_CHARS = 60

/** A command line may be very long. */
function named({ command, pid }: { command: string; pid: number }): string {
  const [program = '', ...rest] = command.split(' ')
  const line = [basename(program), ...rest].join(' ')
  return `${line.length <= COMMAND_CHARS ? line : basename(program)} (${pid})`
}

/** A sentence for what rounds of a run that was cut off had changed in the repository, and for what stays changed. */
export function describeRestored(found: RestoreReport | null): string[] {
  if (found === null) return []
  const { restored, setAside, problems } = found
  if (restored.length === 0) return [...problems]
  const kept = setAside === null ? '' : ` The files found there are saved in ${setAside}.`
  const what = restored.join(', ')
  return [
    `An earlier run was cut off in a round. codemachine restored what it had changed: ${what}.${kept}`,
    ...problems,
  ]
}

/** A sentence for a set of files of which a kill had left a part. */
export function describeKilledWrite(found: KilledWrite | null): string[] {
  if (found === null) return []
  const { end, paths } = found
  const [first = '', ...others] = paths
  const files = others.length === 0 ? first : `${formatCount(paths.length, 'file')} (${first}, …)`
  const now = end === 'written' ? 'All of it is written.' : 'The earlier files are restored.'
  return [`An earlier run was cut off while it wrote ${files}. ${now}`]
}

/** A sentence for a rewind that a kill had cut off. */
export function describeKilledRewind(found: NotedRewind | null): string[] {
  if (found === null) return []
  const { to, undo } = found
  return [
    `A rewind to ${to} was cut off, so some files may be as before it. To finish it: codemachine rewind ${to}. To undo it: codemachine rewind ${undo}`,
  ]
}

/** What agents can write and the run relies on. */
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

/** What the sandbox that was chosen cannot do, and what without one cannot be done. */
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
 * Whether codex warns that it does not use the configuration of a project where there is none, only the empty folders
 * that its own sandbox lays there (`SandboxTraces.isTrace`).
 */
export function isTraceWarning(warning: string, isTrace: (path: string) => boolean): boolean {
  if (!warning.startsWith('Project-local config')) return false
  const listed = [...warning.matchAll(/^\s*\d+\. (.+)$/gm)].map(([, path = '']) => path.trim())
  return listed.length > 0 && listed.every(path => basename(path) === '.codex' && isTrace(path))
}

/** The efforts of codex's own models. Those of others may have more. */
const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', 'ultra']

/** What of the proof will not work as it may be meant, a sentence each: else it shows after all the work. */
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

/** Whether codex warns of what its sandbox lacks on this machine, and makes do with. */
export function isAboutSandbox(warning: string): boolean {
  return /bubblewrap|bwrap|sandbox prerequisites/i.test(warning)
}

/** How long a round may be silent, run a command, and be without a network, ms. */
export function timesOf(settings: Settings): Pick<EngineSetup, 'silenceMs' | 'commandMs' | 'networkMs'> {
  return {
    silenceMs: settings.silenceMinutes * 60_000,
    commandMs: settings.commandMinutes * 60_000,
    networkMs: networkLimit(settings.maxWait),
  }
}

/** The engines that settings name, for the rounds and for each role, with the place of each. */
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
 * The engines of a run: all kinds that there are, and those of other makers that the settings know. Throws a `UserError` with the
 * place for a name that is none of them.
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
