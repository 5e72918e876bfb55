import type { Clock } from '../../../base/clock.ts'
import type { EventOf, Recorded } from '../../../core/events/events.ts'
import { answerIn, type Choice, GIVE_SECRET, type OpenDecision } from '../../../core/rules/decision.ts'
import { isTaken, type Reply } from '../../../core/shapes/reply.ts'
import { MOST_VALUE_BYTES, problemOfValue } from '../../../core/shapes/secrets.ts'
import { PLAN_CHOICES, PLAN_DECISION } from '../../../core/state/plan.ts'
import type { Ask } from '../../../project/library.ts'
import type { KeyActionId } from '../../../project/settings/keys.ts'
import type { AskedQuestion } from '../../../session/records/questions.ts'
import { decidedMeanwhile } from '../../../tell/words/decision.ts'
import { KEY_HINTS } from '../../../tell/words/names.ts'
import { agentLabel, agentOf } from '../../../tell/words/plan.ts'
import type { PickerOption } from '../composer/picker.ts'
import { isEmpty } from '../composer/text.ts'
import type { Answer, Question, ScreenModel } from './model.ts'

/**
 * Asks what a person is to decide; false if nothing is. Not asked while they are typing or have another question open; Esc
 * asks it then.
 */
export async function askDecision(context: QuestionContext): Promise<boolean> {
  const { model } = context
  const decision = openDecision(model)
  if (decision === null) return false
  if (model.dialog !== null) return true
  if (!model.isTyping) await offerChoices(context, decision)
  else {
    model.pane.printDecision()
    noticeHeld(context)
  }
  return true
}

/**
 * Takes what a person typed, such as `2` or `change leave out the cart`, as the answer to what is asked, once the file of
 * that choice was edited; where they typed nothing, asks. False if nothing is to be decided.
 */
export async function answerDecision(context: QuestionContext, typed: string): Promise<boolean> {
  const { model } = context
  const decision = openDecision(model)
  const answer = answerIn(typed, decision?.choices ?? [])
  if (answer === null) return await askDecision(context)
  const choice = decision?.choices.find(({ id }) => id === answer.choice)
  if (decision !== null && choice !== undefined && isSecretGiven(decision, choice)) {
    await askForSecret(context, decision, answer.text === undefined ? [] : [NEVER_BEHIND_COMMAND])
  } else if (decision === null || choice === undefined) await askAndNotify(context, { type: 'decide', ...answer })
  else if (await isFileEdited(context, decision, choice)) {
    if (isStillAsked(model, decision)) await askAndNotify(context, { ...askOf(model, decision), ...answer })
    else model.notice(decidedMeanwhile(fileEdited(decision, choice)), 'warning')
  }
  return true
}

async function offerChoices(context: QuestionContext, decision: OpenDecision): Promise<void> {
  const { model } = context
  if (!isStillAsked(model, decision)) return
  const { title, choices } = decision
  const answer = await model.choose({
    title,
    ...aboutDecision(model, decision),
    options: choices.map(choice => optionOf(decision, choice)),
    ...escOf(context),
    // A secret may begin with a slash, and is pasted too early.
    ...(decision.secret === undefined ? OF_DECISION : { ofDecision: true }),
  })
  if (!isStillAsked(model, decision)) return
  if (answer.kind === 'closed' && context.back !== undefined) return await context.back()
  if (answer.kind !== 'chosen') model.pane.printDecision()
  if (answer.kind === 'withdrawn') return
  const choice = choices.find(({ id }) => answer.kind === 'chosen' && id === answer.id)
  if (choice === undefined) return noticeHeld(context, answer)
  await choose(context, decision, choice)
}

/** A choice as an option. A digit takes the default, what asks further, and what is said of a plan, which can be changed later. */
function optionOf(decision: OpenDecision, choice: Choice): PickerOption {
  const { id, label, hint, text, opensFile } = choice
  const asksOn = text !== undefined || opensFile === true || isSecretGiven(decision, choice)
  const isSafe = asksOn || id === decision.default || decision.id === PLAN_DECISION
  return { id, label, ...(hint === undefined ? {} : { hint }), ...(isSafe ? {} : { confirms: true }) }
}

/** What the last line says of Esc in a question that was opened from a list. */
export function escOf({ back }: QuestionContext): { esc?: string } {
  return back === undefined ? {} : { esc: 'goes back to the list' }
}

