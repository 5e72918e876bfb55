import type { EventOf, LiveEvent, Recorded } from '../../../core/events/events.ts'
import { isTaken } from '../../../core/shapes/reply.ts'
import type { SessionState, View } from '../../../core/state/state.ts'
import { workOf } from '../../../tell/words/event.ts'
import { formatCount } from '../../../tell/words/numbers.ts'
import {
  askAndNotify,
  askDecision,
  askOnceMore,
  asTypedHere,
  noticeHeld,
  type QuestionContext,
  resumeHint,
  sendWritten,
  stopNow,
} from './dialogs.ts'
import type { Question, ScreenModel } from './model.ts'

const WHILE_HELD = { whileHeld: true, takesCommands: true } as const

/** Esc: interrupts the turn, and asks how it goes on. */
export async function askAfterInterrupt(context: QuestionContext): Promise<void> {
  const { model } = context
  if (await askDecision(context)) return
  const { id: session, pausedAt, running, checking } = model.pane.state ?? {}
  const isInterrupt = pausedAt == null || running != null
  if (isInterrupt && !(await askAndNotify(context, { type: 'interrupt' }))) return
  if (!model.isRunning || model.pane.state?.id !== session) return
  const held = isInterrupt ? (checking == null ? 'round' : 'check') : null
  await askHowItGoesOn(context, held)
}

/** What Esc has interrupted: a round, or a check (a gate, a review); null: the session was held before. */
type Held = 'round' | 'check' | null

async function askHowItGoesOn(context: QuestionContext, held: Held): Promise<void> {
  const { model } = context
  const answer = await model.choose(heldQuestion(model, held))
  // Of a session of another process, the hold may be seen later than the answer.
  if (answer.kind === 'withdrawn' || !model.isRunning) return
  // A session that was held before stays held unless it is told to go on.
  if (answer.kind === 'left' || (answer.kind === 'closed' && held === null)) return noticeHeld(context, answer)
  if (answer.kind === 'text' && !(await sendWritten(context, { type: 'steer', text: answer.text }))) return
  const way = answer.kind === 'chosen' ? answer.id : 'go-on'
  // Whoever thinks better of it is asked anew how it goes on.
  if ((await continueAs(context, way)) === 'back' && model.isRunning) await askHowItGoesOn(context, held)
}

function heldQuestion(model: ScreenModel, held: Held): Question {
  const hint = { round: 'Esc; the next round is told of this', check: 'Esc; it runs again' }
  return {
    title: held !== null ? 'Interrupted. What next?' : 'Paused. What next?',
    options: [
      { id: 'go-on', label: 'Continue', hint: held === null ? '' : hint[held] },
      ...(model.pane.state?.waiting == null ? [] : [{ id: 'retry', label: 'Retry now' }]),
      { id: 'plan', label: 'Change the plan …' },
      { id: 'stop', label: 'Stop …', hint: resumeHint(model) },
      ...(model.queued === 0
        ? []
        : [
            {
              id: 'skip',
              label: 'Skip to the next in the queue …',
              hint: `${formatCount(model.queued, 'prompt')} waiting`,
            },
          ]),
    ],
    freeText: 'Tell it something …',
    freeTextAt: model.pane.state?.waiting == null ? 1 : 2,
    ...WHILE_HELD,
    ...(held === null ? { esc: 'leaves it paused' } : { esc: 'continues', interruptHolds: true }),
  }
}

/** Does it, once what ends the session is asked about again; `back`: the person thought better of it. */
async function continueAs(context: QuestionContext, how: string): Promise<'done' | 'back'> {
  if (how === 'plan') return await changePlan(context, { isHeld: true })
  if (how === 'stop' || how === 'skip') return await endIt(context, how)
  await askAndNotify(context, { type: 'unpause' })
  if (how === 'retry') await askAndNotify(context, { type: 'retry' })
  return 'done'
}

