import { join } from 'node:path'
import { packageRoot } from '../base/package-root.ts'
import type { Redactor } from '../base/redactor.ts'
import { version } from '../base/version.ts'
import { type CodexHome, chooseCodexHome } from '../codex/codex-home.ts'
import { type CodexBinary, findCodex } from '../codex/find-codex.ts'
import type { SandboxCommandsOptions } from '../engines/sandbox-commands.ts'
import { startTimeOf } from '../platform/processes.ts'
import { openRedactor } from '../secrets/open-redactor.ts'
import type { Records } from '../session/records.ts'
import type { SettingSources } from '../settings/load-settings.ts'
import type { Settings } from '../settings/schema.ts'
import type { PersonRepository } from '../workspace/person-repository.ts'
import type { CliContext } from './context.ts'

/** A codex to be run, and what is kept from it. */
export interface ChosenCodex {
  binary: CodexBinary
  home: CodexHome
  redactor: Redactor
}

/** The codex, its home, and the person's secrets, as the settings have it; a `UserError` if there is no codex. */
export async function chooseCodex(
  { env, home, platform, arch, clock }: CliContext,
  { root }: Records,
  { settings, sources }: { settings: Settings; sources: SettingSources },
): Promise<ChosenCodex> {
  const binary = await findCodex({
    // From the environment it is named as that.
    flag: sources.codexBin.layer === 'environment' ? null : settings.codexBin,
    env,
    platform,
    arch,
    packageRoot,
  })
  const codexHome = await chooseCodexHome({ setting: settings.codexHome, env, home, codemachineHome: root })
  return { binary, home: codexHome, redactor: openRedactor({ env, codexHome: codexHome.path, clock }) }
}

/** With what codex is run for a work directory; `overrides`: `key=value` pairs that the person hands to it. */
export async function codexOptionsOf(
  { pid, platform, clock, stderr }: CliContext,
  { key }: Records,
  { binary, home, redactor }: ChosenCodex,
  settings: Settings,
  overrides: readonly string[],
): Promise<Omit<SandboxCommandsOptions, 'directory' | 'sandbox' | 'binary'> & { binary: CodexBinary }> {
  return {
    binary,
    overrides,
    env: home.env,
    key,
    owner: { pid, startTime: await startTimeOf(pid, platform) },
    platform,
    clock,
    codemachineVersion: version,
    requestMs: settings.requestSeconds * 1000,
    endMs: settings.endSeconds * 1000,
    log: message => {
      if (settings.logging.level === 'debug') stderr.write(`[debug] ${redactor.text(message)}\n`)
    },
  }
}

/** What rounds and gates may write beside the work directory. */
export function writableGit(directory: string, repository: PersonRepository | null): string[] {
  // Where there is no repository yet, `git init` works only if codex does not close `.git` (measured).
  if (repository === null) return [join(directory, '.git')]
  return [...new Set([repository.gitDir, repository.commonDir])]
}
