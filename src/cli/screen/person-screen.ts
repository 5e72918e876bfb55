import { join } from 'node:path'
import { Cleanup } from '../../base/cleanup.ts'
import { messageOf } from '../../base/errors.ts'
import { redactorOf } from '../../base/redactor.ts'
import { type EditorEnd, editText } from '../../platform/edit-text.ts'
import { suspendSelf } from '../../platform/suspend-self.ts'
import { writableByAgents } from '../../platform/writable-by-agents.ts'
import { secretVariables } from '../../secrets/secret-variables.ts'
import type { Reply } from '../../session/command.ts'
import { openQueue, type Queue, type QueuedPrompt } from '../../session/queue.ts'
import type { Records } from '../../session/records.ts'
import type { Settings } from '../../settings/schema.ts'
import { openTheme } from '../../ui/open-theme.ts'
import type { Ask, ScreenHost } from '../../ui/screen/host.ts'
import { Screen } from '../../ui/screen/open-screen.tsx'
import type { SlashCommandInfo } from '../../ui/start/slash-commands.ts'
import type { TaskBoard } from '../../ui/task-board.ts'
import { type FileIndex, openFileIndex } from '../../workspace/file-index.ts'
import type { CliContext } from '../context.ts'
import { showError } from '../show-error.ts'
import { keepScreenSmall } from '../small-heap.ts'
import { type DraftFile, openDraftFile } from './draft-file.ts'
import { keepDraft } from './keep-draft.ts'
import { letGoOfKeys } from './let-go-of-keys.ts'
import { openLogSource } from './log-source.ts'
import { openPromptHistory, type PromptHistory } from './prompt-history.ts'
import { boardPlaceOf, watchTasks } from './task-watch.ts'

/** Who carries out what a person asks of what is shown. */
interface ScreenControl {
  ask(ask: Ask): Promise<Reply>
  /** A goal was typed where no session is shown. */
  begin(goal: string): void
  /** A slash command. */
  command(name: string, rest: string): Promise<void>
  /** The slash commands as they are now. */
  commands(): readonly SlashCommandInfo[]
  leave(): void
  leaveNow(): void
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

/** How often the queue is looked at for what other terminals do with it, ms. */
const QUEUE_MS = 2_000

/** The screen with all that it keeps on the disk: draft, history, queue, files. */
export class PersonScreen implements ScreenHost, AsyncDisposable {
  readonly screen: Screen
  /** Whether it is drawn for a screen reader. */
  readonly isForReader: boolean
  /** Whether a session was shown since this was last put back. */
  hasShown = false
  readonly #options: PersonScreenOptions
  readonly #opened = new Cleanup()
  readonly #closing = new AbortController()
  readonly #queue: Queue
  readonly #history: PromptHistory
  /** Null where another screen keeps its own there. */
  readonly #draft: DraftFile | null
  readonly #files: FileIndex
  #board: AbortController | null = null
  #session: string | null = null
  #sent: string[] = []
  #problem: string | null = null

