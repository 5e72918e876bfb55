import { unreachable } from '../../../base/errors.ts'
import type { KeyActionId } from '../../../project/settings/keys.ts'
import { expanded } from '../composer/buffer.ts'
import type { ComposerIntent } from '../composer/composer.ts'
import { chordOf, type Key } from '../composer/keys.ts'
import { type Picker, pickerKey, pickerPaste } from '../composer/picker.ts'
import { isEmpty, previousBoundary } from '../composer/text.ts'
import { openAsked } from './asked.ts'
import { openDecision, type QuestionContext, sendWritten } from './dialogs.ts'
import { areaOfInput } from './frame.ts'
import { askAboutPlan, askAfterInterrupt, askToLeave } from './how-it-goes-on.ts'

/** How long a second Ctrl+C leaves, ms. */
const ARMED_MS = 8_000
/** How long Esc after what it closed, and Enter after a digit that chose, are taken for a repeated one, ms. */
const HABIT_MS = 1_000

/** Handles the keys of the screen: the open question, the composer, and the actions of the host. */
export class Controls {
  readonly #options: ControlsOptions
  /** The time until which another Ctrl+C leaves; monotonic, ms. */
  #armedUntil = 0
  /** A key that is pressed once more by habit, and the time until which; monotonic, ms. */
  #habit: { chord: string; until: number } | null = null
  #lastChord = ''
  #isInterrupting = false
  /** What was typed, and other keys that were pressed, while the screen did not show the field. */
  #unseen = ''
  #unseenKeys: Key[] = []

  constructor(options: ControlsOptions) {
    this.#options = options
  }

  key(key: Key): void {
    const { model, clock } = this.#options
    const chord = chordOf(key)
    const isArmed = clock.monotonic() < this.#armedUntil
    this.#armedUntil = 0
    const isHabit = chord === this.#habit?.chord && clock.monotonic() < this.#habit.until
    this.#habit = null
    const wasOpen = this.#isSomethingOpen()
    this.#attend()
    // Esc pressed twice interrupts, and does not continue at once.
    if (isHabit && (chord === 'return' || this.#isInterrupting)) return
    if (chord === '' && /^\D/.test(key.input)) this.#closeForTyping(key.input)
    if (model.dialog !== null) this.#dialogKey(key, chord, isArmed)
    else if (chord === 'ctrl+c' && model.composer.snapshot().search === null) this.#interrupt(isArmed)
    else if (isHabit && !wasOpen && model.isRunning) this.#sayWhatEscDoes()
    else this.#fieldKey(key)
    if (chord === 'escape' && wasOpen && !this.#isSomethingOpen()) this.expectHabit(chord)
    this.#lastChord = chord
  }

  /** Whether Esc closes something of the frame. */
  #isSomethingOpen(): boolean {
    const { composer, dialog, showsTasks } = this.#options.model
    const { popup, search } = composer.snapshot()
    return dialog !== null || popup !== null || search !== null || showsTasks
  }

  /** Expects a key once more by habit; the screen calls it, too, when Esc has closed what filled the terminal. */
  expectHabit(chord: 'escape' | 'return'): void {
    this.#habit = { chord, until: this.#options.clock.monotonic() + HABIT_MS }
  }

  /** Esc that was pressed twice by habit does nothing; the next one counts. */
  #sayWhatEscDoes(): void {
    const { model } = this.#options
    const isHeld = openDecision(model) !== null || model.pane.state?.pausedAt != null
    model.notice(`Esc again ${isHeld ? 'shows the choices' : 'interrupts the agent'}`, 'warning')
  }

  paste(text: string): void {
    const { model } = this.#options
    this.#armedUntil = 0
    this.#attend()
    this.#closeForTyping(text)
    const { dialog, question } = model
    if (question?.hidden !== undefined) model.typeHidden(typing => typing.takeText(text))
    else if (dialog !== null) model.changeDialog(pickerPaste(dialog, text))
    else {
      const isAnew = this.#isRefusedGone(text)
      this.#forgetOrigin()
      model.composer.paste(text)
      model.dropNotice()
      if (isAnew) model.notice(PUT_ASIDE, 'plain')
    }
  }

  /**
   * A key that was pressed while the screen did not show the field waits for `fieldSeen`; what it types is not sent then. Ctrl+C
   * counts as ever, and so does what is typed into a hidden field.
   */
  unseenKey(key: Key): void {
    const chord = chordOf(key)
    if (chord === 'ctrl+c' || this.#options.model.question?.hidden !== undefined) this.key(key)
    else if (chord === '') this.#unseen += key.input
    else if (chord === 'return' || LINE_ENDS.has(chord)) this.#unseen += '\n'
    else if (chord === 'backspace')
      this.#unseen = this.#unseen.slice(0, previousBoundary(this.#unseen, this.#unseen.length))
    else if (chord === 'ctrl+u') this.#unseen = ''
    // Esc was meant for what has just closed.
    else if (chord !== 'escape') this.#unseenKeys.push(key)
  }

  /** A paste at such a time. */
  unseenPaste(text: string): void {
    if (this.#options.model.question?.hidden !== undefined) this.paste(text)
    else this.#unseen += text
  }

  /** The screen shows the field now: what was typed before stands in it, but for a digit or a letter, which were meant for something else. */
  fieldSeen(): void {
    const { model } = this.#options
    const [typed, keys] = [this.#unseen.trim(), this.#unseenKeys]
    this.#unseen = ''
    this.#unseenKeys = []
    if (saysSomething(typed) && model.question?.hidden === undefined) {
      model.addText(typed)
      model.notice(TYPED_UNSEEN, 'plain')
    }
    for (const key of keys) this.key(key)
  }

  /** A key of the field; one that changes its text makes room for the keys of that text. */
  #fieldKey(key: Key): void {
    const { model } = this.#options
    const isAnew = chordOf(key) === '' && this.#isRefusedGone(key.input)
    this.#forgetOrigin()
    const before = model.composer.snapshot().buffer.text.lines
    const intent = model.composer.key(key)
    if (model.composer.snapshot().buffer.text.lines !== before) model.dropNotice()
    if (isAnew) model.notice(PUT_ASIDE, 'plain')
    this.#intent(intent)
  }

  /** A text that begins in an empty field is not one of the queue. */
  #forgetOrigin(): void {
    const { model } = this.#options
    if (model.composer.text.trim() === '') model.isOfQueue = false
  }

  /** Puts aside what was refused, where something else is typed now; false where nothing was. */
  #isRefusedGone(typed: string): boolean {
    const { composer } = this.#options.model
    if (typed === '' || !composer.isRefused || composer.snapshot().search !== null) return false
    composer.putAside()
    return true
  }

  /** A key in a question: it waits for the person from now on, and says so if it would have been answered without them. */
  #attend(): void {
    const { model, host } = this.#options
    if (model.dialog !== null && host.attend()) model.stopCountdown()
  }

