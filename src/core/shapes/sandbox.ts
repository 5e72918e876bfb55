/**
 * What an agent's commands may write, strictest first: only its memory; the work directory; everything. Settings, flags,
 * journals and codex use these words, defined only here.
 */
export const SANDBOX_MODES = ['read-only', 'workspace-write', 'danger-full-access'] as const

export type SandboxMode = (typeof SANDBOX_MODES)[number]

/** The sandbox that the person chose, the same for every round of a run. */
export interface SandboxChoice {
  mode: SandboxMode
  network: boolean
  /** Writable directories outside of the work directory: the repository's git directories. Absolute. */
  writable: readonly string[]
  /** The person's writable folders from their codex configuration. Absolute; left out: none. */
  roots?: readonly string[]
}