  constructor(options: PersonScreenOptions) {
    keepScreenSmall()
    const { context, records, settings, isWatching } = options
    const { env, clock, host, signal } = context
    this.#options = options
    const onProblem = (problem: string) => this.screen.notice(problem, 'warning')
    const redactor = redactorOf(secretVariables(env))
    this.#queue = openQueue(records.queue)
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
      onGone: () => this.#options.control.gone(),
      onFailure: error => this.fail(error),
    })
    this.#opened.defer(context.host.beforeCrash(() => this.screen.release()))
    const leaving = () => {
      this.screen.model.isLeaving = true
      this.screen.changed()
    }
    signal.addEventListener('abort', leaving)
    this.#opened.defer(() => signal.removeEventListener('abort', leaving))
    this.#begin().catch(error => this.fail(error))
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
    this.#count()
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
    this.#count()
  }

  async ask(ask: Ask): Promise<Reply> {
    return await this.#options.control.ask(ask)
  }

  begin(goal: string): void {
    this.#options.control.begin(goal)
  }

  async command(name: string, rest: string): Promise<void> {
    if (name !== 'exit') this.screen.say(`\n› /${name} ${rest}`.trimEnd(), 'dim')
    await this.#options.control.command(name, rest)
  }

  leave(): void {
    this.#options.control.leave()
  }

  leaveNow(): void {
    this.#options.control.leaveNow()
  }

  async enqueue(prompt: string): Promise<string> {
    await this.#queue.add(prompt, new Date(this.#options.context.clock.now()))
    const waiting = await this.countQueue()
    return `It waits as the next session (${waiting} in the queue); Alt+↑ takes it back`
  }

  async takeBack(keep: (prompt: string) => void): Promise<boolean> {
    const { prompts } = await this.#queue.list()
    const last = prompts.at(-1)
    if (last === undefined || !(await this.takeBackOne(last, keep))) return false
    return true
  }

  /** Takes one prompt out of the queue, once `keep` has put it where it is kept; false if its session has begun. */
  async takeBackOne({ id, prompt }: QueuedPrompt, keep: (prompt: string) => void): Promise<boolean> {
    if (!(await this.#queue.claim(id))) return false
    keep(prompt)
    await this.#draft?.written()
    await this.#queue.removeIfWaiting(id)
    await this.countQueue()
    return true
  }

  async countQueue(): Promise<number> {
    const waiting = await this.#queue.count()
    const { model } = this.screen
    if (waiting === model.queued && waiting === (model.facts?.queue?.length ?? waiting)) return waiting
    model.queued = waiting
    const { prompts } = await this.#queue.list()
    if (model.facts !== null) model.facts = { ...model.facts, queue: prompts.map(({ prompt }) => prompt) }
    this.screen.changed()
    return waiting
  }

  /** The same in passing; what goes wrong with it is said once. */
  #count(): void {
    this.countQueue().catch((error: unknown) => {
      const problem = messageOf(error)
      if (problem !== this.#problem) this.screen.notice(`The queue cannot be read: ${problem}`, 'warning')
      this.#problem = problem
    })
  }

  async edit(text: string): Promise<string | null> {
    const { env, platform } = this.#options.context
    const { records } = this.#options
    const lent = async (edit: () => Promise<EditorEnd>): Promise<EditorEnd> => {
      let end: EditorEnd = { error: 'the terminal is in use' }
      await this.screen.lend(async () => {
        await letGoOfKeys(this.#options.context)
        end = await this.#options.context.host.withoutInterrupt(edit)
      })
      return end
    }
    const where = writableByAgents(records.directory, env, [])
    const edited = await editText({ text, env, platform, temporary: records.folder, where, run: lent })
    if (edited.kind === 'failed') this.screen.notice(edited.message, 'warning')
    return edited.kind === 'edited' ? edited.text : null
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
      await this.screen.page(`The log of ${this.#session}`, source, 'end')
    } finally {
      left.abort()
    }
  }

  async suspend(): Promise<void> {
    const { platform, clock, host } = this.#options.context
    let isDone = false
    await this.screen.lend(async () => {
      isDone = await suspendSelf({ platform, clock, signals: host.signals })
    })
    if (!isDone) this.screen.notice('There is no shell here that could bring it back', 'warning')
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
    await this.screen.close()
    await this.#opened[Symbol.asyncDispose]()
  }

  /** What was kept of the last time comes behind the first paint. */
  async #begin(): Promise<void> {
    const { clock } = this.#options.context
    if (this.#draft !== null) await keepDraft(this.screen.model, this.#draft, this.#options.context)
    this.screen.changed()
    this.#sent = [...(await this.#history.list()), ...this.#sent]
    this.screen.model.composer.setHistory(this.#sent)
    while (!this.#closing.signal.aborted) {
      this.#count()
      await clock.wait(QUEUE_MS, this.#closing.signal)
    }
  }
}

const MOST_FILES = 50
const MOST_SENT = 500
