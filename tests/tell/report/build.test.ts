import { expect, test } from 'vitest'
import { cardOf } from '../../../src/tell/report/card.ts'
import { markdownOf } from '../../../src/tell/report/markdown.ts'
import { chartsOf } from '../../../src/tell/report/page/charts.ts'
import { htmlOf } from '../../../src/tell/report/page/page.ts'
import type { ReportData } from '../../../src/tell/report/report-data.ts'
import { numberOfRow, outcomeOfRow } from '../../../src/tell/report/words.ts'
import { ends, judged, leading, planned, shown, starts } from '../../doors/screen/build/night.ts'
import { moreSamples, sampleEvents } from '../../doors/screen/samples.ts'
import { goodNight, HERE, MadeUpNight } from './made-up-night.ts'

/** A build in which one task is done and one is parked, and that was summed up. */
function built(summary: string, reason = 'The orders were lost.'): ReportData {
  const night = new MadeUpNight('A shop for tea.', { template: 'build' })
  const events = [
    sampleEvents['plan-refused'],
    ...planned,
    ...leading,
    starts('frontend-dev', 1, 'T2'),
    ends('frontend-dev', 1),
    starts('backend-dev', 2, 'T5'),
    { ...moreSamples['agent that failed'], instance: 'backend-dev-20261120T224108002' },
    starts('backend-dev', 3, 'T5'),
    { ...sampleEvents['round-ended'], round: 2 },
    judged('T2', 'done'),
    judged('T5', 'parked', reason),
    { ...sampleEvents['round-started'], round: 3, part: 'summary' as const },
    {
      ...sampleEvents['item-completed'],
      round: 3,
      item: { kind: 'agent-message' as const, id: 'm', text: summary, phase: null },
    },
    { ...moreSamples['words of an agent'], round: 3 },
    { ...sampleEvents['round-ended'], round: 3, counts: false },
  ]
  for (const event of events) night.later(1).add(event)
  return night.report('running')
}

const summary = 'The shop is there.\nRun it with `npm start`.'

test('of a build the report has its tasks, its agents, what was no plan, and what the summary says', () => {
  const { build, tasks, lastWords, rounds, totals } = built(summary)
  expect(build).toMatchObject({
    summary,
    counts: { tasks: 8, done: 1, parked: 1 },
    agents: [
      { agent: 'frontend-dev', instances: 1, completed: 1, failed: 0, durationMs: 192_000, tokens: 45_210 },
      { agent: 'backend-dev', instances: 2, completed: 0, failed: 1, durationMs: 192_000, tokens: 0 },
    ],
    refusals: { count: 1, entries: [{ round: 1, problem: sampleEvents['plan-refused'].problem }] },
  })
  expect(build?.tasks.slice(1, 5)).toEqual([
    { id: 'T2', name: 'Create homepage component', phase: 'Building', state: 'done', reason: null, failures: 0 },
    { id: 'T3', name: 'Create the cart', phase: 'Building', state: 'open', reason: null, failures: 0 },
    { id: 'T4', name: 'Write the API', phase: 'Building', state: 'open', reason: null, failures: 0 },
    expect.objectContaining({ id: 'T5', state: 'parked', reason: 'The orders were lost.' }),
  ])
  expect(tasks).toMatchObject({ done: 1, total: 8 })
  expect(tasks?.left[0]).toBe('T1: Choose the stack')
  expect([totals.attempts, rounds.entries.map(row => outcomeOfRow(row, rounds))]).toEqual([
    2,
    ['team building: worked', 'building: worked', 'summary: worked (does not count as a round)'],
  ])
  expect(lastWords, 'of another agent it says nothing').toBe(summary)
  expect(goodNight().report().build).toBe(null)
})

test('a plan that was shown is no pause of a person, and the round that changed it is not said to be tried again', () => {
  const night = new MadeUpNight('A shop for tea.', { template: 'build', asksPlan: true })
  const change = [
    ...shown,
    sampleEvents['replan-asked'],
    { ...sampleEvents['round-started'], round: 2 },
    { ...sampleEvents['round-ended'], round: 2, counts: false },
    { ...sampleEvents.replanned, round: 2 },
  ]
  for (const event of change) night.later(1).add(event)
  const { trouble, rounds } = night.report('running')
  expect(trouble.entries.map(({ cause }) => cause)).toEqual(['waited for you to accept the plan'])
  expect(rounds.entries.map(row => outcomeOfRow(row, rounds))).toEqual([
    'team building: worked',
    'change of plan: worked (does not count as a round)',
  ])
})

