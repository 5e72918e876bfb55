import type { SessionState } from '../../session/state.ts'
import { activityOf } from '../activity.ts'
import { boardNow } from '../build-board.ts'
import { cutLine } from '../cells.ts'
import type { Composer } from '../composer/composer.ts'
import { composerLines } from '../composer/composer-lines.ts'
import type { Picker } from '../composer/picker.ts'
import { pickerLines } from '../composer/picker-lines.ts'
import { popupLines } from '../composer/popup-lines.ts'
import { headerLines } from '../header/header-lines.ts'
import { progressLine } from '../header/progress-line.ts'
import { taskLines } from '../header/task-lines.ts'
import { windowTitle } from '../header/window-title.ts'
import { workLines } from '../live/work-lines.ts'
import { oneLine } from '../safe-text.ts'
import type { StartFacts } from '../start/start-facts.ts'
import { startLines } from '../start/start-lines.ts'
import type { TaskBoard } from '../task-board.ts'
import type { Role, Theme } from '../theme.ts'
import { hintLine } from './hint.ts'
import { type Frame, type Input, layOut } from './layout.ts'
import type { Question } from './question.ts'
import type { Scrollback } from './scrollback.ts'
import type { SessionPane } from './session-pane.ts'

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
