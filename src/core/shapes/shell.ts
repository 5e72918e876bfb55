import type { HostTool } from '../engine.ts'

/** A shell command line, and its settings that differ from rounds' commands. */
export interface ShellCommand {
  /** Run by `bash -c`, in the work directory, with an empty standard input. */
  run: string
  /** Variables that always apply, whatever its other environment is. */
  env: Readonly<Record<string, string>>
  /** Absolute paths that it cannot read or create, if the sandbox can deny that (`Engine.hidesFiles`). */
  unreadable: readonly string[]
  timeoutMs: number
  /** Ends it and all processes that it started. */
  signal: AbortSignal
  /** Most characters to return from the end of each stream. */
  mostCharacters: number
}

/**
 * Its end, duration and last output. `timed-out`, `broken-off`: it was ended with all its processes. `not-started`: nothing
 * could run, or codex died; `problem` is a sentence. A missing program exits with 127.
 */
export type ShellEnd = (
  | { kind: 'exited'; exitCode: number }
  | { kind: 'timed-out' }
  | { kind: 'broken-off' }
  | { kind: 'not-started'; problem: string }
) & { durationMs: number; stdout: string; stderr: string }

/**
 * Runs commands in the sandbox of the rounds, any number in parallel. One with its own variables gets its own temporary
 * folder (`TMPDIR`, `TMP`, `TEMP`), removed afterwards, and writes no other one. Disposal stops all.
 */
export interface Shell extends AsyncDisposable {
  /** Resolves when no findable process of the command is left. Never rejects because of the command or codex. */
  run(command: ShellCommand): Promise<ShellEnd>
}

/** Name of the tool that runs an agent's command in codemachine, with secrets if needed. */
export const RUN_SHELL = 'run_shell'
/** Name of the tool to ask a person for a secret. */
export const ASK_HUMAN = 'ask_human'

/** A command requested by an agent; `secrets`: names. */
export interface WantedCommand {
  command: string
  secrets: readonly string[]
}

/** A secret requested by an agent; `reason`: why the current one does not work, null: there is none. */
export interface WantedSecret {
  question: string
  key: string
  reason: string | null
}

export const runShellTool: HostTool = {
  name: RUN_SHELL,
  description:
    'Runs a line with bash in the project, in the same sandbox as your own shell. It answers with RETURN CODE, STDOUT and STDERR (the last 16,000 characters of each). Use it only for commands that need a secret. Name the secrets: the command gets them as variables of these names. Use your own shell for everything else. Printed secrets are removed from the answer. A command with secrets must write temporary files into $TMPDIR, not into /tmp; $TMPDIR is removed afterwards. A command may take 10 minutes. Processes that it leaves running are ended.',
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
    'Asks the person for a secret that the step needs, such as a key of a service. You never see its value: commands of `run_shell` have it as a variable. If the secret is already stored, the answer says so. If not, end your turn: you are started again once it is stored. If the stored secret does not work, ask again. Say in `reason` what the service answered, and which kind of key with which rights you need.',
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
