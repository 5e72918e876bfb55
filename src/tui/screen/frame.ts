import type { StartFacts } from '../../app/login.ts'
import type { TaskBoard } from '../../core/state/plan.ts'
import type { SessionState } from '../../core/state/state.ts'
import { cutLine, oneLine, widthOf } from '../../words/cells.ts'
import { activityOf } from '../../words/outcome.ts'
import { boardNow } from '../../words/plan.ts'
import type { Composer } from '../composer/composer.ts'
import { composerLines, popupLines } from '../composer/drawing.ts'
import { type Picker, pickerLines } from '../composer/picker.ts'
import { headerLines, windowTitle } from '../header/header.ts'
import { progressLine, taskLines } from '../header/tasks.ts'
import { workLines } from '../live.ts'
import { startLines } from '../start.ts'
import type { Role, Theme } from '../terminal/theme.ts'
import type { Question, Scrollback, SessionPane } from './session-pane.ts'

/** All that is drawn of a screen. */
export interface ShownScreen {
  readonly options: { readonly isWatching: boolean }
  readonly theme: Theme
  readonly composer: Composer
  readonly pane: SessionPane
  readonly scrollback: Scrollback
  readonly question: Question | null
  /** The answer to the question. */
  readonly dialog: Picker | null
  readonly facts: StartFacts | null
  readonly board: TaskBoard | null
  readonly queued: number
  /** The session, or the start screen. */
  readonly showsSession: boolean
  readonly showsTasks: boolean
  readonly isRunning: boolean
  readonly isLeaving: boolean
  readonly currentNotice: Notice | null
}

/** Something that is said for a while; `until`: monotonic time, ms. */
export interface Notice {
  text: string
  role: Role
  until: number
}

/** The terminal, and the moment: Unix time, ms. */
interface Place {
  columns: number
  rows: number
  now: number
}

/** What the screen shows, as the rows that are drawn of it. Changes nothing. */
export function drawScreen(model: ShownScreen, place: Place): Frame {
  return model.theme.symbols ? drawn(model, place) : spoken(model, place)
}

/** What the terminal's window is called. */
export function titleOf(model: ShownScreen, now: number): string {
  const { state, items } = model.pane
  if (!model.showsSession || state === null) return 'codemachine'
  return windowTitle({ state, board: boardOf(model, state), live: items }, { symbols: model.theme.symbols, now })
}

function drawn(model: ShownScreen, { columns, rows, now }: Place): Frame {
  const { theme, facts, queued, showsSession, scrollback } = model
  const { state, items } = model.pane
  const session = showsSession ? state : null
  const board = boardOf(model, session)
  return layOut(
    {
      main: most => {
        if (session !== null) return underBlank(workLines(session, items, { columns, rows: most - 1, theme, now }))
        if (facts === null || showsSession) return []
        const space = !scrollback.hasLines || most < ROWS_FOR_START ? [] : ['']
        return [...space, ...startLines(facts, { columns, rows: most - space.length, theme, now })]
      },
      panel: panelOf(model, columns),
      progress: () => session && board && progressLine({ state: session, board }, { columns, theme, now }),
      header: most =>
        session === null
          ? starting(model)
          : headerLines(
              { state: session, board, live: items, queued },
              { columns, rows: most >= 2 ? 2 : 1, theme, now },
            ),
      input: { isDialog: model.dialog !== null, draw: most => inputOf(model, columns, most) },
      hint: () => hintOf(model, columns),
    },
    rows,
  )
}

/** For a screen reader: where something is typed, and nothing that changes by itself. */
function spoken(model: ShownScreen, { columns, rows }: Place): Frame {
  const input = inputOf(model, columns, Math.max(1, rows - 2))
  const popup = panelOf(model, columns)?.(rows - 2 - input.lines.length) ?? []
  return {
    lines: [...popup, ...input.lines],
    caret: input.caret && { x: input.caret.x, y: popup.length + input.caret.y },
  }
}

function boardOf(model: ShownScreen, state: SessionState | null): TaskBoard | null {
  return state === null ? model.board : boardNow(model.board, state)
}

function starting({ showsSession, theme }: ShownScreen): string[] {
  return showsSession ? [theme.paint('dim', theme.symbols ? 'starting …' : 'starting')] : []
}

/** What is printed above ends without a blank line. */
function underBlank(lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? lines : ['', ...lines]
}

/** What the start screen takes at the most, as a rule. */
const ROWS_FOR_START = 16
/** Rows of a popup. */
const MOST_OFFERED = 10

function panelOf(model: ShownScreen, columns: number): ((rows: number) => readonly string[]) | null {
  const { theme } = model
  const snapshot = model.composer.snapshot()
  if (model.dialog === null && snapshot.popup !== null) {
    return rows => popupLines(snapshot, { columns, maxRows: Math.min(rows, MOST_OFFERED), theme })
  }
  const { state } = model.pane
  if (!model.showsTasks || !model.showsSession || state === null) return null
  return rows => taskLines({ plan: state.plan, board: boardOf(model, state) }, { columns, rows, theme })
}

