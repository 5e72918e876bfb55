import { type ScaleLinear, scaleLinear } from 'd3-scale'
import { refusalForPerson } from '../../../core/rules/refusals.ts'
import type { Tone } from '../../words/names.ts'
import { formatClock, formatCount, formatDayAndTime, formatTime } from '../../words/numbers.ts'
import { oneLine } from '../../words/safe-text.ts'
import type { ReportData, ReportTrouble, Shortened } from '../report-data.ts'
import { headlineOf, numberOfRow, outcomeOfRow, toneOfRound } from '../words.ts'
import { Html, html, moment } from './html.ts'

/** How something is drawn, so that it can be told without colours: whole, with an outline alone, half as high, or as a sign. */
type Shape = 'solid' | 'outline' | 'low' | { sign: string }

const LANES = ['rounds', 'gates', 'waits', 'signs'] as const

/** Something that happened: `to` is null for what has no length. Both in Unix time, ms. */
interface Happening {
  lane: (typeof LANES)[number]
  from: number
  to: number | null
  shape: Shape
  tone: Tone
  text: string
}

/**
 * Rounds, gates, reviews, waits, refusals and questions over the time of the session, to the second: as a drawing that can be
 * drawn out up to 64 times as wide, and as a list. Needs no script.
 */
export function timelineSection(data: ReportData): Html {
  const happenings = happeningsOf(data)
  if (happenings.length === 0) return html``
  const [from, to] = [Date.parse(data.createdAt), Date.parse(data.updatedAt)]
  const x = timeScale(from, Math.max(to, from + 1000), pausesOf(data))
  const zooms = ZOOMS.filter(zoom => zoom === 1 || to - from > zoom * LEAST_SHOWN_MS)
  const name = `Timeline from ${formatDayAndTime(from)} to ${formatDayAndTime(to)}`
  const lanes = LANES.filter(lane => happenings.some(each => each.lane === lane))
  const height = AXIS + LANE * lanes.length
  const drawing = html`<svg role="img" aria-label="${name}" height="${height}"><title>${name}</title><desc>${describe(data)}</desc>${[
    html`<g stroke="var(--chart-grid)">${lanes.map((_, at) => html`<path d="M0 ${laneTop(at) + LANE - 3}H99999"/>`)}</g>`,
    ...zooms.map(zoom => ticksOf(x, zoom, height)),
    ...happenings.map(each => drawn(each, x, laneTop(lanes.indexOf(each.lane)))),
  ]}</svg>`
  const left = leftOutInWords(data)
  return html`<section class="timeline"><h2>Timeline</h2>${zooms.map(zoomSwitch)}<div class="lanes"><div class="names" aria-hidden="true">${lanes.map(lane => html`<span>${lane}</span>`)}</div><div class="pan" tabindex="0" role="group" aria-label="Timeline; scroll sideways">${drawing}</div></div>
<p class="soft legend">Filled: worked, or passed. Outlined: failed. Low: a wait, or ended by a limit. ${SIGNS_IN_WORDS}${left === null ? null : html` ${left}`}</p>
<details><summary>${formatCount(happenings.length, 'moment')}, to the second</summary>${listOf(happenings, from)}</details></section>`
}

const ZOOMS = [1, 4, 16, 64] as const
/** Where all is seen, nothing is gained by drawing out less than this, ms. */
const LEAST_SHOWN_MS = 10_000

const LANE = 26
const AXIS = 20

function laneTop(at: number): number {
  return AXIS + at * LANE
}

function zoomSwitch(zoom: number): Html {
  const id = `zoom-${zoom}`
  const checked = zoom === 1 ? new Html(' checked') : null
  return html`<input type="radio" name="zoom" id="${id}"${checked}><label for="${id}">${zoom === 1 ? 'all of it' : `× ${zoom}`}</label>`
}

const SIGNS = { refused: '✗', asked: '?', trouble: '!', accepted: '✓', ended: '■' }
const SIGNS_IN_WORDS = '✗ a claim was not accepted, ? the agent asked, ! no progress, ✓ done, ■ the end.'

