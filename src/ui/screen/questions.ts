import { workOf } from '../describe-pause.ts'
import { formatCount } from '../format-count.ts'
import { isPlanShown } from '../words-for-build.ts'
import type { Answer, Question } from './question.ts'
import type { ScreenModel } from './screen-model.ts'
import { type Asking, tell, tellWritten } from './tell.ts'

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
export async function askAboutPlan(asking: Asking): Promise<void> {
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
