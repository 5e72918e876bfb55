import { BarChart, LineChart } from 'echarts/charts'
import { GridComponent } from 'echarts/components'
import { init, use } from 'echarts/core'
import { SVGRenderer } from 'echarts/renderers'
import { shortNumber } from '../words/numbers.ts'
import type { PointSums, ReportPoint } from './report-data.ts'
import { escapeHtml } from './words.ts'

use([BarChart, LineChart, GridComponent, SVGRenderer])

/** A chart over the rounds: an SVG element that takes its colours from the page, and what it shows in words. */
export interface Chart {
  title: string
  svg: string
}

// For a phone: what is drawn is not made smaller there. On a desktop three stand side by side.
const WIDTH = 340
const HEIGHT = 190
const LABELS = 6

/** Colours that stand for those of the page, which has one of each for light and for dark. */
const COLOURS = { ink: '#010101', grid: '#020202', bar: '#030303', bad: '#040404', area: '#050505', wait: '#060606' }

/** Time, tokens and progress over the rounds; none if no round has ended. Synchronous, and without a browser. */
export function chartsOf(points: readonly ReportPoint[]): Chart[] {
  if (points.length === 0) return []
  return [timeChart(points), tokensChart(points), progressChart(points)]
}

function timeChart(points: readonly ReportPoint[]): Chart {
  const longest = Math.max(...points.map(({ durationMs }) => durationMs))
  const [unit, name] = longest >= 2 * HOUR ? [HOUR, 'h'] : longest >= 2 * MINUTE ? [MINUTE, 'min'] : [1000, 's']
  const of = ({ durationMs }: PointSums) => durationMs / unit
  return drawn(`Time ${per(points)}, ${name}`, points, bars(points, of), { values: points.map(of), isWhole: false })
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE

function tokensChart(points: readonly ReportPoint[]): Chart {
  const of = ({ tokens }: PointSums) => tokens
  return drawn(`Tokens ${per(points)}`, points, bars(points, of), { values: points.map(of), isWhole: true })
}

function progressChart(points: readonly ReportPoint[]): Chart {
  if (points.some(({ tasks }) => tasks !== null)) {
    const done = points.map(({ tasks }) => tasks?.done ?? null)
    const total = points.map(({ tasks }) => tasks?.total ?? null)
    return drawn('Tasks done, of all', points, [line(total, { isArea: false }), line(done, { isArea: true })], {
      values: done,
      isWhole: true,
    })
  }
  if (points.some(({ changed }) => changed !== null)) {
    const files = points.map(({ changed }) => changed?.files ?? null)
    return drawn('Files changed since the start', points, [line(files, { isArea: true })], {
      values: files,
      isWhole: true,
    })
  }
  const of = ({ files }: PointSums) => files
  return drawn(`Files changed ${per(points)}`, points, bars(points, of), { values: points.map(of), isWhole: true })
}

function per(points: readonly ReportPoint[]): string {
  const most = Math.max(...points.map(({ rounds }) => rounds))
  return most === 1 ? 'a round' : `per ${most} rounds`
}

/** One bar for each point: at the bottom what worked, then what a limit or the network ended, then what failed. */
function bars(points: readonly ReportPoint[], of: (sums: PointSums) => number) {
  const part = (color: string, value: (point: ReportPoint) => number) => ({
    type: 'bar' as const,
    stack: 'rounds',
    silent: true,
    barMaxWidth: 26,
    barCategoryGap: points.length > 40 ? '8%' : '30%',
    itemStyle: { color },
    data: points.map(value),
  })
  return [
    part(COLOURS.bar, point => Math.max(0, of(point) - of(point.ofLimited) - of(point.ofFailed))),
    ...(points.some(({ limited }) => limited > 0) ? [part(COLOURS.wait, point => of(point.ofLimited))] : []),
    ...(points.some(({ failed }) => failed > 0) ? [part(COLOURS.bad, point => of(point.ofFailed))] : []),
  ]
}

function line(values: readonly (number | null)[], { isArea }: { isArea: boolean }) {
  return {
    type: 'line' as const,
    silent: true,
    step: 'end' as const,
    connectNulls: true,
    showSymbol: isArea && values.length <= 24,
    symbol: 'circle',
    symbolSize: 5,
    itemStyle: { color: COLOURS.bar },
    lineStyle: isArea
      ? { color: COLOURS.bar, width: 2 }
      : { color: COLOURS.ink, width: 1, type: 'dashed' as const, opacity: 0.6 },
    ...(isArea ? { areaStyle: { color: COLOURS.area, opacity: 1 } } : {}),
    data: [...values],
  }
}

function drawn(
  title: string,
  points: readonly ReportPoint[],
  series: readonly (ReturnType<typeof bars>[number] | ReturnType<typeof line>)[],
  { values, isWhole }: { values: readonly (number | null)[]; isWhole: boolean },
): Chart {
  const label = { color: COLOURS.ink, fontSize: 11 }
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: HEIGHT })
  try {
    chart.setOption({
      animation: false,
      grid: { left: 4, right: 8, top: 10, bottom: 4, outerBoundsMode: 'same', outerBoundsContain: 'axisLabel' },
      xAxis: {
        type: 'category',
        data: points.map(nameOf),
        axisLabel: { ...label, interval: Math.max(0, Math.ceil(points.length / LABELS) - 1), hideOverlap: true },
        axisTick: { show: false },
        axisLine: { lineStyle: { color: COLOURS.ink, opacity: 0.5 } },
      },
      yAxis: {
        type: 'value',
        splitNumber: 4,
        minInterval: isWhole || Math.max(...values.map(value => value ?? 0)) > 4 ? 1 : 0,
        axisLabel: { ...label, formatter: shortOf },
        splitLine: { lineStyle: { color: COLOURS.grid } },
      },
      series: [...series],
    })
    return { title, svg: forPage(chart.renderToSVGString(), title, describePoints(title, points, values)) }
  } finally {
    chart.dispose()
  }
}

