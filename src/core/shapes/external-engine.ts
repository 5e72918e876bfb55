/** A coding agent of another maker, as the person's settings name it: a program that speaks the Agent Client Protocol. */
export interface ExternalEngine {
  /** By which `--engine` and threads name it. */
  name: string
  /** The program, by its name on PATH or its absolute path, and its arguments. */
  command: readonly [string, ...string[]]
  /** Folders that it may write beside the work directory: absolute. It keeps its login and its sessions there. */
  home: readonly string[]
  /** Files and folders of the work directory that it may not write: its configuration, which names programs to run. */
  configuration: readonly string[]
  /** Variables that it has beside those of the person. */
  env: Readonly<Record<string, string>>
  /** The same where its box holds it. */
  boxEnv: Readonly<Record<string, string>>
  /** Hosts that it and its commands reach, as codex's profiles write them (`*.example.com`); true: all. */
  network: true | readonly string[]
  /** The modes in which it asks nobody, by the ids that it offers, the first choice first: what it may do is what its box lets it do. */
  modes: readonly string[]
}

/** Which engines worked on a session, each by its name. */
export interface EnginesAtWork {
  /** Rounds that began. */
  rounds: Record<string, number>
  /** The last changes between them, each with the round that began so. */
  changes?: { round: number; from: string; to: string }[] | undefined
  /** Calls of agents that have an engine of their own. */
  agents?: Record<string, number> | undefined
  /** That of the reviewer, where it has one. */
  review?: string | undefined
  /** Hosts that its agents reached, and their commands with them; `*`: all. */
  reached?: Record<string, string[]> | undefined
}
