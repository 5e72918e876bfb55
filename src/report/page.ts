import { readFileSync } from 'node:fs'
import { packageFile } from '../base/package.ts'
import { formatBytes } from '../base/text.ts'
import type { BoardMark } from '../core/contracts/view.ts'
import type { Tone } from '../words/names.ts'
import { formatCost, formatDayAndTime, formatDuration, formatMoment, shortNumber } from '../words/numbers.ts'
import { placeOf, SEVERITY_TONES } from '../words/proof.ts'
import { chartsOf } from './charts.ts'
import { Html, html, items, moment, prose, section, table } from './html.ts'
import type {
  ReportAgent,
  ReportBuild,
  ReportData,
  ReportGate,
  ReportRound,
  ReportTask,
  ReportTrouble,
  ReportWork,
  Shortened,
} from './report-data.ts'
import {
  beforeInWords,
  type CommandContext,
  capital,
  commandsOf,
  forecastInWords,
  gateInWords,
  headlineOf,
  instancesInWords,
  moreOnChanges,
  noGateInWords,
  noPathsInWords,
  notesOnProof,
  notKeptInWords,
  numberOfRow,
  OUTPUTS,
  outcomeOfRow,
  providersInWords,
  reviewInWords,
  rowInWords,
  rowsLeftOut,
  taskInWords,
  tasksInWords,
  tasksLeftOut,
  toneOfGate,
  whatIsLeft,
} from './words.ts'

/**
 * The report as one HTML page without scripts, links or requests. Texts from outside are escaped, and the content
 * security policy in its head forbids everything else.
 */
export function htmlOf(data: ReportData, place: CommandContext): string {
  const { text, short } = headlineOf(data)
  return `<!doctype html>
<html lang="en">
${
  html`<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>${`${short} · ${data.session} · codemachine`}</title>
<style>
${pageStyle()}</style>
</head>
<body>
<main>
${head(data, text)}
${numbers(data)}
${ownSection(data)}
${left(data)}
${proofSection(data)}
${commands(data, place)}
${progress(data)}
${boardSections(data)}
${changesSection(data, place)}
${questions(data)}
${refusals(data)}
${trouble(data)}
${outputs(data)}
${sentences('Notes', { ...data.notes, entries: data.notes.entries.map(({ text }) => text) })}
${sentences('Remarks', data.remarks)}
${lastWords(data)}
${roundsSection(data)}
</main>
${footer(data)}
</body>`.text
}
</html>
`
}

let style: Html | null = null

/** The look of the page, for a phone first, light and dark, and on paper. Read when the first page is drawn. */
function pageStyle(): Html {
  style ??= new Html(readFileSync(packageFile('config/report.css'), 'utf8'))
  return style
}

const LONG_GOAL = 600
const LINES_OF_GOAL = 12
const LONG_HEADLINE = 120

function head(data: ReportData, text: string): Html {
  const { goal, session, createdAt, updatedAt } = data
  const { tone, short } = headlineOf(data)
  const isLong = text.length > LONG_HEADLINE
  const title = isLong ? short : text
  const [from, to] = [Date.parse(createdAt), Date.parse(updatedAt)]
  const beginning = goal.slice(0, LONG_GOAL).split('\n').slice(0, LINES_OF_GOAL).join('\n')
  const shown =
    goal === beginning
      ? html`<p class="goal">${goal}</p>`
      : html`<div class="goal">${beginning.toWellFormed()}…<details><summary>the whole goal</summary>${goal}</details></div>`
  return html`<header>
<p class="kicker">codemachine · session ${session} · ${moment(from, formatDayAndTime(from))} to ${moment(to, formatMoment(to, from))}</p>
<h1 class="${tone}">${title.charAt(0).toUpperCase()}${title.slice(1)}</h1>
${isLong ? html`<p class="words">${text}</p>` : null}
${shown}
</header>`
}

