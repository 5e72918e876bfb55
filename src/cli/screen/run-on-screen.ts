import { join, resolve } from 'node:path'
import { Interrupted } from '../../base/errors.ts'
import type { Reply } from '../../session/command.ts'
import { openRecords, type Records } from '../../session/records.ts'
import { readRunner } from '../../session/run-lock.ts'
import { memoryHome } from '../../workspace/memory-home.ts'
import { makeProjectFolders } from '../../workspace/project-folders.ts'
import type { CliContext } from '../context.ts'
import type { Display, Reachable } from '../display.ts'
import { latestSession } from '../find-session.ts'
import type { RunFlags } from '../flags.ts'
import { settingsOf } from '../open-run.ts'
import { offersAtStart } from './offers-at-start.ts'
import { PersonScreen } from './person-screen.ts'
import { printerOn } from './printer.ts'
import { commandsOf, runSlashCommand } from './slash.ts'
import type { SlashPlace } from './slash-place.ts'
import { gatherStartFacts } from './start-facts.ts'
import { openWatchScreen } from './watch-screen.ts'
import { carryOut, type ScreenWork, type Wish } from './wish.ts'

/** One run on the screen: its work is begun at once, and the screen ends with it. Resolves with its exit code. */
export async function runOnScreen(
  context: CliContext,
  flags: RunFlags,
  work: (context: CliContext) => Promise<number>,
  goal: string | null = null,
): Promise<number> {
  await using home = await ScreenHome.open(context, flags)
  home.person.screen.model.showNextSession()
  if (goal !== null) home.person.remember(goal)
  return await work(home.contextOfRun())
}

/**
 * The start screen: one run after the other, as the person wishes, until they leave. Resolves with the exit code: of the
 * run that was left, else 0. Throws `Interrupted` if the program is asked to end while nothing runs.
 */
export async function startScreen(context: CliContext, flags: RunFlags, work: ScreenWork): Promise<number> {
  const end = await workFromStart(context, flags, work)
  return typeof end === 'number' ? end : await openWatchScreen(context, end.records, end.session)
}

/** Resolves with the exit code, or with what the person wants to watch instead. */
async function workFromStart(
  context: CliContext,
  flags: RunFlags,
  work: ScreenWork,
): Promise<number | { records: Records; session: string }> {
  await using home = await ScreenHome.open(context, flags)
  // Who types at once is not kept waiting.
  const made = home.makeFolders()
  for (;;) {
    const wish = await home.atStart()
    await made
    if (context.signal.aborted) throw new Interrupted(context.signal.reason)
    if (wish.kind === 'leave') return 0
    if (wish.kind === 'watch') return wish
    const exitCode = await home.during(inner => carryOut(wish, inner, home.flags, work))
    if (home.isLeft) return exitCode
    // What could not even begin is not lost.
    if (wish.kind === 'run' && wish.goal !== null && !home.person.hasShown) home.person.screen.model.addText(wish.goal)
  }
}

/** A screen that runs are shown on, one at a time. */
class ScreenHome implements AsyncDisposable {
  readonly person: PersonScreen
  readonly #context: CliContext
  readonly #records: Records
  readonly #leaving = new AbortController()
  #flags: RunFlags
  #reachable: Reachable | null = null
  #wish: PromiseWithResolvers<Wish> | null = null

  private constructor(
    context: CliContext,
    flags: RunFlags,
    { records, settings }: Pick<SlashPlace, 'records' | 'settings'>,
  ) {
    this.#context = context
    this.#records = records
    this.#flags = flags
    const start: SlashPlace['start'] = {
      isRunning: () => this.#wish === null,
      flags: () => this.#flags,
      resume: (session, more) => this.#wishFor({ kind: 'resume', session, more }),
      workThroughQueue: () => this.#wishFor({ kind: 'run', goal: null }),
      begin: session => this.#wishFor({ kind: 'start', session }),
      choose: chosen => {
        this.#flags = { ...this.#flags, ...chosen }
      },
    }
    this.person = new PersonScreen({
      context,
      records,
      settings,
      isWatching: false,
      control: {
        ask: ask => this.#ask(ask),
        begin: goal => this.#wishFor({ kind: 'run', goal }),
        leave: () => this.#leave(),
        leaveNow: () => context.host.endNow(),
        gone: () => this.#leave(),
        command: (name, rest) => runSlashCommand(place, name, rest),
        commands: () => commandsOf(place),
      },
    })
    const place: SlashPlace = { context, records, settings, person: this.person, start }
  }

  static async open(context: CliContext, flags: RunFlags): Promise<ScreenHome> {
    const records = await openRecords({ ...context, directory: resolve(context.cwd, flags.cd ?? '.') })
    const { settings } = await settingsOf(context, records.directory, flags)
    return new ScreenHome(context, flags, { records, settings })
  }

