import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { packageRoot } from '../../base/package-root.ts'
import { type CodexHome, chooseCodexHome } from '../../codex/codex-home.ts'
import {
  type CodexCapabilities,
  capabilitiesOf,
  isOlderCodex,
  NEWEST_MEASURED_CODEX,
} from '../../codex/codex-version.ts'
import { type CodexBinary, findCodex } from '../../codex/find-codex.ts'
import { sandboxTerms } from '../../codex/sandbox.ts'
import type { Settings } from '../../settings/schema.ts'
import type { Bench } from './bench.ts'
import { recordsRoot } from './check-records.ts'
import type { SettingsInUse } from './check-settings.ts'
import { type Checked, type Finding, ok, warning } from './finding.ts'

const UPDATE = 'Update codex: npm install --global @openai/codex@latest'

/** Finds the codex that runs the rounds; throws a `UserError` if there is none that can. */
export async function checkBinary(
  { context, env }: Bench,
  { settings, codexBin }: SettingsInUse,
): Promise<Checked<CodexBinary>> {
  const { platform, arch, cwd } = context
  const codex = await findCodex({ flag: codexBin, env, directory: cwd, platform, arch, packageRoot })
  const { path, version, source, launcher } = codex
  const newer = isOlderCodex(NEWEST_MEASURED_CODEX, version)
    ? `, newer than any measured (${NEWEST_MEASURED_CODEX})`
    : ''
  const by = launcher === null ? '' : `, for ${launcher}`
  const found = ok('codex', `codex ${version}${newer}, from ${NAMES[source]}: ${path}${by}`)
  return { findings: [found, ...notes(version, settings, capabilitiesOf(version))], value: codex }
}

const NAMES: Record<CodexBinary['source'], string> = {
  flag: '--codex-bin or the settings',
  CODEX_BIN: 'CODEX_BIN',
  PATH: 'PATH',
  node_modules: 'node_modules',
}

/** What this version does to a round, and a newer one does not. */
function notes(version: string, { sandbox, network }: Settings, capabilities: CodexCapabilities): Finding[] {
  const terms = sandboxTerms('/', { mode: sandbox, network, writable: [] }, capabilities)
  const found: Finding[] = []
  if (!terms.acceptsCommands && !capabilities.forcedRemovalUnderNever) {
    found.push(warning('codex', `codex ${version} refuses every \`rm -rf\` in rounds; 0.167 and newer do not.`, UPDATE))
  }
  if (sandbox === 'read-only' && !capabilities.permissionProfiles) {
    const message = `codex ${version} does not let a read-only agent write even its memory files; 0.140 and newer do.`
    found.push(warning('codex', message, UPDATE))
  }
  return found
}

/**
 * Chooses codex's home as a run does; throws a `UserError` if there is none. Codex would make a missing one, so it is
 * then given an empty one to be looked at in.
 */
export async function checkHome(
  { context, env, temporary }: Bench,
  setting: Settings['codexHome'],
): Promise<Checked<CodexHome>> {
  const root = recordsRoot(context)
  const home = await chooseCodexHome({
    setting,
    env,
    home: context.home,
    codemachineHome: root,
    directory: context.cwd,
  })
  const whose = home.owner === 'person' ? 'your own' : "codemachine's"
  if (await isThere(home.path)) return { findings: [ok('codex-home', `${home.path} (${whose})`)], value: home }
  const empty = join(temporary, 'codex-home')
  await mkdir(empty)
  return {
    findings: [warning('codex-home', `There is no ${home.path} yet.`, setting === 'own' ? LOGIN_MAKES_IT : LOGIN)],
    value: { ...home, env: { ...home.env, CODEX_HOME: empty } },
  }
}

const LOGIN = 'Log in: codemachine login'
const LOGIN_MAKES_IT = 'Log in to codex, which makes it.'

async function isThere(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  )
}
