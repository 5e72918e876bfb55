/** Moments of a session when a hook can run, in order. */
export const HOOK_MOMENTS = ['before_round', 'after_round', 'on_claim', 'on_done', 'on_end'] as const

export type HookMoment = (typeof HOOK_MOMENTS)[number]

/** A command of a settings file that runs at a moment of each session. */
export interface Hook {
  on: HookMoment
  /** Owner of the file that names it. A person's hook runs as the person; a project's runs in the sandbox of the rounds. */
  of: 'person' | 'project'
  /** A shell command line. */
  run: string
  timeoutMs: number
  /** True if its failure refuses the next round, the last round, or the claim. */
  refuses: boolean
}
