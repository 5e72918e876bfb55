import { clipEnd, formatBytes, truncate } from '../../base/text.ts'
import type { RecordedOf } from '../../core/events/events.ts'
import { type TaskBoard, taskOf } from '../../core/state/plan.ts'
import type { TemplateView } from '../../core/state/state.ts'
import { isKnown, type SessionState } from '../../core/state/state.ts'
import type {
  BoardMark,
  BoardRow,
  CardFact,
  CardRow,
  ReportSection,
  RoundTitle,
  ShownPlan,
  StepName,
} from '../../core/view.ts'
import { clipLines, type Description, describe, type Tone, withRest } from './names.ts'
import { formatCount, formatDuration } from './numbers.ts'
import { agentOf } from './plan.ts'
import { gateName, lastLinesShown, wordsForGate } from './proof.ts'
import { oneLine, safeText } from './safe-text.ts'

/** Shown part of a board: its first 500 rows, and the total. */
export interface ShownBoard {
  rows: readonly BoardRow[]
  count: number
}

const MOST_ROWS = 500
const MOST_FACTS = 6
const MOST_FACT_ROWS = 200
const ID_CHARS = 60
const NAME_CHARS = 400
const LINE_CHARS = 120
const LABEL_CHARS = 8
const FACT_CHARS = 2000
const SECTION_CHARS = 16_000
const PATH_CHARS = 300
const PROBLEM_CHARS = 2000
const TITLE_LINE_CHARS = 2000
const MOST_FILES = 10
const MOST_TITLE_LINES = 100
const STATE_LINES = 60

const MARKS: ReadonlySet<string> = new Set<BoardMark>(['to-do', 'now', 'claimed', 'done', 'parked', 'failed'])

/** Returns the template's own board; null: it has none, and its tasks are shown. Texts are bounded, not safe. Pure. */
export function ownBoard(state: SessionState): ShownBoard | null {
  if (state.kind?.view?.board === undefined) return null
  return askView(
    state,
    view => {
      const rows = listOf(view.board?.(state.work, state) ?? [], 'board')
      return { rows: rows.slice(0, MOST_ROWS).map(readRow), count: rows.length }
    },
    problem => ({ rows: [{ mark: 'failed', id: '!', text: problem, who: null, since: null }], count: 1 }),
  )
}

/** Returns the progress in the template's own words; null: it has none, and its tasks tell. Bounded, not safe. Pure. */
export function statusOfWork(state: SessionState): string | null {
  const { view } = state.kind ?? {}
  if (view?.status === undefined) {
    const board = ownBoard(state)
    return board === null || board.count === 0 ? null : doneInWords(board)
  }
  return askView(
    state,
    view => orNull(view.status?.(state.work, state) ?? null, 'status', LINE_CHARS),
    problem => problem,
  )
}

/**
 * Returns the template's name for the running or next round, on lines; null: it has none, or the session has ended. Safe to
 * write to a terminal. Pure.
 */
export function titleOfRound(state: SessionState): RoundTitle | null {
  if (state.ended !== null) return null
  return askView<RoundTitle | null>(
    state,
    view => {
      const title = view.round?.(state.work, state) ?? null
      if (title === null) return null
      const lines = listOf(title.lines, 'round.lines')
        .slice(0, MOST_TITLE_LINES)
        .map((line, at) => {
          return safeText(truncate(textOf(line, `round.lines[${at}]`), TITLE_LINE_CHARS))
        })
      return {
        title: oneLine(textOf(title.title, 'round.title'), LINE_CHARS),
        // Keep the leading blanks: it may be a prompt.
        lines: lines.flatMap(line => line.split('\n')).slice(0, MOST_TITLE_LINES),
      }
    },
    problem => ({ title: problem, lines: [] }),
  )
}

/** Says how many rows of a board are done: `3 of 8 done`; beyond 500, of the first 500. */
function doneInWords({ rows }: ShownBoard): string {
  return `${rows.filter(({ mark }) => mark === 'done').length} of ${rows.length} done`
}

