import { resolve } from 'node:path'
import type { Reply } from '../../session/command.ts'
import type { EndedBy } from '../../session/outcome.ts'
import { openRecords, type Records } from '../../session/records.ts'
import type { Settings } from '../../settings/schema.ts'
import type { Ask } from '../../ui/screen/host.ts'
import { NO_FACTS } from '../../ui/start/start-facts.ts'
import type { CliContext } from '../context.ts'
import type { Display, Reachable } from '../display.ts'
import type { RunFlags } from '../flags.ts'
import { settingsOf } from '../open-run.ts'
import { askHowToBegin } from './offers-at-start.ts'
import { PersonScreen } from './person-screen.ts'
import { printerOn } from './printer.ts'
import { commandsOf, runSlashCommand } from './slash.ts'
import type { SlashPlace } from './slash-place.ts'
import { gatherStartFacts } from './start-facts.ts'
import type { Wish } from './wish.ts'

/** A screen that runs are shown on, one at a time. */
export class ScreenHome implements AsyncDisposable {
  readonly person: PersonScreen
  readonly records: Records
  readonly #context: CliContext
  readonly #leaving = new AbortController()
  #flags: RunFlags
  #reachable: Reachable | null = null
  #wish: PromiseWithResolvers<Wish> | null = null

  private constructor(context: CliContext, flags: RunFlags, records: Records, settings: Settings) {
    this.#context = context
    this.records = records
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
        begin: goal => this.#begin(goal),
        command: (name, rest) => runSlashCommand(place, name, rest),
        commands: () => commandsOf(place),
        leave: () => this.#leave('SIGINT'),
        gone: () => this.#leave('SIGHUP'),
      },
    })
    const place: SlashPlace = { context, records, settings, person: this.person, start }
  }

  static async open(context: CliContext, flags: RunFlags): Promise<ScreenHome> {
    const records = await openRecords({ ...context, directory: resolve(context.cwd, flags.cd ?? '.') })
    const { settings } = await settingsOf(context, records.directory, flags)
    return new ScreenHome(context, flags, records, settings)
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
    const leave = () => this.#wishFor({ kind: 'leave' })
    this.#context.signal.addEventListener('abort', leave)
    const looking = new AbortController()
    this.person.showStart()
    const { model } = this.person.screen
    model.facts = NO_FACTS
    const gathered = gatherStartFacts(
      this.#context,
      this.#flags,
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
      return await wish.promise
    } finally {
      this.#context.signal.removeEventListener('abort', leave)
      looking.abort()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.person[Symbol.asyncDispose]()
  }

  async #offer(over: AbortSignal): Promise<void> {
    const wish = await askHowToBegin({ records: this.records, person: this.person, ...this.#context }, over)
    if (wish !== null) this.#wishFor(wish)
  }

  /** What is typed too late to be begun, while the screen is left, stands in the composer for the next time. */
  #begin(goal: string): void {
    if (this.#wish === null) this.person.screen.model.addText(goal)
    else this.#wishFor({ kind: 'run', goal })
  }

  #wishFor(wish: Wish): void {
    const asked = this.#wish
    if (asked === null) return
    this.#wish = null
    // At once: the next Enter may come before anything has begun, and belongs to the queue then.
    if (wish.kind !== 'leave' && wish.kind !== 'watch') this.person.screen.model.showNextSession()
    asked.resolve(wish)
  }

  #leave(by: EndedBy): void {
    this.#leaving.abort(by)
    this.person.screen.model.isLeaving = true
    this.person.screen.changed()
    this.#wishFor({ kind: 'leave' })
  }

  async #ask(ask: Ask): Promise<Reply> {
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
