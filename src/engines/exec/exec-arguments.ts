import type { ThreadSpec } from '../../core/engine.ts'
import { fitsAsArgument } from '../../platform/run-process.ts'
import { tomlInline, tomlString } from '../../platform/toml.ts'
import { commandSettings, type SandboxTerms, type ShieldedEnvironment } from '../codex/sandbox.ts'
import { threadStartParams } from '../codex/thread-start.ts'
import { withoutOwn } from './given-arguments.ts'

/** The input of one `codex exec`. */
export interface ExecTurn {
  thread: ThreadSpec
  terms: SandboxTerms
  /** Variables of agents' commands that differ from codex's. */
  forCommands: ShieldedEnvironment['forCommands']
  /** The work directory, absolute. */
  directory: string
  /** The person's `key=value` pairs for codex's `-c`; they override all others. */
  overrides: readonly string[]
  platform: NodeJS.Platform
  /** `shell_environment_policy` of the person; null if there is none. */
  shellPolicy: unknown
  input: string
  /** File with the JSON Schema of the last message; null: free text. */
  schema: string | null
}

/** Returns the arguments of `codex exec` for a turn, equal to `thread/start` and `turn/start`, and its stdin. */
export function execCommand(request: ExecTurn): { command: readonly string[]; prompt: string } {
  const { directory, overrides, platform, input, schema } = request
  const { tools: _, args = [], ...thread } = request.thread
  const { config, permissions: ofThread, model, modelProvider } = threadStartParams(directory, thread, request.terms)
  const permissions = request.terms.turn.permissions ?? ofThread
  const settings: Record<string, unknown> = {
    ...config,
    ...commandSettings(request.forCommands, request.shellPolicy),
    ...(permissions == null ? {} : { default_permissions: permissions }),
    ...(model == null ? {} : { model }),
    ...(modelProvider == null ? {} : { model_provider: modelProvider }),
  }
  const sandbox = permissions == null ? sandboxArguments(request.terms) : { flags: [], settings: {}, last: [] }
  const pairs = Object.entries({ ...settings, ...sandbox.settings }).map(
    ([key, value]) => `${key}=${tomlInline(value)}`,
  )
  const { developerInstructions } = request.thread
  const instructions = `developer_instructions=${tomlString(developerInstructions)}`
  const asPairs = (given: readonly string[]) => given.flatMap(pair => ['-c', pair])
  // Later pairs win: the thread's own over codemachine's, the person's over both.
  const around = [...asPairs(pairs), ...withoutOwn(args), ...asPairs(overrides), ...sandbox.last]
  const fits = fitsAsArgument(instructions, around, platform)
  const command = [
    'exec',
    '--json',
    '--skip-git-repo-check',
    ...sandbox.flags,
    ...(fits ? ['-c', instructions] : []),
    ...around,
    ...(schema === null ? [] : ['--output-schema', schema]),
    '-C',
    directory,
    '-',
  ]
  return { command, prompt: fits ? input : `${developerInstructions}\n\n${input}` }
}

/** Returns the sandbox of the turn. `last`: arguments after the person's own pairs. */
function sandboxArguments({ turn }: SandboxTerms): {
  flags: readonly string[]
  settings: object
  last: readonly string[]
} {
  const policy = turn.sandboxPolicy
  switch (policy?.type) {
    case 'workspaceWrite': {
      const settings = { sandbox_workspace_write: { network_access: policy.networkAccess } }
      // These include the person's own roots.
      const roots = `sandbox_workspace_write.writable_roots=${tomlInline(policy.writableRoots)}`
      return { flags: ['--sandbox', 'workspace-write'], settings, last: ['-c', roots] }
    }
    case 'dangerFullAccess':
      return {
        flags: ['--sandbox', 'danger-full-access', '--dangerously-bypass-approvals-and-sandbox'],
        settings: {},
        last: [],
      }
    default:
      return { flags: ['--sandbox', 'read-only'], settings: {}, last: [] }
  }
}