/** Describes a step that is no round, in the template's words or codemachine's: `running lint`; and in short. */
export function wordsForStep(state: SessionState, step: StepName): { words: string; short: string } {
  const { kind, name } = step
  const own = ownWordsForStep(state, step)
  const shown = gateName(name)
  if (own !== null) return { words: own, short: shown === '' ? own : shown }
  switch (kind) {
    case 'look':
      return { words: `looking: ${shown}`, short: shown }
    case 'command':
      return { words: `running ${shown}`, short: shown }
    case 'write':
      return { words: 'writing files', short: 'writing' }
    case 'note':
      return { words: `noting: ${shown}`, short: shown }
    case 'claim':
      return { words: 'claiming that it is done', short: 'claiming' }
    case 'leave-scope':
      return { words: `leaving ${shown}`, short: shown }
    case 'enter':
      return { words: `changing to ${shown}`, short: shown }
    case 'keep':
      return { words: `keeping ${shown}`, short: shown }
    case 'gates':
      return { words: 'adding gates', short: 'gates' }
    case 'confirm-secret':
      return { words: `looking for the secret ${shown}`, short: shown }
    // From a later version.
    default:
      return { words: `${oneLine(kind, LINE_CHARS)} ${shown}`, short: shown }
  }
}

/** Returns the template's name for a step, on one line; null: none. */
function ownWordsForStep(state: SessionState, step: StepName): string | null {
  const words = askView(
    state,
    view => orNull(firstLine(view.step?.(step, state.work, state) ?? null, step), 'step', LINE_CHARS),
    problem => problem,
  )
  return words === null || words.trim() === '' ? null : oneLine(words, NAME_CHARS)
}

/** For a state only the first line: its entry shows the rest. */
function firstLine(words: string | null, { kind }: StepName): string | null {
  return kind === 'enter' && typeof words === 'string' ? (words.split('\n', 1)[0] ?? null) : words
}

/**
 * Describes a look; null: the template hides it on purpose. The template describes the findings.
 * @param state the session after the event
 */
export function describeLooked(
  { what, file = '', problem }: RecordedOf<'looked'>,
  state: SessionState,
): Description | null {
  if (problem !== undefined) return describeKept({ file, bytes: null, problem }, state)
  const step = { kind: 'look', name: what }
  if (isUntold(state, step)) return null
  return describe(ownWordsForStep(state, step) ?? `looked: ${gateName(what)}`, 'quiet')
}

/** Returns whether the template hides a step with an empty text. */
function isUntold(state: SessionState, step: StepName): boolean {
  const isEmpty = askView(
    state,
    view => view.step?.(step, state.work, state) === '',
    () => false,
  )
  return isEmpty ?? false
}

/** Describes the result of a template's command, with its last lines of output if it is not good. */
export function describeCommandRun(event: RecordedOf<'command-ran'>, state: SessionState): Description {
  const { name, status, durationMs, problem, changed, changedCount, output } = event
  const shown = changed.slice(0, MOST_FILES).map(path => oneLine(path, PATH_CHARS))
  const list = withRest(shown, changedCount).join(', ')
  const called = ownWordsForStep(state, { kind: 'command', name }) ?? `command ${gateName(name)}`
  const isBad = status !== 'passed' && status !== 'broken-off'
  return describe(
    [
      `${called}: ${wordsForGate(event)}, ${formatDuration(durationMs)}`,
      ...(problem === null ? [] : [oneLine(problem, PROBLEM_CHARS)]),
      ...(changedCount === 0 ? [] : [`it changed ${formatCount(changedCount, 'file')}: ${list}`]),
      ...(isBad ? lastLinesShown(output) : []),
    ].join('\n'),
    toneOf(status),
  )
}

/** Describes the result of a command that codemachine ran for an agent, with its last lines of output if it is not good. */
export function describeShellRun(event: RecordedOf<'shell-ran'>): Description {
  const { command, status, durationMs, stdout, stderr } = event
  const names = namesOfSecrets(event)
  const isBad = status !== 'passed' && status !== 'broken-off'
  const line = `run${names === '' ? '' : ` ${names}`}: ${wordsForGate(event)}, ${formatDuration(durationMs)}: ${oneLine(command, LINE_CHARS)}`
  return describe(
    [line, ...remarksOnShellRun(event), ...(isBad ? lastLinesShown(stderr.trim() === '' ? stdout : stderr) : [])].join(
      '\n',
    ),
    isLeak(event) ? 'bad' : toneOf(status),
  )
}

/** Describes the result of a hook, with its last lines of output if it is not good. */
export function describeHookRun(event: RecordedOf<'hook-ended'>): Description {
  const { hook, of, run, status, durationMs, problem, output } = event
  const isBad = status !== 'passed' && status !== 'broken-off'
  const whose = of === 'project' ? ' of the project' : ''
  const line = `hook ${hook}${whose}: ${wordsForGate(event)}, ${formatDuration(durationMs)}: ${oneLine(run, LINE_CHARS)}`
  const lines = [
    line,
    ...(problem === null ? [] : [oneLine(problem, PROBLEM_CHARS)]),
    ...(isBad ? lastLinesShown(output) : []),
  ]
  return describe(lines.join('\n'), toneOf(status))
}