test('what the last look and the summary before it leave is told once: commits, and the number that both have', () => {
  const night = new MadeUpNight('A shop for tea.', { template: 'build' })
  const saved = { ...sampleEvents.savepoint, round: 3, commits: [{ commit: 'c3638e4', subject: 'Make the shop' }] }
  const events = [
    ...planned,
    ...leading,
    { ...sampleEvents['round-ended'], round: 2 },
    { ...sampleEvents['round-started'], round: 3, part: 'summary' as const },
    { ...sampleEvents['round-ended'], round: 3, counts: false },
    saved,
    { ...sampleEvents['round-started'], round: 3, part: 'last-look' as const },
    { ...sampleEvents['round-ended'], round: 3 },
    saved,
  ]
  for (const event of events) night.later(1).add(event)
  const data = night.report('running')
  expect(data.changes.commits).toMatchObject({ count: 1, entries: [{ subject: 'Make the shop' }] })
  const axis = /<g [^>]*text-anchor="middle">.*?<\/g>/.exec(chartsOf(data.series)[0]?.svg.text ?? '')?.[0]
  expect([...(axis ?? '').matchAll(/>(\d+)</g)].map(([, number]) => number)).toEqual(['1', '2', '3'])
})

test('the card says what is built, what is parked and who worked', () => {
  const lines = cardOf(built(summary), { commands: [], columns: 100, full: null }).map(({ text }) => text)
  expect(lines).toContain('built    The shop is there. ⏎ Run it with `npm start`.')
  expect(lines).toContain('         Task T5 Store the orders is parked: The orders were lost.')
  expect(lines).toContain('tasks    1 of 8 done, 1 parked')
  expect(lines).toContain('agents   frontend-dev 1× (3m12s, 45.2k tokens), backend-dev 2× (3m12s, 0 tokens)')
})

test('Markdown and page say what to look at, then what is built, the tasks and the agents as tables', () => {
  const markdown = markdownOf(built(summary), HERE)
  expect(markdown).toContain('> The shop is there.  \n> Run it with `npm start`.')
  expect(markdown).toContain('| T5 | Store the orders | Building | parked: The orders were lost. |')
  expect(markdown).toContain('| backend-dev | 2 times, 1 failed | 3m12s | 0 |')
  const page = htmlOf(built(summary), HERE)
  expect(page).toContain('<p>The shop is there.\nRun it with <code>npm start</code>.</p>')
  expect(page).toContain('<td><span class="bad">parked: The orders were lost.</span></td>')
  expect(page.indexOf('Look at this first')).toBeLessThan(page.indexOf('What is built'))
})

test('what agents wrote is text wherever it is shown', () => {
  const page = htmlOf(built('<img src=x onerror=1>', '<b>'), HERE)
  expect(page).not.toContain('<img src=x')
  expect(page).not.toContain('parked: <b>')
  expect(markdownOf(built('# Title\n[a](http://b)'), HERE)).toContain('> \\# Title')
})

test('how the tasks of a build went is what codemachine believes, and not what the file claimed', () => {
  const night = new MadeUpNight('A shop for tea.', { template: 'build' })
  const [teamBuilding, teamBuilt, ready] = planned
  if (teamBuilding === undefined || teamBuilt === undefined || ready === undefined) throw new Error('No plan is made.')
  const ended = sampleEvents['round-ended']
  const events = [
    teamBuilding,
    { ...ended, round: 1, tasks: { done: 1, total: 1 } },
    ready,
    ...leading,
    { ...ended, round: 2, tasks: { done: 8, total: 8 } },
    judged('T2', 'refused', 'No agent has worked on it.'),
    judged('T3', 'done'),
    { type: 'tasks-judged' as const, round: 2 },
    { ...sampleEvents['round-started'], round: 3, part: 'orchestration' as const },
    judged('T5', 'parked', 'The orders were lost.'),
    { ...ended, round: 3, tasks: { done: 8, total: 8 } },
  ]
  for (const event of events) night.later(1).add(event)
  const { series, rounds } = night.report('running')
  const believed = [
    { done: 0, total: 8 },
    { done: 1, total: 8 },
    { done: 1, total: 8 },
  ]
  expect(series.map(({ tasks }) => tasks)).toEqual(believed)
  expect(rounds.entries.map(({ tasks }) => tasks)).toEqual(believed)
})

test('a summary has no number among the rounds, for it uses up none', () => {
  const data = built(summary)
  expect(data.rounds.entries.map(numberOfRow)).toEqual(['1', '2', '–'])
  expect(markdownOf(data, HERE)).toMatch(/^\| – \|.*summary: worked \(does not count as a round\) \|$/m)
  expect(htmlOf(data, HERE)).toContain('<td class="n">–</td>')
})
