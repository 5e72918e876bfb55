import type { SessionState } from '../../session/state.ts'
import { activityOf } from '../activity.ts'
import { boardNow } from '../build-board.ts'
import { cutLine, wrapLine } from '../cells.ts'
import { Composer, type ComposerPorts } from '../composer/composer.ts'
import { composerLines } from '../composer/composer-lines.ts'
import { openPicker, type Picker, type PickerQuestion, type PickerResult } from '../composer/picker.ts'
import { pickerLines } from '../composer/picker-lines.ts'
import { popupLines } from '../composer/popup-lines.ts'
import { expanded } from '../composer/text-buffer.ts'
import { headerLines } from '../header/header-lines.ts'
import { progressLine } from '../header/progress-line.ts'
import { taskLines } from '../header/task-lines.ts'
import { windowTitle } from '../header/window-title.ts'
import { workLines } from '../live/work-lines.ts'
import { oneLine } from '../safe-text.ts'
import type { StartFacts } from '../start/start-facts.ts'
import { startLines } from '../start/start-lines.ts'
import type { TaskBoard } from '../task-board.ts'
import type { Role, Theme } from '../theme.ts'
import { hintLine } from './hint.ts'
import { type Frame, type Input, layOut } from './layout.ts'
import { Scrollback } from './scrollback.ts'
import { SessionPane } from './session-pane.ts'

export interface ScreenModelOptions {
  theme: Theme
  motion: 'full' | 'reduced'
  /** Whether it only watches what another process runs. */
  isWatching: boolean
  size(): { columns: number; rows: number }
  redact(text: string): string
  searchFiles: ComposerPorts['searchFiles']
  /** Something that is shown has changed. */
  onChange(): void
}

/**
 * An answer to a question on the screen; `withdrawn`: there is nothing to answer any more; `left`: by Ctrl+C, where Esc
 * would go on.
 */
export type Answer = PickerResult | { kind: 'withdrawn' | 'left' }

/**
 * A question. `yieldsToTyping`: whoever types goes on in the composer; `whileHeld`: it is over when the session goes on;
 * `escGoesOn`: that is what closing it comes to; `leavesOnInterrupt`: Ctrl+C, which has opened it, leaves.
 */
export type Question = PickerQuestion & {
  yieldsToTyping?: true
  whileHeld?: true
  escGoesOn?: true
  leavesOnInterrupt?: true
}

interface Dialog {
  question: Question
  picker: Picker
  answer(answer: Answer): void
}

/** How long a remark stays, ms. */
const NOTICE_MS = 8_000

/** All that the screen shows, and how it is drawn at a given moment. */
export class ScreenModel {
  readonly composer: Composer
  readonly pane: SessionPane
  readonly scrollback = new Scrollback()
  readonly options: ScreenModelOptions
  facts: StartFacts | null = null
  board: TaskBoard | null = null
  queued = 0
  /** Whether the session is shown, or the start screen. */
  showsSession = false
  showsTasks = false
  isLeaving = false
  #theme: Theme
  #dialog: Dialog | null = null
  #notice: { text: string; role: Role; until: number } | null = null

  constructor(options: ScreenModelOptions) {
    this.options = options
    this.#theme = options.theme
    this.composer = new Composer({ searchFiles: options.searchFiles })
    const { motion, redact, size } = options
    const theme = () => this.#theme
    this.pane = new SessionPane({
      theme,
      motion,
      redact,
      columns: () => size().columns,
      print: lines => this.scrollback.add(lines),
    })
  }

  get theme(): Theme {
    return this.#theme
  }