  /** Where a person may write a specification before anything is started. */
  async makeFolders(): Promise<void> {
    const { directory, root } = this.#records
    // In a home directory that is where the records lie.
    if (join(directory, memoryHome) === root) return
    try {
      await makeProjectFolders(directory)
      const { loadAgents } = await import('../../agents/agent.ts')
      const { writeAgentsConfig } = await import('../../agents/agents-config.ts')
      await writeAgentsConfig(directory, loadAgents())
    } catch (error) {
      this.person.fail(error)
    }
  }

  /** What was said on the command line, and chosen on the screen since. */
  get flags(): RunFlags {
    return this.#flags
  }

  get isLeft(): boolean {
    return this.#leaving.signal.aborted || this.#context.signal.aborted
  }

  /** What a run is given in place of the terminal: it prints above the frame. */
  contextOfRun(): CliContext {
    const { screen } = this.person
    return {
      ...this.#context,
      stdout: printerOn(screen, 'plain'),
      stderr: printerOn(screen, 'warning'),
      signal: AbortSignal.any([this.#context.signal, this.#leaving.signal]),
      display: this.#display(),
    }
  }

  /** Runs something, and shows what it failed with; resolves with its exit code. */
  async during(work: (context: CliContext) => Promise<number>): Promise<number> {
    this.person.hasShown = false
    this.person.screen.model.showNextSession()
    try {
      return await work(this.contextOfRun())
    } catch (error) {
      return this.person.fail(error)
    }
  }

  /** The start screen, until the person wishes something. */
  async atStart(): Promise<Wish> {
    if (this.isLeft) return { kind: 'leave' }
    const wish = Promise.withResolvers<Wish>()
    this.#wish = wish
    const leave = () => wish.resolve({ kind: 'leave' })
    this.#context.signal.addEventListener('abort', leave)
    const looking = new AbortController()
    this.person.showStart()
    const { screen } = this.person
    const gathered = gatherStartFacts(
      this.#context,
      this.#flags,
      facts => {
        screen.model.facts = facts
        this.person.refreshCommands()
      },
      looking.signal,
    ).catch(error => void this.person.fail(error))
    try {
      void gathered.then(() => this.#offer(wish.promise, looking.signal)).catch(error => void this.person.fail(error))
      return await wish.promise
    } finally {
      this.#wish = null
      this.#context.signal.removeEventListener('abort', leave)
      looking.abort()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.person[Symbol.asyncDispose]()
  }

  /** What the person may want first: to go on where it was left, to begin what waits, to mend what is missing. */
  async #offer(wished: Promise<Wish>, over: AbortSignal): Promise<void> {
    const { screen } = this.person
    const isAtSomething = () => over.aborted || screen.model.dialog !== null || screen.model.composer.text !== ''
    const { facts } = screen.model
    if (facts === null || isAtSomething()) return
    const atWork = await this.#sessionAtWork()
    // Meanwhile they may have begun to type: an Enter that is meant for that must not choose here.
    if (isAtSomething()) return
    const options = offersAtStart(facts, atWork)
    if (options.length === 0) return
    const asked = screen.choose({
      title: 'How do you want to begin?',
      options: [...options, { id: 'new', label: 'With something else', hint: 'or just type' }],
      yieldsToTyping: true,
    })
    void wished.then(() => screen.model.dismiss('closed'))
    const answer = await asked
    if (answer.kind !== 'chosen') return
    if (answer.id === 'watch' && atWork !== null) {
      return this.#wishFor({ kind: 'watch', records: this.#records, session: atWork })
    }
    if (answer.id === 'doctor') return await this.person.command('doctor', '')
    const [left] = facts.resumable ?? []
    if (answer.id === 'resume' && left !== undefined) {
      return this.#wishFor({ kind: 'resume', session: left.id, more: {} })
    }
    if (answer.id === 'queue') this.#wishFor({ kind: 'run', goal: null })
  }

  /** The session that another codemachine works on here. */
  async #sessionAtWork(): Promise<string | null> {
    if ((await readRunner(this.#records.lock, this.#context.platform)) === null) return null
    return await latestSession(this.#records, () => {})
  }

  #wishFor(wish: Wish): void {
    this.#wish?.resolve(wish)
  }

  #leave(): void {
    this.#leaving.abort('SIGINT')
    this.person.screen.model.isLeaving = true
    this.person.screen.changed()
    this.#wishFor({ kind: 'leave' })
  }

  async #ask(ask: Parameters<PersonScreen['ask']>[0]): Promise<Reply> {
    const nobody = { delivered: false, message: 'No session is running just now; try again in a moment.' }
    return (await this.#reachable?.ask({ ...ask, at: new Date(this.#context.clock.now()).toISOString() })) ?? nobody
  }

  #display(): Display {
    const { person } = this
    const { view, output } = person.screen
    return {
      view: {
        event: (event, state) => {
          person.showSession(event.session)
          view.event(event, state)
        },
        live: event => view.live(event),
      },
      terminal: output,
      say: text => person.screen.say(text, 'strong'),
      card: lines => person.screen.card(columns => lines({ columns, isEndShown: true })),
      reach: reachable => {
        this.#reachable = reachable
      },
    }
  }
}
