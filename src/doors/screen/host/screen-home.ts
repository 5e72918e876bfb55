import { Writable } from 'node:stream'
import { Interrupted } from '../../../base/errors.ts'
import type { EndedBy } from '../../../core/events/outcome.ts'
import type { AgentTables } from '../../../core/shapes/agent.ts'
import type { Reply } from '../../../core/shapes/reply.ts'
import { withSearchPathOutside } from '../../../platform/run-process.ts'
import { latestSession } from '../../../project/find.ts'
import type { Ask, RunOptions } from '../../../project/library.ts'
import { NO_FACTS, type StartFacts } from '../../../project/login.ts'
import { settingsOf } from '../../../project/open-run.ts'
import type { Reachable } from '../../../project/sessions.ts'
import type { LoadedSettings } from '../../../project/settings/load.ts'
import { gatherStartFacts, makeFirstFolders } from '../../../project/start/start-facts.ts'
import { directoryOf } from '../../../project/world.ts'
import { openRecords, type Records } from '../../../session/records/records.ts'
import { readRunner } from '../../../session/records/run-lock.ts'
import { writableIn } from '../../../workspace/git/find-git.ts'
import type { CliContext, Display } from '../cli-context.ts'
import type { PickerOption } from '../composer/picker.ts'
import { RunLog } from '../plain-view.ts'
import type { Question } from '../screen/model.ts'
import { PersonScreen, printerOn, type SlashPlace, type StartChoice } from './person-screen.ts'
import { commandsOf, runSlashCommand } from './slash.ts'
import { openWatchScreen } from './watch-screen.ts'

/** A screen that runs are shown on, one at a time. */
export class ScreenHome implements AsyncDisposable {
  readonly person: PersonScreen
  readonly records: Records
  /** What the settings say of agents. */
  readonly agentTables: AgentTables
  readonly #context: CliContext
  readonly #leaving = new AbortController()
  #options: RunOptions
  #reachable: Reachable | null = null
  /** Where the run is shown since the terminal was given back. */
  #log: RunLog | null = null
  /** Settled when the terminal was given back. */
  #lettingGo: Promise<void> = Promise.resolve()
  #choice: PromiseWithResolvers<StartChoice> | null = null
  /** Whether the start screen comes again after a run. */
  #stays = false

  private constructor(context: CliContext, options: RunOptions, records: Records, loaded: LoadedSettings) {
    const { settings } = loaded
    this.agentTables = loaded.agentTables
    this.#context = context
    this.records = records
    this.#options = options
    const start: SlashPlace['start'] = {
      isRunning: () => this.#choice === null,
      options: () => this.#options,
      wish: choice => this.#choose(choice),
      choose: chosen => {
        this.#options = { ...this.#options, ...chosen }
      },
    }
    this.person = new PersonScreen({
      context,
      records,
      loaded,
      isWatching: false,
      control: {
        ask: ask => this.#ask(ask),
        attend: () => this.#reachable?.attend() ?? false,
        begin: goal => this.#begin(goal),
        command: (name, rest) => runSlashCommand(place, name, rest),
        commands: () => commandsOf(place),
        leave: () => this.#leave('SIGINT'),
        gone: () => this.#leave('SIGHUP'),
      },
    })
    const letGo = () => {
      this.#lettingGo = this.#letGo()
      return this.#lettingGo
    }
    const place: SlashPlace = { context, records, settings, person: this.person, start, letGo }
  }

  static async open(context: CliContext, options: RunOptions): Promise<ScreenHome> {
    const records = await openRecords({ ...context, directory: directoryOf(context, options) })
    return new ScreenHome(context, options, records, await settingsOf(context, records.directory, options))
  }

  /** What was said on the command line, and chosen on the screen since. */
  get options(): RunOptions {
    return this.#options
  }

  get isLeft(): boolean {
    return this.#log !== null || this.#leaving.signal.aborted || this.#context.signal.aborted
  }