function numbers(data: ReportData): Html {
  const { totals, changes, limits } = data
  const ahead = forecastInWords(data)
  const tasks = tasksInWords(data)
  const number = (name: string, value: string, note: string | null) =>
    html`<div><dt>${name}</dt><dd>${value}${note === null ? null : html`<small class="soft">${note}</small>`}</dd></div>`
  const again = totals.attempts > totals.rounds ? `${totals.attempts} started` : null
  return html`<dl class="numbers">
${number('Time', formatDuration(totals.durationMs), totals.waitedMs < 1000 ? null : `${formatDuration(totals.waitedMs)} of it waiting`)}
${number('Rounds', String(totals.rounds), [again ?? (limits.rounds === null ? null : `of at most ${limits.rounds}`), ahead].filter(each => each !== null).join('; ') || null)}
${number('Tokens', shortNumber(totals.tokens), cachedNote(data))}
${totals.cost === null ? null : number('Cost', formatCost(totals.cost.amount), limits.cost === undefined ? null : `of at most ${formatCost(limits.cost)}`)}
${number('Files changed', String(changes.files), moreOnChanges(data))}
${tasks === null ? null : number('Tasks', tasks.replace(/ done.*/, ''), tasks.replace(/^.* (?=done)/, ''))}
</dl>`
}

function cachedNote({ totals }: ReportData): string | null {
  const { input, cachedInput, output } = totals.tokensByKind
  if (output === 0 && input === 0) return null
  const cached = input === 0 ? '' : `${Math.round((100 * cachedInput) / input)} % of the input cached, `
  return `${cached}${shortNumber(output)} out`
}

function left(data: ReportData): Html {
  const entries = whatIsLeft(data)
  if (entries.length === 0) return html``
  return section(
    'What is left',
    items(entries.map(({ text, tone }) => html`<span class="${tone}">${prose(text)}</span>`)),
  )
}

function progress({ series }: ReportData): Html {
  const charts = chartsOf(series)
  if (charts.length === 0) return html``
  const isGrouped = series.some(({ rounds }) => rounds > 1)
  const hasFailed = series.some(({ failed }) => failed > 0)
  const hasWaited = series.some(({ limited }) => limited > 0)
  return section(
    'Over the rounds',
    html`<div class="charts">${charts.map(({ title, svg }) => html`<figure><h3>${title}</h3>${svg}</figure>`)}</div>${
      isGrouped || hasFailed || hasWaited
        ? html`<p class="soft last">${isGrouped ? 'A point stands for several rounds: their sum. ' : null}${hasFailed ? 'Red: rounds that failed. ' : null}${hasWaited ? 'Yellow: rounds that a limit or the network ended.' : null}</p>`
        : null
    }`,
  )
}

function commands(data: ReportData, place: CommandContext): Html {
  const list = commandsOf(data, place).map(({ command, what }) => html`<code>${command}</code><span>${what}</span>`)
  return html`<section class="commands"><h2>To look closer, and to undo</h2>${items(list)}</section>`
}

function questions({ questions }: ReportData): Html {
  if (questions.count === 0) return html``
  const list = questions.entries.map(
    ({ id, round, text, options, assumption }) =>
      html`<span class="strong">${id}</span> <small>round ${round}</small><div class="words">${text}</div>${
        options.length === 0 ? null : html`<div class="soft">to choose from: ${options.join(' · ')}</div>`
      }<div class="words"><span class="soft">assumed:</span> ${assumption}</div>`,
  )
  return section('Questions and assumptions', items(withGap(questions, list)))
}

function refusals({ refusals }: ReportData): Html {
  if (refusals.count === 0) return html``
  const list = refusals.entries.map(
    ({ round, reason, detail }) =>
      html`<small>round ${round}, ${reason.replaceAll('-', ' ')}</small><div class="words">${prose(detail)}</div>`,
  )
  return section('Claims of done that were refused', items(withGap(refusals, list)), true)
}

const TROUBLE_KINDS: Readonly<Record<ReportTrouble['kind'], { name: string; tone: Tone }>> = {
  wait: { name: 'wait', tone: 'plain' },
  failure: { name: 'failure', tone: 'bad' },
  'cut-off': { name: 'cut off', tone: 'bad' },
  held: { name: 'paused', tone: 'plain' },
  slept: { name: 'asleep', tone: 'plain' },
  stopped: { name: 'stopped', tone: 'plain' },
  stuck: { name: 'stuck', tone: 'warning' },
  limit: { name: 'limit', tone: 'warning' },
}