/** What a question about a decision shows of it; a screen reader has read it, for there it is printed. */
function aboutDecision({ theme }: ScreenModel, { body }: OpenDecision): { markdown?: string } {
  return theme.symbols && body.trim() !== '' ? { markdown: body } : {}
}

const OF_DECISION = { takesCommands: true, ofDecision: true } as const

/** Whether the session is to be stopped by its decision; if not, it is asked anew. */
async function isStopMeant(context: QuestionContext, decision: OpenDecision): Promise<boolean> {
  const { model } = context
  const answer = await askOnceMore(model, stopNow(model), OF_DECISION)
  if (answer.kind === 'withdrawn' || !isStillAsked(model, decision)) return false
  if (answer.kind === 'chosen' && answer.id !== 'back') return true
  if (answer.kind === 'left') noticeHeld(context, answer)
  else await offerChoices(context, decision)
  return false
}

/** What ends a session, and is asked about once more. */
interface EndOfSession {
  title: string
  label: string
  hint: string
}

/** That the session stops. */
export function stopNow(model: ScreenModel): EndOfSession {
  return { title: 'Stop the session now?', label: 'Stop now', hint: resumeHint(model) }
}

/** Says how an ended session continues. */
export function resumeHint({ options }: ScreenModel): string {
  return options.isDemo ? 'a demo cannot be resumed' : 'codemachine resume continues from here'
}

/** Asks once more whether that is to be; any answer but `chosen` with another id than `back` means that it is not. */
export function askOnceMore(
  model: ScreenModel,
  { title, label, hint }: EndOfSession,
  terms: Partial<Question>,
): Promise<Answer> {
  const options = [
    { id: 'end', label, hint, confirms: true as const },
    { id: 'back', label: 'Back' },
  ]
  return model.choose({ title, options, esc: 'goes back', ...terms })
}

/** Takes a choice, once its file was edited and its text written; whoever goes back from there is asked again. */
async function choose(context: QuestionContext, decision: OpenDecision, choice: Choice): Promise<void> {
  const { model } = context
  if (isSecretGiven(decision, choice)) return await askForSecret(context, decision, [])
  if (!(await isFileEdited(context, decision, choice))) return await offerChoices(context, decision)
  if (!isStillAsked(model, decision)) return model.notice(decidedMeanwhile(fileEdited(decision, choice)), 'warning')
  const isStop = decision.id === PLAN_DECISION && choice.id === PLAN_CHOICES.stop
  if (isStop && !(await isStopMeant(context, decision))) return
  const ask = { ...askOf(model, decision), choice: choice.id }
  if (choice.text === undefined) return void (await askAndNotify(context, ask))
  const answer = await model.choose({
    title: choice.label,
    ...aboutDecision(model, decision),
    body: [...(choice.hint === undefined ? [] : [choice.hint]), 'Esc goes back.'],
    options: choice.text === 'may' ? [{ id: 'alone', label: 'Add nothing' }] : [],
    freeText: choice.text === 'may' ? 'Say …' : 'Add a comment',
    ...OF_DECISION,
  })
  if (answer.kind === 'withdrawn' || !isStillAsked(model, decision)) return
  if (answer.kind === 'text') await sendWritten(context, { ...ask, text: answer.text })
  else if (answer.kind === 'chosen') await askAndNotify(context, ask)
  else await offerChoices(context, decision)
}

const NEVER_BEHIND_COMMAND = 'Type the secret here. The text after the command was ignored.'
const NOTHING_SHOWN = 'Your typing is hidden. Enter confirms, Ctrl+U clears.'

/** Whether the choice is to give the secret that the decision is about. */
function isSecretGiven({ secret }: OpenDecision, { id }: Choice): boolean {
  return secret !== undefined && id === GIVE_SECRET
}

