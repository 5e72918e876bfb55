import type { Reachable } from '../app/work-through.ts'
import { messageOf, UserError } from '../base/errors.ts'
import { isTaken } from '../core/contracts/reply.ts'
import type { Recorded, View } from '../core/events/events.ts'
import { answerIn, type DecisionAnswer, type OpenDecision } from '../core/rules/decision.ts'
import type { SessionState } from '../core/state/state.ts'
import { writableByAgents } from '../platform/files.ts'
import { openRecords } from '../records/records.ts'
import type { CliContext } from '../tui/cli-context.ts'

/**
 * Has the person at a plain terminal decide in a line: the number or the id of a choice, and behind it what they say with
 * it. Reads the terminal only while something is asked, and lets go of it when that was answered by another door.
 */
export class DecisionPrompt implements View {
  readonly #context: CliContext
  #sessions: Reachable | null = null
  #asked: { key: string; over: AbortController } | null = null
  /** Whether the cursor stands behind the prompt: no line has been ended since. */
  #isMidLine = false

  constructor(context: CliContext) {
    this.#context = context
  }

  /** Who takes the answers; null: nobody just now. */
  reach(sessions: Reachable | null): void {
    this.#sessions = sessions
    if (sessions === null) this.#end()
  }

  event(_: Recorded, state: SessionState): void {
    const decision = state.ended === null ? state.decision : null
    const key = decision === null ? null : `${state.id} ${decision.id} ${decision.since}`
    if (key === (this.#asked?.key ?? null)) return
    this.#end()
    if (decision === null || key === null || decision.until <= decision.since) return
    const over = new AbortController()
    this.#asked = { key, over }
    this.#ask(decision, state, over.signal).catch(error => {
      this.#context.stderr.write(`codemachine: ${messageOf(error)}\n`)
    })
  }

  live(): void {}

  /** Ends the line that the prompt stands on; to be called before anything else is printed. */
  endLine(): void {
    if (this.#isMidLine) this.#context.stdout.write('\n')
    this.#isMidLine = false
  }

  #end(): void {
    this.#asked?.over.abort()
    this.#asked = null
  }

  async #ask(decision: OpenDecision, { id, directory }: SessionState, over: AbortSignal): Promise<void> {
    const { stdin, stdout } = this.#context
    const { createInterface } = await import('node:readline')
    if (over.aborted) return
    // Not as a terminal of readline's own, which would take Ctrl-C for itself.
    const lines = createInterface({ input: stdin, terminal: false, signal: over })
    const prompt = () => {
      stdout.write(`Your choice (${decision.choices.map(wordsFor).join(', ')}): `)
      this.#isMidLine = true
    }
    prompt()
    try {
      for await (const line of lines) {
        // The terminal has shown the person's Enter.
        this.#isMidLine = false
        if (over.aborted) return
        const said = answerIn(line, decision.choices)
        if (said !== null && (await this.#answer(said, decision, { id, directory }))) return
        if (!over.aborted) prompt()
      }
    } finally {
      lines.close()
      // Else the program would not end while the terminal is read.
      stdin.pause()
    }
  }

  /** Gives the answer to the session; false if it was not taken, which has been said. */
  async #answer(
    answer: DecisionAnswer,
    decision: OpenDecision,
    { id, directory }: Pick<SessionState, 'id' | 'directory'>,
  ): Promise<boolean> {
    const { stdout, clock } = this.#context
    const chosen = decision.choices.find(each => each.id === answer.choice)
    if (chosen?.opensFile && decision.file !== undefined) {
      const problem = await editOnTerminal(this.#context, directory, decision.file)
      if (problem !== null) {
        stdout.write(`${problem}\n`)
        return false
      }
    }
    const at = new Date(clock.now()).toISOString()
    const reply = await this.#sessions?.ask({ type: 'decide', ...answer, session: id, decision: decision.id, at })
    if (reply === undefined) return true
    if (!isTaken(reply)) stdout.write(`${reply.message}\n`)
    return isTaken(reply)
  }
}

function wordsFor({ id, text }: OpenDecision['choices'][number], at: number): string {
  return `${at + 1} ${id}${text === undefined ? '' : ' …'}`
}

/** Opens a file of a work directory in the person's editor, on this terminal; why it could not be edited, null if it was. */
export async function editOnTerminal(context: CliContext, directory: string, file: string): Promise<string | null> {
  const { env, platform, host } = context
  // Loaded only here: whatever prints lines loads this file.
  const [{ editText }, { editFileInside }] = await Promise.all([
    import('../platform/terminal.ts'),
    import('../workspace/files/inside-directory.ts'),
  ])
  const records = await openRecords({ ...context, directory })
  const where = writableByAgents(records.directory, env, [])
  try {
    return await editFileInside(records.directory, file, async text => {
      const run = host.withoutInterrupt.bind(host)
      const edited = await editText({ text, env, platform, temporary: records.folder, where, run })
      if (edited.kind === 'failed') throw new UserError(edited.message)
      return edited.kind === 'edited' ? edited.text : null
    })
  } catch (error) {
    if (error instanceof UserError) return error.message
    throw error
  }
}
