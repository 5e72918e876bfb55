import type { ToolAnswer } from '../../core/engine.ts'
import { parseAnswer, refusedAnswerNote } from '../../core/rules/answer.ts'
import { readStepAnswer, STEP_ANSWER, type StepAnswer } from '../../core/shapes/shell-tools.ts'
import type { RoundSpec } from '../../core/template.ts'
import type { SessionShell, ShellPlace } from './session-shell.ts'

/** So often in a row may a message be of no use before the round ends. */
const MOST_MISFITS = 3
/** So often may a command come to the same before the agent is told. */
const SAME_RESULTS = 3

/** What has come of the turns of a round without tools so far. */
export interface StepTally {
  /** Commands that were run. */
  commands: number
  /** Messages in a row with which nothing could be done. */
  misfits: number
  /** How often each command came to the same result. */
  same: ReadonlyMap<string, number>
}

export const NO_STEPS: StepTally = { commands: 0, misfits: 0, same: new Map() }

/** What is done about a message. `over`: nothing, the round ends with it. */
type StepMove =
  | { kind: 'run'; answer: StepAnswer }
  | { kind: 'ask'; ask: NonNullable<StepAnswer['ask']> }
  | { kind: 'tell'; text: string }
  | { kind: 'over' }

/** What is done about a message of an agent that works without tools (null: it said nothing). Pure. */
export function moveAfter(tally: StepTally, message: string | null, mostCommands: number): StepMove {
  const parsed = parseAnswer(message, STEP_ANSWER.schema)
  const read = parsed.ok ? readStepAnswer(parsed.value) : parsed
  if (!read.ok) return orOver(tally, refusedAnswerNote(read.problem, STEP_ANSWER))
  const answer = read.value
  if (answer.ask !== null) return { kind: 'ask', ask: answer.ask }
  if (answer.command.trim() !== '') return tally.commands < mostCommands ? { kind: 'run', answer } : { kind: 'over' }
  return answer.done ? { kind: 'over' } : orOver(tally, NO_COMMAND)
}

/** Tells the agent something that it has to mend, unless that was in vain too often. Pure. */
function orOver({ misfits }: StepTally, text: string): StepMove {
  return misfits + 1 < MOST_MISFITS ? { kind: 'tell', text } : { kind: 'over' }
}

/** The tally after a message that came to nothing. Pure. */
function withMisfit(tally: StepTally): StepTally {
  return { ...tally, misfits: tally.misfits + 1 }
}

/** The tally after a command; `same` as of `ShellAnswer`. Pure. */
export function withCommand({ commands, same: before }: StepTally, same: string | null): StepTally {
  const known = same === null ? before : new Map(before).set(same, (before.get(same) ?? 0) + 1)
  return { commands: commands + 1, misfits: 0, same: known }
}

/** What the agent is told below the result of a command, a line each. @param tally after it. Pure. */
export function notesAfter(
  tally: StepTally,
  same: string | null,
  { done }: StepAnswer,
  mostCommands: number,
): string[] {
  const times = same === null ? 0 : (tally.same.get(same) ?? 0)
  return [
    ...(times >= SAME_RESULTS ? [`This command has come to the same result ${times} times. ${ANOTHER_WAY}`] : []),
    ...(tally.commands >= mostCommands ? [SAY_HOW_IT_IS] : []),
    ...(done ? [DONE_WITH_COMMAND] : []),
  ].map(note => `NOTE: ${note}`)
}

const NO_COMMAND =
  'There was no command in your answer, and it did not say that the work is done. Answer with the next command, or with `done` true; if you cannot go on, say why in `thoughts`, without a command.'
const ANOTHER_WAY = 'Go another way, or answer without a command and say in `thoughts` what is missing.'
const SAY_HOW_IT_IS =
  'No more commands are run. Answer once more, with an empty command: `done` true if the work is done, else false, and say in `thoughts` what is missing.'
const DONE_WITH_COMMAND =
  'Your answer said that the work is done, and had a command, too: if it is done, say so without a command.'

interface StepwiseOptions extends NonNullable<RoundSpec['stepwise']> {
  shell: Pick<SessionShell, 'run' | 'ask'>
  thread: ShellPlace['thread']
  /** Told of files in which a command has left a secret. */
  onLeak(files: readonly string[]): void
}

/** A round whose agent works without tools: it names a command in each message, and is told in the next turn what came of it. */
export class StepwiseRound {
  readonly #options: StepwiseOptions
  #tally = NO_STEPS

  constructor(options: StepwiseOptions) {
    this.#options = options
  }

  /**
   * Does what a message asks for. Resolves with the input of the next turn; null: the round ends with this message.
   * @param message the last one of the turn; null: there was none
   * @param signal breaks off the command
   */
  async next(message: string | null, signal: AbortSignal): Promise<string | null> {
    const { mostCommands, shell, thread } = this.#options
    const move = moveAfter(this.#tally, message, mostCommands)
    switch (move.kind) {
      case 'over':
        return null
      case 'tell':
        this.#tally = withMisfit(this.#tally)
        return move.text
      case 'ask':
        return this.#afterAsking(await shell.ask(move.ask))
      case 'run': {
        const { text, same, leaked } = await shell.run(move.answer, { thread, signal })
        if (leaked.length > 0) this.#options.onLeak(leaked)
        this.#tally = withCommand(this.#tally, same)
        return [text, ...notesAfter(this.#tally, same, move.answer, mostCommands)].join('\n')
      }
    }
  }

  #afterAsking({ text, isAsked }: ToolAnswer & { isAsked: boolean }): string | null {
    const move = isAsked ? { kind: 'over' as const } : orOver(this.#tally, text)
    this.#tally = withMisfit(this.#tally)
    return move.kind === 'tell' ? move.text : null
  }
}