function shortOf(value: number): string {
  return value < 1000 ? String(Number(value.toFixed(2))) : shortNumber(value)
}

function nameOf({ from, to }: ReportPoint): string {
  return from === to ? String(from) : `${from}–${to}`
}

/** What a chart shows, for who does not see it. */
function describePoints(title: string, points: readonly ReportPoint[], values: readonly (number | null)[]): string {
  const known = values.filter(value => value !== null)
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined || known.length === 0) return title
  const most = Math.max(...known)
  const where = points[values.indexOf(most)]
  const ending = known.at(-1) ?? 0
  return `${title}, rounds ${first.from} to ${last.to}: at most ${shortOf(most)} (round ${where === undefined ? '?' : nameOf(where)}), ${shortOf(ending)} at the end. The table of rounds has the numbers.`
}

/** What ECharts drew, with the page's colours and font, a name, and without what only its own script needs. */
function forPage(svg: string, title: string, description: string): string {
  const inner = svg
    .replace(/^[\s\S]*?<svg[^>]*>/, '')
    .replace(/<\/svg>\s*$/, '')
    .replace(/<style[\s\S]*?<\/style>/g, '')
    .replace(/ (?:class|ecmeta_[a-z_]+|pointer-events|xml:space)="[^"]*"/g, '')
    .replace(/font-family:[^;"]*;?/g, '')
    .replace(/"#0([1-6])(?:0\d){2}"/g, (_, place: string) => `"var(--chart-${PLACES[Number(place) - 1]})"`)
    .replace(/\n\s*/g, '')
  const name = `${escapeHtml(title)} over the rounds`
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${name}"><title>${name}</title><desc>${escapeHtml(description)}</desc>${inner}</svg>`
}

const PLACES = ['ink', 'grid', 'bar', 'bad', 'area', 'wait']
