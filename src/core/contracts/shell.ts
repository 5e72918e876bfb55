/** A line for a shell, and what it has beside what the commands of rounds have. */
export interface ShellCommand {
  /** Run as `bash -c` runs it, in the work directory, with an empty standard input. */
  run: string
  /** Variables that it has whatever else is said of its environment. */
  env: Readonly<Record<string, string>>
  /** Absolute paths that it can neither read nor make, where the sandbox can deny that (`Engine.hidesFiles`). */
  unreadable: readonly string[]
  timeoutMs: number
  /** Ends it, and all that it has started. */
  signal: AbortSignal
  /** How much of the end of each stream is kept. */
  mostCharacters: number
}

/**
 * How it ended, after how long, and the ends of what it printed. `timed-out`, `broken-off`: it was ended, with all that it had
 * started. `not-started`: nothing could be run, or codex died under it; `problem` is a sentence. A program that is not there
 * is an exit code, 127.
 */
export type ShellEnd = (
  | { kind: 'exited'; exitCode: number }
  | { kind: 'timed-out' }
  | { kind: 'broken-off' }
  | { kind: 'not-started'; problem: string }
) & { durationMs: number; stdout: string; stderr: string }

/** Runs commands in the sandbox of the rounds, any number side by side. Disposing of it breaks them off. */
export interface Shell extends AsyncDisposable {
  /** Resolves when nothing is left of the command that can be found. Never rejects for what it or codex does. */
  run(command: ShellCommand): Promise<ShellEnd>
}
