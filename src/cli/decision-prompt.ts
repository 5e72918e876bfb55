import type { Reachable } from '../app/work-through.ts'
import { messageOf, UserError } from '../base/errors.ts'
import { codeBlock } from '../base/markdown.ts'
import { isTaken } from '../core/contracts/reply.ts'
import type { Recorded, View } from '../core/events/events.ts'
import { answerIn, type DecisionAnswer, type OpenDecision } from '../core/rules/decision.ts'
import type { SessionState } from '../core/state/state.ts'
import { writableByAgents } from '../platform/files.ts'
import { openRecords } from '../records/records.ts'
import type { CliContext } from '../tui/cli-context.ts'
import { choicesInWords, decidedMeanwhile, keptEdit, wordsForDecisionEnd } from '../words/decision.ts'
import { safeText } from '../words/safe-text.ts'
import { wantsColour } from './flags.ts'

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
    const about = await linesAbout(this.#context, decision)
    const { createInterface } = await import('node:readline')
    if (over.aborted) return
    // Not as a terminal of readline's own, which would take Ctrl-C for itself.
    const lines = createInterface({ input: stdin, terminal: false, signal: over })
    const prompt = () => {
      stdout.write(`Your choice (${decision.choices.map(wordsFor).join(', ')}): `)
      this.#isMidLine = true
    }
    if (about.length > 0) stdout.write(`${about.join('\n')}\n`)
    prompt()
    try {
      for await (const line of lines) {
        // The terminal has shown the person's Enter.
        this.#isMidLine = false
        if (over.aborted) return
        const said = answerIn(line, decision.choices)
        if (said !== null && (await this.#answer(said, decision, { id, directory }, over))) return
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
    over: AbortSignal,
  ): Promise<boolean> {
    const { stdout, clock } = this.#context
    const chosen = decision.choices.find(each => each.id === answer.choice)
    const file = (chosen?.opensFile && decision.file) || null
    if (file !== null) {
      const problem = await editOnTerminal(this.#context, directory, file)
      if (problem !== null) {
        stdout.write(`${problem}\n`)
        return false
      }
      // It is another decision that would be answered.
      if (over.aborted) {
        stdout.write(`${decidedMeanwhile(file)}\n`)
        return true
      }
    }
    const at = new Date(clock.now()).toISOString()
    const reply = await this.#sessions?.ask({ type: 'decide', ...answer, session: id, decision: decision.id, at })
    if (reply === undefined) return true
    if (!isTaken(reply)) stdout.write(`${reply.message}${file === null ? '' : ` ${keptEdit(file)}`}\n`)
    return isTaken(reply)
  }
}

/** Whether a decision says so much that it is told where it is asked, and not in a line of what happened. */
export function isToldWhereAsked({ body, at, until }: { body: string; at: string; until: string }): boolean {
  return body.trim() !== '' && Date.parse(until) > Date.parse(at)
}

/** What a decision is about, what can be chosen, and until when; nothing where a line of what happened has said it. */
async function linesAbout(context: CliContext, decision: OpenDecision): Promise<string[]> {
  if (decision.body.trim() === '') return []
  const left = wordsForDecisionEnd(decision, context.clock.now())
  const about = await markdownOn(context, decision.body)
  const space = about.length > 1 ? [''] : []
  return [...space, ...about, ...space, ...choicesInWords(decision), left]
}

/** Of a file that lines go to. */
const COLUMNS = 80
const LEAST_COLUMNS = 40

/** The width of what lines go to, in cells. */
export function columnsOf({ stdout }: Pick<CliContext, 'stdout'>): number {
  return Math.max(LEAST_COLUMNS, stdout.columns ?? COLUMNS)
}

/** A Markdown text in lines for stdout: drawn for a terminal, as it is written (and safe) for a file or a pipe. */
export async function markdownOn(context: Pick<CliContext, 'env' | 'stdout'>, text: string): Promise<string[]> {
  if (context.stdout.isTTY !== true) return safeText(text.trimEnd()).split('\n')
  // Loaded only here: whatever prints lines loads this file.
  const [{ markdownLines }, { openTheme }] = await Promise.all([
    import('../tui/blocks/markdown.ts'),
    import('../tui/terminal/theme.ts'),
  ])
  const theme = openTheme({ theme: wantsColour(context) ? 'auto' : 'plain', env: context.env, reader: false })
  return markdownLines(text, { columns: columnsOf(context), theme, first: true })
}

/** A unified diff in lines for stdout, as `markdownOn`. */
export async function diffOn(context: Pick<CliContext, 'env' | 'stdout'>, diff: string): Promise<string[]> {
  return await markdownOn(context, context.stdout.isTTY === true ? codeBlock(diff, 'diff') : diff)
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