function inputOf({ dialog, composer, theme }: ShownScreen, columns: number, maxRows: number): Input {
  const place = { columns, maxRows, theme }
  return dialog === null ? composerLines(composer.snapshot(), place) : pickerLines(dialog, place)
}

function writtenIn({ dialog, question, composer }: ShownScreen): 'text' | 'command' | null {
  if (dialog === null || !dialog.writing) return null
  return question?.takesCommands && composer.commandIn(dialog.written)?.kind === 'command' ? 'command' : 'text'
}

function hintOf(model: ShownScreen, columns: number): string {
  const { theme, composer, question, showsSession, isRunning, isLeaving } = model
  const { state } = model.pane
  const { search, popup } = composer.snapshot()
  const keys = () =>
    hintLine(
      {
        isSession: showsSession,
        isBuild: isRunning && state?.build != null,
        isWatching: model.options.isWatching,
        isHeld: isRunning && state !== null && activityOf(state) === 'paused',
        text: composer.text,
        isSearching: search !== null,
        question,
        writes: writtenIn(model),
      },
      columns,
    )
  // What is open wants to be told how it is answered.
  if (question !== null || search !== null || popup !== null) return theme.paint('dim', keys())
  const notice = isLeaving ? null : model.currentNotice
  if (notice !== null) return theme.paint(notice.role, cutLine(oneLine(notice.text, 500), columns))
  const isEnding = isLeaving && showsSession
  return theme.paint('dim', isEnding ? cutLine('Ending what runs; Ctrl+C again ends it at once', columns) : keys())
}

/** What decides which keys are worth telling of. */
export interface HintPlace {
  isSession: boolean
  isWatching: boolean
  /** Whether a team of agents builds. */
  isBuild?: boolean
  /** Whether it is held until the person says how it goes on. */
  isHeld?: boolean
  /** What stands in the composer. */
  text: string
  /** Whether what was sent before is searched. */
  isSearching: boolean
  /** The question that is open. */
  question: { options: readonly unknown[]; escGoesOn?: true; leavesOnInterrupt?: true } | null
  /** What is being written as its answer. */
  writes?: 'text' | 'command' | null
}

/** The keys that matter now, in as many words as fit into one line; the last way of saying it is the shortest. */
export function hintLine(place: HintPlace, columns: number): string {
  const ways = waysToSay(place)
  return ways.find(way => widthOf(way) <= columns) ?? cutLine(ways.at(-1) ?? '', columns)
}

function waysToSay(place: HintPlace): string[] {
  const { isSession, isBuild, text, isSearching, question } = place
  if (question !== null) return waysToAnswer(question, place.writes ?? null)
  if (isSearching) return ['Ctrl+R older · Enter takes it · Esc goes back', 'Enter takes it']
  if (text.startsWith('/')) return ['Enter runs it · Tab completes · Esc closes', 'Enter runs it']
  const hasText = text.trim() !== ''
  if (!isSession) return waysToStart(hasText)
  if (hasText) {
    return [
      'Enter queues it as the next session · Tab tells the agent now · Alt+Enter new line',
      'Enter queues it · Tab tells the agent',
      'Enter queue · Tab tell',
    ]
  }
  return isBuild ? waysInBuild(place) : waysInSession(place)
}

function waysToAnswer(
  { options, escGoesOn, leavesOnInterrupt }: NonNullable<HintPlace['question']>,
  writes: HintPlace['writes'],
): string[] {
  const hold = escGoesOn ? ' · Ctrl+C leaves it held' : ''
  if (options.length > 0 && writes === null) {
    const esc = escGoesOn ? 'Esc goes on' : 'Esc closes'
    return [`↑ ↓ and Enter choose · ${esc}${hold}`, `↑ ↓ and Enter choose · ${esc}`, `Enter chooses · ${esc}`]
  }
  const enter = writes === 'command' ? 'Enter runs it' : 'Enter sends it'
  const esc = options.length > 0 ? 'Esc goes back to the choices' : 'Esc goes back'
  const leave = leavesOnInterrupt ? ' · Ctrl+C leaves' : hold
  return [`${enter} · ${esc}${leave}`, `${enter} · Esc goes back`, 'Enter · Esc back']
}

function waysToStart(hasText: boolean): string[] {
  return hasText
    ? ['Enter starts it · Alt+Enter new line · @ files · Ctrl+G editor', 'Enter starts it · @ files', 'Enter starts it']
    : [
        'Type what to work on · / commands · @ files · ↑ history · ? keys · Ctrl+C twice leaves',
        'Type what to work on · / commands · @ files · ? keys',
        '/ commands · ? keys',
      ]
}

