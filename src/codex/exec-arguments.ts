import { tomlText } from './codex-toml.ts'
import type { CodexCapabilities } from './codex-version.ts'
import { type AgentProfile, profileValues } from './profile-file.ts'
import type { SandboxChoice } from './sandbox.ts'
import { commandSettings, type ShieldedEnvironment } from './shielded-environment.ts'

/** What `codex exec` is told. */
export interface ExecRequest {
  agent: AgentProfile
  /** Whether the agent's profile is in codex's home, in the form that this codex reads. */
  hasProfile: boolean
  /** The work directory, absolute. */
  directory: string
  sandbox: SandboxChoice
  /** `key=value` pairs that the person hands to codex with `-c`; they win over all others. */
  overrides: readonly string[]
  /** What commands of the agent are to have otherwise than codex, and the policy that is in force there. */
  forCommands: ShieldedEnvironment['forCommands']
  shellPolicy: unknown
  /** Where codex writes what the agent has said last. Absolute. */
  lastMessage: string
  /** Instructions and request in one; null: they come through stdin. */
  prompt: string | null
}

/** The arguments with which codex does one task of an agent and ends. */
export function execArguments(request: ExecRequest, capabilities: CodexCapabilities): string[] {
  const { agent, hasProfile, directory, sandbox, overrides, lastMessage, prompt } = request
  const settings = [
    ...modelSettings(agent, hasProfile && !capabilities.profileFiles),
    ...sandboxSettings(sandbox),
    ...trustSettings(directory, capabilities),
    ...Object.entries(commandSettings(request.forCommands, request.shellPolicy)).map(
      ([key, value]) => `${key}=${tomlValue(value)}`,
    ),
    ...overrides,
  ]
  return [
    'exec',
    ...(hasProfile ? ['--profile', agent.name] : []),
    '--skip-git-repo-check',
    '--sandbox',
    sandbox.mode,
    ...(sandbox.mode === 'danger-full-access' ? ['--dangerously-bypass-approvals-and-sandbox'] : []),
    ...settings.flatMap(pair => ['-c', pair]),
    '--color',
    'never',
    '--output-last-message',
    lastMessage,
    '-C',
    directory,
    // A prompt may begin like an option, or be the name of one of codex's commands.
    '--',
    prompt ?? '-',
  ]
}

/**
 * Whether a prompt can be handed over behind these others. Linux takes at most 128 KiB in one argument, Windows 32,767
 * UTF-16 units in all of them.
 */
export function fitsAsArgument(prompt: string, others: readonly string[], platform: NodeJS.Platform): boolean {
  if (prompt.includes('\0')) return false
  if (platform !== 'win32') return Buffer.byteLength(prompt) <= 100_000
  // Each stands in quotes, and what would end them is doubled.
  const units = [...others, prompt].map(text => text.length + (text.match(/["\\]/g)?.length ?? 0) + 3)
  return units.reduce((sum, each) => sum + each, 0) <= 32_000
}

/** What the profile says, too: another call may write that file before codex reads it. `inTable`: it is a table, which wins over the top level. */
function modelSettings(agent: AgentProfile, inTable: boolean): string[] {
  const before = inTable ? `profiles.${agent.name}.` : ''
  return profileValues(agent).flatMap(([key, value]) => (value === null ? [] : [`${before}${key}=${tomlText(value)}`]))
}

function sandboxSettings({ mode, network, writable }: SandboxChoice): string[] {
  if (mode !== 'workspace-write') return []
  return [
    `sandbox_workspace_write.network_access=${network}`,
    ...(writable.length === 0 ? [] : [`sandbox_workspace_write.writable_roots=${tomlValue([...writable])}`]),
  ]
}

/** Keeps codex from writing into the person's config.toml that the directory is trusted (docs/profiles.md). */
function trustSettings(directory: string, { execWritesTrust, untrustedKeepsConfig }: CodexCapabilities): string[] {
  if (!execWritesTrust) return []
  const level = untrustedKeepsConfig ? 'untrusted' : 'trusted'
  return [`projects={${tomlText(directory)}={trust_level="${level}"}}`]
}

function tomlValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(', ')}]`
  return tomlText(String(value))
}