/** `with STRIPE_KEY, MAIL_TOKEN`; empty for a command without secrets. */
export function namesOfSecrets({ secrets }: Pick<RecordedOf<'shell-ran'>, 'secrets'>): string {
  return secrets.length === 0 ? '' : `with ${namesIn(secrets)}`
}

/** Returns remarks on such a command apart from its output, a line each. */
export function remarksOnShellRun(event: RecordedOf<'shell-ran'>): string[] {
  const { problem, withheld, printed = [], leaked = [] } = event
  return [
    ...(problem === null ? [] : [oneLine(problem, PROBLEM_CHARS)]),
    ...(withheld ? ['its output is withheld: a secret in it is too short to be found'] : []),
    ...(printed.length === 0 ? [] : [`it printed ${namesIn(printed)}, which was removed`]),
    ...(isLeak(event)
      ? [`a secret was found in ${namesIn(leaked)}; agents cannot read it any more, and no savepoint has it`]
      : []),
  ]
}

function namesIn(names: readonly string[]): string {
  const shown = names.slice(0, MOST_FILES).map(name => oneLine(name, PATH_CHARS))
  return withRest(shown, names.length).join(', ')
}

function isLeak({ leaked = [] }: RecordedOf<'shell-ran'>): boolean {
  return leaked.length > 0
}

/** Describes a request of an agent for a secret. */
export function describeSecretAsked({ key, question, reason }: RecordedOf<'secret-asked'>): Description {
  const why = reason === null ? [] : [`the stored value does not work: ${oneLine(reason, PROBLEM_CHARS)}`]
  return describe([`needs the secret ${key}: ${oneLine(question, PROBLEM_CHARS)}`, ...why].join('\n'), 'warning')
}

/** Says whether a secret exists and works. */
export function describeConfirmed({ key, ok, problem }: RecordedOf<'secret-confirmed'>): Description {
  if (ok) return describe(`the secret ${key} is stored`, 'good')
  return describe(`the secret ${key} cannot be used: ${oneLine(problem ?? '', PROBLEM_CHARS)}`, 'warning')
}

function toneOf(status: RecordedOf<'command-ran'>['status']): Tone {
  if (status === 'passed') return 'good'
  return status === 'broken-off' ? 'quiet' : 'warning'
}

/** Describes the files that a step wrote, or why it wrote none. */
export function describeWrote({ files, problem }: RecordedOf<'wrote'>): Description {
  if (problem !== null) return describe(`nothing was written: ${oneLine(problem, PROBLEM_CHARS)}`, 'warning')
  const shown = files.slice(0, MOST_FILES).map(({ path }) => oneLine(path, PATH_CHARS))
  const list = withRest(shown, files.length).join(', ')
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  return describe(`wrote ${formatCount(files.length, 'file')} (${formatBytes(bytes)}): ${list}`)
}

/**
 * Describes a template's new state; null: the template hides it on purpose.
 * @param state the session after the event
 */
export function describeEntered(event: RecordedOf<'state-entered'>, state: SessionState): Description | null {
  const step = { kind: 'enter', name: event.state }
  if (isUntold(state, step)) return null
  const own = ownWordsForStep(state, step)
  if (own === null) return describeState(event)
  const words = askView(state, view => view.step?.(step, state.work, state) ?? '', String) ?? ''
  const below = clipLines(words.split('\n').slice(1).join('\n'), STATE_LINES, 'the records have all of it')
  return describe(below === '' ? own : `${own}\n${below}`, 'quiet')
}

/** Describes a template's change of state, and why. */
export function describeState({ state, from, why }: RecordedOf<'state-entered'>): Description {
  const [to, before, because] = [state, from ?? '', why].map(each => oneLine(each, LINE_CHARS))
  return describe(`state: ${before === '' ? '' : `${before} → `}${to}${because === '' ? '' : ` (${because})`}`, 'quiet')
}

/**
 * Describes a file that was stored for people, or why it was not; null: the template hides it on purpose.
 * @param state the session after the event
 */
export function describeKept(
  { file, bytes, problem }: Pick<RecordedOf<'kept'>, 'file' | 'bytes' | 'problem'>,
  state: SessionState,
): Description | null {
  if (problem === null && isUntold(state, { kind: 'keep', name: file })) return null
  const name = oneLine(file, PATH_CHARS)
  if (problem !== null) return describe(`${name} was not saved: ${oneLine(problem, PROBLEM_CHARS)}`, 'warning')
  return describe(`kept ${name} (${formatBytes(bytes ?? 0)})`, 'quiet')
}