  /** What a run is given in place of the terminal: it prints above the frame. */
  contextOfRun(): CliContext {
    const { screen } = this.person
    return {
      ...this.#context,
      stdout: this.#unlessLetGo(printerOn(screen, 'plain')),
      stderr: this.#unlessLetGo(printerOn(screen, 'warning')),
      signal: AbortSignal.any([this.#context.signal, this.#leaving.signal]),
      display: this.#display(),
    }
  }

  /** Runs something, and shows what it failed with; resolves with its exit code. */
  async during(work: (context: CliContext) => Promise<number>): Promise<number> {
    this.person.hasShown = false
    try {
      return await work(this.contextOfRun())
    } catch (error) {
      return this.#log?.fail(error) ?? this.person.fail(error)
    }
  }

  /** The start screen, until the person wishes something. */
  async atStart(): Promise<StartChoice> {
    if (this.isLeft) return { kind: 'leave' }
    const choice = Promise.withResolvers<StartChoice>()
    this.#choice = choice
    this.#stays = true
    const leave = () => this.#choose({ kind: 'leave' })
    this.#context.signal.addEventListener('abort', leave)
    const looking = new AbortController()
    this.person.showStart()
    const { model } = this.person.screen
    model.facts = NO_FACTS
    const gathered = gatherStartFacts(
      this.#context,
      this.#options,
      change => {
        model.facts = change(model.facts ?? NO_FACTS)
        this.person.refreshCommands()
      },
      looking.signal,
    )
    const fail = (error: unknown) => void this.person.fail(error)
    void gathered
      .catch(fail)
      .then(() => this.#offer(looking.signal))
      .catch(fail)
    try {
      return await choice.promise
    } finally {
      this.#context.signal.removeEventListener('abort', leave)
      looking.abort()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lettingGo.catch(() => {})
    await (this.#log ?? this.person)[Symbol.asyncDispose]()
  }

  /** `/detach`: the run goes on without the screen and the terminal. */
  async #letGo(): Promise<void> {
    const { host, platform, env } = this.#context
    const { screen } = this.person
    const { state } = screen.model.pane
    if (this.#log !== null || this.#reachable === null || state === null || state.ended !== null)
      return screen.notice('No session is running, so there is nothing to detach', 'warning')
    if (platform === 'win32')
      return screen.notice('On Windows a run cannot leave its window; start it with --detach', 'warning')
    this.#log = await RunLog.open(this.records)
    this.#reachable.letGo()
    await this.person[Symbol.asyncDispose]()
    await host.letGo({
      lines: linesForLetGo(state.id, this.#log.path),
      withoutShell: WITHOUT_SHELL,
      log: this.#log.path,
      env: withSearchPathOutside(env, await writableIn(this.records.directory, env)),
    })
  }

  #unlessLetGo(printer: Writable): Writable {
    return new Writable({
      decodeStrings: false,
      write: (text: string | Buffer, encoding, written) => {
        ;(this.#log?.stream ?? printer).write(text, encoding, () => written())
      },
    })
  }

  async #offer(over: AbortSignal): Promise<void> {
    const choice = await askHowToBegin({ records: this.records, person: this.person, ...this.#context }, over)
    if (choice !== null) this.#choose(choice)
  }

  /** What is typed too late to be begun, while the screen is left, stands in the composer for the next time. */
  #begin(goal: string): void {
    if (this.#choice === null) this.person.screen.model.giveBack(goal)
    else this.#choose({ kind: 'run', goal })
  }

  #choose(choice: StartChoice): void {
    const asked = this.#choice
    if (asked === null) return
    this.#choice = null
    // At once: the next Enter may come before anything has begun, and belongs to the queue then.
    if (!['leave', 'watch', 'team'].includes(choice.kind)) this.person.screen.model.showNextSession()
    asked.resolve(choice)
  }

  #leave(by: EndedBy): void {
    this.#leaving.abort(by)
    this.person.screen.model.isLeaving = true
    this.person.screen.changed()
    this.#choose({ kind: 'leave' })
  }

  async #ask(ask: Ask): Promise<Reply> {
    const nobody: Reply = { code: 'no-session', message: 'No session is running now. Try again in a moment.' }
    return (await this.#reachable?.ask({ ...ask, at: new Date(this.#context.clock.now()).toISOString() })) ?? nobody
  }

  #display(): Display {
    const { person } = this
    const { view, output } = person.screen
    return {
      canAsk: true,
      // Who watches a demo need not decide anything: its defaults are taken.
      hasScreen: this.#context.isDemo !== true,
      view: {
        event: (event, state) => {
          if (this.#log !== null) return this.#log.view.event(event, state)
          person.showSession(event.session)
          view.event(event, state)
        },
        live: event => (this.#log?.view ?? view).live(event),
      },
      terminal: {
        isTTY: output.isTTY,
        write: text => this.#log !== null || output.write(text),
      },
      hasSlash: () => this.#log === null && this.#stays,
      say: text => (this.#log === null ? person.screen.say(text, 'strong') : this.#log.say(text)),
      card: lines => {
        if (this.#log === null) person.screen.card(columns => lines({ columns, isEndShown: true }))
        else this.#log.card(lines)
      },
      reach: reachable => {
        this.#reachable = reachable
      },
    }
  }
}

function linesForLetGo(id: string, log: string): string {
  return `${id} continues without this terminal. To see it again: codemachine attach
Its log: ${log}
`
}

const WITHOUT_SHELL =
  'No shell is waiting for this terminal. Close the terminal; the run continues. Ctrl+C here would end the run.\n'

const GOAL_CHARS = 60

/** The start screen, and what it is about. */
interface StartPlace {
  records: Records
  person: PersonScreen
  platform: NodeJS.Platform
}

/** Asks what the person may want first, unless they are at something; null if it is something else, or nothing. */
async function askHowToBegin(place: StartPlace, over: AbortSignal): Promise<StartChoice | null> {
  const { records, person } = place
  const { screen } = person
  // A notice answers what they have just done, and a question would stand in its place.
  const isAtSomething = () => {
    const { dialog, composer, isTyping, currentNotice } = screen.model
    return over.aborted || dialog !== null || composer.text !== '' || isTyping || currentNotice !== null
  }
  const { facts } = screen.model
  if (facts === null || isAtSomething()) return null
  const atWork = await sessionAtWork(place)
  // Meanwhile they may have begun to type: an Enter that is meant for that must not choose here.
  if (isAtSomething()) return null
  const offers = offersAtStart(facts, atWork)
  if (offers.length === 0) return null
  const question: Question = {
    title: 'How do you want to start?',
    options: [...offers, { id: 'new', label: 'Something else', hint: 'or just type' }],
    yieldsToTyping: true,
  }
  over.addEventListener('abort', () => {
    if (screen.model.question === question) screen.model.dismiss('closed')
  })
  const answer = await screen.choose(question)
  if (answer.kind !== 'chosen') return null
  if (answer.id === 'watch' && atWork !== null) return { kind: 'watch', records, session: atWork }
  if (answer.id === 'queue') return { kind: 'run', goal: null }
  const [left] = facts.resumable ?? []
  if (answer.id === 'resume' && left !== undefined) return { kind: 'resume', session: left.id, more: {} }
  if (answer.id === 'doctor') await person.command('doctor', '')
  return null
}

/** The session that another codemachine works on here. */
async function sessionAtWork({ records, platform }: StartPlace): Promise<string | null> {
  if ((await readRunner(records.lock, platform)) === null) return null
  return await latestSession(records, () => {})
}

/**
 * To mend what is missing, to watch what another codemachine does here (`atWork`: its
 * session), to go on where it was left, to begin what waits.
 */
function offersAtStart({ missing, resumable, queue }: StartFacts, atWork: string | null): PickerOption[] {
  const offers: PickerOption[] = []
  if (missing.length > 0) offers.push({ id: 'doctor', label: 'Check the setup (/doctor)', hint: missing[0] ?? '' })
  if (atWork !== null) {
    return [...offers, { id: 'watch', label: 'Watch the running session', hint: `${atWork}, by another codemachine` }]
  }
  const [left] = resumable ?? []
  if (left?.stopped === 'cut off' || left?.stopped === 'interrupted') {
    const goal = left.goal.trim().slice(0, GOAL_CHARS)
    offers.push({ id: 'resume', label: `Resume: ${goal}`, hint: `${left.id}, ${left.stopped}`, confirms: true })
  }
  if (queue !== null && queue.length > 0) offers.push({ id: 'queue', label: 'Run the queue', confirms: true })
  return offers
}

/** Does what the start screen is left for, as the command line does; resolves with the exit code, or with what is left to do elsewhere. */
type WorkOfScreen = (
  context: CliContext,
  choice: Exclude<StartChoice, { kind: 'watch' | 'leave' }>,
  options: RunOptions,
) => Promise<number | Elsewhere>

/** Work in another directory than that of the start screen, which has been made, and what does it; resolves with its exit code. */
interface Elsewhere {
  directory: string
  work(context: CliContext): Promise<number>
}

/** One run on the screen: its work is begun at once, and the screen ends with it. Resolves with its exit code. */
export async function runOnScreen(
  context: CliContext,
  options: RunOptions,
  work: (context: CliContext) => Promise<number>,
  goal: string | null = null,
): Promise<number> {
  await using home = await ScreenHome.open(context, options)
  home.person.screen.model.showNextSession()
  if (goal !== null) home.person.remember(goal)
  return await work(home.contextOfRun())
}

/**
 * The start screen: one run after the other, as the person wishes, until they leave. Resolves with the exit code: of the
 * run that was left, else 0. Throws `Interrupted` if the program is asked to end while nothing runs.
 */
export async function startScreen(context: CliContext, options: RunOptions, work: WorkOfScreen): Promise<number> {
  for (let chosen = options; ; ) {
    const end = await workFromStart(context, chosen, work)
    if (typeof end === 'number') return end
    if (end.kind === 'watch') return await openWatchScreen(context, end.records, end.session)
    const { exitCode, isLeft } = await workElsewhere(context, end)
    if (isLeft) return exitCode
    context.stdout.write('\n')
    chosen = end.options
  }
}

/** Work in another directory, whose records, queue and draft are its own: on a screen of its own, which ends with it. */
async function workElsewhere(
  context: CliContext,
  { there, options }: { there: Elsewhere; options: RunOptions },
): Promise<{ exitCode: number; isLeft: boolean }> {
  await using home = await ScreenHome.open(context, { ...options, directory: there.directory })
  home.person.screen.model.showNextSession()
  const exitCode = await home.during(inner => there.work(inner))
  return { exitCode, isLeft: home.isLeft }
}

/** What the start screen is left for: watching what another process does, or work in another directory. */
type StartEnd = Extract<StartChoice, { kind: 'watch' }> | { kind: 'elsewhere'; there: Elsewhere; options: RunOptions }

/** Resolves with the exit code, or with what the screen is left for. */
async function workFromStart(context: CliContext, options: RunOptions, work: WorkOfScreen): Promise<number | StartEnd> {
  await using home = await ScreenHome.open(context, options)
  // Who types at once is not kept waiting.
  const made = makeFirstFolders(home.records, home.agentTables).catch(error => void home.person.fail(error))
  for (;;) {
    const choice = await home.atStart()
    await made
    if (context.signal.aborted) throw new Interrupted(context.signal.reason)
    if (choice.kind === 'leave') return 0
    if (choice.kind === 'watch') return choice
    const begun: Elsewhere[] = []
    const exitCode = await home.during(async inner => {
      const came = await work(inner, choice, home.options)
      if (typeof came === 'number') return came
      begun.push(came)
      return 0
    })
    const [there] = begun
    if (there !== undefined) return { kind: 'elsewhere', there, options: home.options }
    if (home.isLeft) return exitCode
    // What could not even begin is not lost.
    const typed = typedFor(choice)
    if (typed !== null && !home.person.hasShown) home.person.screen.model.giveBack(typed)
  }
}

/** What was typed in the composer for it; null: nothing. */
function typedFor(choice: StartChoice): string | null {
  if (choice.kind === 'run') return choice.goal
  if (choice.kind === 'team') return `/team ${choice.goal}`
  if (choice.kind !== 'change') return null
  return `/${choice.change.follows === null ? 'change' : 'follow'} ${choice.change.request}`
}
