import type { Command } from 'commander'
import { buildProgram } from '../src/doors/cli/program.ts'

/** Rows of terms, such as `-f, --follow`, and what each means. */
type Rows = readonly (readonly [term: string, meaning: string])[]

/** A command of the command line, for its pages. */
interface CommandEntry {
  /** `service install`. */
  words: string
  /** 1: a command of the program; each command below it is one deeper. */
  depth: number
  /** Its arguments and options, as after its words. */
  usage: string
  /** One sentence. */
  description: string
  /** True: it takes all options of a run, too. They are not among its rows. */
  isRun: boolean
  rows: Rows
}

/** Returns all commands of `codemachine` in the order of its help, and the options of the program itself. */
export function commandTree(): { entries: readonly CommandEntry[]; options: Rows; description: string } {
  const context = { program: 'codemachine', stdout: SILENT, stderr: SILENT, own: { detached: null } }
  const program = buildProgram(context as never, () => {})
  return {
    entries: program.commands.flatMap(each => entriesOf(each, 1)),
    options: optionsOf(program, () => true),
    description: program.description(),
  }
}

const SILENT = { write: () => true }

/** The exit codes, in Markdown. */
export const EXIT_CODES: Rows = [
  ['0', 'done. Without gates that means *not verified*. Of `--agent`: answered. Of a replay: replayed'],
  ['1', 'a bug in codemachine; the journal is whole'],
  ['2', 'wrong usage or settings; one sentence says what to fix, and nothing was started'],
  ['3', 'a limit was reached: rounds, time, tokens or cost'],
  [
    '4',
    'needs a person: login, credit, a decision, a full or failing disk. Of `review` and `verify`: not agreed, or not proved. Of `land`: a conflict, or not proved. Of a workflow: a step failed',
  ],
  ['5', 'stalled: several rounds changed nothing, in spite of another approach and more effort'],
  ['6', 'another codemachine runs here'],
  ['130, 143', 'interrupted; `codemachine resume` continues'],
]

function entriesOf(command: Command, depth: number): CommandEntry[] {
  const helper = command.createHelp()
  const isRun = command.options.some(({ long }) => long === '--max-tokens')
  const ofRun = new Set(isRun ? rootOf(command).options.map(({ long }) => long) : [])
  const words = nameOf(command)
  const own = {
    words,
    depth,
    usage: helper
      .commandUsage(command)
      .split(' ')
      .slice(words.split(' ').length + 1)
      .join(' '),
    description: sentence(command.description()),
    isRun,
    rows: [
      ...command.registeredArguments.map(
        each => [helper.argumentTerm(each), helper.argumentDescription(each)] as const,
      ),
      ...optionsOf(command, long => long !== '--help' && !ofRun.has(long)),
    ],
  }
  return [own, ...command.commands.flatMap(each => entriesOf(each, depth + 1))]
}

function optionsOf(command: Command, isTold: (long: string | undefined) => boolean): Rows {
  const helper = command.createHelp()
  return helper
    .visibleOptions(command)
    .filter(({ long }) => isTold(long))
    .map(each => [helper.optionTerm(each), helper.optionDescription(each)])
}

const rootOf = (command: Command): Command => (command.parent === null ? command : rootOf(command.parent))
const nameOf = (command: Command): string =>
  command.parent?.parent == null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? '' : '.'}`
