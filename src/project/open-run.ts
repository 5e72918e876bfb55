import { realpath } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { inboxFolder } from '../agents/inbox.ts'
import { readRoster } from '../agents/roster.ts'
import { Cleanup, UserError } from '../base/errors.ts'
import { packageFile } from '../base/package.ts'
import { truncate } from '../base/text.ts'
import type { Engines } from '../core/engine.ts'
import type { RunOverrides } from '../core/events/events.ts'
import type { Gate } from '../core/events/outcome.ts'
import type { ModelPrice } from '../core/rules/cost.ts'
import type { AgentRoster } from '../core/shapes/agent.ts'
import type { Hook } from '../core/shapes/hook.ts'
import type { Providers } from '../core/shapes/provider.ts'
import type { SessionSecrets } from '../core/shapes/secrets.ts'
import type { Shell } from '../core/shapes/shell.ts'
import type { View } from '../core/state/state.ts'
import type { TemplateKind } from '../core/template.ts'
import {
  openSandboxCommands,
  type SandboxCommands,
  type SandboxCommandsOptions,
} from '../engines/codex/sandbox-commands.ts'
import { openShell } from '../engines/codex/shell/open-shell.ts'
import { forPerson } from '../platform/control-group.ts'
import { MARK_VARIABLE, makeMark } from '../platform/end-processes.ts'
import type { WritableByAgents } from '../platform/files.ts'
import { type KeptAwake, keepAwake } from '../platform/keep-awake.ts'
import { type ProcessIdentity, startTimeOf } from '../platform/processes.ts'
import { outputFiles } from '../platform/run-process.ts'
import type { Redactor } from '../secrets/redactor.ts'
import type { LearningRedactor } from '../secrets/secrets.ts'
import { openSecrets } from '../secrets/store.ts'
import { openQueue } from '../session/records/queue.ts'
import { openRecords, type Records, refuseCopy } from '../session/records/records.ts'
import { takeRunLock } from '../session/records/run-lock.ts'
import type { Bell } from '../tell/notify/channels.ts'
import { type Notifier, openNotifier, sendTest } from '../tell/notify/notifier.ts'
import { openTelemetry } from '../tell/opentelemetry/telemetry.ts'
import { type FingerprintOptions, type Fingerprints, openFingerprints } from '../workspace/fingerprint/fingerprint.ts'
import { writableIn } from '../workspace/git/find-git.ts'
import { findRepository, type PersonRepository } from '../workspace/git/git.ts'
import { memoryRoot } from '../workspace/memory/memory-paths.ts'
import { openSandboxTraces, type SandboxTraces } from '../workspace/sandbox-traces.ts'
import { openSavepoints, type SavepointWriter } from '../workspace/savepoints/savepoint-writer.ts'
import { repairAfterKill } from './after-kill.ts'
import {
  type AgentsAtStart,
  agentsAtStart,
  chooseCodex,
  codexOptionsOf,
  openEngines,
  providersOf,
  remarksOnReach,
  remarksOnSandbox,
  timesOf,
  writableGit,
} from './engine-of-project.ts'
import { agentFolders } from './environment/agent-folders.ts'
import { holdFiles } from './hold-files.ts'
import type { RunOptions } from './library.ts'
import { openSessionSecrets } from './secrets/session-secrets.ts'
import { runOverridesOf } from './session-terms.ts'
import type { LoadedGates } from './settings/gates.ts'
import { loadSettings, type SettingSources } from './settings/load.ts'
import type { Settings } from './settings/schema.ts'
import { type ProjectTests, withProjectTests } from './start/project-tests.ts'
import { LiveSettings, readToFollow } from './watch/live-settings.ts'
import { directoryOf, type World } from './world.ts'

/** Receivers of a run's messages that are not events. Left out: the messages are dropped. */
export interface RunListeners {
  /** Rings if the settings ask for a bell; null: no terminal to ring. */
  bell?: Bell | null
  /** Receives a sentence for each failure that no session can report any more. */
  onProblem?: ((sentence: string) => void) | undefined
  /** Receives each debug line, without secrets, if `logging.level` is `debug`. */
  onDebug?: ((line: string) => void) | undefined
}