function happeningsOf(data: ReportData): Happening[] {
  const { refusals, questions, outcome, updatedAt } = data
  const sign = (at: string, sign: string, tone: Tone, text: string): Happening => ({
    lane: 'signs',
    from: Date.parse(at),
    to: null,
    shape: { sign },
    tone,
    text,
  })
  const { text, tone } = headlineOf(data)
  const all = [
    ...roundsOf(data),
    ...provings(data),
    ...data.trouble.entries.flatMap(troubleOf),
    ...refusals.entries.map(({ at, round, reason, detail }) =>
      sign(
        at,
        SIGNS.refused,
        'warning',
        `not accepted in round ${round}: ${refusalForPerson({ reason, detail }).fact}`,
      ),
    ),
    ...questions.entries.map(({ at, id, text }) => sign(at, SIGNS.asked, 'plain', `${id}: ${text}`)),
    ...(outcome === null ? [] : [sign(updatedAt, outcome.kind === 'done' ? SIGNS.accepted : SIGNS.ended, tone, text)]),
  ]
  return all.filter(({ from }) => Number.isFinite(from)).sort((a, b) => a.from - b.from)
}

/** The rounds, and one block for those that the report leaves out. */
function roundsOf({ rounds }: ReportData): Happening[] {
  const drawn = rounds.entries.map((round): Happening => {
    const from = Date.parse(round.startedAt)
    const isLimited = WAITS.has(round.outcome ?? '')
    // A refused claim has a sign of its own.
    const tone = isLimited
      ? 'warning'
      : round.claim === 'refused' && round.outcome === 'worked'
        ? 'plain'
        : toneOfRound(round)
    const number = numberOfRow(round)
    const shape = isLimited ? 'low' : tone === 'bad' ? 'outline' : 'solid'
    const name = number === '–' ? '' : `round ${number}: `
    return { lane: 'rounds', from, to: from + round.durationMs, shape, tone, text: name + outcomeOfRow(round, rounds) }
  })
  const [last, next] = [drawn[rounds.leftOutAfter - 1], drawn[rounds.leftOutAfter]]
  if (rounds.leftOut === 0 || last === undefined || next === undefined) return drawn
  const text = `${formatCount(rounds.leftOut, 'round')} that the report leaves out`
  return [...drawn, { lane: 'rounds', from: last.to ?? last.from, to: next.from, shape: 'low', tone: 'quiet', text }]
}

/** Classes of a round that a wait mends. */
const WAITS: ReadonlySet<string> = new Set(['window', 'throttle', 'network'])

function provings({ gateRuns, proof }: ReportData): Happening[] {
  const gates = gateRuns.entries.map((run): Happening => {
    const hasPassed = run.status === 'passed' || run.status === 'flaky'
    return {
      lane: 'gates',
      from: Date.parse(run.from),
      to: Date.parse(run.to),
      shape: hasPassed ? 'solid' : 'outline',
      tone: run.status === 'passed' ? 'good' : hasPassed ? 'warning' : 'bad',
      text: `gate ${run.gate}: ${run.status.replace('-', ' ')}`,
    }
  })
  const reviews = proof.reviews.entries.map(({ review, at, durationMs, verdict }): Happening => {
    const hasAgreed = verdict === 'agreed'
    return {
      lane: 'gates',
      from: Date.parse(at) - durationMs,
      to: Date.parse(at),
      shape: hasAgreed ? 'solid' : 'outline',
      tone: hasAgreed ? 'good' : 'warning',
      text: `review ${review}: ${verdict ?? 'no answer'}`,
    }
  })
  return [...gates, ...reviews]
}

function troubleOf({ kind, round, from, to, cause }: ReportTrouble): Happening[] {
  // The round itself is drawn.
  if ((kind === 'failure' || kind === 'stopped') && cause.startsWith(`round ${round}:`)) return []
  if (to === null && kind !== 'wait' && kind !== 'held') {
    const shape = { sign: SIGNS.trouble }
    return [{ lane: 'signs', from: Date.parse(from), to: null, shape, tone: 'warning', text: cause }]
  }
  const isBad = kind === 'failure' || kind === 'cut-off'
  const tone = isBad ? 'bad' : 'warning'
  return [
    {
      lane: 'waits',
      from: Date.parse(from),
      to: to === null ? null : Date.parse(to),
      shape: isBad ? 'outline' : 'low',
      tone,
      text: `${kind.replace('-', ' ')}: ${cause}`,
    },
  ]
}

