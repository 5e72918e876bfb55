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
