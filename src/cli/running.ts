import type { Command } from 'commander'
import type { Ask } from '../app/library.ts'
import type { CliContext } from '../tui/cli-context.ts'
import { type DirectoryFlags, directoryOf, type Ended, withDirectory } from './flags.ts'

/** A command that asks something of the codemachine that runs in the work directory. */
export interface RunningCommand {
  name: string
  /** For the help. */
  description: string
  /** What its words are, for the help; left out: it takes none. They are the text of what is asked, and `-` is standard input. */
  text?: string
  /** A flag, with its description. */
  flag?: readonly [name: string, description: string]
  /** What is asked. */
  ask(said: { text: string; now: boolean }): Ask
  /** What one would do to a run, as in `there is nothing to steer`. */
  verb: string
  /** How to get what is wanted where nobody runs. */
  withoutRun: string
  /** What to do if the run does not take it. */
  refused: string
}

const HOW_THEY_STAND = 'How its sessions stand: codemachine list'
const WHAT_IT_DOES = 'What it is doing: codemachine status'
const TO_RESUME = 'To go on with a session: codemachine resume'

/** All of them, in the order of the help. */
const RUNNING_COMMANDS: readonly RunningCommand[] = [
  {
    name: 'steer',
    description: 'tell the running agent something, from another terminal',
    text: 'what to tell it; - reads it from standard input',
    ask: ({ text }) => ({ type: 'steer', text }),
    verb: 'steer',
    withoutRun: 'To have it done as a session of its own: codemachine queue add "…"',
    refused: 'If the session goes on, say it again; else: codemachine queue add "…"',
  },
  {
    name: 'stop',
    description: 'end the run after this round, from another terminal; resume goes on from there',
    flag: ['--now', 'interrupt the round'],
    ask: ({ now }) => ({ type: 'stop', now }),
    verb: 'stop',
    withoutRun: HOW_THEY_STAND,
    refused: WHAT_IT_DOES,
  },
  {
    name: 'pause',
    description: 'start no further round until unpause, from another terminal',
    ask: () => ({ type: 'pause' }),
    verb: 'pause',
    withoutRun: HOW_THEY_STAND,
    refused: WHAT_IT_DOES,
  },
  {
    name: 'unpause',
    description: 'go on after pause',
    ask: () => ({ type: 'unpause' }),
    verb: 'unpause',
    withoutRun: TO_RESUME,
    refused: WHAT_IT_DOES,
  },
  {
    name: 'retry',
    description: 'end what it waits for now, from another terminal: it tries again at once',
    ask: () => ({ type: 'retry' }),
    verb: 'retry',
    withoutRun: TO_RESUME,
    refused: WHAT_IT_DOES,
  },
  {
    name: 'interrupt',
    description: 'interrupt the round and hold, from another terminal: unpause goes on',
    ask: () => ({ type: 'interrupt' }),
    verb: 'interrupt',
    withoutRun: HOW_THEY_STAND,
    refused: WHAT_IT_DOES,
  },
  {
    name: 'skip',
    description: 'end this session and go on with the next in the queue, from another terminal',
    ask: () => ({ type: 'skip' }),
    verb: 'skip',
    withoutRun: 'What waits: codemachine queue list',
    refused: WHAT_IT_DOES,
  },
  {
    name: 'replan',
    description: 'have the plan changed, from another terminal; then it holds until unpause',
    text: 'what to change; - reads it from standard input',
    ask: ({ text }) => ({ type: 'replan', text }),
    verb: 'change the plan of',
    withoutRun: 'MAIN.md and tasks.json of its session can be edited by hand; codemachine resume goes on.',
    refused: WHAT_IT_DOES,
  },
]

/** Adds them to the command line. */
export function addRunningCommands(program: Command, context: CliContext, ended: Ended): void {
  for (const running of RUNNING_COMMANDS) {
    const command = withDirectory(program.command(running.name)).description(running.description)
    if (running.flag !== undefined) command.option(...running.flag)
    const ask = async (words: readonly string[], flags: DirectoryFlags & { now?: true }) => {
      const { askRunning } = await import('./commands/ask.ts')
      const said = { text: words.join(' '), now: flags.now ?? false }
      ended(await askRunning(context, directoryOf(context, flags), running, said))
    }
    if (running.text === undefined) command.action((flags: DirectoryFlags) => ask([], flags))
    else command.argument('<text...>', running.text).action(ask)
  }
}