  set theme(theme: Theme) {
    this.#theme = theme
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

  get dialog(): Picker | null {
    return this.#dialog?.picker ?? null
  }

  get yieldsToTyping(): boolean {
    return this.#dialog?.question.yieldsToTyping ?? false
  }

  get asksWhileHeld(): boolean {
    return this.#dialog?.question.whileHeld ?? false
  }

  get escGoesOn(): boolean {
    return this.#dialog?.question.escGoesOn ?? false
  }

  get leavesOnInterrupt(): boolean {
    return this.#dialog?.question.leavesOnInterrupt ?? false
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

  /** Says something in place of the hint, for a while. @param now Unix time, ms */
  notice(text: string, role: Role, now: number): void {
    this.#notice = { text, role, until: now + NOTICE_MS }
    // A screen reader would not hear of what changes in place.
    if (!this.#theme.symbols) this.scrollback.add(wrapLine(oneLine(text, 500), this.options.size().columns))
    this.options.onChange()
  }

  /** What the terminal's window is called; null as long as there is nothing to say. */
  title(now: number): string | null {
    const { state, items } = this.pane
    if (!this.showsSession || state === null) return 'codemachine'
    return windowTitle({ state, board: this.#boardOf(state), live: items }, { symbols: this.#theme.symbols, now })
  }

  /** @param now Unix time, ms */
  frame(now: number): Frame {
    const { columns, rows } = this.options.size()
    this.composer.resize(columns)
    return this.#theme.symbols ? this.#drawn(columns, rows, now) : this.#spoken(columns, rows)
  }

  #drawn(columns: number, rows: number, now: number): Frame {
    const theme = this.#theme
    const { state, items } = this.pane
    const session = this.showsSession ? state : null
    const { queued, facts } = this
    const board = this.#boardOf(session)
    return layOut(
      {
        main: most => {
          if (session !== null) return underBlank(workLines(session, items, { columns, rows: most - 1, theme, now }))
          if (facts === null || this.showsSession) return []
          const space = !this.scrollback.hasLines || most < ROWS_FOR_START ? [] : ['']
          return [...space, ...startLines(facts, { columns, rows: most - space.length, theme, now })]
        },
        panel: this.#panel(columns),
        progress: () => session && board && progressLine({ state: session, board }, { columns, theme, now }),
        header: most =>
          session === null
            ? this.#starting()
            : headerLines(
                { state: session, board, live: items, queued },
                { columns, rows: most >= 2 ? 2 : 1, theme, now },
              ),
        input: { isDialog: this.#dialog !== null, draw: most => this.#input(columns, most) },
        hint: () => this.#hint(columns, now),
      },
      rows,
    )
  }

  /** For a screen reader: where something is typed, and nothing that changes by itself. */
  #spoken(columns: number, rows: number): Frame {
    const input = this.#input(columns, Math.max(1, rows - 2))
    const popup = this.#panel(columns)?.(rows - 2 - input.lines.length) ?? []
    return {
      lines: [...popup, ...input.lines],
      caret: input.caret && { x: input.caret.x, y: popup.length + input.caret.y },
    }
  }

  #boardOf(state: SessionState | null): TaskBoard | null {
    return state === null ? this.board : boardNow(this.board, state)
  }

  #starting(): string[] {
    return this.showsSession ? [this.#theme.paint('dim', this.#theme.symbols ? 'starting …' : 'starting')] : []
  }

  #panel(columns: number): ((rows: number) => readonly string[]) | null {
    const theme = this.#theme
    const snapshot = this.composer.snapshot()
    if (this.#dialog === null && snapshot.popup !== null) {
      return rows => popupLines(snapshot, { columns, maxRows: Math.min(rows, MOST_OFFERED), theme })
    }
    const { state } = this.pane
    if (!this.showsTasks || !this.showsSession || state === null) return null
    return rows => taskLines({ plan: state.plan, board: this.#boardOf(state) }, { columns, rows, theme })
  }

  #input(columns: number, maxRows: number): Input {
    const place = { columns, maxRows, theme: this.#theme }
    return this.#dialog === null
      ? composerLines(this.composer.snapshot(), place)
      : pickerLines(this.#dialog.picker, place)
  }

  #hint(columns: number, now: number): string {
    const theme = this.#theme
    const { search, popup } = this.composer.snapshot()
    const place = {
      isSession: this.showsSession,
      isBuild: this.isRunning && this.pane.state?.build != null,
      isWatching: this.options.isWatching,
      isHeld: this.isRunning && this.pane.state !== null && activityOf(this.pane.state) === 'paused',
      text: this.composer.text,
      isSearching: search !== null,
      question: this.#dialog?.question ?? null,
    }
    // What is open wants to be told how it is answered.
    if (this.#dialog !== null || search !== null || popup !== null) return theme.paint('dim', hintLine(place, columns))
    if (this.#notice !== null && this.#notice.until <= now) this.#notice = null
    if (this.#notice !== null && !this.isLeaving) {
      const { text, role } = this.#notice
      return theme.paint(role, cutLine(oneLine(text, 500), columns))
    }
    const isEnding = this.isLeaving && this.showsSession
    const ending = cutLine('Ending what runs; Ctrl+C again ends it at once', columns)
    return theme.paint('dim', isEnding ? ending : hintLine(place, columns))
  }
}

/** What is printed above ends without a blank line. */
function underBlank(lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? lines : ['', ...lines]
}

/** What the start screen takes at the most, as a rule. */
const ROWS_FOR_START = 16
/** Rows of a popup. */
const MOST_OFFERED = 10