/** Times in which nothing ran, because codemachine did not; in order, and apart from each other. */
function pausesOf({ trouble }: ReportData): { from: number; to: number }[] {
  const pauses: { from: number; to: number }[] = []
  for (const { kind, from, to, cause, round } of trouble.entries) {
    if (to === null || (kind !== 'cut-off' && kind !== 'stopped') || cause.startsWith(`round ${round}:`)) continue
    const pause = { from: Math.max(Date.parse(from), pauses.at(-1)?.to ?? 0), to: Date.parse(to) }
    if (pause.to > pause.from) pauses.push(pause)
  }
  return pauses
}

/** Where a moment lies, in percent of the width. A long pause takes a tenth of the time around it, so that a week away leaves the night to be seen. */
function timeScale(
  from: number,
  to: number,
  pauses: readonly { from: number; to: number }[],
): ScaleLinear<number, number> {
  const inside = pauses.filter(pause => pause.from > from && pause.to < to)
  const active = to - from - inside.reduce((sum, pause) => sum + pause.to - pause.from, 0)
  const domain = [from]
  const widths = [0]
  const until = (at: number, most: number) => {
    widths.push((widths.at(-1) ?? 0) + Math.min(most, at - (domain.at(-1) ?? at)))
    domain.push(at)
  }
  for (const pause of inside) {
    until(pause.from, Number.POSITIVE_INFINITY)
    until(pause.to, active / 10)
  }
  until(to, Number.POSITIVE_INFINITY)
  const all = widths.at(-1) || 1
  return scaleLinear(
    domain,
    widths.map(width => EDGE + ((100 - 2 * EDGE) * width) / all),
  ).clamp(true)
}

