import type { KeyActionId, Keymap } from '../../../project/settings/keys.ts'
import { cutLine } from '../../../tell/words/cells.ts'
import { activityOf } from '../../../tell/words/outcome.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import { type Popup, takesText } from '../composer/completion.ts'
import { isToConfirm, removableOf } from '../composer/picker.ts'
import { fittingHints } from '../view/full-view.ts'
import type { ScreenModel } from './model.ts'

/** The last row of the screen, painted: a notice, or the keys that matter now; of the field alone only if `isRoomy`. Pure. */
export function hintOf(model: ScreenModel, columns: number, isRoomy: boolean): string | null {
  const { theme, composer, question, isLeaving, showsSession } = model
  const { search, popup } = composer.snapshot()
  const keys = () => hintLine(situationOf(model), columns)
  // While a question, a search or a popup is open, the hint names its keys.
  if (question !== null || search !== null || popup !== null) return theme.paint('dim', keys())
  const notice = isLeaving ? null : model.currentNotice
  if (notice !== null) return theme.paint(notice.role, cutLine(oneLine(notice.text, 500), columns))
  if (isLeaving && showsSession) return theme.paint('dim', cutLine('Stopping … · Ctrl+C again stops at once', columns))
  return isRoomy ? theme.paint('dim', keys()) : null
}

function situationOf(model: ScreenModel): HintSituation {
  const { composer, question, showsSession, isRunning, options, showsTasks } = model
  const { state } = model.pane
  const { search, popup } = composer.snapshot()
  return {
    keymap: options.keymap,
    isSession: showsSession,
    isRunning,
    isWatching: options.isWatching,
    isHeld: isRunning && state !== null && HELD.has(activityOf(state)),
    isDeciding: isRunning && state?.decision != null,
    canFollow: !showsSession && state?.ended != null && state.kind?.view?.followUp !== undefined,
    showsTasks: showsTasks && showsSession,
    text: composer.text,
    command: composer.commandIn(composer.snapshot().buffer)?.kind ?? null,
    tells: options.keymap.enter !== 'queue' && isRunning && !model.isOfQueue,
    isOfQueue: model.isOfQueue,
    isSearching: search !== null,
    popup,
    question,
    writes: typedAnswer(model),
    isCountdownStopped: model.isCountdownStopped,
    confirms: model.dialog !== null && isToConfirm(model.dialog),
    removes: model.dialog !== null && removableOf(model.dialog) !== null,
  }
}

const HELD: ReadonlySet<string> = new Set(['paused', 'deciding'])

function typedAnswer({ dialog, question, composer }: ScreenModel): 'text' | 'command' | null {
  if (dialog === null || !dialog.writing) return null
  return question?.takesCommands && composer.commandIn(dialog.written)?.kind === 'command' ? 'command' : 'text'
}

/** The situation that decides which keys the hint names. */
export interface HintSituation {
  keymap: Keymap
  isSession: boolean
  /** Whether that session has not ended. */
  isRunning: boolean
  isWatching: boolean
  /** Whether the session is held until the person says how to go on. */
  isHeld: boolean
  /** Whether it is held for a decision of the person. */
  isDeciding: boolean
  /** Whether the session that has ended here can be gone on from. */
  canFollow: boolean
  /** Whether the list of tasks is open. */
  showsTasks: boolean
  /** The text in the composer. */
  text: string
  /** What Enter takes it for: one of the commands, a command that does not exist, or (null) a text. */
  command: 'command' | 'unknown-command' | null
  /** Whether Enter tells the agent, and Tab queues. */
  tells: boolean
  /** Whether the text came from the queue; Enter puts it back there. */
  isOfQueue: boolean
  /** Whether the history is searched. */
  isSearching: boolean
  /** The options for the word at the caret, or null. */
  popup: Popup | null
  /** The open question, or null. */
  question: {
    options: readonly unknown[]
    esc?: string
    interruptHolds?: true
    leavesOnInterrupt?: true
    hidden?: unknown
  } | null
  /** What is being typed as its answer; null while options are chosen from. */
  writes: 'text' | 'command' | null
  /** Whether it would have been answered without the person, and waits for them now. */
  isCountdownStopped: boolean
  /** Whether a digit does not choose what is selected. */
  confirms: boolean
  /** Whether a key removes what is selected. */
  removes: boolean
}

/** The keys that matter now, as many as fit into one line, the most important first. */
export function hintLine(situation: HintSituation, columns: number): string {
  const hints = hintsFor({ ...situation, isNarrow: columns < NARROW })
  // From all commands each other key can be found.
  const last = situation.keymap.label('palette')
  return cutLine(fittingHints(hints, { columns, wayOut: 'Esc', last }).join(' · '), columns)
}

/** Below this width hints are said in fewer words. */
const NARROW = 68

/** A situation on a terminal of some width. */
type Placed = HintSituation & { isNarrow: boolean }

