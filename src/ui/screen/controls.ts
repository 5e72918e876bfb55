import type { Clock } from '../../base/clock.ts'
import { unreachable } from '../../base/errors.ts'
import type { ComposerIntent } from '../composer/composer-intent.ts'
import { chordOf } from '../composer/edit-key.ts'
import type { Key } from '../composer/key.ts'
import { pickerKey, pickerPaste } from '../composer/picker.ts'
import type { ScreenHost } from './host.ts'
import { askAboutPlan, askAfterInterrupt } from './questions.ts'
import type { ScreenModel } from './screen-model.ts'

export interface ControlsOptions {
  model: ScreenModel
  host: ScreenHost
  clock: Clock
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
    if (model.yieldsToTyping && /^\D/.test(key.input) && chord === '') model.answer({ kind: 'closed' })
    if (model.dialog !== null) this.#dialogKey(key, chord)
    else if (chord === 'ctrl+c' && model.composer.snapshot().search === null) this.#interrupt(isArmed)
    else if (!this.#globalKey(chord)) this.#intent(model.composer.key(key), chord)
    this.#lastChord = chord
  }

  paste(text: string): void {
    const { model } = this.#options
    this.#armedUntil = 0
    if (model.yieldsToTyping) model.answer({ kind: 'closed' })
    const { dialog } = model
    if (dialog !== null) model.changeDialog(pickerPaste(dialog, text))
    else model.composer.paste(text)
  }

  #dialogKey(key: Key, chord: string): void {
    const { model, host } = this.#options
    const { dialog } = model
    if (dialog === null) return
    if (chord === 'ctrl+c') {
      const leaves = model.leavesOnInterrupt
      // Whoever presses it wants to get out, and not that the work goes on.
      model.dismiss(model.escGoesOn ? 'left' : 'closed')
      if (leaves) host.leave()
    } else if (!this.#globalKey(chord)) {
      const { picker, result } = pickerKey(dialog, key, model.options.size().columns)
      if (result === null) model.changeDialog(picker)
      else if (result.kind === 'closed') model.dismiss('closed')
      else model.answer(result)
    }
  }

  /** Ctrl+C: a question about the plan first; where there is none, a warning. */
  #interrupt(isArmed: boolean): void {
    const { model, host, clock } = this.#options
    if (model.isLeaving) host.leaveNow()
    else if (model.isRunning) this.#start(askAboutPlan(this.#options))
    else if (isArmed) host.leave()
    else {
      this.#armedUntil = clock.monotonic() + ARMED_MS
      model.notice('Ctrl+C again leaves', 'warning', clock.now())
    }
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
    const { model, host, clock } = this.#options
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
        model.notice(`There is no /${intent.name}; ${meant}`, 'warning', clock.now())
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
    const { model, host, clock } = this.#options
    try {
      model.notice(await host.enqueue(text), 'good', clock.now())
    } catch (error) {
      model.addText(text)
      throw error
    }
  }

  async #steer(text: string): Promise<void> {
    const { model, host, clock } = this.#options
    if (!model.isRunning) {
      model.composer.setText(text)
      return model.notice('No agent is at work; Enter starts a session', 'warning', clock.now())
    }
    host.remember(text)
    const { delivered, kept, message } = await host.ask({ type: 'steer', text })
    if (!delivered && !kept) model.addText(text)
    model.notice(message, delivered || kept ? 'good' : 'warning', clock.now())
  }

  async #takeBack(): Promise<void> {
    const { model, host, clock } = this.#options
    const isTaken = await host.takeBack(prompt => model.addText(prompt))
    if (isTaken) model.notice('Taken back out of the queue; Enter puts it in again', 'good', clock.now())
    else model.notice('Nothing waits in the queue', 'warning', clock.now())
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
