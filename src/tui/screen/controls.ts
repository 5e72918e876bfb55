import type { Ask } from '../../app/library.ts'
import { unreachable } from '../../base/errors.ts'
import type { Reply } from '../../core/contracts/reply.ts'
import { expanded } from '../composer/buffer.ts'
import type { ComposerIntent } from '../composer/composer.ts'
import { chordOf, type Key } from '../composer/keys.ts'
import { type Picker, pickerKey, pickerPaste } from '../composer/picker.ts'
import { isAtLineEnd } from '../composer/text.ts'
import { askAboutPlan, askAfterInterrupt, type QuestionContext, sendWritten } from './dialogs.ts'

/** How long a second Ctrl+C leaves, ms. */
const ARMED_MS = 8_000

/** Handles the keys of the screen: the open question, the composer, and the actions of the host. */
export class Controls {
  readonly #options: ControlsOptions
  /** The time until which another Ctrl+C leaves; monotonic, ms. */
  #armedUntil = 0
  #lastChord = ''
  #isInterrupting = false

  constructor(options: ControlsOptions) {
    this.#options = options
  }

  key(key: Key): void {
    const { model, clock } = this.#options
    const chord = chordOf(key)
    const isArmed = clock.monotonic() < this.#armedUntil
    this.#armedUntil = 0
    if (chord === '' && /^\D/.test(key.input)) this.#closeForTyping(key.input)
    if (model.dialog !== null) this.#dialogKey(key, chord, isArmed)
    else if (chord === 'ctrl+c' && model.composer.snapshot().search === null) this.#interrupt(isArmed)
    else if (!this.#globalKey(chord)) this.#intent(model.composer.key(key), chord)
    this.#lastChord = chord
  }

  paste(text: string): void {
    const { model } = this.#options
    this.#armedUntil = 0
    this.#closeForTyping(text)
    const { dialog, question } = model
    if (question?.hidden !== undefined) model.typeHidden(typing => typing.takeText(text))
    else if (dialog !== null) model.changeDialog(pickerPaste(dialog, text))
    else model.composer.paste(text)
  }

  /** Closes a question that the typed text does not answer; the text goes to the composer. */
  #closeForTyping(typed: string): void {
    const { model } = this.#options
    const { yieldsToTyping, takesCommands, freeText } = model.question ?? {}
    if (yieldsToTyping) model.answer({ kind: 'closed' })
    else if (takesCommands && freeText === undefined && typed.startsWith('/')) model.answer({ kind: 'withdrawn' })
  }

  #dialogKey(key: Key, chord: string, isArmed: boolean): void {
    const { model, host, clock } = this.#options
    const { dialog, question } = model
    if (dialog === null || question === null) return
    if (chord === 'ctrl+c') {
      // Ctrl+C means to get out, and must not let a held session go on.
      model.dismiss('left')
      if (question.leavesOnInterrupt || isArmed) host.leave()
      else this.#arm()
    } else if (question.hidden !== undefined) {
      this.#hiddenKey(key, chord)
    } else if (chord === 'ctrl+e' && (!dialog.writing || isAtLineEnd(dialog.written.text))) {
      this.#start(host.openLogs())
    } else if (!this.#globalKey(chord)) {
      const { picker, result } = pickerKey(dialog, key, model.inputArea(clock.now()))
      if (result === null) model.changeDialog(picker)
      else if (result.kind === 'closed') model.dismiss('closed')
      else if (result.kind === 'chosen' || !this.#runWritten(picker)) model.answer(result)
    }
  }

  /** A key of a text that is not shown: it edits that, and opens nothing else. */
  #hiddenKey(key: Key, chord: string): void {
    const { model } = this.#options
    if (chord === 'escape' || chord === 'ctrl+d') model.dismiss('closed')
    else if (chord === '') model.typeHidden(typing => typing.takeText(key.input))
    else if (LINE_ENDS.has(chord)) model.typeHidden(typing => typing.takeText('\n'))
    else if (chord === 'ctrl+l' || chord === 'ctrl+z') this.#globalKey(chord)
    else {
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
    else model.dismiss('withdrawn')
    this.#intent(command, '')
    return true
  }

