import { readFileSync } from 'node:fs'
import { packageFile } from '../../../base/package.ts'
import { formatBytes } from '../../../base/text.ts'
import { refusalForPerson } from '../../../core/rules/refusals.ts'
import { wordsForAdopted } from '../../words/adopted.ts'
import type { Tone } from '../../words/names.ts'
import { formatCost, formatDayAndTime, formatDuration, formatMoment, shortNumber } from '../../words/numbers.ts'
import { type CommandContext, commandsOf } from '../commands.ts'
import { lookAtFirst } from '../look-first.ts'
import type { ReportData, ReportRound, ReportTrouble } from '../report-data.ts'
import {
  enginesInWords,
  forecastInWords,
  headlineOf,
  numberOfRow,
  OUTPUTS,
  outcomeOfRow,
  providersInWords,
  tasksInWords,
  toneOfRound,
} from '../words.ts'
import { moreOnChanges } from '../words-of-changes.ts'
import { boardSections, ownSection } from './board.ts'
import { changesSection, type PageExtras } from './changes.ts'
import { type Chart, chartsOf } from './charts.ts'
import { contractSection } from './contract.ts'
import { folded, Html, html, items, moment, prose, section, timeOfDay, withGap } from './html.ts'
import { markdownHtml } from './markdown.ts'
import { proofSection } from './proof.ts'
import { timelineSection } from './timeline.ts'

const JOURNAL_ALONE: PageExtras = { diffs: null, commits: null }

/**
 * The report as one HTML page without scripts or requests. Texts from outside are escaped, and the content security
 * policy in its head forbids everything else. The only links are those to commits.
 */
