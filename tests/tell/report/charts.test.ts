import { expect, test } from 'vitest'
import { type Chart, chartsOf } from '../../../src/tell/report/page/charts.ts'
import { goodNight, MadeUpNight } from './made-up-night.ts'

function chartsOfNight(night: MadeUpNight): [time: Chart, tokens: Chart, progress: Chart] {
  const [time, tokens, progress] = chartsOf(night.report().series)
  if (time === undefined || tokens === undefined || progress === undefined) throw new Error('A chart is missing.')
  return [time, tokens, progress]
}

/** The bars of one colour: left and right edge, and height above the axis, in the chart's units. */
function barsOf({ svg }: Chart, colour: 'bar' | 'wait' | 'bad') {
  const path = new RegExp(`<path fill="var\\(--chart-${colour}\\)" d="([^"]*)"`).exec(svg.text)?.[1] ?? ''
  return [...path.matchAll(/M([\d.]+) ([\d.]+)V([\d.]+)h([\d.]+)V([\d.]+)z/g)].map(numbers => {
    const [left = 0, bottom = 0, top = 0, width = 0] = numbers.slice(1).map(Number)
    return { left, right: left + width, bottom, top, height: bottom - top }
  })
}

/** The numbers of rounds below the axis, and where the middle of each stands. */
function namesOf({ svg }: Chart) {
  const [names = ''] = /<g [^>]*text-anchor="middle">.*?<\/g>/.exec(svg.text) ?? []
  return [...names.matchAll(/<text x="([\d.]+)" y="[\d.]+">([^<]*)<\/text>/g)].map(([, x, text = '']) => ({
    x: Number(x),
    text,
  }))
}

function numbersOfAxis({ svg }: Chart): string[] {
  const [numbers = ''] = /<g [^>]*text-anchor="end">.*?<\/g>/.exec(svg.text) ?? []
  return [...numbers.matchAll(/>([^<>]+)<\/text>/g)].map(([, text = '']) => text)
}

/** The paths of the lines: the dashed one, if there is one, comes first. */
function linesOf({ svg }: Chart): string[] {
  return [...svg.text.matchAll(/<path fill="none" stroke=[^>]* d="([^"]*)"/g)].map(([, path = '']) => path)
}

