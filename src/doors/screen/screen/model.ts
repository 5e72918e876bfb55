import type { Clock } from '../../../base/clock.ts'
import type { TaskBoard } from '../../../core/state/plan.ts'
import type { SessionState } from '../../../core/state/state.ts'
import type { StartFacts } from '../../../project/login.ts'
import type { Keymap } from '../../../project/settings/keys.ts'
import type { AskedQuestion } from '../../../session/records/questions.ts'
import { widthOf, wrapLine } from '../../../tell/words/cells.ts'
import { boardNow } from '../../../tell/words/plan.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import { ownBoard, type ShownBoard } from '../../../tell/words/work.ts'
import { expanded } from '../composer/buffer.ts'
import { Composer } from '../composer/composer.ts'
import { openPicker, type Picker, type PickerQuestion, type PickerResult } from '../composer/picker.ts'
import { HiddenTyping, type TypedEnd } from '../terminal/hidden-field.ts'
import type { Role, Theme } from '../terminal/theme.ts'
import { Scrollback, SessionPane } from './session-pane.ts'

/** How long a notice is shown, ms. */
const NOTICE_MS = 8_000

/** The state of the screen: the session or the start screen, the composer, the open question and the notice. */
export class ScreenModel {
  readonly composer: Composer
  readonly pane: SessionPane
  readonly scrollback = new Scrollback()
  readonly options: ScreenModelOptions
  theme: Theme
  facts: StartFacts | null = null
  board: TaskBoard | null = null
  /** The questions of agents that nobody has answered yet, the oldest first. */
  asked: readonly AskedQuestion[] = []
  /** The prompts in the queue, the next one first. */
  queue: readonly string[] = []
  /** Whether a session is shown; false for the start screen. */
  showsSession = false
  showsTasks = false
  isLeaving = false
  #dialog: Dialog | null = null
  #notice: Notice | null = null
  #work: ShownWork | null = null

  constructor(options: ScreenModelOptions) {
    this.options = options
    this.theme = options.theme
    this.composer = new Composer(options)
    const { motion, redact, size } = options
    this.pane = new SessionPane({
      theme: () => this.theme,
      motion,
      redact,
      columns: () => size().columns,
      print: lines => this.scrollback.add(lines),
    })
  }

  /** Shows a session that has yet to begin. */
  showNextSession(): void {
    this.showsSession = true
    this.#notice = null
    this.board = null
    this.asked = []
    this.pane.reset()
    this.options.onChange()
  }

  /** Whether a session is shown that has begun and not ended. */
  get isRunning(): boolean {
    return this.showsSession && this.pane.state !== null && this.pane.state.ended === null
  }

