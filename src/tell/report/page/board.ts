import type { BoardMark, ReportSection } from '../../../core/view.ts'
import { formatDuration, shortNumber } from '../../words/numbers.ts'
import type { ReportAgent, ReportBuild, ReportData, ReportTask, ReportWork } from '../report-data.ts'
import { instancesInWords, rowInWords, rowsLeftOut, taskInWords, tasksLeftOut } from '../words.ts'
import { type Html, html, items, section, table, withGap } from './html.ts'
import { markdownHtml } from './markdown.ts'

/** So many columns of a template's own table have equal widths: on a phone their words stay whole. */
const FEW = 4

/** What the template, or the contract, says of its own. */
export function ownSection(of: ReportSection | null): Html {
  if (of === null) return html``
  const { title, note, text, table: own } = of
  const rows = own?.rows.map(cells => html`<tr>${cells.map(cell => html`<td>${cell}</td>`)}</tr>`)
  return section(
    title,
    html`${note === null ? null : html`<p class="soft">${note}</p>`}${text === '' ? null : markdownHtml(text)}${own === undefined || rows === undefined ? null : table(own.head.length > FEW ? 'own' : 'own few', own.head, rows)}`,
    true,
  )
}

/** The template's own board; of a plan its tasks, its agents, and the plans that were refused. */
export function boardSections({ work, build }: ReportData): Html {
  return html`${board(work)}${build === null ? null : html`${tasks(build)}${agents(build)}${refusedPlans(build)}`}`
}

const ROW_TONES: Readonly<Record<BoardMark, string>> = {
  'to-do': 'plain',
  now: 'strong',
  claimed: 'plain',
  done: 'good',
  parked: 'bad',
  failed: 'bad',
}

function board({ board, section: own }: ReportWork): Html {
  if (board === null || own?.tellsBoard === true || board.rows.length === 0) return html``
  const rows = board.rows.map(
    row =>
      html`<tr><td>${row.id}</td><td>${row.text}${row.who === null ? null : html`<small>${row.who}</small>`}</td><td><span class="${ROW_TONES[row.mark]}">${rowInWords(row)}</span></td></tr>`,
  )
  const left = rowsLeftOut(board)
  return section(
    'Board',
    html`${table('tasks', ['id', 'what', 'status'], rows)}${left === null ? null : html`<p class="soft last">${left}</p>`}`,
    true,
  )
}

const TASK_TONES: Readonly<Record<ReportTask['state'], string>> = { done: 'good', parked: 'bad', open: 'plain' }

function tasks(build: ReportBuild): Html {
  if (build.tasks.length === 0) return html``
  const rows = build.tasks.map(
    task =>
      html`<tr><td>${task.id}</td><td>${task.name}${task.phase === null ? null : html`<small>${task.phase}</small>`}</td><td><span class="${TASK_TONES[task.state]}">${taskInWords(task)}</span></td></tr>`,
  )
  const left = tasksLeftOut(build)
  return section(
    'Tasks',
    html`${table('tasks', ['id', 'task', 'status'], rows)}${left === null ? null : html`<p class="soft last">${left}</p>`}`,
    true,
  )
}

function agents({ agents }: ReportBuild): Html {
  if (agents.length === 0) return html``
  const rowOf = (each: ReportAgent) =>
    html`<tr><td>${each.agent}</td><td>${instancesInWords(each)}</td><td class="n">${formatDuration(each.durationMs)}</td><td class="n">${shortNumber(each.tokens)}</td></tr>`
  return section('Agents', table('agents', ['agent', 'worked', 'time', 'tokens'], agents.map(rowOf), 2), true)
}

function refusedPlans({ refusals }: ReportBuild): Html {
  if (refusals.count === 0) return html``
  const list = refusals.entries.map(
    ({ round, problem }) => html`<small>round ${round}</small><div class="words">${problem}</div>`,
  )
  return section('Plans that could not be used', items(withGap(refusals, list)), true)
}
