import type { Tone } from '../ui/description.ts'
import { formatCount } from '../ui/format-count.ts'
import { formatDuration } from '../ui/format-duration.ts'
import { formatDayAndTime, formatMoment } from '../ui/format-time.ts'
import { shortNumber } from '../ui/format-tokens.ts'
import { chartsOf } from './charts.ts'
import { Html, html } from './escape.ts'
import { byGatesInWords, tasksInWords } from './facts-in-words.ts'
import { headlineOf } from './headline.ts'
import { builtSection, teamSections } from './page-build.ts'
import { changesSection } from './page-changes.ts'
import { gapItem, items, moment, prose, section, timeOfDay } from './page-parts.ts'
import { proofSection } from './page-proof.ts'
import { roundsSection } from './page-rounds.ts'
import { PAGE_STYLE } from './page-style.ts'
import { type CommandPlace, commandsOf } from './report-commands.ts'
import type { ReportData, ReportTrouble } from './report-data.ts'
import { whatIsLeft } from './what-is-left.ts'

/**
 * The report as one page that needs nothing else: no script, no request. What came from outside is shown as text, and
 * nothing of it is a link; the policy in its head forbids the rest.
 */
export function htmlOf(data: ReportData, place: CommandPlace): string {
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
<style>${new Html(PAGE_STYLE)}</style>
</head>
<body>
<main>
${head(data, text)}
${numbers(data)}
${builtSection(data)}
${left(data)}
${proofSection(data)}
${commands(data, place)}
${progress(data)}
${teamSections(data)}
${changesSection(data, place)}
${questions(data)}
${refusals(data)}
${trouble(data)}
${remarks(data)}
${lastWords(data)}
${roundsSection(data)}
</main>
${footer(data)}
</body>`.text
}
</html>
`
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
  const tasks = tasksInWords(data)
  const number = (name: string, value: string, note: string | null) =>
    html`<div><dt>${name}</dt><dd>${value}${note === null ? null : html`<small class="soft">${note}</small>`}</dd></div>`
  const lines = changes.from === 'rounds' ? null : `+${changes.added} −${changes.removed} lines`
  const commits = changes.commits.count === 0 ? null : formatCount(changes.commits.count, 'commit')
  const again = totals.attempts > totals.rounds ? `${totals.attempts} started` : null
  return html`<dl class="numbers">
${number('Time', formatDuration(totals.durationMs), totals.waitedMs < 1000 ? null : `${formatDuration(totals.waitedMs)} of it waiting`)}
${number('Rounds', String(totals.rounds), again ?? (limits.rounds === null ? null : `of at most ${limits.rounds}`))}
${number('Tokens', shortNumber(totals.tokens), cachedNote(data))}
${number('Files changed', String(changes.files), [lines, commits, byGatesInWords(changes)].filter(each => each !== null).join(', ') || null)}
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
    html`<div class="charts">${charts.map(
      ({ title, svg }) => html`<figure><h3>${title}</h3>${new Html(svg)}</figure>`,
    )}</div>${
      isGrouped || hasFailed || hasWaited
        ? html`<p class="soft last">${isGrouped ? 'A point stands for several rounds: their sum. ' : null}${hasFailed ? 'Red: rounds that failed. ' : null}${hasWaited ? 'Yellow: rounds that a limit or the network ended, and that were tried again.' : null}</p>`
        : null
    }`,
  )
}

function commands(data: ReportData, place: CommandPlace): Html {
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
  return section('Questions and assumptions', items(gapItem(questions, list)))
}

function refusals({ refusals }: ReportData): Html {
  if (refusals.count === 0) return html``
  const list = refusals.entries.map(
    ({ round, reason, detail }) =>
      html`<small>round ${round}, ${reason.replaceAll('-', ' ')}</small><div class="words">${prose(detail)}</div>`,
  )
  return section('Claims of done that were refused', items(gapItem(refusals, list)), true)
}

const KINDS: Readonly<Record<ReportTrouble['kind'], { name: string; tone: Tone }>> = {
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
    return html`<tr><td class="n">${timeOfDay(start, before)}</td><td class="n">${span}</td><td><span class="${KINDS[kind].tone}">${KINDS[kind].name}</span> <small>${cause}</small></td></tr>`
  })
  const gap = html`<tr class="gap"><td colspan="3">${trouble.leftOut} more, left out here</td></tr>`
  return section(
    'Waits and failures',
    html`<table class="rows"><thead><tr><th scope="col" class="n">when</th><th scope="col" class="n">how long</th><th scope="col">what</th></tr></thead><tbody>${gapItem(trouble, rows, gap)}</tbody></table>`,
    true,
  )
}

function remarks({ remarks }: ReportData): Html {
  if (remarks.count === 0) return html``
  const list = remarks.entries.map(remark => html`<span class="words">${prose(remark)}</span>`)
  return section('Remarks', items(gapItem(remarks, list)))
}

function lastWords({ lastWords }: ReportData): Html {
  if (lastWords === null) return html``
  return section(
    'In the agent’s own words',
    html`<p class="soft">What it said last: a claim, and no proof.</p><div class="words">${lastWords}</div>`,
  )
}

function footer({ directory, host, sandbox, network, model, effort, codex, codemachine }: ReportData): Html {
  const facts = [
    ...(model === null ? [] : [`model ${model}${effort === null ? '' : `, ${effort}`}`]),
    `${sandbox}, network ${network ? 'on' : 'off'}`,
    ...(codex === null ? [] : [`codex ${codex}`]),
    `codemachine ${codemachine}`,
  ]
  return html`<footer><p>${directory} on ${host}<br>${facts.join(' · ')}<br>Made from the journal of the session alone. Times are those of the machine that made it.</p></footer>`
}
