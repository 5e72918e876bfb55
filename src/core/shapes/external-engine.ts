/** Another maker's coding agent from the person's settings: a program that speaks the Agent Client Protocol. */
export interface ExternalEngine {
  /** Its name in `--engine` and in threads. */
  name: string
  /** The program, by its name on PATH or its absolute path, and its arguments. */
  command: readonly [string, ...string[]]
  /** Absolute folders that it may write outside of the work directory; it stores its login and sessions there. */
  home: readonly string[]
  /** Its configuration in the work directory, which it may not write, because it names programs to run. */
  configuration: readonly string[]
  /** Variables in addition to the person's environment. */
  env: Readonly<Record<string, string>>
  /** Additional variables inside its box. */
  boxEnv: Readonly<Record<string, string>>
  /** Hosts that it and its commands reach, as in codex's profiles (`*.example.com`); true: all. */
  network: true | readonly string[]
  /** Ids of its modes without questions, first choice first; its box limits what it may do. */
  modes: readonly string[]
}

/** Engines that worked on a session, by name. */
export interface EnginesAtWork {
  /** Started rounds. */
  rounds: Record<string, number>
  /** The last engine changes, each with its first round. */
  changes?: { round: number; from: string; to: string }[] | undefined
  /** Calls of agents with their own engine. */
  agents?: Record<string, number> | undefined
  /** The reviewer's engine; left out: none of its own. */
  review?: string | undefined
  /** Hosts that its agents and their commands reached; `*`: all. */
  reached?: Record<string, string[]> | undefined
}
