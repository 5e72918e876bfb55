import { formatDuration } from '../ui/format-duration.ts'
import { shortNumber } from '../ui/format-tokens.ts'
import type { ReportAgent, ReportBuild, ReportTask } from './build-data.ts'
import { instancesInWords, taskInWords, tasksLeftOut, WHOSE_SUMMARY } from './build-in-words.ts'
import { Html, html } from './escape.ts'
import { gapItem, items, prose, section } from './page-parts.ts'
import type { ReportData } from './report-data.ts'

/** Of a build: what it came to, in the words of its summary. */
export function builtSection({ build }: ReportData): Html {
  if (build === null || build.summary === null) return html``
  return section(
    'What is built',
    html`<p class="soft">${WHOSE_SUMMARY}</p><div class="words">${prose(build.summary)}</div>`,
    true,
  )
}

/** Of a build: its tasks, its agents, and what was no plan. */
export function teamSections({ build }: ReportData): Html {
  return build === null ? html`` : html`${tasks(build)}${agents(build)}${refusals(build)}`
}

const TONES: Readonly<Record<ReportTask['state'], string>> = { done: 'good', parked: 'bad', open: 'plain' }

function tasks(build: ReportBuild): Html {
  if (build.tasks.length === 0) return html``
  const rows = build.tasks.map(
    task =>
      html`<tr><td>${task.id}</td><td>${task.name}${task.phase === null ? null : html`<small>${task.phase}</small>`}</td><td><span class="${TONES[task.state]}">${taskInWords(task)}</span></td></tr>`,
  )
  const left = tasksLeftOut(build)
  return section(
    'Tasks',
    html`${table('tasks', ['id', 'task', 'how it stands'], rows)}${left === null ? null : html`<p class="soft last">${left}</p>`}`,
    true,
  )
}

function agents({ agents }: ReportBuild): Html {
  if (agents.length === 0) return html``
  const rowOf = (each: ReportAgent) =>
    html`<tr><td>${each.agent}</td><td>${instancesInWords(each)}</td><td class="n">${formatDuration(each.durationMs)}</td><td class="n">${shortNumber(each.tokens)}</td></tr>`
  return section('Agents', table('agents', ['agent', 'worked', 'time', 'tokens'], agents.map(rowOf), 2), true)
}

function refusals({ refusals }: ReportBuild): Html {
  if (refusals.count === 0) return html``
  const list = refusals.entries.map(
    ({ round, problem }) => html`<small>round ${round}</small><div class="words">${problem}</div>`,
  )
  return section('Plans that could not be used', items(gapItem(refusals, list)), true)
}

/** @param name how the look of the page calls it; `numbers`: from which column on there are numbers */
function table(name: string, names: readonly string[], rows: readonly Html[], numbers = names.length): Html {
  const head = names.map((name, i) => html`<th scope="col"${i < numbers ? null : new Html(' class="n"')}>${name}</th>`)
  return html`<table class="${name}"><thead><tr>${head}</tr></thead><tbody>${rows}</tbody></table>`
}
