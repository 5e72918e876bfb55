import { unreachable } from '../../base/errors.ts'
import type { ComposerIntent } from '../composer/composer-intent.ts'
import { chordOf } from '../composer/edit-key.ts'
import type { Key } from '../composer/key.ts'
import { type Picker, pickerKey, pickerPaste } from '../composer/picker.ts'
import { isAtLineEnd } from '../composer/text.ts'
import { expanded } from '../composer/text-buffer.ts'
import { askAboutPlan, askAfterInterrupt } from './questions.ts'
import { type Asking, tellWritten } from './tell.ts'

export interface ControlsOptions extends Asking {
  /** Draws everything anew. */
  redraw(): void
  /** Shows the whole output of the last command. */
  openOutput(): void
  /** What an action that was set going has failed with. */
  onFailure(error: unknown): void
}

/** How long Ctrl+C may be repeated to leave, ms. */
const ARMED_MS = 8_000

/** What each key sets going. */
export class Controls {
  readonly #options: ControlsOptions
  /** Until when another Ctrl+C leaves; monotonic, ms. */
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
    if (chord === '' && /^\D/.test(key.input)) this.#giveWay(key.input)
    if (model.dialog !== null) this.#dialogKey(key, chord, isArmed)
    else if (chord === 'ctrl+c' && model.composer.snapshot().search === null) this.#interrupt(isArmed)
    else if (!this.#globalKey(chord)) this.#intent(model.composer.key(key), chord)
    this.#lastChord = chord
  }

  paste(text: string): void {
    const { model } = this.#options
    this.#armedUntil = 0
    this.#giveWay(text)
    const { dialog } = model
    if (dialog !== null) model.changeDialog(pickerPaste(dialog, text))
    else model.composer.paste(text)
  }

  /** Closes a question that what is typed is no answer to: it goes into the composer. */
  #giveWay(typed: string): void {
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
      // Whoever presses it wants to get out, and not that the work goes on.
      model.dismiss('left')
      if (question.leavesOnInterrupt || isArmed) host.leave()
      else this.#arm()
    } else if (chord === 'ctrl+e' && (!dialog.writing || isAtLineEnd(dialog.written.text))) {
      this.#start(host.openLogs())
    } else if (!this.#globalKey(chord)) {
      const { picker, result } = pickerKey(dialog, key, model.options.size().columns)
      if (result === null) model.changeDialog(picker)
      else if (result.kind === 'closed') model.dismiss('closed')
      else if (result.kind === 'chosen' || !this.#runWritten(picker)) model.answer(result)
    }
  }

  /** Runs the command that was written as an answer; false if it is none, but words for the agent. */
  #runWritten({ written }: Picker): boolean {
    const { model } = this.#options
    const command = model.question?.takesCommands ? model.composer.commandIn(written) : null
    if (command === null) return false
    if (command.kind === 'command') model.answer({ kind: 'withdrawn' })
    // `/tmp is full` is about a path; a single word is a command mistyped, and can be mended in the composer.
    else if (/\s/.test(expanded(written).trim())) return false
    else model.dismiss('withdrawn')
    this.#intent(command, '')
    return true
  }

  /** Ctrl+C: a question about the plan first; where there is none, a warning. Soon after one that closed a question it leaves. */
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
        // Whoever has just deleted with it, and holds it down, does not mean this.
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
    // Whoever presses Esc twice means it once.
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
    if (model.isRunning) return void (await tellWritten(this.#options, { type: 'steer', text }))
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