/** Returns the first facts of the report's card. Bounded, not safe. Pure. */
export function cardOfWork(state: SessionState): readonly CardFact[] {
  const facts = askView<readonly CardFact[]>(
    state,
    view =>
      listOf(view.card?.(state.work, state) ?? [], 'card')
        .slice(0, MOST_FACTS)
        .map(({ label, text, rows, isToCopy }, at) => ({
          label: truncate(textOf(label, `card[${at}].label`), LABEL_CHARS),
          text: clipEnd(textOf(text, `card[${at}].text`).trim(), FACT_CHARS),
          ...(rows === undefined ? {} : { rows: readCardRows(rows, `card[${at}].rows`) }),
          ...(isToCopy === true ? { isToCopy } : {}),
        })),
    problem => [{ label: 'work', text: problem }],
  )
  return facts ?? []
}

function readCardRows(rows: readonly CardRow[], what: string): readonly CardRow[] {
  return listOf(rows, what)
    .slice(0, MOST_FACT_ROWS)
    .map(({ text, mark }, at) => {
      if (mark !== undefined && !MARKS.has(mark))
        throw new TypeError(`${what}[${at}].mark is none of ${[...MARKS].join(', ')}`)
      return {
        text: truncate(textOf(text, `${what}[${at}].text`), NAME_CHARS),
        ...(mark === undefined ? {} : { mark }),
      }
    })
}

/** Returns the template's own section of the report; null: none. Bounded, not safe. Pure. */
export function sectionOfWork(state: SessionState): ReportSection | null {
  return askView<ReportSection | null>(
    state,
    view => {
      const section = view.report?.(state.work, state) ?? null
      if (section === null) return null
      const text = textOf(section.text, 'report.text').trim()
      return {
        title: truncate(textOf(section.title, 'report.title'), LINE_CHARS),
        note: orNull(section.note, 'report.note', NAME_CHARS),
        text: clipEnd(text, SECTION_CHARS),
        ...(section.table === undefined ? {} : { table: readTable(section.table) }),
        ...(section.tellsBoard === true && section.table !== undefined ? { tellsBoard: true } : {}),
      }
    },
    problem => ({ title: 'Status', note: null, text: problem }),
  )
}

function readTable({ head, rows }: NonNullable<ReportSection['table']>): NonNullable<ReportSection['table']> {
  const cells = (row: readonly string[]) =>
    listOf(row, 'report.table')
      .slice(0, MOST_CELLS)
      .map(cell => truncate(textOf(cell, 'report.table'), NAME_CHARS))
  return { head: cells(head), rows: listOf(rows, 'report.table.rows').slice(0, MOST_ROWS).map(cells) }
}

const MOST_CELLS = 10

/** Returns the versions of the plan for a person to accept or change, oldest first. Bounded, not safe. Pure. */
export function plansOf(state: SessionState): readonly ShownPlan[] {
  const plans = askView<readonly ShownPlan[]>(
    state,
    view =>
      listOf(view.plans?.(state.work, state) ?? [], 'plans')
        .slice(-MOST_PLANS)
        .map((plan, at) => ({
          version: plan.version,
          author: truncate(textOf(plan.author, `plans[${at}].author`), LINE_CHARS),
          feedback: orNull(plan.feedback, `plans[${at}].feedback`, PLAN_CHARS),
          sha256: truncate(textOf(plan.sha256, `plans[${at}].sha256`), LINE_CHARS),
          text: clipEnd(textOf(plan.text, `plans[${at}].text`), PLAN_CHARS),
          diff: plan.diff === null ? null : clipEnd(textOf(plan.diff, `plans[${at}].diff`), PLAN_CHARS),
          accepted: plan.accepted,
        })),
    () => [],
  )
  return plans ?? []
}

const MOST_PLANS = 50
const PLAN_CHARS = 128 * 1024

/** Returns the work's summary for a following session; null: the template has none. Bounded, not safe. Pure. */
export function followUpOfWork(state: SessionState): string | null {
  return askView(
    state,
    view => orNull(view.followUp?.(state.work, state) ?? null, 'followUp', FOLLOW_UP_CHARS),
    problem => problem,
  )
}

const FOLLOW_UP_CHARS = 64 * 1024

/** Returns the template's own data for programs, as plain JSON; with a field `problem` if that fails. */
function dataOfWork(state: SessionState): Readonly<Record<string, unknown>> {
  const data = askView<Readonly<Record<string, unknown>>>(
    state,
    view => {
      const json = JSON.stringify(view.data?.(state.work, state) ?? {})
      if (json.length > DATA_CHARS) return { problem: `The data has more than ${formatBytes(DATA_CHARS)}.` }
      return JSON.parse(json)
    },
    problem => ({ problem }),
  )
  return data ?? {}
}

