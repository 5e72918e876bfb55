import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { packageFile, packageRoot } from '../base/package-root.ts'
import { version } from '../base/version.ts'
import { chooseCodexHome } from '../codex/codex-home.ts'
import { capabilitiesOf } from '../codex/codex-version.ts'
import { findCodex } from '../codex/find-codex.ts'
import { CodexEngine } from '../engines/codex-engine.ts'
import { outputFiles } from '../platform/output-files.ts'
import { startTimeOf } from '../platform/processes.ts'
import { openRecords, type Records } from '../session/records.ts'
import { takeRunLock } from '../session/run-lock.ts'
import { loadSettings } from '../settings/load-settings.ts'
import type { Settings } from '../settings/schema.ts'
import { type Fingerprints, openFingerprints } from '../workspace/fingerprint.ts'
import { findRepository, type PersonRepository } from '../workspace/person-repository.ts'
import { restoreAfterCrash } from '../workspace/repository-guard.ts'
import { watchSandboxTraces } from '../workspace/sandbox-traces.ts'
import type { CliContext } from './context.ts'
import type { RunFlags } from './flags.ts'
import { describeRestored, endWhatWasLeft, remarksOnReach, remarksOnSandbox } from './remarks.ts'

/** All that a run stands on: opened once, for one session after another. Disposing of it ends every process. */
export interface Run extends AsyncDisposable {
  settings: Settings
  records: Records
  repository: PersonRepository | null
  fingerprints: Fingerprints
  engine: CodexEngine
  /** `key=value` pairs handed to codex. */
  overrides: readonly string[]
  /** What a person should know, a sentence each; the next session takes them. */
  remarks: string[]
}

/** Opens a run: settings, records, the lock, codex. Throws a `UserError` for what a person has to mend. */
export async function openRun(context: CliContext, flags: RunFlags): Promise<Run> {
  await using opened = new AsyncDisposableStack()
  const { env, platform, clock, home } = context
  const records = await openRecords({ directory: resolve(context.cwd, flags.cd ?? '.'), env, home, platform })
  const { settings, sources } = await settingsOf(context, records.directory, flags)
  const codex = await findCodex({
    // From the environment it is named as that.
    flag: sources.codexBin.layer === 'environment' ? null : settings.codexBin,
    env,
    platform,
    arch: context.arch,
    packageRoot,
  })
  const codexHome = await chooseCodexHome({ setting: settings.codexHome, env, home, codemachineHome: records.root })
  opened.use(await takeRunLock(records.lock, { platform, pid: context.pid, now: new Date(clock.now()) }))
  const remarks = await endWhatWasLeft(context, records)
  remarks.push(...describeRestored(await restoreAfterCrash(records.guard)))

  const repository = await findRepository(records.directory)
  const fingerprints = await openFingerprints({
    gitDir: records.git,
    directory: records.directory,
    repository,
    env,
    // What codemachine prints into the work directory is no work of an agent's.
    leaveOut: [records.root, ...(await outputFiles(platform))],
    onWarning: message => void remarks.push(message),
  })
  opened.defer(await watchSandboxTraces(records.directory))
  const capabilities = capabilitiesOf(codex.version)
  const overrides = flags.config ?? []
  const engine = new CodexEngine({
    binary: codex,
    capabilities,
    overrides,
    env: codexHome.env,
    directory: records.directory,
    sandbox: {
      mode: settings.sandbox,
      network: settings.network,
      // Where there is no repository yet, `git init` works only if codex does not close `.git` (measured).
      writable: repository
        ? [...new Set([repository.gitDir, repository.commonDir])]
        : [join(records.directory, '.git')],
    },
    key: records.key,
    owner: { pid: context.pid, startTime: await startTimeOf(context.pid, platform) },
    platform,
    clock,
    codemachineVersion: version,
    requestMs: settings.requestSeconds * 1000,
    endMs: settings.endSeconds * 1000,
    log: message => {
      if (settings.logging.level === 'debug') context.stderr.write(`[debug] ${message}\n`)
    },
  })
  opened.defer(() => engine.close())
  remarks.push(...(await remarksOnReach(context, records, codex.path)), ...remarksOnSandbox(settings, capabilities))
  const held = opened.move()
  return {
    settings,
    records,
    repository,
    fingerprints,
    engine,
    overrides,
    remarks,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

/** The settings of a run in `directory`, and where each was written: all layers, with `flags` on top. */
export async function settingsOf(
  context: CliContext,
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
      model: flags.model,
      effort: flags.effort,
      sandbox: flags.yolo ? 'danger-full-access' : flags.sandbox,
      network: flags.yolo ?? flags.network,
      codexBin: flags.codexBin,
    },
  })
}