  /** The work of the session that is shown, of which a frame is drawn many times a second: the same until something happens. */
  get work(): ShownWork {
    const { board, pane } = this
    const { state } = pane
    if (this.#work?.state === state && this.#work.board === board) return this.#work
    const tasks = state === null ? board : boardNow(board, state)
    this.#work = { state, board, tasks, own: state && ownBoard(state) }
    return this.#work
  }

  /** The number of prompts in the queue. */
  get queued(): number {
    return this.queue.length
  }

  /** Whether the person is typing into the field, or searching what they have typed before. */
  get isTyping(): boolean {
    return this.composer.text.trim() !== '' || this.composer.snapshot().search !== null
  }

  /** The open question, or null. */
  get question(): Question | null {
    return this.#dialog?.question ?? null
  }

  /** The state of its answer; null if no question is open. */
  get dialog(): Picker | null {
    return this.#dialog?.picker ?? null
  }

  /** Opens a question and resolves to its answer; withdraws the question that was open. */
  choose(question: Question): Promise<Answer> {
    this.dismiss('withdrawn')
    // What was said before it is old by the time it closes.
    this.dropNotice()
    return new Promise(resolve => {
      const typing = question.hidden === undefined ? null : new HiddenTyping(question.hidden.mostBytes)
      this.#dialog = { question, picker: openPicker(question), typing, answer: resolve }
      this.options.onChange()
    })
  }

  /**
   * Closes the open question; a text that was being typed as its answer goes to the composer, but for a hidden one, of
   * which nothing is kept. Where that is withdrawn a note takes the keys that follow: they may be the rest of a secret.
   */
  dismiss(kind: 'closed' | 'withdrawn' | 'left'): void {
    const written = this.#dialog === null ? '' : expanded(this.#dialog.picker.written)
    const wasHidden = this.#dialog !== null && this.#dialog.typing !== null
    this.answer({ kind })
    if (written.trim() !== '') this.addText(written)
    if (wasHidden && kind === 'withdrawn') void this.choose(NOTHING_KEPT)
  }

  /** Whether the note is open that takes the rest of a secret. */
  get takesRest(): boolean {
    return this.question === NOTHING_KEPT
  }

  /** Changes the text of the open hidden field; one that ends it is its answer, or is asked for again if it cannot be one. */
  typeHidden(change: (typing: HiddenTyping) => TypedEnd | null): void {
    const dialog = this.#dialog
    const hidden = dialog?.question.hidden
    if (dialog === null || dialog.typing === null || hidden === undefined) return
    const end = change(dialog.typing)
    if (end?.kind !== 'typed') return
    const problem = end.isTooLong ? tooLong(hidden) : hidden.problemOf(end.text)
    if (problem === null) {
      this.answer({ kind: 'text', text: end.text })
      return
    }
    dialog.typing = new HiddenTyping(hidden.mostBytes)
    // What it is about was seen before; where rows are few, only one of the two would be.
    const { markdown: _, body = [], ...question } = dialog.question
    this.changeDialog({ ...dialog.picker, question: { ...question, body: [problem, ...body] } })
  }

  /** Whether a key has stopped the countdown of the open question. */
  get isCountdownStopped(): boolean {
    return this.#dialog?.isCountdownStopped === true
  }

  stopCountdown(): void {
    if (this.#dialog !== null) this.#dialog.isCountdownStopped = true
  }

  /** Adds a text to the composer, below the text that is there. */
  addText(text: string): void {
    const { composer } = this
    composer.setText(composer.text.trim() === '' ? text : `${composer.text}\n\n${text}`)
  }

  /** Whether the text in the field was in the queue: Enter puts it back there. */
  isOfQueue = false

  /** Puts a prompt of the queue into the field. */
  addQueued(prompt: string): void {
    this.addText(prompt)
    this.isOfQueue = true
  }

  /** Puts a text back that was not taken, where it can be edited; alone in the field, it gives way to what is typed anew. */
  giveBack(text: string): void {
    const { composer } = this
    if (composer.text.trim() === '') composer.setRefused(text)
    else this.addText(text)
  }

  /** Replaces the state of the open question's answer. */
  changeDialog(picker: Picker): void {
    const before = this.#dialog?.picker.selected
    if (this.#dialog) this.#dialog.picker = picker
    const { question, selected } = picker
    const option = question.options[selected]
    if (selected !== before && option !== undefined) question.onMove?.(option.id)
    this.options.onChange()
  }

  /** Shows these questions of agents; the field of one that is answered elsewhere closes. */
  showAsked(asked: readonly AskedQuestion[]): void {
    const { ofQuestion } = this.question ?? {}
    this.asked = asked
    if (ofQuestion !== undefined && !asked.some(({ question }) => question === ofQuestion)) {
      this.dismiss('withdrawn')
      this.notice(`${ofQuestion} has been answered meanwhile`, 'warning')
    }
    this.options.onChange()
  }

  /** Closes the open question with an answer. */
  answer(answer: Answer): void {
    const dialog = this.#dialog
    this.#dialog = null
    dialog?.answer(answer)
    this.options.onChange()
  }

  /**
   * Shows a message in place of the hint for 8 seconds, or until the person changes the text of the field.
   * @param how `whole`: prints it instead, where it is wider than that row; a function: it is shown only while that is true
   */
  notice(text: string, role: Role, how?: 'whole' | (() => boolean)): void {
    const isTrue = typeof how === 'function' ? how : () => true
    this.#notice = { text, role, until: this.options.clock.monotonic() + NOTICE_MS, isTrue }
    const { columns } = this.options.size()
    const shown = oneLine(text, 500)
    // A screen reader does not read out what changes in place.
    if (!this.theme.symbols) this.scrollback.add(wrapLine(shown, columns))
    else if (how === 'whole' && widthOf(shown) > columns) {
      this.#notice = null
      this.scrollback.add(wrapLine(shown, columns).map(line => this.theme.paint(role, line)))
    }
    this.options.onChange()
  }

  /** Ends the notice: the row is for the keys that matter now. */
  dropNotice(): void {
    this.#notice = null
  }

  /** The notice that is shown at this moment, or null. */
  get currentNotice(): Notice | null {
    const notice = this.#notice
    return notice !== null && this.options.clock.monotonic() < notice.until && notice.isTrue() ? notice : null
  }
}

/** The answer to a question on the screen. `withdrawn`: it was taken back, or something else was done; `left`: closed by Ctrl+C. */
export type Answer = PickerResult | { kind: 'withdrawn' | 'left' }

/**
 * A question on the screen. `yieldsToTyping`: typing closes it and goes on in the composer; `whileHeld`: it is withdrawn when
 * the session goes on; `esc`: what the last line says that Esc does, left out: it closes; `interruptHolds`: Ctrl+C leaves the
 * session held, as Esc does not; `leavesOnInterrupt`: Ctrl+C, which has opened it,
 * leaves; `takesCommands`: a slash command is run in place of an answer; `ofDecision`: it is withdrawn when that is decided;
 * `hidden`: its answer is typed and never shown; `ofQuestion`: the question of an agent that it answers.
 */
export type Question = PickerQuestion & {
  yieldsToTyping?: true
  whileHeld?: true
  esc?: string
  interruptHolds?: true
  leavesOnInterrupt?: true
  takesCommands?: true
  ofDecision?: true
  hidden?: HiddenTerms
  ofQuestion?: string
}

/** What may be typed into a hidden field. `problemOf`: what is wrong with it, a sentence without any of it; null: nothing is. */
interface HiddenTerms {
  mostBytes: number
  problemOf(text: string): string | null
}

export interface ScreenModelOptions {
  theme: Theme
  clock: Pick<Clock, 'monotonic'>
  motion: 'full' | 'reduced'
  keymap: Keymap
  /** Whether the session is run by another process. */
  isWatching: boolean
  /** Whether this is a demo, whose scripted model ends with the screen. */
  isDemo?: boolean
  size(): { columns: number; rows: number }
  redact(text: string): string
  searchFiles(query: string): Promise<readonly string[]>
  /** Called after each change. */
  onChange(): void
}

/** What is shown of the work, and the state and the task files that it was computed from. */
interface ShownWork {
  state: SessionState | null
  board: TaskBoard | null
  tasks: TaskBoard | null
  /** The board of the template's own; null if it has none. */
  own: ShownBoard | null
}

const NOTHING_KEPT: Question = {
  title: 'This question is closed.',
  body: ['Your text was discarded.'],
  options: [{ id: 'close', label: 'Close', confirms: true }],
}

function tooLong({ mostBytes }: HiddenTerms): string {
  return `It is longer than ${mostBytes / 1024} KiB; it was discarded.`
}

/** A message in place of the hint. `until`: monotonic time, ms. */
interface Notice {
  text: string
  role: Role
  until: number
  isTrue(): boolean
}

interface Dialog {
  question: Question
  picker: Picker
  /** The text of a hidden field; null if the answer is typed where it is seen, or chosen. */
  typing: HiddenTyping | null
  isCountdownStopped?: true
  answer(answer: Answer): void
}