export function htmlOf(data: ReportData, place: CommandContext, extras: PageExtras = JOURNAL_ALONE): string {
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
${first(data)}
${contractSection(data)}
${proofSection(data)}
${ownSection(data.work.section)}
${changesSection(data, extras, place)}
${boardSections(data)}
${refusals(data)}
${questions(data)}
${numbers(data)}
${timelineSection(data)}
${trouble(data)}
${roundsSection(data)}
${commands(data, place)}
${outputs(data)}
${sentences('Notes', { ...data.notes, entries: data.notes.entries.map(({ text }) => text) })}
${sentences('Remarks', data.remarks)}
${lastWords(data)}
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

const LONG_GOAL = 300
const LINES_OF_GOAL = 3
const LONG_HEADLINE = 120

function head(data: ReportData, text: string): Html {
  const { goal, adopted, session, createdAt, updatedAt } = data
  const { tone, short } = headlineOf(data)
  const isLong = text.length > LONG_HEADLINE
  const title = isLong ? short : text
  const [from, to] = [Date.parse(createdAt), Date.parse(updatedAt)]
  const beginning = goal.slice(0, LONG_GOAL).split('\n').slice(0, LINES_OF_GOAL).join('\n')
  const shown =
    goal === beginning
      ? html`<p class="goal">${goal}</p>`
      : html`<div class="goal">${beginning.toWellFormed()}…<details><summary>the whole goal</summary>${goal}</details></div>`
  const isOutlined =
    data.outcome?.kind === 'done' && (data.outcome.proof ?? (data.outcome.verified ? 'gates' : 'none')) === 'gates'
  return html`<header>
<p class="kicker">codemachine · session ${session} · ${moment(from, formatDayAndTime(from))} to ${moment(to, formatMoment(to, from))}</p>
<h1 class="${tone}${isOutlined ? ' outlined' : ''}">${title.charAt(0).toUpperCase()}${title.slice(1)}</h1>
${adopted === null ? null : html`<p class="words">Continues from ${wordsForAdopted(adopted, from)}</p>`}
${isLong ? html`<p class="words">${text}</p>` : null}
${shown}
</header>`
}

/** The numbers of the session, each with its chart over the rounds where there is one. */
function numbers(data: ReportData): Html {
  const { totals, changes, limits } = data
  const ahead = forecastInWords(data)
  const tasks = tasksInWords(data)
  const [time, tokens, progress] = chartsOf(data.series)
  const isOfTasks = progress !== undefined && tasks !== null && /^Tasks/.test(progress.title)
  const again = totals.attempts > totals.rounds ? `and ${totals.attempts - totals.rounds} that did not count` : null
  const most = limits.rounds === null ? null : `of at most ${limits.rounds}`
  return html`<dl class="numbers">
${number('Time', formatDuration(totals.durationMs), totals.waitedMs < 1000 ? null : `${formatDuration(totals.waitedMs)} of it waiting`, time)}
${number('Tokens', shortNumber(totals.tokens), cachedNote(data), tokens)}
${tasks === null ? null : number('Tasks', tasks.replace(/ done.*/, ''), tasks.replace(/^.* (?=done)/, ''), isOfTasks ? progress : undefined)}
${number('Files changed', String(changes.files), moreOnChanges(data), isOfTasks ? undefined : progress)}
${number('Rounds', String(totals.rounds), [again ?? most, ahead].filter(each => each !== null).join('; ') || null)}
${totals.cost === null ? null : number('Cost', formatCost(totals.cost.amount), costNote(data))}
</dl>${notesOnCharts(data)}`
}

function number(name: string, value: string, note: string | null, chart?: Chart): Html {
  const told = html`<dt>${name}</dt><dd>${value}${note === null ? null : html`<small class="soft">${note}</small>`}</dd>`
  if (chart === undefined) return html`<div>${told}</div>`
  return html`<div class="charted">${told}<dd><figure><h3>${chart.title}</h3>${chart.svg}</figure></dd></div>`
}

function costNote({ totals: { cost }, limits }: ReportData): string | null {
  const unpriced = cost?.unpriced ?? 0
  const notes = [
    ...(limits.cost === undefined ? [] : [`of at most ${formatCost(limits.cost)}`]),
    ...(unpriced === 0 ? [] : [`without ${shortNumber(unpriced)} tokens that have no price`]),
  ]
  return notes.join(', ') || null
}

/** What the colours of the charts are; nothing where they have but one. */
function notesOnCharts({ series }: ReportData): Html | null {
  const notes = [
    ...(series.some(({ rounds }) => rounds > 1) ? ['Each point is the sum of several rounds.'] : []),
    ...(series.some(({ failed }) => failed > 0) ? ['Red: rounds that failed.'] : []),
    ...(series.some(({ limited }) => limited > 0)
      ? ['Yellow: rounds that ended because of a limit or the network.']
      : []),
  ]
  return notes.length === 0 ? null : html`<p class="soft charts-note">${notes.join(' ')}</p>`
}

function cachedNote({ totals }: ReportData): string | null {
  const { input, cachedInput, output } = totals.tokensByKind
  if (output === 0 && input === 0) return null
  const cached = input === 0 ? '' : `${Math.round((100 * cachedInput) / input)} % of the input cached, `
  return `${cached}${shortNumber(output)} out`
}

function first(data: ReportData): Html {
  const entries = lookAtFirst(data)
  if (entries.length === 0) return html``
  return section(
    'Look at this first',
    items(entries.map(({ text, tone }) => html`<span class="${tone}">${prose(text)}</span>`)),
  )
}

function commands(data: ReportData, place: CommandContext): Html {
  const list = commandsOf(data, place).map(({ command, what }) => html`<code>${command}</code><span>${what}</span>`)
  return html`<section class="commands"><h2>To look closer, and to undo</h2>${items(list)}</section>`
}

function questions({ questions }: ReportData): Html {
  if (questions.count === 0) return html``
  const list = questions.entries.map(
    ({ id, round, text, options, assumption, answered }) =>
      html`<span class="strong">${id}</span> <small>round ${round}</small><div class="words">${text}</div>${
        options.length === 0 ? null : html`<div class="soft">to choose from: ${options.join(' · ')}</div>`
      }<div class="words"><span class="soft">${answered ? 'assumed until you answered:' : 'assumed:'}</span> ${assumption}</div>`,
  )
  return section('Questions and assumptions', items(withGap(questions, list)))
}

function refusals({ refusals }: ReportData): Html {
  if (refusals.count === 0) return html``
  const list = refusals.entries.map(
    ({ round, reason, detail }) =>
      html`<small>round ${round}, ${reason.replaceAll('-', ' ')}</small><div class="words">${prose(refusalForPerson({ reason, detail }).fact)}</div>`,
  )
  return section('Claims that were not accepted', items(withGap(refusals, list)), true)
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
    html`<p class="soft">The last message of the agent. It is a claim, not a proof.</p>${markdownHtml(lastWords)}`,
    true,
  )
}

function footer(data: ReportData): Html {
  const { directory, host, sandbox, network, model, effort, codex, codemachine } = data
  const providers = providersInWords(data.totals)
  const engines = enginesInWords(data)
  const facts = [
    ...(model === null ? [] : [`model ${model}${effort === null ? '' : `, ${effort}`}`]),
    ...(providers === null ? [] : [providers]),
    ...(engines === null ? [] : [`engines: ${engines}`]),
    `${sandbox}, network ${network ? 'on' : 'off'}`,
    ...(codex === null ? [] : [`codex ${codex}`]),
    `codemachine ${codemachine}`,
  ]
  return html`<footer><p>${directory} on ${host}<br>${facts.join(' · ')}<br>Made from the session's journal and savepoints. Times are in the time zone of the machine that made this report.</p></footer>`
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
  return html`<tr><td class="n">${numberOfRow(round)}</td><td class="n">${timeOfDay(at, before)}</td><td class="n">${formatDuration(round.durationMs)}</td><td class="n">${round.tokens === null ? '' : shortNumber(round.tokens)}</td><td class="n">${round.files}</td><td><span class="${toneOfRound(round)}">${outcomeOfRow(round, all)}</span>${tasks}</td></tr>`
}