/** Everything that a run needs, opened once for all of its sessions. Disposing of it ends every process. */
export interface Run extends AsyncDisposable {
  /** Settings at the beginning of the run. */
  settings: Settings
  /** Settings that follow their files while the run lasts. */
  live: LiveSettings
  /** Place of each setting. */
  sources: SettingSources
  records: Records
  repository: PersonRepository | null
  fingerprints: Fingerprints
  engines: Engines
  providers: Providers
  /** Prices of models. */
  prices: readonly ModelPrice[]
  /** Runs commands in the sandbox of the rounds, outside of a round. */
  commands: SandboxCommands
  /** Options of `commands`. */
  commandOptions: SandboxCommandsOptions
  /** Opens the shell for agents' commands with secrets; it starts nothing before the first command. */
  openShell(): Shell
  /** Secrets of the project. */
  secrets: SessionSecrets
  /** Agents as they run, without the findings of `askForModels`. */
  agents: AgentRoster
  /** Returns the agents with the models that codex offers; asks once. */
  askForModels(): Promise<AgentsAtStart>
  savepoints: SavepointWriter
  /** Files that codex's sandbox leaves in folders. */
  traces: SandboxTraces
  /** Gates that a new session must pass before done. */
  gates: readonly Gate[]
  /** Commands that run at moments of each session. */
  hooks: readonly Hook[]
  /** Folders that agents can write: the person's programs never come from there. */
  where: WritableByAgents
  /** Command that `--verify auto` added; null: it was not typed. */
  tests: ProjectTests | null
  /** A sentence why no session can run with these gates; null: one can. */
  gateRefusal: string | null
  /** Whether a new session ends once its contract is accepted. */
  contractOnly: boolean
  /** `key=value` pairs for codex. */
  overrides: readonly string[]
  /** Options that were given for a new session now. */
  said: RunOverrides
  /** Knows the secrets of the person and the project. */
  redactor: LearningRedactor
  /**
   * Keeps the machine awake from the first call on while the run is open. Resolves once it is known whether that works.
   * Null: the person does not want it.
   */
  keepAwake(): Promise<KeptAwake> | null
  /** Views for those who are not at the screen: notifications, and OpenTelemetry. */
  remoteViews: readonly View[]
  /** Sentences for the person; the next session reports them. */
  remarks: string[]
  /** Command lines of ended leftover processes of rounds; the session reports them. */
  endedCommands: string[]
}

/**
 * Opens a run: settings, records, the lock, codex. Throws a `UserError` for problems that a person must fix.
 * @param begins template of a session that begins at once, so that codex starts meanwhile; null: none
 */