function pointsOf(path: string): [x: number, y: number][] {
  return [...path.matchAll(/([\d.]+),([\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)])
}

test('no chart is drawn of a session in which no round has ended', () => {
  expect(chartsOf([])).toEqual([])
})

test('a bar is as high as its round was long, in a unit that fits, and stands above the number of its round', () => {
  const [time] = chartsOfNight(new MadeUpNight().round({ minutes: 10 }).round({ minutes: 40 }).round({ minutes: 20 }))
  expect(time.title).toBe('Time a round, min')
  expect(numbersOfAxis(time)).toEqual(['0', '10', '20', '30', '40'])
  const bars = barsOf(time, 'bar')
  const [first, second, third] = bars.map(({ height }) => height)
  expect((second ?? 0) / (first ?? 1)).toBeCloseTo(4, 1)
  expect((third ?? 0) / (first ?? 1)).toBeCloseTo(2, 1)
  for (const [index, { x }] of namesOf(time).entries()) {
    const { left = 0, right = 0 } = bars[index] ?? {}
    expect(x).toBeCloseTo((left + right) / 2, 0)
  }
  const [hours] = chartsOfNight(new MadeUpNight().round({ minutes: 180 }))
  const [seconds] = chartsOfNight(new MadeUpNight().round({ minutes: 0.5 }))
  expect([hours.title, seconds.title]).toEqual(['Time a round, h', 'Time a round, s'])
})

test('rounds that failed and rounds that a limit ended have colours of their own, and stand on the rest of their point', () => {
  const [time] = chartsOfNight(goodNight())
  expect(['bar', 'wait', 'bad'].map(colour => barsOf(time, colour as 'bar').length)).toEqual([4, 1, 1])
  const night = new MadeUpNight()
  for (let round = 1; round <= 240; round++) {
    night.round(round % 2 === 0 ? { outcome: { class: 'crashed', message: null } } : {})
  }
  const [grouped] = chartsOfNight(night)
  const [worked, failed] = [barsOf(grouped, 'bar'), barsOf(grouped, 'bad')]
  expect([worked.length, failed.length]).toEqual([120, 120])
  for (const [index, { bottom, left, height }] of failed.entries()) {
    expect(height).toBeCloseTo(worked[index]?.height ?? 0, 0)
    expect(bottom).toBeCloseTo(worked[index]?.top ?? 0, 1)
    expect(left).toBe(worked[index]?.left)
  }
})

test('tasks are a line with steps below the dashed line of all tasks, and the last value holds to the right edge', () => {
  const night = new MadeUpNight()
    .round()
    .round({ tasks: { done: 1, total: 4 } })
    .round({ tasks: { done: 3, total: 4 } })
  const [time, , progress] = chartsOfNight(night)
  expect(progress.title).toBe('Tasks done, of all')
  expect(numbersOfAxis(progress)).toEqual(['0', '1', '2', '3', '4'])
  const [all = '', done = ''] = linesOf(progress)
  const [from, top] = pointsOf(all)[0] ?? []
  expect(pointsOf(all).every(([, y]) => y === top)).toBe(true)
  expect(pointsOf(done)[0]?.[0]).toBe(from)
  expect([pointsOf(all).at(-1)?.[0], pointsOf(done).at(-1)?.[0]]).toEqual([334, 334])
  // The first round told of no tasks: the line begins with the second one.
  expect(from).toBeGreaterThan(barsOf(time, 'bar')[0]?.right ?? 340)
})

test('whole things have no fractions on their axis, also where there are none of them', () => {
  const [, , one] = chartsOfNight(new MadeUpNight().round({ files: 1 }))
  const [, , none] = chartsOfNight(new MadeUpNight().round({ files: 0, changed: [] }))
  expect(one.title).toBe('Files changed a round')
  expect([numbersOfAxis(one), numbersOfAxis(none)]).toEqual([
    ['0', '1'],
    ['0', '1'],
  ])
  expect(barsOf(none, 'bar')).toEqual([])
})

test('of 10,000 rounds the charts have at most 120 bars, names that do not touch, and 30 kB', () => {
  const night = new MadeUpNight()
  for (let round = 1; round <= 10_000; round++) night.round({ minutes: 3 + (round % 11) })
  const { series } = night.report()
  const charts = chartsOf(series)
  expect(charts.map(({ svg }) => svg.text.length).reduce((sum, length) => sum + length)).toBeLessThan(30_000)
  for (const chart of charts) {
    expect(barsOf(chart, 'bar').length).toBeLessThanOrEqual(120)
    const names = namesOf(chart)
    expect(names.length).toBeGreaterThan(2)
    expect(names[0]?.text).toBe('1–128')
    for (const [index, { x, text }] of names.entries()) {
      const half = 3.5 * text.length
      expect(x - half).toBeGreaterThanOrEqual(index === 0 ? 0 : (names[index - 1]?.x ?? 0) + half)
      expect(x + half).toBeLessThanOrEqual(340)
    }
  }
  expect(chartsOf(series)).toEqual(charts)
  const [, tokens] = charts
  expect(tokens && numbersOfAxis(tokens)).toContain('6M')
  // An M is wider than a digit, and must not be cut off at the left edge.
  expect(Number(/text-anchor="end"><text x="([\d.]+)"/.exec(tokens?.svg.text ?? '')?.[1])).toBeGreaterThan(7 + 9.5)
})

test('a chart says in words what it shows, and takes every colour from the page', () => {
  const [time] = chartsOfNight(goodNight())
  const { text } = time.svg
  expect(text).toContain('role="img" aria-label="Time a round, min over the rounds"')
  expect(text).toContain('<title>Time a round, min over the rounds</title>')
  expect(text).toContain('<desc>Time a round, min, rounds 1 to 4: at most 41 (round 2), 18 at the end. The table')
  const colours = [...text.matchAll(/(?:fill|stroke)="([^"]*)"/g)].map(([, colour]) => colour)
  expect(colours.length).toBeGreaterThan(5)
  expect(colours.filter(colour => colour !== 'none' && !colour?.startsWith('var(--chart-'))).toEqual([])
  expect(text).not.toMatch(/NaN|undefined|null|style=|<script/)
})
