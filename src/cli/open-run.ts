import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { packageFile, packageRoot } from '../base/package-root.ts'
import { version } from '../base/version.ts'
import { chooseCodexHome } from '../codex/codex-home.ts'
import { capabilitiesOf } from '../codex/codex-version.ts'
import { findCodex } from '../codex/find-codex.ts'
import { CodexEngine } from '../engines/codex-engine.ts'
import { endLeftovers } from '../platform/marks.ts'
import { startTimeOf } from '../platform/processes.ts'
import { openRecords, type Records } from '../session/records.ts'
import { takeRunLock } from '../session/run-lock.ts'
import { loadSettings } from '../settings/load-settings.ts'
import type { Settings } from '../settings/schema.ts'
import { type Fingerprints, openFingerprints } from '../workspace/fingerprint.ts'
import { findRepository, type PersonRepository } from '../workspace/person-repository.ts'
import { restoreAfterCrash } from '../workspace/repository-guard.ts'
import type { Restored } from '../workspace/restoration.ts'
import { reachOf, recordsInReach } from './agents-reach.ts'
import type { CliContext } from './context.ts'
import type { RunFlags } from './flags.ts'

/** All that a run stands on: opened once, for one session after another. Disposing of it ends every process. */
export interface Run extends AsyncDisposable {
  settings: Settings
  records: Records
  repository: PersonRepository | null
  fingerprints: Fingerprints
  engine: CodexEngine
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
    leaveOut: [records.root],
    onWarning: message => void remarks.push(message),
  })
  const capabilities = capabilitiesOf(codex.version)
  const engine = new CodexEngine({
    binary: codex,
    capabilities,
    overrides: flags.config ?? [],
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
  remarks.push(...(await warningsOf(context, records, codex.path)))
  const held = opened.move()
  return {
    settings,
    records,
    repository,
    fingerprints,
    engine,
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

/** Ends what a codemachine that was killed left running here, and says so. */
async function endWhatWasLeft(context: CliContext, records: Records): Promise<string[]> {
  const { ended, left } = await endLeftovers(records.key, {
    clock: context.clock,
    platform: context.platform,
    self: context.pid,
    graceMs: 2_000,
  })
  return [
    ...ended.map(({ pid, command }) => `Ended what an earlier run had left running: ${command} (${pid}).`),
    ...left.map(({ pid, command }) => `An earlier run left this running, and it cannot be ended: ${command} (${pid}).`),
  ]
}

/** A sentence for what rounds of a run that was cut off had changed in the repository, and for what stays changed. */
function describeRestored(found: Restored | null): string[] {
  if (found === null) return []
  const { restored, setAside, problems } = found
  if (restored.length === 0) return [...problems]
  const kept = setAside === null ? '' : ` What lay there is kept in ${setAside}, should it be yours.`
  const what = restored.join(', ')
  return [
    `An earlier run was cut off in a round. This was not as it had been, and was put back: ${what}.${kept}`,
    ...problems,
  ]
}

/** What agents can write and the run relies on. */
async function warningsOf({ env }: CliContext, { root, folder, directory }: Records, codex: string): Promise<string[]> {
  const inReach = recordsInReach(root, await reachOf(folder, directory, env))
  const warnings = inReach === null ? [] : [inReach]
  if ((await reachOf(codex, directory, env)) !== null) {
    warnings.push(`The codex in use (${codex}) lies where the agent can write; name another one with --codex-bin.`)
  }
  return warnings
}