export async function openRun(
  world: World,
  typed: RunOptions,
  listeners: RunListeners = {},
  begins: { template?: string } | null = null,
): Promise<Run> {
  await using opened = new Cleanup()
  const { env } = world
  const records = await openRecords({ ...world, directory: directoryOf(world, typed) })
  const { verify, tests } = await withProjectTests(records.directory, typed.verify ?? [])
  const options = { ...typed, verify }
  const { loaded, ...followed } = await settingsToFollow(world, records.directory, options)
  const { sources, lasting, gates, gateRefusal } = loaded
  const codex = await chooseCodex(world, records, loaded)
  const { settings, providers, provider } = providersOf(world, loaded)
  refuseSecretGates(loaded, { redactor: codex.redactor, env })
  const remarks: string[] = []
  const remark = (text: string) => void remarks.push(text)
  const { repository } = opened.use(await holdWorkDirectory(world, records, remark))
  // It waits for git while the rest opens. The code that awaits it throws its error.
  const looking = fingerprintOptions(world, records, remark, loaded.settings).then(openFingerprints)
  const lookedAt = looking.catch(() => {})
  opened.defer(() => lookedAt)
  const writable = writableGit(records.directory, repository)
  const traces = opened.use(await openSandboxTraces(sharedFolders(records.directory, writable), records.traces))
  const overrides = options.config ?? []
  const endedCommands: string[] = []
  const said = { settings, overrides, onDebug: listeners.onDebug, onWarning: remark, endedCommands }
  const codexOptions = {
    ...(await codexOptionsOf(world, records, codex, said)),
    directory: records.directory,
    sandbox: { mode: settings.sandbox, network: settings.network, writable },
  }
  const { owner } = codexOptions
  const { roster, remarks: passedOver } = await readRoster(records.directory, loaded.agentTables)
  const chosen = { roster, settings, inProfiles: lasting, overrides, provider, isCodex: settings.engine === 'codex' }
  const atStart = (asks: boolean) => agentsAtStart(world, records, codex, { ...chosen, asks })
  const { agents, remarks: ofAgents } = await atStart(false)
  remarks.push(...passedOver, ...ofAgents)
  const commands = opened.use(openSandboxCommands(codexOptions))
  const engines = await openEngines(world, loaded, records, {
    ...codexOptions,
    providers: providers.byName,
    ...timesOf(settings),
  })
  opened.defer(() => engines.close())
  if (begins !== null) warmFor(engines, records.templates.get(begins.template ?? world.modes.usual))
  const fingerprints = await looking
  const savepoints = opened.use(openSavepoints(fingerprints, { onWarning: remark }))
  remarks.push(...(await remarksOnReach(world, records, codex.binary)), ...remarksOnSandbox(settings, codexOptions))
  const where = await writableIn(records.directory, env, await agentFolders(world))
  const notices = { where, records, owner }
  const { notifier, remoteViews } = await openRemoteViews(world, settings, listeners, notices, remarks, opened)
  const held = opened.move()
  return {
    settings,
    live: new LiveSettings({ ...followed, loaded, settings, roster, notifier, onRemark: remark }),
    sources,
    records,
    repository,
    fingerprints,
    engines,
    providers,
    prices: loaded.prices,
    commands,
    commandOptions: codexOptions,
    openShell: () => openShell({ ...codexOptions, temporary: records.temporary }),
    secrets: openSessionSecrets(records, { ...codex, writable }),
    agents,
    askForModels: once(() => atStart(true)),
    savepoints,
    traces,
    gates,
    hooks: loaded.hooks,
    where,
    tests,
    gateRefusal,
    contractOnly: options.contractOnly === true,
    overrides,
    said: runOverridesOf(settings, sources, verify),
    redactor: codex.redactor,
    keepAwake: once(() => (settings.keepAwake ? holdAwake(world, where, held) : null)),
    remoteViews,
    remarks,
    endedCommands,
    [Symbol.asyncDispose]: () => held[Symbol.asyncDispose](),
  }
}

/** Calls `make` once; later calls return the first result. */
function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** Starts codex early for a session of this template, unless its own commands may run long before its first round. */
export function warmFor(engines: Engines, kind: TemplateKind | undefined): void {
  if (kind?.hasOwnCommand !== true) engines.warm()
}

/** Returns the folders where commands of several agents may write at once. */
function sharedFolders(directory: string, writable: readonly string[]): string[] {
  return [directory, ...writable, join(directory, inboxFolder), join(directory, memoryRoot, 'kb')]
}

/** Returns the settings of a run in `directory` and the place of each: all layers, with `options` on top. */
export async function settingsOf(
  world: Pick<World, 'env' | 'configHome'>,
  directory: string,
  options: RunOptions,
  { withoutProject = false }: { withoutProject?: boolean } = {},
): ReturnType<typeof loadSettings> {
  const { default: defaults } = await import(pathToFileURL(packageFile('settings.js')).href)
  return await loadSettings({
    directory,
    env: world.env,
    configHome: world.configHome,
    defaults,
    flags: {
      rounds: options.rounds,
      maxTime: asDuration(options.maxTimeMs),
      maxTokens: options.maxTokens,
      maxCost: options.maxCost,
      maxUsage: options.maxUsage,
      maxWait: asDuration(options.maxWaitMs),
      model: options.model,
      effort: options.effort,
      provider: options.provider,
      engine: options.engine,
      fallback: options.fallback?.join(','),
      sandbox: options.sandbox,
      network: options.network,
      keepAwake: options.keepAwake,
      publish: options.publish,
      review: options.review,
      'prove.on': options.prove,
      'prove.require': options.requireProof,
      codexBin: options.codexBin,
    },
    verify: options.verify,
    withoutProject,
  })
}