/** Percent that stay free on each side, for signs. */
const EDGE = 2.5

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const STEPS = [
  ...[1, 2, 5, 10, 15, 30].map(count => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map(count => count * MINUTE),
  ...[1, 2, 3, 6, 12].map(count => count * HOUR),
  ...[1, 2, 7, 14, 28, 91, 182, 364].map(count => count * DAY),
]
const TICKS = 5

/** Times of day above the lanes, as many as have room in that zoom. */
function ticksOf(x: ScaleLinear<number, number>, zoom: number, height: number): Html {
  const [from = 0, to = 0] = [x.domain()[0], x.domain().at(-1)]
  // Of what is drawn shorter than it was, a part of the width is enough for a step.
  const perPercent = Math.min(...segmentsOf(x).map(({ ms, width }) => ms / width))
  const least = (perPercent * (100 - 2 * EDGE)) / (TICKS * zoom)
  const step = STEPS.find(each => each >= least) ?? DAY * 364
  const width = (step < MINUTE ? WIDTH_WITH_SECONDS : WIDTH) / zoom
  const midnight = new Date(from).setHours(0, 0, 0, 0)
  const marks: Html[] = []
  let last = Number.NEGATIVE_INFINITY
  for (
    let at = midnight + Math.ceil((from - midnight) / step) * step;
    at <= to && marks.length < MOST_TICKS;
    at += step
  ) {
    const place = x(at)
    const isLeft = place > 100 - width
    // Where its name begins: on a phone no two of them may touch.
    const begin = isLeft ? place - width : place
    if (begin < last) continue
    last = begin + width
    const shown = place.toFixed(4)
    marks.push(
      html`<line x1="${shown}%" x2="${shown}%" y1="4" y2="${height}"/><text x="${shown}%" y="13"${isLeft ? TO_THE_LEFT : TO_THE_RIGHT}>${tickName(at, step)}</text>`,
    )
  }
  return html`<g class="tick tick-${zoom}">${marks}</g>`
}

const MOST_TICKS = 500
/** What a time of day takes of the width of a phone, percent. */
const WIDTH = 16
const WIDTH_WITH_SECONDS = 24
const TO_THE_LEFT = new Html(' dx="-3" text-anchor="end"')
const TO_THE_RIGHT = new Html(' dx="3"')

function segmentsOf(x: ScaleLinear<number, number>): { ms: number; width: number }[] {
  const [domain, range] = [x.domain(), x.range()]
  return domain.slice(1).map((at, index) => ({
    ms: at - (domain[index] ?? at),
    width: Math.max(1e-9, (range[index + 1] ?? 0) - (range[index] ?? 0)),
  }))
}

function tickName(at: number, step: number): string {
  const day = formatDayAndTime(at)
  if (step >= DAY || day.endsWith('00:00')) return day.slice(5, 10)
  return step < MINUTE ? formatTime(at) : day.slice(11)
}

const FILLS: Readonly<Record<Tone, string>> = {
  good: 'good',
  warning: 'wait',
  bad: 'bad',
  strong: 'bar',
  plain: 'bar',
  quiet: 'ink',
}

function drawn({ from, to, shape, tone, text }: Happening, x: ScaleLinear<number, number>, top: number): Html {
  const left = x(from)
  const told = html`<title>${spanInWords(from, to)} ${oneLine(text, TOLD)}</title>`
  if (typeof shape === 'object')
    return html`<text class="sign ${tone}" x="${left.toFixed(3)}%" y="${top + 17}">${shape.sign}${told}</text>`
  const width = Math.max(0, x(to ?? x.domain().at(-1) ?? from) - left)
  const [y, height] = shape === 'low' ? [top + 11, 8] : [top + 3, 16]
  return html`<rect class="${shape} in-${FILLS[tone]}" x="${left.toFixed(3)}%" y="${y}" width="${width.toFixed(3)}%" height="${height}">${told}</rect>`
}

const TOLD = 160

function spanInWords(from: number, to: number | null): string {
  if (to === null || to <= from) return formatTime(from)
  return `${formatTime(from)} to ${formatTime(to)} (${formatClock(to - from)})`
}

const FIRST_LISTED = 60
const LAST_LISTED = 240

/** A table of all that is drawn; of many, the first and the last. */
function listOf(happenings: readonly Happening[], from: number): Html {
  const left = happenings.length - FIRST_LISTED - LAST_LISTED
  const shown = left > 0 ? [...happenings.slice(0, FIRST_LISTED), ...happenings.slice(-LAST_LISTED)] : happenings
  let before = from
  const rows = shown.map(({ from, to, tone, text }, at) => {
    const day = formatDayAndTime(from).slice(5, 10)
    const isNew = day !== formatDayAndTime(before).slice(5, 10)
    before = from
    const gap =
      left > 0 && at === FIRST_LISTED
        ? html`<tr class="gap"><td colspan="3">${left} more, left out here</td></tr>`
        : null
    const length = to === null || to <= from ? '' : formatClock(to - from)
    return html`${gap}<tr><td class="n">${moment(from, formatTime(from))}${isNew ? html`<small>${day}</small>` : null}</td><td class="n">${length}</td><td><span class="${tone}">${oneLine(text, LISTED)}</span></td></tr>`
  })
  return html`<table class="rows"><thead><tr><th scope="col" class="n">when</th><th scope="col" class="n">how long</th><th scope="col">what</th></tr></thead><tbody>${rows}</tbody></table>`
}

const LISTED = 300

/** What the lists of the report leave out, and so the drawing does; null: nothing. */
function leftOutInWords({ gateRuns, trouble, refusals, questions, proof }: ReportData): string | null {
  const left = (list: Shortened<unknown>, noun: string) => (list.leftOut === 0 ? [] : [formatCount(list.leftOut, noun)])
  const parts = [
    ...left(gateRuns, 'gate run'),
    ...left(proof.reviews, 'review'),
    ...left(trouble, 'other moment'),
    ...left(refusals, 'refused claim'),
    ...left(questions, 'question'),
  ]
  return parts.length === 0 ? null : `Not drawn: ${parts.join(', ')}.`
}

function describe({ rounds, gateRuns, trouble, refusals, questions }: ReportData): string {
  const counts = [
    formatCount(rounds.count, 'round'),
    formatCount(gateRuns.count, 'gate run'),
    formatCount(trouble.count, 'wait or failure').replace('wait or failures', 'waits and failures'),
    formatCount(refusals.count, 'refused claim'),
    formatCount(questions.count, 'question'),
  ]
  return `${counts.join(', ')}. The list below has the exact times.`
}