/** Does what ends the session, once it was asked about again; `back`: the person thought better of it. */
async function endIt(context: QuestionContext, how: 'stop' | 'skip'): Promise<'done' | 'back'> {
  const { model } = context
  const answer = await askOnceMore(model, how === 'stop' ? stopNow(model) : skipNow(model), WHILE_HELD)
  if (answer.kind === 'withdrawn' || !model.isRunning) return 'done'
  if (answer.kind !== 'chosen' || answer.id === 'back') return backOrHeld(context, answer.kind)
  await askAndNotify(context, how === 'stop' ? { type: 'stop', now: true } : { type: 'skip' })
  return 'done'
}

function skipNow(model: ScreenModel) {
  return { title: 'End this session and start the next in the queue?', label: 'Skip', hint: resumeHint(model) }
}

/** `/skip`: goes on with the next in the queue, once that was asked about. */
export async function askToSkip(context: QuestionContext): Promise<void> {
  const { model } = context
  const answer = await askOnceMore(model, skipNow(model), { takesCommands: true })
  if (answer.kind === 'chosen' && answer.id !== 'back' && model.isRunning) await askAndNotify(context, { type: 'skip' })
}

/** Ctrl+C means to get out of the questions, and not back to the one before. */
function backOrHeld(context: QuestionContext, kind: string): 'done' | 'back' {
  if (kind !== 'left') return 'back'
  if (context.model.pane.state?.pausedAt != null) noticeHeld(context, { kind: 'left' })
  return 'done'
}

/** Ctrl+D where a session of this screen runs: asks what becomes of that, for it ends with the screen. */
export async function askToLeave(context: QuestionContext): Promise<void> {
  const { model, host } = context
  const answer = await model.choose({
    title: 'Leave? The session ends with this screen.',
    options: [
      { id: 'leave', label: 'Leave now', hint: resumeHint(model), confirms: true },
      { id: 'after-round', label: 'Stop after this round', confirms: true },
      ...(model.options.isDemo
        ? []
        : [{ id: 'detach', label: 'Leave it running', hint: 'codemachine attach shows it again' }]),
      { id: 'back', label: 'Back' },
    ],
    leavesOnInterrupt: true,
    takesCommands: true,
  })
  if (answer.kind !== 'chosen' || !model.isRunning) return
  if (answer.id === 'leave') host.leave()
  else if (answer.id === 'after-round') await askAndNotify(context, { type: 'stop', now: false })
  else if (answer.id === 'detach') await host.command('detach', '')
}

/** Ctrl+C: asks how to change the plan, and has it changed. The work goes on until the answer is given. */
export async function askAboutPlan(context: QuestionContext): Promise<void> {
  await changePlan(context, { isHeld: false })
}

async function changePlan(context: QuestionContext, { isHeld }: { isHeld: boolean }): Promise<'done' | 'back'> {
  const { model } = context
  const leaves = isHeld ? '' : ', Ctrl+C again leaves'
  const answer = await model.choose({
    title: 'Do you want to modify the plan?',
    body: [`Say what should change${interruptClause(model)}.${whatFollows(model)} Esc goes back${leaves}.`],
    options: [],
    freeText: 'What should change?',
    takesCommands: true,
    ...(isHeld ? {} : { leavesOnInterrupt: true }),
  })
  if (answer.kind === 'text' && model.isRunning) await sendWritten(context, { type: 'replan', text: answer.text })
  return answer.kind === 'closed' || answer.kind === 'left' ? backOrHeld(context, answer.kind) : 'done'
}

/** What becomes of a plan that the template itself makes anew; empty if a round changes its files. */
function whatFollows({ pane: { state } }: ScreenModel): string {
  if (state?.kind?.replansItself !== true) return ''
  return ' The planner writes a new version; done tasks stay.'
}

/** The clause that says what a plan change interrupts; empty if nothing runs. */
function interruptClause({ pane: { state } }: ScreenModel): string {
  const work = state && workOf(state)
  return work === null ? '' : `; this interrupts the ${work}`
}

/**
 * After a plan change: asks whether to start, to change more, or to put the old plan back. Not asked while the person is typing.
 * @param remark what is said first: why the old plan was not put back
 */