  /** Closes a question that the typed text does not answer; the text goes to the composer. */
  #closeForTyping(typed: string): void {
    const { model } = this.#options
    const { yieldsToTyping, takesCommands, freeText } = model.question ?? {}
    if (yieldsToTyping) model.answer({ kind: 'closed' })
    else if (takesCommands && freeText === undefined && typed.startsWith('/')) model.answer({ kind: 'withdrawn' })
  }

  #dialogKey(key: Key, chord: string, isArmed: boolean): void {
    const { model, host } = this.#options
    const { dialog, question } = model
    if (dialog === null || question === null) return
    if (chord === 'ctrl+c') {
      // Ctrl+C means to get out, and must not let a held session go on.
      const hadText = question.hidden === undefined && !isEmpty(dialog.written.text)
      model.dismiss('left')
      // What was written is in the field now, where another Ctrl+C clears it.
      if (hadText) return
      if (question.leavesOnInterrupt || isArmed) host.leave()
      // With a draft below, another Ctrl+C clears that.
      else if (isEmpty(model.composer.snapshot().buffer.text)) this.#arm()
    } else if (question.hidden !== undefined) {
      this.#hiddenKey(key, chord)
    } else if (!this.#keyBesideDialog(chord, dialog)) this.#keyOfDialog(key, chord, dialog)
  }

  #keyOfDialog(key: Key, chord: string, dialog: Picker): void {
    const { model, clock } = this.#options
    const { picker, result } = pickerKey(dialog, key, areaOfInput(model, clock.now()))
    // Elsewhere a digit selects, and Enter chooses.
    if (result?.kind === 'chosen' && chord === '') this.expectHabit('return')
    if (result === null) model.changeDialog(picker)
    else if (result.kind === 'closed') model.dismiss('closed')
    else if (result.kind === 'chosen' || !this.#runWritten(picker)) model.answer(result)
  }

  /** A key of a text that is not shown: it edits that, and opens nothing else. */
  #hiddenKey(key: Key, chord: string): void {
    const { model } = this.#options
    if (chord === 'escape' || chord === 'ctrl+d') model.dismiss('closed')
    else if (chord === '') model.typeHidden(typing => typing.takeText(key.input))
    else if (LINE_ENDS.has(chord)) model.typeHidden(typing => typing.takeText('\n'))
    else if (!this.#keyOfTerminal(chord)) {
      const raw = HIDDEN_KEYS[chord]
      if (raw !== undefined) model.typeHidden(typing => typing.take(raw))
    }
  }

  /** Runs the command that was typed as an answer; false if the answer is no command but a text for the agent. */
  #runWritten({ written }: Picker): boolean {
    const { model } = this.#options
    const command = model.question?.takesCommands ? model.composer.commandIn(written) : null
    if (command === null) return false
    if (command.kind === 'command') model.answer({ kind: 'withdrawn' })
    // `/tmp is full` is about a path; a single word is a mistyped command, to be corrected in the composer.
    else if (/\s/.test(expanded(written).trim())) return false
    else {
      model.answer({ kind: 'withdrawn' })
      model.giveBack(expanded(written))
    }
    this.#intent(command)
    return true
  }

  /** Ctrl+C: clears the field, else asks about the plan if a session runs, else warns. Soon after one that closed a question it leaves. */
  #interrupt(isArmed: boolean): void {
    const { model, host } = this.#options
    if (model.isLeaving) host.leaveNow()
    else if (!isEmpty(model.composer.snapshot().buffer.text)) {
      model.composer.putAside()
      model.notice('Cleared; ↑ brings it back', 'plain')
    } else if (isArmed) host.leave()
    else if (model.isRunning) this.#start(askAboutPlan(this.#options))
    else this.#arm()
  }

  #arm(): void {
    const { model, clock } = this.#options
    this.#armedUntil = clock.monotonic() + ARMED_MS
    model.notice('Ctrl+C again leaves', 'warning')
  }

  /** A key of the terminal itself; false for any other. */
  #keyOfTerminal(chord: string): boolean {
    const action = this.#options.model.options.keymap.inField(chord, false)
    if (action !== 'redraw' && action !== 'suspend') return false
    this.#act(action)
    return true
  }

  /** A key that opens something beside a question, which stays open; false for any other. */
  #keyBesideDialog(chord: string, { writing, written }: Picker): boolean {
    const isWriting = writing && !isEmpty(written.text)
    const action = chord === '' ? null : this.#options.model.options.keymap.inField(chord, !isWriting)
    if (action === null || !BESIDE_DIALOG.has(action)) return false
    this.#act(action)
    return true
  }

  #intent(intent: ComposerIntent | null): void {
    const { model, host } = this.#options
    if (intent === null) return
    const { enter } = model.options.keymap
    // While no agent is at work, Enter starts a session, whatever it does else.
    const tells = enter !== 'queue' && model.isRunning && !model.isOfQueue
    switch (intent.kind) {
      case 'submit':
        if (enter === null && tells) this.#start(this.#askAboutEnter(intent.text))
        else if (tells) this.#start(this.#steer(intent.text))
        else this.#submit(intent.text)
        break
      case 'steer':
        // Unlike Enter, it queues a text from the queue too: people press a key wrongly whose meaning depends on the text.
        if (enter !== 'queue' && model.isRunning) this.#submit(intent.text)
        else this.#start(this.#steer(intent.text))
        break
      case 'command':
        if (intent.name === 'palette') this.#act('palette')
        else this.#start(host.command(intent.name, intent.rest))
        break
      case 'unknown-command': {
        const meant = intent.nearest === null ? '/help lists them' : `did you mean /${intent.nearest}?`
        model.notice(`There is no /${intent.name}; ${meant}`, 'warning')
        break
      }
      case 'action':
        this.#act(intent.action)
        break
      default:
        unreachable(intent)
    }
  }

  /** Does what a key of the table says, which edits no text. */
  #act(action: KeyActionId): void {
    const { model, host, redraw, openOutput } = this.#options
    switch (action) {
      case 'redraw':
        redraw()
        break
      case 'output':
        openOutput()
        break
      case 'tasks':
        model.showsTasks = !model.showsTasks
        break
      case 'search':
        model.composer.search()
        break
      case 'leave':
        // A held Ctrl+D that was deleting text must not leave.
        if (this.#lastChord === 'ctrl+d') break
        if (model.isRunning && !model.options.isWatching) this.#start(askToLeave(this.#options))
        else host.leave()
        break
      case 'interrupt':
        if (model.showsTasks) model.showsTasks = false
        else if (model.isRunning) this.#start(this.#interruptTurn())
        break
      default: {
        const does = this.#actions[action]
        if (does !== undefined) this.#start(does())
      }
    }
  }

  /** Actions that take time. */
  readonly #actions: Partial<Record<KeyActionId, () => Promise<void>>> = {
    plan: () => askAboutPlan(this.#options),
    suspend: () => this.#options.host.suspend(),
    log: () => this.#options.host.openLogs(),
    take_back: () => this.#takeBack(),
    editor: () => this.#edit(),
    help: () => this.#options.host.command('help', ''),
    palette: () =>
      this.#options.host.openPalette(action => {
        // What is chosen there is the interruption itself.
        if (action === 'interrupt') this.#options.model.showsTasks = false
        this.#act(action)
      }),
    agents: () => this.#options.host.command('agents', ''),
    diff: () => this.#options.host.openDiff(),
    copy: () => this.#options.host.command('copy', ''),
    answer: async () => void (await openAsked(this.#options)),
  }

  /** The first Enter on a text while a session runs: asks what it is to do, and does that from then on. */
  async #askAboutEnter(text: string): Promise<void> {
    const { model, host } = this.#options
    const { keymap } = model.options
    // Until it is answered, the text is a draft like any other.
    model.composer.setText(text)
    const answer = await model.choose({
      title: 'Tell the agent, or queue it?',
      body: ['Enter does the same from now on.'],
      options: [
        { id: 'tell', label: 'Tell the agent now' },
        { id: 'queue', label: 'Queue it as the next session' },
      ],
    })
    if (answer.kind !== 'chosen') return
    keymap.enter = answer.id === 'queue' ? 'queue' : 'tell'
    model.composer.setText('')
    if (answer.id === 'queue') this.#submit(text)
    else this.#start(this.#steer(text))
    await host.keepEnter(keymap.enter)
  }

  #submit(text: string): void {
    const { model, host } = this.#options
    if (!saysSomething(text)) {
      model.giveBack(text)
      model.notice(`"${text.trim()}" is not a goal; describe it in words`, 'warning')
      return
    }
    host.remember(text)
    if (model.showsSession) this.#start(this.#enqueue(text))
    else host.begin(text)
  }

  async #interruptTurn(): Promise<void> {
    // Esc pressed twice interrupts once.
    if (this.#isInterrupting) return
    this.#isInterrupting = true
    this.expectHabit('escape')
    try {
      await askAfterInterrupt(this.#options)
    } finally {
      this.#isInterrupting = false
    }
  }

  async #enqueue(text: string): Promise<void> {
    const { model, host } = this.#options
    try {
      model.notice(await host.enqueue(text), 'good')
    } catch (error) {
      model.giveBack(text)
      throw error
    }
  }

  async #steer(text: string): Promise<void> {
    const { model } = this.#options
    if (model.isRunning) return void (await sendWritten(this.#options, { type: 'steer', text }))
    model.giveBack(text)
    model.notice('No session is running; Enter starts one', 'warning')
  }

  async #takeBack(): Promise<void> {
    const { model, host } = this.#options
    if (!(await host.takeBack())) model.notice('The queue is empty', 'warning')
  }

  async #edit(): Promise<void> {
    const { model, host } = this.#options
    const text = await host.edit(model.composer.text)
    if (text !== null) model.composer.setText(text)
  }

  #start(action: Promise<unknown>): void {
    action.catch(this.#options.onFailure)
  }
}

