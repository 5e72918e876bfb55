import { CODEX_VERSION } from '../../protocol/codex.ts'

/**
 * The oldest codex that codemachine works with: the oldest one that it was measured against in which `turn/steer`, the
 * sandbox and the messages of a round are what they are today.
 */
export const OLDEST_CODEX = '0.120.0'

/** The newest codex that it was measured against: the one whose protocol it speaks. */
export const NEWEST_MEASURED_CODEX = CODEX_VERSION

/** What a codex can do and may be sent; measured with 0.120, 0.130, 0.140, 0.145, 0.150, 0.155, 0.160, 0.166, 0.169. */
export interface CodexCapabilities {
  /**
   * Under the granular approval policy an `rm -f` style command is asked about, and runs inside the sandbox once it is
   * accepted. Older ones take the policy and refuse every such command; `never` says the same there, with less.
   */
  granularApprovals: boolean
  /** `rm -f` runs under the policy `never` with full access. Elsewhere it is refused, and `on-request` asks about it. */
  forcedRemovalUnderNever: boolean
  /**
   * `config.agents.enabled = false` turns sub-agents off; older ones refuse to start a thread with it, and there
   * `config.features.multi_agent = false` does the same.
   */
  agentsSwitch: boolean
  /** `thread/start` takes a permission profile by name: everything read-only but one directory of the work directory. */
  permissionProfiles: boolean
  /** `projects.<cwd>.trust_level = "untrusted"` keeps codex from writing to config.toml; older ones write "trusted". */
  untrustedKeepsConfig: boolean
  /**
   * Login shells leave out the variables that `shell_environment_policy` excludes; older ones take them from a snapshot
   * of the shell all the same, unless `features.shell_snapshot` is off. Measured with 0.120, 0.140, 0.155 and 0.169.
   */
  snapshotKeepsPolicy: boolean
  /**
   * `--profile NAME` reads `NAME.config.toml`, and fails where config.toml has `[profiles.NAME]`; older ones read that
   * table and nothing else. Measured with 0.120, 0.132, 0.133, 0.134, 0.135 and 0.169.
   */
  profileFiles: boolean
  /**
   * `codex exec` writes its directory into config.toml as trusted unless `projects.<directory>.trust_level` is given.
   * 0.120, 0.133, 0.145 and 0.155 do, 0.166 does not; what came between was not measured.
   */
  execWritesTrust: boolean
}

/** What the codex of `version` (`0.169.0`) can do. A prerelease counts as the version that it leads to. */
export function capabilitiesOf(version: string): CodexCapabilities {
  const since = (first: string) => !isOlderCodex(version, first)
  return {
    // 0.166 does not have it, and no 0.167 and 0.168 were published.
    granularApprovals: since('0.167.0'),
    forcedRemovalUnderNever: !since('0.145.0'),
    agentsSwitch: since('0.145.0'),
    permissionProfiles: since('0.140.0'),
    untrustedKeepsConfig: since('0.130.0'),
    // 0.155 does not; what came between was not measured, and no 0.167 and 0.168 were published.
    snapshotKeepsPolicy: since('0.167.0'),
    profileFiles: since('0.134.0'),
    execWritesTrust: !since('0.166.0'),
  }
}

/** The version in what `codex --version` prints (`codex-cli 0.170.0-alpha.1`); null if no codex printed that. */
export function parseVersionOutput(output: string): string | null {
  return /^codex(?:-cli)? (\d+\.\d+\.\d+(?:[-+][\w.+-]+)?)\s*$/m.exec(output)?.[1] ?? null
}

/** Whether codex `version` came before `other`. A prerelease counts as the version that it leads to. */
export function isOlderCodex(version: string, other: string): boolean {
  const [major, minor, patch] = numbersOf(version)
  const [otherMajor, otherMinor, otherPatch] = numbersOf(other)
  // Whoever builds codex from its sources gets 0.0.0, which is the newest there is.
  if (major + minor + patch === 0) return false
  return (major - otherMajor || minor - otherMinor || patch - otherPatch) < 0
}

function numbersOf(version: string): [number, number, number] {
  const match = /^(\d+)\.(\d+)\.(\d+)/.exec(version)
  if (match === null) throw new Error(`Not a version of codex: "${version}"`)
  return [Number(match[1]), Number(match[2]), Number(match[3])]
}