function waysInBuild({ isWatching, isHeld }: HintPlace): string[] {
  const first = isHeld ? 'Ctrl+C: Change the plan | Esc: How it goes on' : 'Ctrl+C: Interrupt'
  const pause = isHeld ? '' : ' | Esc: Pause'
  // Who only watches is to see how that ends, before what may frighten.
  if (isWatching) {
    return [
      `${first} | Ctrl+C twice: Detach | Ctrl+E: Expand logs | Ctrl+T: Tasks${pause} | ?: Keys`,
      `${first} | Ctrl+C twice: Detach | Ctrl+E: Expand logs${pause}`,
      `${first} | Ctrl+C twice: Detach`,
      'Ctrl+C twice: Detach | Ctrl+E: Logs',
    ]
  }
  return [
    `${first} | Ctrl+E: Expand logs | Ctrl+T: Tasks${pause} | ?: Keys`,
    `${first} | Ctrl+E: Expand logs | ?: Keys`,
    isHeld ? 'Ctrl+C: Plan | Esc: How it goes on' : `${first} | Ctrl+E: Expand logs`,
  ]
}

function waysInSession({ isWatching, isHeld }: HintPlace): string[] {
  const leave = isWatching ? 'Ctrl+C twice detaches' : 'Ctrl+C plan, twice leaves'
  if (isHeld) {
    return [
      `Esc offers how it goes on · ${leave} · Ctrl+E logs · Ctrl+T tasks · Ctrl+O output · ? keys`,
      `Esc offers how it goes on · ${isWatching ? leave : 'Ctrl+C plan'} · ? keys`,
      'Esc: how it goes on · ^E logs · ? keys',
    ]
  }
  return [
    `Esc interrupts · ${leave} · Ctrl+E logs · Ctrl+T tasks · Ctrl+O output · ? keys`,
    'Esc interrupt · Ctrl+C plan · Ctrl+E logs · ? keys',
    'Esc interrupt · ^E logs · ? keys',
  ]
}

/** The rows that change in place at the bottom of the terminal, and the cell of the caret among them. */
export interface Frame {
  /** Each at most as wide as the terminal. */
  lines: readonly string[]
  caret: { x: number; y: number } | null
}

/** Lines in which a person types. */
interface Input {
  lines: readonly string[]
  caret: { x: number; y: number } | null
}

/** The parts of a frame, from top to bottom; each draws at most the rows it is given. */
export interface Parts {
  /** What happens just now, or the start screen; takes what the others leave. */
  main(rows: number): readonly string[]
  /** What was opened above the composer; null if nothing is. */
  panel: ((rows: number) => readonly string[]) | null
  progress(): string | null
  header(rows: number): readonly string[]
  /** `isDialog`: it may be as high as the frame. */
  input: { isDialog: boolean; draw(rows: number): Input }
  hint(): string | null
}

/** Below these heights of a frame, parts are left out or drawn smaller. */
const ROWS_FOR_HINT = 6
const ROWS_FOR_TWO_HEADER_LINES = 14
const ROWS_FOR_PROGRESS = 18
const ROWS_FOR_SPACE = 14

/**
 * Shares the rows of a frame among its parts. It stays below the height of the terminal, so that nothing of it is ever
 * scrolled away and left behind. Pure.
 */
export function layOut(parts: Parts, terminalRows: number): Frame {
  const rows = Math.max(1, terminalRows - 1)
  const header = parts.header(rows >= ROWS_FOR_TWO_HEADER_LINES ? 2 : 1).slice(0, rows >= 3 ? 2 : 0)
  const hint = rows >= ROWS_FOR_HINT ? parts.hint() : null
  const fixed = header.length + (hint === null ? 0 : 1)
  const forInput = parts.input.isDialog ? rows - fixed : Math.min(rows - fixed, Math.floor(rows / 3))
  const input = parts.input.draw(Math.max(1, forInput))
  let left = Math.max(0, rows - fixed - input.lines.length)
  const progress = rows >= ROWS_FOR_PROGRESS && left > 0 ? parts.progress() : null
  if (progress !== null) left -= 1
  const panel = parts.panel === null ? [] : parts.panel(Math.min(left, Math.ceil((left * 2) / 3))).slice(0, left)
  left -= panel.length
  const space = rows >= ROWS_FOR_SPACE && left > 2 && header.length > 0 ? 1 : 0
  const main = parts.main(left - space).slice(0, left - space)
  const above = [...main, ...(space ? [''] : []), ...panel, ...(progress === null ? [] : [progress])]
  const top = above.length + header.length
  return {
    lines: [...above, ...header, ...input.lines, ...(hint === null ? [] : [hint])],
    caret: input.caret && { x: input.caret.x, y: top + input.caret.y },
  }
}

/**
 * A frame of at least so many rows: what is typed in stays in its place where there is less to show above it than there
 * was before.
 */
export function atLeastAsHigh(frame: Frame, rows: number): Frame {
  const { lines, caret } = frame
  const missing = rows - lines.length
  if (missing <= 0) return frame
  const blank = Array.from({ length: missing }, () => '')
  return { lines: [...blank, ...lines], caret: caret && { x: caret.x, y: caret.y + missing } }
}

/** Whether two frames look the same. */
export function isSame(a: Frame, b: Frame): boolean {
  if (a.caret?.x !== b.caret?.x || a.caret?.y !== b.caret?.y || a.lines.length !== b.lines.length) return false
  return a.lines.every((line, at) => line === b.lines[at])
}