/** Reads the same settings, to be followed while the run lasts. */
async function settingsToFollow(world: World, directory: string, options: RunOptions): ReturnType<typeof readToFollow> {
  return await readToFollow(world.configHome, directory, how => settingsOf(world, directory, options, how))
}

/** Formats a duration as settings do. */
function asDuration(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : `${ms / 1000}s`
}

/** Begins to keep the machine awake while the run is open. */
function holdAwake({ platform, env, pid, clock }: World, where: WritableByAgents, run: Cleanup): Promise<KeptAwake> {
  const closing = new AbortController()
  const kept = keepAwake({ platform, env, pid, clock, where, signal: closing.signal })
  run.defer(async () => {
    closing.abort()
    await (await kept)[Symbol.asyncDispose]()
  })
  return kept
}

/** Where and for whom a notification command runs. */
interface NoticesPlace {
  where: WritableByAgents
  /** Their key and this process: the command's mark holds both. */
  records: Records
  owner: ProcessIdentity
}

/**
 * Opens the ways to notify an absent person, and the export to OpenTelemetry. A failure after the session's end is reported
 * when the run closes. The next codemachine there ends a command that outlives this process.
 */
async function openRemoteViews(
  world: World,
  { notify }: Settings,
  { bell = null, onProblem }: RunListeners,
  { where, records, owner }: NoticesPlace,
  remarks: string[],
  opened: Cleanup,
): Promise<{ notifier: Notifier; remoteViews: readonly View[] }> {
  const mark = makeMark({ key: records.key, owner, n: NO_APP_SERVER })
  const problems = new Set<string>()
  const said = (sentence: string) => {
    problems.add(sentence)
    remarks.push(sentence)
  }
  const env = forPerson({ ...world.env, [MARK_VARIABLE]: mark })
  const notifier = openNotifier(notify, { ...world, bell, env, where, onProblem: said })
  const length = async () => (await openQueue(records.queue).list()).prompts.length
  const telemetry = await openTelemetry({ ...world, queue: { of: 'project', length }, onProblem: said })
  opened.defer(async () => {
    await Promise.all([notifier.close(), telemetry?.close()])
    for (const sentence of remarks) if (problems.has(sentence)) onProblem?.(sentence)
  })
  return { notifier, remoteViews: telemetry === null ? [notifier] : [notifier, telemetry] }
}

/**
 * Sends a sample through each notification way in the settings, and returns each result; none if they name none. `bell`: as
 * for `RunListeners`.
 */
export async function sendSamples(world: World, wanted: string, bell: Bell | null): ReturnType<typeof sendTest> {
  const { directory } = await openRecords({ ...world, directory: wanted })
  const { settings } = await settingsOf(world, directory, {})
  const where = await writableIn(directory, world.env, await agentFolders(world))
  return await sendTest(settings.notify, { ...world, bell, where, host: hostname(), directory })
}

/** App-servers count from 0, and a search for processes of an ended one must not match this. */
const NO_APP_SERVER = 999_999_999

/** A work directory that is locked for this process until this is disposed of. */
interface HeldWorkDirectory extends AsyncDisposable {
  repository: PersonRepository | null
}

/** The same, with its fingerprints. */
export interface OpenWorkDirectory extends HeldWorkDirectory {
  fingerprints: Fingerprints
}

/**
 * Takes the lock of the run, and ends and repairs what an interrupted run left. Throws a `UserError` with exit code 6 while
 * another one runs here, or on some of the same files.
 * @param onRemark receives sentences for the person
 * @param hint says what they can do while another one runs here; left out: queue a goal
 */
export async function holdWorkDirectory(
  world: World,
  records: Records,
  onRemark: (remark: string) => void,
  hint?: string,
): Promise<HeldWorkDirectory> {
  await using opened = new Cleanup()
  const { platform, pid, clock } = world
  const now = new Date(clock.now())
  const { directory } = records
  refuseCopy(records)
  const lock = opened.use(
    await takeRunLock(records.lock, { platform, pid, now, directory, ...(hint === undefined ? {} : { hint }) }),
  )
  opened.use(await holdFiles(world, records, lock.holder))
  await repairAfterKill(world, records, lock.killed, onRemark)
  const repository = await findRepository(directory)
  const held = opened.move()
  return { repository, [Symbol.asyncDispose]: () => held[Symbol.asyncDispose]() }
}