export async function askToStart(context: QuestionContext, change: PlanChanged, remark?: string): Promise<void> {
  const { model, host } = context
  if (model.dialog !== null || model.isTyping) return noticeHeld(context)
  const answer = await model.choose(startQuestion(change, remark))
  if (answer.kind === 'withdrawn' || !model.isRunning || model.pane.state?.pausedAt == null) return
  if (answer.kind === 'text') return void (await sendWritten(context, { type: 'replan', text: answer.text }))
  if (answer.kind !== 'chosen') return noticeHeld(context, answer)
  if (answer.id === 'start') return void (await askAndNotify(context, { type: 'unpause' }))
  if (answer.id === 'see') await host.showPlanChange(change.files)
  const refusal = answer.id === 'see' ? undefined : await putPlanBack(context)
  // Once it is back that is journaled, and asked about anew.
  if (refusal !== null && model.isRunning && model.pane.state?.pausedAt != null)
    await askToStart(context, change, refusal)
}

type PlanChanged = Pick<EventOf<'replanned'>, 'files' | 'kept' | 'putBack'>

/** Puts the old plan back; resolves with why not, null: it is back. */
async function putPlanBack({ model, host }: QuestionContext): Promise<string | null> {
  const reply = await host.ask({ type: 'put-plan-back' })
  model.notice(asTypedHere(reply.message), isTaken(reply) ? 'good' : 'warning')
  return isTaken(reply) ? null : reply.message
}

function startQuestion({ files, kept, putBack }: PlanChanged, remark: string | undefined): Question {
  const changed = putBack ? 'The old plan is back. Start?' : 'The plan was changed as shown above. Start?'
  return {
    title: files.length > 0 ? changed : 'The plan did not change. Start?',
    ...(remark === undefined ? {} : { body: [remark] }),
    options: [
      { id: 'start', label: 'Start', hint: 'work continues with this plan' },
      ...(kept
        ? [{ id: 'put-back', label: 'Restore the old plan', hint: 'from before this change', confirms: true as const }]
        : []),
      ...(files.length > 0 ? [{ id: 'see', label: 'Show the files' }] : []),
    ],
    freeText: 'Change again …',
    freeTextAt: 1,
    esc: 'leaves it paused',
    ...WHILE_HELD,
  }
}

/** Shows a session's events on the screen, and opens and withdraws the questions that follow from them. */
export class SessionView implements View {
  readonly #options: SessionViewOptions
  #hasBrokenOff = false

  constructor(options: SessionViewOptions) {
    this.#options = options
  }

  /** Whether the person is typing an answer, or was when the session ended; also one that was taken back, up to Enter. */
  get wasWriting(): boolean {
    return this.#hasBrokenOff || this.#isWriting || this.#options.model.takesRest
  }

  event(event: Recorded, state: SessionState): void {
    const { model, host, onFailure } = this.#options
    host.happened(event)
    model.pane.event(event, state)
    // The question may have been answered in another process.
    const goesOn = event.type === 'unpaused' || event.type === 'session-resumed'
    const isOver = event.type === 'session-ended'
    if (isOver || event.type === 'round-started') this.#hasBrokenOff = isOver && this.#isWriting
    if ((isOver && !model.takesRest) || (goesOn && model.question?.whileHeld)) model.dismiss('withdrawn')
    // One that is asked about its plan is asked anew.
    if (event.type === 'replanned' && state.pausedAt !== null) askToStart(this.#options, event).catch(onFailure)
    if (state.decision === null && model.question?.ofDecision) model.dismiss('withdrawn')
    if (event.type === 'decision-asked' && event.until > event.at) askDecision(this.#options).catch(onFailure)
    model.options.onChange()
  }

  /** @param at Unix time, ms */
  live(event: LiveEvent, at = this.#options.clock.now()): void {
    const { model } = this.#options
    model.pane.live(event, at)
    model.options.onChange()
  }

  get #isWriting(): boolean {
    return this.#options.model.dialog?.writing === true
  }
}

interface SessionViewOptions extends QuestionContext {
  /** Called with the error of an action that an answer has started. */
  onFailure(error: unknown): void
}
