import type { StartFacts } from '../../app/login.ts'
import type { Clock } from '../../base/clock.ts'
import type { TaskBoard } from '../../core/state/plan.ts'
import { oneLine, wrapLine } from '../../words/cells.ts'
import { expanded } from '../composer/buffer.ts'
import { Composer } from '../composer/composer.ts'
import { openPicker, type Picker } from '../composer/picker.ts'
import type { Role, Theme } from '../terminal/theme.ts'
import { drawScreen, type Frame, type Notice, type ShownScreen, titleOf } from './frame.ts'
import { type Answer, type Question, Scrollback, SessionPane } from './session-pane.ts'

export interface ScreenModelOptions {
  theme: Theme
  clock: Pick<Clock, 'monotonic'>
  motion: 'full' | 'reduced'
  /** Whether it only watches what another process runs. */
  isWatching: boolean
  size(): { columns: number; rows: number }
  redact(text: string): string
  searchFiles(query: string): Promise<readonly string[]>
  /** Something that is shown has changed. */
  onChange(): void
}

interface Dialog {
  question: Question
  picker: Picker
  answer(answer: Answer): void
}

/** How long a remark stays, ms. */
const NOTICE_MS = 8_000

/** All that the screen shows. */
export class ScreenModel implements ShownScreen {
  readonly composer: Composer
  readonly pane: SessionPane
  readonly scrollback = new Scrollback()
  readonly options: ScreenModelOptions
  theme: Theme
  facts: StartFacts | null = null
  board: TaskBoard | null = null
  queued = 0
  /** Whether the session is shown, or the start screen. */
  showsSession = false
  showsTasks = false
  isLeaving = false
  #dialog: Dialog | null = null
  #notice: Notice | null = null

  constructor(options: ScreenModelOptions) {
    this.options = options
    this.theme = options.theme
    this.composer = new Composer({ searchFiles: options.searchFiles })
    const { motion, redact, size } = options
    this.pane = new SessionPane({
      theme: () => this.theme,
      motion,
      redact,
      columns: () => size().columns,
      print: lines => this.scrollback.add(lines),
    })
  }

  /** From now on a session is shown, which has yet to begin. */
  showNextSession(): void {
    this.showsSession = true
    this.#notice = null
    this.board = null
    this.pane.reset()
    this.options.onChange()
  }

  /** Whether a session is at work that can be told something. */
  get isRunning(): boolean {
    return this.showsSession && this.pane.state !== null && this.pane.state.ended === null
  }

  /** The question that is open. */
  get question(): Question | null {
    return this.#dialog?.question ?? null
  }

  /** What has been chosen and written of its answer. */
  get dialog(): Picker | null {
    return this.#dialog?.picker ?? null
  }

  /** Asks the person; a question that was open is withdrawn. */
  choose(question: Question): Promise<Answer> {
    this.dismiss('withdrawn')
    return new Promise(resolve => {
      this.#dialog = { question, picker: openPicker(question), answer: resolve }
      this.options.onChange()
    })
  }

  /** Takes the open question away; what was being written as its answer goes on in the composer. */
  dismiss(kind: 'closed' | 'withdrawn' | 'left'): void {
    const written = this.#dialog === null ? '' : expanded(this.#dialog.picker.written)
    this.answer({ kind })
    if (written.trim() !== '') this.addText(written)
  }

  /** Puts a text into the composer, below what stands there. */
  addText(text: string): void {
    const { composer } = this
    composer.setText(composer.text.trim() === '' ? text : `${composer.text}\n\n${text}`)
  }

  changeDialog(picker: Picker): void {
    if (this.#dialog) this.#dialog.picker = picker
    this.options.onChange()
  }

  answer(answer: Answer): void {
    const dialog = this.#dialog
    this.#dialog = null
    dialog?.answer(answer)
    this.options.onChange()
  }

  /** Says something in place of the hint, for a while. */
  notice(text: string, role: Role): void {
    this.#notice = { text, role, until: this.options.clock.monotonic() + NOTICE_MS }
    // A screen reader would not hear of what changes in place.
    if (!this.theme.symbols) this.scrollback.add(wrapLine(oneLine(text, 500), this.options.size().columns))
    this.options.onChange()
  }

  /** What is said at this moment. */
  get currentNotice(): Notice | null {
    const notice = this.#notice
    return notice !== null && this.options.clock.monotonic() < notice.until ? notice : null
  }

  /** What the terminal's window is called. @param now Unix time, ms */
  title(now: number): string {
    return titleOf(this, now)
  }

  /** @param now Unix time, ms */
  frame(now: number): Frame {
    const { columns, rows } = this.options.size()
    this.composer.resize(columns)
    return drawScreen(this, { columns, rows, now })
  }
}