function trouble({ trouble, createdAt }: ReportData): Html {
  if (trouble.count === 0) return html``
  const rows = trouble.entries.map(({ kind, from, to, cause }, index) => {
    const before = Date.parse(trouble.entries[index - 1]?.from ?? createdAt)
    const [start, end] = [Date.parse(from), to === null ? null : Date.parse(to)]
    const span = end === null || end <= start ? '' : formatDuration(end - start)
    return html`<tr><td class="n">${timeOfDay(start, before)}</td><td class="n">${span}</td><td><span class="${TROUBLE_KINDS[kind].tone}">${TROUBLE_KINDS[kind].name}</span> <small>${cause}</small></td></tr>`
  })
  const gap = html`<tr class="gap"><td colspan="3">${trouble.leftOut} more, left out here</td></tr>`
  return section(
    'Waits and failures',
    html`<table class="rows"><thead><tr><th scope="col" class="n">when</th><th scope="col" class="n">how long</th><th scope="col">what</th></tr></thead><tbody>${withGap(trouble, rows, gap)}</tbody></table>`,
    true,
  )
}

function outputs({ outputs }: ReportData): Html {
  if (outputs.count === 0) return html``
  const list = outputs.entries.map(
    ({ name, file, bytes }) => html`<code>${file}</code> <small>${name}, ${formatBytes(bytes)}</small>`,
  )
  return section(OUTPUTS, folded(withGap(outputs, list)), true)
}

function sentences(title: string, sentences: ReportData['remarks']): Html {
  if (sentences.count === 0) return html``
  const list = sentences.entries.map(sentence => html`<span class="words">${prose(sentence)}</span>`)
  return section(title, items(withGap(sentences, list)))
}

function lastWords({ lastWords }: ReportData): Html {
  if (lastWords === null) return html``
  return section(
    'In the agent’s own words',
    html`<p class="soft">What it said last: a claim, and no proof.</p><div class="words">${lastWords}</div>`,
  )
}

function footer(data: ReportData): Html {
  const { directory, host, sandbox, network, model, effort, codex, codemachine } = data
  const providers = providersInWords(data.totals)
  const facts = [
    ...(model === null ? [] : [`model ${model}${effort === null ? '' : `, ${effort}`}`]),
    ...(providers === null ? [] : [providers]),
    `${sandbox}, network ${network ? 'on' : 'off'}`,
    ...(codex === null ? [] : [`codex ${codex}`]),
    `codemachine ${codemachine}`,
  ]
  return html`<footer><p>${directory} on ${host}<br>${facts.join(' · ')}<br>Made from the journal of the session alone. Times are those of the machine that made it.</p></footer>`
}

/** So many columns of a template's own table have equal widths: on a phone their words stay whole. */
const FEW = 4

/** What the template says of its own. */
function ownSection({ work }: ReportData): Html {
  if (work.section === null) return html``
  const { title, note, text, table: own } = work.section
  const rows = own?.rows.map(cells => html`<tr>${cells.map(cell => html`<td>${cell}</td>`)}</tr>`)
  return section(
    title,
    html`${note === null ? null : html`<p class="soft">${note}</p>`}${text === '' ? null : html`<div class="words">${prose(text)}</div>`}${own === undefined || rows === undefined ? null : table(own.head.length > FEW ? 'own' : 'own few', own.head, rows)}`,
    true,
  )
}

