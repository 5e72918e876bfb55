import type { Clock } from '../../../base/clock.ts'
import { inHome } from '../../../platform/files.ts'
import type { Keymap } from '../../../project/settings/keys.ts'
import { type SessionRow, type SessionsScope, SessionsTable } from '../../../project/watch/sessions-table.ts'
import type { World } from '../../../project/world.ts'
import type { Records } from '../../../session/records/records.ts'
import {
  formatClock,
  formatCost,
  formatCount,
  formatDayAndTime,
  formatDuration,
  shortNumber,
} from '../../../tell/words/numbers.ts'
import { describeOutcome } from '../../../tell/words/outcome.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import { standingInWords } from '../../../tell/words/status.ts'
import { roleOfStanding } from '../blocks/layout.ts'
import { Pager } from '../pager/pager.ts'
import { wholeSource } from '../pager/source.ts'
import type { Role, Theme } from '../terminal/theme.ts'
import type { FullView, Stage } from '../view/full-view.ts'
import { type ListColumn, ListView } from '../view/list.ts'

/** What can be done with a session of the table. */
export type SessionAction = 'watch' | 'report' | 'diff' | 'resume'

/** Where the table of sessions is shown, and what is done with one there. */
export interface SessionsPlace {
  world: Pick<World, 'platform' | 'env' | 'home' | 'templates'> & { clock: Clock }
  /** Of the directory whose sessions come first. */
  records: Records
  theme: Theme
  keymap: Keymap
  /** With which of them it opens. */
  scope: SessionsScope
  /** Why an action cannot be done here and now, a sentence; null if it can. */
  whyNot(action: SessionAction, row: SessionRow): string | null
  /** Does one that can be done. */
  act(action: SessionAction, row: SessionRow, stage: Stage): void
  /** Called with what reading has failed with. */
  onFailure(error: unknown): void
}

/** The sessions of a directory or of all, in a table that fills the terminal; Enter offers actions with one. */
export function sessionList(place: SessionsPlace): ListView<SessionRow> {
  const { world, records, theme, keymap } = place
  let scope = place.scope
  let changed: () => void = () => {}
  let reading = new AbortController()
  let problems: string[] = []
  let table = open()

  function open(): SessionsTable {
    const { signal } = reading
    problems = []
    return new SessionsTable({
      world,
      records,
      scope,
      signal,
      onChange: () => changed(),
      onProblem: problem => {
        if (!problems.includes(problem)) problems.push(problem)
      },
    })
  }

  function follow(): void {
    table.follow().catch(error => place.onFailure(error))
  }

  const toggle = () => {
    reading.abort()
    reading = new AbortController()
    scope = scope === 'here' ? 'all' : 'here'
    table = open()
    follow()
    return null
  }
  return new ListView<SessionRow>({
    title: () => {
      const directory = inHome(records.directory, world.home)
      const what = scope === 'all' ? 'All sessions' : `Sessions of ${oneLine(directory, MOST_DIRECTORY)}`
      const [problem] = problems
      return [what, table.isWhole ? '' : 'reading', problem ?? ''].filter(each => each !== '').join(' · ')
    },
    noun: 'session',
    theme,
    keymap,
    rows: () => table.rows,
    get columns() {
      return columnsOf(() => world.clock.now(), scope)
    },
    textOf: row =>
      [
        ...[stateInWords(row), titleOf(row), row.id, row.worktree ?? '', row.records.directory],
        formatDayAndTime(row.createdAt),
      ].join(' '),
    idOf: ({ key }) => key,
    get empty() {
      return table.isWhole ? 'No sessions yet.' : 'Reading …'
    },
    open: (row, stage) => stage.open(row.problem === null ? choices(place, row) : problemOf(place, row)),
    actions: {
      all: toggle,
      copy_here: (row, stage) => (row !== null && stage.copy(row.id) ? `copied: ${row.id}` : null),
      diff_here: (row, stage) => (row === null ? null : doOrSay(place, 'diff', row, stage)),
    },
    search: 'asked',
    hints: () => [
      `${keymap.label('open')} actions`,
      `${keymap.label('close')} back`,
      `${keymap.label('find')} find`,
      `${keymap.label('all')} ${scope === 'all' ? 'only this directory' : 'all directories'}`,
      `${keymap.label('diff_here')} changes`,
      `${keymap.label('copy_here')} copy the id`,
    ],
    follow: listener => {
      changed = listener
      follow()
      return () => reading.abort()
    },
  })
}

const MOST_DIRECTORY = 300

/** Does it, or answers why not. */
function doOrSay(place: SessionsPlace, action: SessionAction, row: SessionRow, stage: Stage): string | null {
  const problem = row.problem ?? place.whyNot(action, row)
  if (problem === null) place.act(action, row, stage)
  return problem
}

const ACTIONS: readonly { action: SessionAction; label: string; hint: string }[] = [
  { action: 'watch', label: 'Watch', hint: 'the screen of the running session, with all its keys' },
  { action: 'report', label: 'Report', hint: 'its work, proof and questions' },
  { action: 'diff', label: 'Changes', hint: 'its changes, file by file' },
  { action: 'resume', label: 'Resume', hint: 'continue where it stopped' },
]

type Choice = (typeof ACTIONS)[number]

