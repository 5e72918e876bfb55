import type { Clock } from '../../base/clock.ts'
import { unreachable } from '../../base/errors.ts'
import { type Command, isTaken, type Reply } from '../../core/contracts/command.ts'
import type { LiveEvent, Recorded, View } from '../../core/events/events.ts'
import type { SessionState } from '../../core/state/state.ts'
import { workOf } from '../../words/event.ts'
import { formatCount } from '../../words/numbers.ts'
import { isPlanShown } from '../../words/plan.ts'
import { expanded } from '../composer/buffer.ts'
import type { ComposerIntent } from '../composer/composer.ts'
import { chordOf, type Key } from '../composer/keys.ts'
import { type Picker, pickerKey, pickerPaste } from '../composer/picker.ts'
import { isAtLineEnd } from '../composer/text.ts'
import type { ScreenModel } from './model.ts'
import type { Answer, Question } from './scrollback.ts'

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

/** Esc: interrupts the turn, and asks how it goes on. */
export async function askAfterInterrupt(asking: Asking): Promise<void> {
  const { model } = asking
  if (model.pane.state !== null && isPlanShown(model.pane.state)) return await askAboutNewPlan(asking)
  const { id: session, pausedAt, running, waiting, checking } = model.pane.state ?? {}
  const isInterrupt = pausedAt == null || running != null
  if (isInterrupt && !(await tell(asking, { type: 'interrupt' }))) return
  if (!model.isRunning || model.pane.state?.id !== session) return
  const held = isInterrupt ? (checking == null ? 'round' : 'check') : null
  const answer = await model.choose(howItGoesOn(model, held, waiting != null))
  // Where another process runs it, that it is held may be seen later than it is answered.
  if (answer.kind === 'withdrawn' || !model.isRunning) return
  // What was held before stays so, unless that is what was chosen.
  if (answer.kind === 'left' || (answer.kind === 'closed' && !isInterrupt)) return sayHeld(asking, answer)
  if (answer.kind === 'text' && !(await tellWritten(asking, { type: 'steer', text: answer.text }))) return
  await goOn(asking, answer.kind === 'chosen' ? answer.id : 'go-on')
}

/** `held`: what Esc has broken off: a round, or a gate or a review; null if it was held before. */
function howItGoesOn(model: ScreenModel, held: 'round' | 'check' | null, isWaiting: boolean): Question {
  const hint = { round: 'as Esc does; the next round is told of this', check: 'as Esc does; it is run again' }
  return {
    title: held !== null ? 'Interrupted. How does it go on?' : 'It is held. How does it go on?',
    options: [
      { id: 'go-on', label: 'Go on', hint: held === null ? '' : hint[held] },
      ...(isWaiting ? [{ id: 'retry', label: 'Do not wait any longer' }] : []),
      {
        id: 'skip',
        label: 'Skip to the next in the queue',
        hint: model.queued === 0 ? 'nothing waits: the session ends' : `${formatCount(model.queued, 'prompt')} waiting`,
      },
      { id: 'stop', label: 'Stop', hint: 'codemachine resume goes on from here' },
    ],
    freeText: 'Tell it something …',
    whileHeld: true,
    takesCommands: true,
    ...(held === null ? {} : { escGoesOn: true }),
  }
}

async function goOn(asking: Asking, how: string): Promise<void> {
  if (how === 'skip') await tell(asking, { type: 'skip' })
  else if (how === 'stop') await tell(asking, { type: 'stop', now: true })
  else {
    await tell(asking, { type: 'unpause' })
    if (how === 'retry') await tell(asking, { type: 'retry' })
  }
}

/** Ctrl+C: asks how the plan is to be changed, and has it changed. The work goes on until that has been said. */
async function askAboutPlan(asking: Asking): Promise<void> {
  const { model } = asking
  const answer = await model.choose({
    title: 'Do you want to modify the plan?',
    body: [`Say what is to be different${interrupts(model)}. Esc goes back, Ctrl+C again leaves.`],
    options: [],
    freeText: 'What is to be different',
    leavesOnInterrupt: true,
    takesCommands: true,
  })
  if (answer.kind === 'text' && model.isRunning) await tellWritten(asking, { type: 'replan', text: answer.text })
}

/** What comes of a change for what runs, if anything does. */
function interrupts({ pane: { state } }: ScreenModel): string {
  const work = state && workOf(state)
  return work === null ? '' : `; the ${work} is interrupted then`
}

/** After a change of the plan: whether the work starts, or more is to be changed. Nobody who is typing is asked. */
export async function askToStart(asking: Asking, hasChanged: boolean): Promise<void> {
  const { model } = asking
  if (model.dialog !== null || model.composer.text.trim() !== '') return sayHeld(asking)
  const answer = await model.choose({
    title: hasChanged ? 'The plan was changed as shown above. Start?' : 'Nothing of the plan was changed. Start?',
    options: [{ id: 'start', label: 'Start', hint: 'the work goes on by this plan' }],
    freeText: 'Modify again …',
    whileHeld: true,
    takesCommands: true,
  })
  if (answer.kind === 'withdrawn' || !model.isRunning || model.pane.state?.pausedAt == null) return
  if (answer.kind === 'text') await tellWritten(asking, { type: 'replan', text: answer.text })
  else if (answer.kind === 'chosen') await tell(asking, { type: 'unpause' })
  else sayHeld(asking, answer)
}