/**
 * Holds a work directory, and opens its fingerprints.
 * @param onRemark as above; also called later
 */
export async function openWorkDirectory(
  world: World,
  records: Records,
  onRemark: (remark: string) => void,
  { hint }: { hint?: string } = {},
): Promise<OpenWorkDirectory> {
  await using opened = new Cleanup()
  const { repository } = opened.use(await holdWorkDirectory(world, records, onRemark, hint))
  const fingerprints = await openFingerprints(await fingerprintOptions(world, records, onRemark))
  const held = opened.move()
  return { repository, fingerprints, [Symbol.asyncDispose]: () => held[Symbol.asyncDispose]() }
}

/** Returns the options of a work directory's fingerprints. `known`: values of settings that are already read. */
export async function fingerprintOptions(
  world: World,
  { git, directory, root, key, secrets }: Records,
  onWarning: (warning: string) => void,
  known: Pick<FingerprintOptions, 'maxFileSize'> = {},
): Promise<FingerprintOptions> {
  const { env, home, platform, pid } = world
  const owner = { pid, startTime: await startTimeOf(pid, platform) }
  return {
    gitDir: git,
    directory,
    repository: await findRepository(directory),
    // The mark lets a later run find leftovers of a killed process.
    env: { ...env, [MARK_VARIABLE]: makeMark({ key, owner, n: NO_APP_SERVER }) },
    // Output of codemachine in the work directory is no agent's work.
    leaveOut: [root, ...(await outputFiles(platform))],
    codexHome: await realOrSame(resolve(env.CODEX_HOME || join(home, '.codex'))),
    ...(known.maxFileSize === undefined ? await maxFileSizeOf(world, directory) : known),
    hidden: openSecrets(secrets).hidden,
    onWarning,
  }
}

/** Returns the setting; nothing if the settings are unreadable, which must not block a rewind. */
async function maxFileSizeOf(world: World, directory: string): Promise<Pick<FingerprintOptions, 'maxFileSize'>> {
  try {
    const { settings } = await settingsOf(world, directory, {})
    return { maxFileSize: settings.maxFileSize }
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return {}
  }
}

function realOrSame(path: string): Promise<string> {
  return realpath(path).catch(() => path)
}

/** Hint for commands that do not start a goal. */
export const WAIT_FOR_ITS_END = 'Wait for its end, or stop it with codemachine stop. codemachine status shows its work.'

/**
 * Throws a `UserError` for a gate that holds a secret. Gates are journaled, and run as journaled, with `[secret NAME]`
 * instead of the secret.
 */
export function refuseSecretGates(
  { gates, gatePlaces = new Map() }: Pick<LoadedGates, 'gates'> & Partial<Pick<LoadedGates, 'gatePlaces'>>,
  { redactor, env }: { redactor: Redactor; env: Readonly<NodeJS.ProcessEnv> },
): void {
  for (const gate of gates) {
    const kept = redactor.event(gate)
    const name = secretIn(kept)
    if (name === null) continue
    const place = gatePlaces.get(gate.name) ?? '--verify'
    const isInCommand = kept.run !== gate.run
    const mend = isInCommand && env[name] !== undefined ? `write "$${name}" instead` : 'remove it'
    throw new UserError(
      'CM0904',
      `${place}: ${isInCommand ? 'this command' : 'this gate'} contains a secret (${name}), which codemachine never stores; ${mend}.`,
    )
  }
}

/** Throws a `UserError` for gates of a resumed session that lost a secret: they would run without it. */
export function refuseHiddenGates(id: string, gates: readonly Gate[]): void {
  for (const gate of gates) {
    const name = secretIn(gate)
    if (name === null) continue
    throw new UserError(
      'CM0904',
      `${id} has a gate with a secret (${truncate(gate.name, 60)}), which codemachine does not store. Write "$${name}" instead in the file of the gate, and add --reread-gates.`,
    )
  }
}

function secretIn(gate: Gate): string | null {
  return JSON.stringify(gate).match(/\[secret ([\w .:-]+)\]/)?.[1] ?? null
}
