import { dirname } from 'node:path'
import { UserError } from '../../base/errors.ts'
import type { Recorded } from '../../core/events/events.ts'
import { isTaken, type Reply } from '../../core/shapes/reply.ts'
import { FolderChanges } from '../../platform/files.ts'
import {
  type AskedQuestion,
  claimAnswer,
  promptOfAnswer,
  type QuestionAnswer,
  questionsOf,
  readPersonAnswer,
  remarkOfAnswer,
  writeAnswer,
} from '../../session/records/questions.ts'
import { openQueue } from '../../session/records/queue.ts'
import { type Records, repositoryOfCopy } from '../../session/records/records.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import type { World } from '../world.ts'

/** A question for a person, and its id: `20261121_1/Q1`. */
export interface AnsweredQuestion {
  records: Records
  /** Worktree of the question; null: the directory itself. */
  worktree: string | null
  asked: AskedQuestion
  id: string
}

/** Returns the earlier answer to a question; throws a `UserError` if there is one and `again` is not set. */
export async function earlierAnswer(
  { records, asked, id }: AnsweredQuestion,
  again: boolean,
): Promise<QuestionAnswer | null> {
  const before = await readPersonAnswer(records, asked.session, asked.question)
  if (before === null || again) return before
  throw new UserError('CM0615', `You answered ${id} at ${before.at}: ${oneLine(before.answer, 200)}`, {
    hint: `To answer it again: codemachine questions answer --again ${id} "…"`,
  })
}

/**
 * Answers a question: the asking session gets the answer while it runs, else it becomes a queued prompt. Either way it is
 * stored. Returns the effect in sentences; throws a `UserError` if it is already answered.
 * @param answer null accepts the assumption: after the session this queues nothing
 */
export async function giveAnswer(
  world: Pick<World, 'clock' | 'platform' | 'pid'>,
  question: AnsweredQuestion,
  { answer: said, again = false }: { answer: string | null; again?: boolean },
): Promise<string> {
  const { records, worktree, asked, id } = question
  const answer = said ?? asked.assumption
  const { session } = asked
  const at = new Date(world.clock.now())
  await using claim = await claimAnswer(records, session, asked.question, { ...world, now: at })
  if (claim === null) {
    throw new UserError('CM0615', `Another terminal is answering ${id} at this moment.`, {
      hint: `To see the answer: codemachine questions ${session} --all`,
    })
  }
  const before = await earlierAnswer(question, again)
  const queue = openQueue(records.queue)
  // An answer that is still queued had no effect yet: the new one replaces it.
  const isWaiting = before !== null && (await queue.list()).prompts.some(prompt => prompt.id === before.queued)
  const earlierOne = isWaiting ? null : (before?.answer ?? null)
  const told = await tellSession(world, records, asked, remarkOfAnswer(asked, answer, earlierOne))
  const waiting = isWaiting ? (before?.queued ?? null) : null
  const kept = { answer, at: at.toISOString() }
  if (isTaken(told)) {
    await writeAnswer(records, session, asked.question, {
      ...kept,
      told: told.code === 'kept' ? 'next-round' : 'round',
    })
    if (waiting !== null) await queue.remove(waiting)
    return told.message
  }
  if (said === null) {
    await writeAnswer(records, session, asked.question, kept)
    if (waiting !== null) await queue.remove(waiting)
    return 'The work stays as it is.'
  }
  // No session ever begins there.
  if (repositoryOfCopy(records) !== null)
    throw new UserError(
      'CM0613',
      told.message || `${session} does not run at the moment; answer when a worker runs it again.`,
    )
  const prompt = promptOfAnswer(asked, answer, earlierOne)
  if (waiting !== null) await queue.edit(waiting, prompt)
  const queued = waiting ?? (await queue.add(prompt, at)).id
  await writeAnswer(records, session, asked.question, { ...kept, queued })
  const where = worktree === null ? '' : 'of that worktree '
  return `${told.message} It waits in the queue ${where}as ${queued}, and becomes a session of its own.`.trimStart()
}

/** Tells the asking session, if it runs. Otherwise returns a sentence why not, or nothing if no session runs. */
async function tellSession(
  world: Pick<World, 'clock' | 'platform'>,
  records: Records,
  { session, question, agent }: AskedQuestion,
  text: string,
): Promise<Reply> {
  const ask = { type: 'answer', session, question, text, ...(agent && { agent }) } as const
  const { askRun } = await import('../commands/commands.ts')
  try {
    return (await askRun(world, records, ask)) ?? { code: 'no-session', message: '' }
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return { code: 'failed', message: error.message }
  }
}