/** Of a build, when its plan is made: whether it is carried out. Nobody who is typing is asked, nor answers something else. */
export async function askAboutNewPlan(asking: Asking): Promise<void> {
  const { model } = asking
  if (model.dialog !== null) return
  if (model.composer.text.trim() !== '') return sayHeld(asking)
  const tasks = model.pane.state?.build?.tasks.length ?? 0
  const answer = await model.choose({
    title: `The plan has ${formatCount(tasks, 'task')}. Start the build?`,
    options: [
      { id: 'start', label: 'Start the build' },
      { id: 'change', label: 'Change the plan' },
      { id: 'stop', label: 'Stop', hint: 'codemachine resume goes on from here' },
    ],
    whileHeld: true,
    takesCommands: true,
  })
  if (answer.kind === 'withdrawn' || !model.isRunning || model.pane.state?.pausedAt == null) return
  if (answer.kind !== 'chosen') return sayHeld(asking, answer)
  if (answer.id === 'start') await tell(asking, { type: 'unpause' })
  else if (answer.id === 'stop') await tell(asking, { type: 'stop', now: true })
  else await askForChange(asking)
}

async function askForChange(asking: Asking): Promise<void> {
  const { model } = asking
  const answer = await model.choose({
    title: 'What is to be different in the plan?',
    body: ['The agent that leads the team changes it, and you see the difference. Esc goes back.'],
    options: [],
    freeText: 'What is to be different',
    whileHeld: true,
    takesCommands: true,
  })
  if (answer.kind === 'text' && model.isRunning) await tellWritten(asking, { type: 'replan', text: answer.text })
  else if (answer.kind === 'closed' || answer.kind === 'left') await askAboutNewPlan(asking)
}

function sayHeld({ model }: Asking, answer?: Answer): void {
  const leaves = answer?.kind === 'left' ? ', Ctrl+C again leaves' : ''
  model.notice(`It is held; Esc offers how it goes on${leaves}`, 'warning')
}

/** Who asks, and whom. */
export interface Asking {
  model: ScreenModel
  host: ScreenHost
  clock: Clock
}

/** Tells the session something; whether it was taken. What came of it is said. */
export async function tell({ model, host }: Asking, ask: Ask): Promise<boolean> {
  const reply = await host.ask(ask)
  model.notice(reply.message, isTaken(reply) ? 'good' : 'warning')
  return isTaken(reply)
}

/** The same of what a person wrote: it stands in the composer again if it was not taken, whatever the reason. */
async function tellWritten(asking: Asking, ask: Extract<Ask, { text: string }>): Promise<boolean> {
  const { model, host } = asking
  host.remember(ask.text)
  let wasTaken = false
  try {
    wasTaken = await tell(asking, ask)
  } finally {
    if (!wasTaken) model.addText(ask.text)
  }
  return wasTaken
}

/** What a person asks of the session that is shown; whoever passes it on adds the time. */
export type Ask = Command extends infer Each ? (Each extends Command ? Omit<Each, 'at'> : never) : never

/** What the screen's keys and commands set going; the screen itself does nothing but draw. Every sentence is for the person. */
export interface ScreenHost {
  ask(ask: Ask): Promise<Reply>
  /** Enter on a text while a session is shown: it becomes the next one. Answers with a sentence. */
  enqueue(prompt: string): Promise<string>
  /** Takes the last prompt that waits out of the queue, after it has been put where it is kept; whether any waited. */
  takeBack(keep: (prompt: string) => void): Promise<boolean>
  /** Enter on a text while none is. */
  begin(goal: string): void
  /** `/name rest`. */
  command(name: string, rest: string): Promise<void>
  /** Opens the text in the person's editor, with the terminal; null: it stays as it was, which has been said. */
  edit(text: string): Promise<string | null>
  /** Opens the whole log of the session. */
  openLogs(): Promise<void>
  /** Stops the program as Ctrl+Z does, and comes back with `fg`. */
  suspend(): Promise<void>
  /** Ends what this screen runs so that it can be resumed, or only stops watching. */
  leave(): void
  /** The same, without waiting for anything. */
  leaveNow(): void
  /** A text was sent: kept for the next time. */
  remember(text: string): void
}

export interface SessionViewOptions extends Asking {
  /** What an answer has set going has failed with. */
  onFailure(error: unknown): void
}

/** A session on the screen: what happens in it is shown, and asks the person, or ends what they were asked. */
export class SessionView implements View {
  readonly #options: SessionViewOptions
  #hasBrokenOff = false

  constructor(options: SessionViewOptions) {
    this.#options = options
  }

  /** Whether a person is writing an answer, or was when the session ended. */
  get wasWriting(): boolean {
    return this.#hasBrokenOff || this.#isWriting
  }

  event(event: Recorded, state: SessionState): void {
    const { model, onFailure } = this.#options
    model.pane.event(event, state)
    // It has been answered elsewhere.
    const goesOn = event.type === 'unpaused' || event.type === 'session-resumed'
    const isOver = event.type === 'session-ended'
    if (isOver || event.type === 'round-started') this.#hasBrokenOff = isOver && this.#isWriting
    if (isOver || (goesOn && model.question?.whileHeld)) model.dismiss('withdrawn')
    if (event.type === 'replanned') askToStart(this.#options, event.files.length > 0).catch(onFailure)
    if (event.type === 'held' && isPlanShown(state)) askAboutNewPlan(this.#options).catch(onFailure)
    model.options.onChange()
  }

  /** @param at when it happened; Unix time, ms */
  live(event: LiveEvent, at = this.#options.clock.now()): void {
    const { model } = this.#options
    model.pane.live(event, at)
    model.options.onChange()
  }

  get #isWriting(): boolean {
    return this.#options.model.dialog?.writing === true
  }
}
