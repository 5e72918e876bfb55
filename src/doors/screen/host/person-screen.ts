import { hostname } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { Cleanup, describeError, messageOf, UserError, withCode } from '../../../base/errors.ts'
import type { EventOf, Recorded } from '../../../core/events/events.ts'
import type { Reply } from '../../../core/shapes/reply.ts'
import type { TaskBoard } from '../../../core/state/plan.ts'
import { keepScreenSmall } from '../../../platform/heap.ts'
import { statesTyped } from '../../../project/diff/comparison.ts'
import type { Ask, RunOptions } from '../../../project/library.ts'
import type { NewStart } from '../../../project/run-queue.ts'
import { setSecret, warningsOf } from '../../../project/secrets/person-secrets.ts'
import { redactorOfProject } from '../../../project/secrets/redactor.ts'
import { type KeyActionId, Keymap } from '../../../project/settings/keys.ts'
import type { LoadedSettings } from '../../../project/settings/load.ts'
import type { Settings } from '../../../project/settings/schema.ts'
import { keepSetting } from '../../../project/settings/settings-file.ts'
import { giveAnswer, OpenQuestions } from '../../../project/watch/questions.ts'
import { boardPlaceOf, readPlanFiles, watchTasks } from '../../../project/watch/task-watch.ts'
import type { Redactor } from '../../../secrets/redactor.ts'
import type { AskedQuestion } from '../../../session/records/questions.ts'
import type { Records } from '../../../session/records/records.ts'
import { type FileIndex, openFileIndex } from '../../../workspace/files/search.ts'
import { planFileLines } from '../blocks/plan-change.ts'
import type { CliContext } from '../cli-context.ts'
import type { SlashCommand } from '../composer/completion.ts'
import { drawnSource } from '../pager/source.ts'
import type { ScreenHost } from '../screen/dialogs.ts'
import { Screen } from '../screen/screen.tsx'
import { openTheme, type Role } from '../terminal/theme.ts'
import type { FullView } from '../view/full-view.ts'
import { paletteOf } from '../view/palette.ts'
import { diffView } from './diff-screen.ts'
import {
  type DraftFile,
  keepDraft,
  openDraftFile,
  openPromptHistory,
  type PromptHistory,
  WaitingPrompts,
} from './drafts-and-history.ts'
import { editWorkFile, lenderOf, lendToEditor, lendToShell } from './lent-terminal.ts'
import { openLogSource } from './log-source.ts'
import { agentsReadOut, changesReadOut } from './read-out.ts'

/** Who carries out what a person asks of what is shown. */
interface ScreenControl {
  ask(ask: Ask): Promise<Reply>
  /** See `ScreenHost`. */
  attend(): boolean
  /** A goal was typed where no session is shown. */
  begin(goal: string): void
  /** A slash command. */
  command(name: string, rest: string): Promise<void>
  /** The slash commands as they are now. */
  commands(): readonly SlashCommand[]
  /** The person leaves. */
  leave(): void
  /** The terminal has gone. */
  gone(): void
}

interface PersonScreenOptions {
  context: CliContext
  records: Records
  loaded: Pick<LoadedSettings, 'settings' | 'keys'>
  isWatching: boolean
  control: ScreenControl
}

/** The screen with all that it keeps on the disk: draft, history, queue, files. */
export class PersonScreen implements ScreenHost, AsyncDisposable {
  readonly screen: Screen
  /** Whether it is drawn for a screen reader. */
  readonly isForReader: boolean
  readonly queue: WaitingPrompts
  /** Whether a session was shown since this was last put back. */
  hasShown = false
  readonly #options: PersonScreenOptions
  readonly #opened = new Cleanup()
  readonly #closing = new AbortController()
  readonly #redactor: Redactor
  readonly #history: PromptHistory
  /** Null where another screen keeps its own there. */
  readonly #draft: DraftFile | null
  readonly #files: FileIndex
  #board: AbortController | null = null
  #questions: OpenQuestions | null = null
  #session: string | null = null
  #sent: string[] = []

