import { cutLine } from '../../../tell/words/cells.ts'
import { wordsForContract } from '../../../tell/words/contract.ts'
import { titleLine } from '../../../tell/words/safe-text.ts'
import { type Area, composerLines, type DrawnField, popupLines } from '../composer/drawing.ts'
import { pickerLines } from '../composer/picker.ts'
import { statusLineOf, windowTitle } from '../header/header.ts'
import { taskLines } from '../header/tasks.ts'
import { workLines } from '../live.ts'
import { startLines } from '../start.ts'
import { askedLines } from './asked.ts'
import { hintOf } from './hints.ts'
import type { ScreenModel } from './model.ts'

/** The frame of the screen at the terminal's present size; for a screen reader only the input. @param now Unix time, ms */
export function drawScreen(model: ScreenModel, now: number): Frame {
  const { columns, rows } = model.options.size()
  model.composer.resize(columns)
  return model.theme.symbols
    ? layOut(partsOf(model, { columns, now }), rows)
    : inputFrame(model, { columns, rows, now })
}

/** The title of the terminal's window. `now`: Unix time, ms. */
export function screenTitle(model: ScreenModel, now: number): string {
  const { state, items } = model.pane
  if (!model.showsSession || state === null) return 'codemachine'
  return windowTitle({ state, board: model.work.tasks, live: items }, { symbols: model.theme.symbols, now })
}

/** The area that the input may take at the terminal's present size. @param now Unix time, ms */
export function areaOfInput(model: ScreenModel, now: number): Area {
  const { columns, rows } = model.options.size()
  const { theme } = model
  const maxRows = theme.symbols ? shareOut(partsOf(model, { columns, now }), rows).forInput : Math.max(1, rows - 2)
  return { columns, maxRows, theme }
}

function partsOf(model: ScreenModel, { columns, now }: { columns: number; now: number }): FrameParts {
  const { theme, facts, queued, showsSession, scrollback, pane } = model
  const { state, items } = pane
  const session = showsSession ? state : null
  const { tasks: board, own } = model.work
  const agentsKey = model.options.keymap.label('agents')
  const queue = showsSession ? queueLines(model, columns) : []
  return {
    main: most => {
      if (session !== null) {
        const lines = workLines(session, items, { columns, rows: most - 1, theme, now, agentsKey })
        // The scrollback above ends without a blank line.
        return lines.length === 0 ? [] : ['', ...lines]
      }
      if (facts === null || showsSession) return []
      const space = !scrollback.hasLines || most < ROWS_FOR_START ? [] : ['']
      return [
        ...space,
        ...startLines(facts, { columns, rows: most - space.length, theme, now, hasLogo: state === null }),
      ]
    },
    panel: panelOf(model, columns, now),
    queue,
    status:
      session === null
        ? startingLine(model)
        : statusLineOf(
            { state: session, board, own, queued: queue.length === 0 ? queued : 0, sign: pane.sign(now) },
            { columns, theme, now },
          ),
    asked: most => askedLines(model, { columns, rows: most }),
    input: { isDialog: model.dialog !== null, draw: most => inputOf(model, columns, most) },
    hint: isRoomy => hintOf(model, columns, isRoomy),
    rule: theme.paint('dim', '─'.repeat(columns)),
  }
}

/** The frame for a screen reader: the input, and nothing that changes by itself. */
function inputFrame(model: ScreenModel, { columns, rows, now }: { columns: number; rows: number; now: number }): Frame {
  const input = inputOf(model, columns, Math.max(1, rows - 2))
  const popup = panelOf(model, columns, now)?.(rows - 2 - input.lines.length) ?? []
  return {
    lines: [...popup, ...input.lines],
    caret: input.caret && { x: input.caret.x, y: popup.length + input.caret.y },
  }
}

function startingLine({ showsSession, theme }: ScreenModel): string | null {
  return showsSession ? theme.paint('dim', theme.symbols ? 'starting …' : 'starting') : null
}

/** The first prompts in the queue, each on a row; `[]` while a question has their place, and in a low terminal. */
function queueLines({ queue, theme, dialog, options }: ScreenModel, columns: number): string[] {
  if (dialog !== null || options.size().rows <= ROWS_FOR_QUEUE) return []
  const more = queue.length - MOST_QUEUED
  const lines = queue.slice(0, MOST_QUEUED).map((prompt, at) => {
    const lead = `queued ${at + 1}  `
    return theme.paint('dim', lead) + cutLine(titleLine(prompt, PROMPT_CHARS), columns - lead.length)
  })
  return more > 0 ? [...lines, theme.paint('dim', `and ${more} more: /queue`)] : lines
}

const PROMPT_CHARS = 400

/** The usual height of the start screen. */
const ROWS_FOR_START = 16
/** The most rows of a popup. */
const POPUP_ROWS = 10

