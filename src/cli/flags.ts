import { type Command, InvalidArgumentError, Option } from 'commander'

/** What may be said on the command line of a run. Texts as typed: the settings check them. */
export interface RunFlags {
  cd?: string
  rounds?: string
  model?: string
  effort?: string
  sandbox?: string
  network?: boolean
  yolo?: true
  config?: string[]
  codexBin?: string
  plain?: true
  json?: true
}

/** Flags of a command that looks at one work directory. */
export interface DirectoryFlags {
  cd?: string
}

const SANDBOXES = ['read-only', 'workspace-write', 'danger-full-access']

/** Adds `-C`. */
export function withDirectory(command: Command): Command {
  return command.option('-C, --cd <dir>', 'the work directory, if it is not this one')
}

/** Adds the flags of a run. */
export function withRunFlags(command: Command): Command {
  return withDirectory(command)
    .option('--rounds <n>', 'how many rounds at the most (10)')
    .option('-m, --model <name>', "the model (codex's own choice)")
    .option('--effort <level>', 'reasoning effort: low, medium, high, …')
    .addOption(new Option('--sandbox <mode>', 'what the agent may write (workspace-write)').choices(SANDBOXES))
    .option('--network', 'let commands in the sandbox reach the network')
    .option('--yolo', 'no sandbox at all: the same as --sandbox danger-full-access')
    .addOption(
      new Option('-c, --config <key=value>', "override codex's configuration; may be repeated").argParser(collect),
    )
    .addOption(codexBinOption())
    .option('--plain', 'plain lines, one a thing that happened')
    .option('--json', 'events as JSON lines')
}

/** `--codex-bin`. */
export function codexBinOption(): Option {
  return new Option('--codex-bin <path>', 'the codex to use (CODEX_BIN, PATH, then the copy in node_modules)')
}

function collect(value: string, before: string[] | undefined): string[] {
  if (!/^[^=\s]+=/.test(value)) throw new InvalidArgumentError('Use key=value, such as model_verbosity=low.')
  return [...(before ?? []), value]
}