function hintsFor(situation: Placed): readonly string[] {
  const { isSession, isRunning, text, command, isSearching, popup, question } = situation
  if (question !== null) {
    const hints = hintsOfQuestion(question, situation)
    return situation.isCountdownStopped ? ['Countdown stopped', ...hints] : hints
  }
  if (isSearching) return ['Enter takes it', 'Esc goes back', ...named(situation.keymap, ['search', 'older'])]
  if (popup !== null) return hintsOfPopup(popup)
  if (command !== null)
    return [command === 'command' ? 'Enter runs it' : 'No command has that name', 'Ctrl+C clears it']
  if (text.trim() !== '') return hintsOfText(situation)
  if (!isSession) return hintsAtStart(situation)
  return isRunning ? hintsOfSession(situation) : hintsAfterEnd(situation)
}

function hintsOfQuestion(
  { options, esc = 'closes', interruptHolds, leavesOnInterrupt, hidden }: NonNullable<HintSituation['question']>,
  { writes, confirms, removes, keymap }: Placed,
): readonly string[] {
  if (hidden !== undefined) return ['Nothing is shown', 'Enter takes it', 'Esc goes back']
  const hold = interruptHolds ? ['Ctrl+C leaves it paused'] : []
  if (options.length > 0 && writes === null) {
    const enter = confirms ? 'Enter confirms' : 'A digit or Enter chooses'
    return [enter, `Esc ${esc}`, ...(removes ? named(keymap, ['remove', 'removes']) : []), ...hold, '↑ ↓ select']
  }
  const enter = writes === 'command' ? 'Enter runs it' : 'Enter sends it'
  const back = options.length > 0 ? 'Esc goes back to the choices' : 'Esc goes back'
  return [enter, back, ...(leavesOnInterrupt ? ['Ctrl+C leaves'] : hold)]
}

function hintsOfPopup(popup: Popup): readonly string[] {
  if (popup.kind === 'files') return ['Enter inserts the path', '↑ ↓ choose', 'Esc closes']
  const name = popup.options[popup.selected]?.name ?? popup.typed
  return [
    takesText(popup) ? `Enter puts /${name} in, then type its text` : `Enter runs /${name}`,
    'Tab completes it',
    'Esc closes',
    '↑ ↓ choose',
  ]
}

/** With a text in the field: what becomes of it. */
function hintsOfText({
  isSession,
  isRunning,
  canFollow,
  tells,
  isOfQueue,
  isNarrow,
  keymap,
}: Placed): readonly string[] {
  const more = ['Ctrl+C clears it', 'Alt+Enter new line', '@ files', ...named(keymap, ['editor', 'editor'])]
  if (canFollow) return ['Enter starts a new session', '/follow … continues the change', ...more]
  if (!isSession) return ['Enter starts it', ...more]
  const queues = isNarrow ? 'queues it' : 'queues it as the next session'
  if (!isRunning || (isOfQueue && keymap.enter !== 'queue')) return [`Enter ${queues}`, ...more]
  const tell = `tells the agent${isNarrow ? '' : ' now'}`
  const key = keymap.label('tell')
  const [enter, tab] = tells
    ? [keymap.enter === null ? `asks${isNarrow ? '' : ': tell or queue'}` : tell, queues]
    : [queues, tell]
  return [`Enter ${enter}`, ...(key === '' ? [] : [`${key} ${tab}`]), ...more]
}

function hintsAtStart({ canFollow, keymap }: HintSituation): readonly string[] {
  const first = canFollow
    ? ['/follow … continues this change', '/ commands', 'or type a new goal']
    : ['Type a goal', '/ commands']
  return [
    ...first,
    ...named(keymap, ['help', 'keys']),
    '@ files',
    ...named(keymap, ['palette', 'all commands']),
    '↑ history',
    'Ctrl+C twice leaves',
  ]
}

function hintsOfSession(situation: HintSituation): readonly string[] {
  const { isWatching, isHeld, isDeciding, showsTasks, keymap } = situation
  const leave = isWatching ? 'Ctrl+C twice detaches' : 'Ctrl+C plan'
  const esc = showsTasks
    ? 'Esc closes the tasks'
    : isDeciding
      ? 'Esc shows the question'
      : isHeld
        ? 'Esc shows the choices'
        : 'Esc interrupts'
  return [
    esc,
    leave,
    ...named(keymap, ['help', 'keys'], ['log', 'log'], ['palette', 'all commands'], ['tasks', 'tasks']),
    ...(isWatching ? [] : ['Ctrl+C twice leaves']),
    ...named(keymap, ['diff', 'changes'], ['output', 'output']),
  ]
}

/** A session has ended, and another may come. */
function hintsAfterEnd({ keymap }: HintSituation): readonly string[] {
  return [
    'Type the goal of the next session',
    ...named(keymap, ['help', 'keys'], ['log', 'log'], ['palette', 'all commands'], ['diff', 'changes']),
    'Ctrl+C twice leaves',
  ]
}

/** Keys with what they lead to; of an action without a key nothing. */
function named(keymap: Keymap, ...actions: readonly (readonly [KeyActionId, string])[]): string[] {
  return actions.flatMap(([id, what]) => (keymap.label(id) === '' ? [] : [`${keymap.label(id)} ${what}`]))
}