/** Takes the value of a secret in a field that shows nothing, stores it, and answers the decision; Esc goes back to the choices. */
async function askForSecret(
  context: QuestionContext,
  decision: OpenDecision,
  remarks: readonly string[],
): Promise<void> {
  const { model, host } = context
  const key = decision.secret?.key ?? ''
  const typed = await model.choose({
    title: `The value of ${key}`,
    body: [...remarks, NOTHING_SHOWN],
    options: [],
    freeText: key,
    ...aboutDecision(model, decision),
    hidden: { mostBytes: MOST_VALUE_BYTES, problemOf: problemOfValue },
    ofDecision: true,
  })
  if (typed.kind === 'withdrawn' || !isStillAsked(model, decision)) return
  if (typed.kind === 'left') return noticeHeld(context, typed)
  if (typed.kind !== 'text') return await offerChoices(context, decision)
  const warnings = host.warningsOfSecret(typed.text)
  if (warnings.length > 0) {
    const answer = await model.choose({
      title: `Use ${key}?`,
      body: warnings,
      options: [
        { id: 'again', label: 'Type another value' },
        { id: 'take', label: 'Use it' },
      ],
      ofDecision: true,
    })
    if (answer.kind === 'withdrawn' || !isStillAsked(model, decision)) return
    if (answer.kind === 'left') return noticeHeld(context, answer)
    if (answer.kind !== 'chosen' || answer.id !== 'take') return await askForSecret(context, decision, [])
  }
  const untold = await host.storeSecret(key, typed.text)
  if (untold !== null && model.options.isWatching) return model.notice(untold, 'warning')
  // Who was told of it has decided by that; the state of a session of another process is seen later.
  if (isStillAsked(model, decision) && !model.options.isWatching)
    await host.ask({ ...askOf(model, decision), choice: GIVE_SECRET })
  model.notice(`${key} is stored, and no model sees it`, 'good')
}

/** Whether the choice opens no file, or the person has had it in their editor. */
async function isFileEdited({ host }: QuestionContext, decision: OpenDecision, choice: Choice): Promise<boolean> {
  const file = fileEdited(decision, choice)
  return file === null || (await host.editFile(file))
}

/** The file that the choice opens; null: none. */
function fileEdited({ file }: OpenDecision, { opensFile }: Choice): string | null {
  return opensFile && file !== undefined ? file : null
}

function askOf({ pane }: ScreenModel, { id }: OpenDecision) {
  return { type: 'decide', session: pane.state?.id ?? '', decision: id } as const
}

/** What the session that is shown asks a person to decide; null if nothing. */
export function openDecision({ isRunning, pane: { state } }: ScreenModel): OpenDecision | null {
  return isRunning ? (state?.decision ?? null) : null
}

function isStillAsked(model: ScreenModel, { id, since }: OpenDecision): boolean {
  const open = openDecision(model)
  return open?.id === id && open.since === since
}

/** Says that the session is held, or waits for a decision, and how it goes on. */
export function noticeHeld({ model }: QuestionContext, answer?: Answer): void {
  const isDecision = openDecision(model) !== null
  const usual = model.options.isWatching ? ', Ctrl+C twice detaches' : ', Ctrl+C changes the plan, twice leaves'
  const again = isEmpty(model.composer.snapshot().buffer.text) ? 'again leaves' : 'clears the text'
  const leaves = answer?.kind === 'left' ? `, Ctrl+C ${again}` : isDecision ? usual : ''
  const how = isDecision ? `Your decision is waiting; ${KEY_HINTS.decide}` : `Paused; ${KEY_HINTS.goOn}`
  const isStill = () => model.isRunning && (isDecision || model.pane.state?.pausedAt != null)
  model.notice(`${how}${leaves}`, 'warning', isStill)
}

/** Sends a command to the session and shows its reply as a notice, which is printed where its row is too short; true if the command was taken. */
export async function askAndNotify({ model, host }: QuestionContext, ask: Ask): Promise<boolean> {
  const reply = await host.ask(ask)
  model.notice(asTypedHere(reply.message), isTaken(reply) ? 'good' : 'warning', 'whole')
  return isTaken(reply)
}

/** A reply with the commands that are typed here behind a slash as they are typed here. */
export function asTypedHere(message: string): string {
  return message.replace(/\bcodemachine (?=(?:unpause|retry|decide)\b)/g, '/')
}

/**
 * `/steer [agent] [text]` and `/stop-agent [agent]`: tells one of the agents that work for that of the round something, or
 * ends its turn. What is not typed is asked for.
 */
