import { messageOf, UserError, withCode } from '../../base/errors.ts'
import { codeBlock } from '../../base/markdown.ts'
import type { Recorded } from '../../core/events/events.ts'
import { answerIn, type DecisionAnswer, GIVE_SECRET, type OpenDecision } from '../../core/rules/decision.ts'
import { isTaken } from '../../core/shapes/reply.ts'
import { MOST_VALUE_BYTES, problemOfValue } from '../../core/shapes/secrets.ts'
import type { SessionState, View } from '../../core/state/state.ts'
import type { Reachable } from '../../project/sessions.ts'
import { openRecords, type Records } from '../../session/records/records.ts'
import { choicesInWords, decidedMeanwhile, keptEdit, wordsForDecisionEnd } from '../../tell/words/decision.ts'
import { safeText } from '../../tell/words/safe-text.ts'
import { writableIn } from '../../workspace/git/find-git.ts'
import type { CliContext } from '../screen/cli-context.ts'
import type { HiddenText, TakenBack } from '../screen/terminal/hidden-field.ts'
import { wantsColour } from './flags.ts'
import { warnOn } from './warn-on.ts'

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
  /** The last field for a secret: it has the terminal until it is over. */
  #field: Promise<unknown> = Promise.resolve()

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
      warnOn(this.#context)(messageOf(error))
    })
  }

  live(): void {}

  /** Ends the line that the prompt stands on; to be called before anything else is printed. */
  endLine(): void {
    if (this.#isMidLine) this.#context.stdout.write('\n')
    this.#isMidLine = false
  }

  #end(): void {
    if (this.#asked === null) return
    this.endLine()
    this.#asked.over.abort()
    this.#asked = null
  }

  async #ask(decision: OpenDecision, state: SessionState, over: AbortSignal): Promise<void> {
    const about = await linesAbout(this.#context, decision)
    // The rest of a secret that is not asked for any more would be the answer to this.
    await this.#field
    if (over.aborted) return
    if (about.length > 0) this.#context.stdout.write(`${about.join('\n')}\n`)
    while ((await this.#askInLines(decision, state, over)) === 'secret') {
      if (await this.#giveSecret(decision, state, over)) return
    }
  }

  /** Reads lines until one is taken, or the decision is over; `secret`: the value of the secret is to be given. */
  async #askInLines(decision: OpenDecision, state: SessionState, over: AbortSignal): Promise<'over' | 'secret'> {
    const { stdin, stdout } = this.#context
    const { createInterface } = await import('node:readline')
    if (over.aborted) return 'over'
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
        if (over.aborted) return 'over'
        const said = answerIn(line, decision.choices)
        const problem = said === null ? null : problemOfSecretAnswer(said, decision)
        if (problem !== null) stdout.write(`${problem}\n`)
        else if (said !== null) {
          if (givesSecret(said, decision)) return 'secret'
          if (await this.#answer(said, decision, state, over)) return 'over'
        }
        if (!over.aborted) prompt()
      }
      return 'over'
    } finally {
      lines.close()
      // Else the program would not end while the terminal is read.
      stdin.pause()
    }
  }

  /** Has the person type the secret that is asked for, stores it and answers; false: nothing is stored, and it is asked again. */
  async #giveSecret(decision: OpenDecision, state: SessionState, over: AbortSignal): Promise<boolean> {
    const { stdout, clock } = this.#context
    const { key = '' } = decision.secret ?? {}
    this.#isMidLine = true
    const field = askValue(this.#context, key, { signal: over, note: NOTHING_KEPT, clock })
    this.#field = field
    const typed = await field
    this.#isMidLine = false
    if (typed.kind === 'left') {
      if (typed.by === 'signal') return true
      stdout.write(`Nothing is stored.${typed.by === 'ctrl-c' ? ' Ctrl+C once more ends the run.' : ''}\n`)
      return false
    }
    try {
      // Loaded only here: whatever prints lines loads this file.
      const { setSecret } = await import('../../project/secrets/person-secrets.ts')
      const records = await openRecords({ ...this.#context, directory: state.directory })
      for (const warning of await setSecret(this.#context, records, key, typed.text, undefined)) {
        stdout.write(`${warning}\n`)
      }
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      stdout.write(`${withCode(error)}\n`)
      return false
    }
    // Who sets a secret tells the session, for which that is the answer.
    return over.aborted || (await this.#answer({ choice: GIVE_SECRET }, decision, state, over))
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

const NOTHING_KEPT = 'This question is closed, and your text was discarded. Press Enter.'

/** Asks for the value of a secret on the terminal, which shows nothing of it. */
export async function askValue(
  context: Pick<CliContext, 'stdin' | 'stdout' | 'signal' | 'host' | 'env'>,
  key: string,
  takenBack?: TakenBack,
): Promise<HiddenText> {
  const { askHidden } = await import('../screen/terminal/hidden-field.ts')
  return await askHidden(context, {
    prompt: `Value of ${key} (your typing is hidden; Ctrl+C cancels): `,
    mostBytes: MOST_VALUE_BYTES,
    problemOf: text => problemOfValue(text),
    ...(takenBack === undefined ? {} : { takenBack }),
  })
}

/** Whether an answer says that the person gives the secret that a decision is about. */
export function givesSecret({ choice }: DecisionAnswer, { secret }: Pick<OpenDecision, 'secret'>): boolean {
  return secret !== undefined && choice === GIVE_SECRET
}

/**
 * Why an answer to a decision about a secret is handed to nobody: it may have the value in it. A sentence without any of it;
 * null if it may be handed on.
 */
export function problemOfSecretAnswer(
  { choice, text }: DecisionAnswer,
  { secret, choices }: Pick<OpenDecision, 'secret' | 'choices'>,
): string | null {
  if (secret === undefined) return null
  const known = choices.map(({ id }) => id)
  if (!known.includes(choice)) return `There is no such choice; use one of ${known.join(', ')}.`
  return text !== undefined && choice === GIVE_SECRET
    ? `"${GIVE_SECRET}" takes no text: type the value at the hidden prompt.`
    : null
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
    import('../screen/blocks/markdown.ts'),
    import('../screen/terminal/theme.ts'),
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

/** Has the person edit a text in their editor, on this terminal; null if they left it as it was. A `UserError` if that failed. */
export async function editTextOnTerminal(
  { env, platform, host }: CliContext,
  { directory, folder }: Pick<Records, 'directory' | 'folder'>,
  text: string,
): Promise<string | null> {
  // Loaded only here: whatever prints lines loads this file.
  const { editText } = await import('../../platform/terminal.ts')
  const where = await writableIn(directory, env)
  const run = host.withoutInterrupt.bind(host)
  const edited = await editText({ text, env, platform, temporary: folder, where, run })
  if (edited.kind === 'failed') throw new UserError('CM0111', edited.message)
  return edited.kind === 'edited' ? edited.text : null
}

/** Opens a file of a work directory in the person's editor, on this terminal; why it could not be edited, null if it was. */
export async function editOnTerminal(context: CliContext, directory: string, file: string): Promise<string | null> {
  const { editFileInside } = await import('../../workspace/files/inside-directory.ts')
  const records = await openRecords({ ...context, directory })
  try {
    return await editFileInside(records.directory, file, text => editTextOnTerminal(context, records, text))
  } catch (error) {
    if (error instanceof UserError) return error.message
    throw error
  }
}