/** The template's own board; of a plan its tasks, its agents, and the plans that were refused. */
function boardSections({ work, build }: ReportData): Html {
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
    html`${table('tasks', ['id', 'what', 'how it stands'], rows)}${left === null ? null : html`<p class="soft last">${left}</p>`}`,
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

function refusedPlans({ refusals }: ReportBuild): Html {
  if (refusals.count === 0) return html``
  const list = refusals.entries.map(
    ({ round, problem }) => html`<small>round ${round}</small><div class="words">${problem}</div>`,
  )
  return section('Plans that could not be used', items(withGap(refusals, list)), true)
}

/** A list of which the entries after the first ten are folded away. */
function folded(list: readonly Html[]): Html {
  if (list.length <= FOLD_AFTER + 2) return items(list)
  const rest = list.slice(FOLD_AFTER)
  return html`${items(list.slice(0, FOLD_AFTER))}<details><summary>${rest.length} more</summary>${items(rest)}</details>`
}

const FOLD_AFTER = 10

/** The entries with a note in the place of what was left out. */
function withGap<T>(
  { leftOut, leftOutAfter }: Shortened<T>,
  list: readonly Html[],
  note: Html = html`<span class="quiet">${leftOut} more, left out here</span>`,
): Html[] {
  return leftOut === 0 ? [...list] : [...list.slice(0, leftOutAfter), note, ...list.slice(leftOutAfter)]
}

/** A moment in a table: the time of day, and the day too where it is not that of the moment `before`. */
function timeOfDay(at: number, before: number): Html {
  const [day = '', time = ''] = formatDayAndTime(at).split(' ')
  const isNew = day !== formatDayAndTime(before).slice(0, 10)
  return html`${moment(at, time)}${isNew ? html`<small>${day.slice(5)}</small>` : null}`
}

/** Which files and lines have changed, and which commits were made. */
function changesSection(data: ReportData, { areSavepointsGone = false } = {}): Html {
  const { changes } = data
  const { paths, files, commits, from, start, now, byGates } = changes
  const ofGates = new Set(byGates)
  const hasLines = from === 'savepoints'
  const lines = (count: number | null, sign: string) =>
    count === null ? 'not text' : count === 0 ? '' : `${sign}${count}`
  const rows = paths.map(
    ({ path, added, removed }) =>
      html`<tr><td>${path}${ofGates.has(path) ? html`<small>by a gate</small>` : null}</td>${
        hasLines
          ? html`<td class="n"><span class="good">${lines(added, '+')}</span></td><td class="n"><span class="bad">${added === null ? '' : lines(removed, '−')}</span></td>`
          : null
      }</tr>`,
  )
  const table = html`<table class="files"><thead><tr><th scope="col">file</th>${
    hasLines ? html`<th scope="col" class="n">added</th><th scope="col" class="n">removed</th>` : null
  }</tr></thead><tbody>${rows}</tbody></table>`
  const made = commits.entries.map(({ commit, subject }) => html`<code>${commit.slice(0, 10)}</code> ${subject}`)
  const more = files - paths.length
  const unseen = notKeptInWords(data)
  return section(
    'What changed',
    html`${paths.length === 0 ? html`<p class="quiet">${noPathsInWords(changes)}</p>` : table}${
      more > 0 ? html`<p class="quiet">and ${more} more files</p>` : null
    }${hasLines || paths.length === 0 ? null : html`<p class="soft last">As the rounds told it; there are no savepoints to compare.</p>`}${
      made.length === 0 ? null : html`<h3>Commits</h3>${folded(withGap(commits, made))}`
    }${unseen === null ? null : html`<p class="soft">${unseen}</p>`}${
      start === null || now === null
        ? null
        : html`<p class="soft last">From the tree <code>${start.tree.slice(0, 12)}</code> to <code>${now.tree.slice(0, 12)}</code>; ${changes.savepoints} savepoints${areSavepointsGone ? ', which were pruned' : null}.</p>`
    }`,
    true,
  )
}

/** The section on the proof: gates, reviews, findings and protected files. */
export function proofSection(data: ReportData): Html {
  const { proof } = data
  const none = noGateInWords(data, 'the work')
  const { gates, reviews, findings, findingsCount, protectedFiles, protectedCount, tree } = proof
  const reviewed = reviews.entries.map(review => {
    const { text, tone } = reviewInWords(review)
    return html`<span class="${tone}">${text}</span> <small>after round ${review.round}, ${formatDuration(review.durationMs)}</small>${review.summary === '' ? null : html`<div class="words">${prose(review.summary)}</div>`}`
  })
  const notes = notesOnProof({ proof }).map(({ text, tone }) => html`<span class="${tone}">${text}</span>`)
  const more = findingsCount - findings.length
  return section(
    'Proof',
    html`${
      none === null ? items(gates.map(gateItem)) : html`<p class="quiet">${capital(none)}.</p>`
    }${notes.length === 0 ? null : html`<h3>To know</h3>${items(notes)}`}${reviewed.length === 0 ? null : html`<h3>Reviews</h3>${items(withGap(reviews, reviewed))}`}${
      findings.length === 0
        ? null
        : html`<h3>Open findings</h3>${items([
            ...findings.map(findingItem),
            ...(more > 0 ? [html`<span class="quiet">and ${more} more</span>`] : []),
          ])}`
    }${
      protectedCount === 0
        ? null
        : html`<h3>Protected, and changed</h3>${items([
            ...protectedFiles.map(
              ({ path, how, round }) =>
                html`<code>${path}</code> <small>${how === 'skipped' ? 'tests marked to be skipped' : how} in round ${round}</small>`,
            ),
            ...(protectedCount > protectedFiles.length
              ? [html`<span class="quiet">and ${protectedCount - protectedFiles.length} more</span>`]
              : []),
          ])}`
    }${tree === null ? null : html`<p class="soft last">Accepted for the tree <code>${tree}</code></p>`}`,
    true,
  )
}

function gateItem(gate: ReportGate): Html {
  const { name, run, last, runs, flaky, failed } = gate
  const before = beforeInWords(gate)
  const history = [
    ...(before === null ? [] : [before]),
    ...(runs > 1 && failed + flaky > 0
      ? [`of ${runs} runs ${[...timesOf(failed, 'failed'), ...timesOf(flaky, 'flaky')].join(', ')}`]
      : []),
  ]
  const shown = last?.output.trim() ?? ''
  const problem = last?.problem ?? null
  return html`<code>${name}</code> <span class="${toneOfGate(gate)}">${gateInWords(gate)}</span>${
    run === null || run === name ? null : html`<small> ${run}</small>`
  }${problem === null ? null : html`<div class="words">${problem}</div>`}${
    history.length === 0 ? null : html`<div class="soft">${history.join('; ')}</div>`
  }${shown === '' ? null : html`<details open><summary>the end of what it printed</summary><pre>${shown}</pre></details>`}`
}

function timesOf(count: number, how: string): string[] {
  return count === 0 ? [] : [`${count} ${how}`]
}

function findingItem(finding: ReportData['proof']['findings'][number]): Html {
  const { severity, problem, mend, repeated } = finding
  const place = finding.file === null ? null : html`<code>${placeOf(finding)}</code> `
  return html`<span class="${SEVERITY_TONES[severity]}">${severity}</span> ${place}${
    repeated ? html`<small>found before, and left to you</small>` : null
  }<div class="words">${prose(problem)}</div><div class="words soft">${prose(mend)}</div>`
}

/** The table of rounds; of many, the first and the last ones, and the sum of those between. */
function roundsSection({ rounds, createdAt }: ReportData): Html {
  if (rounds.count === 0) return html``
  const { durationMs, tokens, failed } = rounds.leftOutSums
  const gap = html`<tr class="gap"><td class="n">…</td><td></td><td class="n">${formatDuration(durationMs)}</td><td class="n">${shortNumber(tokens)}</td><td></td><td>${rounds.leftOut} rounds left out here, ${failed} of them failed</td></tr>`
  const before = (index: number) => Date.parse(rounds.entries[index - 1]?.startedAt ?? createdAt)
  const rows = rounds.entries.map((round, index) => rowOf(round, before(index), rounds))
  const table = html`<table class="rows rounds"><thead><tr><th scope="col" class="n" aria-label="round">no.</th><th scope="col" class="n">start</th><th scope="col" class="n">time</th><th scope="col" class="n">tokens</th><th scope="col" class="n">files</th><th scope="col">outcome</th></tr></thead><tbody>${withGap(rounds, rows, gap)}</tbody></table>`
  // On a phone hundreds of them are a long way to what comes after.
  const body =
    rounds.count <= MOST_OPEN
      ? table
      : html`<details><summary>${rounds.count} rounds, one by one</summary>${table}</details>`
  return section('Rounds', body, true)
}

const MOST_OPEN = 30

/** The day is said where it is not that of the moment `before`. */
function rowOf(round: ReportRound, before: number, all: ReportData['rounds']): Html {
  const at = Date.parse(round.startedAt)
  const tasks = round.tasks === null ? null : html`<small>${round.tasks.done} of ${round.tasks.total} tasks</small>`
  return html`<tr><td class="n">${numberOfRow(round)}</td><td class="n">${timeOfDay(at, before)}</td><td class="n">${formatDuration(round.durationMs)}</td><td class="n">${round.tokens === null ? '' : shortNumber(round.tokens)}</td><td class="n">${round.files}</td><td><span class="${toneOf(round)}">${outcomeOfRow(round, all)}</span>${tasks}</td></tr>`
}

function toneOf({ outcome, claim }: ReportRound): string {
  if (claim === 'accepted') return 'good'
  if (outcome === 'worked') return claim === 'refused' ? 'warning' : 'plain'
  return outcome === null || outcome === 'interrupted' ? 'warning' : 'bad'
}