export async function reachAgent(context: QuestionContext, command: string, typed: string): Promise<void> {
  const { model } = context
  const [, named = '', behind = ''] = /^(\S+)\s*(.*)$/s.exec(typed.trim()) ?? []
  const isStop = command === 'stop-agent'
  const agent = named === '' ? await chooseAgent(model, isStop) : named
  if (agent === null) return
  if (isStop) return void (await askAndNotify(context, { type: 'stop-agent', agent }))
  const text = behind === '' ? await askWhatToSay(model, agent) : behind
  if (text !== null) await sendWritten(context, { type: 'steer-agent', agent, text }, `/${command} ${agent} ${text}`)
}

/** One of the agents at work, by its instance; null: none is, or none is chosen. */
async function chooseAgent(model: ScreenModel, isStop: boolean): Promise<string | null> {
  const state = model.isRunning ? model.pane.state : null
  if (state === null || state.agents.length === 0) {
    model.notice('No agent is at work now', 'warning')
    return null
  }
  const answer = await model.choose({
    title: isStop ? 'End which agent? The round continues.' : 'Tell which agent?',
    options: state.agents.map(({ instance, request }) => ({
      id: instance,
      label: agentLabel(instance, state),
      hint: request,
      ...(isStop ? { confirms: true as const } : {}),
    })),
    takesCommands: true,
  })
  return answer.kind === 'chosen' ? answer.id : null
}

async function askWhatToSay(model: ScreenModel, agent: string): Promise<string | null> {
  const title = `What is ${agentOf(agent)} to know?`
  const answer = await model.choose({ title, options: [], freeText: 'Say …', takesCommands: true })
  return answer.kind === 'text' ? answer.text : null
}

/**
 * Sends a command with a text of the person, which goes back into the composer if it was not taken or sending failed.
 * @param typed as it is remembered, and goes back
 */
export async function sendWritten(
  context: QuestionContext,
  ask: Ask & { text: string },
  typed = ask.text,
): Promise<boolean> {
  const { model, host } = context
  host.remember(typed)
  let wasTaken = false
  try {
    wasTaken = await askAndNotify(context, ask)
  } finally {
    if (!wasTaken) model.giveBack(typed)
  }
  return wasTaken
}

/** What a question needs: the screen to ask on, and the host that carries the answer out. */
export interface QuestionContext {
  model: ScreenModel
  host: ScreenHost
  clock: Clock
  /** Opens the list again that the question was opened from; left out: there is none. */
  back?: () => Promise<void>
}

/** The actions of the screen's keys and commands; the screen itself only draws. Returned sentences are shown to the person. */
export interface ScreenHost {
  ask(ask: Ask): Promise<Reply>
  /** A key was pressed in a question, which waits for the person from now on; true if this stopped a countdown. */
  attend(): boolean
  /** Enter on a text while a session is shown: queues it as the next one. Resolves to a sentence. */
  enqueue(prompt: string): Promise<string>
  /** Takes the last prompt out of the queue into the field; false if the queue is empty. */
  takeBack(): Promise<boolean>
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
  /** Offers everything that is possible now; `act` does what a key does. */
  openPalette(act: (action: KeyActionId) => void): Promise<void>
  /** Opens what changed, file by file. `typed`: what stands behind `/diff`; left out: since the session began. */
  openDiff(typed?: string): Promise<void>
  /** Opens what a change of the plan did, and the files of the plan as they are now, in the pager. */
  showPlanChange(files: EventOf<'replanned'>['files']): Promise<void>
  /** Told each event of the session that is shown. */
  happened(event: Recorded): void
  /** Answers a question of an agent; resolves with who reads it, and when, a sentence. A `UserError` if it cannot be answered any more. */
  answer(asked: AskedQuestion, answer: string): Promise<string>
  /** What is to be said of the value of a secret before it is taken, sentences without it. */
  warningsOfSecret(value: string): readonly string[]
  /** Stores the value of a secret of the project, and tells the session that runs; resolves with why that was not to be told, else null. */
  storeSecret(key: string, value: string): Promise<string | null>
  /** Suspends the program (Ctrl+Z); resolves after `fg`. */
  suspend(): Promise<void>
  /** Ends the session of this screen so that it can be resumed, or only stops watching it. */
  leave(): void
  /** Keeps what Enter does with a text while a session runs, for the next screens; says where, or why not. */
  keepEnter(enter: 'tell' | 'queue'): Promise<void>
  /** Leaves without waiting for the session to end. */
  leaveNow(): void
  /** Adds a sent text to the history. */
  remember(text: string): void
}
