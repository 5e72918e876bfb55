import type { HostTool } from '../engine.ts'

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

/**
 * Runs commands in the sandbox of the rounds, any number side by side. One with variables of its own gets a temporary folder of
 * its own (`TMPDIR`, `TMP`, `TEMP`), which is removed after it, and writes no other one. Disposing of it breaks them off.
 */
export interface Shell extends AsyncDisposable {
  /** Resolves when nothing is left of the command that can be found. Never rejects for what it or codex does. */
  run(command: ShellCommand): Promise<ShellEnd>
}

/** Name of the tool by which an agent has codemachine run a command, with secrets if it needs them. */
export const RUN_SHELL = 'run_shell'
/** Name of the tool by which an agent asks a person for a secret. */
export const ASK_HUMAN = 'ask_human'

/** What an agent wants run; `secrets`: names. */
export interface WantedCommand {
  command: string
  secrets: readonly string[]
}

/** The secret that an agent wants from a person; `reason`: why the one that is there does not work, null if there is none. */
export interface WantedSecret {
  question: string
  key: string
  reason: string | null
}

export const runShellTool: HostTool = {
  name: RUN_SHELL,
  description:
    'Runs a line with bash in the project, in the same sandbox as your own shell, and answers with RETURN CODE, STDOUT and STDERR (the last 16,000 characters of each). Use it for what needs a secret: name the secrets, and the command has them as variables of these names. Use your own shell for everything else. A secret that is printed is removed from the answer. A command with secrets writes temporary files into $TMPDIR, which is removed after it, and not into /tmp. At most 10 minutes; whatever it leaves running is ended.',
  inputSchema: {
    type: 'object',
    properties: {
      command: { type: 'string', description: 'The line for bash.' },
      secrets: {
        type: 'array',
        items: { type: 'string' },
        description:
          'The names of the secrets that it needs, such as ["STRIPE_API_KEY"]; leave it out if it needs none.',
      },
    },
    required: ['command'],
    additionalProperties: false,
  },
}

export const askHumanTool: HostTool = {
  name: ASK_HUMAN,
  description:
    'Asks the person for a secret that the step needs, such as a key of a service. You never see its value: commands of `run_shell` have it as a variable. If it is there already, the answer says so. If it is not, end your turn: you are started again when it is there. If the one that is there does not work, ask again and say in `reason` what the service answered and what kind of key with which rights is needed.',
  inputSchema: {
    type: 'object',
    properties: {
      question: { type: 'string', description: 'What it is needed for, and where the person gets it.' },
      key_name: {
        type: 'string',
        description: 'Its name: capital letters, digits and underscores, such as "STRIPE_API_KEY".',
      },
      storage: { type: 'string', enum: ['env'], description: 'Always "env".' },
      reason: {
        type: 'string',
        description: 'Why the one that is there does not work; leave it out if there is none.',
      },
    },
    required: ['question', 'key_name', 'storage'],
    additionalProperties: false,
  },
}