const DATA_CHARS = 512 * 1024

/** Report of a session's template for programs, with further fields of its own. Times are ISO 8601 in UTC. */
export interface WorkReport {
  template: string
  /** Whether this version has that template and all its kinds of rounds so far; if not, it cannot resume the session. */
  isKnown: boolean
  /** Progress in the template's own words; null: none. */
  status: string | null
  /** The template's name for the running or next round; null: none, or no process runs the session. */
  round: RoundTitle | null
  /** `from`: own rows or its tasks; `count`: total, of which at most 500 are listed. Null: none. */
  board: { from: 'template' | 'tasks'; count: number; rows: readonly WorkRow[] } | null
}

type WorkRow = Omit<BoardRow, 'since'> & { since: string | null }

/**
 * Returns the work report of a session.
 * @param board its tasks, as they are shown; `isRunning`: whether a process runs it. Pure.
 */
export function workReport(state: SessionState, board: TaskBoard | null, isRunning: boolean): WorkReport {
  const own = ownBoard(state)
  const shown = own ?? (board && boardOfTasks(board, isRunning ? state : { agents: [] }, isRunning))
  return {
    ...dataOfWork(state),
    template: truncate(state.template, LINE_CHARS),
    isKnown: isKnown(state),
    status: statusOfWork(state),
    round: isRunning ? titleOfRound(state) : null,
    board:
      shown === null || shown.count === 0
        ? null
        : { from: own === null ? 'tasks' : 'template', count: shown.count, rows: shown.rows.map(inIso) },
  }
}

function inIso({ since, ...row }: BoardRow): WorkRow {
  return { ...row, since: since === null ? null : new Date(since).toISOString() }
}

function boardOfTasks(
  { tasks, current }: TaskBoard,
  { agents }: Pick<SessionState, 'agents'>,
  isRunning: boolean,
): ShownBoard {
  const given = agents.map(agent => ({ ...agent, ids: new Set(agent.tasks.map(id => taskOf(id, tasks)?.id)) }))
  const rows = tasks.slice(0, MOST_ROWS).map((task): BoardRow => {
    const at = given.filter(({ ids }) => ids.has(task.id))
    const isNow = isRunning && (task.id === current || at.length > 0)
    const mark = task.done ? 'done' : task.parked !== undefined ? 'parked' : task.claimed ? 'claimed' : null
    return {
      mark: mark ?? (isNow ? 'now' : 'to-do'),
      id: truncate(task.id, ID_CHARS),
      text: truncate(task.name, NAME_CHARS),
      who: at.length === 0 ? null : truncate(at.map(({ instance }) => agentOf(instance)).join(', '), LINE_CHARS),
      since: at.length === 0 ? null : Math.min(...at.map(({ since }) => since)),
    }
  })
  return { rows, count: tasks.length }
}

/** Returns a view's answer; null: no view. If the view throws, its error is shown, and the session continues. */
function askView<T>(state: SessionState, tell: (view: TemplateView) => T, failed: (problem: string) => T): T | null {
  const view = state.kind?.view
  if (view === undefined) return null
  try {
    return tell(view)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return failed(truncate(`the view of the template cannot be shown: ${why}`, NAME_CHARS))
  }
}

function readRow({ mark, id, text, who, since }: BoardRow, at: number): BoardRow {
  if (!MARKS.has(mark)) throw new TypeError(`board[${at}].mark is none of ${[...MARKS].join(', ')}`)
  if (since !== null && !isMoment(since)) throw new TypeError(`board[${at}].since is no time in ms`)
  return {
    mark,
    id: truncate(textOf(id, `board[${at}].id`), ID_CHARS),
    text: truncate(textOf(text, `board[${at}].text`), NAME_CHARS),
    who: orNull(who, `board[${at}].who`, LINE_CHARS),
    since,
  }
}

/** Largest time of a `Date`, in ms. */
const LAST_MOMENT = 8.64e15

function isMoment(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && Math.abs(value) <= LAST_MOMENT
}

function listOf<T>(value: readonly T[], what: string): readonly T[] {
  if (!Array.isArray(value)) throw new TypeError(`${what} is no list`)
  return value
}

function orNull(value: string | null, what: string, most: number): string | null {
  return value === null ? null : truncate(textOf(value, what), most)
}

function textOf(value: string, what: string): string {
  if (typeof value !== 'string') throw new TypeError(`${what} is no text`)
  return value
}