function panelOf(model: ScreenModel, columns: number, now: number): ((rows: number) => readonly string[]) | null {
  const { theme } = model
  const snapshot = model.composer.snapshot()
  if (model.dialog === null && snapshot.popup !== null) {
    return rows => popupLines(snapshot, { columns, maxRows: Math.min(rows, POPUP_ROWS), theme })
  }
  const { state } = model.pane
  if (!model.showsTasks || !model.showsSession || state === null) return null
  const { tasks: board, own } = model.work
  const contract = wordsForContract(state.contract)
  const shown = { plan: state.plan, board, own: own && { ...own, now }, contract }
  return rows => taskLines(shown, { columns, rows, theme })
}

function inputOf({ dialog, composer, theme }: ScreenModel, columns: number, maxRows: number): DrawnField {
  const place = { columns, maxRows, theme }
  return dialog === null ? composerLines(composer.snapshot(), place) : pickerLines(dialog, place)
}

/** The rows that change in place at the bottom of the terminal, and the cell of the caret among them. */
export interface Frame {
  /** Each at most as wide as the terminal. */
  lines: readonly string[]
  caret: { x: number; y: number } | null
}

/** The parts of a frame, from top to bottom; each draws at most the rows it is given. */
export interface FrameParts {
  /** The running work, or the start screen; gets the rows that the others leave. */
  main(rows: number): readonly string[]
  /** The popup or the task list above the composer; null if none is open. */
  panel: ((rows: number) => readonly string[]) | null
  /** What waits for an answer of the person; left out: nothing can. */
  asked?(rows: number): readonly string[]
  /** The prompts in the queue. */
  queue: readonly string[]
  status: string | null
  /** `isDialog`: it may fill the frame. */
  input: { isDialog: boolean; draw(rows: number): DrawnField }
  /** Drawn above and below the input. */
  rule: string
  /** @param isRoomy whether there is a row for what nobody waits for */
  hint(isRoomy: boolean): string | null
}

/** The heights of a frame from which on these parts are drawn, or drawn in full. */
const ROWS_FOR_NOTICE = 6
const ROWS_FOR_RULES = 7
const ROWS_FOR_HINT = 11
const ROWS_FOR_RULED_DIALOG = 18
const ROWS_FOR_SPACE = 14
/** Where fewer rows are, the status line has the number of prompts. */
const ROWS_FOR_QUEUE = ROWS_FOR_SPACE
const MOST_QUEUED = 3

/** Shares the rows of a frame among its parts. It stays lower than the terminal, so that none of it is ever scrolled away. Pure. */
export function layOut(parts: FrameParts, terminalRows: number): Frame {
  const { rows, status, asked, queue, rules, hint, fixed, forInput } = shareOut(parts, terminalRows)
  const input = parts.input.draw(forInput)
  let left = Math.max(0, rows - fixed - input.lines.length)
  const panel = parts.panel === null ? [] : parts.panel(Math.min(left, Math.ceil((left * 2) / 3))).slice(0, left)
  left -= panel.length
  const space = rows >= ROWS_FOR_SPACE && left > 2 && status.length > 0 ? 1 : 0
  const main = parts.main(left - space).slice(0, left - space)
  const above = [...main, ...(space ? [''] : []), ...panel, ...asked, ...queue, ...status, ...rules]
  return {
    lines: [...above, ...input.lines, ...rules, ...(hint === null ? [] : [hint])],
    caret: input.caret && { x: input.caret.x, y: above.length + input.caret.y },
  }
}

/** What always stands in a frame, and the rows that the input may take beside it. */
function shareOut(parts: FrameParts, terminalRows: number) {
  const rows = Math.max(1, terminalRows - 1)
  const { isDialog } = parts.input
  // Where rows are few, how to leave a question counts more than what happens above it.
  const isSmallDialog = isDialog && rows >= 3 && rows < ROWS_FOR_NOTICE
  const status = parts.status === null || isSmallDialog || rows < 3 ? [] : [parts.status]
  const hint = rows >= ROWS_FOR_NOTICE || isSmallDialog ? parts.hint(rows >= ROWS_FOR_HINT) : null
  const rules = rows >= (isDialog ? ROWS_FOR_RULED_DIALOG : ROWS_FOR_RULES) ? [parts.rule] : []
  const forAsked = rows >= ROWS_FOR_SPACE ? 2 : rows >= ROWS_FOR_NOTICE ? 1 : 0
  const asked = (parts.asked?.(forAsked) ?? []).slice(0, forAsked)
  const queue = rows >= ROWS_FOR_QUEUE ? parts.queue : []
  const fixed = status.length + asked.length + queue.length + 2 * rules.length + (hint === null ? 0 : 1)
  const forInput = isDialog ? rows - fixed : Math.min(rows - fixed, Math.floor(rows / 3))
  return { rows, status, asked, queue, rules, hint, fixed, forInput: Math.max(1, forInput) }
}

/** A frame of at least `rows` rows, with blank rows above: the input stays in its place when there is less to show above it. */
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