const PUT_ASIDE = 'The rejected text is saved; ↑ brings it back'
const TYPED_UNSEEN = 'You typed this before the field was shown; Enter sends it'

/** Whether a text can be a goal: a digit or a letter alone was meant for a question that was open, or is yet to open. */
function saysSomething(text: string): boolean {
  return (text.match(/\p{L}/gu)?.length ?? 0) > 1
}

/** The keys of a hidden field, as a terminal sends them. */
const HIDDEN_KEYS: Readonly<Record<string, string>> = {
  return: '\r',
  backspace: '\x7f',
  'ctrl+u': '\x15',
  'ctrl+w': '\x17',
  'alt+backspace': '\x17',
}
/** The actions whose keys count while a question is open. */
const BESIDE_DIALOG: ReadonlySet<KeyActionId> = new Set(['redraw', 'suspend', 'tasks', 'output', 'log'])
/** As in the composer. */
const LINE_ENDS: ReadonlySet<string> = new Set(['shift+return', 'alt+return', 'ctrl+j'])

interface ControlsOptions extends QuestionContext {
  /** Draws the whole frame again. */
  redraw(): void
  /** Opens the whole output of the last command. */
  openOutput(): void
  /** Called with the error of an action that a key has started. */
  onFailure(error: unknown): void
}