/** Returns the meant answer: a number alone selects that option. Throws a `UserError` if there is no such option. */
export function chosenAnswer(
  typed: string,
  { question, options }: Pick<AskedQuestion, 'question' | 'options'>,
  id = question,
): string {
  if (options.length === 0 || !/^\d{1,9}$/.test(typed)) return typed
  const option = options[Number(typed) - 1] ?? options.find(each => each === typed)
  if (option !== undefined) return option
  throw new UserError(
    'CM0615',
    `${id} has no option ${typed}; use a number from 1 to ${options.length}, or answer in words.`,
  )
}

/** Catches changes that a watcher missed, or where no watcher works, in ms. */
const POLL_MS = 2_000
/** The answer's file follows soon after the session is told, in ms. */
const PACE_MS = 100

export interface QuestionWatchOptions {
  records: Records
  session: string
  clock: World['clock']
  /** Ends the watching. */
  signal: AbortSignal
  /** Removes secrets from a text. */
  redact(text: string): string
  /** Receives the open questions, oldest first, after each change. */
  onOpen(open: readonly AskedQuestion[]): void
  /** Receives a sentence for each unreadable answer, which then counts as none. */
  onProblem(problem: string): void
}

/** A session's unanswered questions, whichever process answers them. */
export class OpenQuestions {
  readonly #options: QuestionWatchOptions
  readonly #asked = new Map<string, AskedQuestion>()
  readonly #answered = new Set<string>()
  readonly #problems = new Set<string>()
  #shown = ''

  constructor(options: QuestionWatchOptions) {
    this.#options = options
  }

  /** Follows the answers until `signal`, beginning with the journaled questions. */
  async watch(): Promise<void> {
    const { records, session, clock, signal, redact } = this.#options
    const folder = dirname(records.answer(session, 'Q1'))
    using changes = new FolderChanges([folder], { clock, signal })
    for (const asked of await questionsOf(records, session, () => {})) {
      if (!this.#asked.has(asked.question)) this.#asked.set(asked.question, redacted(asked, redact))
    }
    while (!signal.aborted) {
      await this.#lookForAnswers()
      this.#tell()
      await changes.next(POLL_MS)
      await clock.wait(PACE_MS, signal)
    }
  }

  /** Handles an event of the session: a new question, or an answer that it got. */
  event(event: Recorded): void {
    if (event.session !== this.#options.session) return
    if (event.type === 'question-asked' && /^Q[1-9]\d{0,5}$/.test(event.question)) {
      const { question, round, text, options, assumption, agent, at, session } = event
      const by = agent === undefined ? {} : { agent }
      const asked = { session, at, round, question, text, options, assumption, ...by, answer: null }
      if (!this.#asked.has(question)) this.#asked.set(question, redacted(asked, this.#options.redact))
      this.#tell()
    } else if (event.type === 'steered' && event.answers !== undefined) {
      this.#answered.add(event.answers)
      this.#tell()
    }
  }

  async #lookForAnswers(): Promise<void> {
    const { records, session, onProblem } = this.#options
    for (const question of this.#asked.keys()) {
      if (this.#answered.has(question)) continue
      try {
        if ((await readPersonAnswer(records, session, question)) !== null) this.#answered.add(question)
      } catch (error) {
        if (!(error instanceof UserError)) throw error
        // Report it once: this runs again and again.
        if (!this.#problems.has(question)) onProblem(error.message)
        this.#problems.add(question)
      }
    }
  }

  #tell(): void {
    const open = [...this.#asked.values()].filter(({ question }) => !this.#answered.has(question))
    const shown = open.map(({ question }) => question).join(' ')
    if (shown === this.#shown) return
    this.#shown = shown
    this.#options.onOpen(open.toSorted((a, b) => numberOf(a) - numberOf(b)))
  }
}

function numberOf({ question }: AskedQuestion): number {
  return Number(question.slice(1))
}

function redacted(asked: AskedQuestion, redact: (text: string) => string): AskedQuestion {
  return {
    ...asked,
    text: redact(asked.text),
    options: asked.options.map(redact),
    assumption: redact(asked.assumption),
  }
}
