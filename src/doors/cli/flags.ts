import { resolve } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { Interrupted, UserError } from '../../base/errors.ts'
import { problemOfPrompt, utf8Text } from '../../base/text.ts'
import { SANDBOX_MODES } from '../../core/shapes/sandbox.ts'
import type { CliContext } from '../screen/cli-context.ts'

/** What may be said on the command line of a run. Texts as typed: `runOptionsOf` reads them. */
export interface RunFlags {
  cd?: string
  rounds?: string
  maxTime?: string
  maxTokens?: string
  maxCost?: string
  maxUsage?: string
  maxWait?: string
  model?: string
  effort?: string
  provider?: string
  engine?: string
  fallback?: string
  sandbox?: string
  network?: boolean
  /** True also if nothing was said. */
  keepAwake?: boolean
  yolo?: true
  /** Each a command that has to pass before done. */
  verify?: string[]
  review?: boolean
  /** What is published at the end. */
  publish?: string
  /** Whether it has a contract, and whether done needs all of it proved. */
  prove?: boolean
  requireProof?: boolean
  /** Of a new run: whether it ends once the contract is accepted. */
  contractOnly?: true
  /** Of a new run: the name of its worktree; true if it shall have one, whatever its name. */
  worktree?: string | true
  /** Of a new run: the session that it goes on from, as typed. */
  followUp?: string
  /** Of a new run: the issue that it works on, as typed, and whether that is said to be right. */
  issue?: string
  yes?: true
  /** Of `resume`: whether the gates of the files count anew. */
  rereadGates?: true
  config?: string[]
  codexBin?: string
  plain?: true
  json?: true
  /** Whether it goes on without the terminal that it was typed on. */
  detach?: true
  /** Whether the page is served meanwhile, by a process of its own. */
  web?: true
}

/** Flags of a command that looks at one work directory. */
export interface DirectoryFlags {
  cd?: string
}

/** The same, of a command that can answer as JSON. */
export interface LookFlags extends DirectoryFlags {
  json?: boolean
}

/** Flags of every command that has to do with a fleet. */
export interface FleetFlags {
  /** Where its database is, as typed. */
  queue?: string
}

/** A command: told what was typed, its arguments first and its flags last. Resolves with the exit code. */
type Carried = (context: CliContext, ...typed: never[]) => Promise<number>

/** Makes the action of a command, which is loaded when it is called, and whose exit code is the program's. */
export type Does = (
  load: (context: Pick<CliContext, 'ownsProcess'>) => Promise<Carried>,
) => (...typed: unknown[]) => Promise<void>

/** Adds `-C`; `which`: the directory that it names. */
export function withDirectory(command: Command, which = 'the work directory, if it is not this one'): Command {
  return command.option('-C, --cd <dir>', which)
}

/** The same for a command that can answer as JSON, with what its `--json` says. */
export function withLook(command: Command, asJson = 'as JSON', which?: string): Command {
  return withDirectory(command, which).option('--json', asJson)
}

/** Prints the words of what a command has done, or with `--json` one object with them and `data`. The exit code is 0. */
export function printDone(
  { stdout }: Pick<CliContext, 'stdout'>,
  { json }: Pick<LookFlags, 'json'>,
  words: string,
  data: object = {},
): number {
  stdout.write(json ? `${JSON.stringify({ v: 1, message: words, ...data })}\n` : `${words}\n`)
  return 0
}

/** The work directory that is meant. */
export function directoryOf({ cwd }: Pick<CliContext, 'cwd'>, flags: DirectoryFlags): string {
  return resolve(cwd, flags.cd ?? '.')
}

/** How many rounds a run has if none are named, where no other limit is. */
export function roundsUnless(rounds: number): string {
  return `${rounds}, or no limit if --max-time, --max-tokens or --max-cost is given`
}

/** Adds the flags of a run; `rounds`: how many it has if none are named. */
export function withRunFlags(command: Command, rounds = roundsUnless(10), directory?: string): Command {
  return withDirectory(command, directory)
    .option('--rounds <n>', `most rounds (${rounds})`)
    .option('--max-time <duration>', 'most time, such as 8h or 1h30m')
    .option('--max-tokens <count>', 'most tokens, such as 5M or 500k')
    .option('--max-cost <amount>', 'most cost, by the prices in your config.toml, such as 10')
    .option('--max-usage <percent>', 'pause at this percentage of the usage limit, such as 90')
    .option('--max-wait <duration>', 'longest wait, or time of failures in a row, such as 12h (24h)')
    .option('-m, --model <name>', "the model (codex's own choice; of a build the agents')")
    .option('--effort <level>', 'reasoning effort: low, medium, high, …')
    .option('--provider <name>', 'model provider: ollama, lmstudio, or one of your config.toml (that of codex)')
    .option(
      '--engine <name>',
      'what runs the rounds: codex, claude, gemini, opencode, or one of your config.toml (codex)',
    )
    .option('--fallback <names>', 'engines that continue while the usage window is full, such as claude,gemini')
    .addOption(new Option('--sandbox <mode>', 'what the agent may write (workspace-write)').choices(SANDBOX_MODES))
    .option('--network', 'let commands in the sandbox reach the network')
    .addOption(verifyOption())
    .option('--publish <state>', 'at the end push the result, and open a request: draft, ready (once done) or no')
    .option('--review', 'done only if a reviewer agrees')
    .option('--no-review', 'no review, whatever the settings say')
    .option('--prove', 'prove each sentence of the goal, by checks written before the work')
    .option('--no-prove', 'no --prove, whatever the settings say')
    .option('--require-proof', 'done only if each sentence is proved; else it needs you')
    .option('--no-require-proof', 'done also without every sentence proved, whatever the settings say')
    .addOption(new Option('--yolo', 'no sandbox at all: the same as --sandbox danger-full-access').conflicts('sandbox'))
    .addOption(
      new Option('-c, --config <key=value>', "override codex's configuration; may be repeated").argParser(collect),
    )
    .addOption(codexBinOption())
    .option('--no-keep-awake', 'let the machine go to sleep during the run')
    .option('--plain', 'plain lines, one per event')
    .option('--json', 'events as JSON lines')
    .option('--web', 'serve the page for a browser (codemachine web), and print a link to it')
    .option('--detach', 'run without this terminal; codemachine attach shows the run')
}

