import { UserError } from '../base/errors.ts'
import { withoutUndefined } from '../base/json.ts'
import { problemOfPrompt } from '../base/text.ts'
import type { EndedBy } from '../core/events/outcome.ts'
import type { PromptTerms } from '../core/shapes/queue.ts'
import type { Reply } from '../core/shapes/reply.ts'
import type { TemplateKind, TemplateKinds } from '../core/template.ts'
import { openQueue } from '../session/records/queue.ts'
import { openRecords, type Records } from '../session/records/records.ts'
import type { ReportData } from '../tell/report/report-data.ts'
import type {
  AnsweredQuestion,
  Ask,
  EndedSession,
  OpenOptions,
  Project,
  ProjectQueue,
  Question,
  RunEventsOptions,
  RunGoalOptions,
  RunOptions,
  WatchUpdate,
} from './library.ts'
import type { Run, RunListeners } from './open-run.ts'
import type { Resume } from './resume.ts'
import type { QueueResult, Start } from './run-queue.ts'
import type { NewSession, RunObserver, Sessions } from './sessions.ts'
import { directoryOf, placesOf, type World } from './world.ts'

/** Work of a run. */
export interface Work {
  /** First session; null: the next prompt of the queue. A function makes it once the run is open. */
  first: Omit<NewSession, 'queued'> | ((run: Run) => Promise<Omit<NewSession, 'queued'>>) | null
  /** Set: do not run the queue. */
  alone?: true
  /** Whether later commands can find the sessions; left out: they can. */
  resumable?: boolean
}

/**
 * The project that a program or the command line has opened. It loads most of its parts on use, so opening it costs no more
 * than its records.
 */
export class OpenProject implements Project {
  readonly records: Records
  readonly queue: ProjectQueue
  readonly #world: World
  readonly #options: RunOptions
  readonly #closing = new AbortController()
  readonly #running = new Set<Promise<unknown>>()

  private constructor(world: World, options: RunOptions, records: Records) {
    this.#world = world
    this.#options = options
    this.records = records
    this.queue = queueOf(records, world)
  }

  /** Throws a `UserError` if there is no such directory, or its records are not writable. */
  static async open(world: World, { templates = [], ...options }: OpenOptions = {}): Promise<OpenProject> {
    // A program without our type rules may set a field to undefined.
    const said: RunOptions = withoutUndefined(options)
    const withOwn = templates.length === 0 ? world : { ...world, templates: withTemplates(world.templates, templates) }
    return new OpenProject(withOwn, said, await openRecords(placesOf(withOwn, directoryOf(world, said))))
  }

  get directory(): string {
    return this.records.directory
  }

