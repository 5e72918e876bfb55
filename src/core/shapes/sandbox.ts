/**
 * What an agent's commands may write, from the strictest: nothing but its memory; the work directory; everything. The
 * words of settings, flags, journals and codex itself, which stand nowhere else.
 */
export const SANDBOX_MODES = ['read-only', 'workspace-write', 'danger-full-access'] as const

export type SandboxMode = (typeof SANDBOX_MODES)[number]

/** The sandbox that the person has chosen, the same for every round of a run. */
export interface SandboxChoice {
  mode: SandboxMode
  network: boolean
  /** Directories beside the work directory that stay writable: the repository's git directories. Absolute. */
  writable: readonly string[]
  /** Folders of the person's that stay writable, too, as their configuration of codex says. Absolute; left out: none. */
  roots?: readonly string[]
}
