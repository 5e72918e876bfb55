import type { ToolAnswer } from '../../core/engine.ts'
import { parseAnswer, refusedAnswerNote } from '../../core/rules/answer.ts'
import { readStepAnswer, STEP_ANSWER, type StepAnswer } from '../../core/shapes/shell-tools.ts'
import type { RoundSpec } from '../../core/template.ts'
import type { SessionShell, ShellPlace } from './session-shell.ts'

/** Number of useless messages in a row that ends the round. */
const MOST_MISFITS = 3
/** Number of equal results of a command after which the agent is told. */
const SAME_RESULTS = 3

/** Progress of a round without tools. */
export interface StepTally {
  /** Number of commands that ran. */
  commands: number
  /** Number of useless messages in a row. */
  misfits: number
  /** Number of equal results, by result. */
  same: ReadonlyMap<string, number>
}

export const NO_STEPS: StepTally = { commands: 0, misfits: 0, same: new Map() }

/** The reaction to a message. `over`: none, the round ends with it. */
type StepMove =
  | { kind: 'run'; answer: StepAnswer }
  | { kind: 'ask'; ask: NonNullable<StepAnswer['ask']> }
  | { kind: 'tell'; text: string }
  | { kind: 'over' }

/** Returns the reaction to a message of an agent without tools (null: no message). Pure. */
export function moveAfter(tally: StepTally, message: string | null, mostCommands: number): StepMove {
  const parsed = parseAnswer(message, STEP_ANSWER.schema)
  const read = parsed.ok ? readStepAnswer(parsed.value) : parsed
  if (!read.ok) return orOver(tally, refusedAnswerNote(read.problem, STEP_ANSWER))
  const answer = read.value
  if (answer.ask !== null) return { kind: 'ask', ask: answer.ask }
  if (answer.command.trim() !== '') return tally.commands < mostCommands ? { kind: 'run', answer } : { kind: 'over' }
  return answer.done ? { kind: 'over' } : orOver(tally, NO_COMMAND)
}

/** Tells the agent what to fix, or ends the round after too many useless messages. Pure. */
function orOver({ misfits }: StepTally, text: string): StepMove {
  return misfits + 1 < MOST_MISFITS ? { kind: 'tell', text } : { kind: 'over' }
}

/** Returns the tally after a useless message. Pure. */
function withMisfit(tally: StepTally): StepTally {
  return { ...tally, misfits: tally.misfits + 1 }
}

/** Returns the tally after a command; `same` as of `ShellAnswer`. Pure. */
export function withCommand({ commands, same: before }: StepTally, same: string | null): StepTally {
  const known = same === null ? before : new Map(before).set(same, (before.get(same) ?? 0) + 1)
  return { commands: commands + 1, misfits: 0, same: known }
}

/** Returns the notes below the result of a command, one a line. @param tally after it. Pure. */
export function notesAfter(
  tally: StepTally,
  same: string | null,
  { done }: StepAnswer,
  mostCommands: number,
): string[] {
  const times = same === null ? 0 : (tally.same.get(same) ?? 0)
  return [
    ...(times >= SAME_RESULTS ? [`This command had the same result ${times} times. ${ANOTHER_WAY}`] : []),
    ...(tally.commands >= mostCommands ? [SAY_HOW_IT_IS] : []),
    ...(done ? [DONE_WITH_COMMAND] : []),
  ].map(note => `NOTE: ${note}`)
}

const NO_COMMAND =
  'Your answer has no command, and does not say that the work is done. Answer with the next command, or with `done` true. If you cannot continue, say why in `thoughts`, without a command.'
const ANOTHER_WAY = 'Try another approach, or answer without a command and say in `thoughts` what is missing.'
const SAY_HOW_IT_IS =
  'No more commands are run. Answer once more, with an empty command: `done` true if the work is done, else false, and say in `thoughts` what is missing.'
const DONE_WITH_COMMAND =
  'Your answer says that the work is done, but also has a command. If it is done, say so without a command.'

interface StepwiseOptions extends NonNullable<RoundSpec['stepwise']> {
  shell: Pick<SessionShell, 'run' | 'ask'>
  thread: ShellPlace['thread']
  /** Called with files in which a command has left a secret. */
  onLeak(files: readonly string[]): void
}

/** A round whose agent works without tools: each message names a command, and the next turn gives the result. */
export class StepwiseRound {
  readonly #options: StepwiseOptions
  #tally = NO_STEPS

  constructor(options: StepwiseOptions) {
    this.#options = options
  }

  /**
   * Carries out the request of a message. Resolves with the input of the next turn; null: the round ends with this message.
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