/** What can be done with a session; one that cannot be done now says why. */
function choices(place: SessionsPlace, row: SessionRow): ListView<Choice> {
  const { theme, keymap } = place
  const whyNot = ({ action }: Choice) => place.whyNot(action, row)
  const possible = ACTIONS.filter(choice => whyNot(choice) === null)
  // What can be done stands first, so that Enter does it.
  const rows = [...possible, ...ACTIONS.filter(choice => !possible.includes(choice))]
  const list: ListView<Choice> = new ListView<Choice>({
    title: () => `${row.id} · ${stateInWords(row)} · ${titleOf(row)}`,
    theme,
    keymap,
    rows: () => rows,
    columns: [
      { head: '', cell: ({ label }) => label, most: 10, role: choice => (whyNot(choice) === null ? 'strong' : 'dim') },
      { head: '', cell: choice => whyNot(choice) ?? choice.hint, role: () => 'dim' },
    ],
    textOf: ({ label }) => label,
    idOf: ({ action }) => action,
    empty: '',
    open: (choice, stage) => {
      const problem = whyNot(choice)
      if (problem === null) place.act(choice.action, row, stage)
      else list.say({ text: `${choice.label}: ${problem}`, role: 'warning' })
    },
    actions: {
      copy_here: (_, stage) => (stage.copy(row.id) ? `copied: ${row.id}` : null),
      diff_here: (_, stage) => doOrSay(place, 'diff', row, stage),
    },
    search: 'asked',
    hints: () => [
      `${keymap.label('open')} does it`,
      `${keymap.label('close')} back`,
      `${keymap.label('diff_here')} changes`,
      `${keymap.label('copy_here')} copy the id`,
    ],
  })
  return list
}

/** All of why a session cannot be read, and where it lies. */
function problemOf({ theme, keymap }: SessionsPlace, row: SessionRow): FullView {
  const lines = [row.problem ?? '', '', row.records.journal(row.id)].map(line => oneLine(line, MOST_PROBLEM))
  return new Pager({ title: row.id, source: wholeSource(lines), theme, keymap, at: 'start' })
}

const MOST_PROBLEM = 4_000

/** What has become of a session, in a word or two. */
function stateInWords({ standing, activity, outcome }: SessionRow): string {
  if (standing === 'broken') return 'broken'
  return outcome?.kind === 'done' ? 'done' : standingInWords({ outcome, activity, standing })
}

/** A session for somebody who hears it: what became of it, its goal, and its figures, each by itself. */
export function sessionInWords(row: SessionRow): string[] {
  const { id, worktree, createdAt, rounds, durationMs, tokens, cost, outcome, problem } = row
  const name = worktree === null ? id : `${worktree}:${id}`
  if (problem !== null) return [name, stateInWords(row), problem]
  return [
    name,
    stateInWords(row),
    titleOf(row),
    `began ${formatDayAndTime(createdAt)}`,
    formatCount(rounds, 'round'),
    formatDuration(durationMs),
    formatCount(tokens, 'token'),
    cost === null ? '' : formatCost(cost),
    proofInWords(outcome),
  ]
}

function stateRole({ standing, activity, outcome }: SessionRow): Role {
  return standing === 'broken' ? 'bad' : roleOfStanding({ outcome, activity, standing })
}

/** A call is told from sessions by the name of its template, a broken one says what is wrong. */
function titleOf({ goal, call, problem, id }: SessionRow): string {
  if (problem !== null) return `${id}: ${problem}`
  return call === null ? goal : `${call}: ${goal}`
}

function columnsOf(now: () => number, scope: SessionsScope): readonly ListColumn<SessionRow>[] {
  const quiet = (
    head: string,
    from: number,
    most: number,
    cell: (row: SessionRow) => string,
  ): ListColumn<SessionRow> => {
    // Of one that cannot be read nothing is known.
    return { head, from, most, cell: row => (row.problem === null ? cell(row) : ''), role: () => 'dim' }
  }
  const number = (head: string, from: number, cell: (row: SessionRow) => string): ListColumn<SessionRow> => {
    return { ...quiet(head, from, NUMBER_CELLS, cell), align: 'right' }
  }
  const isHere = scope === 'here'
  const directory = quiet('Directory', 70, 28, ({ records }) => records.directory || records.folder)
  return [
    { head: 'State', cell: stateInWords, role: stateRole, most: 16 },
    quiet('Session', isHere ? 72 : 80, 24, ({ id, worktree }) => (worktree === null ? id : `${worktree}:${id}`)),
    quiet('Began', isHere ? 112 : 136, 16, ({ createdAt }) => formatDayAndTime(createdAt)),
    ...(scope === 'all' ? [directory] : []),
    { head: 'Goal', cell: titleOf, role: row => (row.problem === null ? 'plain' : 'bad') },
    number('Rounds', isHere ? 64 : 104, ({ rounds }) => String(rounds)),
    number('Time', 44, ({ standing, durationMs, readAt }) =>
      standing === 'running' ? formatClock(durationMs + now() - readAt) : formatDuration(durationMs),
    ),
    number('Tokens', isHere ? 92 : 112, ({ tokens }) => shortNumber(tokens)),
    number('Cost', isHere ? 100 : 120, ({ cost }) => (cost === null ? '–' : formatCost(cost))),
    {
      head: 'Proof',
      from: isHere ? 56 : 96,
      cell: ({ outcome }) => proofInWords(outcome),
      role: ({ outcome }) => (outcome?.kind === 'done' && outcome.verified ? 'good' : 'warning'),
      most: 12,
    },
  ]
}

/** `proved`, `gates pass`, `not verified`; empty of one that is not done. */
function proofInWords(outcome: SessionRow['outcome']): string {
  return outcome?.kind === 'done' ? describeOutcome(outcome).short.replace(/^done, /, '') : ''
}

const NUMBER_CELLS = 12