  /** Ctrl+C: asks about the plan if a session runs, else warns. Soon after a Ctrl+C that closed a question it leaves. */
  #interrupt(isArmed: boolean): void {
    const { model, host } = this.#options
    if (model.isLeaving) host.leaveNow()
    else if (isArmed) host.leave()
    else if (model.isRunning) this.#start(askAboutPlan(this.#options))
    else this.#arm()
  }

  #arm(): void {
    const { model, clock } = this.#options
    this.#armedUntil = clock.monotonic() + ARMED_MS
    model.notice('Ctrl+C again leaves', 'warning')
  }

  #globalKey(chord: string): boolean {
    const { model, host, redraw, openOutput } = this.#options
    switch (chord) {
      case 'ctrl+l':
        redraw()
        return true
      case 'ctrl+z':
        this.#start(host.suspend())
        return true
      case 'ctrl+t':
        model.showsTasks = !model.showsTasks
        return true
      case 'ctrl+o':
        openOutput()
        return true
      default:
        return false
    }
  }

  #intent(intent: ComposerIntent | null, chord: string): void {
    const { model, host } = this.#options
    if (intent === null) return
    switch (intent.kind) {
      case 'submit':
        this.#submit(intent.text)
        break
      case 'steer':
        this.#start(this.#steer(intent.text))
        break
      case 'command':
        this.#start(host.command(intent.name, intent.rest))
        break
      case 'unknown-command': {
        const meant = intent.nearest === null ? '/help lists them' : `did you mean /${intent.nearest}?`
        model.notice(`There is no /${intent.name}; ${meant}`, 'warning')
        break
      }
      case 'take-back':
        this.#start(this.#takeBack())
        break
      case 'open-editor':
        this.#start(this.#edit())
        break
      case 'help':
        this.#start(host.command('help', ''))
        break
      case 'exit':
        // A held Ctrl+D that was deleting text must not leave.
        if (this.#lastChord !== 'ctrl+d') host.leave()
        break
      case 'interrupt':
        if (model.isRunning) this.#start(this.#interruptTurn())
        break
      case 'unhandled':
        if (chord === 'ctrl+e') this.#start(host.openLogs())
        break
      default:
        unreachable(intent)
    }
  }

  #submit(text: string): void {
    const { model, host } = this.#options
    host.remember(text)
    if (model.showsSession) this.#start(this.#enqueue(text))
    else host.begin(text)
  }

  async #interruptTurn(): Promise<void> {
    // Esc pressed twice interrupts once.
    if (this.#isInterrupting) return
    this.#isInterrupting = true
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
      model.addText(text)
      throw error
    }
  }

  async #steer(text: string): Promise<void> {
    const { model } = this.#options
    if (model.isRunning) return void (await sendWritten(this.#options, { type: 'steer', text }))
    model.composer.setText(text)
    model.notice('No agent is at work; Enter starts a session', 'warning')
  }

  async #takeBack(): Promise<void> {
    const { model, host } = this.#options
    const isTaken = await host.takeBack(prompt => model.addText(prompt))
    if (isTaken) model.notice('Taken back out of the queue; Enter puts it in again', 'good')
    else model.notice('Nothing waits in the queue', 'warning')
  }

  async #edit(): Promise<void> {
    const { model, host } = this.#options
    const text = await host.edit(model.composer.text)
    if (text !== null) model.composer.setText(text)
  }

  #start(action: Promise<void>): void {
    action.catch(this.#options.onFailure)
  }
}

/** The keys of a hidden field, as a terminal sends them. */
const HIDDEN_KEYS: Readonly<Record<string, string>> = {
  return: '\r',
  backspace: '\x7f',
  'ctrl+u': '\x15',
  'ctrl+w': '\x17',
  'alt+backspace': '\x17',
}
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

/** The actions of the screen's keys and commands; the screen itself only draws. Returned sentences are shown to the person. */
export interface ScreenHost {
  ask(ask: Ask): Promise<Reply>
  /** Enter on a text while a session is shown: queues it as the next one. Resolves to a sentence. */
  enqueue(prompt: string): Promise<string>
  /** Takes the last prompt out of the queue, after `keep` has saved it; false if the queue is empty. */
  takeBack(keep: (prompt: string) => void): Promise<boolean>
  /** Enter on a text on the start screen: starts a session. */
  begin(goal: string): void
  /** Runs the slash command `/name rest`. */
  command(name: string, rest: string): Promise<void>
  /** Opens the text in the person's editor, on this terminal; null if it stays unchanged, which the host has reported. */
  edit(text: string): Promise<string | null>
  /** Opens a file of the work directory in the person's editor; false if that failed, which the host has reported. */
  editFile(file: string): Promise<boolean>
  /** Opens the whole log of the session. */
  openLogs(): Promise<void>
  /** What is to be said of the value of a secret before it is taken, sentences without it. */
  warningsOfSecret(value: string): readonly string[]
  /** Stores the value of a secret of the project, and tells the session that runs; resolves with why that was not to be told, else null. */
  storeSecret(key: string, value: string): Promise<string | null>
  /** Suspends the program (Ctrl+Z); resolves after `fg`. */
  suspend(): Promise<void>
  /** Ends the session of this screen so that it can be resumed, or only stops watching it. */
  leave(): void
  /** Leaves without waiting for the session to end. */
  leaveNow(): void
  /** Adds a sent text to the history. */
  remember(text: string): void
}