  constructor(options: PersonScreenOptions) {
    const { context, records, loaded, isWatching, control } = options
    const { settings } = loaded
    const { env, clock, host, signal } = context
    if (context.ownsProcess) keepScreenSmall()
    this.#options = options
    const onProblem = (problem: string) => this.screen.notice(problem, 'warning')
    const redactor = redactorOfProject(context, records)
    this.#redactor = redactor
    this.#history = openPromptHistory({ root: records.root, clock, redactor, onProblem })
    this.#draft = isWatching ? null : this.#opened.use(openDraftFile({ path: records.draft, clock, onProblem }))
    this.#files = openFileIndex({
      directory: records.directory,
      gitDir: join(records.folder, 'files'),
      env,
      clock,
      onProblem: error => onProblem(`The files cannot be listed: ${messageOf(error)}`),
    })
    const reader = settings.screen.reader || env.INK_SCREEN_READER === 'true'
    this.isForReader = reader
    this.screen = new Screen({
      stdin: context.stdin,
      stdout: context.stdout,
      env,
      clock,
      host: this,
      theme: openTheme({ theme: settings.screen.theme, env, reader, host: hostname() }),
      motion: reader ? 'reduced' : settings.screen.motion,
      keymap: new Keymap(loaded.keys, settings.screen.enter),
      mouse: settings.screen.mouse,
      isWatching,
      isDemo: context.isDemo === true,
      redact: text => redactor.text(text),
      searchFiles: query => this.#files.search(query, MOST_FILES),
      writeNow: host.writeNow,
      rawModeOff: host.rawModeOff,
      // The terminal's end is a signal too, but not on every platform.
      onGone: () => control.gone(),
      onFailure: error => this.fail(error),
    })
    this.queue = new WaitingPrompts({ path: records.queue, screen: this.screen, clock, draft: this.#draft })
    this.#opened.defer(context.host.beforeCrash(() => this.screen.release()))
    const leaving = () => {
      this.screen.model.isLeaving = true
      this.screen.changed()
    }
    signal.addEventListener('abort', leaving)
    this.#opened.defer(() => signal.removeEventListener('abort', leaving))
    const begun = this.#begin().catch(error => void this.fail(error))
    this.#opened.defer(() => begun)
    this.#opened.defer(() => this.screen.close())
  }

  /** Shows what was thrown, and goes on. */
  fail(error: unknown): number {
    const { text, exitCode } = describeError(error)
    if (text !== '') this.screen.say(`\n${this.#redactor.text(text)}`, 'bad')
    return exitCode
  }

  /** Shows this session from now on. */
  showSession(id: string): void {
    const { clock } = this.#options.context
    if (this.#session === id && this.#board !== null) return
    this.hasShown = true
    this.#session = id
    this.#board?.abort()
    this.#board = new AbortController()
    const { model } = this.screen
    model.board = null
    model.showsSession = true
    this.refreshCommands()
    const place = boardPlaceOf(this.#options.records, id, this.#redactor, () => model.pane.state)
    const onBoard = (board: TaskBoard) => {
      model.board = board
      this.screen.changed()
    }
    watchTasks({ ...place, clock, signal: this.#board.signal, onBoard }).catch(error => this.fail(error))
    this.#questions = this.#questionsOf(id, this.#board.signal)
    void this.queue.show()
  }

  #questionsOf(session: string, signal: AbortSignal): OpenQuestions {
    const { model } = this.screen
    const questions = new OpenQuestions({
      records: this.#options.records,
      session,
      clock: this.#options.context.clock,
      signal,
      redact: text => this.#redactor.text(text),
      onOpen: open => model.showAsked(open),
      onProblem: problem => this.screen.notice(problem, 'warning'),
    })
    model.showAsked([])
    questions.watch().catch(error => this.fail(error))
    return questions
  }

  happened(event: Recorded): void {
    this.#questions?.event(event)
  }

  async answer(asked: AskedQuestion, answer: string): Promise<string> {
    const { context, records } = this.#options
    return await giveAnswer(context, { records, worktree: null, asked, id: asked.question }, { answer })
  }

  /** What is offered behind a slash is another now. */
  refreshCommands(): void {
    this.screen.model.composer.setCommands(this.#options.control.commands())
    this.screen.changed()
  }

  /** Shows the start screen again. */
  showStart(): void {
    this.#board?.abort()
    this.#board = null
    this.#questions = null
    const { model } = this.screen
    model.showsSession = false
    if (!model.theme.symbols) this.screen.say('Type a goal, then Enter. /help shows the keys and commands.')
    this.refreshCommands()
    void this.queue.show()
  }

  async ask(ask: Ask): Promise<Reply> {
    return await this.#options.control.ask(ask)
  }

  attend(): boolean {
    return this.#options.control.attend()
  }

  begin(goal: string): void {
    this.#options.control.begin(goal)
  }

  async command(name: string, rest: string): Promise<void> {
    // What stands behind /login may be a key, and behind /decide a secret.
    const { isRunning, pane } = this.screen.model
    const isSecret = name === 'login' || (name === 'decide' && isRunning && pane.state?.decision?.secret !== undefined)
    const shown = isSecret ? '' : rest
    if (!SHOW_THEMSELVES.has(name)) this.screen.say(`\n› /${name} ${shown}`.trimEnd(), 'dim')
    await this.#options.control.command(name, rest)
  }

  leave(): void {
    this.#options.control.leave()
  }

  async keepEnter(enter: 'tell' | 'queue'): Promise<void> {
    const { context } = this.#options
    const does = enter === 'tell' ? 'tells the agent, Tab queues' : 'queues, Tab tells the agent'
    try {
      const path = await keepSetting(context, 'screen.enter', enter)
      this.screen.say(`\nEnter ${does} from now on; screen.enter in ${path} changes that.`, 'dim')
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      this.screen.say(`\nEnter ${does} on this screen alone: ${withCode(error)}`, 'warning')
    }
  }

  leaveNow(): void {
    this.#options.context.host.endNow()
  }

  async enqueue(prompt: string): Promise<string> {
    return await this.queue.add(prompt)
  }

  async takeBack(): Promise<boolean> {
    return await this.queue.edit()
  }

  async edit(text: string): Promise<string | null> {
    const { context, records } = this.#options
    const edited = await lendToEditor(lenderOf(this.screen), context, records, text)
    return edited.kind === 'edited' ? edited.text : null
  }

  async editFile(file: string): Promise<boolean> {
    const { context, records } = this.#options
    return await editWorkFile(lenderOf(this.screen), context, records, file)
  }

  /** Opens what changed, as `/diff` does; `typed`: what stands behind that. */
  async openDiff(typed = ''): Promise<void> {
    if (!this.isForReader) return await this.screen.open(this.#diffView(typed))
    const { context, records } = this.#options
    const session = this.screen.model.showsSession ? this.#session : null
    const onWarning = (warning: string) => this.screen.notice(warning, 'warning')
    this.readOut(await changesReadOut(context, records, { typed, session, onWarning }))
  }

  #diffView(typed: string): FullView {
    const { context, records } = this.#options
    const { theme, options } = this.screen.model
    const states = statesTyped(typed, this.screen.model.showsSession ? this.#session : null)
    return diffView(context, records, {
      theme,
      keymap: options.keymap,
      states,
      onWarning: warning => this.screen.notice(warning, 'warning'),
    })
  }

  async openLogs(): Promise<void> {
    const { context, records } = this.#options
    if (this.#session === null) return this.screen.notice('No session yet, so there is no log', 'warning')
    const left = new AbortController()
    const { columns } = this.screen.output
    const { theme } = this.screen.model
    const source = openLogSource({
      records,
      id: this.#session,
      clock: context.clock,
      signal: left.signal,
      columns,
      theme,
      onFailure: error => this.fail(error),
    })
    try {
      await this.screen.page(`The log of ${this.#session}`, source, 'end', (stage, line) => {
        const round = source.roundOf(line)
        stage.open(this.#diffView(round === null ? '' : String(round)))
      })
    } finally {
      left.abort()
    }
  }

  /** Says rows of what fills the terminal else, to a screen reader. */
  readOut(sentences: readonly string[]): void {
    for (const sentence of sentences) this.screen.say(`${sentence}\n`)
  }

  async openPalette(act: (action: KeyActionId) => void): Promise<void> {
    const { control } = this.#options
    // What changes in place says nothing to a screen reader.
    if (this.isForReader) return await this.command('help', '')
    const command = (name: string) => void this.command(name, '').catch(error => this.fail(error))
    await this.screen.open(paletteOf(this.screen.model, control.commands(), { act, command }))
  }

  /** Opens the agents of the session that is shown, and the way into one of them. */
  async openAgents(): Promise<void> {
    const { context, records, isWatching } = this.#options
    const { model, output } = this.screen
    if (!model.showsSession || model.pane.state === null)
      return this.screen.notice('No session yet, so there are no agents', 'warning')
    if (this.isForReader) return this.readOut(agentsReadOut(model.pane.state, model.pane.items, context.clock.now()))
    const { agentList } = await import('../agents/agent-list.ts')
    const place = {
      pane: model.pane,
      theme: model.theme,
      keymap: model.options.keymap,
      clock: context.clock,
      isWatching,
      columns: () => output.columns,
      journal: records.journal,
      ask: (ask: Ask) => this.ask(ask),
      remember: (text: string) => this.remember(text),
      onFailure: (error: unknown) => void this.fail(error),
    }
    await this.screen.open(agentList(place))
  }

  async showPlanChange(files: EventOf<'replanned'>['files']): Promise<void> {
    const { model, output } = this.screen
    const place = boardPlaceOf(this.#options.records, this.#session ?? '', this.#redactor, () => model.pane.state)
    const now = await readPlanFiles(place)
    const draw = (columns: number) => planFileLines({ files, now }, { columns, theme: model.theme, full: true })
    await this.screen.page(`The plan of ${this.#session ?? ''}`, drawnSource(draw, output.columns), 'start')
  }

  warningsOfSecret(value: string): readonly string[] {
    return warningsOf(value)
  }

  async storeSecret(key: string, value: string): Promise<string | null> {
    const { context, records } = this.#options
    const said = await setSecret(context, records, key, value, undefined)
    // What is to be said of the value was said before it was taken.
    return said.find(each => !warningsOf(value).includes(each)) ?? null
  }

  async suspend(): Promise<void> {
    await lendToShell(this.screen, this.#options.context)
  }

  remember(text: string): void {
    this.#sent = [...this.#sent, text].slice(-MOST_SENT)
    this.screen.model.composer.setHistory(this.#sent)
    this.#history.add(text, this.#options.records.directory).catch(error => this.fail(error))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.screen.settled(this.#options.context.signal)
    this.#closing.abort()
    this.#board?.abort()
    await this.#opened[Symbol.asyncDispose]()
  }

  /** What was kept of the last time comes behind the first paint. */
  async #begin(): Promise<void> {
    if (this.#draft !== null) await keepDraft(this.screen.model, this.#draft, this.#options.context)
    this.screen.changed()
    this.#sent = [...(await this.#history.list()), ...this.#sent]
    this.screen.model.composer.setHistory(this.#sent)
    await this.queue.follow(this.#closing.signal)
  }
}

/** Commands of which nothing is left above the frame. */
const SHOW_THEMSELVES: ReadonlySet<string> = new Set(['exit', 'help', 'palette', 'copy', 'agents', 'diff', 'sessions'])
const MOST_FILES = 50
const MOST_SENT = 500

/** A stream whose text is printed above the frame. */
export function printerOn(screen: Screen, role: Role): Writable {
  return new Writable({
    decodeStrings: false,
    write: (text: string | Buffer, _encoding, written) => {
      screen.say(String(text), role)
      written()
    },
  })
}

/** What a slash command may reach. */
export interface SlashPlace {
  context: CliContext
  records: Records
  settings: Settings
  person: PersonScreen
  /** What can be started here; null where a session is only watched. */
  start: SlashStart | null
  /** Lets what is shown go on without this screen. */
  letGo(): Promise<void>
}

/** What a session may take from now on, in all, as it was typed. */
export interface TypedLimits {
  rounds?: string
  maxTime?: string
  maxTokens?: string
  maxCost?: string
}

/** What a person wants of a screen on which nothing runs; `goal` null: what waits in the queue. */
export type StartChoice =
  | { kind: 'run'; goal: string | null }
  | { kind: 'resume'; session: string; more: TypedLimits }
  | { kind: 'start'; session: NewStart }
  | { kind: 'change'; change: TypedChange }
  | { kind: 'team'; goal: string }
  | { kind: 'watch'; records: Records; session: string }
  | { kind: 'leave' }

/** What can be set going where nothing runs yet. */
interface SlashStart {
  isRunning(): boolean
  options(): RunOptions
  /** Has this done, and the start screen left for it. */
  wish(choice: StartChoice): void
  /** For the runs to come. */
  choose(options: Pick<RunOptions, 'model' | 'effort'>): void
}

/** A change that is to be made, as it was typed on the screen. */
export interface TypedChange {
  request: string
  /** Id of the session that it goes on from; null: none. */
  follows: string | null
}