  async run(goal: string, options: RunGoalOptions = {}): Promise<EndedSession> {
    const text = checked(goal).trim()
    const { template, options: told, follows } = options
    const first = { text, terms: { options: told, follows }, ...(template === undefined ? {} : { template }) }
    return await this.#runOne(options, (observer, signal) =>
      this.runQueue({ first, alone: true }, observer, {}, signal),
    )
  }

  async resume(session: string | null, options: RunEventsOptions = {}): Promise<EndedSession> {
    return await this.#runOne(options, (observer, signal) =>
      this.resumeWork({ session, rereadsGates: false, alone: true }, observer, {}, signal),
    )
  }

  async ask(ask: Ask): Promise<Reply | null> {
    if ('text' in ask && ask.text !== undefined) checked(ask.text)
    const { askRun } = await import('./commands/commands.ts')
    return await askRun(this.#world, this.records, ask)
  }

  async questions(session: string | null = null, { all = false }: { all?: boolean } = {}): Promise<Question[]> {
    const [{ findSession, newestSessions, questionsOrNone }, { questionId }] = await Promise.all([
      import('./find.ts'),
      import('../session/records/questions.ts'),
    ])
    const { records } = this
    const ids = session === null ? await newestSessions(records, NEWEST) : [await findSession(records, session)]
    const asked = await Promise.all(ids.map(id => questionsOrNone(records, id, () => {})))
    const listed = asked.flat().filter(({ answer }) => all || answer === null)
    return listed.map(({ question, agent: _, answer, ...each }) => ({
      ...each,
      id: questionId({ session: each.session, question }),
      answer: answer && { text: answer.answer, at: answer.at },
    }))
  }

  async answer(
    question: string,
    answer: string,
    { again = false }: { again?: boolean } = {},
  ): Promise<AnsweredQuestion> {
    const [{ findQuestion }, { chosenAnswer, giveAnswer }, { questionId, readPersonAnswer }] = await Promise.all([
      import('./find.ts'),
      import('./watch/questions.ts'),
      import('../session/records/questions.ts'),
    ])
    const { records } = this
    const asked = await findQuestion(records, question, () => {})
    const id = questionId(asked)
    const text = chosenAnswer(checked(answer).trim(), asked, id)
    const message = await giveAnswer(this.#world, { records, worktree: null, asked, id }, { answer: text, again })
    const kept = await readPersonAnswer(records, asked.session, asked.question)
    return { message, told: kept?.told ?? null, queued: kept?.queued ?? null }
  }

  async *watch(session: string | null = null, options: { signal?: AbortSignal } = {}): AsyncGenerator<WatchUpdate> {
    const [{ followSession }, { findSession }] = await Promise.all([import('./watch/feed.ts'), import('./find.ts')])
    const id = await findSession(this.records, session, () => {}, 'counted')
    const { platform, pid, clock } = this.#world
    using ending = this.#until(options.signal)
    const { signal } = ending
    yield* followSession({ records: this.records, id, platform, pid, clock, signal, onProblem: () => {} })
  }

  async report(session: string | null = null): Promise<ReportData> {
    return await this.reportOf(session, () => {})
  }

  /**
   * Does the same as `report`.
   * @param onProblem receives one sentence for each unreadable thing
   */
  async reportOf(session: string | null, onProblem: (problem: string) => void): Promise<ReportData> {
    const { records } = this
    const [{ findSession }, { lockOfSession }, { askWhoRuns }] = await Promise.all([
      import('./find.ts'),
      import('../session/records/journal.ts'),
      import('../session/records/run-lock.ts'),
    ])
    const id = await findSession(records, session, onProblem)
    // Read the lock before the journal: a session that ends meanwhile must not look cut off.
    const runner = await askWhoRuns(await lockOfSession(records, id), this.#world.platform, onProblem)
    const { readReport } = await import('../tell/report/write.ts')
    const data = await readReport(records, id, runner)
    if (data === null) throw new UserError('CM0607', `${records.journal(id)} has no session.`)
    return data
  }

  /** Runs sessions one after the other, as `runQueue` does; null if there was nothing to do. */
  async runQueue(
    { first, alone, resumable = true }: Work,
    observer: RunObserver,
    listeners: RunListeners = {},
    signal?: AbortSignal,
  ): Promise<QueueResult | null> {
    const [{ openRun }, { runQueue }] = await Promise.all([import('./open-run.ts'), import('./run-queue.ts')])
    using ending = this.#until(signal)
    const world = { ...this.#world, signal: ending.signal }
    const named = this.#options.directory ?? null
    return await this.#whileOpen(async () => {
      await using opened = await openRun(world, this.#options, listeners, typeof first === 'function' ? null : first)
      const begin = async (sessions: Sessions, made: NonNullable<Work['first']>) =>
        await sessions.runNew(
          { ...(typeof made === 'function' ? await made(opened) : made), queued: null },
          async () => {},
        )
      const start: Start | null = first && (sessions => begin(sessions, first))
      return await runQueue(world, opened, { first: start, named, resumable, ...(alone && { alone }) }, observer)
    })
  }

  /** Resumes a session, then runs the queue, as `resumeSession` does. */
  async resumeWork(
    resume: Omit<Resume, 'options'>,
    observer: RunObserver,
    listeners: RunListeners = {},
    signal?: AbortSignal,
  ): Promise<QueueResult> {
    const { resumeSession } = await import('./resume.ts')
    using ending = this.#until(signal)
    const world = { ...this.#world, signal: ending.signal }
    const wanted = { ...resume, options: this.#options }
    return await this.#whileOpen(() => resumeSession(world, this.records, wanted, observer, listeners))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort('SIGTERM')
    await Promise.allSettled(this.#running)
  }

  /** Runs one session for a program whose functions may throw. */
  async #runOne(
    { onEvent, onLive, canAsk = false, signal }: RunEventsOptions,
    work: (observer: RunObserver, signal: AbortSignal) => Promise<QueueResult | null>,
  ): Promise<EndedSession> {
    const failing = new AbortController()
    let thrown: { error: unknown } | null = null
    const guarded = (tell: () => void) => {
      try {
        if (thrown === null) tell()
      } catch (error) {
        thrown = { error }
        failing.abort('SIGTERM')
      }
    }
    const view: RunObserver['view'] = {
      event: (event, state) => guarded(() => onEvent?.(event, state)),
      live: event => guarded(() => onLive?.(event)),
    }
    const worked = await work({ view, canAsk }, AbortSignal.any([failing.signal, ...(signal ? [signal] : [])]))
    // The compiler does not see that the view was called.
    const failure = thrown as { error: unknown } | null
    if (failure !== null) throw failure.error
    const ended = worked?.sessions[0]
    if (ended === undefined) throw new Error('No session was run.')
    return ended
  }

  async #whileOpen<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing.signal.aborted)
      throw new UserError('CM1012', 'This project is closed in your program; open it again.')
    const running = work()
    this.#running.add(running)
    try {
      return await running
    } finally {
      this.#running.delete(running)
    }
  }

  /** Returns a signal that aborts with the world's, with that one, or with the project, whichever is first. */
  #until(signal: AbortSignal | undefined): { signal: AbortSignal } & Disposable {
    const ending = new AbortController()
    const sources = [this.#world.signal, this.#closing.signal, ...(signal ? [signal] : [])]
    const end = () => ending.abort(endedBy(sources.find(each => each.aborted)?.reason))
    for (const each of sources) {
      if (each.aborted) end()
      else each.addEventListener('abort', end)
    }
    const dispose = () => sources.forEach(each => void each.removeEventListener('abort', end))
    return { signal: ending.signal, [Symbol.dispose]: dispose }
  }
}

/** Number of newest sessions that are searched for questions if none is named. */
const NEWEST = 20
const SIGNALS: readonly EndedBy[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

/** A program may abort with any reason; a session ends by a signal. */
function endedBy(reason: unknown): EndedBy {
  return SIGNALS.find(each => each === reason) ?? 'SIGTERM'
}

function queueOf(records: Records, world: World): ProjectQueue {
  const { clock, platform } = world
  const queue = openQueue(records.queue)
  return {
    async add(prompt, terms = {}) {
      const text = checked(prompt)
      await checkPrompt(records, world, text, terms)
      await refuseBeyondRunning(records, platform, terms)
      return await queue.add(text, new Date(clock.now()), terms)
    },
    list: () => queue.list(),
    edit: (id, prompt) => queue.edit(id, checked(prompt)),
    move: (id, before) => queue.move(id, before),
    remove: id => queue.remove(id),
  }
}

/** Throws a `UserError` for a prompt with which no session could begin when its turn comes. */
export async function checkPrompt(records: Records, world: World, prompt: string, terms: PromptTerms): Promise<void> {
  if (Object.values(terms).every(term => term === undefined)) return
  const { checkTerms } = await import('./start/templates.ts')
  checkTerms(terms, { ...world, templates: records.templates }, 'queue')
  if (terms.limits?.cost !== undefined) await refuseCostWithoutPrices(records, world)
  const parts = terms.template === undefined ? null : await world.modes.partsOf(terms.template)
  await parts?.checkPrompt?.(world, records, prompt)
}

/** Throws a `UserError` for a cost limit that no session could have when its turn comes. */
async function refuseCostWithoutPrices({ directory }: Records, world: World): Promise<void> {
  const [{ settingsOf }, { refuseWithoutPrices }] = await Promise.all([
    import('./open-run.ts'),
    import('./session-terms.ts'),
  ])
  const { prices } = await settingsOf(world, directory, {})
  refuseWithoutPrices(prices)
}

/** Throws a `UserError` for terms that the running run would refuse when their turn comes. */
async function refuseBeyondRunning(records: Records, platform: NodeJS.Platform, terms: PromptTerms): Promise<void> {
  if (terms.limits === undefined) return
  const [{ latestSession, readableState }, { sessionStatusOf }, { askWhoRuns }] = await Promise.all([
    import('./find.ts'),
    import('../core/state/state.ts'),
    import('../session/records/run-lock.ts'),
  ])
  const runner = await askWhoRuns(records.lock, platform, () => {})
  const id = runner === null ? null : await latestSession(records, () => {})
  const state = id === null ? null : await readableState(records, id)
  if (state?.run == null || sessionStatusOf(state, runner) !== 'running') return
  const { refuseBeyondRun } = await import('./session-terms.ts')
  refuseBeyondRun(state.run, terms.limits)
}

function checked(prompt: string): string {
  const problem = problemOfPrompt(prompt)
  if (problem !== null) throw new UserError('CM0107', problem)
  return prompt
}

const TEMPLATE_NAME = /^[a-z][a-z0-9-]{0,39}$/

/** Returns all templates, own ones included. Throws a `UserError` for a bad or used name, or a missing function. */
function withTemplates(known: TemplateKinds, own: readonly TemplateKind[]): TemplateKinds {
  const all = new Map(known)
  for (const kind of own) {
    const { name } = kind
    const shown = JSON.stringify(String(name).slice(0, 60))
    if (typeof name !== 'string' || !TEMPLATE_NAME.test(name)) {
      throw new UserError(
        'CM1012',
        `${shown} is not a valid name of a template; use up to 40 lower-case letters, digits and "-".`,
      )
    }
    if (all.has(name))
      throw new UserError('CM1012', `Another template is already named ${shown}; give yours another name.`)
    const missing = (['defaultRounds', 'first', 'fold', 'open'] as const).find(part => typeof kind[part] !== 'function')
    if (missing !== undefined)
      throw new UserError(
        'CM1012',
        `The template ${shown} has no function "${missing}"; see docs/reference/library.md.`,
      )
    if (typeof kind.parts !== 'object' || kind.parts === null)
      throw new UserError('CM1012', `The template ${shown} has no "parts"; use {} for one kind of round.`)
    all.set(name, kind)
  }
  return all
}
