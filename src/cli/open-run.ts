import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Agents } from '../agents/agent.ts'
import { inboxFolder } from '../agents/inbox.ts'
import { Cleanup } from '../base/cleanup.ts'
import { packageFile } from '../base/package-root.ts'
import type { Redactor } from '../base/redactor.ts'
import { capabilitiesOf } from '../codex/codex-version.ts'
import { CodexEngine } from '../engines/codex-engine.ts'
import { openSandboxCommands, type SandboxCommands } from '../engines/sandbox-commands.ts'
import type { KeptAwake } from '../platform/keep-awake.ts'
import { writableByAgents } from '../platform/writable-by-agents.ts'
import type { Gate } from '../session/gate.ts'
import type { SessionLimits } from '../session/limits.ts'
import { openRecords, type Records } from '../session/records.ts'
import type { Said } from '../session/said.ts'
import type { View } from '../session/view.ts'
import { limitsOf } from '../settings/limits.ts'
import { loadSettings, type SettingSources } from '../settings/load-settings.ts'
import type { Settings } from '../settings/schema.ts'
import type { Fingerprints } from '../workspace/fingerprint.ts'
import { memoryHome } from '../workspace/memory-home.ts'
import type { PersonRepository } from '../workspace/person-repository.ts'
import { openSandboxTraces, type SandboxTraces } from '../workspace/sandbox-traces.ts'
import { openSavepoints, type Savepoints } from '../workspace/savepoints.ts'
import { type AgentsAtStart, agentsAtStart } from './agents-at-start.ts'
import { chooseCodex, codexOptionsOf, writableGit } from './codex-options.ts'
import type { CliContext } from './context.ts'
import type { RunFlags } from './flags.ts'
import { holdAwake } from './hold-awake.ts'
import { openNotices } from './open-notices.ts'
import { openWorkDirectory } from './open-work-directory.ts'
import { remarksOnReach, remarksOnSandbox } from './remarks.ts'
import { saidOf } from './said.ts'
import { refuseSecretGates } from './secret-gates.ts'

/** All that a run stands on: opened once, for one session after another. Disposing of it ends every process. */
export interface Run extends AsyncDisposable {
  settings: Settings
  /** Where each was written. */
  sources: SettingSources
  records: Records
  repository: PersonRepository | null
  fingerprints: Fingerprints
  engine: CodexEngine
  /** What runs in the sandbox of the rounds without being one. */
  commands: SandboxCommands
  /** As they are run, but for what `askForModels` finds out. */
  agents: Agents
  /** The same with the models that codex offers; it is asked once. */
  askForModels(): Promise<AgentsAtStart>
  savepoints: Savepoints
  /** What codex's sandbox leaves in folders. */
  traces: SandboxTraces
  /** What a new session has to pass before done. */
  gates: readonly Gate[]
  /** Why no session can be run with them, a sentence; null if one can. */
  gateRefusal: string | null
  /** `key=value` pairs handed to codex. */
  overrides: readonly string[]
  /** What a new session may take, and what was said of it now. */
  limits: SessionLimits
  said: Said
  /** Knows the person's secrets. */
  redactor: Redactor
  /** Whether the machine stays awake, once that is known; null if the person does not want it to be kept so. */
  keptAwake: Promise<KeptAwake> | null
  /** Tells a person who is not looking. */
  notifier: View
  /** What a person should know, a sentence each; the next session takes them. */
  remarks: string[]
}

/** Opens a run: settings, records, the lock, codex. Throws a `UserError` for what a person has to mend. */
export async function openRun(context: CliContext, flags: RunFlags): Promise<Run> {
  await using opened = new Cleanup()
  const { env, platform, home } = context
  const records = await openRecords({ directory: resolve(context.cwd, flags.cd ?? '.'), env, home, platform })
  const loaded = await settingsOf(context, records.directory, flags)
  const { settings, sources, lasting, gates, gateRefusal } = loaded
  const codex = await chooseCodex(context, records, { settings, sources })
  const { redactor } = codex
  refuseSecretGates(loaded, { redactor, env })
  const remarks: string[] = []
  const remark = (text: string) => void remarks.push(text)
  const { repository, fingerprints } = opened.use(await openWorkDirectory(context, records, remark))
  const savepoints = opened.use(openSavepoints(fingerprints, { onWarning: remark }))
  const writable = writableGit(records.directory, repository)
  const traces = opened.use(await openSandboxTraces(sharedFolders(records.directory, writable), records.traces))
  const capabilities = capabilitiesOf(codex.binary.version)
  const overrides = flags.config ?? []
  const codexOptions = {
    ...(await codexOptionsOf(context, records, codex, settings, overrides)),
    directory: records.directory,
    sandbox: {
      mode: settings.sandbox,
      network: settings.network,
      writable,
    },
  }
  const { owner } = codexOptions
  const atStart = (asks: boolean) =>
    agentsAtStart(context, records, codex, { settings, inProfiles: lasting, overrides, asks })
  const { agents, remarks: ofAgents } = await atStart(false)
  remarks.push(...ofAgents)
  let asked: Promise<AgentsAtStart> | null = null
  const commands = opened.use(openSandboxCommands(codexOptions))
  const engine = new CodexEngine({
    ...codexOptions,
    capabilities,
    silenceMs: settings.silenceMinutes * 60_000,
    commandMs: settings.commandMinutes * 60_000,
  })
  opened.defer(() => engine.close())
  remarks.push(
    ...(await remarksOnReach(context, records, codex.binary.path)),
    ...remarksOnSandbox(settings, capabilities),
  )
  const where = writableByAgents(records.directory, env, repository ? [repository.gitDir, repository.commonDir] : [])
  const keptAwake = settings.keepAwake ? holdAwake(context, where, opened) : null
  const notifier = openNotices(context, settings, flags, { where, key: records.key, owner }, remarks, opened)
  const held = opened.move()
  return {
    settings,
    sources,
    records,
    repository,
    fingerprints,
    engine,
    commands,
    agents,
    askForModels: () => {
      asked ??= atStart(true)
      return asked
    },
    savepoints,
    traces,
    gates,
    gateRefusal,
    overrides,
    limits: limitsOf(settings, sources),
    said: saidOf(settings, sources, flags.verify ?? []),
    redactor,
    keptAwake,
    notifier,
    remarks,
    [Symbol.asyncDispose]: () => held[Symbol.asyncDispose](),
  }
}

/** The folders in which commands of more than one agent may write at once. */
function sharedFolders(directory: string, writable: readonly string[]): string[] {
  return [directory, ...writable, join(directory, inboxFolder), join(directory, memoryHome, 'kb')]
}

/** The settings of a run in `directory`, and where each was written: all layers, with `flags` on top. */
export async function settingsOf(
  context: Pick<CliContext, 'env' | 'home'>,
  directory: string,
  flags: RunFlags,
): ReturnType<typeof loadSettings> {
  const { default: defaults } = await import(pathToFileURL(packageFile('settings.js')).href)
  return await loadSettings({
    directory,
    env: context.env,
    home: context.home,
    defaults,
    flags: {
      rounds: flags.rounds,
      maxTime: flags.maxTime,
      maxTokens: flags.maxTokens,
      maxUsage: flags.maxUsage,
      maxWait: flags.maxWait,
      model: flags.model,
      effort: flags.effort,
      sandbox: flags.yolo ? 'danger-full-access' : flags.sandbox,
      network: flags.yolo ?? flags.network,
      // Commander says true where nobody said anything.
      keepAwake: flags.keepAwake === false ? false : undefined,
      review: flags.review,
      codexBin: flags.codexBin,
    },
    verify: flags.verify,
  })
}
