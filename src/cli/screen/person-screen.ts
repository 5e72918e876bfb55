import { join } from 'node:path'
import { Cleanup } from '../../base/cleanup.ts'
import { messageOf } from '../../base/errors.ts'
import { redactorOf } from '../../base/redactor.ts'
import { secretVariables } from '../../secrets/secret-variables.ts'
import type { Reply } from '../../session/command.ts'
import type { Records } from '../../session/records.ts'
import type { Settings } from '../../settings/schema.ts'
import { openTheme } from '../../ui/open-theme.ts'
import type { Ask, ScreenHost } from '../../ui/screen/host.ts'
import { Screen } from '../../ui/screen/screen.tsx'
import type { SlashCommandInfo } from '../../ui/start/slash-commands.ts'
import type { TaskBoard } from '../../ui/task-board.ts'
import { type FileIndex, openFileIndex } from '../../workspace/file-index.ts'
import type { CliContext } from '../context.ts'
import { showError } from '../show-error.ts'
import { keepScreenSmall } from '../small-heap.ts'
import { type DraftFile, openDraftFile } from './draft-file.ts'
import { keepDraft } from './keep-draft.ts'
import { lendToEditor, lendToShell } from './lend-terminal.ts'
import { openLogSource } from './log-source.ts'
import { openPromptHistory, type PromptHistory } from './prompt-history.ts'
import { boardPlaceOf, watchTasks } from './task-watch.ts'
import { WaitingPrompts } from './waiting-prompts.ts'

/** Who carries out what a person asks of what is shown. */
interface ScreenControl {
  ask(ask: Ask): Promise<Reply>
  /** A goal was typed where no session is shown. */
  begin(goal: string): void
  /** A slash command. */
  command(name: string, rest: string): Promise<void>
  /** The slash commands as they are now. */
  commands(): readonly SlashCommandInfo[]
  /** The person leaves. */
  leave(): void
  /** The terminal has gone. */
  gone(): void
}

interface PersonScreenOptions {
  context: CliContext
  records: Records
  settings: Settings
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
  readonly #history: PromptHistory
  /** Null where another screen keeps its own there. */
  readonly #draft: DraftFile | null
  readonly #files: FileIndex
  #board: AbortController | null = null
  #session: string | null = null
  #sent: string[] = []

  constructor(options: PersonScreenOptions) {
    keepScreenSmall()
    const { context, records, settings, isWatching, control } = options
    const { env, clock, host, signal } = context
    this.#options = options
    const onProblem = (problem: string) => this.screen.notice(problem, 'warning')
    const redactor = redactorOf(secretVariables(env))
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
      theme: openTheme({ theme: settings.screen.theme, env, reader }),
      motion: reader ? 'reduced' : settings.screen.motion,
      isWatching,
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
    let text = ''
    const stderr = { write: (part: string) => (text += part) }
    const exitCode = showError(error, {
      env: this.#options.context.env,
      stderr: stderr as unknown as CliContext['stderr'],
    })
    if (text !== '') this.screen.say(`\n${text}`, 'bad')
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
    const place = boardPlaceOf(this.#options.records, id, () => model.pane.state)
    const onBoard = (board: TaskBoard) => {
      model.board = board
      this.screen.changed()
    }
    watchTasks({ ...place, clock, signal: this.#board.signal, onBoard }).catch(error => this.fail(error))
    void this.queue.show()
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
    const { model } = this.screen
    model.showsSession = false
    if (!model.theme.symbols) this.screen.say('Type what to work on, and Enter. /help tells the keys and commands.')
    this.refreshCommands()
    void this.queue.show()
  }

  async ask(ask: Ask): Promise<Reply> {
    return await this.#options.control.ask(ask)
  }

  begin(goal: string): void {
    this.#options.control.begin(goal)
  }

  async command(name: string, rest: string): Promise<void> {
    // What stands behind /login may be a key.
    const shown = name === 'login' ? '' : rest
    if (name !== 'exit') this.screen.say(`\n› /${name} ${shown}`.trimEnd(), 'dim')
    await this.#options.control.command(name, rest)
  }

  leave(): void {
    this.#options.control.leave()
  }

  leaveNow(): void {
    this.#options.context.host.endNow()
  }

  async enqueue(prompt: string): Promise<string> {
    return await this.queue.add(prompt)
  }

  async takeBack(keep: (prompt: string) => void): Promise<boolean> {
    return await this.queue.takeBackLast(keep)
  }

  async edit(text: string): Promise<string | null> {
    return await lendToEditor(this.screen, this.#options.context, this.#options.records, text)
  }

  async openLogs(): Promise<void> {
    const { context, records } = this.#options
    if (this.#session === null) return this.screen.notice('There is no session to show the log of', 'warning')
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
      await this.screen.page(`The log of ${this.#session}`, source)
    } finally {
      left.abort()
    }
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

const MOST_FILES = 50
const MOST_SENT = 500