const OF_CONTRACTS = /^--(?:no-)?(?:prove|require-proof)$/

/** Leaves the flags of a contract out of the help of a command whose sessions have none; typed, they are a remark. */
export function withoutContract(command: Command): Command {
  for (const option of command.options) if (OF_CONTRACTS.test(option.long ?? '')) option.hideHelp()
  return command
}

/** `--verify`. */
export function verifyOption(): Option {
  const what = 'done only if this passes, such as "npm test"; auto finds the project\'s own; may be repeated'
  return new Option('--verify <command>', what).argParser(eachTyped)
}

/** The parser of an option that may be repeated. */
export function eachTyped(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value]
}

/** `--follow-up`. */
export function followUpOption(): Option {
  return new Option('--follow-up <session>', 'continue from the result of another session; the agents are told')
}

/** `--issue`. */
export function issueOption(): Option {
  return new Option('--issue <issue>', 'work on an issue of GitHub or GitLab: its number, or its address')
}

/** `--contract-only`. */
export function contractOnlyOption(): Option {
  return new Option('--contract-only', 'write the contract of --prove, and end; codemachine resume does the work')
}

/** `--worktree`. */
export function worktreeOption(): Option {
  const what = 'work in its own worktree and branch (codemachine/<name>); codemachine land merges it'
  return new Option('--worktree [name]', what)
}

/** `--codex-bin`. */
export function codexBinOption(): Option {
  return new Option('--codex-bin <path>', 'the codex to use (CODEX_BIN, PATH, then the copy in node_modules)')
}

function collect(value: string, before: string[] | undefined): string[] {
  if (!/^[^=\s]+=/.test(value)) throw new InvalidArgumentError('Use key=value, such as model_verbosity=low.')
  return [...(before ?? []), value]
}

const MOST_BYTES = 8 * 1024 * 1024

/**
 * The text of a goal or prompt: what was typed, or all of standard input where that was `-`. Checked. Throws
 * `Interrupted` if the program is asked to end while it reads.
 */
export async function readText(context: CliContext, typed: string): Promise<string> {
  const text = typed === '-' ? await readAll(context) : typed
  const problem = problemOfPrompt(text)
  if (problem !== null) throw new UserError('CM0107', problem)
  return text.trim()
}

/** All of standard input. Throws `Interrupted` if the program is asked to end while it reads. */
export async function readAll(context: Pick<CliContext, 'stdin' | 'signal'>): Promise<string> {
  const read = await readBytes(context, MOST_BYTES)
  if (read !== null) return textOfInput(read)
  throw new UserError('CM0107', 'Standard input has more than 8 MiB; put the text into a file and name that file.')
}

/** What standard input holds as text. A `UserError` if it is no UTF-8, of which UTF-16 without its mark has zeros between the letters. */
export function textOfInput(bytes: Buffer): string {
  const text = utf8Text(bytes)
  if (text !== null && !text.includes('\0')) return text
  throw new UserError('CM0107', 'Standard input is not UTF-8 text; convert it to UTF-8.')
}

/** All of standard input; null if it has more bytes than these. Throws `Interrupted` if the program is asked to end while it reads. */
export async function readBytes(
  { stdin, signal }: Pick<CliContext, 'stdin' | 'signal'>,
  mostBytes: number,
): Promise<Buffer | null> {
  const { addAbortSignal } = await import('node:stream')
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of addAbortSignal(signal, stdin)) {
      const bytes = Buffer.from(chunk)
      length += bytes.length
      if (length > mostBytes) return null
      chunks.push(bytes)
    }
  } catch (error) {
    throw signal.aborted ? new Interrupted(signal.reason) : error
  }
  return Buffer.concat(chunks)
}

/** Whether a person watches, on a terminal that can be drawn on, who has not asked for lines. */
export function wantsScreen(
  { stdin, stdout, env, display }: CliContext,
  { plain, json }: Pick<RunFlags, 'plain' | 'json'>,
): boolean {
  if (display !== undefined || plain || json) return false
  return stdin.isTTY === true && stdout.isTTY === true && env.TERM !== 'dumb'
}

/** Whether what is written to stdout is coloured: as NO_COLOR (no-color.org) or FORCE_COLOR say, else on a terminal. */
export function wantsColour({ env, stdout }: Pick<CliContext, 'env' | 'stdout'>): boolean {
  if (env.NO_COLOR) return false
  if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false'
  return stdout.isTTY === true && env.TERM !== 'dumb'
}
