/** The moments of a session at which a hook can run, in their order. */
export const HOOK_MOMENTS = ['before_round', 'after_round', 'on_claim', 'on_done', 'on_end'] as const

export type HookMoment = (typeof HOOK_MOMENTS)[number]

/** A command of a settings file that runs at a moment of each session. */
export interface Hook {
  on: HookMoment
  /** Whose file names it. A person's hook runs as the person; a project's runs in the sandbox of the rounds. */
  of: 'person' | 'project'
  /** A line for a shell. */
  run: string
  timeoutMs: number
  /** Whether its failure refuses what it runs for: the round that follows, the round before, or the claim. */
  refuses: boolean
}
