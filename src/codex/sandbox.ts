import { join } from 'node:path'
import type { AskForApproval, SandboxPolicy, ThreadStartParams } from '../../protocol/codex.ts'
import type { CodexCapabilities } from './codex-version.ts'

type SandboxMode = 'read-only' | 'workspace-write' | 'danger-full-access'

/** What the person has chosen about where codex may write and reach, the same for every round of a run. */
export interface SandboxChoice {
  mode: SandboxMode
  network: boolean
  /** Directories beside the work directory that stay writable: the repository's git directories. Absolute. */
  writable: readonly string[]
}

/** How a sandbox is put to codex: in `thread/start`, in `turn/start`, and what codex's questions are answered. */
export interface SandboxTerms {
  thread: Pick<ThreadStartParams, 'sandbox' | 'permissions' | 'config'>
  turn: { sandboxPolicy?: SandboxPolicy }
  approvalPolicy: AskForApproval
  /** Whether login shells may start from codex's snapshot of one: not where it would undo what commands are not to see. */
  shellSnapshot: boolean
  /** Whether a command that codex asks about is allowed: only where that cannot lead out of the sandbox. */
  acceptsCommands: boolean
}

/**
 * The terms for a sandbox in `directory`. A thread is always started read-only, and gets its rights with the turn:
 * started with more, codex would write the directory into the person's config.toml as trusted, and then read the
 * directory's own configuration (measured, docs/codex.md).
 */
export function sandboxTerms(directory: string, choice: SandboxChoice, capabilities: CodexCapabilities): SandboxTerms {
  const shellSnapshot = choice.mode === 'danger-full-access' || capabilities.snapshotKeepsPolicy
  return { ...rights(directory, choice, capabilities), ...approvals(choice.mode, capabilities), shellSnapshot }
}

/** Name of the permission profile that leaves a read-only agent its memory. */
const MEMORY_ONLY = 'codemachine-memory'

function rights(
  directory: string,
  { mode, network, writable }: SandboxChoice,
  { permissionProfiles }: CodexCapabilities,
): Pick<SandboxTerms, 'thread' | 'turn'> {
  switch (mode) {
    case 'read-only': {
      if (!permissionProfiles) return { thread: { sandbox: 'read-only' }, turn: {} }
      const filesystem = { ':root': 'read', [join(directory, '.codemachine')]: 'write' }
      return {
        thread: { permissions: MEMORY_ONLY, config: { permissions: { [MEMORY_ONLY]: { filesystem } } } },
        turn: {},
      }
    }
    case 'workspace-write':
      return {
        thread: { sandbox: 'read-only' },
        turn: {
          sandboxPolicy: {
            type: 'workspaceWrite',
            writableRoots: [...writable],
            networkAccess: network,
            excludeTmpdirEnvVar: false,
            excludeSlashTmp: false,
          },
        },
      }
    case 'danger-full-access':
      return { thread: { sandbox: 'read-only' }, turn: { sandboxPolicy: { type: 'dangerFullAccess' } } }
  }
}

/**
 * Under the granular policy codex refuses every way out of the sandbox by itself, and asks only about commands that its
 * rules stop (`rm -f` and the like), which then run inside. Before it, an approval could not be told from a way out, so
 * nothing may be asked, except where there is no sandbox to leave.
 */
function approvals(
  mode: SandboxMode,
  { granularApprovals, forcedRemovalUnderNever }: CodexCapabilities,
): Pick<SandboxTerms, 'approvalPolicy' | 'acceptsCommands'> {
  if (granularApprovals) return { approvalPolicy: GRANULAR, acceptsCommands: true }
  if (mode === 'danger-full-access' && !forcedRemovalUnderNever) {
    return { approvalPolicy: 'on-request', acceptsCommands: true }
  }
  return { approvalPolicy: 'never', acceptsCommands: false }
}

const GRANULAR: AskForApproval = {
  granular: {
    sandbox_approval: false,
    rules: true,
    skill_approval: false,
    request_permissions: false,
    mcp_elicitations: false,
  },
}
