import { expect, test } from 'vitest'
import { statusLine } from '../../../../src/tell/words/doing.ts'
import { boardNow } from '../../../../src/tell/words/plan.ts'
import { buildReport, buildStatusLines, tasksOfBoard } from '../../../../src/tell/words/status.ts'
import { atWork, stateAfter as goalAfter } from '../header/session.ts'
import { local, moreSamples } from '../samples.ts'
import { ends, judged, leading, planAccepted, planned, shown, starts, stateAfter } from './night.ts'

const NOW = local(20, 22, 50)
const state = stateAfter(
  ...planned,
  ...leading,
  starts('frontend-dev', 1, 'T2'),
  starts('qa-engineer', 2, 'T6'),
  ends('qa-engineer', 2),
  judged('T1', 'done'),
  judged('T8', 'parked', 'It failed 5 times.'),
)

test('status tells what is parked and why, and who is at work on what since when', () => {
  const report = buildReport(state, true)
  expect(report && buildStatusLines(report, NOW)).toEqual([
    ['parked', 'T8 Say how it is run: It failed 5 times.'],
    ['agent', 'frontend-dev, for 8 min 47 s now: T2: Do it.'],
  ])
  expect(report?.tasks.filter(({ done }) => done).map(({ id }) => id)).toEqual(['T1'])
})

test('two of one agent at work are told apart by their instances, by which a person reaches each', () => {
  const both = stateAfter(...planned, ...leading, starts('frontend-dev', 1, 'T2'), starts('frontend-dev', 2, 'T6'))
  const lines = buildStatusLines(buildReport(both, true) ?? expect.fail(), NOW).map(([, text]) => text)
  expect(lines).toEqual(both.agents.map(({ instance }) => expect.stringMatching(new RegExp(`^${instance}, for `))))
})

test('of a build that nobody runs, no agent is at work and no plan waits', () => {
  expect(buildReport(state, false)?.agents).toEqual([])
  expect(buildReport(stateAfter(...shown), true)?.waitsForPerson).toBe(true)
  expect(buildReport(stateAfter(...shown), false)?.waitsForPerson).toBe(false)
  const unasked = goalAfter(shown, { ...moreSamples['a build'], asksPlan: false })
  expect(buildReport(unasked, true)?.waitsForPerson, 'who did not want to see it').toBe(false)
  expect(buildReport(goalAfter(atWork), true)).toBe(null)
})

test('a build that is interrupted before its first agent is paused, and no plan that waits', () => {
  const begun = stateAfter(...shown, planAccepted, ...leading, { type: 'interrupt-asked' })
  expect(buildReport({ ...begun, running: null }, true)?.waitsForPerson).toBe(false)
})

test('status names the task at work and its phase, as long as somebody works', () => {
  const board = boardNow(null, state)
  expect(board && tasksOfBoard(board, true)).toEqual({
    done: 1,
    total: 8,
    current: { id: 'T2', name: 'Create homepage component', phase: 'Building' },
  })
  expect(board && tasksOfBoard(board, false)?.current).toBe(null)
})

test('once the build has begun, a pause is a pause', () => {
  const { taskPlan, ...rest } = stateAfter(...shown, planAccepted, ...leading, starts('frontend-dev', 1, 'T2'))
  const paused = { ...rest, taskPlan, running: null, pausedAt: NOW }
  expect(buildReport(paused, true)?.waitsForPerson).toBe(false)
})

test('the line for a status bar says the agents once', () => {
  expect(statusLine(state, null, NOW)).toMatch(
    /^A shop for tea\. · frontend-dev at work 8:\d\d · 1 of 8 tasks · round 2 of 20$/,
  )
  expect(statusLine({ ...state, offlineSince: NOW }, null, NOW)).toMatch(
    / · waiting for the network 0:00 · .* · 1 agent$/,
  )
})
