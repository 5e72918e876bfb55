import { type ScaleBand, type ScaleLinear, scaleBand, scaleLinear } from 'd3-scale'
import { area, curveStepAfter, line } from 'd3-shape'
import { shortNumber } from '../../words/numbers.ts'
import type { PointSums, ReportPoint } from '../report-data.ts'
import { type Html, html } from './html.ts'

/** A chart over the rounds: its title, and an SVG element that takes its colours from the page's `--chart-…` variables. */
export interface Chart {
  title: string
  svg: Html
}

/** The charts of time, tokens and progress over the rounds; empty if no round has ended. The same points give the same text. */
export function chartsOf(points: readonly ReportPoint[]): Chart[] {
  if (points.length === 0) return []
  return [timeChart(points), tokensChart(points), progressChart(points)]
}

function timeChart(points: readonly ReportPoint[]): Chart {
  const longest = Math.max(...points.map(({ durationMs }) => durationMs))
  const [unit, name] = longest >= 2 * HOUR ? [HOUR, 'h'] : longest >= 2 * MINUTE ? [MINUTE, 'min'] : [1000, 's']
  const title = `Time ${roundsPerPoint(points)}, ${name}`
  return barChart({ title, points, isWhole: false }, ({ durationMs }) => durationMs / unit)
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE

function tokensChart(points: readonly ReportPoint[]): Chart {
  const title = `Tokens ${roundsPerPoint(points)}`
  return barChart({ title, points, isWhole: true }, ({ tokens }) => tokens)
}

/** The tasks if any round told of them, else the files by the savepoints, else the files by the rounds. */
function progressChart(points: readonly ReportPoint[]): Chart {
  if (points.some(({ tasks }) => tasks !== null)) {
    const done = points.map(({ tasks }) => tasks?.done ?? null)
    const total = points.map(({ tasks }) => tasks?.total ?? null)
    return stepChart({ title: 'Tasks done, of all', points, isWhole: true }, done, total)
  }
  if (points.some(({ changed }) => changed !== null)) {
    const files = points.map(({ changed }) => changed?.files ?? null)
    return stepChart({ title: 'Files changed since the start', points, isWhole: true }, files)
  }
  const title = `Files changed ${roundsPerPoint(points)}`
  return barChart({ title, points, isWhole: true }, ({ files }) => files)
}

function roundsPerPoint(points: readonly ReportPoint[]): string {
  const most = Math.max(...points.map(({ rounds }) => rounds))
  return most === 1 ? 'a round' : `per ${most} rounds`
}

/** What every chart has. `isWhole`: fractions have no meaning, so the axis has none. */
interface ChartFrame {
  title: string
  points: readonly ReportPoint[]
  isWhole: boolean
}

/** One value for each point; null where it is not known. */
type Values = readonly (number | null)[]

/** One bar for each point: at the bottom what worked, above it what a limit or the network ended, on top what failed. */
function barChart(frame: ChartFrame, of: (sums: PointSums) => number): Chart {
  const values = frame.points.map(of)
  return chartWith(frame, values, values, ({ x, y }) => {
    const width = Math.min(x.bandwidth(), WIDEST_BAR)
    const worked: string[] = []
    const limited: string[] = []
    const failed: string[] = []
    for (const [index, point] of frame.points.entries()) {
      const left = centreOf(x, index) - width / 2
      const ofLimited = of(point.ofLimited)
      const ofFailed = of(point.ofFailed)
      const ofWorked = Math.max(0, of(point) - ofLimited - ofFailed)
      const bar = (from: number, height: number) => barPath(left, width, y(from), y(from + height))
      if (ofWorked > 0) worked.push(bar(0, ofWorked))
      if (ofLimited > 0) limited.push(bar(ofWorked, ofLimited))
      if (ofFailed > 0) failed.push(bar(ofWorked + ofLimited, ofFailed))
    }
    return [filled('bar', worked), filled('wait', limited), filled('bad', failed)]
  })
}

function barPath(left: number, width: number, bottom: number, top: number): string {
  return `M${short(left)} ${short(bottom)}V${short(top)}h${short(width)}V${short(bottom)}z`
}

/** All bars of one colour are one element: it keeps the page small. */
function filled(colour: string, paths: readonly string[]): Html | null {
  return paths.length === 0 ? null : html`<path fill="var(--chart-${colour})" d="${paths.join('')}"/>`
}

/** A line with steps over its own area, below the dashed line of what there is in all. */
function stepChart(frame: ChartFrame, values: Values, total: Values = []): Chart {
  return chartWith(frame, values, [...values, ...total], ({ x, y }) => {
    const steps = stepsOf(values, x)
    return [
      html`<path fill="var(--chart-area)" d="${areaPath(steps, y)}"/>`,
      total.length === 0
        ? null
        : html`<path fill="none" stroke="var(--chart-ink)" stroke-opacity=".7" stroke-dasharray="4 3" d="${linePath(stepsOf(total, x), y)}"/>`,
      html`<path fill="none" stroke="var(--chart-bar)" stroke-width="2" d="${linePath(steps, y)}"/>`,
    ]
  })
}

/** Where a value begins to hold, in the chart's units, and the value. */
interface Step {
  left: number
  value: number
}

/** The known values, each from the beginning of its round until the next one; the last holds to the end of the last round. */
function stepsOf(values: Values, x: Scales['x']): Step[] {
  const known = values.flatMap((value, index) => (value === null ? [] : [{ left: x(String(index)) ?? 0, value }]))
  const last = known.at(-1)
  return last === undefined ? [] : [...known, { left: x.range()[1], value: last.value }]
}

function areaPath(steps: readonly Step[], y: Scales['y']): string {
  const shape = area<Step>(
    ({ left }) => left,
    y(0),
    ({ value }) => y(value),
  )
  return shape.curve(curveStepAfter).digits(DIGITS)([...steps]) ?? ''
}

function linePath(steps: readonly Step[], y: Scales['y']): string {
  const shape = line<Step>(
    ({ left }) => left,
    ({ value }) => y(value),
  )
  return shape.curve(curveStepAfter).digits(DIGITS)([...steps]) ?? ''
}

// Its units are pixels of a phone, where it is not made smaller; on a desktop three charts stand side by side.
const WIDTH = 340
const HEIGHT = 190
const TOP = 10
const RIGHT = 6
const BOTTOM = 24
const FONT = 11
/** A digit of the widest font that a page may fall back to. */
const DIGIT = 7
const MOST_NAMES = 6
const WIDEST_BAR = 26
const DIGITS = 1

/** Where the points (by their index) and the values lie, in the chart's units. */
interface Scales {
  x: ScaleBand<string>
  y: ScaleLinear<number, number>
}

/**
 * Axes and grid with the marks on them.
 * @param values what is told in words
 * @param shown all values that have to fit on the axis
 */
function chartWith(
  { title, points, isWhole }: ChartFrame,
  values: Values,
  shown: Values,
  marks: (scales: Scales) => readonly (Html | null)[],
): Chart {
  const most = Math.max(0, ...shown.map(value => value ?? 0))
  const y = scaleLinear([0, most || 1], [HEIGHT - BOTTOM, TOP]).nice(4)
  const ticks = y.ticks(4).filter(tick => Number.isInteger(tick) || !(isWhole || most > 4))
  const left = 9 + DIGIT * Math.max(...ticks.map(tick => shortOf(tick).length))
  const gap = points.length > 40 ? 0.08 : 0.3
  const x = scaleBand([...points.keys()].map(String), [left, WIDTH - RIGHT])
    .paddingInner(gap)
    .paddingOuter(gap / 2)
  const name = `${title} over the rounds`
  const svg = html`<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${name}"><title>${name}</title><desc>${describePoints(title, points, values)}</desc>${[
    html`<g fill="none" stroke="var(--chart-grid)">${ticks.map(tick => rule(y(tick), left))}</g>`,
    ...marks({ x, y }),
    html`<g fill="none" stroke="var(--chart-ink)" stroke-opacity=".5">${rule(y(0), left)}</g>`,
    html`<g fill="var(--chart-ink)" font-size="${FONT}" text-anchor="end">${ticks.map(tick => label(left - 5, y(tick) + 4, shortOf(tick)))}</g>`,
    html`<g fill="var(--chart-ink)" font-size="${FONT}" text-anchor="middle">${namesOf(points, x)}</g>`,
  ]}</svg>`
  return { title, svg }
}

/** On the middle of a pixel, where a line is sharp. */
function rule(y: number, left: number): Html {
  return html`<path d="M${left} ${Math.round(y) - 0.5}H${WIDTH - RIGHT}"/>`
}

function label(x: number, y: number, text: string): Html {
  return html`<text x="${short(x)}" y="${short(y)}">${text}</text>`
}

/** The numbers of rounds below the axis, each once: as many, at equal distances, as have room beside each other. */
function namesOf(points: readonly ReportPoint[], x: Scales['x']): Html[] {
  const named = points.flatMap((point, index) => {
    const next = points[index + 1]
    // Only the last try of a round; of rounds without a number of their own none.
    const isAgain = next !== undefined && !next.isFree && nameOf(next) === nameOf(point)
    return point.isFree || isAgain ? [] : [index]
  })
  const width = DIGIT * Math.max(...points.map(point => nameOf(point).length))
  const room = Math.min(MOST_NAMES, Math.floor((WIDTH - RIGHT) / (width + DIGIT)))
  const every = Math.max(1, Math.ceil(named.length / room))
  return points.flatMap((point, index) => {
    const at = named.indexOf(index)
    if (at === -1 || at % every !== 0) return []
    const half = (DIGIT * nameOf(point).length) / 2
    return [label(Math.min(Math.max(centreOf(x, index), half), WIDTH - half), HEIGHT - 8, nameOf(point))]
  })
}

function centreOf(x: Scales['x'], index: number): number {
  return (x(String(index)) ?? 0) + x.bandwidth() / 2
}

function short(value: number): number {
  return Number(value.toFixed(DIGITS))
}

function shortOf(value: number): string {
  return value < 1000 ? String(Number(value.toFixed(2))) : shortNumber(value)
}

function nameOf({ from, to }: ReportPoint): string {
  return from === to ? String(from) : `${from}–${to}`
}

/** What a chart shows, for a person who does not see it. */
function describePoints(title: string, points: readonly ReportPoint[], values: Values): string {
  const known = values.filter(value => value !== null)
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined || known.length === 0) return title
  const most = Math.max(...known)
  const where = points[values.indexOf(most)]
  const ending = known.at(-1) ?? 0
  return `${title}, rounds ${first.from} to ${last.to}: at most ${shortOf(most)} (round ${where === undefined ? '?' : nameOf(where)}), ${shortOf(ending)} at the end. The table of rounds has the numbers.`
}
